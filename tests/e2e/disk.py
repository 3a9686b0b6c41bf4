#!/usr/bin/env python3
"""A full disk: reads are served, changes are refused by name, nothing acknowledged is lost."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import PATIENCE_S, Refused
from tap import contains, equal

STATE_MIB = 8


@contextlib.contextmanager
def on_small_disk(site, mib, *names):
    """These folders of the site lie on one small disk; afterwards what is on it lies where it was."""
    disk = site.dir / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(disk)], check=True)
    stop(site)
    for name in names:
        subprocess.run(["cp", "-a", str(site.dir / name), str(disk)], check=True)
        subprocess.run(["mount", "--bind", str(disk / name), str(site.dir / name)], check=True)
    try:
        start(site)
        yield disk
    finally:
        stop(site)
        for name in names:
            subprocess.run(["umount", "-l", str(site.dir / name)], check=True)
            shutil.rmtree(site.dir / name)
            subprocess.run(["cp", "-a", str(disk / name), str(site.dir)], check=True)
        subprocess.run(["umount", "-l", str(disk)], check=True)
        disk.rmdir()
    start(site)


def stop(site):
    site.stop(site.daemon)
    site.stop(site.node)


def start(site):
    site.start_node()
    site.start_daemon()
    site.await_gpus()


def fill(site, hold):
    accepted = []
    for _ in range(50000):
        try:
            accepted.append(site.submit("true", hold=hold))
        except Refused as refused:
            return accepted, refused
    raise AssertionError("the disk did not get full")


def taken(site):
    """A held job's number, or None: the disk is full."""
    try:
        return site.submit("true", hold=True)
    except Refused as refused:
        equal("status", refused.status, 507)
        return None


@tap.test(topology="1x H100-80GB")
def full(site):
    "a full disk refuses changes with 507 and serves reads; with room again all goes on and nothing is lost"
    site.announce("disk full", "No space left on device")
    with on_small_disk(site, STATE_MIB, "state") as disk:
        accepted, refused = fill(site, True)
        equal("status", refused.status, 507)
        equal("code", refused.code, "full")
        equal("reads", len(site.client().get("/v1/jobs?limit=5")["items"]), 5)
        replays = (site.dir / "daemon.log").read_text().count("journal replayed")
        begun, refusals = time.monotonic(), 0
        while time.monotonic() < begun + 3 or refusals <= 10:
            assert time.monotonic() < begun + PATIENCE_S, f"{refusals} refusals on a full disk"
            # What the daemon removes (a snapshot that did not fit) may make room for one more:
            # then it is durable like any other, and must be there afterwards.
            job = taken(site)
            accepted += [job] if job else []
            refusals += not job
            site.client().get("/v1/gpus")
        tried, took = (site.dir / "daemon.log").read_text().count("journal replayed") - replays, time.monotonic() - begun
        assert tried <= 1 + took, f"the state was rebuilt {tried} times in {took:.1f} s"
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        accepted.append(site.until(lambda: taken(site), what="a job that is taken"))
        site.daemon.kill()
        site.daemon.wait()
        site.start_daemon()
        present, after = set(), 0
        while items := site.client().get(f"/v1/jobs?after={after}&limit=1000")["items"]:
            present |= {item["id"] for item in items}
            after = items[-1]["id"]
        equal("lost", sorted(set(accepted) - present), [])
        equal("never acknowledged", sorted(present - set(accepted)), [])
        contains("log", (site.dir / "daemon.log").read_text(), "disk full")


def fill_up(disk):
    """To the last byte, and the store's folder has nothing that it may let go of."""
    with open(disk / "filler", "ab", buffering=0) as filler:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    filler.write(bytes(size))
    equal("free", free_mib(disk), 0)


@tap.test(topology="1x H100-80GB")
def restart(site):
    "a daemon and a node that die on a full disk come back, and reads are served"
    site.announce("disk full", "No space left on device")
    with on_small_disk(site, STATE_MIB, "state", "node") as disk:
        accepted, refused = fill(site, True)
        equal("status", refused.status, 507)
        fill_up(disk)
        for _ in range(3):
            for program in (site.daemon, site.node):
                program.kill()
                program.wait()
            site.start_node()
            site.start_daemon()
            equal("reads", len(site.client().get("/v1/jobs?limit=5")["items"]), 5)
            equal("changes", taken(site), None)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        accepted.append(site.until(lambda: taken(site), what="a job that is taken"))
        site.await_gpus()
        (disk / "filler").unlink()


# ---- what jobs take of it ----

DISK_MIB, KEPT_MIB = 64, 8  # an eighth: base/disk_room.h
HELD = {"tenant": "acme/vision/batch", "sku": "small", "args": ["true"], "hold": True}
CHATTY = ("sh", "-c", "head -c 100M /dev/zero | tr '\\0' x; echo; echo end")


def free_mib(disk):
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize / (1 << 20)


def log_of(site, job):
    log, = (site.dir / "logs").glob(f"{job}[-.]*log")
    return log


def last_words(site, job):
    return log_of(site, job).read_bytes()[-200:].decode()


def wants_scratch(site, person, size, says):
    done = site.cli(person, "run", "--tenant", "acme/vision/batch", "--sku", "small", "--scratch", size, "--", "df", "/scratch")
    contains(f"scratch of {size} for {person}", done.stdout + done.stderr, says)


def why(site, job):
    return site.client().get(f"/v1/jobs/{job}/why")


def refusal_of(client):
    """Of a held job, which is taken away again; None."""
    try:
        client.post(f"/v1/jobs/{client.post('/v1/jobs', HELD)['id']}/cancel")
    except Refused as refused:
        return refused


@tap.test(topology="1x H100-80GB", daemon_conf="disk_reserve = 4Mi", node_conf="log_tenant_share = 100")
def jobs(site):
    "output and scratch of jobs leave an eighth of the disk, and no job is refused for them; below disk_reserve administrators continue"
    site.announce("disk nearly full")
    with on_small_disk(site, DISK_MIB, "state", "logs", "node") as disk:
        alice, erin = site.client("alice"), site.client("erin")
        given = "/scratch" if os.path.exists("/dev/loop-control") else "open /dev/loop-control"
        wants_scratch(site, "alice", "20Mi", given)
        chatty, beside = (site.submit(*CHATTY, client=alice) for _ in range(2))
        for job in (chatty, beside):
            equal("its end", site.await_state(job, "completed")["exit_status"], 0)
            contains("it is told", last_words(site, job), "the node's disk is nearly full, the rest of the output is dropped")
        assert free_mib(disk) > KEPT_MIB - 3, f"{free_mib(disk)} MiB are left"  # each MiB, of two, and the daemon's own
        site.until(lambda: "disk nearly full: jobs' output is dropped" in (site.dir / "node.log").read_text(), what="the node's warning")
        told = site.cli(None, "doctor", "--dir", str(site.dir)).stdout
        contains("doctor", told, "MiB free for")
        waiting = site.submit("df", "/scratch", client=alice, scratch="16Mi")
        site.until(lambda: why(site, waiting)["reason"] == "scratch", what="a job that waits for scratch")
        contains("it is told", site.log(waiting), "16 MiB would fill the node's disk")
        alice.post(f"/v1/jobs/{waiting}/cancel")
        equal("who is refused for that", refusal_of(alice), None)

        filler = disk / "of somebody else"
        filler.write_bytes(bytes(int((free_mib(disk) - 3) * (1 << 20))))
        refused = site.until(lambda: refusal_of(alice), what="a refusal: the daemon looks once a second")
        equal("status", refused.status, 507)
        contains("by name", refused.error["message"], "kept for administrators")
        site.apply(site.site_yaml, client=erin)
        job = site.submit("echo", "of an administrator", client=erin)
        equal("an administrator's job", site.await_state(job, "completed")["exit_status"], 0)
        for unwanted in (filler, log_of(site, chatty), log_of(site, beside)):
            unwanted.unlink()
        site.until(lambda: not refusal_of(alice), what="no refusal")
        equal("with room again", site.run("echo", "said", client=alice)[1], "said\n")
        wants_scratch(site, "alice", "16Mi", given)


def kept_mib(site, jobs):
    logs = (list((site.dir / "logs").glob(f"{job}[-.]*log")) for job in jobs)
    return sum(log.stat().st_size for found in logs for log in found) / (1 << 20)


def add_honest(site):
    "A second topmost tenant, bob's."
    with_it = site.site_yaml.replace("\nskus:", "  - {name: honest, kind: organization}\n\nskus:")
    site.apply(with_it.replace("\nbindings:\n", "\nbindings:\n  - {role: developer, principal: bob, tenant: honest}\n"))


@tap.test(topology="2x H100-80GB")
def tenants(site):
    "a job that fills the disk with output displaces its own tenant's, and gets a notice; others' is whole, before and after, and jobs beside it have no part of their own"
    add_honest(site)
    with on_small_disk(site, 160, "logs"):
        alice, bob = site.client("alice"), site.client("bob")
        whole = ("sh", "-c", "head -c 3M /dev/zero | tr '\\0' y; echo; echo all of it")
        before, log = site.run(*whole, client=bob, tenant="honest")
        contains("bob's output, before", log[-20:], "all of it")
        beside, beside_log = site.run(*whole, client=bob, tenant="acme/speech/asr")
        first = [site.submit(*CHATTY, client=alice) for _ in range(2)]
        second = []
        for job in first:
            site.await_state(job, "completed")
        for _ in range(2):  # one after the other: each has the tenant's part for itself
            second.append(site.submit(*CHATTY, client=alice))
            site.await_state(second[-1], "completed")
        equal("nothing is left of the first", kept_mib(site, first), 0)
        under_acme = first + second + [beside["id"]]
        assert kept_mib(site, under_acme) < 16 + 3, kept_mib(site, under_acme)  # a tenth of the disk
        contains("the last is told", last_words(site, second[-1]), "or of others under the same top-level tenant, have filled their part of the node's disk")
        equal("the one that has least gives nothing", site.log(beside["id"]), beside_log)
        for text in (site.log(first[0]), site.cli("alice", "logs", str(first[0])).stdout, site.cli("alice", "logs", "--follow", str(first[0])).stdout):
            contains("a log that is gone", text, "this job's log was removed")
        equal("bob's output, during", site.run(*whole, client=bob, tenant="honest")[1][-10:], "all of it\n")
        equal("and the one of before", site.log(before["id"]), log)


@tap.test(topology="2x H100-80GB")
def scratch(site):
    "no topmost tenant with all below it has more than its part of a node's scratch; who finds none waits until a job has ended, and does not fail"
    if not os.path.exists("/dev/loop-control"):
        raise tap.Skip("no loop devices")
    add_honest(site)
    with on_small_disk(site, 128, "node"):  # an eighth stays free, half of the rest is a topmost tenant's
        alice, bob, erin = site.client("alice"), site.client("bob"), site.client("erin")
        has = site.submit("sleep", "600", client=alice, scratch="48Mi")
        site.await_state(has, "running")
        waits = site.submit("echo", "began", client=alice, scratch="32Mi")
        site.until(lambda: why(site, waits)["reason"] == "scratch", what="a job that waits for its tenant's part")
        beside = site.submit("echo", "beside", client=bob, tenant="acme/speech/asr", scratch="32Mi")
        site.until(lambda: why(site, beside)["reason"] == "scratch", what="a job of another tenant under acme")
        contains("words", why(site, waits)["sentence"], "the scratch of its node, or its tenant's part of it, is full")
        contains("the part", site.log(waits), "32 MiB are more than is left of this tenant's part of the node's scratch, 55 MiB for all tenants under acme")
        equal("who wants none goes on", site.run("echo", "said", client=alice)[1], "said\n")
        bobs = site.submit("sleep", "600", client=bob, tenant="honest", scratch="48Mi")
        site.await_state(bobs, "running")
        third = site.submit("echo", "third", client=bob, tenant="honest", scratch="16Mi")
        site.until(lambda: why(site, third)["reason"] == "scratch", what="another job of it")
        too_much = site.await_state(site.submit("true", client=alice, scratch="64Mi"), "failed")
        contains("what never fits", site.log(too_much["id"]), "64 MiB are more than this tenant's part")
        equal("the node gets work", site.client().get("/v1/nodes")["items"][0].get("unchecked"), None)
        alice.post(f"/v1/jobs/{has}/cancel")
        bob.post(f"/v1/jobs/{bobs}/cancel")
        for job, said in ((waits, "began\n"), (beside, "beside\n"), (third, "third\n")):
            equal("restarts", site.await_state(job, "completed", seconds=60)["restarts"], 0)
            contains("it ran", site.log(job), said)


RESERVE_MIB = 24
LONG = {**HELD, "args": ["true", *["x" * 30000] * 30]}
BOBS = {"tenant": "acme/speech/asr", "sku": "small"}


@tap.test(topology="1x H100-80GB", daemon_conf=f"disk_reserve = {RESERVE_MIB}Mi\nrate_changes = 0\ntenant_texts_max = 0")
def reserve(site):
    "a user who fills the disk with long jobs as fast as possible leaves the reserve whole, and others cancel their jobs"
    with on_small_disk(site, 128, "state") as disk:
        alice, bob = site.client("alice"), site.client("bob")
        running = bob.post("/v1/jobs", {**BOBS, "args": ["sleep", "600"]})["id"]
        site.await_state(running, "running")
        held = [bob.post("/v1/jobs", {**BOBS, "args": ["true"], "hold": True})["id"] for _ in range(2)]
        for taken in range(300):
            status, _, text = alice.exchange("POST", "/v1/jobs", LONG | {"name": f"n{taken}"})
            if status != 201:
                break
        equal("alice is refused", (status, "nearly full" in text), (507, True))
        assert free_mib(disk) > RESERVE_MIB - 4, f"{free_mib(disk)} MiB are left"  # of which the store's file takes the last of its log
        bob = site.client("bob")  # the other connection may have been idle for too long
        for job in (running, held[0]):
            equal("bob cancels", bob.exchange("POST", f"/v1/jobs/{job}/cancel")[0], 200)
        equal("and releases", bob.exchange("POST", f"/v1/jobs/{held[1]}/release")[0], 200)
        equal("and asks who he is", bob.exchange("GET", "/v1/whoami")[0], 200)
        site.await_state(running, "cancelled")


if __name__ == "__main__":
    tap.in_own_mounts()
    tap.main()
