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
    return site.record_count(), jobs, [[(p["id"], p["state"], p.get("job")) for p in g["partitions"]] for g in client.get("/v1/gpus")["items"]]


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


OK = {"tenant": BATCH, "sku": "small", "args": ["true"]}
# name, who asks, what is special about the job, what the refusal says
REFUSED = [
    ("a number that is none", "alice", {"count": 0}, "count"),
    ("an SKU that there is not", "alice", {"sku": "tiny"}, "no SKU tiny"),
    ("a tenant that is not seen", "alice", {"tenant": ASR}, "tenant: no"),
    ("who may not submit", "dave", {}, "job.submit"),
    ("a priority that one may not have", "alice", {"priority": "high"}, "priority.high"),
    ("a folder that it may not mount", "alice", {"mounts": [{"source": "/root"}]}, "may not mount /root"),
    ("a dataset that there is not", "alice", {"mounts": [{"dataset": "none"}]}, "dataset"),
    ("an image where no node has any", "alice", {"image": "dir:/nowhere"}, "image"),
    ("a network that the policy denies", "alice", {"network": "egress"}, "egress is not allowed, only none, tenant"),
    ("a network that no node has", "alice", {"network": "tenant", "name": "a"}, "has no network tenant (networks)"),
    ("a kind that the policy denies", "alice", {"kind": "service"}, "service is not allowed, only batch"),
    ("a grace that is too long", "alice", {"grace": "30m"}, "grace: 1800 s is more than"),
    ("memory that no machine has", "alice", {"memory": "4Ti"}, "no node that could hold it has more than"),
    ("memory that no node gives", "alice", {"memory": "2Gi"}, "gives a job 1024 MiB of memory at most"),
    ("more cores than a node has", "alice", {"cpu": "999"}, "no node that could hold it has more than"),
    ("more GPUs than there are", "alice", {"sku": "large", "count": 2, "cpu": "0.5", "memory": "64Mi"}, "one node holds 1 at most"),
    ("more than the limit ever allows", "alice", {"tenant": "acme/vision/train", "count": 3}, "is 2 small"),
    ("a deadline that it cannot meet", "alice", {"deadline": "1m", "time_limit": "1h"}, "deadline"),
]


def refusal(client, path, body):
    """What the client is answered: the status and the error, where what-if has the job under `submit`."""
    status, _, text = client.exchange("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    error = json.loads(text).get("error", {})
    return status, {**error, "message": error.get("message", "").removeprefix("submit.")}


@tap.test(topology=ONE, node_conf="memory_max_mib = 1024")
def admission(site):
    "submit, its dry run and what-if refuse a job for the same reason, in the same words"
    policy = "policy: {kinds: [batch], networks: [none, tenant]"
    for line in (text for text in tap.SITE.splitlines() if "name: acme/vision/batch," in text):
        site.apply(tap.SITE.replace(line, line.replace("}", ", " + policy + "}}")))
    faults = []
    for name, person, more, says in REFUSED:
        job, client = {**OK, **more}, site.client(person)
        answers = [refusal(client, path, body) for path, body in
                   (("/v1/jobs", job), ("/v1/jobs?dry_run=true", job), ("/v1/whatif", {"submit": job}))]
        if says not in answers[0][1]["message"] or answers[1:] != answers[:1] * 2:
            faults.append(f"{name}: {answers}")
    assert not faults, "\n".join(faults)


@tap.test(topology=ONE)
def others(site):
    "whatif cancel, quota and drain say what would change, to those who may do it"
    first, second = busy(site)
    text, answer = asks(site, "alice", "cancel", str(first))
    equal("changes", {c["job"]: c["kind"] for c in answer["changes"]}, {first: "cancelled", second: "earlier"})
    contains("for people", text, f"job {second} ({BATCH}) would start 59m")
    asks(site, "bob", "cancel", str(first), check=5)
    ended = site.submit("true", hold=True, client=site.client("alice"))
    said = [site.cli("alice", *args, str(ended)) for args in (("cancel",), ("cancel",), ("whatif", "cancel"))]
    contains("an ended job", said[2].stderr, f"job {ended} has ended already: cancelled")
    equal("as cancel says it", said[2].stderr, said[1].stderr)
    _, answer = asks(site, None, "quota", BATCH, "--gpus", "0.5")
    equal("quota", {c["job"]: c["kind"] for c in answer["changes"]}, {second: "never"})
    assert "site" not in answer and "of the site file" not in text, "the file is only the way"
    edited = site.dir / "guarantee.yaml"
    for amounts in ({"guarantee": "7"}, {"limit": "1", "guarantee": "2"}):
        options = [f"--{'gpus' if key == 'limit' else key}={value}" for key, value in amounts.items()]
        text, _ = asks(site, None, "quota", BATCH, *options, check=3)
        line = f"{{name: {BATCH}, kind: project"
        edited.write_text(tap.SITE.replace(line, line + "".join(f", {key}: {value}" for key, value in amounts.items())))
        equal(f"as apply refuses {amounts}", text, site.cli(None, "apply", "-f", str(edited), check=3).stderr)
    contains("a remedy of its own", asks(site, None, "quota", BATCH, "--gpus", "x", check=3)[0], "limit: GPUs, or \"none\"")
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
    store = site.dir / "state/bulkhead.db"
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
