#!/usr/bin/env python3
"""`bulkhead verify`, as its users see it, and what happens when a wall does not stand."""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import SLOW
from tap import contains, equal

WAIT = "trap 'exit 0' TERM; sleep 60 & wait"


@tap.test(topology="1x H100-80GB", node_conf="verify_at_start = 1\nverify_sample = 0\n")
def walls_hold(site):
    "an operator verifies the node, a developer only their own job; each is a record with its verdict"
    job = site.submit("sh", "-c", WAIT, grace="1s", client=site.client("alice"))
    site.await_state(job, "running")
    whole = site.cli("carol", "verify", check=4)
    contains("acme's operator is not the site's", whole.stderr, "isolation.verify")
    whole = site.cli("erin", "verify", check=0)
    contains("said", whole.stdout, "all isolation checks pass")
    wide = site.cli("erin", "verify", "all", "-o", "wide", check=0).stdout
    for name in ("io_uring", "memory_over", "device-fence", "namespaces"):
        contains("named", wide, name)
    own = site.cli("alice", "verify", str(job), check=0)
    contains("said", own.stdout, f"lease")
    site.cli("bob", "verify", str(job), check=5)
    equal("it runs on", site.job(job)["state"], "running")
    verbs = [(r["verb"], r.get("result", r.get("res"))) for r in site.records() if r["verb"].startswith("isolation.")]
    assert [v for v, _ in verbs].count("isolation.verdict") >= 4, verbs  # the start's, two, the job's


@tap.test(topology="1x H100-80GB", node_conf="verify_at_start = 1\nverify_sample = 2\n")
def sampled(site):
    "one in verify_sample starts is followed by a try"
    before = len([r for r in site.records() if r["verb"] == "isolation.verdict"])
    for _ in range(2):
        site.run("true")
    site.until(lambda: len([r for r in site.records() if r["verb"] == "isolation.verdict"]) > before, what="a verdict")


@tap.test(topology="1x H100-80GB", node_conf="verify_at_start = 1\nverify_sample = 0\n")
def broken_wall(site):
    "a wall that does not stand keeps the command from beginning and fences the GPU; the job waits, and runs when a verify held"
    # A device rule that was not ordered is put beside the job's own while its sandbox is made.
    parents = [pathlib.Path(p) for p in site.group_parents() if "/devices/" in p]
    if not parents:
        raise tap.Skip("the device fence of version 2 cannot be widened from outside")
    meddler = os.fork()
    if meddler == 0:
        while True:
            for group in parents[0].glob("bh-*/devices.allow"):
                try:
                    group.write_text("c 10:200 rwm")
                except OSError:
                    pass
    try:
        job = site.submit("echo", "began")
        site.until(lambda: site.bad_lines("GPU fenced"), what="the fence")
        site.await_state(job, "pending")
    finally:
        os.kill(meddler, 9)
        os.waitpid(meddler, 0)
    equal("output", site.log(job), "")
    contains("said why", site.bad_lines("an isolation check failed")[0], "device-fence: not ordered: c 10:200")
    site.cli("erin", "verify", check=0)
    site.await_state(job, "completed")
    equal("output", site.log(job), "began\n")


@tap.test(topology="1x H100-80GB", node_conf="verify_at_start = 1\nverify_sample = 0\n")
def neighbors(site):
    "a check of one job that fails ends that job, and keeps new ones off its GPU; who runs there runs on, and the node says so"
    parents = [pathlib.Path(p) for p in site.group_parents() if "/devices/" in p]
    if not parents:
        raise tap.Skip("the device fence of version 2 cannot be widened from outside")
    jobs = [site.submit("sh", "-c", WAIT, grace="1s", client=site.client(who), tenant=tenant)
            for who, tenant in (("alice", "acme/vision/batch"), ("bob", "acme/speech/asr"))]
    for job in jobs:
        site.await_state(job, "running")
    lease = site.job(jobs[0])["members"][0]["lease"]
    (parents[0] / f"bh-{lease}/devices.allow").write_text("c 10:200 rwm")
    said = site.cli("alice", "verify", str(jobs[0]), check=8)
    contains("said", said.stdout, "AN ISOLATION CHECK FAILS")
    contains("which", said.stdout, "device-fence")
    job = site.await_state(jobs[0], "failed")
    equal("cause", job["cause"], "isolation")
    later = site.submit("echo", "began", client=site.client("alice"), tenant="acme/vision/batch")
    site.until(lambda: site.client().get("/v1/nodes")["items"][0]["isolation"] == "partly", what="the node's state")
    wide = site.cli("erin", "node", "-o", "wide", check=0).stdout
    contains("the node", wide, "isolation partly (fenced GPUs: 1)")
    contains("whose", wide, f"job {jobs[0]}: device-fence")
    equal("the GPU", [g["fenced"] for g in site.client().get("/v1/gpus")["items"]], [True])
    for what in (("gpu",), ("describe", "gpu", "gpu0"), ("describe", "node", site.client().get("/v1/nodes")["items"][0]["name"])):
        contains(" ".join(what), site.cli("erin", *what, check=0).stdout, f"job {jobs[0]}: device-fence")
    equal("the neighbor", site.job(jobs[1])["state"], "running")
    equal("a new one", site.job(later)["state"], "pending")
    site.cli("erin", "verify", check=0)
    site.await_state(later, "completed")
    equal("the neighbor", site.job(jobs[1])["state"], "running")
    verbs = [r["verb"] for r in site.records() if r.get("object", {}).get("id") == jobs[0]]
    assert "isolation.not_isolated" in verbs, verbs


@tap.test(topology="1x H100-80GB", node_conf="verify_at_start = 1\nverify_sample = 0\nverify_retry_ms = 5000\n")
def unverified(site):
    "a job whose check is inconclusive is unverified at once, in ps and describe, and verified when it passes again"
    job = site.submit("sh", "-c", WAIT, grace="1s", client=site.client("alice"))
    site.await_state(job, "running")
    equal("grade", site.job(job)["grade"], "C")
    (site.sim / "control").write_text("nvmlDeviceGetComputeRunningProcesses_v3 fail=UNKNOWN\n")
    said = site.cli("alice", "verify", str(job), check=8)
    contains("said", said.stderr, "inconclusive")
    site.until(lambda: site.job(job)["grade"] == "C unverified", what="its grade")
    contains("ps", site.cli("alice", "ps", "-o", "wide", check=0).stdout, "C unverified")
    contains("describe", site.cli("alice", "describe", str(job), check=0).stdout, "unverified")
    (site.sim / "control").write_text("")
    site.until(lambda: site.job(job)["grade"] == "C", what="its grade again")
    equal("it runs on", site.job(job)["state"], "running")
    verbs = [r["verb"] for r in site.records() if r.get("object", {}).get("id") == job and r["verb"].startswith("isolation.")]
    equal("records", [v for v in verbs if v != "isolation.verify" and v != "isolation.verdict"], ["isolation.unverified", "isolation.verified"])


def read_lines(path):
    try:
        return path.read_text().split()
    except OSError:
        return []  # it has gone


def hold_probes(site):
    """A process that stops what runs in sandboxes, as a machine does that is much too busy."""
    meddler = os.fork()
    while meddler == 0:
        parents = [pathlib.Path(p) for p in site.group_parents()]  # made with the first sandbox
        for pid in {pid for p in parents for group in p.glob("bh-*/cgroup.procs") for pid in read_lines(group)}:
            try:
                os.kill(int(pid), signal.SIGSTOP)
            except OSError:
                pass
    return meddler


HURRIED = f"verify_sample = 0\nverify_timeout_ms = {round(1500 * SLOW)}\nverify_retry_ms = 500\nverify_retries = 100\n"


def inconclusive(site):
    "What an operator reads of a try for which there was no time."
    whole = site.cli("erin", "verify", check=8)
    contains("said", whole.stdout, "an isolation check is inconclusive")
    contains("and when", whole.stdout, "repeats it in ")
    contains("no wall is blamed", whole.stderr, "an isolation check is inconclusive")


def holds_again(site, job):
    "The node made another try unasked, and it held."
    site.await_state(job, "completed")
    site.until(lambda: site.client().get("/v1/nodes")["items"][0]["isolation"] == "verified", what="a try that held")
    equal("node", "isolation" in site.cli("erin", "node", check=0).stdout, False)
    equal("blamed", site.bad_lines("an isolation check failed"), [])
    assert site.bad_lines("were inconclusive"), "the log does not tell"


def fenced(site):
    return [gpu["fenced"] for gpu in site.client().get("/v1/gpus")["items"]]


@tap.test(topology="1x H100-80GB", node_conf="verify_at_start = 0\n" + HURRIED)
def no_time(site):
    """where no try has passed yet, one for which there was no time fences the node, says so and when the next is; the node
    tries again by itself, and jobs run when that held"""
    meddler = hold_probes(site)
    try:
        inconclusive(site)
        site.until(lambda: "isolation unfinished" in site.cli("erin", "node", check=0).stdout, what="the node's state")
        site.until(lambda: fenced(site) == [True], what="the fence")
        job = site.submit("echo", "began")
        site.until(lambda: site.job(job)["reason"] != "none", what="why it waits")
        equal("it waits", site.job(job)["state"], "pending")
    finally:
        os.kill(meddler, signal.SIGKILL)
        os.waitpid(meddler, 0)
    holds_again(site, job)


@tap.test(topology="1x H100-80GB", node_conf="verify_at_start = 1\n" + HURRIED)
def no_time_later(site):
    "where a try has passed, one for which there was no time fences nothing; it says when the next is, and that holds"
    meddler = hold_probes(site)
    try:
        inconclusive(site)
        equal("nothing is fenced", fenced(site), [False])
        job = site.submit("echo", "began")
    finally:
        os.kill(meddler, signal.SIGKILL)
        os.waitpid(meddler, 0)
    holds_again(site, job)


MANY_MOUNTS = """touch $1/seen && mkdir $1/m || exit
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    for k in 1 2 3 4 5 6 7 8; do mount -t tmpfs -o size=4k,mode=700 none $1/m || exit; done
done
mount --bind $1/seen $1/seen && exec "$2" --only mount_list --file="$1/seen"
"""


@tap.test(topology="1x H100-80GB")
def last_of_many_mounts(site):
    "the probe reads the list of mounts to its end, which is longer than a page"
    for mount in ("", "mount() { :; }\n"):
        place = site.dir / ("many" if not mount else "none")
        place.mkdir()
        said = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", mount + MANY_MOUNTS, "sh", place, site.program("bulkhead-probe")],
                              text=True, capture_output=True).stdout
        contains("its verdict", said, "mount_list held ENODATA" if mount else "mount_list breached")


if __name__ == "__main__":
    tap.main()
