#!/usr/bin/env python3
"""Seven tenants start and stop jobs on each of eight simulated GPUs; what is left of it afterwards: nothing.

    leaks.py BUILD [SECONDS]

First all 56 places are taken at once.  Then jobs come and go, of each tenant on each GPU: pieces have two sizes
and pass from tenant to tenant with a scrub, one job in three has a network, one in eight is cancelled, one in
eight fails.  After a tenth of the time and at the end all jobs end, and what stands then is counted, on the
machine and in each program; memory and descriptors are looked at every second.  In a network namespace of the
test's own."""
import collections
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import closing
import tap
from bulkhead import SLOW, Client, Refused, Site
from report import Report, note, skip_all

TENANTS, GPUS, GOING = 7, 8, 8  # jobs of each at a time: with small ones all 56 places are taken; a SKU with
                               # cores would have no more of them at once than the machine has cores for
CONF = """verify_at_start = 1
verify_sample = 16
networks = tenant
networks = egress
network_pool = 10.214.0.0/16
network_uplinks = lo
network_forwarding = 1
"""
SITE = "tenants:\n  - {name: acme, kind: organization}\n" + "".join(
    f"  - {{name: acme/t{i}, kind: department, boundary: hard}}\n" for i in range(TENANTS)) + """skus:
  - {name: small, grade: C, models: [{model: A100-40GB, profile: 1g.5gb}], memory: 64Mi}
  - {name: medium, grade: C, models: [{model: A100-40GB, profile: 2g.10gb}], memory: 64Mi}
policy: {egress: ['198.51.100.0/24 tcp 80']}
principals:
  - {name: erin, uid: 20005}
  - {name: dave, uid: 20004}
bindings:
  - {role: admin, principal: erin, tenant: "*"}
  - {role: auditor, principal: dave, tenant: "*"}
gpus:
  - {uuid: all, managed: true}
"""
# The store opens readers as they are needed, up to BH_STORE_READERS_MAX, and keeps them.
KEPT_OPEN = {"bulkhead.db": 9, "bulkhead.db-wal": 9, "series.db": 2, "series.db-wal": 2}
PROGRAMS = ("bulkheadd", "bulkhead-signer", "bulkhead-node", "bulkhead-gpu")
SETTLE_S = 60
FLAT_S = 300  # before that, buffers and caches still grow
# What a program may have more at the end than when it had done a third: the store's caches are bounded, but
# not yet full then where the machine is slow (2 MiB of the writer, a quarter for each reader).
GROWTH_KIB = {"bulkheadd": 2048, "bulkhead-signer": 128, "bulkhead-node": 128, "bulkhead-gpu": 128}


# ---- what jobs do ----

def spec(chance, tenant):
    network = chance.choice(["none", "none", "tenant"])
    script = f"sleep {chance.uniform(0.1, 4):.1f}" + ("; exit 3" if chance.random() < 0.125 else "")
    return {"tenant": f"acme/t{tenant}", "sku": "medium" if chance.random() < 0.05 else "small", "network": network,
            "grace": "1s", "args": ["sh", "-c", script]}


def churn(site, tenant, until, seen):
    """One tenant keeps its jobs going; which GPU each was on is put into `seen`, by job."""
    client, chance, going = Client(site.socket), random.Random(tenant), []
    while time.monotonic() < until or going:
        while len(going) < GOING and time.monotonic() < until:
            going.append(client.post("/v1/jobs", spec(chance, tenant))["id"])
            if chance.random() < 0.125:
                cancel(client, chance.choice(going))
        active = {j["id"]: j for j in client.get(f"/v1/jobs?tenant=acme/t{tenant}&active=true&limit=100")["items"]}
        seen.update({j["id"]: (tenant, j["partitions"].split()[0]) for j in active.values() if j.get("partitions")})
        going = [j for j in going if j in active]
        time.sleep(0.05)
    client.close()


def cancel(client, job):
    try:
        client.post(f"/v1/jobs/{job}/cancel")
    except Refused:
        pass  # it has ended


def fill(site):
    """Jobs on all places at once, of each tenant as many; the pairs of a tenant and a GPU."""
    client = site.client()
    jobs = [client.post("/v1/jobs", {"tenant": f"acme/t{i % TENANTS}", "sku": "small", "grace": "1s", "args": ["sleep", "3600"]})["id"]
            for i in range(TENANTS * GPUS)]
    rows = [site.await_state(job, "running", seconds=600) for job in jobs]
    client = site.client()  # the other connection has been idle for too long
    for job in jobs:
        cancel(client, job)
    return {(int(row["tenant"][-1]), row["partitions"].split()[0]) for row in rows}


def run_for(site, seconds, seen):
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=churn, args=(site, t, until, seen)) for t in range(TENANTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- what stands ----

def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def programs(site):
    """{name: pid} of those that go on for as long as the site does."""
    found = {"bulkheadd": site.daemon.pid, "bulkhead-node": site.node.pid}
    for name in ("bulkhead-signer", "bulkhead-gpu"):
        pids = site.processes(name)
        if pids:
            found[name] = min(pids)
    return found


def descriptors(pid):
    """How many of each kind a process has open."""
    kinds = collections.Counter()
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{number}")
        except OSError:
            continue
        kinds[re.sub(r"^.*/|[:\[]*\d+\]?$", "", target)] += 1
    return {kind: n for kind, n in kinds.items() if n > KEPT_OPEN.get(kind, 0)}


def namespaces(site):
    """Those that a process of the site is in, has open, or that are mounted in the node's."""
    found = set()
    for pid in site.processes():
        for folder in ("ns", "fd"):
            try:
                found |= {link for link in (os.readlink(p) for p in pathlib.Path(f"/proc/{pid}/{folder}").iterdir())
                          if re.match(r"[a-z_]+:\[\d+\]$", link) and not link.startswith(("socket:", "pipe:"))}
            except OSError:
                pass
    mounted = re.findall(r" - nsfs (\S+)", read(f"/proc/{site.node.pid}/mountinfo"))
    return len(found) + len(mounted)


def lines_of(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout.count("\n")


def files_below(folder):
    return sum(len(names) + len(folders) for _, folders, names in os.walk(folder))


def counts(site):
    """What must be the same after any number of leases."""
    running = programs(site)
    return {"control groups": len(site.groups()), "processes": len(site.processes()),
            "mounts of the node": read(f"/proc/{site.node.pid}/mountinfo").count("\n"),
            "mounts of the machine": read("/proc/self/mountinfo").count("\n"),
            "namespaces": namespaces(site), "interfaces": [name for _, name in socket.if_nameindex()],
            "rules of packets": lines_of("nft", "list", "ruleset"), "routes": lines_of("ip", "route"),
            "files of the node": files_below(site.dir / "node"), "files of runs": files_below(site.dir / "run"),
            **{f"descriptors of {name}": descriptors(pid) for name, pid in running.items()},
            **{f"threads of {name}": len(os.listdir(f"/proc/{pid}/task")) for name, pid in running.items()}}


def instances(site):
    """GPU instances that stand in the driver."""
    said = subprocess.run([site.program("bulkhead-simctl"), "--state", str(site.sim), "status"], capture_output=True, text=True)
    return re.findall(r"^  gi \d+", said.stdout, re.M)


def pieces(site):
    return [p for g in site.client("erin").get("/v1/gpus")["items"] for p in g["partitions"] if p["profile"] != "whole"]


def settle(site, wanted=None):
    """Once all has ended, the daemon has acknowledged it and closed what we closed: what stands, and stood half
    a second before."""
    deadline, last = time.monotonic() + SETTLE_S * SLOW, None
    while True:
        seen = counts(site)
        ended = not list((site.dir / "node/jobs").iterdir())
        if ended and seen == last and wanted in (None, seen) or time.monotonic() > deadline:
            return seen
        last = seen
        time.sleep(0.5)


# ---- memory ----

class Watch(threading.Thread):
    """Anonymous memory of each program, in KiB, every second."""

    def __init__(self, site):
        super().__init__()
        self.site, self.over = site, threading.Event()
        self.series = collections.defaultdict(list)
        self.most = collections.Counter()

    def run(self):
        while not self.over.wait(1):
            for name, pid in programs(self.site).items():
                anonymous = re.search(r"RssAnon:\s+(\d+)", read(f"/proc/{pid}/status"))
                if anonymous:
                    self.series[name].append(int(anonymous.group(1)))
                    self.most[name] = max(self.most[name], len(os.listdir(f"/proc/{pid}/fd")))

    def part(self, name, begin, end):
        """The most it had between two shares of the time."""
        series = self.series[name]
        return max(series[int(len(series) * begin):int(len(series) * end)] or [0])


# ---- scrubs ----

def receipts(site):
    client, after, found = site.client("dave"), 0, []
    while True:
        page = client.get(f"/v1/receipts?limit=10000&after={after}")
        found += page["items"]
        if "next" not in page:
            return found
        after = page["next"]


def check_scrubs(site):
    """Complaints about receipts; how many there are."""
    kept = [r for r in receipts(site) if r["method"] != "earlier"]  # which is no scrub
    said = len([line for line in read(site.dir / "node.log").splitlines() if "scrubbed before another" in line or "event=scrubbed" in line])
    bad = [r for r in kept if (r["method"], r["result"]) != ("fill", "clean")]
    wrong = [f"a receipt that is not clean: {bad[0]}"] if bad else []
    return wrong + ([f"{said} scrubs, {len(kept)} receipts"] if said != len(kept) else []), len(kept)


# ---- all ----

def compare(before, after):
    return [f"{name}: {value} before, {after.get(name)} after" for name, value in before.items() if after.get(name) != value]


def leaks(build, seconds):
    seen, audit = {}, []
    with closing.kept(audit), Site(build, f"{GPUS}x A100-40GB", SITE, node_conf=CONF) as site:
        shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
        site.run("true", tenant="acme/t0", network="tenant")
        site.run("true", tenant="acme/t0", network="egress")  # rules that stay once they are needed
        pairs = fill(site)
        watch = Watch(site)
        watch.start()
        try:
            run_for(site, seconds * 0.1, seen)
            before = settle(site)
            run_for(site, seconds * 0.9, seen)
        finally:
            watch.over.set()
            watch.join()
        after = settle(site, before)
        wrong = compare(before, after)
        if len(instances(site)) != len(pieces(site)):
            wrong.append(f"{len(instances(site))} instances stand, {len(pieces(site))} pieces are known")
        wrong += [f"a piece is {p['state']}" for p in pieces(site) if p["state"] != "idle"]
        wrong += [line for line in site.bad_lines("effect failed") if "isolation was not verified" not in line][:3]
        unclean, scrubs = check_scrubs(site)
        wrong += unclean
        fat = [f"{name}: {watch.part(name, 0.33, 0.5)} KiB, then {watch.part(name, 0.85, 1)} KiB" for name in PROGRAMS
               if watch.part(name, 0.85, 1) > watch.part(name, 0.33, 0.5) + GROWTH_KIB[name]]
        for name in PROGRAMS:
            print(f"# {name}: anonymous memory {watch.part(name, 0, 0.1)} KiB in the first tenth, {watch.part(name, 0.33, 0.5)} in "
                  f"the middle, {watch.part(name, 0.85, 1)} at the end; at most {watch.most[name]} descriptors")
        print(f"# {len(seen)} jobs in {seconds:.0f} s, {len(pairs | set(seen.values()))} pairs of a tenant and a GPU, {scrubs} scrubs")
        print(f"# at rest: {after}")
        if len(pairs | set(seen.values())) != TENANTS * GPUS:
            wrong.append("not every tenant was on every GPU")
    return seen, scrubs, wrong, fat, audit


def main():
    build, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 20
    lack = tap.missing()
    if lack:
        skip_all(lack)
    jobs, scrubs, wrong, fat, audit = leaks(build, seconds)
    note(wrong + fat + audit)
    results = [("nothing is left of leases that came and went", not wrong and jobs and scrubs > 0), ("the closing audit holds", not audit),
               ("memory is flat", not fat)][:3 if seconds >= FLAT_S else 2]
    return Report(len(results)).rows(results).close()


if __name__ == "__main__":
    tap.in_own_network()
    sys.exit(main())
