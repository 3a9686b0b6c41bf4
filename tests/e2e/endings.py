#!/usr/bin/env python3
"""How jobs end: by themselves, by a limit, by a person, with their node; and what is kept."""
import atexit
import fcntl
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import closing
import tap
from bulkhead import PATIENCE_S, UNTIL_GO, Refused, be_filtered, bounded
from tap import contains, equal

WAIT = ("sh", "-c", "echo ready; trap 'exit 0' TERM; sleep 600 & wait")


def ending(job):
    return job["state"], job["cause"], job["exit_status"]


def started(site, *command, **spec):
    job = site.submit(*(command or WAIT), **spec)
    site.await_state(job, "running")
    site.until(lambda: site.log(job), what="output")
    return job


@tap.test()
def own_end(site):
    "a job's exit status is passed on, a signal is 128 and its number, a missing program 127"
    for command, wanted in (("exit 0", ("completed", "exited", 0)), ("exit 7", ("failed", "exited", 7)),
                            ("kill -9 $$", ("failed", "signalled", 137)), ("exec /no/such", ("failed", "exited", 127))):
        equal(command, ending(site.run("sh", "-c", command)[0]), wanted)
    job, log = site.run("/no/such/program")
    equal("missing program", (job["state"], job["exit_status"]), ("failed", 127))
    contains("log", log, "/no/such/program")
    for command, wanted in (("echo out; echo err >&2; exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)):
        done = site.cli("alice", "run", "--tenant", "acme/vision/batch", "--sku", "small", "--", "sh", "-c", command)
        equal(f"bulkhead run {command}", done.returncode, wanted)
        if wanted == 0:
            contains("output", done.stdout, "out\nerr\n")


def with_node_conf(site, *lines):
    """Another node with these lines at the end of its node.conf; what was said before of a key is dropped."""
    keys = {line.split(" = ")[0] for line in lines}
    site.stop(site.node)
    conf = site.dir / "node.conf"
    kept = [line for line in conf.read_text().splitlines() if line.split(" = ")[0] not in keys]
    conf.write_text("\n".join((*kept, *lines, "")))
    site.start_node()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")


def told(site, cause, next_step, **spec):
    """A job that cannot be started: `why` and `describe` have the cause and what to do."""
    job = site.submit("true", **spec)
    site.await_state(job, "failed")
    equal("cause", site.job(job)["cause"], "start_failed")
    why = site.cli("alice", "why", str(job), check=0).stdout.splitlines()
    contains("why", why[0], "it has ended: failed (start_failed): ")
    contains("why", why[0], cause)
    contains("next", why[1], "next: ")
    contains("next", why[1], next_step)
    described = site.cli("alice", "describe", str(job), check=0).stdout
    contains("describe", described, cause)
    contains("describe", described, next_step)
    shown = json.loads(site.cli("alice", "why", str(job), "-o", "json", check=0).stdout)
    equal("JSON", (cause in shown["sentence"], next_step in shown["next"]), (True, True))
    audited(site, job)
    return job


def audited(site, job):
    """The log says that it failed, in the record that ended it and in the search's line of that."""
    record = next(r for r in site.leaves() for row in r.get("jobs", []) if (row["job"], row["state"]) == (job, "failed"))
    shown = json.loads(site.cli("dave", "audit", "show", str(record["seq"]), "-o", "json", check=0).stdout)
    assert re.match("failed|start_failed", shown.get("outcome", "")), (shown, record)
    lines = site.cli("dave", "audit", "search", "--verb", record["verb"], "--all", check=0).stdout.splitlines()
    contains("the search", next(line for line in lines if line.split()[0] == str(record["seq"])), shown["outcome"])


@tap.test(topology="1x H100-80GB")
def cannot_start(site):
    "why a job could not be started is told in one line with what to do, whatever was missing on its node"
    crun = site.dir / "crun"
    shutil.copy(shutil.which("crun"), crun)
    with_node_conf(site, f"runtime = {crun}", "image_roots = /tmp")
    told(site, f"open {site.dir}/nowhere", "bulkhead logs", image=f"oci:{site.dir}/nowhere:x")
    leaf, = (leaf for leaf in site.leaves() if leaf.get("verb") == "node.started")
    assert leaf["sealed"] and str(site.dir) not in json.dumps(leaf), leaf
    contains("the record shows it", site.cli("dave", "audit", "show", str(leaf["seq"])).stdout, f"open {site.dir}/nowhere")
    crun.unlink()
    told(site, f"{crun} is not on this node", "install crun")
    logs = str(site.dir / "logs")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=1,mode=750", "tmpfs", logs], check=True)
    try:
        with_node_conf(site, f"runtime = {shutil.which('crun')}")
        job = told(site, "No space left on device", "make room on the disks of node")
        equal("no output", site.log(job), "")
    finally:
        subprocess.run(["umount", logs], check=True)
    (site.dir / "no-folder").write_text("")
    with_node_conf(site, f"cdi_dir = {site.dir}/no-folder")
    job, log = site.run("echo", "ran")
    equal("without a CDI file", job["state"], "completed")
    contains("it is said", log, "bulkhead: the job has no CDI file: ")
    site.stop(site.daemon)
    site.start_daemon()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")
    contains("it stays", site.cli("alice", "why", "2", check=0).stdout, f"{crun} is not on this node")


@tap.test()
def out_of_memory(site):
    "a job that uses more than its memory ends as out_of_memory and ends no other job"
    beside = started(site)
    job, _ = site.run("sh", "-c", "tail /dev/zero", memory="32Mi")
    equal("ending", ending(job)[:2], ("failed", "out_of_memory"))
    equal("neighbour", site.job(beside)["state"], "running")


@tap.test()
def limits(site):
    "time, processes and output are limited as asked"
    job, _ = site.run(*WAIT, time_limit="1s", grace="1s")
    equal("time limit", ending(job)[:2], ("failed", "time_limit"))
    took = int(job["ended_ns"]) - int(job["started_ns"])
    assert took > 9e8, took
    job, log = site.run("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 100 & done; echo made; wait", pids=8)
    assert "made" not in log and job["state"] == "failed", (job["state"], log)
    job, log = site.run("sh", "-c", "yes 0123456789abcdef | head -c 3000000")
    assert (1 << 20) <= len(log) < (1 << 20) + 1000, len(log)
    contains("log", log[-300:], "log_cap_mib")


tap.tests[-1][1]["node_conf"] = "log_cap_mib = 1"


@tap.test()
def cancelled(site):
    "a pending, a held and a running job are cancelled; one that ignores SIGTERM is killed after its grace"
    full = [started(site, tenant="acme/vision/train") for _ in range(2)]
    pending = site.submit("true", tenant="acme/vision/train")
    held = site.submit("true", hold=True)
    for job in (pending, held, *full):
        site.client().post(f"/v1/jobs/{job}/cancel")
        site.await_state(job, "cancelled")
    stubborn = started(site, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done", grace="1s")
    began = time.monotonic()
    site.client().post(f"/v1/jobs/{stubborn}/cancel")
    equal("ending", ending(site.await_state(stubborn, "cancelled"))[:2], ("cancelled", "cancelled"))
    assert time.monotonic() - began > 0.8, time.monotonic() - began
    try:
        site.client().post(f"/v1/jobs/{stubborn}/cancel")
    except Refused as error:
        equal("cancelling what has ended", (error.status, error.code), (409, "conflict"))
    else:
        raise AssertionError("an ended job was cancelled")


def in_less_than_its_grace(site, job):
    """Of nine minutes, with a little for a machine that has much to do."""
    row = site.job(job)
    took = int(row["ended_ns"]) - int(row["submitted_ns"])
    assert took < 500 * 10**9, took


@tap.test()
def cancelled_at_once(site):
    "a job that is cancelled while it starts does not wait for its grace to be over"
    for wait in (0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05):
        job = site.submit("sleep", "1000", grace="9m")
        time.sleep(wait)
        site.client().post(f"/v1/jobs/{job}/cancel")
        site.await_state(job, "cancelled")
        in_less_than_its_grace(site, job)


@tap.test()
def killed_at_once(site):
    "cancel --now shortens the grace of what ignores SIGTERM, and of what stops already; a grace has a most"
    loop = ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
    for first in ((), ("cancel",)):
        job = started(site, *loop, grace="9m")
        for words in first:
            site.cli(None, words, str(job), check=0)
            why = site.cli(None, "why", str(job)).stdout
            assert re.search(r"it is stopping, and is killed in 8m\d", why), why
        site.cli(None, "cancel", "--now", str(job), check=0)
        equal("ending", ending(site.await_state(job, "cancelled"))[:2], ("cancelled", "cancelled"))
        in_less_than_its_grace(site, job)
    try:
        site.submit("true", grace="11m")
    except Refused as error:
        equal("too long", error.status, 400)
        contains("the number", str(error), "grace: 660 s is more than the 600 s")
    else:
        raise AssertionError("a grace of 11m was taken")


@tap.test()
def nothing_left(site):
    "after the end there is no process, no control group, no mount of a job, however it ended"
    jobs = [site.submit("sh", "-c", f"setsid sleep 100 & (sleep 100 &) ; exit {n}") for n in range(4)]
    jobs += [site.submit(*WAIT, time_limit="1s", grace="1s")]
    for job in jobs:
        site.await_state(job, "completed", "failed")
    site.until(lambda: not [p for p in site.processes() if p not in (site.daemon.pid, site.node.pid)
                            and not any(name in pathlib.Path(f"/proc/{p}/cmdline").read_text() for name in ("bulkhead-gpu", "bulkhead-signer"))],
               what="no process")
    site.until(lambda: not site.groups(), what="no control group")
    site.until(lambda: not closing.mounts_of_jobs(site), what="no mount")
    site.until(lambda: not list((site.dir / "node/jobs").iterdir()), what="no folder: it goes when bulkheadd has said that it knows")


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


@tap.test()
def lost_keeper(site):
    "a job whose keeper is killed is ended with all its processes, and begins again unless it said never"
    never = started(site, "sh", "-c", "echo start; setsid sleep 600 & sleep 600", on_preempt="never")
    kill_all(site.processes("bulkhead-keeper"))
    done = site.await_state(never, "completed", "failed")
    equal("end", (ending(done)[:2], done["restarts"]), (("failed", "keeper_lost"), 0))
    site.until(lambda: not site.groups(), what="no control group")
    job = started(site, "sh", "-c", f"echo start; {UNTIL_GO}; echo end")
    kill_all(site.processes("bulkhead-keeper"))
    site.until(lambda: site.log(job) == "start\nstart\n", what="its second start")
    site.let_go(job)
    done = site.await_state(job, "completed", "failed")
    equal("end", (done["state"], done["restarts"]), ("completed", 1))
    equal("output", site.log(job), "start\nstart\nend\n")


@tap.test()
def lost_machine(site):
    "after the node's machine was down its jobs are queued again and run to their end"
    site.announce("the signer is gone")
    job = started(site, "sh", "-c", f"echo start; {UNTIL_GO}; echo end")
    site.kill(site.node)
    kill_all(p for p in site.processes() if p != site.daemon.pid)
    site.age_boot()
    site.start_node()
    site.until(lambda: site.log(job) == "start\nstart\n", what="its second start")
    site.let_go(job)
    done = site.await_state(job, "completed", "failed")
    equal("end", (done["state"], done["restarts"]), ("completed", 1))
    equal("output", site.log(job), "start\nstart\nend\n")


@tap.test()
def followed(site):
    "a log is followed as server-sent events, byte for byte, until the end with its status"
    job = site.submit("sh", "-c", f"for i in 1 2 3 4 5; do echo line $i ä; {UNTIL_GO}; done; exit 3", hold=True)
    texts, ends = [], []
    client = site.client()

    def follow():
        connection = client.open()
        connection.request("GET", f"/v1/jobs/{job}/logs?follow=true")
        reply, event = connection.getresponse(), None
        equal("content type", reply.getheader("Content-Type"), "text/event-stream")
        for raw in reply:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
                (texts if event == "log" else ends).append(data)

    thread = threading.Thread(target=follow)
    thread.start()
    site.client().post(f"/v1/jobs/{job}/release")
    for i in range(1, 6):
        site.until(lambda i=i: f"line {i} ä\n" in "".join(t["text"] for t in texts), what=f"line {i}, while the job runs")
        site.let_go(job)
    thread.join(PATIENCE_S)
    equal("text", "".join(t["text"] for t in texts), "".join(f"line {i} ä\n" for i in range(1, 6)))
    equal("end", ends, [{"cause": "exited", "exit_status": 3, "state": "failed"}])


@tap.test()
def watched(site):
    "every change of a job's state is an event for those who may see the job, and for no other user"
    seen = {}

    def watch(person):
        connection = site.client(person).open()
        connection.request("GET", "/v1/watch")
        reply = connection.getresponse()
        seen[person] = []
        try:
            for raw in reply:
                if raw.startswith(b"data: "):
                    seen[person].append(json.loads(raw[6:]))
                    if seen[person][-1]["job"] == last:
                        return
        except (OSError, http.client.HTTPException):
            pass

    last = 3
    threads = [threading.Thread(target=watch, args=(p,), daemon=True) for p in ("alice", "carol")]
    for thread in threads:
        thread.start()
    site.until(lambda: len(seen) == 2, what="two watchers")
    for tenant in ("acme/vision/batch", "acme/speech/asr"):
        site.run("true", tenant=tenant)
    site.submit("true", hold=True)
    for thread in threads:
        thread.join(PATIENCE_S)
    equal("alice's", {e["job"] for e in seen["alice"]}, {1, 3})
    equal("carol's", {e["job"] for e in seen["carol"]}, {1, 2, 3})
    states = [e["state"] for e in seen["alice"] if e["job"] == 1]
    equal("states", (states[-1], "running" in states), ("completed", True))


@tap.test()
def same_key(site):
    "a submission that is repeated under its idempotency key is done once, also over a crash"
    spec = {"tenant": "acme/vision/batch", "sku": "small", "args": ["true"]}
    key = {"Idempotency-Key": "a key"}
    client = site.client("alice")
    for _ in range(2):
        assert "id" not in client.request("POST", "/v1/jobs?dry_run=true", spec, key), "a dry run ignores its key"
    first = client.request("POST", "/v1/jobs", spec, key)["id"]
    assert "id" not in client.request("POST", "/v1/jobs?dry_run=true", {**spec, "args": ["false"]}, key)
    equal("again", client.request("POST", "/v1/jobs", spec, key)["id"], first)
    site.kill(site.daemon)
    site.start_daemon()
    client = site.client("alice")
    equal("after a crash", client.request("POST", "/v1/jobs", spec, key)["id"], first)
    equal("jobs", site.client().get("/v1/jobs")["total"], 1)
    try:
        client.request("POST", "/v1/jobs", {**spec, "args": ["false"]}, key)
    except Refused as error:
        equal("another request", (error.status, error.code), (409, "conflict"))
    else:
        raise AssertionError("the key was taken for another request")
    other = site.client("erin").request("POST", "/v1/jobs", spec, key)["id"]
    assert other != first, "keys of different people met"


def second_node(site):
    """A node of another site with the same cgroup_parent."""
    place = site.dir / "second"
    for name in ("node", "run", "logs"):
        (place / name).mkdir(parents=True, exist_ok=True)
    conf = (site.dir / "node.conf").read_text()
    for key, value in (("state_dir", "node"), ("run_dir", "run"), ("socket", "node.sock"), ("log_dir", "logs"), ("cdi_dir", "cdi")):
        conf = re.sub(rf"(?m)^{key} = .*$", f"{key} = {place / value}", conf)
    (place / "node.conf").write_text(conf)
    os.chmod(place / "node.conf", 0o600)
    return subprocess.Popen([*bounded(), site.program("bulkhead-node"), "--config", str(place / "node.conf")], text=True,
                            preexec_fn=be_filtered,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


def refused(site):
    """What the second node said, and its status."""
    node = second_node(site)
    try:
        return node.communicate(timeout=PATIENCE_S)[0], node.returncode
    finally:
        node.kill()


def hold_as_another_account(site):
    """A process of another account that holds locks of all that it can open of the site's control group: its number."""
    mounts = (pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup"))
    group = next(mount / site.dir.name for mount in mounts if (mount / site.dir.name).exists())
    told, tells = os.pipe()
    holder = os.fork()
    if holder == 0:
        try:
            os.setuid(65534)
            for path in (group, *(entry for entry in group.iterdir() if entry.is_file())):
                if os.access(path, os.R_OK):
                    fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(tells, b"held")
            signal.pause()
        finally:
            os._exit(1)
    os.close(tells)
    equal("locked", os.read(told, 4), b"held")
    os.close(told)
    return holder


@tap.test()
def two_sites(site):
    """a site whose control group is another's refuses to start and says what to do, as long as the other's node or its
    jobs run; its jobs run on; an unused group is taken over; what another account locks is no claim"""
    job = started(site)
    for who in ("node runs", "jobs run there"):
        if who == "jobs run there":
            site.kill(site.node)
        said, status = refused(site)
        contains("its owner", said, f"control group /{site.dir.name} belongs to the site of {site.dir}/node, whose {who}")
        contains("what to do", said, f"cgroup_parent = /{site.dir.name}-2")
        assert status != 0, said
        assert site.processes("sleep 600"), f"the job was ended: {said}"
    holder = hold_as_another_account(site)
    try:
        site.start_node()
        site.client().post(f"/v1/jobs/{job}/cancel")
        site.await_state(job, "cancelled")
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    site.kill(site.node)
    node = second_node(site)
    try:
        for line in node.stdout:
            if "bulkhead-node: ready" in line or "belongs to" in line:
                break
        contains("it takes over", line, "bulkhead-node: ready")
    finally:
        node.terminate()
        node.communicate()
    site.start_node()
    equal("and the first again", site.run("true")[0]["state"], "completed")


if __name__ == "__main__":
    SHARED = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-endings-"))
atexit.register(shutil.rmtree, SHARED, ignore_errors=True)


def breakable():
    """A crun that starts nothing while the file `broken` stands beside it."""
    os.chmod(SHARED, 0o755)
    script = SHARED / "crun"
    script.write_text(f"""#!/bin/sh
case " $* " in *" run "*) [ -e {SHARED}/broken ] && {{ echo no sandbox today >&2; exit 1; }} ;; esac
exec {shutil.which("crun")} "$@"
""")
    script.chmod(0o755)
    return str(script)


def node_state(site):
    return site.cli(None, "get", "nodes", check=0).stdout


@tap.test(topology="2x H100-80GB", node_conf=f"runtime = {SHARED}/crun\nverify_at_start = 0\nverify_sample = 0\nverify_retry_ms = 1000\n")
def unstarted(site):
    """a node that starts nothing swallows no queue: two jobs that fail put it aside until its check passes"""
    (SHARED / "broken").touch()
    jobs = [site.submit("true", sku="large") for _ in range(5)]
    site.until(lambda: "unchecked" in node_state(site), what="the node set aside")
    site.until(lambda: "jobs in a row failed to start on a node" in (site.dir / "daemon.log").read_text(), what="the log's line")
    site.until(lambda: {site.job(job)["state"] for job in jobs} in ({"pending"}, {"pending", "failed"}), what="the end of those that were starting")
    equal("none is lost", [site.job(job)["state"] for job in jobs], ["pending"] * 5)
    why = site.cli("alice", "why", str(jobs[-1]), check=0).stdout
    assert "failed to start" in why or "fenced" in why or "waits" in why, why
    leaf = [r for r in site.leaves() if r["verb"] == "node.check"]
    assert leaf, "the check is no record"
    (SHARED / "broken").unlink()
    for job in jobs:
        site.await_state(job, "completed", seconds=120)
    equal("it is back", "unchecked" in node_state(site), False)


@tap.test()
def never(site):
    """what no node can run is refused when it is submitted, with what there is"""
    for spec, said in (({"memory": "4Ti"}, "no node that could hold it has more than"),
                       ({"image": "docker://registry.example/a:1"}, "no node can run it: "),
                       ({"network": "egress"}, "has no network egress (networks)"),
                       ({"sku": "large", "count": 9, "cpu": "0.5", "memory": "64Mi"}, "one node holds 8 at most")):
        try:
            site.submit("true", **spec)
            raise AssertionError(f"{spec} was taken")
        except Refused as refused:
            equal(str(spec), refused.status, 400)
            contains(str(spec), json.dumps(refused.body), said)
    done = site.cli("alice", "submit", "--dry-run", "--tenant", "acme/vision/batch", "--sku", "large",
                    "-n", "9", "--cpu", "0.5", "--memory", "64Mi", "--", "true")
    contains("a dry run", done.stderr, "one node holds 8 at most")


breakable()
tap.main()
