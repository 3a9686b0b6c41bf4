"""What the records of an audit log say of names, jobs and texts, and how the tables' rows differ from it.

A part of verify_audit.py, which stands beside it; written apart from the C code, like that.
"""
import hashlib
import hmac
import json
import re
import time

import verify_audit_bound

KINDS = ("tenant", "sku", "principal", "node", "gpu", "group", "dataset")
WORD, DIGEST, NUMBER = "[a-z_]{1,23}", "[0-9a-f]{64}", "0|[1-9][0-9]{0,19}"
U32, I32, U64, SAFE = 2**32 - 1, 2**31 - 1, 2**64 - 1, 2**53 - 1


# ---- the forms of items and of rows, each written the one way (docs/audit.md, "Numbers") ----

def once(pairs):
    value = dict(pairs)
    if len(value) != len(pairs) or not all(re.fullmatch(r"[ -!#-\[\]-\x7f]*", key) for key in value):
        raise ValueError("a key stands twice, or is not ASCII")
    return value


def refuse(text):
    raise ValueError(f"{text} is no integer")


def parse(text):
    return json.loads(text, object_pairs_hook=once, parse_float=refuse, parse_constant=refuse)


def fits(value, pattern):
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


def in_range(value, least, most):
    return type(value) is int and least <= value <= most


def is_moment(value):
    """A time that there is, which is always a text."""
    return fits(value, NUMBER) and 0 < int(value) <= U64


def is_number(value, least=0):
    """What a double does not hold is a text."""
    return in_range(value, least, SAFE) or fits(value, NUMBER) and SAFE < int(value) <= U64


def number_of(said, key):
    """A member of a document that is a number; 0: it has none."""
    value = said.get(key) if isinstance(said, dict) else None
    return int(value) if in_range(value, 0, U64) or fits(value, NUMBER) and int(value) <= U64 else 0


def check_names(items):
    """Bindings: a commitment to each kind, id and name."""
    if not isinstance(items, list) or not items:
        raise ValueError("its names are no list")
    for item in items:
        if not isinstance(item, dict) or set(item) != {"c", "id", "kind"} or not fits(item["c"], DIGEST) or item["kind"] not in KINDS \
                or not in_range(item["id"], 1, U32):
            raise ValueError("a binding does not have the form of one")


# A member of what became of a job, and its form.
JOB_FORMS = {"cause": lambda value: fits(value, WORD), "ended": is_moment, "job": is_number, "row": lambda value: fits(value, DIGEST) and int(value, 16) > 0,
             "started": is_moment, "state": lambda value: fits(value, WORD), "status": lambda value: in_range(value, -I32, I32) and value != 0}


def check_jobs(items, version=4):
    """What became of jobs: where each is since this record."""
    if not isinstance(items, list) or not items:
        raise ValueError("its jobs are no list")
    for item in items:
        has = set(item) if isinstance(item, dict) else set()
        must = {"job", "state"} | ({"cause", "ended"} if "ended" in has else set())
        may = must | {"status"} | ({"started"} if "ended" not in has else set()) | ({"row"} if version > 3 else set())
        if not must <= has <= may or not all(JOB_FORMS[key](item[key]) for key in has):
            raise ValueError("what became of a job does not have the form of it")


def u32(value):
    if not in_range(value, 0, U32):
        raise ValueError("a number is none of 32 bits")
    return value


def i32(value):
    if not in_range(value, -I32 - 1, I32):
        raise ValueError("a number is none of 32 bits")
    return value


def u64(value):
    """As a number or as a text: exports of before may have either."""
    if not in_range(value, 0, 2**63 - 1) and not (fits(value, NUMBER) and int(value) <= U64):
        raise ValueError("a number is none of 64 bits")
    return int(value)


def digest(value):
    if not fits(value, DIGEST):
        raise ValueError("a digest or key is not 64 digits of hexadecimal")
    return value


def text(most, refused="[\0-\x08\x0b-\x1f\x7f]"):
    def read(value):
        if not isinstance(value, str) or len(value.encode()) > most or re.search(refused, value):
            raise ValueError(f"a text is none of {most} bytes")
        return value
    return read


def document_kind(value):
    if value not in list(DOCUMENTS):
        raise ValueError("no documents of that kind are known")
    return value


WORDS, NAME, ANY = text(15, "[\0-\x1f\x7f]"), text(4096), text(2**63, "\0")
# Of each table: what reads a member, and the members that no row is without.
ROWS = {
    "names": ({"erased_by": u64, "id": u32, "key": digest, "kind": WORDS, "name": NAME}, {"id", "kind"}),
    "jobs": ({**dict.fromkeys(("checkpoint_signal", "count", "gang", "principal_id", "priority", "restarts", "tenant_id"), u32), "exit_status": i32,
              **dict.fromkeys(("deadline_ns", "ended_ns", "job", "lease", "started_ns", "submitted_ns", "time_limit_ns"), u64), "spec": digest,
              **dict.fromkeys(("contract", "grade", "kind", "node", "pieces", "principal", "reason", "sku", "state", "tenant"), NAME)}, {"job"}),
    "texts": ({"digest": digest, "number": u64, "text": ANY}, {"digest", "number"}),
    "documents": ({"key": NAME, "kind": document_kind, "number": u64, "value": text(64 << 10)}, {"key", "kind", "number", "value"}),
    "keys": ({"created_ns": u64, "destroyed_ns": u64, "id": u64, "kind": u32, "month": u32, "tenant_id": u32}, {"id"}),
}
ROW_BYTES_MAX = 1 << 20  # but of a text


def read_row(table, line):
    """A line of a file of an export, as a dictionary with integers for numbers."""
    forms, must = ROWS[table]
    row = parse(line)
    if not isinstance(row, dict) or not must <= set(row) <= set(forms):
        raise ValueError(f"it has not the members of {table}")
    row = {key: forms[key](value) for key, value in row.items()}
    if canonical(row) != line.encode() if table == "texts" else len(line.encode()) > ROW_BYTES_MAX:
        raise ValueError("it is too long, or not written the one way")
    return row


# What a job's row has from its submission, by the names of the columns; what an event leaves out.
PRIORITIES = ("", "low", "normal", "high", "urgent")
JOB_KINDS, CONTRACTS = ("batch", "service", "interactive"), ("requeue", "suspend", "never", "checkpoint")
CHECKPOINT_SIGNAL = 10
COLUMNS = {"priority": "priority", "gang": "gang", "checkpoint_signal": "signal for checkpoints", "time_limit_ns": "time limit",
           "deadline_ns": "deadline", "kind": "kind", "contract": "contract"}
PLACE = ("grade", "lease", "node", "pieces", "restarts")


def word_of(submit, key, words):
    """One of the words; the first one is left out."""
    return submit[key] if submit.get(key) in words else words[0]


def columns_of(submit):
    columns = {key: number_of(submit, key) for key in ("time_limit_ns", "deadline_ns")}
    columns.update(gang=number_of(submit, "gang") & U32, priority=PRIORITIES.index(word_of(submit, "priority", PRIORITIES)), kind=word_of(submit, "kind", JOB_KINDS),
                   contract=word_of(submit, "contract", CONTRACTS))
    signal = number_of(submit, "checkpoint_signal") & U32 or CHECKPOINT_SIGNAL
    columns["checkpoint_signal"] = signal if columns["contract"] == "checkpoint" else 0
    return columns


def canonical(value):
    """As RFC 8785 has it; integers that JavaScript cannot hold are texts."""
    def written(item):
        if isinstance(item, dict):
            return {key: written(member) for key, member in item.items()}
        return str(item) if type(item) is int and abs(item) > 2**53 - 1 else item
    return json.dumps(written(value), ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def place_digest(row):
    """Of where a job is, as its row says; what is empty is left out."""
    return hashlib.sha256(canonical({key: row[key] for key in PLACE if row.get(key)})).hexdigest()


ERASED = "(erased)"
NOT_TEXTS = ("job.image", "key.make", "node.scrubbed", "snapshot")  # what "text" of these is the digest of stands elsewhere


# Kinds of documents that records have the digest of: what their number is the number of, the verb of
# the record and the type of its object.
DOCUMENTS = {"receipt": ("receipt of record", "node.scrubbed", "piece"), "revision": ("site revision", "site.apply", "site"),
             "image": ("image of job", "job.image", "job")}
REVISIONS_MAX = 512  # the store keeps these at least
LATE_NS = 86400 * 10**9  # what an export says of after its last record is of the same day
MOMENT_NS = 60 * 10**9  # a text is sealed, and its key made, at most so long before the record that says so


def month_of(ns):
    """Year and month, UTC, as 202611."""
    at = time.gmtime(max(ns, 0) // 10**9)
    return at.tm_year * 100 + at.tm_mon


def months_of(ns):
    """The first and the last in which the text of a record of that time was sealed, or the key made that it tells of."""
    return month_of(ns - MOMENT_NS), month_of(ns)


def read_document(kind, key, value):
    """(number, digest, time, principal) as the document says; the last two of a revision alone."""
    said = parse(value)
    if not isinstance(said, dict) or canonical(said) != value.encode():
        raise ValueError("not as it is written")
    if kind == "receipt":
        receipt, record = said["receipt"], number_of(said, "record")
        found = hashlib.sha256(canonical(receipt)).hexdigest()
        if key != f"{number_of(receipt, 'order'):020}-{number_of(receipt, 'begun_ns'):020}" \
                or canonical({"digest": found, "receipt": receipt, "record": record}) != value.encode():
            raise ValueError("not as it is written")
        return record, found, 0, 0
    if not fits(key, "[0-9]{20}") or int(key) > U64:
        raise ValueError("its key is no number")
    return int(key), digest(said["digest"]), number_of(said, "at_ns"), number_of(said, "principal") & U32


def key_digest(facts):
    return hashlib.sha256(canonical({key: str(value) if key == "created_ns" else value for key, value in facts.items() if value})).hexdigest()


def facts_of(event):
    """What the record of a token says that it may: the digest of that, None in a record of before, and whose it is, how long."""
    if not isinstance(event, dict) or next(iter(event), None) != "token":
        return {"digest": None}
    facts = event["token"]
    return {"digest": hashlib.sha256(canonical(event)).hexdigest(), "owner": number_of(facts, "principal"), "expires": number_of(facts, "expires_ns")}


class Claims:
    """What the records say of names, jobs and texts, and how the tables' rows differ from it."""

    def __init__(self):
        self.names, self.jobs, self.texts, self.shreds = {}, {}, {}, {}  # by what they are of
        self.keys_of = {}  # the numbers of a tenant's keys
        self.erased, self.found, self.seen = {}, {}, set()
        self.upgrade, self.pruned, self.size, self.first_ns, self.last_ns = None, False, 0, 0, 0
        self.pruned_to, self.carried_to = 0, 0  # records below are hashes; what those below it said of rows was carried on
        self.older, self.newer, self.rows_from = False, False, None
        self.documents, self.revisions, self.keys, self.site = {}, [], {}, None
        self.for_ever, self.revision_of = set(), {}  # texts that more than the site file names; the newest revision of a text
        self.gives, self.optional, self.tokens, self.forgotten = 0, set(), {}, {}
        self.last_text, self.strange_text = 0, (U64 + 1, "")  # the highest number of a text that a record names, the lowest that none does
        self.differing, self.counts = [], {}

    # ---- the records ----

    def skip(self, number):
        self.pruned, self.size = True, number + 1
        self.pruned_to = self.size

    def has_lost(self):
        """Whether there were records of which nothing was carried on."""
        return self.pruned_to > self.carried_to

    def take(self, number, record):
        self.size, self.last_ns = number + 1, int(record["ts"])
        self.first_ns = self.first_ns or self.last_ns
        self.older, self.newer = self.older or record["v"] < 4, self.newer or record["v"] > 3
        if self.older and record["v"] > 3 and self.rows_from is None:
            self.rows_from = number
        verb, about, allowed = record.get("verb"), record.get("obj", {}), record.get("dec", {}).get("allow")
        event = record.get("ev")
        if isinstance(event, dict) and "submit" in event:
            self.submit(number, record, event["submit"] if isinstance(event["submit"], dict) else {})
        for item in record.get("jobs", []):
            self.state(number, item, record["v"])
        for item in record.get("names", []):
            known = self.names.setdefault((item["kind"], item["id"]), (item["c"], number))
            if known[0] != item["c"]:
                raise ValueError(f"it binds {item['kind']} {item['id']}, which record {known[1]} bound to another name")
        if "names" in record and verb == "names.bind" and about.get("type") == "upgrade" and self.upgrade is None:
            self.upgrade = number
        if "text" in record and verb not in NOT_TEXTS:
            self.name_text(record["text"], number, record)
            if not (allowed and verb == "site.apply" and about.get("type") == "site"):
                self.for_ever.add(record["text"])
        if verb == "name.erase" and allowed:
            if about.get("type") not in KINDS:
                raise ValueError("it erases a name of no kind")
            self.erased[about["type"], int(about.get("id", 0))] = number
        if verb == "key.shred" and allowed:
            self.shreds[int(about.get("id", 0))] = number

        self.take_documents(number, record, verb, about, allowed)
        if verb == "rows.bind" and allowed and about.get("type") == "log":
            verify_audit_bound.take(self, record.get("ev"), int(about.get("id", 0)))
        self.gives = self.gives + 1 if verb == "names.give" else 0

    def name_text(self, digest, number, record):
        """A record about a dataset names what a job was submitted as, in a record before: of a pruned log it may be gone."""
        if digest not in self.texts:
            elsewhere = self.pruned and record.get("obj", {}).get("type") == "dataset"
            self.texts[digest] = {"record": number, "at": int(record["ts"]), "tenant": record.get("tenant", 0), "older": record["v"] < 2,
                                  "elsewhere": elsewhere}

    def key_of(self, number, tenant):
        if number not in self.keys:
            self.keys[number] = {}
            self.keys_of.setdefault(tenant, []).append(number)
        return self.keys[number]

    def take_documents(self, number, record, verb, about, allowed):
        if not allowed:
            return
        kind = next((kind for kind, (_, by, of) in DOCUMENTS.items() if (by, of) == (verb, about.get("type"))), None)
        if kind == "revision" and "text" in record:
            self.take_site(number, record)
        elif kind and "text" in record:
            self.documents[kind, number if kind == "receipt" else int(about.get("id", 0))] = (number, record["text"], None, 0)
            self.take_other_number(kind, number, record)
        if about.get("type") == "key" and verb in ("key.make", "key.destroyed"):
            key = self.key_of(int(about.get("id", 0)), record.get("tenant", 0))
            key.update({"made": number, "made_ns": int(record["ts"]), "tenant": record.get("tenant", 0), "digest": record.get("text")}
                       if verb == "key.make" else {"destroyed": number, "destroyed_ns": int(record["ts"])})

        if about.get("type") == "token" and verb in ("token.create", "token.revoke"):
            token = self.tokens.setdefault(int(about.get("id", 0)), {})
            token.update({"made": number, **facts_of(record.get("ev"))} if verb == "token.create" else {"revoked": number})
        if about.get("type") == "account" and verb == "token.forget":
            self.forgotten[int(about.get("id", 0))] = (number, int(record["ts"]))

    def take_other_number(self, kind, number, record):
        """Before version 4 a document named the first of the records names.give that its own took along:
        then it stands under either number."""
        if kind != "image" and record["v"] < 4 and self.gives:
            self.documents[kind, number - self.gives] = self.documents[kind, number]
            self.optional |= {(kind, number), (kind, number - self.gives)}

    def take_site(self, number, record):
        """A file that says what the one in force says is no new revision."""
        unsure = self.site is None and self.pruned
        if self.site and self.site["digest"] == record["text"]:
            self.site["record"] = number
            return
        exact = record["v"] > 3
        self.documents["revision", number] = (number, record["text"], (int(record["ts"]) or None) if exact else None, record.get("actor", {}).get("id", 0))
        self.take_other_number("revision", number, record)
        self.revisions.append((number, unsure or not exact))
        self.revision_of[record["text"]] = len(self.revisions)
        self.site = {"record": number, "revision": number if exact and not unsure else None, "digest": record["text"]}

    def submit(self, number, record, submit):
        job, spec = self.jobs.setdefault(number_of(submit, "job"), {}), submit.get("spec", "0" * 64)
        if "record" in job:
            raise ValueError(f"it submits job {number_of(submit, 'job')}, as record {job['record']} did")
        if not fits(spec, DIGEST):
            raise ValueError("its job's spec is no digest")
        job.update(record=number, submitted=int(record["ts"]), spec=spec, **{key: number_of(submit, key) & U32 for key in ("tenant", "principal", "sku", "count")})
        if record["v"] > 2:
            job.update(stated=number, state="pending", started=0, ended=0, cause="", status=0)
        if record["v"] > 3:
            job.update(columns=columns_of(submit), place=place_digest({}), placed=number)
        if int(spec, 16) > 0:
            self.name_text(spec, number, record)
            self.for_ever.add(spec)

    def state(self, number, item, version):
        job = self.jobs.setdefault(int(item["job"]), {})
        if "ended" not in item:
            job["started"] = int(item.get("started", 0))
        elif "stated" not in job:
            job["started"] = None  # a record of before knew it
        if version > 3 and "ended" not in item:
            job.update(place=item.get("row", "0" * 64), placed=number)
        job.update(stated=number, state=item["state"], ended=int(item.get("ended", 0)), cause=item.get("cause", ""), status=item.get("status", 0))

    # ---- the rows ----

    def count(self, table, what):
        counts = self.counts.setdefault(table, {"good": 0, "erased": 0, "not bound": 0})
        counts[what] += 1

    def differ(self, sentence):
        """Names come from a table that anybody may have changed: a line stays a line."""
        self.differing.append(re.sub("[\0-\x1f]", "?", sentence))

    def name_row(self, kind, number, name, key, erased_by):
        """`key` opens the commitment, b"" where there is none; `erased_by` is a record, as the row says."""
        what, shown = (kind, number), f"{kind} {number}"
        if kind not in KINDS:
            return self.differ(f"name {number} is of a kind that there is not")
        if what in self.seen:
            self.differ(f"{shown} stands twice")
        self.seen.add(what)
        blank = name == ERASED and not key
        if what in self.erased:
            if not blank:
                return self.differ(f"{shown} was erased by record {self.erased[what]}, but its row has a name")
            self.found[what] = ERASED
            return self.count("names", "erased")
        if erased_by and not blank:
            return self.differ(f"{shown} was erased by record {erased_by}, as its row says, which has a name")
        # Erased after these records; or before a pruning, which binds only what the table has.
        if not self.names or erased_by >= self.size or blank and self.pruned and what not in self.names:
            if blank:
                self.found[what] = ERASED  # no job has another
            return self.count("names", "not bound")
        if what not in self.names:
            return self.differ(f'{shown} is "{name:.80}" in the table, and no record binds it')
        commitment, bound = self.names[what]
        if not key:
            return self.differ(f"{shown}: the key of its name is gone, and no record erased it; record {bound} bound it")
        message = f"bulkhead name 1\n{kind} {number}\n".encode() + hashlib.sha256(name.encode()).digest()
        if hmac.new(key, message, hashlib.sha256).hexdigest() != commitment:
            return self.differ(f'{shown} is "{name:.80}" in the table; record {bound} bound it to another name')
        self.found[what] = name
        return self.count("names", "good")

    def job_row(self, row):
        """A row as a dictionary, by the names of its columns."""
        number = int(row["job"])
        job = self.jobs.get(number)
        if job is None:
            if self.has_lost() and number < min((n for n, j in self.jobs.items() if "record" in j), default=U64):
                return self.count("jobs", "not bound")
            return self.differ(f"job {number} is in the table, and no record submitted it")
        if "seen" in job:
            self.differ(f"job {number} stands twice")
        job["seen"] = True
        for record, wrong in ((job.get("record"), self.submission_differs(job, row)), (job.get("record"), columns_differ(job, row)),
                              (job.get("stated"), self.state_differs(job, row)), (job.get("placed"), place_differs(job, row))):
            if wrong:
                return self.differ(f"job {number}: its {wrong} is not what record {record} says")
        return self.count("jobs", "good" if "record" in job and "stated" in job else "not bound")

    def submission_differs(self, job, row):
        if "record" not in job:
            return None
        pairs = []
        for shown, kind in (("tenant", "tenant"), ("principal", "principal"), ("SKU", "sku")):
            pairs += [(shown, row[f"{kind}_id"], job[kind])] if kind != "sku" else []
            if kind == "sku" or not row.get("exported") or row[kind] != ERASED:  # erased since the last record
                pairs += [(shown, row[kind], self.found.get((kind, job[kind]), row[kind]))]
        pairs += [("count", row["count"], job["count"]), ("time of submission", int(row["submitted_ns"]), job["submitted"]),
                  ("specification", row["spec"], job["spec"])]
        return next((what for what, got, want in pairs if got != want), None)

    def state_differs(self, job, row):
        if "stated" not in job:
            return None
        status = job["status"] if job["cause"] in ("exited", "signalled") else -1
        pairs = [("state", row["state"], job["state"])]
        if job["started"] is not None:
            pairs += [("start", int(row["started_ns"]), job["started"])]
        pairs += [("end", int(row["ended_ns"]), job["ended"])]
        if job["ended"]:
            pairs += [("cause of the end", row["reason"], job["cause"])]
        if row.get("ended_by"):  # of a store alone; 0: an earlier version ended it
            pairs += [("record of the end", row["ended_by"], job["stated"] if job["ended"] else 0)]
        pairs += [("exit status", row["exit_status"], status)]
        return next((what for what, got, want in pairs if got != want), None)

    def text_row(self, digest, text, number, exported):
        """What came after the last record of an export is known at its end: texts that come later have a higher number.  Of a
        log that was pruned, or began with records of before, texts may stand there that no record names any more."""
        if digest not in self.texts:
            if not self.pruned and not self.older and not exported:
                self.differ(f"text {digest[:16]}... is in the table, and no record names it")
            elif not self.pruned and not self.older and number < self.strange_text[0]:
                self.strange_text = (number, digest)
            return
        if digest in self.seen:
            self.differ(f"text {digest[:16]}... stands twice")
        self.seen.add(digest)
        self.last_text = max(self.last_text, number)
        if hashlib.sha256(text).hexdigest() != digest:
            return self.differ(f"text {digest[:16]}...: it does not have the digest that record {self.texts[digest]['record']} names")
        self.count("texts", "good")

    def document_row(self, kind, key, value):
        called = DOCUMENTS[kind][0]
        try:
            number, *said = read_document(kind, key, value)
        except (KeyError, TypeError, ValueError, RecursionError):
            return self.differ(f"{kind} {key:.60}: it does not have the form of one")
        if (kind, number) not in self.documents:
            if self.has_lost():
                return self.count("documents", "not bound")
            return self.differ(f"{called} {number} is in the table, and no record speaks of it")
        if ("document", kind, number) in self.seen:
            self.differ(f"{called} {number} stands twice")
        self.seen.add(("document", kind, number))
        record, *claimed = self.documents[kind, number]
        if kind != "revision" or claimed[1] is None:
            said[1] = claimed[1]
        if said != claimed:
            return self.differ(f"{called} {number}: it is not what record {record} says")
        return self.count("documents", "good")

    def is_later(self, number, destroyed_ns):
        """Of an export's row: the key was destroyed after the last record."""
        return destroyed_ns > 0 and 0 <= destroyed_ns - self.last_ns < LATE_NS and "destroyed" not in self.keys.get(number, {})

    def date_key(self, number, facts, since):
        """Which month's texts the key sealed, and whether it was destroyed `since` the last record.  Of one whose record was
        pruned the row alone says it; it was made before the first that is left."""
        if since and self.pruned:
            self.key_of(number, facts["tenant_id"])
        key = self.keys.get(number)
        if key is None:
            return
        key["since"] = since
        if key["digest"] == key_digest(facts) if "made" in key else facts["month"] <= month_of(self.first_ns):
            key["month"] = facts["month"]

    def key_row(self, number, facts, destroyed_ns, empty):
        """`facts`: kind, tenant_id, month and created_ns."""
        key = self.keys.get(number, {})
        if ("key", number) in self.seen and number in self.keys:
            self.differ(f"key {number} stands twice")
        self.seen.add(("key", number))
        if "made" not in key:
            if self.has_lost():
                return self.count("keys", "not bound")
            return self.differ(f"key {number} is in the table, and no record made it")
        if facts["tenant_id"] != key["tenant"] or key["digest"] and key_digest(facts) != key["digest"]:
            return self.differ(f"key {number}: it is not the one that record {key['made']} made")
        if "destroyed" in key and not (destroyed_ns and empty):
            return self.differ(f"key {number} was destroyed by record {key['destroyed']}, but its row does not say so")
        if "destroyed" in key and not 0 <= destroyed_ns - key["destroyed_ns"] <= MOMENT_NS:
            return self.differ(f"key {number} was destroyed by record {key['destroyed']}, at another time than its row says")
        if "destroyed" not in key and (destroyed_ns or empty):
            return self.differ(f"key {number} is destroyed in the table, and no record says so")
        return self.count("keys", "erased" if "destroyed" in key else "good")

    def token_row(self, name, number, facts, revoked):
        """`facts`: as "ev" of the record has them."""
        token = self.tokens.get(number, {})
        if ("token", number) in self.seen:
            self.differ(f"token {name} stands twice")
        self.seen.add(("token", number))
        if "made" not in token:
            if self.has_lost() or self.older:
                return self.count("tokens", "not bound")
            return self.differ(f"token {name} is in the table, and no record made it")
        if token["digest"] is not None and hashlib.sha256(canonical({"token": facts})).hexdigest() != token["digest"]:
            return self.differ(f"token {name}: its owner, scopes or end are not those of record {token['made']}")
        if "revoked" in token and not revoked:
            return self.differ(f"token {name} was revoked by record {token['revoked']}, but its row does not say so")
        if "revoked" not in token and revoked:
            return self.differ(f"token {name} is revoked in the table, and no record says so")
        return self.count("tokens", "not bound" if token["digest"] is None else "good")

    def is_forgotten(self, token):
        """The store forgets tokens that were revoked or had expired; a record says so of their owner's."""
        record, at = self.forgotten.get(token["owner"], (-1, 0))
        return record > token["made"] and (token.get("revoked", record) < record or token["expires"] <= at)

    def end_tokens(self):
        for number, token in sorted(self.tokens.items()):
            if "made" not in token or ("token", number) in self.seen:
                continue
            if token["digest"] is None:  # whose it was is not known, nor how long it was good
                self.count("tokens", "not bound")
            elif not self.is_forgotten(token):
                self.differ(f"token number {number} is missing in the table; record {token['made']} made it")

    def site_row(self, digest, revision):
        if self.site is None:
            if digest and not self.pruned:
                self.differ("a site file is in force, and no record put it in force")
            return
        if digest != self.site["digest"]:
            self.differ(f"the site file in force is not the one that record {self.site['record']} put in force")
        if self.site["revision"] is not None and revision != str(self.site["revision"]):
            self.differ(f"the site file in force has revision {revision}, as the store says; record {self.site['revision']} put it in force")

    def is_wanted(self, job, ended_alone):
        return not (ended_alone and not 0 < job.get("ended", 0) < self.last_ns)

    def end_documents(self, ended_alone):
        kept = {number for number, optional in self.revisions[-REVISIONS_MAX:] if not optional}
        for (kind, number), (record, *_) in sorted(self.documents.items()):
            if kind == "image" and not (number in self.jobs and self.is_wanted(self.jobs[number], ended_alone)):
                continue
            if (kind, number) in self.optional:
                continue
            if ("document", kind, number) not in self.seen and (kind != "revision" or number in kept):
                self.differ(f"{DOCUMENTS[kind][0]} {number} is missing in the table; record {record} speaks of it")
        for number, key in sorted(self.keys.items()):
            if "made" in key and ("key", number) not in self.seen:
                self.differ(f"key {number} is missing in the table; record {key['made']} made it")

    def is_behind(self, digest):
        """Of a text: nothing has it but revisions of the site file that the store no longer keeps."""
        newest = self.revision_of.get(digest)
        return newest is not None and digest not in self.for_ever and len(self.revisions) - newest >= REVISIONS_MAX

    def months_of_key(self, key):
        """Where no bound row says it, the time of its record does: a key is made when it is first needed."""
        if "month" in key:
            return key["month"], key["month"]  # 0: it seals no texts
        return months_of(key["made_ns"]) if "made" in key else (0, month_of(self.first_ns))

    def is_erased(self, digest):
        """Of a text: the key that sealed it was destroyed.  The site's own texts are its files, which nothing seals; those of
        records of version 1 may be from before sealing, and went with any month of their tenant as far as records say."""
        text = self.texts[digest]
        if text["tenant"] == 0:
            return False
        if text["older"] and self.shreds.get(text["tenant"], -1) > text["record"]:
            return True
        first, last = months_of(text["at"])
        for key in (self.keys[number] for number in self.keys_of.get(text["tenant"], ())):
            key_first, key_last = self.months_of_key(key)
            if (key.get("since") or key.get("destroyed", -1) > text["record"]) and (text["older"] or key_first <= last and first <= key_last):
                return True
        return False

    def end(self, ended_alone):
        """What is missing; `ended_alone`: only jobs were given whose end the records tell."""
        for kind, number in sorted((set(self.names) | set(self.erased)) - self.seen):
            known = self.names.get((kind, number))
            self.differ(f"{kind} {number} is missing in the table; record {known[1] if known else self.erased[kind, number]} {'bound' if known else 'erased'} it")
        for number, job in sorted(self.jobs.items()):
            if "seen" not in job and self.is_wanted(job, ended_alone):
                self.differ(f"job {number} is missing in the table; record {job.get('record', job.get('stated'))} speaks of it")
        if self.strange_text[0] < self.last_text:
            self.differ(f"text {self.strange_text[1][:16]}... is in the table, and no record names it")
        for digest, text in self.texts.items():
            if digest in self.seen or self.is_behind(digest):
                continue
            if text["elsewhere"]:
                self.count("texts", "not bound")
            elif self.is_erased(digest):
                self.count("texts", "erased")
            else:
                self.differ(f"text {digest[:16]}... of record {text['record']} is missing, and no record erased it")


def columns_differ(job, row):
    return next((shown for key, shown in COLUMNS.items() if "columns" in job and row[key] != job["columns"][key]), None)


def place_differs(job, row):
    return "node, pieces, grade, lease or number of restarts" if "place" in job and place_digest(row) != job["place"] else None


# Of each table of a store: how many columns are its key, and the type, the least and the greatest value (or number of bytes) of each.
ANY64, NOT_BELOW_0, ID, WORD32, YES_NO = ("integer", -2**63, 2**63 - 1), ("integer", 0, 2**63 - 1), ("integer", 1, 2**63 - 1), ("integer", 0, U32), ("integer", 0, 1)
SHORT, HASH = ("text", 0, 4096), ("blob", 32, 32)
STORED = {
    "records": (1, {"seq": NOT_BELOW_0, "hash": HASH}),
    "checkpoints": (1, {"size": NOT_BELOW_0, "note": ("text", 1, 16384)}),
    "names": (2, {"kind": ("integer", 0, len(KINDS) - 1), "id": ("integer", 1, U32), "name": SHORT, "gone": YES_NO, "record": NOT_BELOW_0, "key": ("blob", 0, 32)}),
    "jobs": (1, {"job": ID, **dict.fromkeys(("tenant_id", "principal_id", "count", "priority", "restarts", "checkpoint_signal", "gang"), WORD32),
                 **dict.fromkeys(("name", "tenant", "principal", "sku", "kind", "contract", "reason", "node", "grade"), SHORT),
                 **dict.fromkeys(("lease", "submitted_ns", "started_ns", "ended_ns", "time_limit_ns", "deadline_ns"), ANY64),
                 "state": ("text", 1, 31), "pieces": ("text", 0, 1 << 20), "exit_status": ("integer", -I32 - 1, I32), "spec": HASH, "ended_by": NOT_BELOW_0, "ended": YES_NO}),
    "texts": (1, {"id": ID, "digest": HASH, "tenant_id": WORD32, "bytes": NOT_BELOW_0}),
    "documents": (2, {"kind": ("integer", 0, 11), "key": ("text", 1, 1400), "version": ID, "principal_id": WORD32, "value": ("text", 1, 64 << 10)}),
    "keys": (1, {"id": ID, "kind": ("integer", 0, 2), "tenant_id": WORD32, "month": WORD32, "parent": ANY64, "created_ns": ANY64, "shredded_ns": ANY64,
                 "wrapped": ("blob", 72, 72)}),
    "tokens": (1, {"id": ("text", 1, 15), "secret": HASH, "principal_id": WORD32, "scopes": SHORT, "note": ("text", 0, 1 << 20), "created_ns": ANY64,
                   "expires_ns": ANY64, "last_used_ns": ANY64, "revoked": YES_NO}),
    "meta": (1, {"key": ("text", 1, 4096), "value": ("text", 0, 1 << 20)}),
    "replies": (2, {"principal_id": WORD32, "key": SHORT, "request": HASH, "status": WORD32, "at_ns": ANY64}),
}


def has_form(value, kind, form):
    wanted, least, most = form
    if kind != wanted or not least <= (value if kind == "integer" else len(value)) <= most:
        return False
    try:
        return kind != "text" or "\0" not in value.decode()
    except UnicodeDecodeError:
        return False


def check_forms(database):
    """ValueError when a row of the store is none that Bulkhead writes: SQLite keeps what other programs read as something else."""
    for table, (keys, columns) in STORED.items():
        there = {column[1] for column in database.execute(f"PRAGMA table_info({table})")}
        columns = {column: form for column, form in columns.items() if column in there}  # a store of before has fewer
        wanted = ", ".join(f"{column if form[0] == 'integer' else f'CAST({column} AS BLOB)'}, typeof({column})" for column, form in columns.items())
        for row in database.execute(f"SELECT {wanted} FROM {table}"):
            for place, (column, form) in enumerate(columns.items()):
                empty_key = (table, column) == ("names", "key") and row[2 * place] == b""
                if not has_form(*row[2 * place:2 * place + 2], form) or table == "names" and column == "key" and not empty_key and len(row[2 * place]) != 32:
                    shown = [value if kind == "integer" else value.split(b"\0")[0].decode(errors="replace") for value, kind in zip(row[::2], row[1::2])]
                    of = ", ".join(f"{name} {value}" for name, value in zip(list(columns)[:keys], shown))
                    raise ValueError(f"{table}: the row of {of:.100} is malformed: {column}")


def compare_store(database, claims):
    check_forms(database)
    for kind, number, name, key in database.execute("SELECT kind, id, name, key FROM names ORDER BY kind, id"):
        claims.name_row(KINDS[kind] if 0 <= kind < len(KINDS) else None, number, name, key if key.strip(b"\0") else b"", 0)
    columns = ("job", "tenant_id", "principal_id", "count", "tenant", "principal", "sku", "state", "reason", "submitted_ns",
               "started_ns", "ended_ns", "ended_by", "exit_status", *COLUMNS, *PLACE, "ended", "spec")
    there = {column[1] for column in database.execute("PRAGMA table_info(jobs)")}  # a store of before has no "ended_by"
    taken = [column if column in there else "0" for column in columns[:-1]]
    for row in database.execute(f"SELECT {', '.join(taken)}, lower(hex(spec)) FROM jobs ORDER BY job"):
        job = dict(zip(columns, row))
        claims.job_row(job)
        if job["ended"] != (job["ended_ns"] != 0):
            claims.differ(f"job {job['job']}: its row says \"ended\" {job['ended']}, which its end does not")
    for kind, key, value, version, owner in database.execute("SELECT kind, key, value, version, principal_id FROM documents WHERE kind IN (5, 9, 11)"):
        if (version, owner) != (1, 0):
            claims.differ("a document that no operation changes was changed, or has an owner")
        claims.document_row({5: "receipt", 9: "image", 11: "revision"}[kind], key, value)
    for number, kind, tenant, month, created, destroyed, wrapped in database.execute(
            "SELECT id, kind, tenant_id, month, created_ns, shredded_ns, wrapped FROM keys"):
        facts = {"kind": kind, "tenant_id": tenant, "month": month, "created_ns": created}
        claims.key_row(number, facts, destroyed, not wrapped.strip(b"\0"))
        claims.date_key(number, facts, False)
    for name, secret, owner, scopes, expires, revoked in database.execute("SELECT id, secret, principal_id, scopes, expires_ns, revoked FROM tokens"):
        facts = {"expires_ns": str(expires) if expires else "", "principal": owner, "scopes": scopes}
        claims.token_row(name, int.from_bytes(secret[:8], "little") >> 11, {key: value for key, value in facts.items() if value}, revoked)
    claims.end_tokens()
    meta = dict(database.execute("SELECT key, value FROM meta"))
    claims.site_row(meta.get("site"), meta.get("site_revision"))
    claims.end_documents(False)
    for digest, text, number in database.execute("SELECT lower(hex(digest)), CAST(text AS BLOB), id FROM texts"):
        claims.text_row(digest, text, number, False)
    claims.end(False)
