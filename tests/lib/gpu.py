"""The GPU of tools/test-gpu and tools/bench-gpu: a real one as nvidia-smi tells of it; or, with
--rehearse, the simulated one, so that these programs are tested where there is no GPU."""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading

from bulkhead import PROGRAMS, TOOLS, Site, find_program, python_beside

FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
           "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib")
MIB = 1 << 20


def call(*words, ok=True, timeout=300, **options):
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout, **options)
    if ok and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


class RealSite(Site):
    """Bulkhead on the vendor's library; `managed`: UUIDs that may be lent, others are shown and left alone."""

    def __init__(self, build, managed=(), **options):
        super().__init__(build, **options)
        self.managed = managed

    def prepare_driver(self):
        return "\n".join([f"gpus = {uuid}" for uuid in self.managed] or ["gpus = none"])


class Card:
    """One GPU that is idle and not in MIG mode, with the driver's folder and programs of `build`."""
    kind = "real"

    def __init__(self, build):
        self.build = pathlib.Path(build)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-gpu-"))
        os.chmod(self.dir, 0o755)
        self.env = dict(os.environ)
        (self.dir / "shim").mkdir()
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            shutil.copy(self.build / "src/shim" / name, self.dir / "shim")
        self.driver = self.dir / "driver"
        self.driver.mkdir()
        self.prepare()

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- what differs ----
    def prepare(self):
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            found = next((f for folder in FOLDERS for f in glob.glob(f"{folder}/{name}")), None)
            if not found:
                raise FileNotFoundError(f"no {name} in {', '.join(FOLDERS)}")
            (self.driver / name).symlink_to(os.path.realpath(found))
        self.uuid = next((g["uuid"] for g in self.idle()), None)

    def ask(self, fields, what="gpu"):
        said = call("nvidia-smi", f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits")
        return [dict(zip(fields, (cell.strip() for cell in line.split(",")))) for line in said.splitlines() if line.strip()]

    def idle(self):
        busy = {row["gpu_uuid"] for row in self.ask(["gpu_uuid", "pid"], "compute-apps")}
        return [r for r in self.ask(["uuid", "mig.mode.current"])
                if r["uuid"] not in busy and r["mig.mode.current"] in ("Disabled", "[N/A]", "N/A")]

    def gpus(self):
        return [{"uuid": g["uuid"], "pci": g["pci.bus_id"], "memory_mib": int(g["memory.total"])}
                for g in self.ask(["uuid", "pci.bus_id", "memory.total"])]

    def apps(self):
        """Processes on the GPU: pid and MiB."""
        return [(int(a["pid"]), int(a["used_memory"])) for a in self.ask(["gpu_uuid", "pid", "used_memory"], "compute-apps")
                if a["gpu_uuid"] == self.uuid]

    def about(self):
        row = next(g for g in self.ask(["uuid", "name", "driver_version", "mig.mode.current"]) if g["uuid"] == self.uuid)
        return f"{row['name']}, driver {row['driver_version']}, MIG {row['mig.mode.current']}"

    def site(self, managed, site=None):
        return RealSite(self.build, managed, site=site or "")

    # ---- what is the same ----
    def program(self, name):
        return find_program(self.build, next(path for path in PROGRAMS + TOOLS if path.endswith("/" + name)))

    def burn(self, *options, timeout=120):
        """bulkhead-burn on the bare driver: its lines."""
        env = {**self.env, "LD_LIBRARY_PATH": str(self.driver)}
        return lines(call(self.program("bulkhead-burn"), *options, env=env, timeout=timeout))

    def loops_per_ms(self):
        """Of bulkhead-burn's kernel, on the idle GPU."""
        start = next(line for line in self.burn("--kernel", "1ms", "--time", "1s") if line["event"] == "start")
        return str(round(start["loops"] * 1e6 / start["kernel_ns"]))

    def scrub(self):
        env = {**self.env, "LD_LIBRARY_PATH": str(self.driver), "CUDA_VISIBLE_DEVICES": self.uuid}
        said = call(self.program("bulkhead-scrub"), "--uuid", self.uuid, "--seed", "1", env=env, timeout=60)
        return json.loads(said.split("bulkhead-scrub: ")[1])

    def shares(self, leases, timeout=600):
        """leases: (percent, cap in MiB, mode, command).  What each printed, its exit status, and its GPU time."""
        out = pathlib.Path(tempfile.mkdtemp(dir=self.dir))
        words = []
        for percent, cap, mode, command in leases:
            words += (["--"] if words else []) + [f"{round(42 * percent)}:{cap // 2 * 2}:{self.context_mib()}:{mode}", *command]
        env = {**self.env, "CUDA_VISIBLE_DEVICES": self.uuid}
        said = call(self.build / "bench/share_jobs", self.program("bulkhead-share"), self.dir / "shim", self.driver,
                    self.uuid, out, *words, env=env, timeout=timeout)
        rows = [line.split() for line in said.splitlines() if line.startswith("lease ")]
        return [{"text": (out / f"{row[1]}.log").read_text(), "status": int(row[3]), "gpu_ns": int(row[7]),
                 "charged_mib": int(row[9]), "seen_kind": ("not", "absent", "partly", "whole")[int(row[11])], "seen_mib": int(row[12])}
                for row in rows]

    def context_mib(self):
        """What a context takes: measured, in whole units of 2 MiB."""
        if not hasattr(self, "measured"):
            self.measured = self.measure_context()
        return self.measured

    def measure_context(self):
        script = HOLD % 0
        holder = subprocess.Popen([*python_beside(self.driver / "libcuda.so.1"), "-c", script], stdout=subprocess.PIPE, text=True,
                                  env={**self.env, "LD_LIBRARY_PATH": str(self.driver), "CUDA_VISIBLE_DEVICES": self.uuid})
        try:
            assert holder.stdout.readline().strip() == "holding"
            return max((mib for _, mib in self.apps()), default=0) + 1 >> 1 << 1
        finally:
            holder.kill()
            holder.wait()


# A context and so many MiB by the driver's own library, until it is killed: no toolkit.
HOLD = """
import ctypes, time
cuda = ctypes.CDLL('libcuda.so.1')
def check(rc, what):
    if rc: raise SystemExit(f'{what}: CUDA error {rc}')
device, context, place, mib = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64(), %d
check(cuda.cuInit(0), 'cuInit')
check(cuda.cuDeviceGet(ctypes.byref(device), 0), 'cuDeviceGet')
check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device), 'cuCtxCreate')
if mib: check(cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(mib << 20)), 'cuMemAlloc')
print('holding', flush=True)
time.sleep(600)
"""


class Simulated(Card):
    kind = "simulated"

    def prepare(self):
        state = self.dir / "sim"
        call(self.program("bulkhead-simctl"), "init", "--state", state, "--topology", "1x H100-80GB")
        self.env["BULKHEAD_SIM_STATE"] = str(state)
        for name in ("sim/libcuda.so.1", "sim/libnvidia-ml.so.1"):
            shutil.copy(self.build / name, self.driver)
        self.uuid = self.report()["devices"][0]["uuid"]

    def report(self):
        return json.loads(call(self.program("bulkhead-smi"), "--json", "--library", self.driver / "libnvidia-ml.so.1", env=self.env))

    def idle(self):
        return self.gpus()

    def gpus(self):
        return [{"uuid": d["uuid"], "memory_mib": d["memory_total_bytes"] // MIB} for d in self.report()["devices"]]

    def apps(self):
        return [(p["pid"], p["memory_bytes"] // MIB) for p in self.report()["processes"]]

    def about(self):
        return "simulated H100-80GB"

    def site(self, managed, site=None):
        return Site(self.build, topology="1x H100-80GB", site=site or "")

    def loops_per_ms(self):
        return "1000"  # the driver takes the kernel's time from its first parameter


def lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def windows(text):
    """Of what bulkhead-burn said: when each window ended, and the part of the GPU that was had in it."""
    return [(w["end_ns"], w["work_ns"] / (w["end_ns"] - w["start_ns"])) for w in lines(text) if w["event"] == "window"]


def watched_shares(card, leases):
    """What leases printed, and the most that the driver said their processes had."""
    most, over = [0], threading.Event()

    def watch():
        while not over.wait(0.05):
            most[0] = max(most[0], sum(mib for _, mib in card.apps()))
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        runs = card.shares(leases)
    finally:
        over.set()
        watcher.join()
    return most[0], runs


def share_figures(percents, runs, alone):
    """What tenants that are never idle had, of the windows (end, part) of each in which all ran: the part of each, how
    far windows were off their weights (p95, points), how far the whole run was, and all together against `alone`."""
    begin, end = max(w[0][0] for w in runs), min(w[-2][0] for w in runs)
    had = [[share for at, share in w if begin < at <= end] for w in runs]
    rates = [sum(w) / len(w) for w in had]
    errors = sorted(abs(share / sum(rates) - percent / sum(percents)) * 100
                    for w, percent in zip(had, percents) for share in w)
    run = max(abs(rate / sum(rates) - percent / sum(percents)) * 100 for rate, percent in zip(rates, percents))
    return {"had": [round(r, 4) for r in rates], "window_p95": round(errors[len(errors) * 95 // 100], 2), "run": round(run, 2),
            "all": round(sum(rates) / alone, 4)}


def mean_part(run):
    """Of one tenant alone, its first and last window left out."""
    return sum(part for _, part in run[1:-1]) / len(run[1:-1])


def share_line(percents, kernel, figures):
    return (f"{'/'.join(map(str, percents)):22} {kernel:>5}  had {' '.join(f'{r:.3f}' for r in figures['had'])}  window p95 "
            f"{figures['window_p95']:.2f}  run {figures['run']:.2f}  all {figures['all']:.3f} of one alone")


def open_card(build, rehearse):
    return Simulated(build) if rehearse else Card(build)


def missing(rehearse):
    """What this machine lacks, or ""."""
    if os.geteuid() != 0:
        return "not root"
    if rehearse:
        return ""
    if not glob.glob("/dev/nvidia[0-9]*"):
        return "no NVIDIA GPU here"
    return "" if shutil.which("nvidia-smi") else "nvidia-smi is not installed"
