#!/usr/bin/env python3
"""Every sentence of the demo, as a test."""
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import UNTIL_GO, Refused
from tap import contains, equal, needs_smi_in_jobs

ONE = "1x H100-80GB"
TRAIN, BATCH, ASR = "acme/vision/train", "acme/vision/batch", "acme/speech/asr"
HOLD_ON = ("sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait")


def refused(status, call, *args, **named):
    try:
        call(*args, **named)
    except Refused as error:
        equal("status", error.status, status)
        return error
    raise AssertionError(f"not refused with {status}")


def verbs(site, after=0):
    return [r["verb"] for r in site.records(after) if r.get("phase") != "outcome"]


@tap.test()
def two_tenants(site):
    """two tenants' jobs run at once on different MIG instances of one GPU and each sees
    only its slice"""
    needs_smi_in_jobs(site.dir / "lib/libnvidia-ml.so.1")
    look = ("sh", "-c", "bulkhead-smi -L; bulkhead-smi; echo seen; trap 'exit 0' TERM; sleep 600 & wait")
    jobs = [site.submit(*look, tenant=TRAIN, client=site.client("alice")),
            site.submit(*look, tenant=ASR, client=site.client("bob"))]
    for job in jobs:
        site.await_state(job, "running")
        site.until(lambda j=job: "seen" in site.log(j), what="output")
        shown = site.cli("alice" if job == jobs[0] else "bob", "describe", str(job), check=0).stdout
        contains("describe says the form and why", " ".join(shown.split()), "it has a MIG instance: the boundary hard of")
    rows = [site.job(j) for j in jobs]
    equal("states", [r["state"] for r in rows], ["running", "running"])
    equal("GPUs in use", len({r["partitions"].split()[0] for r in rows}), 1)
    equal("instances in use", len({r["partitions"] for r in rows}), 2)
    seen = [re.findall(r"UUID: (MIG-[0-9a-f-]+)", site.log(j)) for j in jobs]
    equal("devices seen inside each", [len(s) for s in seen], [1, 1])
    assert seen[0] != seen[1], "both see the same device"
    for job in jobs:
        contains("memory total", site.log(job), "0 / 9984MiB")
        equal("GPUs seen", site.log(job).count("\nGPU ") + site.log(job).startswith("GPU "), 1)


@tap.test()
def every_output(site):
    "every list is shown as a table, a wide one, JSON and YAML"
    for what in ("tenants", "skus", "gpus", "nodes", "jobs", "tokens", "records", "checkpoints"):
        for how in ("table", "wide", "json", "yaml"):
            shown = site.cli(None, "get", what, "-o", how, check=0).stdout
            equal(f"{what} as {how}", bool(shown.strip()), True)


@tap.test()
def over_quota(site):
    "a job over quota waits, and why names the quota and when it frees"
    alice = site.client("alice")
    one = site.submit(*HOLD_ON, tenant=TRAIN, client=alice, time_limit="20m")
    two = site.submit(*HOLD_ON, tenant=TRAIN, client=alice, time_limit="30m")
    for job in (one, two):
        site.await_state(job, "running")
    three = site.submit("true", tenant=TRAIN, client=alice)
    why = alice.get(f"/v1/jobs/{three}/why")
    equal("reason", why["reason"], "quota_sku")
    operands = why["operands"]
    equal("quota", (operands["tenant"], operands["limit"], operands["used"], operands["sku"]), (TRAIN, 2, 2, "small"))
    equal("who frees it", operands["job"], one)
    started, limit = (int(site.job(one)[k]) for k in ("started_ns", "time_limit_ns"))
    equal("when it frees", int(operands["frees_at_ns"]), started + limit)
    sentence = site.cli("alice", "why", str(three), check=0).stdout
    for part in (TRAIN, "small", f"job {one}"):
        contains("why", sentence, part)
    site.cli("alice", "cancel", str(one), check=0)
    site.await_state(three, "completed")
    equal("the other", site.job(two)["state"], "running")


@tap.test()
def operators_only(site):
    "a developer is denied what only an operator may, and the denial is a record"
    alice, before = site.client("alice"), site.record_count()
    error = refused(403, site.submit, "true", sku="large", priority="high", client=alice)
    equal("code", error.code, "denied")
    contains("message", error.error["message"], "priority.high on acme/vision/batch")
    contains("next", error.error["next"], "operator")
    said = [(r["result"], r["actor"]["name"]) for r in site.records(before - 1) if r["verb"] == "job.submit"]
    equal("records", said, [("denied", "alice")])
    done = site.cli("alice", "submit", "--tenant", BATCH, "--sku", "large", "--priority", "high", "--", "true")
    equal("exit status", done.returncode, 4)
    site.await_state(site.submit("true", tenant=BATCH, priority="high", client=site.client("carol")), "completed")
    refused(403, site.apply, tap.SITE, client=alice)
    equal("jobs", site.client().get("/v1/jobs")["total"], 1)


@tap.test()
def strangers(site):
    "no user sees, cancels or even learns of another tenant's job; a uid without a name is no user"
    mine = site.submit(*HOLD_ON, tenant=ASR, client=site.client("bob"))
    site.await_state(mine, "running")
    alice = site.client("alice")
    for path in ("", "/why", "/logs"):
        refused(404, alice.get, f"/v1/jobs/{mine}{path}")
    refused(404, alice.post, f"/v1/jobs/{mine}/cancel")
    equal("what alice lists", alice.get("/v1/jobs")["total"], 0)
    refused(404, site.submit, "true", tenant=ASR, client=alice)
    refused(403, site.submit, "true", tenant=TRAIN, client=site.client("dave"))
    pieces = str(alice.get("/v1/gpus"))
    assert "speech" not in pieces and "bob" not in pieces, pieces
    equal("state", site.job(mine)["state"], "running")
    for uid in (20999, 65534, 1000000):
        stranger = type(alice)(site.socket, uid)
        refused(401, stranger.get, "/v1/jobs")


@tap.test(topology=ONE)
def suspended(site):
    """a high-priority job suspends a low one, which writes nothing meanwhile, resumes and
    finishes with its output intact"""
    needs_smi_in_jobs(site.dir / "lib/libnvidia-ml.so.1")
    count = "touch /tmp/stay; i=0; while [ -e /tmp/stay ]; do i=$((i+1)); echo line $i; sleep 0.02; done"
    low = site.submit("sh", "-c", count, sku="large", priority="low", on_preempt="suspend", client=site.client("alice"))
    site.await_state(low, "running")
    site.until(lambda: "line 3" in site.log(low), what="output")
    high = site.submit("sh", "-c", f"bulkhead-smi -L; {UNTIL_GO}", sku="large", priority="high", tenant=ASR,
                       client=site.client("carol"))
    site.await_state(high, "running")
    equal("state of the low one", site.job(low)["state"], "suspended")
    frozen = site.log(low)
    contains("why", site.cli("alice", "why", str(low), check=0).stdout, "suspended")
    site.let_go(high)
    site.await_state(high, "completed")
    assert frozen == site.log(low) or site.job(low)["state"] != "suspended", "it wrote while it was suspended"
    site.until(lambda: len(site.log(low)) > len(frozen), what="output after it resumed")
    site.let_go(low)
    done = site.await_state(low, "completed")
    equal("restarts", done["restarts"], 0)
    lines = site.log(low).splitlines()
    equal("output", lines, [f"line {i}" for i in range(1, len(lines) + 1)])
    assert "GPU-" in site.log(high)


@tap.test(topology=ONE)
def suspended_at_once(site):
    "a job that must make way while its sandbox is being built is not broken by it"
    for pause in (0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03):
        low = site.submit("sh", "-c", "echo begun; sleep 0.1; echo done", sku="large", priority="low",
                          on_preempt="suspend", grace="1s", client=site.client("alice"))
        time.sleep(pause)
        high = site.submit("true", sku="large", priority="high", tenant=ASR, client=site.client("carol"))
        equal("the higher one", site.await_state(high, "completed", "failed")["state"], "completed")
        done = site.await_state(low, "completed", "failed")
        equal(f"the lower one after {pause} s", (done["state"], done["cause"]), ("completed", "exited"))
        assert site.log(low).endswith("begun\ndone\n"), site.log(low)


@tap.test(topology=ONE)
def resumed_sees(site):
    """a resumed job sees its device as before, though its GPU was carved otherwise meanwhile;
    a context that it opens then is seen by the node"""
    needs_smi_in_jobs(site.dir / "lib/libnvidia-ml.so.1")
    look = ("touch /tmp/stay; while [ -e /tmp/stay ]; do bulkhead-smi -L 2>&1 | tail -n1; sleep 0.03; done; "
            "exec bulkhead-simload --mib 64 --seconds 600 --busy 1 2>&1")
    low = site.submit("sh", "-c", look, sku="large", priority="low", on_preempt="suspend", client=site.client("alice"))
    site.until(lambda: site.log(low), what="output")
    high = site.submit("sh", "-c", UNTIL_GO, sku="small", priority="high", tenant=ASR, client=site.client("carol"))
    site.await_state(high, "running")
    equal("state of the low one", site.job(low)["state"], "suspended")
    before = len(site.log(low).splitlines())
    site.let_go(high)
    site.until(lambda: len(site.log(low).splitlines()) > before + 10, what="more looks")
    site.let_go(low)
    site.until(lambda: "bulkhead-simload" in site.log(low), what="the context")
    *looks, last = site.log(low).splitlines()
    equal("what it saw", set(looks), {looks[0]})
    contains("context", last, "holds 64 MiB")
    after = site.submit("true", sku="large", priority="high", tenant=ASR, client=site.client("carol"))
    site.await_state(after, "completed")
    equal("outcomes", [r["ev"]["suspended"].get("outcome") for r in site.leaves() if r["verb"] == "node.suspended"],
          [None, "context_held"])


@tap.test(topology=ONE)
def context_held(site):
    """a job that holds a GPU context cannot be suspended: it is ended and queued again,
    and the record says so"""
    low = site.submit("sh", "-c", f"echo begin; bulkhead-simload --mib 100 --seconds 600 --busy 1 & {UNTIL_GO}; kill $!", sku="large",
                      priority="low", on_preempt="suspend", grace="1s", client=site.client("alice"))
    site.await_state(low, "running")
    site.until(lambda: site.log(low), what="output")
    site.until(lambda: holds_context(site), what="a context")
    before = site.record_count()
    high = site.submit("true", sku="large", priority="high", tenant=ASR, client=site.client("carol"))
    site.await_state(high, "completed")
    said = [r for r in site.leaves(before - 1) if r["verb"] == "node.suspended"]
    equal("records", [r["ev"]["suspended"]["outcome"] for r in said], ["context_held"])
    site.until(lambda: site.log(low).count("begin") == 2, what="its second start")
    site.let_go(low)
    done = site.await_state(low, "completed")
    equal("restarts", done["restarts"], 1)
    equal("begun", site.log(low).count("begin"), 2)


def holds_context(site):
    return any("simload" in pathlib.Path(f"/proc/{p}/cmdline").read_text() and
               "/memory" in pathlib.Path(f"/proc/{p}/maps").read_text() for p in site.processes("simload"))


@tap.test()
def killed_daemon(site):
    "bulkheadd killed with -9 comes back with everything, and running jobs go on untouched"
    bob, alice = site.client("bob"), site.client("alice")
    alive = site.submit("sh", "-c", f"echo before; {UNTIL_GO}; echo after", tenant=ASR, client=bob)
    held = site.submit("true", tenant=ASR, client=bob, hold=True, name="held")
    full = [site.submit(*HOLD_ON, tenant=TRAIN, client=alice) for _ in range(2)]
    waiting = site.submit("true", tenant=TRAIN, client=alice)
    for job in (alive, *full):
        site.await_state(job, "running")
    before = {j: site.job(j) for j in (held, waiting, *full)}
    processes = set(site.processes("bulkhead-keeper"))
    whole = site.client().get("/v1/site")
    site.kill(site.daemon)
    site.start_daemon()
    equal("site file", site.client().get("/v1/site"), whole)
    for job, row in before.items():
        now = site.job(job)
        for key in ("state", "partitions", "restarts", "started_ns", "tenant", "name"):
            equal(f"job {job}'s {key}", now[key], row[key])
    site.let_go(alive)
    done = site.await_state(alive, "completed")
    equal("restarts", done["restarts"], 0)
    equal("output", site.log(alive), "before\nafter\n")
    assert processes >= set(site.processes("bulkhead-keeper")), "a job was started again"
    site.client("bob").post(f"/v1/jobs/{held}/release")
    site.await_state(held, "completed")
    equal("new job", site.run("true")[0]["id"], waiting + 1)


@tap.test()
def killed_node(site):
    "bulkhead-node killed with -9 comes back to its jobs, also to one that ended meanwhile"
    long = site.submit("sh", "-c", f"echo a; {UNTIL_GO}; echo b", tenant=BATCH)
    short = site.submit("sh", "-c", f"echo a; {UNTIL_GO}; echo b; exit 7", tenant=BATCH)
    for job in (long, short):
        site.await_state(job, "running")
        site.until(lambda j=job: site.log(j), what="output")
    site.kill(site.node)
    site.until(lambda: not site.client().get("/v1/status")["node"]["connected"], what="the loss")
    site.let_go(short)
    site.until(lambda: len(site.processes("bulkhead-keeper")) == 1, what="the end of the short job")
    site.start_node()
    done = site.await_state(short, "failed")
    equal("exit status", (done["exit_status"], done["restarts"]), (7, 0))
    site.let_go(long)
    done = site.await_state(long, "completed")
    equal("restarts", done["restarts"], 0)
    equal("output", [site.log(j) for j in (long, short)], ["a\nb\n"] * 2)


RANK = ("sh", "-c", "echo rank $BULKHEAD_GANG_RANK of $BULKHEAD_GANG_SIZE; trap 'exit 0' TERM; sleep 600 & wait")


def gang_of_three(site, *command):
    gang = site.submit(*command, gang=3, tenant=BATCH, client=site.client("alice"))
    site.await_state(gang, "running")
    return gang


@tap.test()
def gang_ranks(site):
    "a gang of three starts together, each member knows its rank and has a piece and a log of its own"
    gang = site.submit("sh", "-c", f"echo rank $BULKHEAD_GANG_RANK of $BULKHEAD_GANG_SIZE; {UNTIL_GO}", gang=3,
                       tenant=BATCH, client=site.client("alice"))
    row = site.await_state(gang, "running")
    equal("members", [(m["member"], m["state"]) for m in row["members"]], [(i, "running") for i in range(3)])
    equal("pieces", len({str(m["partitions"]) for m in row["members"]}), 3)
    equal("nodes", len({m["node"] for m in row["members"]}), 1)
    pieces = [piece for member in row["members"] for piece in member["partitions"]]
    equal("all in its row", row["partitions"], ", ".join(f"{p['gpu'][:12]} {p['profile']}@{p['start']}" for p in pieces))
    for rank in range(3):
        site.let_go(gang, rank)
    done = site.await_state(gang, "completed")
    equal("exit status", done["exit_status"], 0)
    for rank in range(3):
        equal(f"output of {rank}", site.log(gang, rank), f"rank {rank} of 3\n")
        shown = site.cli("alice", "logs", "--member", str(rank), str(gang)).stdout
        equal(f"what logs shows of {rank}", shown, f"rank {rank} of 3\n")
    contains("one that is not there", site.cli("alice", "logs", "--member", "3", str(gang), check=5).stderr,
             f"job {gang} has no member 3\n  its members are 0 to 2")
    ran = site.cli("alice", "run", "--tenant", BATCH, "--sku", "small", "--gang", "2", "--", "sh", "-c",
                   "echo $BULKHEAD_GANG_RANK")
    equal("what run shows", ran.stdout, "0\n")
    contains("whose that is", ran.stderr, "has 2 members: this was the first's output; bulkhead logs ")


@tap.test()
def gang_fails(site):
    "the first member of a gang that fails ends the others, and its status is the job's"
    gang = gang_of_three(site, "sh", "-c", "trap 'echo told; exit 0' TERM; echo begun; "
                                           f"if [ $BULKHEAD_GANG_RANK = 1 ]; then {UNTIL_GO}; exit 7; fi; sleep 600 & wait")
    site.until(lambda: all(site.log(gang, rank) for rank in range(3)), what="output")
    site.let_go(gang, 1)
    done = site.await_state(gang, "failed")
    equal("how", (done["cause"], done["exit_status"], done["restarts"]), ("exited", 7, 0))
    for rank in (0, 2):
        equal(f"output of {rank}", site.log(gang, rank), "begun\ntold\n")
    site.until(lambda: not site.processes("bulkhead-keeper"), what="the end of all keepers")


@tap.test()
def gang_cancelled(site):
    "a cancel ends all members of a gang; one of too many members is refused"
    gang = gang_of_three(site, *RANK)
    site.until(lambda: all(site.log(gang, i) for i in range(3)), what="output")
    site.client("alice").post(f"/v1/jobs/{gang}/cancel")
    site.await_state(gang, "cancelled")
    site.until(lambda: not site.processes("bulkhead-keeper"), what="the end of all keepers")
    refused(400, site.submit, "true", gang=65, tenant=BATCH, client=site.client("alice"))


@tap.test()
def gang_survives(site):
    "a gang lives through the end of both programs, and a member that ended meanwhile is heard of"
    gang = gang_of_three(site, "sh", "-c", f"{UNTIL_GO}; echo end")
    site.kill(site.daemon)
    site.kill(site.node)
    site.let_go(gang, 2)
    site.until(lambda: len(site.processes("bulkhead-keeper")) == 2, what="the end of a member")
    site.start_node()
    site.start_daemon()
    for rank in range(2):
        site.let_go(gang, rank)
    done = site.await_state(gang, "completed")
    equal("restarts", done["restarts"], 0)
    equal("output", [site.log(gang, i) for i in range(3)], ["end\n"] * 3)


if __name__ == "__main__":
    tap.main()
