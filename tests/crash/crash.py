#!/usr/bin/env python3
"""Kills and stops bulkheadd, its signer, bulkhead-node, the gpu child, keepers, crun and jobs' process 1 at
random moments under load, lets calls of the driver hang, and counts what was lost, done twice or left behind.
All of it must be nothing.

    crash.py BUILD [--seed N] [--kills N] [--scrubs] [--trials N]

--scrubs: memory passes between tenants with scrubs, whose helper is killed and stopped, too.
--trials: instead, N times: 50 acknowledged submissions, kill -9, restart, count."""
import argparse
import collections
import http.client
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import closing
import scrubs
import strikes
import tap
from bulkhead import Refused, Site
from report import Report, skip_all
from strikes import command

BATCH, ASR = "acme/vision/batch", "acme/speech/asr"
COUNT = "r={run}; echo start $r; i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep 0.01; done; echo end $r"
SHORT = "r={run}; echo start $r; sleep {pause}; echo end $r"
LOAD = "r={run}; echo start $r; bulkhead-simload --mib 64 --seconds 1 --busy 1; echo end $r"
RUN = "$(cat /proc/sys/kernel/random/uuid)"
ACTIVE_MAX, WORKERS = 40, 4
SETTLE_S = 300  # a piece whose scrub failed is tried again after 30 s, 1 min, 2 min
EXPECTED = ("exited", "cancelled")
STRUCK = ("signalled", "start_failed")  # of those whose own sandbox was struck
BLAMED = ("gpu_lost", "gpu_fault", "carve_failed", "start_failed", "resume_failed")  # where the driver hung

# share of the load, script, what the submission says more, what is done to it afterwards
KINDS = [
    (50, "short", SHORT, {}, None),
    (12, "cancelled", SHORT.replace("{pause}", "1"), {"grace": "1s"}, "cancel"),
    (8, "held", SHORT, {"hold": True}, "release"),
    (12, "counting", COUNT, {"sku": "large", "priority": "low", "on_preempt": "suspend"}, None),
    (6, "loading", LOAD, {"sku": "large", "priority": "low", "on_preempt": "suspend", "grace": "1s"}, None),
    (12, "high", SHORT, {"sku": "large", "priority": "high", "tenant": ASR}, None),
]
SCRUB_KINDS = [(10, "looking", "", {}, None), (10, "looking", "", {"tenant": ASR}, None)]


class Load:
    """Threads that submit, each request repeated under its key until it is acknowledged."""

    def __init__(self, site, seed, kinds):
        self.site, self.seed, self.kinds = site, seed, kinds
        self.acknowledged, self.lock = {}, threading.Lock()
        self.retries = self.refused = 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(WORKERS)]

    def persist(self, method, path, body, key):
        """The answer, however often the daemon has to be asked."""
        while True:
            try:
                client = self.site.client()
                try:
                    return client.request(method, path, body, {"Idempotency-Key": key})
                finally:
                    client.close()
            except Refused as error:
                if error.status < 500:
                    self.refused += 1
                    return None
            except (OSError, http.client.HTTPException):
                pass
            self.retries += 1
            time.sleep(0.02)

    def work(self, number):
        chance = random.Random(f"{self.seed}/{number}")
        while not self.over.is_set():
            kind = chance.choices(self.kinds, [k[0] for k in self.kinds])[0]
            self.one(chance, *kind[1:])
            if chance.random() < 0.2:
                self.wait_for_room()

    def one(self, chance, kind, script, more, then):
        name = f"{kind}-{uuid.UUID(int=chance.getrandbits(128))}"
        script = script.format(run=RUN, pause=round(chance.random() * 0.1, 3)) if script else scrubs.script(self.site, RUN)
        spec = {"tenant": BATCH, "sku": "small", "name": name, "args": ["sh", "-c", script], **more}
        answer = self.persist("POST", "/v1/jobs", spec, name)
        if not answer:
            return
        with self.lock:
            self.acknowledged[answer["id"]] = name
        if then:
            time.sleep(chance.random() * 0.2)
            self.persist("POST", f"/v1/jobs/{answer['id']}/{then}", None, name + then)

    def wait_for_room(self):
        while not self.over.is_set():
            try:
                if self.site.client().get("/v1/jobs?active=true&limit=1")["total"] < ACTIVE_MAX:
                    return
            except (OSError, http.client.HTTPException, Refused):
                pass
            time.sleep(0.05)


class Findings:
    def __init__(self):
        self.checks, self.faults = 0, []

    def check(self, what, holds, *details):
        self.checks += 1
        if not holds:
            self.faults.append(f"{what}: {' '.join(str(d) for d in details)}"[:600])


def settle(site, found, seconds=60):
    """Every job reaches its end once nothing is killed any more."""
    client = site.client()
    try:
        site.until(lambda: client.get("/v1/jobs?active=true&limit=1")["total"] == 0, seconds, 0.1)
    except RuntimeError:
        stuck = client.get("/v1/jobs?active=true&limit=20")["items"]
        found.check("every job ends", False, [(j["id"], j["name"].split("-")[0], j["state"], j["reason"]) for j in stuck])


def all_jobs(site):
    client, after, jobs = site.client(), 0, {}
    while True:
        page = client.get(f"/v1/jobs?limit=1000&after={after}")
        jobs.update({j["id"]: j for j in page["items"]})
        if "next" not in page:
            return jobs
        after = page["next"]


def check_jobs(site, load, jobs, found):
    names = collections.Counter(j["name"] for j in jobs.values())
    for job, name in load.acknowledged.items():
        found.check("acknowledged and there", job in jobs and jobs[job]["name"] == name, job, name)
    for name, count in names.items():
        found.check("submitted once", count == 1, name, count)
    preempted = {d["job"] for r in site.leaves() for d in r.get("do", []) if d["kind"] in ("stop", "suspend")}
    begun_again = preempted | lost_keepers(site)
    for job in jobs.values():
        check_job(site, job, job["id"] in begun_again, found)


def lost_keepers(site):
    """Jobs whose keeper died: how far such a run came is unknown, and it is begun again."""
    leaves = site.leaves()
    owner = {d["lease"]: d["job"] for r in leaves for d in r.get("do") or [] if "lease" in d and "job" in d}
    ends = [(r.get("ev") or {}).get("ended") or {} for r in leaves]
    return {owner.get(end.get("lease")) for end in ends if end.get("cause") == "keeper_lost"}


def check_job(site, job, preempted, found):
    log, name = site.log(job["id"]), f"job {job['id']} ({job['name'][:20]})"
    starts, ends = re.findall(r"^start (\S+)$", log, re.M), re.findall(r"^end (\S+)$", log, re.M)
    found.check("no double start", len(starts) <= job["restarts"] + 1, name, starts, job["restarts"])
    found.check("every start is another", len(set(starts)) == len(starts), name, starts)
    if job["state"] == "completed":
        found.check("completed ran to its end", ends[-1:] == starts[-1:] and len(ends) >= 1, name, log[-100:])
    # a job that was preempted may come to its end all the same, and runs again
    found.check("no run that came to its end is repeated", preempted or len(ends) <= 1, name, starts, ends, job["restarts"])
    for run in log.split("start ")[1:]:
        lines = [int(n) for n in re.findall(r"^line (\d+)$", run, re.M)]
        found.check("output without a gap", lines == list(range(1, len(lines) + 1)), name, lines)


def leftovers(site):
    own = (site.daemon.pid, site.node.pid)
    return [(p, command(p)[:120]) for p in site.processes() if p not in own and "bulkhead-gpu" not in command(p) and "bulkhead-signer" not in command(p)]


def check_rest(site, found):
    """Nothing of any job is left on the machine."""
    for what, look in (("no process is left", lambda: leftovers(site)), ("no control group is left", site.groups),
                       ("no mount is left", lambda: closing.mounts_of_jobs(site)),
                       ("no folder is left", lambda: sorted(p.name for p in (site.dir / "node/jobs").iterdir()))):
        try:
            site.until(lambda: not look(), 10)
            found.check(what, True)
        except RuntimeError:
            found.check(what, False, look())
    children = site.processes("bulkhead-gpu")
    most = 2 + len(site.client().get("/v1/gpus")["items"])  # for orders, for the survey, for each GPU's events
    found.check(f"at most {most} gpu children", len(children) <= most, children)


def instances(site):
    """(GPU, profile) of every MIG device as the driver lists them."""
    done = subprocess.run([site.bin.parent / "tools/bulkhead-smi", "--library", site.dir / "lib/libnvidia-ml.so.1", "-L"],
                          capture_output=True, text=True, env={"BULKHEAD_SIM_STATE": str(site.sim), "PATH": os.environ["PATH"]})
    listed, gpu = [], None
    for line in done.stdout.splitlines():
        gpu = re.search(r"GPU-[0-9a-f-]+", line).group() if line.startswith("GPU") else gpu
        profile = re.match(r"\s+MIG (\S+)", line)
        if profile:
            listed.append((gpu, profile.group(1)))
    return sorted(listed)


def pieces(site):
    return sorted((g["uuid"], p["profile"]) for g in site.client().get("/v1/gpus")["items"]
                  for p in g["partitions"] if p["profile"] != "whole")


def check_instances(site, found):
    try:
        site.until(lambda: instances(site) == pieces(site), 10)
    except RuntimeError:
        pass
    found.check("no leaked MIG instance", instances(site) == pieces(site), instances(site), pieces(site))
    held = [p for g in site.client().get("/v1/gpus")["items"] for p in g["partitions"] if p["state"] != "idle"]
    found.check("no piece is held", not held, held)


def check_logs(site, found):
    lines = site.bad_lines("invariant", "cannot continue", "assert", "Sanitizer", "runtime error", "not usable", "commit failed", "was restored")
    found.check("nothing bad in the logs", not lines, lines[:3])


def check_replay(site, found, jobs):
    """A last kill -9: replay leads to the same jobs, and the audit log verifies."""
    site.kill(site.daemon)
    site.start_daemon()
    found.check("replay gives the same jobs", all_jobs(site) == jobs)
    time.sleep(1.1)  # a checkpoint covers the last records
    store = str(site.dir / "state/bulkhead.db")
    done = site.cli(None, "audit", "verify", "--store", store)
    found.check("audit verify", done.returncode == 0, done.stdout, done.stderr)
    done = subprocess.run([site.program("bulkhead-replay"), "journal", store], capture_output=True, text=True)
    found.check("replay from nothing meets every snapshot's digest", done.returncode == 0, done.stdout[-300:], done.stderr[-300:])


def storm(build, seed, kills, with_scrubs):
    found, chance = Findings(), random.Random(seed)
    began, looked = time.monotonic(), ""
    kinds = KINDS + (SCRUB_KINDS if with_scrubs else [])
    targets = strikes.KILLS + strikes.HANGS + (strikes.SCRUBS if with_scrubs else [])
    with closing.kept(found.faults), \
            Site(build, topology=scrubs.TOPOLOGY if with_scrubs else "2x H100-80GB", site=scrubs.SITE if with_scrubs else tap.SITE,
                 daemon_conf="check_every = 1\nsnapshot_every = 300", node_conf=strikes.NODE_CONF) as site:
        site.announce("the signer is gone")  # and comes back: what closes says whether all is signed
        load, killer = Load(site, seed, kinds), strikes.Killer(site, chance, targets)
        killer.write_rules([])
        if with_scrubs:
            scrubs.prepare(site)
        strike(load, killer, kills)
        release_all(site)
        settle(site, found, SETTLE_S if with_scrubs else 60)
        jobs = all_jobs(site)
        check_jobs(site, load, jobs, found)
        check_causes(site, killer, jobs, found)
        check_rest(site, found)
        check_instances(site, found)
        if with_scrubs:
            looked = "%d receipts, %d looks into memory" % scrubs.check(site, jobs, found)
        check_logs(site, found)
        check_replay(site, found, jobs)
        if found.faults:
            site.report(True)
    states = collections.Counter(j["state"] for j in jobs.values())
    causes = collections.Counter(j.get("cause") for j in jobs.values())
    print(f"# seed {seed}: {sum(killer.count.values())} strikes {dict(killer.count)}, {len(load.acknowledged)} jobs acknowledged, "
          f"{load.retries} retries, {load.refused} refused, {sum(j['restarts'] for j in jobs.values())} restarts {looked}")
    print(f"# states {dict(states)}, causes {dict(causes)}, {found.checks} checks, {time.monotonic() - began:.1f} s")
    return found


def strike(load, killer, kills):
    """Load and strikes at once, until there were so many that met something."""
    for thread in load.threads:
        thread.start()
    try:
        while sum(killer.count.values()) - killer.count["nothing there"] < kills:
            killer.strike()
    finally:
        load.over.set()
        for thread in load.threads:
            thread.join()
    killer.write_rules([])


def check_causes(site, killer, jobs, found):
    """A job fails only when its sandbox was struck or the driver of its GPU hung."""
    struck = {d["job"] for r in site.leaves() for d in r.get("do", []) if d.get("lease") in killer.hit}
    for job in jobs.values():
        cause = job.get("cause")
        explained = cause in EXPECTED[1:] or job["state"] == "completed" or (cause in STRUCK and job["id"] in struck) or (cause in BLAMED and killer.blamed)
        found.check("ended for a reason", explained, job["id"], job["name"][:20], cause, repr(site.log(job["id"])[-200:]))
        if not explained:
            print("\n".join(history(site, job["id"])))


def history(site, job):
    """What the journal says of one job, as comment lines."""
    leaves = site.leaves()
    leases = {d["lease"] for r in leaves for d in r.get("do", []) if d.get("job") == job and "lease" in d}
    for r in leaves:
        event = r.get("ev") or {}
        own = [d for d in r.get("do", []) if d.get("job") == job]
        about = [e for e in event.values() if isinstance(e, dict) and (e.get("lease") in leases or e.get("job") == job)]
        if own or about or r["verb"] in ("daemon.start", "node.down", "node.up"):
            yield f"#   {r['seq']} {int(r['ts']) // 1000000 % 1000000} {r['verb']} {event if about else ''} {own or ''}"


def release_all(site):
    client = site.client()
    for job in client.get("/v1/jobs?state=pending&limit=1000")["items"]:
        if job["reason"] == "held":
            client.post(f"/v1/jobs/{job['id']}/release")


def trial(site, found, known):
    """50 acknowledged submissions, kill -9 at once, restart: all are there."""
    client = site.client()
    fresh = [site.submit("true", client=client, hold=True) for _ in range(50)]
    site.kill(site.daemon)
    site.start_daemon()
    client = site.client()
    known += fresh
    lost = [j for j in fresh if client.get(f"/v1/jobs/{j}")["state"] != "pending"]
    found.check("none of 50 is lost", not lost and client.get("/v1/jobs?limit=1")["total"] == len(known), lost)
    return len(lost)


def trials(build, count):
    found, lost, done, began = Findings(), 0, 0, time.monotonic()
    while done < count:
        with closing.kept(found.faults), Site(build, topology="1x H100-80GB", site=tap.SITE) as site:
            known = []
            for _ in range(min(20, count - done)):
                lost += trial(site, found, known)
                done += 1
    print(f"# 50 acknowledged submissions, kill -9, restart: {lost} lost in {done} trials, {time.monotonic() - began:.1f} s")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--scrubs", action="store_true")
    parser.add_argument("--trials", type=int, default=0)
    args = parser.parse_args()
    lack = tap.missing()
    if lack:
        skip_all(lack)
    report = Report(1)
    found = trials(args.build, args.trials) if args.trials else storm(args.build, args.seed, args.kills, args.scrubs)
    what = f"{args.trials} trials" if args.trials else f"{args.kills} kills and hangs, seed {args.seed}"
    report.line(not found.faults, f"nothing lost, nothing done twice, nothing left behind ({what})", found.faults[:30])
    sys.exit(report.close())


if __name__ == "__main__":
    main()
