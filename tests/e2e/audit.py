#!/usr/bin/env python3
"""The audit log: complete, verifiable, and every change to a copy of it is found."""
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "lib"), str(pathlib.Path(__file__).resolve().parents[2] / "tools")]
import tap
import verify_audit as v
from verify_audit_test import pack
from bulkhead import DAEMON_UID, ROOT
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
    for old in site.dir.glob("copy.db*"):  # with the log of a copy that was changed
        old.unlink()
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
def rows_gone(site):
    "rows that are gone are found through the API, too, also when a table has none left; what is not compared is said"
    busy(site)
    place = site.dir / "state/bulkhead.db"
    said = site.cli("erin", "audit", "verify", "--vkey", key_of(site), check=0).stdout
    contains("what is not compared", said, "not compared: jobs that have not ended, tokens, the site file in force; `bulkhead audit verify --store`")
    equal("of a store all is", "not compared" in verify(site, copy_of(site)).stdout, False)
    for table, change, gone in (("jobs", "delete from jobs", "job 1 is missing in the table"),
                                ("jobs", "delete from jobs where job = 2", "job 2 is missing in the table"),
                                ("names", "delete from names", "principal 1 is missing in the table"),
                                ("documents", "delete from documents", "is missing in the table")):
        with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as db:
            rows = db.execute(f"select * from {table}").fetchall()
            db.execute(change)
            done = site.cli("erin", "audit", "verify", "--vkey", key_of(site))
            db.execute(f"delete from {table}")
            db.executemany(f"insert into {table} values ({', '.join('?' * len(rows[0]))})", rows)
        equal(f"{change}: {done.stdout}{done.stderr}", done.returncode, 1)
        contains(change, done.stdout, gone)
    unchecked = json.loads(site.cli("erin", "audit", "verify", "-o", "json", "--vkey", key_of(site), check=0).stdout)["unchecked"]
    equal("for programs", unchecked, ["jobs that have not ended", "tokens", "the site file in force"])


@tap.test()
def ended_last(site):
    "a job whose end is the last record is compared like the others, through the API as by the store's file"
    for _ in range(2):
        site.run("true")
    last = site.leaves()[-1]
    equal("the last record", (last["verb"], last["jobs"][0]["state"]), ("node.ended", "completed"))
    said = site.cli("erin", "audit", "verify", "--vkey", str(site.dir / "state/audit.vkey"), check=0).stdout
    contains("through the API", said, f"whole: {last['seq'] + 1} records")
    contains("through the API", said, "jobs: 2 as the log says")
    contains("by the store's file", verify(site, copy_of(site)).stdout, "jobs: 2 as the log says")


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
    site.announce("cannot continue")
    count = busy(site)
    site.stop(site.daemon)
    kept = site.dir / "kept.db"
    shutil.copy(site.dir / "state/bulkhead.db", kept)
    with contextlib.closing(sqlite3.connect(site.dir / "state/bulkhead.db")) as db, db:
        db.execute("delete from records where seq >= ?", (count - 3,))  # closed: it would write into the one put back
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
def unsigned(site):
    "a log without any checkpoint proves nothing: both verifiers say so of a store, and verify of saved lines and through the API"
    busy(site)
    key = ("--vkey", key_of(site))
    lines = site.cli("erin", "audit", "tail", "--raw", "--all", check=0).stdout.splitlines(keepends=True)
    saved = site.dir / "records"
    saved.write_text("".join(line for line in lines if not line.startswith('"')))
    store = copy_of(site)
    signer, = site.processes("bulkhead-signer")
    os.kill(signer, signal.SIGSTOP)  # nothing is signed anew meanwhile
    try:
        for place in (store, site.dir / "state/bulkhead.db"):
            with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as db:
                db.execute("DELETE FROM checkpoints")
        for what, done in (("a store", verify(site, store)), ("a store, the second verifier", second("--store", store, *key)),
                           ("lines", site.cli(None, "audit", "verify", "--records", str(saved), *key)),
                           ("the API", site.cli("erin", "audit", "verify", *key))):
            equal(f"{what}: {done.stdout}{done.stderr}", done.returncode, 1)
            contains(f"{what} says why", done.stdout, "no checkpoint: none of its records is signed")
    finally:
        os.kill(signer, signal.SIGCONT)


@tap.test()
def kept_elsewhere(site):
    "a kept checkpoint shows what was cut, of a store by both verifiers, of saved lines and through the API; witnesses need one"
    busy(site)
    key, lines, kept, other = ("--vkey", key_of(site)), site.dir / "records", site.dir / "kept", site.dir / "other"
    lines.write_text(site.cli("erin", "audit", "tail", "--raw", "--all", check=0).stdout)
    store, early = copy_of(site), site.client("erin").get("/v1/log/checkpoint")
    kept.write_text(early)
    for path, status, said in ((kept, 0, "it continues 1 kept checkpoint"), (other, 1, "are missing: a kept checkpoint was signed over them")):
        if path == other:
            busy(site)
            other.write_text(site.client("erin").get("/v1/log/checkpoint"))
        for what, done in (("a store", verify(site, store, "--kept", str(path))), ("lines", site.cli(None, "audit", "verify", "--records", str(lines), "--kept", str(path), *key))):
            equal(f"{what}: {done.stdout}{done.stderr}", done.returncode, status)
            contains(what, done.stdout, said)
        done = second("--store", store, "--kept", path, *key)
        equal(f"the second verifier: {done.stdout}{done.stderr}", done.returncode, status)
        contains("the second verifier", done.stdout, said if status else "whole")
        done = site.cli("erin", "audit", "verify", "--kept", str(path), *key)
        equal(f"the API: {done.stdout}{done.stderr}", (done.returncode, "it continues 1 kept checkpoint" in done.stdout), (0, True))
    done = site.cli("erin", "audit", "verify", "--kept", str(site.dir / "none"), *key)
    equal("a kept file that is not there", (done.returncode, "none" in done.stderr), (5, True))
    done = verify(site, store, "--witness", str(kept))
    equal("no checkpoint that witnesses saw", (done.returncode, "--witness goes with --kept or --export" in done.stderr), (3, True))


@tap.test()
def rolled_back(site):
    "bulkheadd refuses a store of an earlier day, whole in itself, until somebody says that it is meant"
    site.announce("cannot continue")
    busy(site)
    site.stop(site.daemon)
    state, earlier = site.dir / "state", site.dir / "earlier.db"
    shutil.copy(state / "bulkhead.db", earlier)
    site.start_daemon()
    busy(site)
    site.stop(site.daemon)
    for name in ("bulkhead.db-wal", "bulkhead.db-shm"):
        (state / name).unlink(missing_ok=True)
    shutil.copy(earlier, state / "bulkhead.db")
    equal("whole in itself", verify(site, earlier).returncode, 0)
    site.start_daemon(wait=False)
    site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
    assert site.daemon.poll() != 0
    contains("says why", (site.dir / "daemon.log").read_text().splitlines()[-1], "were signed")
    (state / "audit.signed").write_text("0\n")
    site.start_daemon()


@tap.test()
def formless_row(site):
    "bulkheadd refuses to start on a store with a row that has no form, and names it; before, no jobs could be listed then"
    site.announce("cannot continue")
    busy(site)
    site.stop(site.daemon)
    with contextlib.closing(sqlite3.connect(site.dir / "state/bulkhead.db")) as db, db:
        state, = db.execute("SELECT state FROM jobs WHERE job = 1").fetchone()
        db.execute("UPDATE jobs SET state = state || char(0) || 'x' WHERE job = 1")
    site.start_daemon(wait=False)
    site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
    assert site.daemon.poll() != 0
    contains("says which", (site.dir / "daemon.log").read_text().splitlines()[-1], "the row of job 1 is malformed: state")
    with contextlib.closing(sqlite3.connect(site.dir / "state/bulkhead.db")) as db, db:
        db.execute("UPDATE jobs SET state = ? WHERE job = 1", (state,))
    site.start_daemon()
    equal("jobs", site.client().get("/v1/jobs")["total"], 4)


def in_memory(pid, what):
    """How often the bytes stand in the process's memory."""
    count = 0
    with open(f"/proc/{pid}/mem", "rb") as memory, open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        for line in maps:
            start, end, mode = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            size = int(end, 16) - int(start, 16)
            if mode.startswith("r") and "[v" not in line and size < 1 << 31:  # sanitizers map terabytes
                memory.seek(int(start, 16))
                count += memory.read(size).count(what)
    return count


@tap.test()
def apart(site):
    "the signing key is in the signer's memory and nowhere in bulkheadd's; no other process may read it"
    busy(site)
    key = (site.dir / "state/audit.key").read_bytes()
    signer, = site.processes("bulkhead-signer")
    equal("bulkheadd", in_memory(site.daemon.pid, key), 0)
    assert in_memory(signer, key) > 0, "the search finds nothing"
    limits = pathlib.Path(f"/proc/{signer}/limits").read_text()
    equal("core dumps", re.search(r"Max core file size +(\S+) +(\S+)", limits).groups(), ("0", "0"))
    equal("not for its own user", pathlib.Path(f"/proc/{signer}/mem").stat().st_uid, 0)
    contains("filter", pathlib.Path(f"/proc/{signer}/status").read_text(), "Seccomp:\t2")


def old(status):
    """The status, once its last checkpoint is older than any that follows each record; else None."""
    return status if int(status["checkpoint"]["age_ns"]) > 10**9 else None


@tap.test()
def signer_dies(site):
    "records go on while the signer is gone, the log and the status say so, and it comes back by itself"
    site.announce("the signer is gone", "the signer refuses")
    busy(site)
    signer, = site.processes("bulkhead-signer")
    program = site.bin / "bulkhead-signer"
    program.rename(site.bin / "away")
    os.kill(signer, signal.SIGKILL)
    try:
        before = site.client().get("/v1/status")["checkpoint"]
        site.run("true")
        site.until(lambda: "checkpoints wait" in (site.dir / "daemon.log").read_text(), what="the alert")
        now = site.until(lambda: old(site.client().get("/v1/status")), what="a checkpoint that grows old")
        equal("not signed", now["checkpoint"]["records"], before["records"])
        assert now["records"] > before["records"], now
    finally:
        (site.bin / "away").rename(program)
    site.until(lambda: site.client().get("/v1/status")["checkpoint"]["records"] >= now["records"], what="a checkpoint")
    equal("whole", verify(site, copy_of(site)).returncode, 0)
    site.until(lambda: len(site.processes("bulkhead-signer")) == 1, what="one signer")


def turn_key(site, how):
    """The daemon is stopped, its signer's key changed, and it goes on."""
    site.stop(site.daemon)
    subprocess.run([site.program("bulkhead-signer"), "--dir", str(site.dir / "state"), how], check=True,
                   user=DAEMON_UID, group=DAEMON_UID, extra_groups=[], stdout=site.daemon_log, stderr=site.daemon_log)
    site.start_daemon()
    busy(site)


@tap.test()
def another_key(site):
    "another key signs beside the old one until that is retired; all of the log verifies by the keys' file"
    busy(site)
    running = subprocess.run([site.program("bulkhead-signer"), "--dir", str(site.dir / "state"), "--rotate"], capture_output=True, text=True)
    equal("not under a running daemon", (running.returncode, "stop it first" in running.stderr), (3, True))
    old = site.dir / "old.vkey"
    shutil.copy(key_of(site), old)
    for how, by_old in (("--rotate", 0), ("--retire", 1)):
        turn_key(site, how)
        keys = (site.dir / "state/audit.vkey").read_text().splitlines()
        equal("keys", (len(keys), keys[1]), (2, old.read_text().strip()))
        store = copy_of(site)
        equal("by all keys", verify(site, store).returncode, 0)
        done = site.cli(None, "audit", "verify", "--store", str(store), "--vkey", str(old))
        equal("by the old one", done.returncode, by_old)
        read, write = os.pipe()  # as a shell's --vkey <(command)
        os.write(write, pathlib.Path(key_of(site)).read_bytes())
        os.close(write)
        done = subprocess.run([site.program("bulkhead"), "audit", "verify", "--store", str(store), "--vkey", f"/dev/fd/{read}"],
                              pass_fds=[read], capture_output=True, text=True)
        os.close(read)
        equal("by keys from a pipe", (done.returncode, done.stderr), (0, ""))
    place = open_folder(site)
    site.cli("dave", "audit", "export", str(place / "keys"), "--vkey", key_of(site), check=0)
    done = subprocess.run([sys.executable, str(ROOT / "tools/verify_audit.py"), str(place / "keys"), "--vkey", key_of(site)], capture_output=True, text=True)
    equal("by the second verifier", (done.returncode, done.stderr), (0, ""))


@tap.test()
def flipped_key(site):
    "a signing key with a flipped bit is refused at the start, with the way on; audit.vkey stays, and with the key's copy all goes on"
    site.announce("cannot continue")
    busy(site)
    site.stop(site.daemon)
    key, vkey = site.dir / "state/audit.key", pathlib.Path(key_of(site)).read_text()
    whole = key.read_bytes()
    for before in (False, True):  # a folder of before does not name its key: bulkheadd holds it against audit.vkey
        key.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        if before:
            (site.dir / "state/audit.public").unlink()
        site.start_daemon(wait=False)
        site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
        contains("says why", (site.dir / "daemon.log").read_text().splitlines()[-1], "audit.vkey does not name" if before else "is another key")
        contains("the way on", (site.dir / "daemon.log").read_text().splitlines()[-1], "back from its copy")
        equal("the published keys", pathlib.Path(key_of(site)).read_text(), vkey)
        key.write_bytes(whole)
    site.start_daemon()
    busy(site)
    equal("by the key of before", verify(site, copy_of(site)).returncode, 0)


def cosign(note, name, secret):
    """A C2SP cosignature line over a checkpoint, and the witness's key."""
    digest = hashlib.sha512(secret).digest()
    scalar = (int.from_bytes(digest[:32], "little") & (1 << 254) - 8) | 1 << 254
    key = pack(v.times(scalar, v.BASE))
    time_s = int(time.time())
    message = f"cosignature/v1\ntime {time_s}\n{note.rpartition(chr(10) * 2)[0]}\n".encode()
    nonce = int.from_bytes(hashlib.sha512(digest[32:] + message).digest(), "little") % v.Q
    first = pack(v.times(nonce, v.BASE))
    h = int.from_bytes(hashlib.sha512(first + key + message).digest(), "little")
    signature = first + ((nonce + h * scalar) % v.Q).to_bytes(32, "little")
    number = hashlib.sha256(name.encode() + b"\n\4" + key).digest()[:4]
    line = base64.b64encode(number + time_s.to_bytes(8, "big") + signature).decode()
    return f"\u2014 {name} {line}\n", f"{name}+{number.hex()}+{base64.b64encode(bytes([4]) + key).decode()}\n"


@tap.test()
def witnessed(site):
    "an export verifies by a quorum of witnesses' cosignatures on a kept checkpoint, in both verifiers"
    busy(site)
    place = open_folder(site)
    note = (site.dir / "state/audit.checkpoint").read_text()
    pairs = [cosign(note, f"witness.example/w{n}", bytes([n]) * 32) for n in range(3)]
    (place / "w.vkeys").write_text("".join(key for _, key in pairs))
    (place / "kept").write_text(note + pairs[0][0] + pairs[2][0])
    (place / "forged").write_text(note + pairs[0][0] + pairs[2][0].replace("w2 ", "w1 "))
    site.cli("dave", "audit", "export", str(place / "log"), "--vkey", key_of(site), check=0)
    rows = [("kept", ["--quorum", "2"], 0), ("kept", ["--quorum", "1"], 0), ("kept", [], 1), ("kept", ["--quorum", "3"], 1),
            ("forged", ["--quorum", "2"], 1), (None, ["--quorum", "1"], 1)]
    for kept, quorum, status in rows:
        words = ["--vkey", key_of(site), "--witness", str(place / "w.vkeys"), *quorum] + (["--kept", str(place / kept)] if kept else [])
        done = site.cli(None, "audit", "verify", "--export", str(place / "log"), *words)
        equal(f"{kept} {quorum}", (done.returncode, done.stderr), (status, ""))
        second = subprocess.run([sys.executable, str(ROOT / "tools/verify_audit.py"), str(place / "log"), *words], capture_output=True, text=True)
        equal(f"{kept} {quorum}, the second verifier", (second.returncode, second.stderr), (status, ""))
    site.cli(None, "audit", "verify", "--export", str(place / "log"), "--vkey", key_of(site), "--witness", str(place / "w.vkeys"), "--quorum", "4", check=3)


@tap.test()
def answered(site):
    "every order of a quiet site has its outcome, and the verifiers say how many have none"
    busy(site)
    done = json.loads(verify(site, copy_of(site), "-o", "json").stdout)
    equal("orders", (done["orders_open"], done["orders_unknown"]), (0, 0))


def key_of(site):
    return str(site.dir / "state/audit.vkey")


def open_folder(site):
    """Where every person of the tests may write."""
    place = site.dir / "open"
    place.mkdir(mode=0o777, exist_ok=True)
    place.chmod(0o777)
    return place


def both_judge_proofs(site, lines):
    """Both verifiers have the same status for each file in a proof's place: 1 it does not hold, 3 it is none, 5 it is missing."""
    blank, digit = lines.index("\n"), "A" if lines[3][0] != "A" else "B"
    note = lines[blank + 1:]
    signature = note[-1]
    for what, text, status in (
            ("as it was", lines, 0), ("another hash", [*lines[:3], digit + lines[3][1:], *lines[4:]], 1),
            ("another index", [*lines[:2], "index 6\n", *lines[3:]], 1), ("nothing", [], 3), ("its first line", lines[:1], 3),
            ("prose", ["a proof\n"], 3), ("no index", [*lines[:2], *lines[3:]], 3), ("an index with a zero", [*lines[:2], "index 05\n", *lines[3:]], 3),
            ("no record", [lines[0], *lines[2:]], 3), ("a record that is no base 64", [lines[0], "extra ä\n", *lines[2:]], 3),
            ("a short hash", [*lines[:3], "QUJD\n", *lines[4:]], 3), ("no checkpoint", lines[:blank + 1], 3),
            ("no signature", lines[:-1], 3), ("a signature that is none", [*lines[:-1], "a signature\n"], 3),
            ("a short signature", [*lines[:-1], signature.split()[0] + " " + signature.split()[1] + " QUJD\n"], 1),
            ("another's signature", [*lines[:-1], signature.replace(signature.split()[1], "another.example")], 1),
            ("another size", [*lines[:blank + 2], "7\n", *note[2:]], 1)):
        file = site.dir / "judged.tlog-proof"
        file.write_text("".join(text))
        first = site.cli(None, "audit", "check", str(file), "--vkey", key_of(site))
        other = second("--proof", file, "--vkey", key_of(site))
        equal(f"{what}: {first.stdout}{first.stderr}{other.stdout}{other.stderr}", (first.returncode, other.returncode), (status, status))
    equal("no file", second("--proof", site.dir / "nothing", "--vkey", key_of(site)).returncode, 5)
    for what, key in (("no key", ""), ("prose for a key", "a key\n")):
        (site.dir / "judged.vkey").write_text(key)
        first = site.cli(None, "audit", "check", str(file), "--vkey", str(site.dir / "judged.vkey"))
        equal(what, (first.returncode, second("--proof", file, "--vkey", site.dir / "judged.vkey").returncode), (3, 3))


@tap.test()
def proved(site):
    "a proof is checked without the daemon; another record, another key and a flipped bit are not proved"
    count = busy(site)
    place = open_folder(site)
    proof, record, other = (place / name for name in ("5.tlog-proof", "5.json", "6.json"))
    site.cli("dave", "audit", "prove", "5", "--to", str(proof), "--record", str(record), check=0)
    site.cli("dave", "audit", "prove", "6", "--to", str(place / "6.tlog-proof"), "--record", str(other), check=0)
    equal("format", proof.read_text().splitlines()[0], "c2sp.org/tlog-proof@v1")
    done = site.cli(None, "audit", "check", str(proof), "--vkey", key_of(site), check=0)
    contains("the record in it", done.stdout, record.read_text())
    site.cli(None, "audit", "check", str(proof), "--record", str(record), "--vkey", key_of(site), check=0)
    done = site.cli(None, "audit", "check", str(proof), "--record", str(other), "--vkey", key_of(site), check=1)
    contains("says so", done.stdout, "NOT proved")
    verdict = json.loads(site.cli(None, "audit", "check", str(proof), "--vkey", key_of(site), "-o", "json", check=0).stdout)
    equal("as JSON", (verdict["good"], verdict["index"], verdict["leaf"]), (True, 5, record.read_text()))
    lines = proof.read_text().splitlines(keepends=True)
    digit = "A" if lines[3][0] != "A" else "B"
    proof.write_text("".join(lines[:3] + [digit + lines[3][1:]] + lines[4:]))
    site.cli(None, "audit", "check", str(proof), "--vkey", key_of(site), check=1)
    both_judge_proofs(site, lines)
    site.cli("dave", "audit", "prove", str(count + 1000), check=5)
    site.cli(None, "audit", "check", str(site.dir / "nothing"), "--vkey", key_of(site), check=5)


@tap.test()
def continued(site):
    "a kept checkpoint is proved to be the beginning of a later one, and not of another log's"
    busy(site)
    old, new, forged = (site.dir / name for name in ("old", "new", "forged"))
    old.write_text(site.client("dave").get("/v1/checkpoints")["items"][0]["note"])
    site.until(lambda: (site.dir / "state/audit.checkpoint").read_text() == site.client("alice").get("/v1/log/checkpoint"), what="the published file")
    new.write_bytes(site.client("alice").get("/v1/log/checkpoint").encode())
    site.cli("dave", "audit", "consistency", str(old), str(new), "--vkey", key_of(site), check=0)
    site.cli("dave", "audit", "consistency", str(new), str(old), "--vkey", key_of(site), check=1)
    lines = old.read_text().splitlines(keepends=True)
    forged.write_text("".join([lines[0], lines[1], new.read_text().splitlines(keepends=True)[2]] + lines[3:]))
    done = site.cli("dave", "audit", "consistency", str(forged), str(new), "--vkey", key_of(site), check=1)
    contains("says so", done.stdout, "NOT proved")


@tap.test()
def exported(site):
    "an export is verified by both verifiers, and both find what was changed, lost or cut"
    count = busy(site)
    place = open_folder(site)
    folder, kept = place / "export", site.dir / "kept"
    done = site.cli("erin", "audit", "export", str(folder), "--vkey", key_of(site), check=0)
    contains("verified", done.stdout, "whole")
    size = int((folder / "checkpoint").read_text().splitlines()[1])
    assert size >= count, size
    kept.write_text((folder / "checkpoint").read_text())

    def verdicts():
        ours = site.cli(None, "audit", "verify", "--export", str(folder), "--vkey", key_of(site), "--kept", str(kept))
        other = subprocess.run([sys.executable, ROOT / "tools/verify_audit.py", folder, "--vkey", key_of(site), "--kept", kept], capture_output=True, text=True)
        return ours.returncode, other.returncode, ours.stdout + ours.stderr + other.stdout + other.stderr

    equal(f"both: {verdicts()[2]}", verdicts()[:2], (0, 0))
    for path in [p for p in folder.rglob("*") if p.is_file() and p.name != "vkey"]:
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:])
        equal(f"{path.name} changed", verdicts()[:2], (1, 1))
        path.unlink()
        equal(f"{path.name} gone", verdicts()[:2], (5, 5))
        path.write_bytes(whole)
    site.run("true")
    site.until(lambda: site.client("dave").get("/v1/checkpoints")["items"][-1]["size"] > size, what="a checkpoint")
    site.cli("erin", "audit", "export", str(folder), "--vkey", key_of(site), check=0)
    equal("grown", verdicts()[:2], (0, 0))
    site.cli("alice", "audit", "export", str(place / "mine"), "--vkey", key_of(site), check=4)
    for dry_run in ((), ("--dry-run",)):
        done = site.cli("erin", "audit", "prune", str(place / "kept"), "--vkey", key_of(site), *dry_run, check=3)
        contains("why not", done.stderr, "the audit log is kept for ever")
        assert not (place / "kept").exists(), "what refuses is found before the export"


@tap.test(daemon_conf="audit_retention = 1s\nsnapshot_every = 100")
def pruned(site):
    "audit prune exports, then drops old records: what is left verifies, and the export has the rest"
    erin = site.client("erin")
    site.cli("erin", "audit", "prune", str(open_folder(site) / "early"), "--vkey", key_of(site), check=0)
    for number in range(300):
        erin.post("/v1/tokens", {"note": str(number)})
    size = site.record_count()
    site.until(lambda: erin.get("/v1/checkpoints")["items"][-1]["size"] >= size, what="a checkpoint")
    time.sleep(1.1)
    folder, later, kept = open_folder(site) / "all", open_folder(site) / "later", site.dir / "kept"
    kept.write_text(erin.get("/v1/log/checkpoint"))
    equal("for anybody", site.client("alice").get("/v1/log/minimum"), "0\n")
    done = site.cli("erin", "audit", "prune", str(folder), "--dry-run", "--vkey", key_of(site), check=0)
    contains("would", done.stdout, "256 records would be pruned")
    assert not folder.exists(), "a dry run writes nothing"
    site.cli("dave", "audit", "prune", str(open_folder(site) / "daves"), "--vkey", key_of(site), check=4)
    assert not (open_folder(site) / "daves").exists(), "who may not prune gets no export by it"
    done = site.cli("erin", "audit", "prune", str(folder), "--vkey", key_of(site), check=0)
    contains("done", done.stdout, "the log begins with record 256")
    equal("published", site.client("alice").get("/v1/log/minimum"), "256\n")
    contains("by the API", site.cli("erin", "audit", "verify", "--vkey", key_of(site), check=0).stdout, "pruned")
    contains("by the store", verify(site, copy_of(site)).stdout, "those below 256")
    equal("listed from there on", erin.get("/v1/records?limit=1")["items"][0]["seq"], 256)
    site.cli("erin", "audit", "prove", "3", check=5)
    contains("says where it is", site.cli("erin", "audit", "show", "3", check=5).stderr,
             "record 3 was pruned: the log has its hash alone\n  bulkhead audit show 3 --export FOLDER")
    site.cli("erin", "audit", "prove", "256", check=0)
    size = site.record_count()
    site.until(lambda: erin.get("/v1/checkpoints")["items"][-1]["size"] >= size, what="a checkpoint that covers the record of it")
    site.cli("erin", "audit", "export", str(later), "--vkey", key_of(site), check=0)
    for place, status in ((folder, 0), (later, 0)):
        for program in ([sys.executable, ROOT / "tools/verify_audit.py", place], [site.program("bulkhead"), "audit", "verify", "--export", place]):
            done = subprocess.run([*program, "--vkey", key_of(site), "--kept", kept], capture_output=True, text=True)
            equal(f"{place.name} by {program[0]}: {done.stdout}{done.stderr}", done.returncode, status)
            contains(f"who acted, in {place.name}", done.stdout, "names: ")
        contains("its names", (place / "names").read_text(), '"erin"')
    assert (folder / "tile/entries/000").exists() and not (later / "tile/entries/000").exists()
    site.stop(site.daemon)
    site.start_daemon()
    equal("kept", site.client("alice").get("/v1/log/minimum"), "256\n")
    site.run("true")
    with sqlite3.connect(copy_of(site)) as copy:  # one more than the log says
        copy.execute("UPDATE records SET leaf = x'' WHERE seq = 256")
    done = verify(site, site.dir / "copy.db")
    equal("found", done.returncode, 1)
    contains("says what", done.stdout, "does not say that they were pruned")
    put_back_pruned(site)


def put_back_pruned(site):
    """Store and snapshots of an earlier day, pruned: refused with the way on, and that way works."""
    site.announce("cannot continue")
    state, earlier = site.dir / "state", site.dir / "earlier"
    kept = ("bulkhead.db*", "snapshot-*.bin")
    earlier.mkdir()
    site.stop(site.daemon)
    for path in (path for name in kept for path in state.glob(name)):
        subprocess.run(["cp", "-a", path, earlier], check=True)
    site.start_daemon()
    busy(site)
    site.stop(site.daemon)
    for path in [path for name in kept for path in state.glob(name)]:
        path.unlink()
    subprocess.run(["cp", "-a", *earlier.iterdir(), state], check=True)
    site.start_daemon(wait=False)
    site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
    contains("the way on", (site.dir / "daemon.log").read_text().splitlines()[-1], "write 0 into audit.signed")
    (state / "audit.signed").write_text("0\n")
    site.start_daemon()
    busy(site)
    done = verify(site, copy_of(site))
    equal(f"whole: {done.stdout}{done.stderr}", done.returncode, 0)
    equal("still pruned", site.client("alice").get("/v1/log/minimum"), "256\n")


# What is done to a copy of the store, and what both verifiers say of it.
SWAP = """UPDATE names SET name = CASE id WHEN {0} THEN (SELECT name FROM names WHERE kind = 2 AND id = {1})
                                           ELSE (SELECT name FROM names WHERE kind = 2 AND id = {0}) END
          WHERE kind = 2 AND id IN ({0}, {1})"""
TAMPERED = [
    ("two names swapped", SWAP.format(1, 2), "principal 1 is"),
    ("a name replaced", "UPDATE names SET name = 'mallory' WHERE kind = 2 AND id = 2", "bound it to another name"),
    ("a name's key replaced", "UPDATE names SET key = randomblob(32) WHERE kind = 0 AND id = 1", "tenant 1 is"),
    ("a name that nobody gave", "INSERT INTO names VALUES (2, 99, 'mallory', 0, randomblob(32), 3)", "principal 99"),
    ("a name that is gone", "DELETE FROM names WHERE kind = 2 AND id = 2", "principal 2 is missing"),
    ("a job of another principal", "UPDATE jobs SET principal_id = 2 WHERE job = 1", "job 1: its principal"),
    ("a job under another name", "UPDATE jobs SET principal = 'mallory' WHERE job = 1", "job 1: its principal"),
    ("a job of another tenant", "UPDATE jobs SET tenant_id = 1 WHERE job = 1", "job 1: its tenant"),
    ("a job of another SKU", "UPDATE jobs SET sku = 'large' WHERE job = 2", "job 2: its SKU"),
    ("a job submitted at another time", "UPDATE jobs SET submitted_ns = submitted_ns - 1 WHERE job = 2", "job 2: its time of submission"),
    ("a job that began at another time", "UPDATE jobs SET started_ns = started_ns - 1 WHERE job = 2", "job 2: its start"),
    ("a job that ended at another time", "UPDATE jobs SET ended_ns = ended_ns - 1 WHERE job = 2", "job 2: its end"),
    ("a job that failed", "UPDATE jobs SET state = 'failed', exit_status = 1 WHERE job = 3", "job 3: its state"),
    ("a job that exited otherwise", "UPDATE jobs SET exit_status = 1 WHERE job = 3", "job 3: its exit status"),
    ("a job that nobody submitted", "INSERT INTO jobs SELECT 99, lease, tenant_id, principal_id, count, priority, restarts, name, tenant, principal, sku, kind, "
     "state, contract, reason, node, pieces, grade, submitted_ns, started_ns, ended_ns, time_limit_ns, exit_status, spec, ended, deadline_ns, "
     "checkpoint_signal, gang, ended_by FROM jobs WHERE job = 1", "job 99 is in the table"),
    ("a job that is gone", "DELETE FROM jobs WHERE job = 2", "job 2 is missing"),
    ("a record's bytes gone", "UPDATE records SET leaf = x'' WHERE seq = 5", "the log does not say that they were pruned"),
    ("a text changed", "UPDATE texts SET text = text || ' ' WHERE digest = (SELECT spec FROM jobs WHERE job = 1)", "does not have the digest"),
    ("a text that is gone", "DELETE FROM texts WHERE digest = (SELECT spec FROM jobs WHERE job = 1)", "is missing, and no record erased it"),
]


def second(*words):
    return subprocess.run([sys.executable, str(ROOT / "tools/verify_audit.py"), *map(str, words)], capture_output=True, text=True)


def check_both(what, site, where, status, said):
    """Both verifiers' verdict on `where`, which is --store FILE or --export DIR."""
    ours = site.cli(None, "audit", "verify", *where, "--vkey", key_of(site))
    other = second(*(where if where[0] == "--store" else where[1:]), "--vkey", key_of(site))
    for name, done in (("bulkhead", ours), ("the second verifier", other)):
        equal(f"{what}, {name}: {done.stdout}{done.stderr}", done.returncode, status)
        contains(f"{what}, {name}", done.stdout, said)


def damages(store):
    """Copies of a store, each damaged in another way, with what was done."""
    whole, at = store.read_bytes(), store.with_name("damaged.db")
    pages = range(4096, len(whole), 4096)
    ways = [("random bytes", os.urandom(len(whole))), ("empty", b""), ("half", whole[:len(whole) // 2]), ("a page short", whole[:-4096])]
    ways += [(f"page {page // 4096 + 1}, bit {bit}", whole[:page] + bytes([whole[page] ^ 1 << bit]) + whole[page + 1:])
             for page in pages for bit in [page // 4096 % 2 * 5]]
    for what, data in ways:
        at.write_bytes(data)
        yield what, at


@tap.test()
def damaged(site):
    "a store whose file is damaged is status 1 with the file's name, by both verifiers; one that is not there is 5"
    busy(site)
    store, found = copy_of(site), 0
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("VACUUM")  # no page is free
    for what, place in damages(store):
        check_both(what, site, ("--store", str(place)), 1, "damaged.db: ")
        found += 1
    equal(f"many: {found}", found > 20, True)
    place.write_bytes(b"")
    place.unlink()
    for done in (verify(site, place), second("--store", place, "--vkey", key_of(site))):
        equal(f"not there: {done.stdout}{done.stderr}", done.returncode, 5)
        contains("which", done.stdout + done.stderr, "damaged.db")


@tap.test()
def rows_changed(site):
    "a changed, swapped, missing or added row of names, jobs and texts is named, by both verifiers"
    busy(site)
    check_both("untouched", site, ("--store", str(copy_of(site))), 0, "whole")
    for what, change, said in TAMPERED:
        store = copy_of(site)
        with sqlite3.connect(store) as db:
            equal(what, db.execute(change).rowcount > 0, True)
        check_both(what, site, ("--store", str(store)), 1, said)


# Rows of documents by their kind, in the order of enum bh_document_kind of src/ports/store.h.
DOCUMENT_KINDS = ("account", "passkey", "session", "lockout", "stream", "receipt", "carried", "carried_tenant", "failure", "image", "notices", "revision")
BOUND_DOCUMENTS = {"receipt": 5, "image": 9, "revision": 11}
BOUND_META = ("site", "site_revision")
OTHER = {"INTEGER": "{0} + 1000", "TEXT": "CASE WHEN {0} GLOB '[0-9]*' THEN '9' || substr({0}, 2) ELSE {0} || 'x' END", "BLOB": "CAST(x'5e' || substr({0}, 2) AS BLOB)"}


def not_compared():
    """The columns that docs/audit.md lists, each with a reason."""
    rows = re.findall(r"^\| (`.+?`) \| (.+) \|$", (ROOT / "docs/audit.md").read_text().split("| column | why it is not compared |")[1], re.M)
    assert all(len(reason) > 15 for _, reason in rows), rows
    return {name for names, _ in rows for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", names)}


def edits(database, listed):
    """(what, the statement) for each column of the store that is not listed; a part of it where rows are of kinds."""
    for table, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        columns = database.execute(f"PRAGMA table_info({table})").fetchall()
        pk = ", ".join(name for _, name, *_, place in columns if place)
        key = f"({pk}) = (SELECT {pk} FROM {table} {{0}} ORDER BY {pk} LIMIT 1)"
        parts = {"": ""}
        if table == "documents":
            parts = {f" of a {kind}": f"WHERE kind = {number}" for kind, number in BOUND_DOCUMENTS.items() if kind != "image"}
        elif table == "meta":
            parts = {f" of {name}": f"WHERE key = '{name}'" for name in BOUND_META}
        for part, where in parts.items():
            for _, name, kind, *_ in columns:
                if f"{table}.{name}" not in listed:
                    change = OTHER[kind].format(name) if (table, name) != ("documents", "value") else "replace(value, '\"digest\":\"', '\"digest\":\"0')"
                    yield f"{table}.{name}{part}", f"UPDATE {table} SET {name} = {change} WHERE " + key.format(where)


def second_finds(store, keys):
    try:
        return v.verify_store(store, keys)[2].differing
    except v.Bad as bad:
        return str(bad)


@tap.test()
def every_column(site):
    "an edit of any column of the store is found by both verifiers, or docs/audit.md says why not; a new column must be decided"
    busy(site)
    site.client("alice").post("/v1/tokens", {"scopes": "job.view", "note": "a note"})
    listed = not_compared()
    header = (ROOT / "src/ports/store.h").read_text().split("enum bh_document_kind {")[1].split("BH_DOCUMENT_KINDS")[0]
    equal("kinds of documents", tuple(re.findall(r"BH_DOCUMENT_(\w+)", header.lower().replace("bh_document_", "BH_DOCUMENT_"))), DOCUMENT_KINDS)
    equal("listed kinds", {name for name in listed if name.startswith("documents.")}, {f"documents.{kind}" for kind in DOCUMENT_KINDS if kind not in BOUND_DOCUMENTS})
    store = copy_of(site)
    with contextlib.closing(sqlite3.connect(store)) as db:
        columns = {f"{table}.{row[1]}" for table, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'") for row in db.execute(f"PRAGMA table_info({table})")}
        known = {f"meta.{key.split('.')[0]}" for key, in db.execute("SELECT key FROM meta")} - {f"meta.{key}" for key in BOUND_META}
        wanted = list(edits(db, listed))
    assert known <= listed, known - listed
    stale = {name for name in listed if not name.startswith(("documents.", "meta."))} - columns
    equal("listed, and no column any more", stale, set())
    keys, changed = v.parse_vkeys((site.dir / "state/audit.vkey").read_text()), site.dir / "changed.db"
    for what, change in wanted:
        for beside in ("", "-wal", "-shm"):
            pathlib.Path(f"{changed}{beside}").unlink(missing_ok=True)
        shutil.copy(store, changed)
        with contextlib.closing(sqlite3.connect(changed, isolation_level=None)) as db:
            equal(f"{what}: {change}", db.execute(change).rowcount, 1)
        done = verify(site, changed)
        equal(f"{what}, after {change}: {done.stdout}{done.stderr}", done.returncode, 1)
        assert second_finds(changed, keys), f"{what}, the second verifier, after {change}"


@tap.test()
def tokens_bound(site):
    "the record of a token says whose it is, what it may do and until when; another row of it is named by both verifiers"
    made = site.client().post("/v1/tokens", {"principal": "alice", "scopes": "job.view job.submit", "lifetime": "1h", "note": "for-the-nightly"})
    gone = site.client("alice").post("/v1/tokens", {})
    site.cli("alice", "token", "revoke", gone["id"], check=0)
    record = json.loads(site.cli("dave", "audit", "search", "--verb", "token.create", "--all", "-o", "json", check=0).stdout)["items"][0]
    alice = next(r["actor"]["id"] for r in site.leaves() if r["verb"] == "token.revoke")
    equal("record", {key: record["event"]["token"][key] for key in ("principal", "scopes")}, {"principal": alice, "scopes": "job.view job.submit"})
    equal("what for", record["note"], "for-the-nightly")
    assert "for-the-nightly" not in str(site.leaves()), "which is sealed"
    check_both("untouched", site, ("--store", str(copy_of(site))), 0, "tokens: 2")
    for change, said in (("principal_id = principal_id + 1", "its owner, scopes or end"), ("scopes = ''", "its owner, scopes or end"),
                         ("expires_ns = expires_ns + 1", "its owner, scopes or end"), ("revoked = 1", "revoked in the table"),
                         ("revoked = 0", "its row does not say so"), ("secret = zeroblob(32)", "no record made it")):
        store = copy_of(site)
        with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as db:
            equal(change, db.execute(f"UPDATE tokens SET {change} WHERE id = ?", ((gone if change == "revoked = 0" else made)["id"],)).rowcount, 1)
        check_both(change, site, ("--store", str(store)), 1, said)


@tap.test(daemon_conf="audit_retention = 1s\nsnapshot_every = 100")
def rows_of_pruned(site):
    "what pruned records said of tokens, keys, jobs, documents and texts is carried on, over two prunings: an edit of their rows is named"
    busy(site)
    erin, alice = site.client("erin"), site.client("alice")
    gone = alice.post("/v1/tokens", {"note": "gone"})
    good = alice.post("/v1/tokens", {"note": "good"})
    site.cli("alice", "token", "revoke", gone["id"], check=0)
    for part in range(2):
        for number in range(300):
            erin.post("/v1/tokens", {"note": str(number)})
        size = site.record_count()
        site.until(lambda size=size: erin.get("/v1/checkpoints")["items"][-1]["size"] >= size, what="a checkpoint")
        time.sleep(1.1)
        done = site.cli("erin", "audit", "prune", str(open_folder(site) / f"part{part}"), "--vkey", key_of(site), check=0)
        contains("done", done.stdout, f"the log begins with record {256 * (part + 1)}")
        size = site.record_count()
        site.until(lambda size=size: erin.get("/v1/checkpoints")["items"][-1]["size"] >= size, what="a checkpoint")
    done = verify(site, copy_of(site))
    assert done.returncode == 0 and "not bound" not in done.stdout, done.stdout
    check_both("untouched", site, ("--store", str(copy_of(site))), 0, "tokens: 602")
    site.cli("erin", "audit", "export", str(open_folder(site) / "later"), "--vkey", key_of(site), check=0)
    check_both("exported", site, ("--export", str(open_folder(site) / "later")), 0, "jobs: 4")
    for change, said in ((f"UPDATE tokens SET revoked = 0 WHERE id = '{gone['id']}'", "its row does not say so"),
                         (f"UPDATE tokens SET scopes = 'site.apply' WHERE id = '{good['id']}'", "its owner, scopes or end"),
                         (f"DELETE FROM tokens WHERE id = '{good['id']}'", "is missing in the table"),
                         ("INSERT INTO tokens SELECT 'abcdefghjkmn', randomblob(32), principal_id, scopes, note, created_ns, expires_ns, 0, 0 FROM tokens LIMIT 1", "no record made it"),
                         ("DELETE FROM keys WHERE id = (SELECT max(id) FROM keys)", "is missing in the table"),
                         ("INSERT INTO keys SELECT 99, kind, tenant_id, month, parent, created_ns, 0, wrapped FROM keys WHERE id = 1", "no record made it"),
                         ("UPDATE keys SET tenant_id = tenant_id + 1 WHERE id = (SELECT max(id) FROM keys)", "it is not the one"),
                         ("UPDATE jobs SET count = count + 1 WHERE job = 1", "job 1: its count"), ("UPDATE jobs SET reason = 'killed' WHERE job = 1", "job 1: its cause"),
                         ("UPDATE jobs SET node = 'other' WHERE job = 1", "job 1: its node"), ("UPDATE jobs SET started_ns = started_ns - 1 WHERE job = 1", "job 1: its start"),
                         ("UPDATE jobs SET priority = priority + 1 WHERE job = 1", "job 1: its priority"), ("DELETE FROM jobs WHERE job = 1", "job 1 is missing"),
                         ("UPDATE texts SET text = text || ' ' WHERE digest = (SELECT spec FROM jobs WHERE job = 1)", "does not have the digest"),
                         ("DELETE FROM texts WHERE digest = (SELECT spec FROM jobs WHERE job = 1)", "is missing, and no record erased it"),
                         ("UPDATE documents SET principal_id = 0, value = replace(value, '\"digest\":\"', '\"digest\":\"0') WHERE kind = 11", "")):
        store = copy_of(site)
        with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as db:
            assert db.execute(change).rowcount > 0, change
        check_both(change, site, ("--store", str(store)), 1, said)


@tap.test()
def many_names(site):
    "a site file that brings more names than one record takes is a revision by the number of its own record"
    line = "  - {name: erin, uid: 20005}\n"
    site.apply(tap.SITE.replace(line, line + "".join(f"  - {{name: guest{number}, uid: {21000 + number}}}\n" for number in range(12))))
    last = [r["seq"] for r in site.leaves() if r["verb"] == "site.apply"][-1]
    assert any(r["verb"] == "names.give" for r in site.leaves(last - 3)), "they have records of their own"
    with contextlib.closing(sqlite3.connect(copy_of(site))) as db:
        equal("revision", db.execute("SELECT value FROM meta WHERE key = 'site_revision'").fetchone()[0], str(last))
    check_both("a site of many names", site, ("--store", str(copy_of(site))), 0, "documents: 2")


def put_back(state, kept):
    for name in ("bulkhead.db-wal", "bulkhead.db-shm"):
        (state / name).unlink(missing_ok=True)
    shutil.copy(kept, state / "bulkhead.db")


@tap.test()
def rows_exported(site):
    "an export carries names, jobs and texts; one of a store whose rows were changed shows it, in both verifiers"
    busy(site)
    place, state = open_folder(site), site.dir / "state"
    site.run("true")  # so that the four jobs ended before the last record that is signed
    busy(site)
    site.cli("erin", "audit", "export", str(place / "good"), "--vkey", key_of(site), check=0)
    names = [json.loads(line) for line in (place / "good/names").read_text().splitlines()]
    assert {"alice", "root"} <= {row["name"] for row in names if row["kind"] == "principal"}, names
    check_both("good", site, ("--export", str(place / "good")), 0, "names: ")
    shown = json.loads(site.cli(None, "audit", "show", "3", "--export", str(place / "good"), "-o", "json", check=0).stdout)
    equal("a record of it", shown, site.leaves(2)[0])
    contains("in words", site.cli(None, "audit", "show", "3", "--export", str(place / "good"), check=0).stdout.lower(), shown["verb"])
    site.cli(None, "audit", "show", "99999", "--export", str(place / "good"), check=5)
    whole = (place / "good/names").read_text()
    (place / "good/names").write_text("".join(json.dumps({"erased_by": 1000000, "id": row["id"], "kind": row["kind"], "name": "mallory"} if row["name"] == "alice" else row) + "\n" for row in names))
    check_both("erased later, as its row says, with a name", site, ("--export", str(place / "good")), 1, "as its row says, which has a name")
    (place / "good/names").write_text(whole)
    (place / "good/names").rename(place / "names")
    check_missing = [site.cli(None, "audit", "verify", "--export", str(place / "good"), "--vkey", key_of(site)), second(place / "good", "--vkey", key_of(site))]
    equal("without names", [done.returncode for done in check_missing], [5, 5])
    site.stop(site.daemon)
    kept = site.dir / "kept.db"
    shutil.copy(state / "bulkhead.db", kept)
    chosen = ("two names swapped", "a job of another principal", "a job that exited otherwise", "a text changed", "a text that is gone")
    for number, (what, change, said) in enumerate(row for row in TAMPERED if row[0] in chosen):
        put_back(state, kept)
        with contextlib.closing(sqlite3.connect(state / "bulkhead.db", isolation_level=None)) as db:
            db.execute(change)
        site.start_daemon()
        site.until(lambda: site.client("erin").get("/v1/log/checkpoint"), what="a checkpoint")
        done = site.cli("erin", "audit", "export", str(place / f"bad{number}"), "--vkey", key_of(site))
        equal(f"{what}: {done.stdout}{done.stderr}", done.returncode, 1)
        check_both(what, site, ("--export", str(place / f"bad{number}")), 1, said)
        equal(f"{what}, through the API", site.cli("erin", "audit", "verify", "--vkey", key_of(site)).returncode, 1)
        site.stop(site.daemon)
        (state / "audit.signed").write_text("0\n")  # the next copy is of before
    put_back(state, kept)
    site.start_daemon()


@tap.test()
def searched(site):
    "audit search finds by verb, person, tenant, object, decision and time; others' records stay hidden"
    busy(site)
    found = json.loads(site.cli("dave", "audit", "search", "--verb", "job.submit", "--all", "-o", "json", check=0).stdout)["items"]
    assert found and all(r["verb"] == "job.submit" for r in found), found
    denied = json.loads(site.cli("dave", "audit", "search", "--decision", "deny", "--all", "-o", "json", check=0).stdout)["items"]
    equal("the denied one", [(r["actor"]["name"], r["verb"]) for r in denied], [("alice", "job.submit")])
    about = json.loads(site.cli("dave", "audit", "search", "--object", "job/1", "--all", "-o", "json", check=0).stdout)["items"]
    changed = [r for r in about if 1 in [job["job"] for job in r.get("jobs", [])]]
    assert changed and all(r["object"] == {"id": 1, "type": "job"} or r in changed for r in about), about
    assert any(r["object"]["type"] != "job" and r in changed for r in about), about
    mine = json.loads(site.cli("alice", "audit", "search", "--actor", "alice", "--since", "1h", "--all", "-o", "json", check=0).stdout)["items"]
    assert mine and all(r["tenant"].startswith("acme") for r in mine), mine
    equal("none yet to come", json.loads(site.cli("dave", "audit", "search", "--since", "2399-01-01T00:00:00Z", "-o", "json", check=0).stdout)["items"], [])
    every = [leaf["seq"] for leaf in site.leaves()]
    for verb in sorted({leaf["verb"] for leaf in site.leaves()}):
        assert json.loads(site.cli("dave", "audit", "search", "--verb", verb, "-o", "json", check=0).stdout)["items"], verb
    for kind in sorted({leaf["obj"]["type"] for leaf in site.leaves() if "obj" in leaf}):
        assert json.loads(site.cli("dave", "audit", "search", "--object", kind, "-o", "json", check=0).stdout)["items"], kind
    first = site.cli("dave", "audit", "show", "0", check=0).stdout
    contains("record 0 as any other", first, "daemon.start")
    assert "Leaf:" not in first, first
    equal("of another's", site.cli("alice", "audit", "show", "0").returncode, 5)
    contains("a number that none has", site.cli("dave", "audit", "show", "99999", check=5).stderr, "audit tail shows the newest")
    contains("a verb that none has", site.cli("dave", "audit", "search", "--verb", "job.sumbit", check=3).stderr, "did you mean job.submit?")
    part = site.cli("alice", "audit", "search", "--verb", "job.submit", "-n", "1", check=0).stderr
    contains("a part", part, "1 shown, there may be more; --all shows all")
    for what, words in (("search", ("search", "--all")), ("search since", ("search", "--since", "1h", "--all")), ("tail", ("tail",)), ("tail --all", ("tail", "--all"))):
        shown = [r["seq"] for r in json.loads(site.cli("dave", "audit", *words, "-o", "json", check=0).stdout)["items"]]
        equal(f"{what}: oldest first", shown, sorted(shown))
        assert shown[-1] >= every[-1] and (words == ("tail",) or shown[:5] == every[:5]), (what, shown, every)
    pages, after = [], None
    while after or not pages:
        page = json.loads(site.cli("dave", "audit", "search", "--verb", "job.submit", "--limit", "2", *(("--after", str(after)) if after else ()), "-o", "json", check=0).stdout)
        pages, after = pages + [r["seq"] for r in page["items"]], page.get("next")
    equal("page by page", pages, [r["seq"] for r in found])
    site.cli("alice", "audit", "search", "--tenant", "nobody/here", check=5)
    site.cli("dave", "audit", "search", "--since", "tomorrow", check=3)


@tap.test()
def nobodys(site):
    "credentials of no known user are counted, those with a token's id as tried at that token"
    made = site.client("alice").post("/v1/tokens", {})
    asked = site.leaves()[-1]["obj"]
    wrong = made["token"][:20] + ("B" if made["token"][20] == "A" else "A") + made["token"][21:]
    for text, times in ((wrong, 4), ("nonsense", 3)):
        for _ in range(times):
            status, *_ = site.client("bob").exchange("GET", "/v1/jobs", headers={"Authorization": f"Bearer {text}"})
            equal(text, status, 401)
    site.stop(site.daemon)  # what was counted is recorded by a clean stop at the latest
    site.start_daemon()
    told = [r for r in site.leaves() if r["verb"] == "sign_in.refused"]
    assert not any(r.get("actor") or r.get("dec", {}).get("allow") for r in told), told
    equal("at the token", sum(r.get("count", 1) for r in told if r.get("obj") == asked), 4)
    equal("at none", sum(r.get("count", 1) for r in told if "obj" not in r), 3)


@tap.test()
def nothing_secret(site):
    "leaves hold ids, integers and digests only: no name, command or path of a person"
    site.run("sh", "-c", "echo very-secret-word", name="secret-name", env=["SECRET=env-word"])
    text = str(site.leaves())
    for word in ("very-secret-word", "secret-name", "env-word", "alice", "acme", "/bin"):
        assert word not in text, word


if __name__ == "__main__":
    tap.main()
