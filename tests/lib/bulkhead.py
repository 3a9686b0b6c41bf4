"""A whole Bulkhead in a private folder, for tests and benches: the simulated driver,
bulkhead-node and bulkheadd, and a small HTTP client on the unix socket.

Needs root (sandboxes).  Everything stops with the Site, by its own pids."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

DAEMON_UID = 64101
SKIP = 77


class Refused(Exception):
    """An error reply of the API."""

    def __init__(self, status, body):
        self.status, self.body = status, body
        self.code = body.get("error", {}).get("code") if isinstance(body, dict) else None
        super().__init__(f"{status} {body}")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=30):
        super().__init__("bulkhead", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """One keep-alive connection, as one person (by a token) or as this process's user."""

    def __init__(self, path):
        self.path, self.connection = path, None

    def request(self, method, path, body=None, headers=None):
        for last in (False, True):
            try:
                if self.connection is None:
                    self.connection = UnixConnection(self.path)
                data = None if body is None else json.dumps(body) if not isinstance(body, (str, bytes)) else body
                head = {"Content-Type": "application/json"} if data is not None else {}
                head.update(headers or {})
                self.connection.request(method, path, data, head)
                reply = self.connection.getresponse()
                text = reply.read()
                break
            except (OSError, http.client.HTTPException):
                self.connection = None
                if last or method != "GET":
                    raise
        value = json.loads(text) if reply.getheader("Content-Type", "").startswith("application/json") and text else text.decode()
        if reply.status >= 400:
            raise Refused(reply.status, value)
        return value

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body=None, **headers):
        return self.request("POST", path, body if body is not None else {}, headers)


class Site:
    """with Site(build) as site: ..."""

    def __init__(self, build, topology="8x H100-80GB", site=None, node_conf="", daemon_conf=""):
        self.build = pathlib.Path(build)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-test-"))
        os.chmod(self.dir, 0o755)
        self.sim = self.dir / "sim"
        self.socket = str(self.dir / "bulkhead.sock")
        self.daemon = self.node = None
        self.daemon_log = open(self.dir / "daemon.log", "wb")
        self.node_log = open(self.dir / "node.log", "wb")
        self.topology, self.node_extra, self.daemon_extra = topology, node_conf, daemon_conf
        self.site_yaml = site or pathlib.Path(__file__).resolve().parents[2].joinpath("tools/demo-site.yaml").read_text()

    # ---- the programs ----
    def program(self, *parts):
        for candidate in (self.build / "src").joinpath(*parts), self.build / "libexec/bulkhead" / parts[-1], self.build / "bin" / parts[-1]:
            if candidate.exists():
                return str(candidate)
        raise FileNotFoundError("/".join(parts))

    def __enter__(self):
        try:
            self.prepare()
            self.start_node()
            self.start_daemon()
            if self.site_yaml:
                self.apply(self.site_yaml)
            self.await_gpus()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def prepare(self):
        for name in ("state", "logs", "node", "run", "lib", "tools"):
            (self.dir / name).mkdir()
        os.chown(self.dir / "state", DAEMON_UID, DAEMON_UID)
        library = next((self.build / "src/simdrv").glob("libnvidia-ml.so*"), None)
        library = library or next((self.build / "lib/bulkhead").rglob("libnvidia-ml.so*"))
        shutil.copy(library, self.dir / "lib/libnvidia-ml.so.1")
        for tool in (("smi", "bulkhead-smi"), ("simdrv", "bulkhead-simload")):
            shutil.copy(self.program(*tool), self.dir / "tools")
        subprocess.run([self.program("simdrv", "bulkhead-simctl"), "init", "--state", str(self.sim),
                        "--topology", self.topology], check=True, stdout=subprocess.DEVNULL)
        (self.dir / "node.conf").write_text(f"""
state_dir = {self.dir}/node
run_dir = {self.dir}/run
socket = {self.dir}/node.sock
log_dir = {self.dir}/logs
daemon_uid = {DAEMON_UID}
daemon_gid = {DAEMON_UID}
nvml_library = {self.dir}/lib/libnvidia-ml.so.1
driver_lib_dir = {self.dir}/lib
driver_env = BULKHEAD_SIM_STATE={self.sim}
job_driver_mount = {self.sim}/view/{{minor}}-{{gi}}:/run/bulkhead-sim/view
proc_root = {self.sim}/proc
gpus = all
tools_dir = {self.dir}/tools
cgroup_parent = /{self.dir.name}
sample_interval_ms = 500
{self.node_extra}""")
        os.chmod(self.dir / "node.conf", 0o600)
        (self.dir / "bulkheadd.conf").write_text(f"""
site_name = test.example/audit/{self.dir.name}
state_dir = {self.dir}/state
log_dir = {self.dir}/logs
socket = {self.socket}
node_socket = {self.dir}/node.sock
https_port = 0
{self.daemon_extra}""")
        os.chmod(self.dir / "bulkheadd.conf", 0o644)
        os.chown(self.dir, DAEMON_UID, DAEMON_UID)  # the daemon makes its socket here
        os.chmod(self.dir, 0o755)

    def start_node(self):
        self.node = subprocess.Popen([self.program("node", "bulkhead-node"), "--config", str(self.dir / "node.conf")],
                                     stdout=self.node_log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def start_daemon(self, wait=True):
        self.daemon = subprocess.Popen([self.program("daemon", "bulkheadd"), "--config", str(self.dir / "bulkheadd.conf")],
                                       stdout=self.daemon_log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       user=DAEMON_UID, group=DAEMON_UID, extra_groups=[])
        if wait:
            self.await_daemon()

    def await_daemon(self, seconds=30):
        deadline = time.monotonic() + seconds
        while True:
            try:
                Client(self.socket).get("/healthz")
                return
            except (OSError, http.client.HTTPException, Refused):
                if self.daemon.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("bulkheadd does not serve: " + self.tail())
                time.sleep(0.01)

    def tail(self):
        return "\n".join(p.read_text(errors="replace")[-2000:] for p in (self.dir / "daemon.log", self.dir / "node.log"))

    def await_gpus(self, seconds=30):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if any(g.get("managed") for g in self.client().get("/v1/gpus")["items"]):
                return
            time.sleep(0.02)
        raise RuntimeError("no managed GPU appeared: " + self.tail())

    def stop(self, process):
        if process and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __exit__(self, kind, *_):
        try:
            if self.daemon and self.daemon.poll() is None and kind is None:
                self.end_jobs()
        except (OSError, Refused, http.client.HTTPException, RuntimeError):
            pass
        self.stop(self.daemon)
        self.stop(self.node)
        self.kill_leftovers()
        if kind is not None or os.environ.get("KEEP"):
            print("kept:", self.dir, flush=True)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def end_jobs(self):
        client = self.client()
        for job in client.get("/v1/jobs?active=true&limit=10000")["items"]:
            try:
                client.post(f"/v1/jobs/{job['id']}/cancel")
            except Refused:
                pass
        self.until(lambda: not client.get("/v1/jobs?active=true&limit=1")["items"], 15)

    def kill_leftovers(self):
        """Processes of this site that outlived it (after a failed test)."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def processes(self, name=""):
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                line = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace")
                groups = pathlib.Path(f"/proc/{entry}/cgroup").read_text()
            except OSError:
                continue
            if (str(self.dir) in line or f"/{self.dir.name}/" in groups) and name in line:
                found.append(int(entry))
        return found

    # ---- what tests say ----
    def client(self):
        return Client(self.socket)

    def apply(self, yaml_text):
        return self.client().request("PUT", "/v1/site", yaml_text, {"Content-Type": "application/yaml"})

    def submit(self, *args, client=None, **spec):
        spec = {"tenant": "acme/vision/batch", "sku": "small", "args": list(args), **spec}
        return (client or self.client()).post("/v1/jobs", spec)["id"]

    def job(self, number):
        return self.client().get(f"/v1/jobs/{number}")

    def log(self, number):
        return self.client().get(f"/v1/jobs/{number}/logs")

    def until(self, condition, seconds=20, step=0.02):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(step)
        raise RuntimeError("timed out")

    def await_state(self, number, *states, seconds=20):
        seen = {}

        def reached():
            seen.update(self.job(number))
            return seen["state"] in states

        try:
            self.until(reached, seconds)
        except RuntimeError:
            raise RuntimeError(f"job {number} is {seen.get('state')} ({seen.get('reason')}), not {states}\n" + self.tail())
        return seen
