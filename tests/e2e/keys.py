#!/usr/bin/env python3
"""Sealed texts, destroying their keys, and new root keys, on a running site."""
import calendar
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import ENDED, ROOT
from tap import contains, equal

ONE = "1x H100-80GB"
CANARY = "canary-7f3a"
SECOND = '  - {role: admin, principal: dave, tenant: "*"}\n'
TWO_ADMINS = tap.SITE.replace('  - {role: admin, principal: erin', SECOND + '  - {role: admin, principal: erin')


def month():
    return time.strftime("%Y-%m", time.gmtime())


def told(site):
    """A job with canaries in its command, environment and name, run to its end."""
    number = site.submit("sh", "-c", f"true # {CANARY}-command", name=f"{CANARY}-name", env=[f"A={CANARY}-env"])
    return site.await_state(number, *ENDED)


def refused(site):
    """A job that its node cannot start: why not is kept, too."""
    job = site.await_state(site.submit("true", image=f"oci:{site.dir}/{CANARY}-image:x"), *ENDED)
    equal("cause", job["cause"], "start_failed")


def entered(site):
    """A job that runs, gets another command, and is cancelled."""
    job = site.submit("sleep", "600", client=site.client("alice"))
    site.await_state(job, "running")
    site.cli("alice", "exec", str(job), "--", "true", f"{CANARY}-added", check=0)
    site.cli("alice", "cancel", str(job), check=0)
    site.await_state(job, *ENDED)


def sealed_texts(site):
    """Of tenants: how many the store keeps, and those that count against one."""
    with contextlib.closing(sqlite3.connect(f"file:{site.dir}/state/bulkhead.db?mode=ro", uri=True)) as db:
        return db.execute("""SELECT count(*), sum(tenant_id > 0) FROM texts WHERE text GLOB '{"c":"*'""").fetchone()


def files(site):
    return b"".join(p.read_bytes() for p in sorted((site.dir / "state").glob("bulkhead.db*")))


def shred(site, who, *more, check=0):
    return site.cli(who, "key", "shred", "acme/vision/batch", "--month", month(), "--reason", f"{CANARY}-reason",
                    *more, check=check)


@tap.test(topology=ONE)
def sealed(site):
    "commands and environments stand in no record and no file of the store, and are read by those who may"
    job = told(site)
    equal("opened", (job["name"], job["spec"]["env"][0]), (f"{CANARY}-name", f"A={CANARY}-env"))
    contains("in lists", site.cli("alice", "ps", "-A", check=0).stdout, f"{CANARY}-name")
    assert CANARY not in json.dumps(site.leaves()), "a canary in a leaf"
    data = files(site)
    for what in ("command", "env", "name"):
        assert f"{CANARY}-{what}".encode() not in data, f"the {what} in the store's files"
    contains("keys are records", json.dumps(site.records()), "key.make")
    keys = json.loads(site.cli("erin", "key", "list", "-o", "json", check=0).stdout)["items"]
    equal("keys", [(k["id"], k["kind"], k["tenant"], k["month"], k["state"]) for k in keys],
          [(1, "tenant", "*", "", "in force"), (2, "audit", "*", month(), "in force"),  # what the site file changed
           (3, "tenant", "acme/vision/batch", "", "in force"), (4, "audit", "acme/vision/batch", month(), "in force")])
    site.cli("alice", "key", "list", check=4)
    root = (site.dir / "state/root.key").read_bytes()
    equal("root key", (len(root), os.stat(site.dir / "state/root.key").st_mode & 0o777), (32, 0o600))
    for log in ("daemon.log", "node.log"):
        text = (site.dir / log).read_bytes()
        assert root not in text and root.hex().encode() not in text, f"the root key in {log}"


@tap.test(topology=ONE, site=TWO_ADMINS, node_conf="image_roots = /tmp")
def erased(site):
    "two administrators erase a month: it cannot be read, no file holds it, and the log verifies as before"
    job = told(site)
    told(site)
    refused(site)
    entered(site)
    equal("specifications of three kinds, a command; a message is in its record", sealed_texts(site), (4, 4))
    contains("a developer", shred(site, "alice", check=4).stderr, "key.shred")
    token = shred(site, "erin").stdout.strip()
    contains("not oneself", shred(site, "erin", "--confirm", token, check=4).stderr, "the administrator who requested it cannot confirm it")
    denied = json.loads(site.cli("erin", "audit", "search", "--decision", "deny", "--verb", "key.shred", "-o", "json", check=0).stdout)["items"]
    equal("a refusal", [(r["actor"]["name"], r["result"], r["decision"]["allow"]) for r in denied][-1], ("erin", "denied", False))
    equal("still there", site.job(job["id"])["spec"]["env"][0], f"A={CANARY}-env")
    contains("done", shred(site, "dave", "--confirm", token).stdout, "1 keys of acme/vision/batch")
    equal("they are gone", sealed_texts(site)[0], 0)
    shown = site.job(job["id"])
    equal("erased", (shown["erased"], "spec" in shown, shown["name"]), (True, False, "(erased)"))
    site.until(lambda: CANARY.encode() not in files(site), what="the last canary to leave the files")
    found = site.cli("erin", "audit", "search", "--verb", "key.shred", "-o", "json", check=0).stdout
    contains("the reason, to who may see it", found, f"{CANARY}-reason")
    assert f"{CANARY}-reason" not in json.dumps(site.leaves()), "the reason in a leaf"
    equal("policy test", site.cli("erin", "policy", "test", check=0).stdout,
          "0 of 0 submissions would be denied; 4 more are erased\n")
    place = site.dir / "out"
    place.mkdir()
    os.chmod(place, 0o777)
    vkey = str(site.dir / "state/audit.vkey")
    site.cli("erin", "audit", "verify", "--vkey", vkey, check=0)
    site.cli("erin", "audit", "export", str(place / "export"), "--vkey", vkey, check=0)
    done = subprocess.run([sys.executable, ROOT / "tools/verify_audit.py", place / "export", "--vkey", vkey],
                          capture_output=True, text=True)
    equal("the second verifier", (done.returncode, done.stderr), (0, ""))
    site.kill(site.daemon)
    for status, words in verdicts(site, "--store", str(site.dir / "state/bulkhead.db")):
        equal(words, status, 0)
        contains("of the store", words, "4 erased")
    site.start_daemon()
    equal("for ever", site.job(job["id"])["erased"], True)
    equal("new jobs go on", told(site)["spec"]["env"][0], f"A={CANARY}-env")


def verdicts(site, *where):
    """Status and words of both verifiers."""
    key = str(site.dir / "state/audit.vkey")
    ours = site.cli(None, "audit", "verify", *where, "--vkey", key)
    other = subprocess.run([sys.executable, str(ROOT / "tools/verify_audit.py"), *(where if where[0] == "--store" else where[1:]), "--vkey", key],
                           capture_output=True, text=True)
    return [(done.returncode, done.stdout + done.stderr) for done in (ours, other)]


def signed(site):
    """All records of now are."""
    size = site.record_count()
    site.until(lambda: site.client("dave").get("/v1/checkpoints")["items"][-1]["size"] >= size, what="a checkpoint")


def folder_in(site, name):
    """Where everybody may write."""
    place = site.dir / name
    place.mkdir()
    place.chmod(0o777)
    return place


def export(site, place):
    done = site.cli("erin", "audit", "export", str(place), "--vkey", str(site.dir / "state/audit.vkey"))
    equal(f"the export's own verdict: {done.stdout}{done.stderr}", done.returncode, 0)


@tap.test(topology=ONE)
def erased_behind_the_checkpoint(site):
    "a month that is destroyed between the checkpoint and the rows is no finding: of an export, now and for ever, nor through the API"
    told(site)
    signed(site)
    place, (signer, *_) = folder_in(site, "out"), site.processes("bulkhead-signer")
    os.kill(signer, signal.SIGSTOP)  # so that the newest checkpoint is of before
    try:
        contains("done", shred(site, "erin").stdout, "1 keys of acme/vision/batch")
        export(site, place / "early")
        done = site.cli("erin", "audit", "verify", "--vkey", str(site.dir / "state/audit.vkey"))
        equal(f"through the API: {done.stdout}{done.stderr}", done.returncode, 0)
    finally:
        os.kill(signer, signal.SIGCONT)
    size = int((place / "early/checkpoint").read_text().splitlines()[1])
    destroyed = next(r["seq"] for r in site.records() if r["verb"] == "key.destroyed")
    assert size <= destroyed, (size, destroyed)
    for status, text in verdicts(site, "--export", str(place / "early")):
        equal(text, status, 0)
        contains("counted", text, "1 erased")
    told(site)
    signed(site)
    export(site, place / "late")
    for where in (("--export", str(place / "late")), ("--store", str(site.dir / "state/bulkhead.db"))):
        for status, text in verdicts(site, *where):
            equal(text, status, 0)
            contains("counted", text, "1 erased")


def next_month(site):
    """The daemon begins anew, and by its time it is the month after this one: its file says how far that is ahead."""
    now, clock = time.gmtime(), site.dir / "state/clock"
    noon = calendar.timegm((now.tm_year + now.tm_mon // 12, now.tm_mon % 12 + 1, 1, 12, 0, 0))
    site.stop(site.daemon)
    boot, base = clock.read_text().split()
    clock.write_text(f"{boot} {int(base) + (noon - int(time.time())) * 10**9}\n")
    site.start_daemon()


@tap.test(topology=ONE)
def another_month(site):
    "a destroyed month excuses what it sealed, and nothing of another: both verifiers name what was deleted of that"
    first, this = told(site), month()
    next_month(site)
    second = told(site)
    contains("done", site.cli("erin", "key", "shred", "acme/vision/batch", "--month", this, "--reason", "old", check=0).stdout, "1 keys of")
    equal("erased", [site.job(job["id"]).get("erased", False) for job in (first, second)], [True, False])
    signed(site)
    place, copy = folder_in(site, "out"), site.dir / "copy.db"
    export(site, place / "log")
    for where in (("--export", str(place / "log")), ("--store", str(site.dir / "state/bulkhead.db"))):
        for status, text in verdicts(site, *where):
            equal(text, status, 0)
            contains("counted", text, "1 erased")
    with contextlib.closing(sqlite3.connect(f"file:{site.dir}/state/bulkhead.db?mode=ro", uri=True)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        gone = target.execute("DELETE FROM texts WHERE digest = (SELECT spec FROM jobs WHERE job = ?) RETURNING lower(hex(digest))", (second["id"],)).fetchone()[0]
        target.commit()
    texts = place / "log/texts"
    texts.write_text("".join(line for line in texts.read_text().splitlines(keepends=True) if gone not in line))
    for where in (("--export", str(place / "log")), ("--store", str(copy))):
        for status, text in verdicts(site, *where):
            equal(text, status, 1)
            contains("named", text, f"text {gone[:16]}... of record")
            contains("named", text, "is missing, and no record erased it")


@tap.test(topology=ONE, site=TWO_ADMINS)
def name_erased(site):
    "a person who left is erased by name: the id stays, no file holds the name, and verify says which record erased it"
    job = told(site)
    equal("whose", job["user"], "root")
    bob = site.submit("true", client=site.client("alice"))
    site.await_state(bob, *ENDED)
    asked = ("key", "shred", "principal:alice", "--reason", "left")
    contains("still declared", site.cli("erin", *asked, check=3).stderr, "in use")
    site.cli("erin", *asked, "--month", "all", check=3)
    less = TWO_ADMINS.replace("  - {name: alice, uid: 20001}\n", "")
    less = "".join(line for line in less.splitlines(keepends=True) if "principal: alice" not in line)
    site.apply(less, query="?prune=true")
    site.cli("alice", *asked, check=4)
    contains("nobody", site.cli("erin", "key", "shred", "principal:mallory", "--reason", "left", check=5).stderr, "no such name")
    token = site.cli("erin", *asked, check=0).stdout.strip()
    contains("not oneself", site.cli("erin", *asked, "--confirm", token, check=4).stderr, "the administrator who requested it cannot confirm it")
    contains("done", site.cli("dave", *asked, "--confirm", token, check=0).stdout, "was erased")
    erased = next(r for r in site.records() if r["verb"] == "name.erase")
    equal("the jobs' rows", site.job(bob)["user"], "(erased)")
    size = site.record_count()
    site.until(lambda: site.client("dave").get("/v1/checkpoints")["items"][-1]["size"] >= size, what="a checkpoint")
    place = site.dir / "copy"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    site.cli("erin", "audit", "export", str(place / "log"), "--vkey", str(site.dir / "state/audit.vkey"), check=0)
    for where in (("--store", str(site.dir / "state")), ("--export", str(place / "log"))):
        where = ("--store", str(site.dir / "state/bulkhead.db")) if where[0] == "--store" else where
        for status, text in verdicts(site, *where):
            equal(f"{where}: {text}", status, 0)
            contains(f"{where}", text, f"principal {erased['object']['id']}: erased by record {erased['seq']}")
    site.apply(TWO_ADMINS)
    assert json.loads(site.cli("erin", "audit", "search", "--verb", "job.submit", "--all", "-o", "json", check=0).stdout)["items"][1]["actor"]["id"] == erased["object"]["id"]


@tap.test(topology=ONE)
def held(site):
    "a legal hold and jobs that have not ended keep keys; one administrator alone is enough where there is one"
    told(site)
    number = site.submit("sleep", "600", client=site.client("alice"))
    site.await_state(number, "running")
    contains("running", shred(site, "erin", check=3).stderr, "1 jobs of that time have not ended")
    site.cli("erin", "cancel", str(number), check=0)
    site.await_state(number, *ENDED)
    site.apply(tap.SITE.replace("{name: acme/vision, ", "{name: acme/vision, legal_hold: true, "))
    contains("held", shred(site, "erin", check=3).stderr, "acme/vision is under a legal hold")
    site.apply(tap.SITE)
    contains("lifted", shred(site, "erin").stdout, "were destroyed")


@tap.test(topology=ONE)
def rotated(site):
    "a new root key, made by the running daemon or handed to a stopped one, opens what was sealed before"
    site.announce("cannot continue")
    job, path = told(site), site.dir / "state/root.key"
    first = path.read_bytes()
    site.cli("alice", "key", "rotate", check=4)
    contains("said", site.cli("erin", "key", "rotate", check=0).stdout, "the keys of 2 tenants")
    assert path.read_bytes() != first, "the same root key"
    site.kill(site.daemon)
    site.start_daemon()
    equal("opens", site.job(job["id"])["spec"]["env"][0], f"A={CANARY}-env")
    site.stop(site.daemon)
    handed = site.dir / "handed.key"
    handed.write_bytes(bytes(range(32)))
    handed.chmod(0o600)
    ids = (site.dir / "state").stat().st_uid
    os.chown(handed, ids, ids)
    command = [site.program("bulkheadd"), "--config", str(site.dir / "bulkheadd.conf"), "--rotate-root", str(handed)]
    subprocess.run(command, check=True, capture_output=True, user=ids, group=ids, extra_groups=[])
    equal("in its place", path.read_bytes(), bytes(range(32)))
    site.start_daemon()
    equal("opens", site.job(job["id"])["spec"]["env"][0], f"A={CANARY}-env")
    site.stop(site.daemon)
    path.write_bytes(first)
    site.start_daemon(wait=False)
    site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
    contains("an old root key is refused", (site.dir / "daemon.log").read_text().splitlines()[-1], "another root key")
    path.write_bytes(bytes(range(32)))
    site.start_daemon()


tap.main()
