#!/usr/bin/env python3
"""`bulkhead up`, as an operator's first minutes go: installed by DESTDIR, below a folder of the test's
own.  usage: up.py BUILD.  Prints TAP."""
import atexit
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
import up_closing
from bulkhead import PATIENCE_S, free_port
from tap import contains, equal
from report import Report, skip_all

ROOT = pathlib.Path(__file__).resolve().parents[2]
# As capabilities(7) numbers them.
DAC_OVERRIDE, SYS_ADMIN, MKNOD = 1 << 1, 1 << 21, 1 << 27
NONE, GPU = 0, DAC_OVERRIDE | SYS_ADMIN | MKNOD


class Up:
    """A folder in which the tree is installed; bulkhead up runs in folders below it."""

    def __init__(self, build):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-up-"))
        atexit.register(shutil.rmtree, self.dir, ignore_errors=True)
        self.dir.chmod(0o755)
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], check=True,
                       env=dict(os.environ, DESTDIR=str(self.dir / "root")), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.program = str(next((self.dir / "root").glob("**/bin/bulkhead")))
        self.home = self.dir / "site"
        self.supervisors = []

    def bulkhead(self, *args, check=None):
        done = subprocess.run([self.program, *args], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, BULKHEAD_SOCKET=f"{self.home}/run/bulkhead.sock"))
        if check is not None:
            assert done.returncode == check, f"{' '.join(args)}: status {done.returncode}: {done.stdout}{done.stderr}"
        return done

    def start(self, *more):
        said = self.bulkhead("up", "--dir", str(self.home), "--detach", *more, check=0)
        self.supervisors.append(int(re.search(r"kill (\d+) ends it", said.stdout + said.stderr)[1]))
        return said.stdout

    def processes(self, name):
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{entry}/exe") == str(self.installed(name)):
                    found.append(int(entry))
            except OSError:
                continue
        return found

    def installed(self, name):
        return next(path for path in (self.dir / "root").glob(f"**/{name}") if path.is_file())

    def end(self):
        """As it says itself: kill the supervisor, which ends both and goes."""
        for pid in self.supervisors:
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + PATIENCE_S
            while pathlib.Path(f"/proc/{pid}").exists():
                assert time.monotonic() < deadline, f"{pid} did not end"
                time.sleep(0.02)
        self.supervisors = []


def rights(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    named = dict(line.split(":\t", 1) for line in text.splitlines())
    return {name: int(named[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb")}, named["NoNewPrivs"]


def least_rights(up):
    "of what runs, bulkheadd, the signer and bulkhead-fetch have no right at all, bulkhead-gpu three"
    up.start()
    for name, kept, bound in (("bulkheadd", NONE, NONE), ("bulkhead-signer", NONE, NONE), ("bulkhead-fetch", NONE, NONE),
                              ("bulkhead-gpu", GPU, GPU)):
        pids = up.processes(name)
        assert pids, f"no {name} runs"
        for pid in pids:
            held, no_new = rights(pid)
            equal(f"{name}'s no_new_privs", no_new, "1")
            equal(f"{name}'s rights", held, {"CapPrm": kept, "CapEff": kept, "CapInh": 0, "CapBnd": bound, "CapAmb": 0})


def strangers(up):
    "only the daemon's user and root reach the signer's socket"
    text = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    path = f"{up.home}/run/signer/signer.sock"
    for ids, refused in ((65534, True), (64101, False)):
        done = subprocess.run(["/usr/bin/python3", "-c", text, path], user=ids, group=ids, extra_groups=[],
                              text=True, capture_output=True, cwd="/")
        equal(f"{ids}: {done.stderr}", "Permission denied" in done.stderr, refused)


def sizes_fit(up):
    "each size of the example's site file runs a job on this machine"
    example = ROOT / "packaging/examples/site.yaml"
    up.bulkhead("apply", "-f", str(example), check=0)
    sizes = re.findall(r"^  - name: (\w+)\n    grade:", example.read_text(), re.M)
    equal("sizes", len(sizes), 3)
    for size in sizes:
        up.bulkhead("run", "--tenant", "acme/speech/asr", "--sku", size, "--", "true", check=0)


def shares(up):
    "a share of a GPU runs: the shim is found beside the program, wherever the tree was installed"
    site = (ROOT / "packaging/examples/site.yaml").read_text().replace("managed: true", "managed: true, shared: true").replace(
        "skus:\n", 'skus:\n  - {name: share, grade: F, models: [{model: H100-80GB, share: 1/4}], cpu: "0.5", memory: 256Mi}\n', 1)
    path = up.dir / "shares.yaml"
    path.write_text(site)
    up.bulkhead("apply", "-f", str(path), check=0)
    up.bulkhead("run", "--tenant", "acme", "--sku", "share", "--", "true", check=0)


def second_start(up):
    "a second start says who serves there already"
    said = up.bulkhead("up", "--dir", str(up.home), "--detach", check=3).stderr
    contains("what it says", said, f"bulkheadd already serves on {up.home}/run/bulkhead.sock")


def doctor(up):
    "doctor looks at the disk of the folder that is in use"
    shown = up.bulkhead("doctor", "--dir", str(up.home), check=0).stdout
    disk = next(line for line in shown.splitlines() if line.startswith("disk "))
    contains("the disk's row", disk, f"for {up.home}/daemon")
    by_socket = up.bulkhead("doctor", check=0).stdout
    row = {line.split("  ")[0]: line for line in by_socket.splitlines()}
    contains("by its socket alone, too", row["disk"], f"for {up.home}/daemon")
    contains("its own driver", row["driver"], "lists 8 GPUs")
    contains("which site it is", row["site"], f"configured in {up.home}")
    empty = up.dir / "empty"
    empty.mkdir()
    for folder, said in ((empty, "no site is configured in"), (up.dir / "not-there", "there is no folder")):
        row = {line.split("  ")[0]: line for line in up.bulkhead("doctor", "--dir", str(folder), check=1).stdout.splitlines()}
        contains("no site is no site", row["site"], f"fail    {said} {folder}")
        contains("nor is its disk another's", row["disk"], f"for {up.dir}")
    elsewhere = up.bulkhead("doctor", "--socket", str(up.dir / "other.sock"), check=1).stdout
    if os.path.exists("/etc/bulkhead/bulkheadd.conf"):
        contains("a socket of nobody's", elsewhere, f"/etc/bulkhead is read, but its daemon is not on {up.dir}/other.sock")
    else:
        contains("nor has this machine one", elsewhere, "no site is configured in /etc/bulkhead" if os.path.isdir("/etc/bulkhead") else "there is no folder /etc/bulkhead")


def taken_port(up):
    "a TCP port that is taken is named"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = up.bulkhead("up", "--dir", str(up.dir / "port"), "--detach", "--https-port", str(port), check=3)
        contains("what it says", done.stderr, f"listen on 127.0.0.1 port {port}: Address already in use")
        contains("what to do", done.stderr, "choose another with --https-port, or 0 for none")
        assert not (up.dir / "port").exists(), "nothing of it stays"
        up.end()
        contains("nor in a site that is there", up.bulkhead("up", "--dir", str(up.home), "--detach", "--https-port", str(port), check=3).stderr, "Address already in use")
        assert str(port) not in (up.home / "bulkheadd.conf").read_text(), "the port that failed is not kept"
        up.start()


def no_such_gpus(up):
    "--sim with GPUs that cannot be says how they are written and which there are, and makes nothing"
    for word in ("0", "9999x", "8xH100", "8x H200", "-1x"):
        done = up.bulkhead("up", "--dir", str(up.dir / "sim"), f"--sim={word}", check=3)
        contains(f"{word}: the form", done.stderr, "GPUs are written COUNTx MODEL, as 8x H100-80GB")
        contains(f"{word}: the models", done.stderr, "H200-141GB")
        assert not (up.dir / "sim").exists() and "usage:" not in done.stderr, done.stderr


def no_driver(up):
    "--gpu real without a driver says so, and makes nothing"
    done = up.bulkhead("up", "--dir", str(up.dir / "real"), "--gpu", "real")
    if done.returncode == 0:
        raise tap.Skip("this machine has a driver")
    contains("what it says", done.stderr, "--gpu real: libnvidia-ml.so.1 cannot be loaded")
    contains("what to do", done.stderr, "--gpu sim needs no GPU")
    assert not (up.dir / "real").exists(), "what was made"


def on_a_site_that_is_there(up):
    "options of a later start hold, or are refused with what the site has"
    up.end()
    for option, value, said in (("--sim", "2x H100-80GB", "has 8x H100-80GB"), ("--gpu", "real", "has simulated GPUs"),
                                ("--daemon-uid", "70000", "has user id 64101")):
        done = up.bulkhead("up", "--dir", str(up.home), "--detach", option, value)
        equal(f"{option} is refused", done.returncode, 3)
        contains(option, done.stderr, f"{option}: the site in {up.home} {said}")
    port = free_port()
    up.start("--https-port", str(port), "--sim", "8x H100-80GB", "--gpu", "sim", "--daemon-uid", "64101")
    for again in (False, True):
        if again:  # and it stays
            up.end()
            up.start()
        done = up.bulkhead("whoami", "--server", f"https://127.0.0.1:{port}", "--ca-file", f"{up.home}/daemon/tls.crt")
        contains("the port answers", done.stderr, "bulkhead login")


def end_audited(up):
    audit = up_closing.Up(pathlib.Path(up.program).parent, up.home)
    found = audit.online()
    up.end()
    equal("the closing audit", found + audit.offline(), [])


def ends(up):
    "it ends as it says, nothing of it is left, and the closing audit holds"
    end_audited(up)
    for name in ("bulkheadd", "bulkhead-node", "bulkhead-gpu", "bulkhead-signer", "bulkhead-fetch"):
        equal(f"{name} that runs", up.processes(name), [])


def refused_start(up):
    "a program that refuses to start is quoted to the end of its sentence, with what to do"
    epochs = up.home / "daemon/epochs"
    epochs.rename(up.home / "kept")
    os.mkfifo(epochs)
    expected = (f"daemon ended before it was ready: {epochs} is a FIFO where a file is expected\n"
                "  move it away, and put the file back from its copy if there was one\n")
    contains("here", up.bulkhead("up", "--dir", str(up.home)).stderr, f"bulkhead: {expected}")
    contains("detached", up.bulkhead("up", "--dir", str(up.home), "--detach").stderr, f"Bulkhead did not start: {expected}")
    epochs.unlink()
    (up.home / "kept").rename(epochs)


def lost_gpu(up):
    "with a GPU that is lost, before it was ever read or after, up says which, and the others serve; it is back by itself"
    up.home = up.dir / "lost"
    simctl = [str(up.installed("bulkhead-simctl")), "--state", str(up.home / "sim")]
    subprocess.run([*simctl, "init", "4x H100-80GB"], check=True, capture_output=True)
    subprocess.run([*simctl, "lose", "3"], check=True)
    for _ in range(2):
        contains("what is missing", up.start(), "missing         GPU 3, GPU-")
        nodes = json.loads(up.bulkhead("get", "nodes", "-o", "json", check=0).stdout)["items"]
        equal("ready is up", [("used_cpu_milli" in node, node["state"]) for node in nodes], [(True, "up")])
        up.bulkhead("apply", "-f", str(ROOT / "packaging/examples/site.yaml"), check=0)
        shown = up.bulkhead("gpu", check=0).stdout.splitlines()
        contains("the lost one", shown[4], "  fenced (")
        contains("doctor", up.bulkhead("doctor", "--dir", str(up.home), check=0).stdout, "1 of 4 lost, the first: GPU-")
        equal("the others", [line.split()[4] for line in shown[1:4]], ["ok"] * 3)
        subprocess.run([*simctl, "clear"], check=True)
        deadline = time.monotonic() + PATIENCE_S
        while up.bulkhead("gpu", check=0).stdout.splitlines()[4].split()[4] != "ok":
            assert time.monotonic() < deadline, "GPU 3 is not back"
            time.sleep(0.1)
        subprocess.run([*simctl, "lose", "3"], check=True)
        end_audited(up)


def dies_all_the_time(up):
    "a program that dies is started again ten times within a minute; at the eleventh death up says so and ends"
    up.home = up.dir / "dying"
    up.start()
    for death in range(11):
        deadline = time.monotonic() + PATIENCE_S
        while not (found := up.processes("bulkhead-signer")):
            assert time.monotonic() < deadline, f"not started again after {death} deaths"
            time.sleep(0.02)
        os.kill(found[0], signal.SIGKILL)
        while found[0] in up.processes("bulkhead-signer"):
            time.sleep(0.02)
    supervisor, = up.supervisors
    up.supervisors = []
    while pathlib.Path(f"/proc/{supervisor}").exists():
        assert time.monotonic() < deadline, "up goes on"
        time.sleep(0.02)
    contains("says so", (up.home / "up.log").read_text(), "bulkhead-signer ended unexpectedly more than 10 times within a minute")


def damaged_store(up):
    "up on a store that lacks a job says which, and what to do, at once; a daemon that notices it while it runs ends with the same"
    up.home = up.dir / "damaged"
    up.start()
    up.bulkhead("apply", "-f", str(ROOT / "packaging/examples/site.yaml"), check=0)
    up.bulkhead("submit", "--tenant", "acme/speech/asr", "--sku", "small", "--", "sleep", "3", check=0)
    deadline = time.monotonic() + PATIENCE_S
    while json.loads(up.bulkhead("describe", "1", "-o", "json", check=0).stdout)["state"] != "running":
        assert time.monotonic() < deadline, "job 1 does not run"
        time.sleep(0.05)
    with contextlib.closing(sqlite3.connect(up.home / "daemon/bulkhead.db")) as store, store:
        store.execute("delete from jobs where job = 1")
    supervisor, = up.supervisors
    while pathlib.Path(f"/proc/{supervisor}").exists():  # job 1 ends, and with it the daemon
        assert time.monotonic() < deadline, "up goes on"
        time.sleep(0.02)
    up.supervisors = []
    failures = [line for line in (up.home / "up.log").read_text().splitlines() if "commit failed" in line]
    equal("failures", len(failures), 1)
    contains("the row", failures[0], "the store lacks job 1")
    said = up.bulkhead("up", "--dir", str(up.home), "--detach", check=8).stderr
    contains("what it says", said, "daemon ended before it was ready: the store lacks job 1: its row is missing in the table jobs")
    contains("what to do", said, "put the folders daemon and signer back from a backup (docs/install.md)")


def main():
    if tap.missing() or len(sys.argv) != 2:
        skip_all(tap.missing() or "usage: up.py BUILD")
    if "ASAN_OPTIONS" in os.environ:
        skip_all("programs that are built to look for leaks need more rights, and more memory")
    up = Up(sys.argv[1])
    stories = [least_rights, strangers, sizes_fit, shares, second_start, doctor, taken_port, no_such_gpus, no_driver, on_a_site_that_is_there, ends, refused_start, lost_gpu, dies_all_the_time, damaged_store]
    report = Report(len(stories)).play(stories, up)
    if up.supervisors:
        up.end()
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
