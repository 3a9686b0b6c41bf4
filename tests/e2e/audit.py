#!/usr/bin/env python3
"""The audit log: complete, verifiable, and every change to a copy of it is found."""
import base64
import hashlib
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import ROOT
from tap import contains, equal


def busy(site):
    """Records of several kinds; returns how many, all of them signed."""
    for _ in range(4):
        site.run("true")
    site.cli("alice", "submit", "--tenant", "acme/vision/batch", "--sku", "large", "--priority", "high", "--", "true", check=4)
    count = site.record_count()
    site.until(lambda: site.client("dave").get("/v1/checkpoints")["items"][-1]["size"] >= count, what="a checkpoint")
    return count


def copy_of(site):
    source = sqlite3.connect(f"file:{site.dir}/state/bulkhead.db?mode=ro", uri=True)
    place = site.dir / "copy.db"
    place.unlink(missing_ok=True)
    with sqlite3.connect(place) as target:
        source.backup(target)
    return place


def verify(site, store, *more):
    return site.cli(None, "audit", "verify", "--store", str(store), "--vkey", str(site.dir / "state/audit.vkey"), *more)


@tap.test()
def verified(site):
    "audit verify passes: by the store's file, through the API, and on records saved earlier"
    count = busy(site)
    done = verify(site, copy_of(site))
    equal("status", (done.returncode, done.stderr), (0, ""))
    contains("says how many", done.stdout, str(count))
    done = site.cli("erin", "audit", "verify", "--vkey", str(site.dir / "state/audit.vkey"))
    equal("through the API", (done.returncode, done.stderr), (0, ""))
    equal("size", int(site.cli("dave", "audit", "size", check=0).stdout), site.record_count())
    contains("tail", site.cli("dave", "audit", "tail", check=0).stdout, "job.submit")


@tap.test()
def flipped(site):
    "one flipped byte in a copy is found, and the record named; so are a lost and a doubled record"
    count = busy(site)
    for victim in (0, count // 2, count - 2):
        store = copy_of(site)
        done = subprocess.run([sys.executable, ROOT / "tools/flip-record", store, str(victim)], capture_output=True, text=True, check=True)
        equal("victim", done.stdout.strip(), str(victim))
        done = verify(site, store)
        equal(f"status with record {victim} flipped", done.returncode, 1)
        contains("names it", done.stdout + done.stderr, f"record {victim}")
    for what, change in (("lost", "delete from records where seq=5"),
                         ("cut off", "delete from records where seq>=8"),
                         ("exchanged", "update records set leaf=(select leaf from records where seq=3) where seq=4")):
        store = copy_of(site)
        with sqlite3.connect(store) as db:
            db.execute(change)
        done = verify(site, store)
        assert done.returncode == 1, f"{what}: status {done.returncode}: {done.stdout}{done.stderr}"


@tap.test()
def root_recomputed(site):
    "the signed root is the RFC 6962 hash over all records, as anybody can compute it"
    busy(site)
    note = site.client("dave").get("/v1/checkpoints")["items"][-1]["note"]
    size, root = int(note.splitlines()[1]), base64.b64decode(note.splitlines()[2])
    items = site.client("dave").get("/v1/records?limit=10000&raw=true")["items"]
    leaves = [hashlib.sha256(b"\0" + i["leaf"].encode()).digest() for i in items[:size]]

    def tree(nodes):
        if len(nodes) == 1:
            return nodes[0]
        half = 1 << (len(nodes) - 1).bit_length() - 1
        return hashlib.sha256(b"\1" + tree(nodes[:half]) + tree(nodes[half:])).digest()

    equal("root", tree(leaves).hex(), root.hex())


@tap.test()
def cut_store(site):
    "bulkheadd refuses to start on a journal that is shorter than what it signed"
    count = busy(site)
    site.stop(site.daemon)
    kept = site.dir / "kept.db"
    shutil.copy(site.dir / "state/bulkhead.db", kept)
    with sqlite3.connect(site.dir / "state/bulkhead.db") as db:
        db.execute("delete from records where seq >= ?", (count - 3,))
    site.start_daemon(wait=False)
    site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
    assert site.daemon.poll() != 0
    last = (site.dir / "daemon.log").read_text().splitlines()[-1]
    contains("says why", last, "record")
    for name in ("bulkhead.db-wal", "bulkhead.db-shm"):
        (site.dir / "state" / name).unlink(missing_ok=True)
    shutil.copy(kept, site.dir / "state/bulkhead.db")
    site.start_daemon()
    equal("jobs", site.client().get("/v1/jobs")["total"], 4)


@tap.test()
def nothing_secret(site):
    "leaves hold ids, integers and digests only: no name, command or path of a person"
    site.run("sh", "-c", "echo very-secret-word", name="secret-name", env=["SECRET=env-word"])
    text = str(site.leaves())
    for word in ("very-secret-word", "secret-name", "env-word", "alice", "acme", "/bin"):
        assert word not in text, word


if __name__ == "__main__":
    tap.main()
