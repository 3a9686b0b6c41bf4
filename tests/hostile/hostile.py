#!/usr/bin/env python3
"""A hostile tenant as a fixture: with a developer's rights and one small slice it does random things for
a while, and two honest tenants beside it must not notice.

usage: hostile.py BUILD [--seconds N] [--seed N] [--only ACT]... [--node PROGRAM]

Mallory is a developer of a department of his own, behind a hard boundary, whose limit is one small
partition.  He mounts, names, executes, verifies, cancels, forks, fills, watches, signs in wrongly, opens
connections and sends what is no HTTP, as the seed says.  Alice and Bob run jobs meanwhile: each must end
as it should, run once, print what it was told to, and be answered in time; so must root's questions.
At the end nothing may be fenced, no GPU or node may have lost its grade, and the closing audit holds.
Prints TAP: one line for the honest, one for the site, one for the closing audit."""
import argparse
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
import closing  # noqa: E402
import tap  # noqa: E402
from bulkhead import ENDED, PEOPLE, SLOW, Client, Refused, Site, UnixConnection, stage  # noqa: E402
from report import Report, skip_all  # noqa: E402

TENANT = "acme/evil/lab"
ANSWER_S = 2.0      # what an honest question may take
RESULT_S = 30.0     # what an honest job may take, from submission to its end
CONNECTIONS = 200
NUMBERS = pathlib.Path("/proc/sys/kernel/ns_last_pid")  # of the test's own namespace
HIGH, LOW = "30000", "300"
PEOPLE["mallory"] = 20066

SITE = (pathlib.Path(__file__).resolve().parents[1] / "lib/site.yaml").read_text()
SITE = SITE.replace("principals:\n", "principals:\n  - {name: mallory, uid: 20066}\n")
SITE = SITE.replace("bindings:\n", f"bindings:\n  - {{role: developer, principal: mallory, tenant: {TENANT}}}\n")
SITE = SITE.replace("\nskus:\n", """  - {name: acme/evil, kind: department, boundary: hard, limit: "1/7"}
  - {name: acme/evil/lab, kind: project}

skus:
""", 1) + """
mounts: [{path: %(dir)s/mallory, tenant: acme/evil, write: true}]
"""


# ---- what Mallory does ----

class Mallory:
    """A tenant's acts are methods named act_*; each may fail, as long as it fails for that tenant alone.  They come in
    random order, and each before any comes again."""

    def __init__(self, site, seed, only):
        self.site, self.random = site, random.Random(seed)
        self.names, self.deck = only or sorted(name[4:] for name in dir(self) if name.startswith("act_")), []
        self.sockets, self.done, self.wrong = [], {}, []

    def client(self):
        return self.site.client("mallory")

    def act(self):
        if not self.deck:
            self.deck = self.random.sample(self.names, len(self.names))
        name = self.deck.pop()
        self.done[name] = self.done.get(name, 0) + 1
        try:
            getattr(self, "act_" + name)()
        except (Refused, OSError, http.client.HTTPException, RuntimeError):
            pass

    def insist(self, ask):
        """Ask again while the answer is that requests come too often."""
        deadline = time.monotonic() + 5 * SLOW
        while True:
            try:
                return ask()
            except Refused as refused:
                if refused.status != 429 or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def submit(self, script, **spec):
        return self.site.submit("sh", "-c", script, client=self.client(), tenant=TENANT, **{"grace": "0s", **spec})

    def run_alone(self, script, **spec):
        """A job of the tenant that runs; earlier ones are cancelled for it."""
        for job in self.active():
            self.quietly(lambda: self.insist(lambda: self.client().post(f"/v1/jobs/{job['id']}/cancel")))
        self.site.until(lambda: not self.active(), 10)
        job = self.insist(lambda: self.submit(script, **spec))
        self.site.until(lambda: self.insist(lambda: self.client().get(f"/v1/jobs/{job}"))["state"] in ("running", *ENDED), 5)
        return job

    def active(self):
        return self.insist(lambda: self.client().get("/v1/jobs?active=true&limit=1000"))["items"]

    def some_job(self):
        """A number that may be anyone's."""
        return self.random.randrange(1, 60)

    # jobs

    def act_mount_deep(self):
        "targets that are longer than a reader's buffer, and more of them than it holds"
        deep = "/".join(["t" * self.random.randrange(100, 250)] * 20)[:self.random.choice([260, 600, 980, 3900])]
        source = f"{self.site.dir}/mallory"
        mounts = [{"source": source, "target": f"/{deep}/{n}"} for n in range(self.random.randrange(1, 60))]
        self.run_alone("sleep 0.2", mounts=mounts)

    def act_named_init(self):
        "a child with the name of process 1 and a lower number than that, and questions about it"
        NUMBERS.write_text(HIGH)
        mine = pathlib.Path(self.site.dir, "mallory")
        job = self.run_alone("cp /bin/sleep /tmp/init; echo up; until [ -e /mnt/go ]; do :; done; for i in 1 2 3 4 5 6 7 8 9; do "
                             "(trap '' USR1; exec /tmp/init 3 5</etc/passwd) & done; echo named; wait",
                             mounts=[{"source": str(mine), "target": "/mnt", "write": True}], time_limit="9s")
        self.site.until(lambda: "up" in self.site.log(job), 5)
        (mine / "go").touch()
        deadline = time.monotonic() + 5 * SLOW
        while "named" not in self.site.log(job) and time.monotonic() < deadline:
            for _ in range(200):  # as after 4 million processes
                NUMBERS.write_text(LOW)
        (mine / "go").unlink()
        self.insist(lambda: self.client().post(f"/v1/jobs/{job}/verify"))

    def act_odd_names(self):
        name = self.random.choice(["\u202e" + "x" * 8, "a" * 300, "-rf", "../../etc", "%s%n", "\u0000"])
        self.submit("true", name=name)

    def act_forks(self):
        self.submit("f() { f | f & }; f; sleep 1", pids=64, time_limit="3s")

    def act_fills(self):
        self.submit(self.random.choice(["head -c 200M /dev/zero > /tmp/x", "yes | head -c 50M", "tail /dev/zero",
                                        "for i in $(seq 5000); do : > /dev/shm/$i; done",
                                        "dd if=/dev/zero of=/run/bulkhead-sim/vram/x bs=1M count=64"]), time_limit="4s")

    def act_spins(self):
        self.submit("for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; sleep 2", time_limit="2s")

    def act_stops_itself(self):
        self.submit("kill -STOP $$; sleep 1", time_limit="2s")

    def act_ends_at_once(self):
        job = self.submit("true")
        self.client().post(f"/v1/jobs/{job}/verify")

    def act_many(self):
        for _ in range(20):
            self.submit("true", hold=True)

    def act_execs(self):
        job = self.run_alone("sleep 2")
        for _ in range(4):
            self.client().post(f"/v1/jobs/{job}/exec", {"args": ["sh", "-c", "mount -t tmpfs x /mnt; kill -9 1; cat /proc/1/environ"]})

    # the API

    def act_verifies(self):
        for _ in range(20):
            path = self.random.choice([f"/v1/jobs/{self.some_job()}/verify", "/v1/verify"])
            self.quietly(lambda: self.client().post(path))

    def act_cancels(self):
        for _ in range(10):
            self.quietly(lambda: self.client().post(f"/v1/jobs/{self.some_job()}/cancel"))

    def act_looks(self):
        for path in ("/v1/receipts?job={}", "/v1/jobs/{}", "/v1/jobs/{}/logs", "/v1/jobs/{}/why", "/v1/records?job={}"):
            self.quietly(lambda: self.client().get(path.format(self.some_job())))

    def act_tokens(self):
        for _ in range(20):
            self.quietly(lambda: self.client().post("/v1/tokens", {"note": "x" * 100}))

    def act_signs_in(self):
        for _ in range(20):
            wrong = {"Authorization": f"Bearer {self.random.choice(('bh_', 'bs_'))}" + "0" * self.random.randrange(10, 60)}
            guess = {"account": self.random.choice(("root", "alice", "mallory")), "password": "guess"}
            for status in (self.status_of("GET", "/v1/whoami", None, wrong), self.status_of("POST", "/v1/sign-in", guess)):
                if status not in (401, 429):
                    self.wrong.append(f"a wrong sign-in was answered with {status}")

    def status_of(self, *request):
        try:
            self.client().request(*request)
            return 200
        except Refused as refused:
            return refused.status

    def quietly(self, ask):
        try:
            ask()
        except (Refused, OSError, http.client.HTTPException):
            pass

    # connections

    def connect(self):
        connection = UnixConnection(self.site.socket, timeout=5, uid=PEOPLE["mallory"])
        connection.connect()
        return connection.sock

    def act_connects(self):
        "connections that say nothing, or half of something"
        for _ in range(20):
            if len(self.sockets) >= CONNECTIONS:
                self.sockets.pop(self.random.randrange(len(self.sockets))).close()
            sock = self.connect()
            sock.sendall(self.random.choice([b"", b"GET /v1/jobs HT", b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 999\r\n\r\n{"]))
            self.sockets.append(sock)

    def act_watches(self):
        sock = self.connect()
        sock.sendall(b"GET /v1/watch HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
        self.sockets.append(sock)

    def act_no_http(self):
        sock = self.connect()
        sock.sendall(self.random.choice([b"\x16\x03\x01\x00", b"GET / HTTP/1.1\nHost: a\nHost: b\n\n", b"A" * 70000,
                                         b"GET /\x00 HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n"]))
        sock.close()

    def close(self):
        for sock in self.sockets:
            sock.close()


# ---- what the honest see ----

class Honest(threading.Thread):
    """One job after another, and questions between."""

    def __init__(self, site, person, tenant, until):
        super().__init__(daemon=True)
        self.site, self.person, self.tenant, self.until_s = site, person, tenant, until
        self.jobs, self.wrong, self.slowest = 0, [], 0.0

    def ask(self, what, question):
        began = time.monotonic()
        try:
            return question()
        finally:
            took = time.monotonic() - began
            self.slowest = max(self.slowest, took)
            if took > ANSWER_S * SLOW:
                self.wrong.append(f"{self.person}: {what} was answered after {took:.1f} s")

    def one_job(self, client, number):
        word = f"{self.person}-{number}"
        spec = {"tenant": self.tenant, "sku": "small", "args": ["sh", "-c", f"echo {word}; sleep 0.1"]}
        job = self.ask("a submission", lambda: client.post("/v1/jobs", spec))["id"]
        deadline = time.monotonic() + RESULT_S * SLOW
        while True:
            seen = self.ask("a question", lambda: client.get(f"/v1/jobs/{job}"))
            if seen["state"] in ENDED:
                break
            if time.monotonic() > deadline:
                why = client.get(f"/v1/jobs/{job}/why")
                self.wrong.append(f"{self.person}: job {job} is {seen['state']} after {RESULT_S} s: {why}")
                client.post(f"/v1/jobs/{job}/cancel")
                return
            time.sleep(0.03)
        said = client.get(f"/v1/jobs/{job}/logs")
        if (seen["state"], seen.get("restarts", 0), said) != ("completed", 0, word + "\n"):
            self.wrong.append(f"{self.person}: job {job} is {seen['state']} ({seen.get('cause')}), "
                              f"{seen.get('restarts', 0)} restarts, and printed {said!r}")
        self.jobs += 1

    def run(self):
        client = self.site.client(self.person)
        try:
            while time.monotonic() < self.until_s and len(self.wrong) < 5:
                self.one_job(client, self.jobs)
        except (Refused, OSError, http.client.HTTPException) as fault:
            self.wrong.append(f"{self.person}: {type(fault).__name__}: {fault}")


def root_asks(site, wrong):
    """A new connection each time, as a person at a shell has."""
    began = time.monotonic()
    try:
        Client(site.socket).get("/v1/status")
    except (Refused, OSError, http.client.HTTPException) as fault:
        wrong.append(f"root: {type(fault).__name__}: {fault}")
    if time.monotonic() - began > ANSWER_S * SLOW:
        wrong.append(f"root: the status was answered after {time.monotonic() - began:.1f} s")


def site_is_well(site):
    """What a hostile tenant must not be able to do to GPUs and nodes."""
    client, wrong = site.client(), []
    for gpu in client.get("/v1/gpus")["items"]:
        if gpu.get("fenced") or gpu.get("health", "ok") != "ok" or gpu.get("cordoned"):
            wrong.append(f"GPU {gpu.get('uuid')}: fenced {gpu.get('fenced')}, health {gpu.get('health')}")
    for node in client.get("/v1/nodes")["items"]:
        if not node.get("connected", True) or node.get("fenced") or node.get("cordoned"):
            wrong.append(f"node {node.get('name')}: {json.dumps(node)[:300]}")
    wrong += site.bad_lines("fenced", "isolation check failed", "quarantined")[:5]
    return wrong


# ---- the story ----

def play(site, options):
    (site.dir / "mallory").mkdir()
    os.chown(site.dir / "mallory", PEOPLE["mallory"], PEOPLE["mallory"])
    site.apply(SITE % {"dir": site.dir})
    until = time.monotonic() + options.seconds
    honest = [Honest(site, "alice", "acme/vision/batch", until), Honest(site, "bob", "acme/speech/asr", until)]
    mallory, wrong = Mallory(site, options.seed, options.only), []
    for one in honest:
        one.start()
    while time.monotonic() < until:
        mallory.act()
        root_asks(site, wrong)
    for one in honest:
        one.join(RESULT_S * SLOW + 10)
        wrong += one.wrong + ([] if one.jobs else [f"{one.person}: no job ended"])
    mallory.close()
    wrong += mallory.wrong[:5]
    print(f"# seed {options.seed}: {sum(mallory.done.values())} acts {dict(sorted(mallory.done.items()))}; "
          + ", ".join(f"{one.person} {one.jobs} jobs, slowest answer {one.slowest:.2f} s" for one in honest), flush=True)
    return wrong, site_is_well(site)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build")
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", action="append", help="acts")
    options.add_argument("--node", help="a bulkhead-node in place of the build's, with a fault in it")
    options = options.parse_args()
    lack = tap.missing()
    if lack:
        skip_all(lack)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    socket.setdefaulttimeout(30 * SLOW)
    audit = []
    if options.node:
        shutil.copy(options.node, stage(options.build) / "bin/bulkhead-node")
    report = Report(3)
    with closing.kept(audit), \
            Site(options.build, topology="3x H100-80GB", site=SITE.replace("%(dir)s/mallory", "/tmp"), node_conf="mount_roots = /tmp") as site:
        wrong, unwell = play(site, options)
    return report.rows([
        ("honest tenants and root do not notice a hostile one", not wrong, wrong[:12]),
        ("no GPU and no node is worse for what it did", not unwell, unwell[:12]),
        ("the closing audit holds", not audit, audit[:12])]).close()


if __name__ == "__main__":
    tap.in_own_numbers()
    sys.exit(main())
