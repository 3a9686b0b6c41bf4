#!/usr/bin/env python3
"""What the machine and its people do to the system: a state that is put back, and no CPU time."""
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import SLOW
from tap import equal


def put_back(site, backup):
    """As docs/install.md says: with the daemon stopped, the folder as it was."""
    site.stop(site.daemon)
    shutil.rmtree(site.dir / "state")
    subprocess.run(["cp", "-a", str(backup), str(site.dir / "state")], check=True)


@tap.test()
def restored(site):
    "after a backup is put back, a number that is given out again shows nothing of who had it before"
    equal("before", site.run("echo", "before")[1], "before\n")
    site.stop(site.daemon)
    backup = site.dir / "backup"
    subprocess.run(["cp", "-a", str(site.dir / "state"), str(backup)], check=True)
    for restart in range(2):  # the daemon may start again before the backup is put back, or not
        site.start_daemon()
        site.await_gpus()
        alice, bob = site.client("alice"), site.client("bob")
        lost = [site.submit("sh", "-c", "echo of alice; exec sleep 600", client=alice, sku=sku) for sku in ("small", "medium")]
        lost.append(site.submit("echo", "of alice", client=alice))
        for job in lost[:2]:
            site.await_state(job, "running")
            site.until(lambda: site.log(job), what="output")
        site.await_state(lost[2], "completed")
        put_back(site, backup)
        if restart:
            site.start_daemon()
            site.stop(site.daemon)
        site.start_daemon()
        site.await_gpus()
        held = site.submit("true", client=bob, tenant="acme/speech/asr", hold=True)
        equal("the number again", held, lost[0])
        equal("what has not begun", site.log(held), "")
        again = [site.submit("sh", "-c", "echo of bob; sleep 1", client=bob, tenant="acme/speech/asr") for _ in lost[1:]]
        equal("the numbers again", again, lost[1:])
        for job in again:
            done = site.await_state(job, "completed", "failed")
            equal(f"job {job}", (done["state"], site.log(job)), ("completed", "of bob\n"))
        equal("from before", site.log(1), "before\n")
        site.until(lambda: not site.processes("sleep"), what="the end of the lost ones")
        site.stop(site.daemon)
        put_back(site, backup)
    site.start_daemon()


def whose(site, job):
    """For each receipt of a job's piece from before it began, whose memory it had been."""
    return [[of.get("tenant", of.get("who")) for of in r["from"]] for r in site.client().get(f"/v1/receipts?job={job}")["items"]]


def start_all(site):
    site.start_node()
    site.start_daemon()
    site.await_gpus()


def stop_all(site):
    site.stop(site.daemon)
    site.stop(site.node)


def has_gpu(site, who, tenant):
    job = site.submit("true", client=site.client(who), tenant=tenant, sku="large")
    site.await_state(job, "completed")
    return job


def goes_on(site, held):
    site.client("alice").post(f"/v1/jobs/{held}/release")
    site.await_state(held, "completed")
    return whose(site, held)


@tap.test(topology="1x H100-80GB")
def lost_course(site):
    """a folder that is put back does not say whose GPU memory is: the node's, or the daemon's, or both; who gets
    it next has a receipt, also where the lost course knew better"""
    bob, unknown = ("bob", "acme/speech/asr"), [["unknown"]]
    for names in (("node",), ("node", "state"), ("state",)):
        has_gpu(site, *bob)
        held = site.submit("true", client=site.client("alice"), tenant="acme/vision/batch", sku="large", hold=True)
        stop_all(site)
        backup = site.dir / "backup"
        backup.mkdir()
        for name in names:
            subprocess.run(["cp", "-a", str(site.dir / name), str(backup / name)], check=True)
        start_all(site)
        equal(f"{names}: from bob to alice", goes_on(site, held), [["acme/speech/asr"]])
        stop_all(site)
        for name in names:
            shutil.rmtree(site.dir / name)
            shutil.move(backup / name, site.dir / name)
        backup.rmdir()
        start_all(site)
        if "state" in names:
            equal(f"{names}: to alice, once more", goes_on(site, held), unknown)
            equal(f"{names}: to bob", whose(site, has_gpu(site, *bob)), [["acme/vision/batch"]])
        else:
            equal(f"{names}: to bob", whose(site, has_gpu(site, *bob)), unknown)
    equal("his own", whose(site, has_gpu(site, *bob)), [])
    stop_all(site)
    reached = site.runs / "reached"
    reached.write_text(reached.read_text()[::-1].strip() + "\n")  # as of another boot
    start_all(site)
    equal("after the machine was restarted", whose(site, has_gpu(site, *bob)), unknown)


PUT_BACK = "the daemon knows of more than state_dir has: it was restored"


@tap.test(topology="1x H100-80GB")
def put_back_together(site):
    """the node's folder and its run folder, put back together after all programs were killed, do not say whose GPU
    memory is: the daemon knows that more was done; what is only killed, at any moment, forgets nothing"""
    has_gpu(site, "alice", "acme/vision/batch")
    held = has_gpu(site, "bob", "acme/speech/asr")
    equal("from alice to bob", whose(site, held), [["acme/vision/batch"]])
    stop_all(site)
    backup = site.dir / "backup"
    backup.mkdir()
    for folder in (site.dir / "node", site.runs):
        subprocess.run(["cp", "-a", str(folder), str(backup / folder.name)], check=True)
    start_all(site)
    for restart in range(3):  # killed, and nothing put back
        equal(f"bob's own, {restart}", whose(site, has_gpu(site, "bob", "acme/speech/asr")), [])
        site.kill(site.daemon)
        site.kill(site.node)
        start_all(site)
    equal("from bob to alice", whose(site, has_gpu(site, "alice", "acme/vision/batch")), [["acme/speech/asr"]])
    equal("nothing was said", site.bad_lines(PUT_BACK), [])
    site.kill(site.daemon)
    site.kill(site.node)
    shutil.rmtree(site.dir / "node")
    shutil.move(backup / "node", site.dir / "node")
    shutil.copy2(backup / site.runs.name / "reached", site.runs / "reached")  # nothing else of it is asked
    start_all(site)
    equal("alice's, to bob", whose(site, has_gpu(site, "bob", "acme/speech/asr")), [["unknown"]])
    equal("the node says why", len(site.bad_lines(PUT_BACK)), 1)
    equal("the daemon, too", len(site.bad_lines("its folder was restored")), 1)
    equal("his own", whose(site, has_gpu(site, "bob", "acme/speech/asr")), [])
    site.kill(site.daemon)
    site.kill(site.node)
    start_all(site)
    equal("once", whose(site, has_gpu(site, "bob", "acme/speech/asr")), [])


def top_weight(pid):
    """Of the process's topmost control group, against one that is not weighed."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        top = path.strip("/").split("/")[0]
        if "cpu" in controllers.split(",") and top:
            return int(pathlib.Path("/sys/fs/cgroup/cpu", top, "cpu.shares").read_text()) / 1024
        if number == "0" and top and pathlib.Path("/sys/fs/cgroup", top, "cpu.weight").exists():
            return int(pathlib.Path("/sys/fs/cgroup", top, "cpu.weight").read_text()) / 100
    return 1


HOGS, WATCHED_S = 8, int(os.environ.get("BULKHEAD_HOGS_S", "20"))
HOG = "for i in 1 2 3 4; do while :; do :; done & done; wait"


@tap.test(node_conf="offer_cpu_milli = 64000\nhealth_interval_ms = 200\nverify_at_start = 1\nverify_sample = 4\n")
def starved(site):
    "while tenants' jobs take all CPU time there is, nothing is fenced, nothing runs twice, and commands are answered"
    alice, bob = site.client("alice"), site.client("bob")
    site.apply(site.site_yaml.replace('cpu: "0.5"', 'cpu: "4"'))
    mine = dict(tenant="acme/vision/batch", client=alice)
    theirs = dict(tenant="acme/speech/asr", client=bob)
    hogs = [site.submit("sh", "-c", HOG, **(theirs if i % 4 == 0 else mine)) for i in range(HOGS)]
    for job in hogs:
        site.await_state(job, "running")
    steering = site.processes("bin/bulkhead-node") + site.processes("bin/bulkhead-gpu")
    jobs = [pid for pid in site.processes("while :") if "/bh-" in pathlib.Path(f"/proc/{pid}/cgroup").read_text()]
    equal("the programs weigh", {top_weight(pid) >= 1 for pid in steering}, {True})
    equal("all jobs together weigh half of one", {top_weight(pid) for pid in jobs}, {0.5})
    slowest, done, until = 0, [], time.monotonic() + WATCHED_S
    while time.monotonic() < until:
        began = time.monotonic()
        job = site.submit("sh", "-c", "echo ran", **mine)
        slowest = max(slowest, time.monotonic() - began)
        done.append(site.await_state(job, "completed"))
    print(f"# {len(done)} jobs beside {HOGS} hogs; the slowest command took {slowest * 1000:.0f} ms")
    equal("answered within 5 s", slowest < 5 * SLOW, True)
    for job in done:
        equal(f"job {job['id']}", (job["restarts"], site.log(job["id"])), (0, "ran\n"))
    equal("the hogs", [site.job(job)["state"] for job in hogs], ["running"] * HOGS)
    equal("fenced", [g["uuid"] for g in site.client().get("/v1/gpus")["items"] if g.get("fenced")], [])
    equal("a fence in the log", [r["verb"] for r in site.records() if r["verb"] == "node.health"], [])


if __name__ == "__main__":
    tap.main()
