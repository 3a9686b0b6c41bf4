"""A whole Bulkhead in a private folder, for tests and benches: the simulated driver,
bulkhead-node and bulkheadd, and a small HTTP client on the unix socket.

Needs root (sandboxes).  Everything stops with the Site, by its own pids."""
import atexit
import ctypes
import errno
import functools
import http.client
import json
import os
import pathlib
import platform
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import closing
import schema

DAEMON_UID = 64101
SLOW = float(os.environ.get("BULKHEAD_TEST_SLOW", "1"))  # so many times more patience
WAIT_S = 60              # at least so long is waited for what must come: it costs nothing where it does
PATIENCE_S = WAIT_S * SLOW
SKIP = 77
PEOPLE = {"alice": 20001, "bob": 20002, "carol": 20003, "dave": 20004, "erin": 20005}
ENDED = ("completed", "failed", "cancelled")
UNTIL_GO = "touch /tmp/stay; while [ -e /tmp/stay ]; do sleep 0.02; done"  # in a job's script, until let_go()
ROOT = pathlib.Path(__file__).resolve().parents[2]

# Where a build tree has what; an installed one is searched for the name.  The copies lie in one folder.
PROGRAMS = ["src/cli/bulkhead", "src/cli/bulkhead-audit", "src/daemon/bulkheadd", "src/fetch/bulkhead-fetch",
            "src/signer/bulkhead-signer", "src/node/bulkhead-node", "src/node/bulkhead-keeper", "src/node/bulkhead-gpu",
            "src/node/bulkhead-init", "src/node/bulkhead-probe", "src/node/bulkhead-scrub", "src/node/bulkhead-checkpoint",
            "src/node/bulkhead-unpack", "src/node/bulkhead-stream", "src/node/bulkhead-share", "src/replay/bulkhead-replay",
            "sim/bulkhead-simctl", "sim/libnvidia-ml.so.1", "sim/libcuda.so.1"]
TOOLS = ["sim/smi/bulkhead-smi", "sim/bulkhead-simload", "sim/burn/bulkhead-burn"]
SHIM = ["src/shim/libcuda.so.1", "src/shim/libnvidia-ml.so.1"]


class Refused(Exception):
    """An error reply of the API."""

    def __init__(self, status, body):
        self.status, self.body = status, body
        self.error = body.get("error", {}) if isinstance(body, dict) else {}
        self.code = self.error.get("code")
        super().__init__(f"{status} {body}")


def sanitizer_of(library):
    """The AddressSanitizer or ThreadSanitizer that a library was linked with, or None."""
    said = subprocess.run(["ldd", library], capture_output=True, text=True).stdout
    return next((word for line in said.splitlines() for word in line.split()
                 if word.startswith("/") and ("libasan" in word or "libtsan" in word)), None)


def has_thread_sanitizer(library):
    """Neither Python nor a scrub's helper in its sandbox runs with that."""
    return "libtsan" in (sanitizer_of(library) or "")


def python_beside(library, program="python3"):
    """The beginning of a command for a Python that loads this library by ctypes: one with
    a sanitizer in it takes only a process that had the sanitizer from the beginning."""
    sanitizer = sanitizer_of(library)
    return ["env", f"LD_PRELOAD={sanitizer}", "ASAN_OPTIONS=detect_leaks=0", program] if sanitizer else [program]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 if crc & 1 else crc >> 1
    return crc ^ 0xffffffff


# ---- clients ----

_libc = ctypes.CDLL(None, use_errno=True)
_calls = {"x86_64": (117, 119, 116), "aarch64": (147, 149, 159)}.get(platform.machine())


def _be(uid):
    """The effective ids of this thread alone; glibc's calls would change all threads."""
    setresuid, setresgid, setgroups = _calls
    steps = [(setgroups, 0, None), (setresgid, -1, uid, -1), (setresuid, -1, uid, -1)]
    for step in steps if uid else reversed(steps[1:]):
        if _libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in step]) != 0:
            raise OSError(ctypes.get_errno(), "change ids")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=PATIENCE_S, uid=0):
        super().__init__("bulkhead", timeout=timeout)
        self.path, self.uid = path, uid

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        if not self.uid:
            self.sock.connect(self.path)
            return
        _be(self.uid)
        try:
            self.sock.connect(self.path)
        finally:
            _be(0)


_documents = []  # /openapi.json, once it was read


class Client:
    """One keep-alive connection of one person: peer credentials are the identity."""

    def __init__(self, path, uid=0):
        self.path, self.uid, self.connection = path, uid, None

    def open(self):
        return UnixConnection(self.path, uid=self.uid)

    def exchange(self, method, path, body=None, headers=None):
        """(status, headers, text) of one request; GET is tried again on a dead connection."""
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        head = {"Content-Type": "application/json"} if data is not None else {}
        head.update(headers or {})
        for last in (False, True):
            try:
                if self.connection is None:
                    self.connection = self.open()
                self.connection.request(method, path, data, head)
                reply = self.connection.getresponse()
                text = reply.read().decode(errors="replace")
                break
            except (OSError, http.client.HTTPException):
                self.close()
                if last or method != "GET":
                    raise
        self.check_schema(method, path, (reply.status, reply.headers.get("Content-Type", ""), text))
        return reply.status, reply.headers, text

    def check_schema(self, method, path, reply):
        """Each reply that a test receives is what /openapi.json says."""
        if not _documents:
            connection = self.open()
            try:
                connection.request("GET", "/openapi.json")
                _documents.append(schema.Document(connection.getresponse().read()))
            except (OSError, http.client.HTTPException):
                return  # it is about to end: what comes next is checked
            finally:
                connection.close()
        schema.check(_documents[0], method, path, reply)

    def request(self, method, path, body=None, headers=None):
        status, head, text = self.exchange(method, path, body, headers)
        value = json.loads(text) if head.get("Content-Type", "").startswith("application/json") and text else text
        if status >= 400:
            raise Refused(status, value)
        return value

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body=None, **headers):
        return self.request("POST", path, body if body is not None else {}, headers)

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


_ports = []


def free_port():
    """A TCP port for this test alone: below those that the kernel gives to connections, which come and go, and
    not of another test, which would have its name below."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(10000, max(lowest, 32768)), 1000):
        name, probe = socket.socket(socket.AF_UNIX), socket.socket()
        try:
            name.bind(f"\0bulkhead-test-port-{port}")
            probe.bind(("", port))
        except OSError:
            name.close()
            continue
        finally:
            probe.close()
        _ports.append(name)  # until this process ends
        return port
    raise RuntimeError("no TCP port is free")


# ---- the programs, where everybody may run them ----

# ProtectSystem=full with /etc/cdi left open, ProtectKernelModules, ProtectProc=invisible; not PrivateTmp, where tests have their folders.
UNIT_MOUNTS = """for folder in /usr /boot /etc; do
    if [ -d $folder ]; then mount --rbind $folder $folder || exit 1; fi
    if [ -d $folder/cdi ]; then mount --bind $folder/cdi $folder/cdi || exit 1; fi
    if [ -d $folder ]; then mount -o remount,bind,ro $folder || exit 1; fi
done
if [ -d /usr/lib/modules ]; then mount -t tmpfs -o ro,mode=0 none /usr/lib/modules || exit 1; fi
mount -t proc -o nosuid,nodev,noexec,hidepid=2 proc /proc || exit 1
exec "$@"
"""


def unit_refuses():
    """Names of the calls that the unit's SystemCallFilter refuses: lines with ~ add to them, others take from them."""
    unit, refused = (ROOT / "packaging/systemd/bulkhead-node.service.in").read_text(), set()
    for adds, words in re.findall(r"^SystemCallFilter=(~?)(.*)$", unit, re.M):
        groups = [word for word in words.split() if word.startswith("@")]
        names = set(words.split()) - set(groups)
        for group in groups:
            said = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True).stdout
            names |= set(re.findall(r"^    (\w+)$", said, re.M))
        refused = refused | names if adds else refused - names
    return refused


def lacks_unit_filter():
    """Why nodes run without their unit's call filter here; "" where they have it.  Not below a sanitizer:
    what looks for leaks at the end asks the kernel for more than the program does."""
    return ("AddressSanitizer" if "ASAN_OPTIONS" in os.environ else "there is no systemd-analyze" if not shutil.which("systemd-analyze")
            else "no x86-64" if os.uname().machine != "x86_64" else "")


@functools.lru_cache
def unit_filter():
    """The unit's SystemCallFilter as a program for the kernel: (bytes, length); None where it cannot be known."""
    if lacks_unit_filter():
        return None
    unit = (ROOT / "packaging/systemd/bulkhead-node.service.in").read_text()
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").read_text()))
    denied = sorted({int(numbers[name]) for name in unit_refuses() if name in numbers})
    answer = 0x50000 | errno.EPERM if re.search(r"^SystemCallErrorNumber=EPERM$", unit, re.M) else 0x80000000
    rows = [(0x20, 0, 0, 0)] + [(0x15, len(denied) - i, 0, n) for i, n in enumerate(denied)] + [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, answer)]
    return b"".join(struct.pack("HBBI", *row) for row in rows), len(rows)


def be_filtered():
    """In a child that is about to become a node: load the unit's filter, as systemd does."""
    found = unit_filter()
    if not found:
        return
    libc, program = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(*found[:1], len(found[0]))
    filter_ = struct.pack("HxxxxxxQ", found[1], ctypes.addressof(program))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter_, 0, 0):  # no_new_privs, seccomp
        os._exit(125)


def bounded():
    """The beginning of a command for what systemd does for bulkhead-node: its unit's mounts, bounding set and
    no_new_privs; with be_filtered its call filter."""
    unit = (ROOT / "packaging/systemd/bulkhead-node.service.in").read_text()
    kept = {name.removeprefix("CAP_").lower() for name in re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M)[1].split()}
    known = subprocess.run(["setpriv", "--list-caps"], capture_output=True, text=True, check=True).stdout.split()
    gone = ",".join(f"-{name}" for name in known if name not in kept)
    return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", UNIT_MOUNTS, "sh", "setpriv", "--no-new-privs", f"--bounding-set={gone}", f"--inh-caps={gone}"]



_stages = {}


def stage(build):
    """A folder with copies of the programs: the daemon's user cannot look into a clone
    below a folder of mode 0700."""
    if build in _stages:
        return _stages[build]
    place = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-stage-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.chmod(place, 0o755)
    for folder, names in (("bin", PROGRAMS), ("tools", TOOLS), ("shim", SHIM)):
        (place / folder).mkdir(mode=0o755)
        for name in names:
            source = find_program(pathlib.Path(build), name)
            if not source:
                raise FileNotFoundError(f"{name} is not in {build}")
            shutil.copy(source, place / folder / pathlib.Path(name).name)
    _stages[build] = place
    return place


def find_program(build, path):
    """Of a build tree, by its path there, or of an installed one."""
    name = pathlib.Path(path).name
    for candidate in (build / path, build / "libexec/bulkhead" / name, build / "libexec/bulkhead/tools" / name,
                      build / "bin" / name, build / "sbin" / name):
        if candidate.is_file():
            return candidate
    # Both the simulated driver and the shim have a libcuda.so.1 and a libnvidia-ml.so.1.
    installed = f"bulkhead/{'shim' if path in SHIM else 'sim'}/{name}"
    return next((p for around in ("", "*/") for p in (build / "lib").glob(around + installed) if p.is_file()), None)


class Site:
    """with Site(build) as site: ...

    What the closing audit finds after a block that succeeded is raised as closing.Found."""
    audited = True
    hurry_s = None           # of a test that wants to see a wait run out

    def __init__(self, build, topology="8x H100-80GB", site=None, node_conf="", daemon_conf=""):
        self.bin = stage(build) / "bin"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-test-"))
        os.chmod(self.dir, 0o755)
        self.sim, self.state, self.runs = self.dir / "sim", self.dir / "state", self.dir / "run"
        self.group, self.logs = self.dir.name, [self.dir / "daemon.log", self.dir / "node.log"]
        self.places, self.folders = [str(self.dir)], {name: self.dir / name for name in ("state", "node", "logs")}  # for closing.py
        self.socket = str(self.dir / "bulkhead.sock")
        self.daemon = self.node = None
        self.announced, self.excused = [], {}
        self.env = {}  # more for the environment of the programs that are started from now on
        self.namespaces = closing.named_namespaces()
        self.daemon_log = open(self.dir / "daemon.log", "ab")
        self.node_log = open(self.dir / "node.log", "ab")
        self.topology, self.node_extra, self.daemon_extra = topology, node_conf, daemon_conf
        self.site_yaml = site if site is not None else ROOT.joinpath("tools/demo-site.yaml").read_text()

    # ---- the programs ----
    def program(self, *parts):
        return str(self.bin / parts[-1])

    def __enter__(self):
        try:
            self.prepare()
            self.start_node()
            self.start_daemon()
            if self.site_yaml:
                self.apply(self.site_yaml)
                self.await_gpus()
        except BaseException as fault:
            self.__exit__(type(fault), fault, None)
            raise
        return self

    def prepare(self):
        for name in ("state", "logs", "node", "run"):
            (self.dir / name).mkdir()
        os.chown(self.dir / "state", DAEMON_UID, DAEMON_UID)
        driver = self.prepare_driver()
        (self.dir / "node.conf").write_text(f"""
state_dir = {self.dir}/node
run_dir = {self.dir}/run
socket = {self.dir}/node.sock
log_dir = {self.dir}/logs
daemon_uid = {DAEMON_UID}
daemon_gid = {DAEMON_UID}
cdi_dir = {self.dir}/cdi
{driver}
tools_dir = {self.bin.parent}/tools
shim_dir = {self.bin.parent}/shim
cgroup_parent = /{self.group}
sample_interval_ms = 500
hpc_job_mapping_dir = {self.dir}/mapping
{"" if "verify_at" in self.node_extra or "verify_sample" in self.node_extra else "verify_at_start = 0" + chr(10) + "verify_sample = 0"}
{self.patience()}
{self.node_extra}""")
        os.chmod(self.dir / "node.conf", 0o600)
        (self.dir / "bulkheadd.conf").write_text(f"""
site_name = test.example/audit/{self.dir.name}
state_dir = {self.dir}/state
log_dir = {self.dir}/logs
socket = {self.socket}
node_socket = {self.dir}/node.sock
{"" if "https_port" in self.daemon_extra else "https_port = 0"}
{self.daemon_extra}""")
        os.chmod(self.dir / "bulkheadd.conf", 0o644)
        os.chown(self.dir, 0, DAEMON_UID)  # the daemon makes its socket here, as in /run/bulkhead
        os.chmod(self.dir, 0o1775)

    def prepare_driver(self):
        """A simulated driver; what node.conf says of it."""
        subprocess.run([self.program("bulkhead-simctl"), "init", "--state", str(self.sim),
                        "--topology", self.topology], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([self.program("bulkhead-simctl"), "mount", "--state", str(self.sim)], check=True)
        (self.dir / "lib").mkdir()
        shutil.copy(self.bin / "libnvidia-ml.so.1", self.dir / "lib")
        return f"""nvml_library = {self.dir}/lib/libnvidia-ml.so.1
driver_lib_dir = {self.dir}/lib
driver_env = BULKHEAD_SIM_STATE={self.sim}
job_driver_mount = {self.sim}/view/{{minor}}-{{gi}}:/run/bulkhead-sim/view
job_driver_mount = {self.sim}/vram/{{minor}}-{{gi}}:/run/bulkhead-sim/vram:rw
proc_root = {self.sim}/proc
gpus = all
gpu_reset = {self.bin}/bulkhead-simctl"""

    def patience(self):
        """The node's own deadlines, where the test sets none."""
        times = {"call_timeout_ms": 10000, "scrub_timeout_ms": 20000, "verify_timeout_ms": 20000}
        return "\n".join(f"{key} = {int(ms * SLOW)}" for key, ms in times.items() if key not in self.node_extra)

    def start_node(self):
        unit_filter()
        self.node = subprocess.Popen([*bounded(), self.program("bulkhead-node"), "--config", str(self.dir / "node.conf")],
                                     preexec_fn=be_filtered, stdout=self.node_log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                     env={**os.environ, **self.env})

    def age_boot(self):
        """The node's journal as if it was written before the machine started: another boot id."""
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
        path = self.dir / "node/journal"
        text, at, out = path.read_bytes(), 0, b""
        while at < len(text):
            length = struct.unpack_from("<I", text, at)[0]
            payload = text[at + 8:at + 8 + length].replace(boot, bytes(reversed(boot)))
            out += struct.pack("<II", length, crc32c(payload)) + payload
            at += 8 + length
        assert out != text, "the node's journal names no boot"
        path.write_bytes(out)

    def start_daemon(self, wait=True):
        """Without `wait` it is expected to refuse, and need not free what it had."""
        env = {**os.environ, **self.env}
        if not wait and "ASAN_OPTIONS" in env:
            env["ASAN_OPTIONS"] += ":detect_leaks=0"
        self.daemon = subprocess.Popen([self.program("bulkheadd"), "--config", str(self.dir / "bulkheadd.conf")],
                                       stdout=self.daemon_log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       user=DAEMON_UID, group=DAEMON_UID, extra_groups=[], env=env)
        if wait:
            self.await_daemon()

    def await_daemon(self):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                Client(self.socket).get("/healthz")
                return
            except (OSError, http.client.HTTPException, Refused):
                if self.daemon.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("bulkheadd does not serve: " + self.tail())
                time.sleep(0.01)

    def kill(self, process):
        """kill -9 one of this site's programs, by its own pid, and wait for it."""
        process.kill()
        process.wait()

    def tail(self):
        return "\n".join(p.read_text(errors="replace")[-2000:] for p in self.logs)

    def node_runs(self):
        return self.node is not None and self.node.poll() is None

    def await_gpus(self):
        client = self.client()
        self.until(lambda: self.node.poll() is not None or any(g.get("managed") for g in client.get("/v1/gpus")["items"]),
                   what="a managed GPU")
        if self.node.poll() is not None:
            raise RuntimeError("bulkhead-node ended: " + self.tail())

    def stop(self, process):
        if process and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def announce(self, *texts):
        """What this test makes the programs log at level error."""
        self.announced += texts

    def excuse(self, check, why):
        """This test breaks what that check of the closing audit looks at."""
        assert why
        self.excused[check] = why

    def __exit__(self, kind, *_):
        findings = self.end(kind is None)
        if findings and kind is None and self.audited:
            raise closing.Found(findings)

    def end(self, succeeded):
        """End the programs and take all away; what the closing audit found, where the test succeeded."""
        audit, findings = succeeded and self.audited, []
        try:
            if self.daemon and self.daemon.poll() is None and succeeded:
                self.end_jobs()
                findings += closing.online(self) if audit else []
        except (OSError, Refused, http.client.HTTPException, RuntimeError) as fault:
            findings.append(f"the site could not be asked: {fault}")
        self.report(not succeeded)
        self.stop(self.daemon)
        self.stop(self.node)
        if subprocess.run([self.program("bulkhead-simctl"), "unmount", "--state", str(self.sim)], check=False).returncode:
            findings.append("left: the simulated memory is mounted")
        findings += closing.offline(self) if audit else []
        self.kill_leftovers()
        self.daemon_log.close()
        self.node_log.close()
        if os.environ.get("KEEP"):
            print("# kept:", self.dir, flush=True)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
        return findings

    def report(self, failed):
        """What the programs said, when something went wrong."""
        ends = [p.poll() if p else None for p in (self.daemon, self.node)]
        if failed or any(e not in (None, 0, -signal.SIGKILL) for e in ends):
            print(f"# status of bulkheadd {ends[0]}, of bulkhead-node {ends[1]}")
            print("\n".join("# | " + line for line in self.tail().splitlines() if "GPU found" not in line))

    def bad_lines(self, *words):
        """Lines of the programs' logs that hold one of the words."""
        lines = [line for log in self.logs for line in log.read_text(errors="replace").splitlines()]
        return [line for line in lines if any(word in line for word in words)]

    def end_jobs(self):
        client = self.client()
        for job in client.get("/v1/jobs?active=true&limit=10000")["items"]:
            try:
                client.post(f"/v1/jobs/{job['id']}/cancel")
            except Refused:
                pass
        self.until(lambda: not client.get("/v1/jobs?active=true&limit=1")["items"], what="the end of all jobs")

    def kill_leftovers(self):
        """Processes of this site that outlived it (after a failed test), and their groups."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            alive = self.processes()
            if not alive:
                break
            for pid in alive:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.thaw_all()
            time.sleep(0.02)
        for group in sorted(self.groups(), reverse=True) + self.group_parents():
            try:
                os.rmdir(group)
            except OSError:
                pass
        self.unmount_all()

    def thaw_all(self):
        for group in self.groups():
            for name, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
                try:
                    pathlib.Path(group, name).write_text(text)
                except OSError:
                    pass

    def unmount_all(self):
        mounts = [line.split()[1] for line in open("/proc/self/mounts")]
        for mount in reversed([m for m in mounts if m.startswith(str(self.dir) + "/")]):
            _libc.umount2(mount.encode(), 2)  # MNT_DETACH

    def groups(self):
        """This site's control groups below its parent, in every hierarchy."""
        return [g for parent in self.group_parents() for g, *_ in os.walk(parent) if g != parent]

    def group_parents(self):
        root = pathlib.Path("/sys/fs/cgroup")
        found = [root / self.group] + [h / self.group for h in root.iterdir() if h.is_dir()]
        return [str(p) for p in found if p.is_dir()]

    def processes(self, name=""):
        """Pids of this site's programs and jobs, those whose command line has `name`."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                line = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace")
                groups = pathlib.Path(f"/proc/{entry}/cgroup").read_text()
                state = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
                if "bulkhead-gpu" in line:  # no argument of it names the site
                    line += pathlib.Path(f"/proc/{entry}/environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if state != "Z" and name in line and (self.is_named_in(line, entry) or f"/{self.group}/" in groups):
                found.append(int(entry))
        return found

    def is_named_in(self, line, _pid):
        """Whether the process with that command line is this site's."""
        return str(self.dir) in line

    # ---- what tests say ----
    def client(self, person=None):
        return Client(self.socket, PEOPLE[person] if person else 0)

    def cli(self, person, *args, check=None, **options):
        """The CLI as that person's Unix user."""
        ids = {"user": PEOPLE[person], "group": PEOPLE[person], "extra_groups": []} if person else {}
        env = {"PATH": os.environ["PATH"], "BULKHEAD_SOCKET": self.socket, "HOME": "/nonexistent"}
        done = subprocess.run([self.program("bulkhead"), *args], capture_output=True, text=True, timeout=2 * PATIENCE_S,
                              env=env, cwd="/", **ids, **options)
        if check is not None and done.returncode != check:
            raise AssertionError(f"bulkhead {' '.join(args)}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def apply(self, yaml_text, client=None, query=""):
        """`query`, as in ?prune=true."""
        return (client or self.client()).request("PUT", "/v1/site" + query, yaml_text, {"Content-Type": "application/yaml"})

    def submit(self, *args, client=None, **spec):
        spec = {"tenant": "acme/vision/batch", "sku": "small", "args": list(args), **spec}
        if "ASAN_OPTIONS" in os.environ:  # the programs in the job are built with it as well
            spec["env"] = [*spec.get("env", []), "ASAN_OPTIONS=" + os.environ["ASAN_OPTIONS"] + ":detect_leaks=0"]
        return (client or self.client()).post("/v1/jobs", spec)["id"]

    def job(self, number):
        return self.client().get(f"/v1/jobs/{number}")

    def log(self, number, member=0):
        return self.client().get(f"/v1/jobs/{number}/logs?member={member}")

    def records(self, after=None):
        where = f"&after={after}" if after is not None else ""
        return self.client("dave").get(f"/v1/records?limit=10000{where}")["items"]

    def leaves(self, after=None):
        """Records as they are hashed."""
        where = f"&after={after}" if after is not None else ""
        items = self.client("dave").get(f"/v1/records?limit=10000&raw=true{where}")["items"]
        return [json.loads(i["leaf"]) for i in items]

    def record_count(self):
        return self.client().get("/v1/status")["records"]

    def let_go(self, job, member=0):
        """End UNTIL_GO in a job's member, whether or not its node runs."""
        self.until(lambda: any(self.remove_stay(pid, job, member) for pid in self.processes()), what=f"job {job} waiting")

    def remove_stay(self, pid, job, member):
        """Taken away, not put there: a tmpfs of the job's user namespace has no place for a file of ours."""
        try:
            pairs = (e.partition("=") for e in pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0"))
            named = {name: value for name, _, value in pairs}
            if named.get("BULKHEAD_JOB") != str(job) or named.get("BULKHEAD_GANG_RANK", "0") != str(member):
                return False
            os.unlink(f"/proc/{pid}/root/tmp/stay")
            return True
        except OSError:
            return False  # it has ended, or does not wait yet

    def patience_of(self, seconds):
        return (self.hurry_s or max(seconds, WAIT_S)) * SLOW

    def until(self, condition, seconds=WAIT_S, step=0.02, what="what was awaited"):
        """What the condition said, once that is true; `seconds` is more than the usual, where that is needed."""
        seconds = self.patience_of(seconds)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(step)
        raise RuntimeError(f"{what} did not come in {seconds:.0f} s")

    def await_state(self, number, *states, seconds=WAIT_S):
        seen = {}
        deadline = time.monotonic() + self.patience_of(seconds)
        client = self.client()
        while time.monotonic() < deadline:
            seen = client.get(f"/v1/jobs/{number}")
            if seen["state"] in states:
                return seen
            if seen["state"] in ENDED:
                break
            time.sleep(0.02)
        raise RuntimeError(f"job {number} is {seen.get('state')} ({seen.get('reason')} {seen.get('cause')}), not {states}\n"
                           + self.log(number)[-500:] + self.tail())

    def run(self, *args, seconds=WAIT_S, **spec):
        """Submit, wait for the end, return (job, log)."""
        job = self.await_state(self.submit(*args, **spec), *ENDED, seconds=seconds)
        return job, self.log(job["id"])
