#!/usr/bin/env python3
"""Two jobs of one tenant pass each other what is open: descriptors of the driver's files, over a socket in a
folder that both mount.  A job that has another lease's files is ended, and no other job is affected."""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from tap import contains, equal

EVIL, ANN = "acme/vision/batch", "acme/speech/asr"
MEMORY, VRAM = "/run/bulkhead-sim/view/memory", "/run/bulkhead-sim/vram/0"

# Passes its open files to each client that connects, and stays until there is a file.
GIVES = f"""
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind("FOLDER/socket"); os.chmod("FOLDER/socket", 0o777); s.listen()
c, _ = s.accept()
socket.send_fds(c, [b"x"], [os.open("{MEMORY}", os.O_RDONLY), os.open("{VRAM}", os.O_RDWR)])
print("gave", flush=True)
while not os.path.exists("FOLDER/end"):
    time.sleep(0.05)
"""
# Takes it, and does with it what the test says, each step when there is a file of that name.
TAKES = """
import mmap, os, socket, time
def await_file(name):
    while not os.path.exists("FOLDER/" + name):
        time.sleep(0.05)
s = socket.socket(socket.AF_UNIX)
await_file("socket")
while True:
    try:
        s.connect("FOLDER/socket")
        break
    except OSError:  # not yet listened to, or not yet for all
        time.sleep(0.05)
if TAKE:
    _, fds, _, _ = socket.recv_fds(s, 10, 8)
print("has it", flush=True)
await_file("map")
kept = mmap.mmap(fds[0], 1 << 20, mmap.MAP_SHARED, mmap.PROT_READ)
print("mapped", flush=True)
while True:
    if b"SECRET" in os.pread(fds[1], 1 << 20, 0):
        print("read it", flush=True)
    time.sleep(0.05)
"""
WRITES = f"""
import os, time
fd = os.open("{VRAM}", os.O_RDWR)
while True:
    os.pwrite(fd, b"SECRET", 4096)
    time.sleep(0.05)
"""

OWN = """
import os, socket, time
a, b = socket.socketpair()
print("passes", flush=True)
while True:
    socket.send_fds(a, [b"x"], [0])
    time.sleep(0.005)
    for fd in socket.recv_fds(b, 10, 8)[1]:
        os.close(fd)
    time.sleep(0.005)
"""
TWO, ROOTS = "2x H100-80GB", "mount_roots = /tmp\n"


def folder(site):
    share = site.dir / "share"
    share.mkdir()
    os.chown(share, 20001, 20001)
    site.apply(tap.SITE + f"\nmounts:\n  - {{path: {share}, tenant: acme/vision, write: true}}\n")
    return share


def start(site, share, script, sku):
    text = script.replace("FOLDER", str(share))
    job = site.submit("python3", "-c", text, sku=sku, tenant=EVIL, client=site.client("alice"),
                      mounts=[{"source": str(share), "write": True}])
    site.await_state(job, "running")
    return job


def pass_on(site, sku, take=True):
    """(share, who gave, who has): two running jobs, the one with descriptors of the other's partition."""
    share = folder(site)
    giver = start(site, share, GIVES, sku)
    taker = start(site, share, TAKES.replace("TAKE", str(take)), "small")
    site.until(lambda: "has it" in site.log(taker), what="descriptors")
    site.until(lambda: "gave" in site.log(giver), what="giving")
    return share, giver, taker


def maps(site, share, taker, by_log=True):
    (share / "map").touch()
    if not by_log: # no process is left to answer
        time.sleep(1)
        return
    site.until(lambda: "mapped" in site.log(taker) or site.job(taker)["state"] == "failed", what="a mapping")


def ends_alone(site, taker, told=True):
    """It is ended for what it has, which is on record; nothing is fenced."""
    end = site.await_state(taker, "failed", "completed", "cancelled")
    equal("end", (end["state"], end["cause"], site.log(taker)[-300:] if end["cause"] == "exited" else ""), ("failed", "isolation", ""))
    contains("why", end["why"]["sentence"], "which it has no lease on")
    site.until(lambda: not told or any(r["verb"] == "isolation.not_isolated" for r in site.records()), what="its record")
    nodes = json.loads(site.cli("erin", "node", "-o", "json", check=0).stdout)["items"]
    assert all(n["isolation"] in ("verified", "untried") for n in nodes), nodes
    equal("fenced", [g["fenced"] for g in site.client().get("/v1/gpus")["items"] if g.get("fenced")], [])
    log = (site.dir / "node.log").read_text()
    equal("fences", log.count("isolation check failed"), 0)
    return end


@tap.test(topology=TWO, node_conf=ROOTS)
def of_a_running_job(site):
    """a job that maps what another of its tenant's was lent is ended with the cause isolation, and its process
    and the partition are named; the one that it is of runs on verified, and nothing is fenced"""
    share, giver, taker = pass_on(site, "small")
    maps(site, share, taker)
    site.cli("erin", "verify", str(giver), check=0)
    end = ends_alone(site, taker)
    contains("why", end["why"]["sentence"], "uses partition")
    equal("giver", site.job(giver)["state"], "running")
    site.cli("erin", "verify", check=0)
    site.cli("erin", "verify", str(giver), check=0)
    (share / "end").touch()
    site.await_state(giver, "completed")


@tap.test(topology="1x H100-80GB", node_conf=ROOTS)
def of_nobodys_partition(site):
    "a mapping of a partition that no lease has fences nothing: the node's own check is made when it is gone"
    share, giver, taker = pass_on(site, "small")
    (share / "end").touch()
    site.await_state(giver, "completed")
    maps(site, share, taker)
    site.cli("erin", "verify", check=0)
    ends_alone(site, taker)


@tap.test(topology="1x H100-80GB", node_conf=ROOTS + "verify_at_start = 1\nverify_sample = 0\n")
def at_a_start_of_the_node(site):
    "a node that starts beside such a job ends it before its first check counts: no GPU is fenced for a moment"
    share, giver, taker = pass_on(site, "small")
    (share / "end").touch()
    site.await_state(giver, "completed")
    site.kill(site.node)
    maps(site, share, taker, by_log=False)
    site.start_node()
    ends_alone(site, taker, told=False)
    equal("fences", (site.dir / "node.log").read_text().count("inconclusive: they are repeated"), 0)


def hand_over(site, share, giver):
    """The giver ends, and a job of another tenant gets its GPU; returns that one, which writes and runs."""
    (share / "end").touch()
    site.await_state(giver, "completed")
    ann = site.submit("python3", "-c", WRITES, sku="large", tenant=ANN, client=site.client("bob"))
    site.await_state(ann, "running")
    return ann


def runs_alone(site, ann, taker):
    """Who had what the other one was lent was gone by then, and has read nothing of it."""
    equal("the taker", site.job(taker)["state"], "failed")
    ends_alone(site, taker)
    assert "read it" not in site.log(taker), site.log(taker)
    site.cli("bob", "verify", str(ann), check=0)
    equal("ann", site.job(ann)["state"], "running")
    site.client("bob").post(f"/v1/jobs/{ann}/cancel")
    site.await_state(ann, "cancelled")


@tap.test(topology=TWO, node_conf=ROOTS)
def kept_open(site):
    """who keeps descriptors of a whole GPU when its job has ended is ended before another tenant's job has the GPU,
    and reads nothing of what that one writes"""
    share, giver, taker = pass_on(site, "large")
    ann = hand_over(site, share, giver)
    runs_alone(site, ann, taker)


@tap.test(topology=TWO, node_conf=ROOTS)
def kept_mapped(site):
    "who keeps a whole GPU mapped when its job has ended is ended, and the GPU goes to the next one"
    share, giver, taker = pass_on(site, "large")
    maps(site, share, taker)
    ann = hand_over(site, share, giver)
    runs_alone(site, ann, taker)


@tap.test(topology=TWO, node_conf=ROOTS)
def does_not_go(site):
    "while a process of it stays, no other job gets the GPU, which shows why; then the next job gets it"
    share, giver, taker = pass_on(site, "large")
    maps(site, share, taker)
    lease = site.job(taker)["members"][0]["lease"]
    frozen = [pathlib.Path(g, "freezer.state") for g in site.groups() if "/freezer/" in g and g.endswith(f"/bh-{lease}")]
    if not frozen:
        raise tap.Skip("what is frozen in control groups of version 2 can be killed")
    frozen[0].write_text("FROZEN")
    (share / "end").touch()
    site.await_state(giver, "completed")
    ann = site.submit("python3", "-c", WRITES, sku="large", tenant=ANN, client=site.client("bob"))
    site.until(lambda: "without a lease on it holds it" in site.cli("erin", "gpu", "-o", "wide", check=0).stdout, what="why")
    assert site.job(ann)["state"] in ("pending", "starting"), site.job(ann)["state"]
    contains("what bob sees", site.cli("bob", "gpu", "-o", "wide", check=0).stdout, "without a lease on it holds it")
    frozen[0].write_text("THAWED")
    site.await_state(ann, "running")
    runs_alone(site, ann, taker)
    site.until(lambda: "not lent it" not in site.cli("erin", "gpu", "-o", "wide", check=0).stdout, what="no trouble")


@tap.test(topology=TWO, node_conf=ROOTS)
def left_in_a_socket(site):
    "descriptors that lie in a socket until the GPU is another tenant's are found there"
    share, giver, taker = pass_on(site, "large", take=False)
    ann = hand_over(site, share, giver)
    runs_alone(site, ann, taker)


@tap.test(topology=TWO, node_conf=ROOTS)
def after_a_start_of_the_node(site):
    "a node that was started since knows nothing of who passed what, and looks"
    share, giver, taker = pass_on(site, "large")
    site.kill(site.node)
    site.start_node()
    ann = hand_over(site, share, giver)
    runs_alone(site, ann, taker)


@tap.test(topology=TWO, node_conf=ROOTS)
def nobody_else(site):
    "a job that has nothing of the GPU runs on, also one that shares the folder and passes descriptors of its own"
    share = folder(site)
    other = start(site, share, OWN, "small")
    giver = site.submit("sleep", "0.1", sku="large", tenant=EVIL, client=site.client("alice"),
                        mounts=[{"source": str(share), "write": True}])
    site.await_state(giver, "completed")
    ann = hand_over(site, share, giver)
    equal("the other", site.job(other)["state"], "running")
    equal("what it says", site.log(other), "passes\n")
    equal("ended", (site.dir / "node.log").read_text().count("isolation of a running lease"), 0)


if __name__ == "__main__":
    tap.main()
