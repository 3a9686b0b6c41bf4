#!/usr/bin/env python3
"""Going into running jobs: exec, attach, run -it and port-forward, with real terminals; who may,
what is recorded, and what becomes of it when programs die."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import PATIENCE_S, PEOPLE, Refused, free_port
from tap import contains, equal

SLEEP = ("sh", "-c", "echo ready; exec sleep 600")
SERVER = ("perl", "-MIO::Socket::INET", "-e", """
    $| = 1; $s = IO::Socket::INET->new(Listen => 64, LocalAddr => "127.0.0.1", LocalPort => 8080, ReuseAddr => 1) or die;
    print "ready\\n"; $SIG{CHLD} = "IGNORE";
    while ($c = $s->accept) { if (!fork) { $n = 0; $n += length while <$c>; print $c "got $n\\n"; exit } close $c }""")


PORT = free_port()
CONF = {"daemon_conf": f"https_port = {PORT}"}


def started(site, *command, person="alice", **spec):
    job = site.submit(*(command or SLEEP), client=site.client(person), **spec)
    site.await_state(job, "running")
    site.until(lambda: "ready" in site.log(job), what="output")
    return job


class Terminal:
    """The CLI in a terminal of its own, as a person sits before one."""

    def __init__(self, site, person, *args, rows=30, columns=100):
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave, self.seen = slave, ""
        ids = {"user": PEOPLE[person], "group": PEOPLE[person], "extra_groups": []}
        env = {"PATH": os.environ["PATH"], "BULKHEAD_SOCKET": site.socket, "HOME": "/nonexistent", "TERM": "vt220"}
        self.process = subprocess.Popen([site.program("bulkhead"), *args], stdin=slave, stdout=slave, stderr=slave, env=env, cwd="/",
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **ids)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def expect(self, text):
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(text, self.seen):
            if time.monotonic() > deadline or (self.process.poll() is not None and not self.readable(0)):
                raise AssertionError(f"{text!r} is not in {self.seen!r} (status {self.process.poll()})")
            if self.readable(0.1):
                self.seen += os.read(self.master, 65536).decode(errors="replace")
        return self

    def readable(self, seconds):
        return bool(select.select([self.master], [], [], seconds)[0])

    def type(self, text):
        os.write(self.master, text.encode())
        return self

    def forget(self):
        self.seen = ""
        return self

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self):
        status = self.process.wait(PATIENCE_S)
        equal("the terminal is as before", termios.tcgetattr(self.slave)[:4], self.before[:4])
        return status


def begun(site, verb):
    return [r for r in site.leaves() if r["verb"] == verb and r["res"] == "ok"]


def ends(site, verb):
    """What is recorded of the ends of streams that began so."""
    numbers = [r["seq"] for r in begun(site, verb)]
    return [r for r in site.leaves() if r["verb"] == "stream.end" and r["obj"]["id"] in numbers]


@tap.test()
def exec_command(site):
    "a command in a running job: its streams, its status, its record with an outcome; and fast"
    job = str(started(site))
    done = site.cli("alice", "exec", job, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    equal("exec", (done.stdout, done.stderr, done.returncode), ("out\n", "err\n", 3))
    done = site.cli("alice", "exec", "-i", job, "cat", "-", input="given")
    equal("input", (done.stdout, done.returncode), ("given", 0))
    equal("no input", site.cli("alice", "exec", job, "cat").stdout, "")
    done = site.cli("alice", "exec", job, "--", "/no/such")
    equal("no such program", done.returncode, 127)
    equal("-it without a terminal", site.cli("alice", "exec", "-it", job, "sh", input="").returncode, 3)
    big = site.cli("alice", "exec", job, "--", "head", "-c", "20000000", "/dev/zero")
    equal("much", len(big.stdout), 20000000)
    site.until(lambda: len(ends(site, "job.exec")) == 5, what="their ends")
    equal("who and what", {(r["obj"]["type"], r["obj"]["id"], r["dec"]["allow"]) for r in begun(site, "job.exec")}, {("job", int(job), True)})
    assert all(r.get("text") for r in begun(site, "job.exec")), "the command's digest"
    equal("each has its end", sorted(r["obj"]["id"] for r in ends(site, "job.exec")), sorted(r["seq"] for r in begun(site, "job.exec")))
    site.cli("dave", "audit", "verify", "--vkey", str(site.dir / "state/audit.vkey"), check=0)
    for args in (("exec", "--member", "1", job, "true"), ("attach", "--member", "1", job), ("logs", "--member", "1", job)):
        contains("a member that is not there", site.cli("alice", *args, check=5).stderr, f"job {job} has no member 1\n  it has one member, 0")
    times = []
    for _ in range(15):
        at = time.monotonic()
        site.cli("alice", "exec", job, "true", check=0)
        times.append(1000 * (time.monotonic() - at))
    print(f"# exec takes {statistics.median(times):.1f} ms (median of {len(times)}, with the start of the CLI)")
    site.cli("alice", "cancel", "--now", job, check=0)
    site.await_state(int(job), "cancelled")
    done = site.cli("alice", "exec", job, "true", check=3)
    contains("it never will", done.stderr, f"job {job} is not running: it is cancelled\n  `bulkhead logs {job}` has its output")


@tap.test()
def exec_terminal(site):
    "exec -it: a terminal with its size, keys and Ctrl-C, and ours as it was, however it ends"
    job = str(started(site))
    with Terminal(site, "alice", "exec", "-it", job, "sh") as terminal:
        terminal.type("stty size; tty; echo term=$TERM\n").expect("30 100").expect("/dev/pts/").expect("term=xterm")
        terminal.resize(44, 123)
        terminal.type("until [ \"$(stty size)\" = '44 123' ]; do sleep 0.02; done; echo sized$((1+1))\n").expect("sized2")
        terminal.type("sleep 602\n")
        site.until(lambda: site.processes("sleep\x00602"), what="what Ctrl-C ends")
        terminal.forget().type("\x03").type("echo still $((40+2))\n").expect("still 42")
        terminal.type("exit 9\n")
        equal("status", terminal.end(), 9)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV):
        with Terminal(site, "alice", "exec", "-it", job, "sh") as terminal:
            terminal.type("echo up$((1+1))\n").expect("up2")
            if number == signal.SIGTERM:  # it is passed on; a shell in a terminal ignores it
                terminal.process.send_signal(number)
                terminal.forget().type("exit 4\n")
                equal("SIGTERM is the command's", terminal.end(), 4)
            else:
                terminal.process.send_signal(number)
                terminal.end()
    site.until(lambda: site.cli("alice", "exec", job, "--", "ps", "-e", "-o", "comm=").stdout.split() == ["sleep", "ps"], what="nothing left inside")


@tap.test()
def run_terminal(site):
    "run -it: a job in a terminal, left with Ctrl-P Ctrl-Q, gone back to, its status passed on"
    with Terminal(site, "alice", "run", "-it", "--tenant", "acme/vision/batch", "--sku", "small", "--", "sh") as terminal:
        terminal.type("stty size; echo me$((1+1))\n").expect("me2").expect("30 100")
        terminal.type("echo term=$TERM\n").expect("term=vt220")  # ours
        job = re.search(r"job (\d+)", terminal.seen).group(1)
        stream, = site.processes("bulkhead-stream")
        os.kill(stream, signal.SIGSTOP)
        terminal.type("\x10\x11")
        try:
            raise AssertionError(f"it says that it left before the job let go of it: {terminal.process.wait(0.3)}")
        except subprocess.TimeoutExpired:
            os.kill(stream, signal.SIGCONT)
        terminal.expect("keeps running")
        equal("left", terminal.end(), 0)
    equal("it is interactive", (site.job(job)["state"], site.job(job)["kind"]), ("running", "interactive"))
    contains("the log has it", site.log(job), "me2")
    with Terminal(site, "alice", "attach", job, rows=20, columns=77) as terminal:
        terminal.expect("me2").forget().type("stty size\n").expect("20 77")
        with Terminal(site, "alice", "attach", job) as looker:
            looker.expect("me2").type("echo not me\n")
            terminal.forget().type("echo both$((1+1))\n").expect("both2")
            looker.expect("both2")
            assert "not me" not in terminal.seen
        terminal.type("exit 6\n")
        equal("its status", terminal.end(), 6)
    done = site.cli("alice", "run", "-i", "--tenant", "acme/vision/batch", "--sku", "small", "--", "sh", "-c", "cat; exit 5", input="piped\n")
    equal("run -i", (done.stdout, done.returncode), ("piped\n", 5))
    done = site.cli("alice", "run", "-i", "--tenant", "acme/vision/batch", "--sku", "small", "--", "echo", "short", input="")
    equal("one that ends at once", (done.stdout, done.returncode), ("short\n", 0))
    done = site.cli("alice", "attach", job)
    equal("attach after the end", done.returncode, 3)
    contains("which says where to look", done.stderr, f"bulkhead logs {job}")


@tap.test()
def deaths(site):
    "bulkheadd and bulkhead-node may be killed: the job runs on, attach comes back, exec's end is recorded"
    with Terminal(site, "alice", "run", "-it", "--tenant", "acme/vision/batch", "--sku", "small", "--", "sh") as terminal:
        terminal.type("echo up$((1+1))\n").expect("up2")
        job = re.search(r"job (\d+)", terminal.seen).group(1)
        site.kill(site.node)
        terminal.forget().type("echo nodeless$((1+1))\n").expect("nodeless2")
        site.start_node()
        site.until(lambda: "up" in json.dumps(site.client().get("/v1/nodes")), what="the node")
        with subprocess.Popen([site.program("bulkhead"), "exec", job, "sleep", "600"], env={"BULKHEAD_SOCKET": site.socket, "HOME": "/"},
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
            site.until(lambda: site.processes("sleep\x00600"), what="the command")
            site.kill(site.daemon)
            site.start_daemon()
            equal("a command whose daemon died", command.wait(PATIENCE_S), 8)
        site.until(lambda: not site.processes("sleep\x00600"), what="its end inside")
        terminal.forget().type("echo again$((1+1))\n").expect("again2")
        terminal.type("exit 3\n")
        equal("status", terminal.end(), 3)
    lost = [r for r in ends(site, "job.exec") + ends(site, "job.attach") if r["res"] == "uncertain"]
    equal("what the daemon did not see end", len(lost), 2)


@tap.test()
def forward(site):
    "port-forward: 127.0.0.1 only, many connections, half-closed ones, and the end with the job"
    job = str(started(site, *SERVER, kind="service"))
    batch = str(started(site))
    equal("not to a batch job", site.cli("alice", "port-forward", batch, "0:80").returncode, 3)
    ids = {"user": PEOPLE["alice"], "group": PEOPLE["alice"], "extra_groups": []}
    with subprocess.Popen([site.program("bulkhead"), "port-forward", "-o", "json", job, "0:8080"], stdout=subprocess.PIPE, text=True,
                          env={"BULKHEAD_SOCKET": site.socket, "HOME": "/"}, cwd="/", **ids) as process:
        port = json.loads(process.stdout.readline())["local"]
        open_ones = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for number, one in enumerate(open_ones):
            one.sendall(b"x" * (1000 * (number + 1)))
            one.shutdown(socket.SHUT_WR)
        answers = []
        for one in open_ones:
            text = b""
            while part := one.recv(100):
                text += part
            answers.append(text.decode())
            one.close()
        equal("answers", answers, [f"got {1000 * (n + 1)}\n" for n in range(20)])
        listening = pathlib.Path("/proc/net/tcp").read_text()
        equal("on the loopback only", [line.split()[1] for line in listening.splitlines()[1:] if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")],
              [f"0100007F:{port:04X}"])
        site.client("alice").post(f"/v1/jobs/{job}/cancel")
        equal("ends with the job", process.wait(PATIENCE_S), 0)
    site.until(lambda: len(ends(site, "job.forward")) == 1, what="its end")
    equal("one record", len(begun(site, "job.forward")), 1)


@tap.test()
def others(site):
    "no user enters another's job: not of another tenant, not of the same, not as operator; refusals are recorded"
    job = started(site)
    for person in ("bob", "carol", "dave"):
        for what, body in (("exec", {"args": ["id"]}), ("attach", {}), ("forward", {})):
            try:
                site.client(person).post(f"/v1/jobs/{job}/{what}", body)
                raise AssertionError(f"{person} may {what}")
            except Refused as refused:
                assert refused.status in (403, 404), (person, what, refused)
    told = lambda: [leaf for leaf in site.leaves() if leaf.get("obj") == {"id": int(job), "type": "job"} and leaf["res"] in ("denied", "not_found")]
    site.until(lambda: len({leaf["actor"]["id"] for leaf in told()}) == 3, what="refusals that name the job")
    assert not any(leaf.get("dec", {}).get("allow") for leaf in told() if leaf["res"] == "denied"), told()
    ticket = site.client("alice").post(f"/v1/jobs/{job}/exec", {"args": ["id"]})["ticket"]
    upgrade = {"Connection": "Upgrade", "Upgrade": "bulkhead-stream"}
    for client, path, headers, status in (("bob", f"/v1/streams/{ticket}", upgrade, (403, 404)), ("alice", f"/v1/streams/{'0' * 32}", upgrade, (404,)),
                                          ("alice", f"/v1/streams/{ticket}", {}, (400,)), ("alice", f"/v1/streams/{ticket}?port=80", upgrade, (404,))):
        got, *_ = site.client(client).exchange("GET", path, headers=headers)
        assert got in status, (client, path, got)
    site.stop(site.daemon)  # what repeats is counted, and recorded by a clean stop at the latest
    site.start_daemon()
    refused = [r for r in site.leaves() if r["verb"] in ("job.exec", "job.attach", "job.forward", "stream.open") and r["res"] != "ok"]
    assert sum(r.get("count", 1) for r in refused) >= 9, refused


@tap.test(**CONF)
def https(site):
    "the same over HTTPS with a token: status, much of it both ways, and the end when the token is revoked"
    job = str(started(site))
    token = site.client("alice").post("/v1/tokens", {})
    (site.dir / "token").write_text(token["token"])
    where = ["--server", f"https://127.0.0.1:{PORT}", "--ca-file", str(site.dir / "state/tls.crt"), "--token-file", str(site.dir / "token")]
    done = site.cli(None, "exec", *where, "-i", job, "--", "sh", "-c", "cat; echo err >&2; exit 3", input="x" * 1000000)
    equal("exec", (len(done.stdout), done.stderr, done.returncode), (1000000, "err\n", 3))
    equal("refused", site.cli(None, "exec", *where, "999999", "true").returncode, 5)
    command = subprocess.Popen([site.program("bulkhead"), "exec", *where, job, "sleep", "601"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    site.until(lambda: site.processes("sleep\x00601"), what="the command")
    site.client("alice").request("DELETE", f"/v1/tokens/{token['id']}")
    equal("a revoked token's stream", command.wait(PATIENCE_S), 4)
    site.until(lambda: not site.processes("sleep\x00601"), what="its end inside")


def is_asleep(pid):
    """Whether it has nothing to do, and does not only wait for a core."""
    return all(task.read_text().rsplit(")", 1)[1].split()[0] == "S" for task in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"))


def stands(site, writer, between):
    """Wait until a program writes no more, as all that lies between it and its reader is full."""
    seen, looks = None, 0

    def is_still():
        nonlocal seen, looks
        wrote = re.search(r"wchar: (\d+)", pathlib.Path(f"/proc/{writer}/io").read_text()).group(1)
        looks = looks + 1 if wrote == seen and all(is_asleep(pid) for pid in (writer, *between)) else 0
        seen = wrote
        return looks == 10
    site.until(is_still, what="full pipes")


@tap.test()
def reader_stops(site):
    "output without end and a reader that stops: no program's memory grows, and the job is not held up"
    job = str(started(site, "sh", "-c", "echo ready; exec sleep 600"))
    reader = subprocess.Popen([site.program("bulkhead"), "exec", job, "--", "cat", "/dev/zero"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              env={"BULKHEAD_SOCKET": site.socket, "HOME": "/"})
    at, got = time.monotonic(), 0
    while time.monotonic() - at < 0.7:
        got += len(os.read(reader.stdout.fileno(), 1 << 20))
    print(f"# a stream carries {got / (time.monotonic() - at) / 1e6:.0f} MB/s")
    programs = [site.daemon.pid, site.node.pid, reader.pid, *site.processes("bulkhead-keeper"), *site.processes("bulkhead-stream")]
    resident = lambda: {pid: int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) for pid in programs}
    writer, = site.processes("cat\x00/dev/zero")
    stands(site, writer, programs)
    before = resident()
    time.sleep(0.6)
    grown = {pid: kib - before[pid] for pid, kib in resident().items() if kib - before[pid] > 512}
    equal("grown by KiB", grown, {})
    reader.kill()
    reader.wait()
    site.until(lambda: not site.processes("bulkhead-stream"), what="the stream's end")
    reader.stdout.close()


if __name__ == "__main__":
    tap.main()
