"""What the records of an audit log say of names, jobs and texts, and how the tables' rows differ from it.

A part of verify_audit.py, which stands beside it; written apart from the C code, like that.
"""
import hashlib
import hmac
import re

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


def check_jobs(items):
    """What became of jobs: where each is since this record."""
    if not isinstance(items, list) or not items:
        raise ValueError("its jobs are no list")
    for item in items:
        ended = "ended" in item
        if not {"job", "state"} <= set(item) <= {"job", "state", "status"} | ({"cause", "ended"} if ended else {"started"}) \
                or not all(re.fullmatch(WORD, item.get(key, "x")) for key in ("state", "cause")) \
                or not all(re.fullmatch("[1-9][0-9]{0,19}", item.get(key, "1")) for key in ("ended", "started")) \
                or item.get("status", 1) == 0 or int(item["job"]) < 0:
            raise ValueError("what became of a job does not have the form of it")


ERASED = "(erased)"
NOT_TEXTS = ("job.image", "node.scrubbed", "snapshot")  # what "text" of these is the digest of stands elsewhere


class Claims:
    """What the records say of names, jobs and texts, and how the tables' rows differ from it."""

    def __init__(self):
        self.names, self.jobs, self.texts, self.shreds = {}, {}, {}, {}  # by what they are of
        self.erased, self.found, self.seen = {}, {}, set()
        self.upgrade, self.pruned, self.size, self.last_ns = None, False, 0, 0
        self.differing, self.counts = [], {}

    # ---- the records ----

    def skip(self, number):
        self.pruned, self.size = True, number + 1

    def take(self, number, record):
        self.size, self.last_ns = number + 1, int(record["ts"])
        verb, about, allowed = record.get("verb"), record.get("obj", {}), record.get("dec", {}).get("allow")
        submit = record.get("ev", {}).get("submit")
        if submit is not None:
            self.submit(number, record, submit)
        for item in record.get("jobs", []):
            self.state(number, item)
        for item in record.get("names", []):
            known = self.names.setdefault((item["kind"], item["id"]), (item["c"], number))
            if known[0] != item["c"]:
                raise ValueError(f"it binds {item['kind']} {item['id']}, which record {known[1]} bound to another name")
        if "names" in record and verb == "names.bind" and about.get("type") == "upgrade" and self.upgrade is None:
            self.upgrade = number
        if "text" in record and verb not in NOT_TEXTS:
            self.texts.setdefault(record["text"], (number, record.get("tenant", 0)))
        if verb == "name.erase" and allowed:
            if about.get("type") not in KINDS:
                raise ValueError("it erases a name of no kind")
            self.erased[about["type"], int(about.get("id", 0))] = number
        if verb == "key.shred" and allowed:
            self.shreds[int(about.get("id", 0))] = number

    def submit(self, number, record, submit):
        job = self.jobs.setdefault(int(submit["job"]), {})
        if "record" in job:
            raise ValueError(f"it submits job {submit['job']}, as record {job['record']} did")
        job.update(record=number, submitted=int(record["ts"]), spec=submit.get("spec", "0" * 64),
                   **{key: int(submit.get(key, 0)) for key in ("tenant", "principal", "sku", "count")})
        if record["v"] > 2:
            job.update(stated=number, state="pending", started=0, ended=0, cause="", status=0)
        if "spec" in submit:
            self.texts.setdefault(submit["spec"], (number, record.get("tenant", 0)))

    def state(self, number, item):
        job = self.jobs.setdefault(int(item["job"]), {})
        if "ended" not in item:
            job["started"] = int(item.get("started", 0))
        elif "stated" not in job:
            job["started"] = None  # a record of before knew it
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
        for record, wrong in ((job.get("record"), self.submission_differs(job, row)), (job.get("stated"), self.state_differs(job, row))):
            if wrong:
                return self.differ(f"job {number}: its {wrong} is not what record {record} says")
        return self.count("jobs", "good" if "record" in job and "stated" in job else "not bound")

    def submission_differs(self, job, row):
        if "record" not in job:
            return None
        pairs = [("tenant", row["tenant_id"], job["tenant"]), ("principal", row["principal_id"], job["principal"])]
        pairs += [(shown, row[kind], self.found.get((kind, job[kind]), row[kind])) for shown, kind in
                  (("tenant", "tenant"), ("principal", "principal"), ("SKU", "sku"))]
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
        pairs += [("exit status", row["exit_status"], status)]
        return next((what for what, got, want in pairs if got != want), None)

    def text_row(self, digest, text):
        if digest not in self.texts:
            return
        self.seen.add(digest)
        if hashlib.sha256(text).hexdigest() != digest:
            return self.differ(f"text {digest[:16]}...: it does not have the digest that record {self.texts[digest][0]} names")
        self.count("texts", "good")

    def end(self, ended_alone):
        """What is missing; `ended_alone`: only jobs that had ended before the last record were given."""
        for kind, number in sorted(set(self.names) - self.seen):
            self.differ(f"{kind} {number} is missing in the table; record {self.names[kind, number][1]} bound it")
        for number, job in sorted(self.jobs.items()):
            if "seen" not in job and not (ended_alone and not 0 < job.get("ended", 0) < self.last_ns):
                self.differ(f"job {number} is missing in the table; record {job.get('record', job.get('stated'))} speaks of it")
        for digest, (record, tenant) in self.texts.items():
            if digest in self.seen:
                continue
            if self.shreds.get(tenant, -1) > record:
                self.count("texts", "erased")
            else:
                self.differ(f"text {digest[:16]}... of record {record} is missing, and no record erased it")


def compare_store(database, claims):
    for kind, number, name, key in database.execute("SELECT kind, id, name, key FROM names ORDER BY kind, id"):
        claims.name_row(KINDS[kind] if 0 <= kind < len(KINDS) else f"kind {kind},", number, name, key if key.strip(b"\0") else b"", 0)
    columns = ("job", "tenant_id", "principal_id", "count", "tenant", "principal", "sku", "state", "reason", "submitted_ns",
               "started_ns", "ended_ns", "exit_status", "spec")
    for row in database.execute(f"SELECT {', '.join(columns[:-1])}, lower(hex(spec)) FROM jobs ORDER BY job"):
        claims.job_row(dict(zip(columns, row)))
    for digest, text in database.execute("SELECT lower(hex(digest)), CAST(text AS BLOB) FROM texts"):
        claims.text_row(digest, text)
    claims.end(False)
