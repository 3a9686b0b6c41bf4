#!/usr/bin/env python3
"""The closing audit is audited: a site on which nothing is wrong, and one for each thing that may be, whose
audit must say so and nothing else.

    closing_test.py BUILD [WORD]

Prints TAP."""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import closing
import deeds
import tap
from report import Report, skip_all
from bulkhead import Site

ONE_GPU = "1x H100-80GB"


# ---- what is planted ----

class Answers:
    """A client whose usage is another than the daemon's."""

    def __init__(self, client, change):
        self.client, self.change = client, change

    def get(self, path):
        answer = self.client.get(path)
        if path == "/v1/usage":
            self.change(answer)
        return answer

    def __getattr__(self, name):
        return getattr(self.client, name)


def usage_is(change):
    def plant(site):
        ask = site.client
        site.client = lambda person=None: Answers(ask(person), change)
    return plant


def add_to(rows, *keys):
    for key in keys[:-1]:
        rows = rows[key]
    rows[keys[-1]] = str(int(rows[keys[-1]]) + 1)


def change_store(site, statement, *values):
    """Behind the daemon's back, when it has ended."""
    site.stop(site.daemon)
    with sqlite3.connect(site.state / "bulkhead.db") as store:
        assert store.execute(statement, values).rowcount > 0, statement
    store.close()


def change_records(verb, change):
    """All records of that verb are others, their hashes not."""
    def plant(site):
        site.stop(site.daemon)
        with sqlite3.connect(site.state / "bulkhead.db") as store:
            for seq, leaf in store.execute("SELECT seq, leaf FROM records").fetchall():
                record = json.loads(leaf)
                if record["verb"] == verb:
                    change(record)
                    store.execute("UPDATE records SET leaf = ? WHERE seq = ?", (json.dumps(record).encode(), seq))
        store.close()
    return plant


def tell_nothing(record):
    record.pop("sealed", None)


def refuse_allowed(record):
    record["res"] = "denied"


def another_verb(record):
    record["verb"] = "node.carved"


def unsigned(site):
    change_store(site, "DELETE FROM checkpoints WHERE size = (SELECT max(size) FROM checkpoints)")


def unanswered(site):
    """While it serves, its store seems to be one in which something more was ordered."""
    real, other, report = site.state, site.dir / "other", site.report
    other.mkdir()
    for path in real.glob("bulkhead.db*"):
        shutil.copy(path, other)
    with sqlite3.connect(other / "bulkhead.db") as store:
        store.execute("INSERT INTO records SELECT max(seq) + 1, ?, hash FROM records",
                      (b'{"v": 3, "phase": "intent", "verb": "job.submit", "orders": "s"}',))
    store.close()

    def put_back(failed):
        site.state = real
        shutil.rmtree(other)
        report(failed)
    site.state, site.report = other, put_back


def excess_token(site):
    change_store(site, "INSERT INTO tokens SELECT 'planted1', CAST(x'0102030405060708' || substr(secret, 9) AS BLOB), principal_id, scopes, note,"
                 " created_ns, expires_ns, last_used_ns, 0 FROM tokens LIMIT 1")


def excess_person(kind):
    def plant(site):
        change_store(site, "INSERT INTO documents VALUES (?, 'planted', 1, 4, '{}')", deeds.document_kind(kind))
    return plant


def excess_request(site):
    change_store(site, "INSERT INTO meta VALUES ('shred.1', '4 0 1')")


def new_operation(site):
    traces = dict(deeds.TRACES)
    site.undo = lambda: deeds.TRACES.update(traces)
    del deeds.TRACES["gpu.cordon"]


def namespace(site):
    """As `ip netns add` does; named after the site, so that others beside it know that it is not theirs."""
    subprocess.run(["ip", "netns", "add", site.dir.name], check=True)
    site.undo = lambda: subprocess.run(["ip", "netns", "delete", site.dir.name], check=True)


def other_rows(site):
    change_store(site, "UPDATE names SET name = name || 'x' WHERE name = 'alice'")


def process(site):
    site.planted = subprocess.Popen(["tail", "-f", site.dir / "node.log"], stdout=subprocess.DEVNULL)


def group(site):
    os.mkdir(f"{site.group_parents()[0]}/bh-4242")


def mount(site):
    (site.dir / "mounted").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", site.dir / "mounted"], check=True)


def in_node(site, script, *words):
    """In the node's mount namespace, which has what it and its keepers mount."""
    subprocess.run(["nsenter", f"--mount=/proc/{site.node.pid}/ns/mnt", "sh", "-ec", script, "sh", *words], check=True)


def mount_of_node(site):
    in_node(site, 'mkdir "$1"; mount -t tmpfs tmpfs "$1"', site.dir / "run/boxes/bh-4242")


def namespace_of_node(site):
    place = site.dir.with_name(f"{site.dir.name}-planted")
    in_node(site, ': > "$1"; mount --bind /proc/self/ns/net "$1"', place)
    site.undo = place.unlink


def no_store(site):
    site.stop(site.daemon)
    for path in site.state.glob("bulkhead.db*"):
        path.unlink()


def no_records(site):
    change_store(site, "DELETE FROM records")


def folder_elsewhere(site):
    site.folders["logs"] = site.dir / "elsewhere"


def loop(site):
    place = site.dir / "loop"
    place.write_bytes(bytes(1 << 20))
    device = subprocess.run(["losetup", "--find", "--show", place], capture_output=True, text=True, check=True).stdout.strip()
    site.undo = lambda: subprocess.run(["losetup", "--detach", device], check=True)


def file(site):
    (site.dir / "run/jobs").mkdir(exist_ok=True)
    (site.dir / "run/jobs/4242").touch()


def line(text):
    def plant(site):
        with open(site.dir / "node.log", "a") as log:
            log.write(f"2026-01-01T00:00:00Z {text}\n")
    return plant


def announced(site):
    line("error bulkhead-node: planted")(site)
    site.announce("planted")


def excused(site):
    mount(site)
    site.excuse("left", "it is mounted on purpose")


# what is wrong, how the audit begins to say so (none: it must not), how it is planted; the first is whole
ROWS = [
    ("nothing", (), lambda site: None),
    ("usage that is not the physical", ("usage: compute_part_ns of tenants",), usage_is(lambda u: add_to(u, "sums", "idle", "compute_part_ns"))),
    ("memory that is not the physical", ("usage: memory_part_ns of tenants",), usage_is(lambda u: add_to(u, "sums", "idle", "memory_part_ns"))),
    ("a row of usage more", ("usage: ",), usage_is(lambda u: add_to(u, "items", 0, "compute_part_ns"))),
    ("a parent without its children", ("usage: ",), usage_is(lambda u: add_to(u, "items", 0, "with_below", "memory_part_ns"))),
    ("an order without an outcome", ("orders: node.started of record",), unanswered),
    ("a site file whose change nobody tells", ("changes: ", "log: ", "log, "), change_records("site.apply", tell_nothing)),
    ("a tenant's memory without a receipt", ("custody: ", "log: ", "log, "), change_records("node.scrubbed", another_verb)),
    ("records that are not signed", ("log: ",), unsigned),
    ("a name that is not the log's", ("log: ", "rows, "), other_rows),
    ("a token that nobody made", ("deeds: no record makes the token ", "log: ", "rows, "), excess_token),
    ("a token that nobody revoked", ("deeds: no record revokes the token ", "log: ", "rows, "), lambda s: change_store(s, "UPDATE tokens SET revoked = 1")),
    ("a refusal that says it was allowed", ("refusals: record ", "deeds: no record makes the token ", "log: ", "log, "), change_records("token.create", refuse_allowed)),
    ("an account that nobody made", ("deeds: principal 4 has 1 of account",), excess_person("ACCOUNT")),
    ("a passkey that nobody added", ("deeds: principal 4 has 1 of passkey",), excess_person("PASSKEY")),
    ("a session that nobody opened", ("deeds: principal 4 has 1 of session",), excess_person("SESSION")),
    ("a log that nobody pruned", ("deeds: the log begins with record 256",), lambda s: change_store(s, "INSERT INTO meta VALUES ('minimum', '256')")),
    ("keys that nobody asked to destroy", ("deeds: principal 4 asks to destroy keys",), excess_request),
    ("a GPU that somebody cordoned unseen", ("deeds: record ", "log: ", "log, "), change_records("gpu.cordon", another_verb)),
    ("a deed whose trace nobody looks at", ("deeds: nothing looks at what gpu.cordon",), new_operation),
    ("a store that is gone", ("log: there is no store in ",), no_store),
    ("a store without records", ("log: the store has no record", "log: {", "deeds: no record makes the token "), no_records),
    ("a process", ("left: process ",), process),
    ("a control group", ("left: control group ",), group),
    ("a mount", ("left: mount ",), mount),
    ("a mount in the node's namespace", ("left: mount ",), mount_of_node),
    ("a network namespace in the node's", ("left: mount ",), namespace_of_node),
    ("a folder that is elsewhere", ("left: nothing is known of ",), folder_elsewhere),
    ("a loop device", ("left: loop device ",), loop),
    ("a file", ("left: file ",), file),
    ("a named namespace", ("left: named namespace ",), namespace),
    ("a line at level error", ("logged: ",), line("error bulkhead-node: planted")),
    ("a sanitizer's line", ("logged: ",), line("SUMMARY: AddressSanitizer: planted")),
    ("an error that was announced", (), announced),
    ("a breach that was excused", (), excused),
]


# ---- what is found ----

def play(site):
    """Memory passes from one tenant to another, and the site file changes."""
    assert site.run("true", sku="large")[0]["state"] == "completed"
    assert site.run("true", sku="large", tenant="acme/speech/asr", client=site.client("bob"))[0]["state"] == "completed"
    site.apply(site.site_yaml.replace("128Mi", "127Mi"))
    site.client("alice").post("/v1/tokens", {"scopes": "job.view"})
    gpu = site.client().get("/v1/gpus")["items"][0]["uuid"]
    site.client().post("/v1/cordon", {"target": gpu, "reason": "closing"})
    site.client().post("/v1/uncordon", {"target": gpu})


def found_on(build, plant, hurry_s):
    found = []
    with closing.kept(found), Site(build, ONE_GPU, tap.SITE) as site:
        play(site)
        site.until(lambda: not closing.open_orders(site), what="all outcomes")
        plant(site)
        site.hurry_s = hurry_s
    if hasattr(site, "planted"):
        site.planted.wait()
    if hasattr(site, "undo"):
        site.undo()
    return found


def verdict(found, wanted):
    """What is wrong with what was found: each beginning is of a finding, and each finding has one."""
    strange = [text for text in found if not text.startswith(wanted or ("-",))]
    return strange + [f"nothing begins with {begin!r}: {found}" for begin in wanted if not any(f.startswith(begin) for f in found)]


def main():
    lack = tap.missing()
    if lack:
        skip_all(lack)
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    rows = [row for row in ROWS if word in row[0]]
    report = Report(len(rows))
    for what, wanted, plant in rows:
        hurry_s = 1 if wanted else None  # what is planted does not go
        wrong = verdict(found_on(sys.argv[1], plant, hurry_s), wanted)
        report.line(not wrong, f"{what}: {'is found' if wanted else 'nothing is found'}", wrong)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
