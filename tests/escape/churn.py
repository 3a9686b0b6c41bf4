#!/usr/bin/env python3
"""Leases that come and go, on the simulated driver: how long a start takes with its look at the walls,
and whether neighbours notice.  What is left behind: leaks.py.

    churn.py BUILD latency [STARTS]     carve, start, look, first instruction: p50 and p99
    churn.py BUILD neighbours [SECONDS] work goes on while the rest of the GPU is carved again and again
    churn.py BUILD all                  short, as TAP

What is measured is our own freezing, control groups, mounts and networks, with real processes; what a
driver does meanwhile is simulated."""
import os
import pathlib
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import closing
import tap
from bulkhead import Site
from report import Report, note, skip_all

TENANTS = 8
STALL_MS, P50_MS, P99_MS = 50, 100, 250
CONF = "verify_at_start = 1\nverify_sample = 16\n"
# Works a little every 2 ms; a stall is what passed beyond that and beyond waiting for a core.
WORK = """
import os, signal, time
delay = os.open('/proc/self/schedstat', os.O_RDONLY)
stop = []
signal.signal(signal.SIGTERM, lambda *a: stop.append(1))
def waited(): return int(os.pread(delay, 64, 0).split()[1])
count, worst, last, queue = 0, 0, time.monotonic_ns(), waited()
print('ready', flush=True)
while not stop:
    time.sleep(0.002)
    now, queued = time.monotonic_ns(), waited()
    worst = max(worst, now - last - (queued - queue) - 2000000)
    count, last, queue = count + 1, now, queued
print('count', count, 'worst_us', worst // 1000, flush=True)
"""


def site_file(tenants):
    text = "tenants:\n  - {name: acme, kind: organization}\n"
    text += "".join(f"  - {{name: acme/t{i}, kind: department, boundary: hard}}\n" for i in range(tenants))
    return text + """skus:
  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}], cpu: "0.5", memory: 64Mi}
principals:
  - {name: erin, uid: 20005}
  - {name: dave, uid: 20004}
bindings:
  - {role: admin, principal: erin, tenant: "*"}
  - {role: auditor, principal: dave, tenant: "*"}
gpus:
  - {uuid: all, managed: true}
"""


def start(client, tenant, *args, **spec):
    return client.post("/v1/jobs", {"tenant": f"acme/t{tenant}", "sku": "small", "args": list(args), **spec})["id"]


def await_end(client, job, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen = client.get(f"/v1/jobs/{job}")
        if seen["state"] in ("completed", "failed", "cancelled"):
            return seen
        time.sleep(0.005)
    raise RuntimeError(f"job {job} is {seen['state']}")


def latency(build, starts, audits):
    """ms from a submission to the job's first instruction; every piece is another tenant's and carved anew."""
    found = []
    with closing.kept(audits), Site(build, "1x H100-80GB", site_file(TENANTS), node_conf=CONF) as site:
        client = site.client()
        for i in range(starts + TENANTS):
            before = time.time()
            job = start(client, i % TENANTS, "bash", "-c", "echo $EPOCHREALTIME")
            ended = await_end(client, job)
            assert ended["state"] == "completed", ended
            found.append((float(site.log(job)) - before) * 1000)
    found = sorted(found[TENANTS:])
    return statistics.median(found), found[min(len(found) - 1, len(found) * 99 // 100)]


def neighbours(build, seconds, audits):
    """(work done by each of 3 neighbours, longest stall in ms, carvings beside them)"""
    carved = 0
    with closing.kept(audits), Site(build, "1x H100-80GB", site_file(TENANTS), node_conf=CONF) as site:
        client = site.client()
        workers = [start(client, t, "python3", "-c", WORK, grace="5s") for t in range(3)]
        for job in workers:
            site.until(lambda: "ready" in site.log(job), what="a neighbour")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            tenants = range(3, TENANTS)
            jobs = [start(client, t, "true") for t in tenants]
            for job in jobs:
                await_end(client, job)
            carved += len(jobs)
        for job in workers:
            client.post(f"/v1/jobs/{job}/cancel")
        logs = [(await_end(client, job), site.log(job))[1] for job in workers]
    found = [re.search(r"count (\d+) worst_us (-?\d+)", log) for log in logs]
    return [int(f.group(1)) for f in found], max(int(f.group(2)) for f in found) / 1000, carved


def main():
    build, what = sys.argv[1], sys.argv[2]
    amount = float(sys.argv[3]) if len(sys.argv) > 3 else None
    lack = tap.missing()
    if lack:
        skip_all(lack)
    results, audits = [], []
    if what in ("latency", "all"):
        p50, p99 = latency(build, int(amount or 20), audits)
        load = os.getloadavg()[0]
        print(f"# carve, start, look, first instruction: p50 {p50:.1f} ms, p99 {p99:.1f} ms (load {load:.1f})")
        if what == "latency" or load < 3:
            results.append((f"a start with its look takes {P50_MS} ms at the median, {P99_MS} at the 99th percentile", p50 < P50_MS and p99 < P99_MS))
    if what in ("neighbours", "all"):
        work, stall, carved = neighbours(build, amount or 2, audits)
        print(f"# {carved} carvings beside 3 neighbours, who went on {work} times; longest stall {stall:.1f} ms")
        results.append((f"neighbours of a repartitioned GPU never stall for {STALL_MS} ms", stall < STALL_MS and min(work) > 100 and carved > 0))
    results.append(("the closing audits hold", not audits))
    note(audits)
    return Report(len(results)).rows(results).close()


if __name__ == "__main__":
    sys.exit(main())
