#!/usr/bin/env python3
"""What a job asked for should it have to make way: a signal, time to save, another start."""
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import PATIENCE_S, UNTIL_GO
from tap import contains, equal

ONE = "1x H100-80GB"
ASR = "acme/speech/asr"
STEPS = 40

# Counts its steps; on the order to save it writes its count and ends.  Saving takes a
# moment, as it does.  Half way it goes on only if it has saved; a step and its line are one command.
COUNTS = """
at=$(cat {share}/saved 2>/dev/null || echo 0)
echo from $at
trap 'echo {signal} at $at; sleep 0.3; echo $at > {share}/saved; echo saved; exit 0' {signal}
while [ $at -lt {steps} ]; do
    [ $at -eq 20 ] && [ ! -e {share}/saved ] || echo $((at=at+1)) >> {share}/steps
    sleep 0.05
done
echo done
"""


def folder(site):
    """A folder of alice's that outlives the sandbox of her job."""
    share = site.dir / "share"
    share.mkdir()
    os.chown(share, 20001, 20001)
    site.apply(tap.SITE + f"\nmounts:\n  - {{path: {share}, tenant: acme/vision, write: true}}\n")
    return share


def saves(site, share, signal, script=COUNTS, **spec):
    job = site.submit("sh", "-c", script.format(share=share, signal=signal, steps=STEPS), sku="large", priority="low",
                      on_preempt="checkpoint", mounts=[{"source": str(share), "write": True}],
                      client=site.client("alice"), **spec)
    site.await_state(job, "running")
    return job


def push_out(site, *command):
    """A job of a higher class that needs the only GPU."""
    return site.submit(*(command or ("true",)), sku="large", priority="high", tenant=ASR, client=site.client("carol"))


def said(site, job):
    """Its output, but for what its shell says of children: the signal reaches all processes of a job."""
    return "".join(line for line in site.log(job).splitlines(True) if not line.startswith("User defined"))


def resumes(site, signal, **spec):
    """It is ordered to save, has the time to, and continues from there after the other one."""
    share = folder(site)
    low = saves(site, share, signal, **spec)
    site.until(lambda: (share / "steps").exists() and len((share / "steps").read_text().split()) >= 3, what="steps")
    high = push_out(site, "sh", "-c", UNTIL_GO)
    site.await_state(high, "running")
    waiting = site.job(low)
    equal("while the other runs", (waiting["state"], waiting["restarts"]), ("pending", 1))
    saved = int((share / "saved").read_text())
    assert 3 <= saved < STEPS, saved
    site.let_go(high)
    site.await_state(high, "completed")
    done = site.await_state(low, "completed", "failed")
    equal("end", (done["state"], done["cause"], done["exit_status"], done["restarts"]), ("completed", "exited", 0, 1))
    equal("steps", [int(n) for n in (share / "steps").read_text().split()], list(range(1, STEPS + 1)))
    equal("output", said(site, low), f"from 0\n{signal} at {saved}\nsaved\nfrom {saved}\ndone\n")


@tap.test(topology=ONE, node_conf="mount_roots = /tmp")
def told_as_asked(site):
    """a job that writes checkpoints gets the signal that it asked for and its grace, ends, is queued
    again and goes on from what it saved"""
    resumes(site, "USR2", checkpoint_signal="USR2", grace="60s")


@tap.test(topology=ONE, node_conf="mount_roots = /tmp")
def told_as_usual(site):
    "one that names no signal gets USR1, and has ten seconds"
    resumes(site, "USR1")


@tap.test(topology=ONE, node_conf="mount_roots = /tmp")
def not_in_time(site):
    "one that does not end within its grace is killed then, not before, and starts again from what it has"
    share = folder(site)
    low = saves(site, share, "USR1", "trap 'echo told' USR1; echo begun; while [ ! -e {share}/end ]; do sleep 0.05; done",
                checkpoint_signal="USR1", grace="1s")
    site.until(lambda: "begun" in site.log(low), what="output")
    began = time.monotonic()
    high = push_out(site, "sh", "-c", UNTIL_GO)
    site.await_state(high, "running")
    took = time.monotonic() - began
    assert took > 0.9, took
    contains("its states", [row["state"] for leaf in site.leaves() for row in leaf.get("jobs", []) if row["job"] == low], "stopping")
    (share / "end").touch()
    site.let_go(high)
    done = site.await_state(low, "completed")
    equal("restarts", done["restarts"], 1)
    equal("output", said(site, low), "begun\ntold\nbegun\n")


@tap.test(topology=ONE, node_conf="mount_roots = /tmp")
def over_a_crash(site):
    "bulkheadd that is killed while a job saves comes back to it, and it starts again once"
    share = folder(site)
    slowly = COUNTS.replace("sleep 0.3", "while [ ! -e {share}/may ]; do sleep 0.02; done")
    low = saves(site, share, "USR1", slowly, checkpoint_signal="USR1", grace="500s")
    site.until(lambda: (share / "steps").exists(), what="steps")
    high = push_out(site)
    site.until(lambda: "USR1 at" in site.log(low), what="the signal")
    site.kill(site.daemon)
    site.start_daemon()
    equal("it still saves", site.job(low)["state"], "stopping")
    (share / "may").touch()
    site.await_state(high, "completed")
    done = site.await_state(low, "completed", "failed")
    equal("end", (done["state"], done["restarts"]), ("completed", 1))
    equal("steps", [int(n) for n in (share / "steps").read_text().split()], list(range(1, STEPS + 1)))


def row_of(table, job):
    """{header: cell} of a job in a table; columns are two blanks apart."""
    head, *lines = table.splitlines()
    starts = [m.start() for m in re.finditer(r"(?<=  )\S|^\S", head)]
    line = next(line for line in lines if line.split()[0] == str(job))
    return {head[a:b].strip(): line[a:b].strip() for a, b in zip(starts, [*starts[1:], None])}


@tap.test(topology=ONE)
def shown(site):
    """ps -o wide, describe, why and the API show a job's contract, signal and deadline, and the room
    that is kept for it while it waits: from when on, and where"""
    alice = site.client("alice")
    first = site.submit("sleep", "600", sku="large", priority="low", time_limit="1h", client=alice)
    started = int(site.await_state(first, "running")["started_ns"])
    second = site.submit("true", sku="large", priority="low", on_preempt="checkpoint", checkpoint_signal="SIGUSR2",
                         deadline="+5h", client=alice)
    gpu = alice.get("/v1/gpus")["items"][0]
    job, why = alice.get(f"/v1/jobs/{second}"), alice.get(f"/v1/jobs/{second}/why")
    equal("contract", (job["contract"], job["checkpoint_signal"], job["gang"]), ("checkpoint", "USR2", 1))
    late = int(job["submitted_ns"]) + 5 * 3600 * 10**9 - int(job["deadline_ns"])
    assert 0 <= late < PATIENCE_S * 10**9, late  # it counts from when it was read
    due = started + 3600 * 10**9
    for answer in (job, why):
        equal("reserved from", int(answer["reserved_ns"]), due)
        equal("on", answer["reserved_on"], [{"gpu": gpu["uuid"], "node": gpu["node"], "profile": "whole", "start": 0}])
    equal("the other has none of it", {"reserved_ns", "checkpoint_signal"} & set(site.job(first)), set())
    told = {key: stamp(int(job[key])) for key in ("deadline_ns", "reserved_ns")}
    row = row_of(site.cli("alice", "ps", "-o", "wide", check=0).stdout, second)
    equal("ps", [row[c] for c in ("CONTRACT", "SIGNAL", "DEADLINE", "RESERVED", "GANG")],
          ["checkpoint", "USR2", told["deadline_ns"], told["reserved_ns"], "1"])
    text = site.cli("alice", "describe", str(second), check=0).stdout
    for part in ("Checkpoint signal: USR2", told["deadline_ns"], f"Reserved:         {told['reserved_ns']}", gpu["uuid"]):
        contains("describe", text, part)
    text = site.cli("alice", "why", str(second), check=0).stdout
    contains("why", re.sub(r"in 5\d?m", "in 59m", text), f"reserved for it from {told['reserved_ns']} (in 59m")
    contains("why", text, f"on: {gpu['node']} {gpu['uuid']} whole\n")
    listed = {j["id"]: j for j in alice.get("/v1/jobs?start=true")["items"]}
    equal("listed", int(listed[second]["reserved_ns"]), due)
    alice.post(f"/v1/jobs/{second}/cancel")
    equal("nothing is kept for it then", "reserved_ns" in alice.get(f"/v1/jobs/{second}"), False)


@tap.test(topology=ONE)
def being_cleared(site):
    "while others leave for a job, why and the API say which room is being cleared for it"
    low = site.submit("sh", "-c", f"trap '' TERM; echo begun; {UNTIL_GO}", sku="large", priority="low",
                      on_preempt="requeue", grace="500s", client=site.client("alice"))
    site.until(lambda: low and "begun" in site.log(low), what="output")
    high = push_out(site)
    job = site.client("carol").get(f"/v1/jobs/{high}")
    equal("state", (job["state"], job["why"]["reason"]), ("pending", "making_room"))
    equal("where", [place["profile"] for place in job["claimed_on"]], ["whole"])
    contains("why", site.cli("carol", "why", str(high), check=0).stdout, "being cleared for it: ")
    site.let_go(low)
    site.await_state(high, "completed")
    site.cli(None, "cancel", "--now", str(low), check=0)  # it begins again, and ignores what tells it to end


def stamp(at_ns):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_ns // 10**9))


if __name__ == "__main__":
    tap.main()
