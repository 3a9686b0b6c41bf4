#!/usr/bin/env python3
"""What would be: estimated starts and what-if questions on a running site, which change nothing."""
import json
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from tap import contains, equal

ONE = "1x H100-80GB"
BATCH, ASR = "acme/vision/batch", "acme/speech/asr"
HOLD_ON = ("sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait")
ASSUMED = "if jobs run to their time limits"


def busy(site):
    """One GPU: a job that runs for an hour at most, and one of two hours that waits for it."""
    first = site.submit(*HOLD_ON, sku="large", priority="low", time_limit="1h", on_preempt="suspend",
                        client=site.client("alice"))
    site.await_state(first, "running")
    second = site.submit("true", sku="large", priority="low", time_limit="2h", client=site.client("alice"))
    return first, second


def state(site):
    """All that a question must leave as it is."""
    client = site.client()
    jobs = {j["id"]: (j["state"], j["reason"], j["partitions"]) for j in client.get("/v1/jobs")["items"]}
    return site.record_count(), jobs, [g["partitions"] for g in client.get("/v1/gpus")["items"]]


def asks(site, person, *args, check=0):
    """Ask twice, for people and as JSON; nothing may change."""
    before = state(site)
    done = site.cli(person, "whatif", *args, check=check)
    answer = json.loads(site.cli(person, "whatif", *args[:1], "-o", "json", *args[1:], check=check).stdout) if check == 0 else {}
    if check in (0, 6):
        equal("records", state(site)[0], before[0])  # denials are recorded
    equal("jobs and pieces", state(site)[1:], before[1:])
    return done.stdout + done.stderr, answer


@tap.test(topology=ONE)
def estimated(site):
    "why, ps --start and the API say when a waiting job is expected to start"
    first, second = busy(site)
    due = int(site.job(first)["started_ns"]) + 3600 * 10**9
    why = site.client("alice").get(f"/v1/jobs/{second}/why")
    equal("estimate", int(why["estimated_start_ns"]), due)
    contains("assumption", why["assumption"], ASSUMED)
    said = site.cli("alice", "why", str(second), check=0).stdout
    assert re.search(r"estimated start: in 5\dm", said), said
    contains("why", said, ASSUMED)
    third = site.submit("true", sku="large", priority="low", client=site.client("alice"))
    # the forecast is made anew for a new job, but not all the time
    estimate = site.until(lambda: site.client("alice").get(f"/v1/jobs/{third}/why").get("estimated_start_ns"), what="its estimate")
    equal("the next one", int(estimate), due + 7200 * 10**9)
    table = site.cli("alice", "ps", "--start", check=0).stdout
    contains("ps --start", table.splitlines()[0], "START")
    day = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(due // 10**9))
    contains("ps --start", table, day)
    rows = json.loads(site.cli("alice", "ps", "-o", "json", check=0).stdout)["items"]
    equal("-o json", {r["id"]: "estimated_start_ns" in r for r in rows}, {first: False, second: True, third: True})
    assert "estimated" not in site.cli("alice", "ps", check=0).stdout
    contains("help", site.cli(None, "help", "why", check=0).stdout.replace("\n", " "), "time limits, 24h")


@tap.test(topology=ONE)
def submit(site):
    "whatif submit says whether a job would start or wait, and which jobs it would delay"
    first, second = busy(site)
    text, answer = asks(site, "alice", "submit", "--tenant", BATCH, "--sku", "large", "--priority", "low", "--", "true")
    equal("decision", answer["job"]["decision"], "waits")
    contains("for people", text, "the job would wait and start in 2h59m")
    equal("nobody is hurt", (answer["changes"], answer["changes_of_other_tenants"]), ([], {}))
    text, answer = asks(site, "carol", "submit", "--tenant", ASR, "--sku", "large", "--priority", "high",
                        "--time-limit", "30m", "--", "true")
    equal("decision", answer["job"]["decision"], "starts")
    equal("changes", {c["job"]: c["kind"] for c in answer["changes"]}, {first: "suspended", second: "later"})
    contains("for people", text, f"job {first} ({BATCH}) would be suspended at once for this job")
    contains("for people", text, f"job {second} ({BATCH}) would start 30m")
    text, answer = asks(site, "bob", "submit", "--tenant", ASR, "--sku", "large", "--time-limit", "30m", "--", "true")
    assert str(BATCH) not in json.dumps(answer) and answer["changes"] == [], answer
    equal("not named, not counted", answer["changes_of_other_tenants"], {"suspended": True, "later": True})
    contains("for people", text, "jobs of other tenants: suspended")
    job = site.dir / "job.yaml"
    job.write_text(f"sku: large\ntenant: {ASR}\nargs: [\"true\"]\n")
    job.chmod(0o644)
    site.dir.chmod(0o755)
    equal("a file", asks(site, None, "submit", str(job))[1]["job"]["decision"], "starts")
    text, _ = asks(site, "alice", "submit", "--tenant", "acme/vision/train", "--sku", "small", "--count", "3", "--",
                   "true", check=6)
    contains("over quota for ever", text, "the limit of acme/vision/train is 2 small")
    asks(site, "alice", "submit", "--tenant", BATCH, "--sku", "small", "--priority", "high", "--", "true", check=4)
    asks(site, "alice", "submit", "--tenant", ASR, "--sku", "small", "--", "true", check=5)


@tap.test(topology=ONE)
def others(site):
    "whatif cancel, quota and drain say what would change, to those who may do it"
    first, second = busy(site)
    text, answer = asks(site, "alice", "cancel", str(first))
    equal("changes", {c["job"]: c["kind"] for c in answer["changes"]}, {first: "cancelled", second: "earlier"})
    contains("for people", text, f"job {second} ({BATCH}) would start 59m")
    asks(site, "bob", "cancel", str(first), check=5)
    _, answer = asks(site, None, "quota", BATCH, "--gpus", "0.5")
    equal("quota", {c["job"]: c["kind"] for c in answer["changes"]}, {second: "never"})
    asks(site, "alice", "quota", BATCH, "--gpus", "8", check=4)
    gpu = site.client().get("/v1/gpus")["items"][0]
    for what in (gpu["uuid"], gpu["node"]):
        text, answer = asks(site, None, "drain", what)
        equal("drain", {c["job"]: c["kind"] for c in answer["changes"]}, {second: "never"})
        contains("for people", text, f"job {second} ({BATCH}) would no longer start")
        _, answer = asks(site, None, "drain", what, "--now")
        equal("drain --now", {c["job"]: c["kind"] for c in answer["changes"]}[first], "requeued")
    asks(site, "alice", "drain", gpu["uuid"], check=4)
    asks(site, None, "drain", "nowhere", check=5)
    file = site.dir / "other.yaml"
    file.write_text(tap.SITE.replace("{name: acme/vision/batch, kind: project}",
                                     "{name: acme/vision/batch, kind: project, limit: 0.5}"))
    before = site.client().get("/v1/site")
    _, answer = asks(site, None, "apply", "-f", str(file))
    equal("site file", {c["job"]: c["kind"] for c in answer["changes"]}, {second: "never"})
    equal("it is not in force", site.client().get("/v1/site"), before)
    for path in (site.dir, file):
        path.chmod(0o755)
    asks(site, "alice", "apply", "-f", str(file), check=4)
    asks(site, "alice", "submit", "--tenant", BATCH, "--sku", "small", "--mount", "/nowhere", "--", "true", check=4)
    batch = [t["id"] for t in site.client().get("/v1/tenants")["items"] if t["name"] == BATCH]
    for verb, objects in (("site.apply", {("tenant", *batch), None}), ("site.view", {("gpu", gpu["id"])}), ("job.submit", {None})):
        site.until(lambda: named(site, "dave", verb) == objects, what=f"the denials of {verb} by its name")
    equal("her own, by her tenant", named(site, "alice", "job.submit"), {None})


def named(site, person, verb):
    """What the denials of a verb are about, as who asks finds them."""
    items = json.loads(site.cli(person, "audit", "search", "--verb", verb, "--decision", "deny", "-o", "json", check=0).stdout)
    items = items["items"] if isinstance(items, dict) else items
    return {(i["object"]["type"], i["object"]["id"]) if i.get("object") else None for i in items}


@tap.test(topology=ONE)
def layout(site):
    "a changed layout of a pool of nodes is rehearsed, answered for and applied; nodes say what jobs hold"
    busy(site)
    node = site.client().get("/v1/gpus")["items"][0]["node"]
    file = site.dir / "pools.yaml"
    file.write_text(tap.SITE + f"\npools:\n  - {{name: dev, nodes: [{node}], layout: development}}\n")
    contains("dry run", site.cli(None, "apply", "--dry-run", "-f", str(file), check=0).stdout, "development")
    text, _ = asks(site, None, "apply", "-f", str(file))
    contains("for people", text, "nothing changes for other jobs")
    equal("before", [g["layout"] for g in site.client().get("/v1/gpus")["items"]], ["on-demand"])
    site.cli(None, "apply", "-f", str(file), check=0)
    equal("after", [g["layout"] for g in site.client().get("/v1/gpus")["items"]], ["development"])
    host = site.client().get("/v1/nodes")["items"][0]
    equal("held", (host["used_cpu_milli"], host["used_memory_mib"]), (1000, 256))
    contains("wide", site.cli(None, "get", "nodes", "-o", "wide", check=0).stdout, "HELD")


@tap.test(topology=ONE)
def journal(site):
    "bulkhead-replay supposes a change at the end of the journal, as of any record"
    first, second = busy(site)
    site.cli("alice", "whatif", "cancel", str(first), check=0)
    store = next(site.dir.rglob("*.db"))
    replay = site.program("bulkhead-replay")
    node = site.client().get("/v1/gpus")["items"][0]["node"]
    for mode in ("journal", "--journal"):
        done = subprocess.run([replay, mode, str(store), "--whatif", f"drain={node}"], capture_output=True, text=True)
        equal("status", (done.returncode, done.stderr), (0, ""))
        contains("drain", done.stdout, f"job {second} {BATCH} never")
    seq = max(r["seq"] for r in site.leaves() if r["verb"] == "job.submit" and r["obj"]["id"] == first)
    done = subprocess.run([replay, "journal", str(store), "--until", str(seq), "--whatif", f"cancel={first}"],
                          capture_output=True, text=True)
    contains("as it was then", done.stdout, f"job {first} {BATCH} cancelled")
    assert not re.search(rf"^job {second} ", done.stdout, re.M), done.stdout


if __name__ == "__main__":
    tap.main()
