"""The closing audit: what holds at the end of every end-to-end test, crash trial, soak and demo.

Site runs it when it closes after a success: `online` while bulkheadd still serves, `offline` when
the programs have ended; what it finds is raised as Found.  up_closing.py and tools/closing-audit do so
for a site that `bulkhead up` made.  Each check returns what is wrong, a sentence each; none is [].  A test
that breaks one of these on purpose says so, and why: `site.excuse("log", "the store is cut")`, and
announces what it makes the programs log at level error: `site.announce("disk is full")`."""
import contextlib
import json
import pathlib
import re
import shutil
import sqlite3
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import deeds  # noqa: E402
import verify_audit  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHOLE, FIRST_PROFILE, FIRST_MODEL = 1, 2, 1  # numbers of profiles and models, as model/geometry.h has them


class Found(Exception):
    """What a closing audit found, a sentence each."""

    def __init__(self, findings):
        self.findings = list(findings)
        super().__init__("the closing audit:\n" + "\n".join(self.findings))


@contextlib.contextmanager
def kept(findings):
    """What the audits of the sites in this block find is added to the list, for a program that says it
    in its own way."""
    try:
        yield findings
    except Found as found:
        findings += found.findings


# ---- while it serves ----

def usage_adds_up(site):
    """Tenants, idle, unusable and unheard are physical time, in both dimensions; rows are the tenants."""
    usage, wrong = site.client().get("/v1/usage"), []
    sums = usage.get("sums")
    for of in ("compute_part_ns", "memory_part_ns") if sums else ():
        parts = {name: int(sums[name][of]) for name in ("tenants", "idle", "unusable", "unheard", "physical")}
        if parts["tenants"] + parts["idle"] + parts["unusable"] + parts["unheard"] != parts["physical"]:
            wrong.append(f"usage: {of} of tenants, idle, unusable and unheard is not the physical: {parts}")
        causes = sum(int(cause[of]) for cause in sums["unusable_by"].values())
        if causes != parts["unusable"]:
            wrong.append(f"usage: {of} by cause is {causes}, not {parts['unusable']}")
        rows = sum(int(row[of]) for row in usage["items"])
        if rows != parts["tenants"]:
            wrong.append(f"usage: {of} of the rows is {rows}, not {parts['tenants']}")
        for row in usage["items"]:
            below = sum(int(other[of]) for other in usage["items"] if (other["tenant"] + "/").startswith(row["tenant"] + "/"))
            if below != int(row["with_below"][of]):
                wrong.append(f"usage: {of} of {row['tenant']} with all below it is {row['with_below'][of]}, not {below}")
    return wrong


def changes_are_reported(site):
    """Each site file that is another than the one before has its difference sealed in its record."""
    wrong, last = [], None
    for number, (leaf, _) in enumerate(read_store(site)[0]):
        leaf = json.loads(leaf) if leaf else {}
        if leaf.get("verb") != "site.apply" or leaf.get("res") != "ok" or "text" not in leaf:
            continue
        if last not in (None, leaf["text"]) and "sealed" not in leaf:
            wrong.append(f"changes: record {number} does not say what its site file changed")
        last = leaf["text"]
    return wrong


def refusals_are_not_allowed(site):
    """No record of a denial says that it was allowed."""
    records = [json.loads(leaf) for leaf, _ in read_store(site)[0] if leaf]
    return [f"refusals: record {r['seq']}, {r['verb']}, is {r['res']}, and says that it was allowed" for r in records
            if r.get("res") in ("denied", "unauthenticated") and r.get("dec", {}).get("allow")][:10]


def orders_are_answered(site):
    """Once nothing runs and the node is there, each order has its outcome soon.  At its stop the daemon abandons
    what is open, so that is to be asked before."""
    try:
        if site.node_runs():
            site.until(lambda: not open_orders(site))
    except RuntimeError:
        return [f"orders: {verify_audit.ANSWERS[letter]} of record {order >> verify_audit.ORDER_BITS} has not come"
                for order, letter in open_orders(site).items()]
    return []


def open_orders(site):
    orders = verify_audit.Orders()
    for number, (leaf, _) in enumerate(read_store(site)[0]):
        if leaf:
            orders.take(number, json.loads(leaf))
        else:
            orders.skip(number)
    return orders.open


# What stands in the node's mount namespace, below the folders of its site, while no job is there.
STANDING = re.compile(r"boxes(/host)?|sim/vram")


def mounts_of(pid):
    """[(where, type of the file system)] in the mount namespace of that process."""
    halves = [line.split(" - ") for line in open(f"/proc/{pid}/mountinfo")]
    return [(first.split()[4], second.split()[0]) for first, second in halves]


def below(site, path):
    return any(path.startswith(f"{place}/") for place in site.places)


def is_standing(site, path):
    return any(path.startswith(f"{place}/") and STANDING.fullmatch(path.removeprefix(f"{place}/"))
               for place in [*site.places, str(site.runs)])


def mounts_of_jobs(site):
    """What the node or a keeper mounted for a job, or left: only their own mount namespace has it."""
    return [where for where, kind in mounts_of(site.node.pid)
            if (below(site, where) and not is_standing(site, where))
            or (kind == "nsfs" and where not in site.namespaces and not is_of_another(where, site))]


def mounts_are_undone(site):
    """Once nothing runs, nothing of a job is mounted where its node did it."""
    if not site.node_runs():
        return []  # they went with the namespace
    return [f"left: mount {where} of the node" for where in left(site, lambda: mounts_of_jobs(site))]


def left(site, look):
    """What is seen when it does not go by itself; what comes after it has gone is another's, such as a try of the walls."""
    try:
        site.until(lambda: not look())
    except RuntimeError:
        return look()
    return []


# ---- the log ----

@contextlib.contextmanager
def copy_of_store(site):
    with tempfile.TemporaryDirectory(prefix="bulkhead-closing-") as place:
        for path in site.state.glob("bulkhead.db*"):
            shutil.copy(path, place)
        with contextlib.closing(sqlite3.connect(f"{place}/bulkhead.db")) as store:
            yield store


def read_store(site):
    """([(leaf, its hash)], newest checkpoint or None) of the store; a pruned leaf is empty."""
    with copy_of_store(site) as store:
        leaves = store.execute("SELECT leaf, hash FROM records ORDER BY seq").fetchall()
        note = store.execute("SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1").fetchone()
    return leaves, note


def deeds_have_records(site):
    """What the store has by deeds of administrators and of people, the records explain."""
    with copy_of_store(site) as store:
        leaves = [leaf for leaf, in store.execute("SELECT leaf FROM records ORDER BY seq")]
        return deeds.find(store, [json.loads(leaf) for leaf in leaves if leaf], not all(leaves))[:10]


def log_is_whole(site):
    """By the first verifier, on the store's file."""
    done = site.cli(None, "audit", "verify", "--store", str(site.state / "bulkhead.db"),
                    "--vkey", str(site.state / "audit.vkey"), "-o", "json")
    if done.returncode != 0:
        return [f"log: {(done.stdout + done.stderr).strip()}"]
    said = json.loads(done.stdout)
    return [f"log: {said['orders_open']} orders have no outcome: {said}"] if said["orders_open"] else []


def log_is_whole_again(site):
    """By the second verifier, with the rows of names, jobs and texts; all of it is signed."""
    with tempfile.TemporaryDirectory(prefix="bulkhead-closing-") as place:
        for path in site.state.glob("bulkhead.db*"):
            shutil.copy(path, place)
        leaves, note = read_store(site)
        if not leaves:
            return ["log: the store has no record"]
        if not note or note[0] != len(leaves):
            return [f"log: {len(leaves)} records, {note[0] if note else 0} of them signed after a clean stop"]
        try:
            keys = verify_audit.parse_vkeys((site.state / "audit.vkey").read_text())
            claims = verify_audit.verify_store(f"{place}/bulkhead.db", keys)[2]
        except (verify_audit.Bad, verify_audit.Missing) as wrong:
            return [f"log, by the second verifier: {wrong}"]
    return [f"rows, by the second verifier: {text}" for text in claims.differing[:10]]


# ---- custody: memory that changed tenants ----

def profile_units():
    """Memory units by profile number: rows of the table, in order."""
    return dict(enumerate((int(row[5]) for row in mig_rows("PROFILE")), FIRST_PROFILE))


def model_units():
    """Memory units by model number."""
    return dict(enumerate((int(row[8]) for row in mig_rows("MODEL")), FIRST_MODEL))


def mig_rows(kind):
    """The columns of those rows of the table; no text of it holds a comma."""
    rows = re.findall(rf"^MIG_{kind}\((.*)\)$", (ROOT / "tables/mig.tbl").read_text(), re.M)
    return [[column.strip() for column in row.split(",")] for row in rows]


class Custody:
    """Whose memory each unit of each GPU was last, as the log tells it; and who can see the receipts.  `receipts`
    has by the number of a receipt's record the tenants that see it, and of one that refers to earlier scrubs the
    numbers of theirs; None: unknown."""

    def __init__(self, receipts=None):
        self.receipts = receipts
        self.seen = {}      # (partition, tenant): number of the record of the last receipt that the tenant can see
        self.units, self.models = profile_units(), model_units()
        self.sizes = {}     # gpu: its memory units
        self.pieces = {}    # partition: (gpu, first unit, units)
        self.leases = {}    # lease: (tenant, partitions)
        self.jobs = {}      # job: tenant
        self.shares = set() # partitions that are shares: all of a GPU's have the same memory
        self.running = {}   # lease: GPUs
        self.owner = {}     # (gpu, unit): tenants; several have shares
        self.scrubbed = {}  # partition: number of the record of its last receipt
        self.used = {}      # (gpu, unit): number of the record of the last start
        self.shapes = {}    # partition: its geometry; shares have that of the whole GPU
        self.used_as = {}   # (gpu, unit): geometry of the piece of the last start, and number of its record
        self.left = {}      # gpu: {tenant: number of the record of the last end of a share of its}
        self.wrong = []

    def span(self, piece):
        units = self.units.get(piece["profile"])  # a whole GPU, and a share: all of it
        whole = self.sizes.get(piece["gpu"], max(self.models.values()))  # the record of a GPU may be pruned
        return (piece["gpu"], piece.get("start", 0), units) if units else (piece["gpu"], 0, whole)

    def place(self, decision):
        lease, tenant = decision.get("lease"), self.jobs.get(decision.get("job"))
        if lease is None or not decision.get("pieces"):
            return
        self.leases[lease] = (tenant, [piece["partition"] for piece in decision["pieces"]])
        for piece in decision["pieces"]:
            self.pieces[piece["partition"]] = self.span(piece)
            self.shapes[piece["partition"]] = (piece["profile"], piece.get("start", 0)) if piece.get("profile") in self.units else WHOLE
            if piece.get("profile") != WHOLE and piece.get("profile") not in self.units:
                self.shares.add(piece["partition"])

    def start(self, record, lease):
        tenant, pieces = self.leases.get(lease, (None, []))
        for piece in pieces if tenant is not None else []:  # whose it is was pruned: the memory stays whose it was
            gpu, first, count = self.pieces.get(piece, (0, 0, 0))
            units = [(gpu, unit) for unit in range(first, first + count)]
            owners = set().union(*(self.owner.get(u, set()) for u in units))
            others = owners - {tenant}
            foreign = [u for u in units if self.owner.get(u, set()) - {tenant}]
            last = max((self.used.get(u, -1) for u in foreign if self.used.get(u) != record["seq"]), default=-1)
            if piece in self.shares:  # what others that run beside it have is theirs still
                last = max((seq for whose, seq in self.left.get(gpu, {}).items() if whose != tenant), default=-1)
            if others and self.scrubbed.get(piece, -1) < last:
                self.wrong.append(f"custody: record {record['seq']} starts lease {lease} of tenant {tenant} in memory of "
                                  f"tenants {sorted(others)}, without a receipt since record {last}")
            elif others and self.receipts is not None and self.seen.get((piece, tenant), -1) < last:
                self.wrong.append(f"custody: record {record['seq']} starts lease {lease} in memory of tenants {sorted(others)}, "
                                  f"without a receipt since record {last} that its tenant {tenant} can see")
            else:
                self.reshape(record, lease, piece, units)
            self.used_as.update({unit: (self.shapes.get(piece), record["seq"]) for unit in units})
            beside = piece in self.shares and any(gpu in gpus for other, gpus in self.running.items() if other != lease)
            for unit in units:  # beside others only a part of it was scrubbed
                self.owner[unit], self.used[unit] = owners | {tenant} if beside else {tenant}, record["seq"]
        self.running[lease] = {self.pieces[piece][0] for piece in pieces if piece in self.pieces}

    def reshape(self, record, lease, piece, units):
        """What a scrub leaves out, pieces of another geometry than the scrubbed one reach."""
        tenant, shape = self.leases[lease][0], self.shapes.get(piece)
        last = max((seq for was, seq in (self.used_as.get(u, (shape, -1)) for u in units) if was != shape), default=-1)
        scrubbed = self.scrubbed if self.receipts is None else {piece: self.seen.get((piece, tenant), -1)}
        if scrubbed.get(piece, -1) < last:
            self.wrong.append(f"custody: record {record['seq']} starts lease {lease} of tenant {tenant} in memory that had another "
                              f"geometry at record {last}, without a receipt since that its tenant can see")

    def take(self, record):
        event = record.get("ev", {})
        if "submit" in event and "job" in event["submit"]:
            self.jobs[event["submit"]["job"]] = event["submit"].get("tenant")
        if "gpu" in event:
            self.sizes[event["gpu"]["gpu"]] = self.models.get(event["gpu"].get("model"), 1)
        for decision in record.get("do", []):
            if isinstance(decision, dict):
                self.place(decision)
        if record["verb"] == "node.scrubbed" and record["res"] == "ok":
            self.scrub(record["seq"], record["obj"]["id"])
        if record["verb"] == "node.started" and record["res"] == "ok":
            self.start(record, record["obj"]["id"])  # also of one that is stopped already: no event is left of it
        if "resumed" in event and record["res"] == "ok":
            self.start(record, event["resumed"]["lease"])
        for word in ("ended", "suspended"):
            if word in event and event[word].get("outcome", "ok") == "ok":
                self.leave(record, event[word].get("lease"))

    def scrub(self, seq, piece):
        """What refers to earlier scrubs says no more than the oldest of them."""
        seers, by = (self.receipts or {}).get(seq, ((), ()))
        self.scrubbed[piece] = min(by, default=seq)
        self.seen.update({(piece, tenant): seq for tenant in seers})

    def leave(self, record, lease):
        self.running.pop(lease, None)
        tenant, pieces = self.leases.get(lease, (None, []))
        for piece in pieces:
            if piece in self.shares:
                self.left.setdefault(self.pieces[piece][0], {})[tenant] = record["seq"]


def receipts_of(site):
    """Of each receipt's record the tenants that can see it, and records of earlier scrubs that it refers to."""
    with copy_of_store(site) as store:
        rows = store.execute("SELECT value FROM documents WHERE kind = ?", (deeds.document_kind("RECEIPT"),)).fetchall()
    rows = [json.loads(value) for value, in rows]
    records = {int(row["receipt"]["order"]): int(row["record"]) for row in rows}
    return {int(row["record"]): ({row["receipt"].get("tenant")} | {whose.get("tenant") for whose in row["receipt"].get("from", ())},
                                 [records.get(int(by["receipt"]), -1) for by in row["receipt"].get("by", ())]) for row in rows}


def memory_has_receipts(site):
    custody = Custody(receipts_of(site))
    leaves, _ = read_store(site)
    for leaf, _ in leaves:
        if leaf:
            custody.take(json.loads(leaf))
    return custody.wrong[:10]


# ---- what is left ----

# What a stopped site keeps, by folder; another file is one that somebody forgot, or belongs here.
KEPT = {
    "state": r"audit\.(checkpoint|key|public|signed|vkey)|bulkhead\.db(-wal|-shm|\.lock)?|clock|device\.key|epochs|first-admin\.code|series\.db(-wal|-shm)?"
             r"|forecast\.bin|heard|root\.key|snapshot-\d+\.bin|tls\.(crt|key)|https\.\w+",
    "node": r"epochs|images|jobs|journal|lock|scratch",
    "logs": r"\d+(-[0-9a-f]+)?(\.\d+)*(-[0-9a-f]+)?\.log|parties",
    "signer": r"audit\.(key|public|signed)",
}


def forgotten_files(site):
    """A folder that is not where it is looked for would hide all that is in it."""
    found = []
    for folder, place in site.folders.items():
        found += [f"left: file {path}" for path in place.glob("*") if not re.fullmatch(KEPT[folder], path.name)]
        found += [] if place.is_dir() else [f"left: nothing is known of {place}: it is not there"]
    return found


def named_namespaces():
    """Namespaces that outlive their processes by a name, as `ip netns` gives them."""
    mounts = {where for where, kind in mounts_of("self") if kind == "nsfs"}
    return mounts | {str(path) for path in pathlib.Path("/run/netns").glob("*")}


def is_of_another(name, site):
    """A site that runs beside this one may have its own."""
    return "bulkhead-test-" in name and site.dir.name not in name


def nothing_is_left(site):
    """A namespace lives as long as a process, a mount or a descriptor of a program: all three are looked at, or ended."""
    found = [f"left: process {pid}: {command_of(pid)}" for pid in left(site, site.processes)]
    found += [f"left: control group {group}" for group in left(site, site.groups)]
    found += [f"left: mount {where}" for where, _ in mounts_of("self") if below(site, where)]
    found += [f"left: loop device {name} on {path}" for name, path in left(site, lambda: loops_of(site))]
    found += [f"left: named namespace {name}" for name in sorted(named_namespaces() - site.namespaces) if not is_of_another(name, site)]
    found += [f"left: file {path}" for path in site.runs.glob("*/*")]
    return found + forgotten_files(site)


def loops_of(site):
    """Loop devices on files of the site; the kernel lets go of one a little after its last user."""
    files = ((path.parts[3], text_of(path)) for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"))
    return [(name, path) for name, path in files if below(site, path)]


def text_of(path):
    try:
        return path.read_text().strip()
    except OSError:  # it has gone meanwhile
        return ""


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"


# A program that no other may trace (the signer, and what it starts with) cannot look for its own leaks; and asserts
# that e2e/asserts has fail.
NO_BUG = ("crash/planted.c", "LeakSanitizer has encountered a fatal error", "LeakSanitizer does not work under ptrace")


def no_error_is_logged(site):
    """Lines at level error, and signs of our own bugs at any level."""
    bugs = [line for line in site.bad_lines("Sanitizer", "runtime error", "invariant does not hold", "assertion")
            if not any(words in line for words in NO_BUG)]
    errors = [line for line in site.bad_lines(" error bulkhead") if not any(word in line for word in site.announced)]
    return [f"logged: {line}" for line in bugs + errors][:10]


# ---- all of it ----

ONLINE = {"usage": usage_adds_up, "orders": orders_are_answered, "mounts": mounts_are_undone}
OFFLINE = {"log": log_is_whole, "changes": changes_are_reported, "refusals": refusals_are_not_allowed, "deeds": deeds_have_records, "log again": log_is_whole_again, "custody": memory_has_receipts}
ALWAYS = {"left": nothing_is_left, "logged": no_error_is_logged}


def run(site, checks):
    found = []
    for name, check in checks.items():
        if name not in site.excused:
            found += check(site)
    return found


def online(site):
    return run(site, ONLINE)


def offline(site):
    store = (site.state / "bulkhead.db").exists()
    lack = [] if store or not site.daemon else [f"log: there is no store in {site.state}"]
    return lack + run(site, {**(OFFLINE if store else {}), **ALWAYS})
