"""What the records of an audit log say of names, jobs and texts, and how the tables' rows differ from it.

A part of verify_audit.py, which stands beside it; written apart from the C code, like that.
"""
import hashlib
import hmac
import json
import re
import time

KINDS = ("tenant", "sku", "principal", "node", "gpu", "group", "dataset")
WORD = "[a-z_]{1,23}"


def check_names(items):
    """Bindings: a commitment to each kind, id and name."""
    if not isinstance(items, list) or not items:
        raise ValueError("its names are no list")
    for item in items:
        if set(item) != {"c", "id", "kind"} or not re.fullmatch("[0-9a-f]{64}", item["c"]) or item["kind"] not in KINDS \
                or type(item["id"]) is not int or not 0 < item["id"] < 2**32:
            raise ValueError("a binding does not have the form of one")


def check_jobs(items, version=4):
    """What became of jobs: where each is since this record."""
    if not isinstance(items, list) or not items:
        raise ValueError("its jobs are no list")
    for item in items:
        ended = "ended" in item
        may = {"job", "state", "status"} | ({"cause", "ended"} if ended else {"started"}) | ({"row"} if version > 3 else set())
        if not {"job", "state"} <= set(item) <= may or not re.fullmatch("[0-9a-f]{64}", item.get("row", "0" * 64)) \
                or not all(re.fullmatch(WORD, item.get(key, "x")) for key in ("state", "cause")) \
                or not all(re.fullmatch("[1-9][0-9]{0,19}", item.get(key, "1")) for key in ("ended", "started")) \
                or item.get("status", 1) == 0 or int(item["job"]) < 0:
            raise ValueError("what became of a job does not have the form of it")


# What a job's row has from its submission, by the names of the columns; what an event leaves out.
PRIORITIES = {"low": 1, "normal": 2, "high": 3, "urgent": 4}
CHECKPOINT_SIGNAL = 10
COLUMNS = {"priority": "priority", "gang": "gang", "checkpoint_signal": "signal for checkpoints", "time_limit_ns": "time limit",
           "deadline_ns": "deadline", "kind": "kind", "contract": "contract"}
PLACE = ("grade", "lease", "node", "pieces", "restarts")


def columns_of(submit):
    columns = {key: int(submit.get(key, 0)) for key in ("gang", "time_limit_ns", "deadline_ns", "checkpoint_signal")}
    columns.update(priority=PRIORITIES.get(submit.get("priority"), 0), kind=submit.get("kind", "batch"), contract=submit.get("contract", "requeue"))
    columns["checkpoint_signal"] = 0 if columns["contract"] != "checkpoint" else columns["checkpoint_signal"] or CHECKPOINT_SIGNAL
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
    said = json.loads(value)
    if kind == "receipt":
        receipt = said["receipt"]
        digest = hashlib.sha256(canonical(receipt)).hexdigest()
        if key != f"{int(receipt.get('order', 0)):020}-{int(receipt.get('begun_ns', 0)):020}" \
                or canonical({"digest": digest, "receipt": receipt, "record": said["record"]}).decode() != value:
            raise ValueError("not as it is written")
        return int(said["record"]), digest, 0, 0
    if not re.fullmatch("[0-9]{20}", key):
        raise ValueError("its key is no number")
    return int(key), said["digest"], int(said.get("at_ns", 0)), int(said.get("principal", 0))


def key_digest(facts):
    return hashlib.sha256(canonical({key: str(value) if key == "created_ns" else value for key, value in facts.items() if value})).hexdigest()


class Claims:
    """What the records say of names, jobs and texts, and how the tables' rows differ from it."""

    def __init__(self):
        self.names, self.jobs, self.texts, self.shreds = {}, {}, {}, {}  # by what they are of
        self.keys_of = {}  # the numbers of a tenant's keys
        self.erased, self.found, self.seen = {}, {}, set()
        self.upgrade, self.pruned, self.size, self.first_ns, self.last_ns = None, False, 0, 0, 0
        self.older, self.newer, self.rows_from = False, False, None
        self.documents, self.revisions, self.keys, self.site = {}, [], {}, None
        self.for_ever, self.revision_of = set(), {}  # texts that more than the site file names; the newest revision of a text
        self.gives, self.optional, self.tokens = 0, set(), {}
        self.differing, self.counts = [], {}

    # ---- the records ----

    def skip(self, number):
        self.pruned, self.size = True, number + 1

    def take(self, number, record):
        self.size, self.last_ns = number + 1, int(record["ts"])
        self.first_ns = self.first_ns or self.last_ns
        self.older, self.newer = self.older or record["v"] < 4, self.newer or record["v"] > 3
        if self.older and record["v"] > 3 and self.rows_from is None:
            self.rows_from = number
        verb, about, allowed = record.get("verb"), record.get("obj", {}), record.get("dec", {}).get("allow")
        submit = record.get("ev", {}).get("submit")
        if submit is not None:
            self.submit(number, record, submit)
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
                       if verb == "key.make" else {"destroyed": number})

        if about.get("type") == "token" and verb in ("token.create", "token.revoke"):
            token = self.tokens.setdefault(int(about.get("id", 0)), {})
            token.update({"made": number, "facts": record.get("ev", {}).get("token")} if verb == "token.create" else {"revoked": number})

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
        self.documents["revision", number] = (number, record["text"], int(record["ts"]) if exact else None, record.get("actor", {}).get("id", 0))
        self.take_other_number("revision", number, record)
        self.revisions.append((number, unsure or not exact))
        self.revision_of[record["text"]] = len(self.revisions)
        self.site = {"record": number, "revision": number if exact and not unsure else None, "digest": record["text"]}

    def submit(self, number, record, submit):
        job = self.jobs.setdefault(int(submit["job"]), {})
        if "record" in job:
            raise ValueError(f"it submits job {submit['job']}, as record {job['record']} did")
        job.update(record=number, submitted=int(record["ts"]), spec=submit.get("spec", "0" * 64),
                   **{key: int(submit.get(key, 0)) for key in ("tenant", "principal", "sku", "count")})
        if record["v"] > 2:
            job.update(stated=number, state="pending", started=0, ended=0, cause="", status=0)
        if record["v"] > 3:
            job.update(columns=columns_of(submit), place=place_digest({}), placed=number)
        if "spec" in submit:
            self.name_text(submit["spec"], number, record)
            self.for_ever.add(submit["spec"])

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

    def differ(self, text):
        self.differing.append(text)

    def name_row(self, kind, number, name, key, erased_by):
        """`key` opens the commitment, b"" where there is none; `erased_by` is a record, as the row says."""
        what, shown = (kind, number), f"{kind} {number}"
        if what in self.seen:
            self.differ(f"{shown} stands twice")
        self.seen.add(what)
        later = erased_by >= self.size > 0
        if what in self.erased:
            if name != ERASED or key:
                return self.differ(f"{shown} was erased by record {self.erased[what]}, but its row has a name")
            self.found[what] = ERASED
            return self.count("names", "erased")
        if not self.names or later:
            return self.count("names", "not bound")
        if what not in self.names:
            return self.differ(f'{shown} is "{name}" in the table, and no record binds it')
        commitment, bound = self.names[what]
        if not key:
            return self.differ(f"{shown}: the key of its name is gone, and no record erased it; record {bound} bound it")
        message = f"bulkhead name 1\n{kind} {number}\n".encode() + hashlib.sha256(name.encode()).digest()
        if hmac.new(key, message, hashlib.sha256).hexdigest() != commitment:
            return self.differ(f'{shown} is "{name}" in the table; record {bound} bound it to another name')
        self.found[what] = name
        return self.count("names", "good")

    def job_row(self, row):
        """A row as a dictionary, by the names of its columns."""
        number = int(row["job"])
        job = self.jobs.get(number)
        if job is None:
            if self.pruned and number < min((n for n, j in self.jobs.items() if "record" in j), default=2**63):
                return self.count("jobs", "not bound")
            return self.differ(f"job {number} is in the table, and no record submitted it")
        job["seen"] = True
        for record, wrong in ((job.get("record"), self.submission_differs(job, row)), (job.get("record"), columns_differ(job, row)),
                              (job.get("stated"), self.state_differs(job, row)), (job.get("placed"), place_differs(job, row))):
            if wrong:
                return self.differ(f"job {number}: its {wrong} is not what record {record} says")
        return self.count("jobs", "good" if "record" in job and "stated" in job else "not bound")

    def submission_differs(self, job, row):
        if "record" not in job:
            return None
        pairs = [("tenant", row["tenant_id"], job["tenant"]), ("principal", row["principal_id"], job["principal"])]
        pairs += [(shown, row[kind], self.found.get((kind, job[kind]), row[kind])) for shown, kind in
                  (("tenant", "tenant"), ("principal", "principal"), ("SKU", "sku"))
                  if kind == "sku" or not row.get("exported") or row[kind] != ERASED]  # erased since the last record
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

    def text_row(self, digest, text):
        if digest not in self.texts:
            return
        self.seen.add(digest)
        if hashlib.sha256(text).hexdigest() != digest:
            return self.differ(f"text {digest[:16]}...: it does not have the digest that record {self.texts[digest]['record']} names")
        self.count("texts", "good")

    def document_row(self, kind, key, value):
        called = DOCUMENTS[kind][0]
        try:
            number, *said = read_document(kind, key, value)
        except (KeyError, TypeError, ValueError):
            return self.differ(f"{kind} {key}: it does not have the form of one")
        if (kind, number) not in self.documents:
            if self.pruned:
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
        return 0 < destroyed_ns >= self.last_ns and "destroyed" not in self.keys.get(number, {})

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
        self.seen.add(("key", number))
        if "made" not in key:
            if self.pruned:
                return self.count("keys", "not bound")
            return self.differ(f"key {number} is in the table, and no record made it")
        if facts["tenant_id"] != key["tenant"] or key["digest"] and key_digest(facts) != key["digest"]:
            return self.differ(f"key {number}: it is not the one that record {key['made']} made")
        if "destroyed" in key and not (destroyed_ns and empty):
            return self.differ(f"key {number} was destroyed by record {key['destroyed']}, but its row does not say so")
        if "destroyed" not in key and (destroyed_ns or empty):
            return self.differ(f"key {number} is destroyed in the table, and no record says so")
        return self.count("keys", "erased" if "destroyed" in key else "good")

    def token_row(self, name, number, facts, revoked):
        """`facts`: as "ev" of the record has them."""
        token = self.tokens.get(number, {})
        if "made" not in token:
            if self.pruned or self.older:
                return self.count("tokens", "not bound")
            return self.differ(f"token {name} is in the table, and no record made it")
        if token["facts"] is not None and token["facts"] != facts:
            return self.differ(f"token {name}: its owner, scopes or end are not those of record {token['made']}")
        if "revoked" in token and not revoked:
            return self.differ(f"token {name} was revoked by record {token['revoked']}, but its row does not say so")
        if "revoked" not in token and revoked:
            return self.differ(f"token {name} is revoked in the table, and no record says so")
        return self.count("tokens", "not bound" if token["facts"] is None else "good")

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
        for kind, number in sorted(set(self.names) - self.seen):
            self.differ(f"{kind} {number} is missing in the table; record {self.names[kind, number][1]} bound it")
        for number, job in sorted(self.jobs.items()):
            if "seen" not in job and self.is_wanted(job, ended_alone):
                self.differ(f"job {number} is missing in the table; record {job.get('record', job.get('stated'))} speaks of it")
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


def compare_store(database, claims):
    for kind, number, name, key in database.execute("SELECT kind, id, name, key FROM names ORDER BY kind, id"):
        claims.name_row(KINDS[kind] if 0 <= kind < len(KINDS) else f"kind {kind},", number, name, key if key.strip(b"\0") else b"", 0)
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
            claims.differ("a document that nobody changes was changed, or is somebody's")
        claims.document_row({5: "receipt", 9: "image", 11: "revision"}[kind], key, value)
    for number, kind, tenant, month, created, destroyed, wrapped in database.execute(
            "SELECT id, kind, tenant_id, month, created_ns, shredded_ns, wrapped FROM keys"):
        facts = {"kind": kind, "tenant_id": tenant, "month": month, "created_ns": created}
        claims.key_row(number, facts, destroyed, not wrapped.strip(b"\0"))
        claims.date_key(number, facts, False)
    for name, secret, owner, scopes, expires, revoked in database.execute("SELECT id, secret, principal_id, scopes, expires_ns, revoked FROM tokens"):
        facts = {"expires_ns": str(expires), "principal": owner, "scopes": scopes}
        claims.token_row(name, int.from_bytes(secret[:8], "little") >> 11, {key: value for key, value in facts.items() if value}, revoked)
    meta = dict(database.execute("SELECT key, value FROM meta"))
    claims.site_row(meta.get("site"), meta.get("site_revision"))
    claims.end_documents(False)
    for digest, text in database.execute("SELECT lower(hex(digest)), CAST(text AS BLOB) FROM texts"):
        claims.text_row(digest, text)
    claims.end(False)
