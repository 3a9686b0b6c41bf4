#!/usr/bin/env python3
"""Files of the daemon and of the node that are damaged, gone or closed: what is said, and that it says what to do."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import DAEMON_UID
from tap import contains, equal

WAIT = ("sh", "-c", "echo ready; trap 'exit 0' TERM; sleep 600 & wait")


DAEMON_FILES = ("clock", "heard", "epochs", "device.key", "audit.vkey", "audit.signed", "bulkhead.db", "bulkhead.db-wal",
                "bulkhead.db.lock")
NODE_FILES = ("journal", "epochs", "lock")
# What has a file's place, and what it is called: a link by its own kind where links are not followed.
KINDS = {"FIFO": ("a FIFO",), "folder": ("a folder",), "socket": ("a socket",),
         "link to a FIFO": ("a FIFO", "a symbolic link")}


def lines(site, name, word):
    return [line for line in (site.dir / name).read_text().splitlines() if word in line]


def plant(at, kind):
    """What is no file, in the place of one."""
    if kind == "FIFO":
        os.mkfifo(at)
    elif kind == "folder":
        at.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(at))
    else:
        os.mkfifo(at.with_name("planted"))
        at.symlink_to("planted")


def uproot(at):
    (at.rmdir if at.is_dir() else at.unlink)()
    at.with_name("planted").unlink(missing_ok=True)


def refused_node(site):
    """The same of bulkhead-node."""
    site.start_node()
    site.until(lambda: site.node.poll() is not None, what="the end of bulkhead-node")
    equal("it is refused", site.node.poll() != 0, True)
    return lines(site, "node.log", "bulkhead-node: ")[-1]


def refused(site):
    """The last line of a bulkheadd that does not start."""
    site.start_daemon(wait=False)
    site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
    equal("it is refused", site.daemon.poll() != 0, True)
    return lines(site, "daemon.log", "bulkheadd: ")[-1]


@tap.test()
def next_steps(site):
    "a start that is refused for a file says what to do"
    site.announce("cannot continue")
    site.run("true")
    site.stop(site.daemon)
    state = site.dir / "state"
    for name, damage, why, do in (
            ("epochs", lambda at: at.write_text("0 x\n"), "line 1 of epochs is damaged", "put back the file epochs"),
            ("root.key", lambda at: os.chown(at, 0, 0), "Permission denied", "bulkheadd's account must be able to read the root key"),
            ("bulkhead.db", lambda at: at.write_bytes(os.urandom(65536)), "store: ", "is damaged: put back its newest copy"),
            ("bulkhead.db", lambda at: os.chown(at, 0, 0), "unable to open", "bulkheadd's account must be able to read and write")):
        at, kept = state / name, site.dir / "kept"
        shutil.copy2(at, kept)
        owner = at.stat()
        damage(at)
        said = refused(site)
        contains(f"{name}: why", said, why)
        contains(f"{name}: what to do", said, do)
        shutil.copy2(kept, at)
        os.chown(at, owner.st_uid, owner.st_gid)


def plant_and_start(site, at, start):
    """Each of what is no file, in the place of that one; what the start says of it."""
    kept = site.dir / "kept"
    exists = at.exists()
    if exists:
        at.rename(kept)
    for kind in KINDS:
        plant(at, kind)
        yield kind, start(site)
        uproot(at)
    if exists:
        kept.rename(at)


@tap.test()
def no_files(site):
    "what is no file in the place of one is refused at once, with its path, what it is and what to do"
    site.announce("cannot continue", "configuration refused")
    site.run("true")
    site.stop(site.daemon)
    site.stop(site.node)
    daemon = [site.dir / "bulkheadd.conf", *(site.dir / "state" / name for name in DAEMON_FILES)]
    node = [site.dir / "node.conf", site.dir / "run/reached", *(site.dir / "node" / name for name in NODE_FILES)]
    for files, start in ((daemon, refused), (node, refused_node)):
        for at in files:
            for kind, said in plant_and_start(site, at, start):
                equal(f"{at.name}, a {kind}: why: {said}",
                      any(f"{at} is {named} where a file is expected" in said for named in KINDS[kind]), True)
                equal(f"{at.name}, a {kind}: what to do", 'next=""' in said or "next=" not in said, False)
    for kind, said in plant_and_start(site, site.dir / "state/audit.key", refused):
        contains(f"audit.key, a {kind}: why", said, f"key file {site.dir}/state/audit.key is not a plain file")
    site.start_node()
    site.start_daemon()
    site.run("true")


@tap.test()
def no_forecast(site):
    "a forecast that is no file is left out, with a line in the log"
    site.stop(site.daemon)
    (site.dir / "state/forecast.bin").unlink()
    plant(site.dir / "state/forecast.bin", "FIFO")
    site.start_daemon()
    equal("a line", len(lines(site, "daemon.log", "state/forecast.bin is a FIFO where a file is expected")), 1)


@tap.test()
def epochs_of_the_node(site):
    "a node whose list of epochs is damaged or too long does not start, and says what to do"
    site.announce("cannot continue")
    site.stop(site.node)
    at = site.dir / "node/epochs"
    kept = at.read_text()
    for name, text in (("cut", kept[:-1]), ("empty", ""), ("no number", "0000000x\n"), ("one number alone", "1\n"),
                       ("33 epochs", "00000001\n" * 33), ("512 bytes", "0" * 512), ("600 bytes", kept + "x" * 600)):
        at.write_text(text)
        said = refused_node(site)
        contains(f"{name}: why", said, f"{at} is damaged: it lists no epochs")
        contains(f"{name}: what to do", said, "put it back from its copy; without one remove it")
    at.write_text("00000001\n" * 31 + kept)
    site.start_node()
    site.run("true")
    equal("replaced by the daemon's", at.read_text(), kept)


@tap.test()
def rows_gone(site):
    "a start on a store that lacks a row names the row and the way back; put back, it starts"
    site.announce("cannot continue")
    site.run("true")
    held = site.submit("true", hold=True)
    site.stop(site.daemon)
    store, kept = site.dir / "state/bulkhead.db", site.dir / "kept"
    shutil.copy2(store, kept)
    for change, lacks in ((f"delete from jobs where job = {held}", f"job {held}: its row is missing in the table jobs"),
                          ("delete from jobs where job = 1", "job 1: its row is missing in the table jobs"),
                          ("delete from records where seq = 5", "record 5: its row is missing in the table records"),
                          ("delete from names", "principal 1: its row is missing in the table names"),
                          ("delete from names where kind = 0 and id = 1", "tenant 1: its row is missing in the table names")):
        with contextlib.closing(sqlite3.connect(store)) as db, db:
            db.execute(change)
        said = refused(site)
        contains(f"{change}: which", said, f"the store lacks {lacks}")
        contains(f"{change}: the way back", said, "from a backup (docs/install.md)")
        for path in store.parent.glob("bulkhead.db-*"):
            path.unlink()
        shutil.copy2(kept, store)
        os.chown(store, DAEMON_UID, DAEMON_UID)
    site.start_daemon()
    equal("jobs", site.client().get("/v1/jobs")["total"], 2)


@tap.test()
def store_removed(site):
    "files of the store that are removed under bulkheadd: log, doctor and health say so, no change is accepted; moved back, or saved from /proc, nothing is lost"
    site.announce("the store's files were removed or replaced")
    site.run("true")
    store, log = site.dir / "state/bulkhead.db", site.dir / "state/bulkhead.db-wal"
    gone = "bulkhead.db was removed or replaced while it is in use: reads are served, changes are refused"
    store.rename(site.dir / "state/away")
    site.until(lambda: lines(site, "daemon.log", "removed or replaced"), what="a line in the log")
    contains("what to do", lines(site, "daemon.log", "removed or replaced")[0], "move it back, or copy it before bulkheadd ends")
    health = site.client().get("/healthz")
    equal("health", (health["status"], health["why"]), ("degraded", "the store's files were removed or replaced while they are in use"))
    contains("doctor", site.cli(None, "doctor", check=1).stdout, "fail    the store's files were removed or replaced")
    refusal = site.cli("alice", "submit", "--tenant", "acme/vision/batch", "--sku", "small", "--", "true", check=8).stderr
    contains("a change", refusal, gone)
    equal("a read", site.job(1)["state"], "completed")
    (site.dir / "state/away").rename(store)
    site.until(lambda: lines(site, "daemon.log", "are at their path again"), what="a line in the log")
    equal("health", site.client().get("/healthz"), {"status": "ok"})
    site.run("true")
    for path in (store, log):
        path.unlink()
    site.until(lambda: len(lines(site, "daemon.log", "removed or replaced")) == 2, what="a line in the log")
    os.kill(site.daemon.pid, signal.SIGSTOP)  # as docs/install.md says
    for entry in pathlib.Path(f"/proc/{site.daemon.pid}/fd").iterdir():
        name = os.readlink(entry).removesuffix(" (deleted)")
        if name in (str(store), str(log)) and not os.path.exists(name):
            shutil.copyfile(entry, name)
            os.chown(name, DAEMON_UID, DAEMON_UID)
    pathlib.Path(f"{store}-shm").unlink(missing_ok=True)
    site.kill(site.daemon)
    site.start_daemon()
    site.run("true")
    equal("jobs", site.client().get("/v1/jobs")["total"], 3)


@tap.test()
def epochs_gone(site):
    "epochs that are gone end what runs, and daemon and node say that it is so"
    job = site.submit(*WAIT)
    site.await_state(job, "running")
    site.stop(site.daemon)
    (site.dir / "state/epochs").unlink()
    site.start_daemon()
    site.until(lambda: site.job(job)["restarts"] == 1, what="the job again")
    equal("the daemon's log", len(lines(site, "daemon.log", "the epochs of the store are lost")), 1)
    equal("the node's log", len(lines(site, "node.log", "were restored or truncated")), 1)


@tap.test()
def node_cannot_write(site):
    "a node that cannot write down what the daemon says tells so once, and does not call it malformed"
    site.stop(site.daemon)
    (site.dir / "node/epochs.new").mkdir()  # what a full disk does to it
    site.start_daemon()
    site.until(lambda: lines(site, "node.log", "cannot be written to disk"), what="a line in the log")
    time.sleep(3)
    equal("once", len(lines(site, "node.log", "cannot be written to disk")), 1)
    equal("not malformed", lines(site, "node.log", "malformed frame"), [])
    (site.dir / "node/epochs.new").rmdir()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")


@tap.test()
def folder_of_a_job_gone(site):
    "what the node cannot do for a job names no folder of the node in the job's log"
    job = site.submit("sh", "-c", "echo ready; while [ ! -e /tmp/go ]; do sleep 0.1; done; sleep 1")
    site.await_state(job, "running")
    site.until(lambda: "ready" in site.cli("alice", "logs", str(job)).stdout, what="its output")
    for folder in (site.dir / "node/jobs").iterdir():
        shutil.rmtree(folder)
    site.client().post(f"/v1/jobs/{job}/cancel")
    site.until(lambda: site.job(job)["state"] in ("cancelled", "failed", "completed"), what="its end")
    log = site.cli("alice", "logs", str(job)).stdout
    equal("no folder", re.findall(re.escape(str(site.dir)), log), [])
    contains("what it was", log, "could not record how the job ended")


if __name__ == "__main__":
    tap.main()
