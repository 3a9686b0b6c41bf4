"""The vendor's programs that tools/vendor-programs fetched, and how each is asked."""
import json
import os
import pathlib
import re
import shlex
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import skip_all

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(os.environ.get("BH_VENDOR", ROOT / "build-vendor"))
PYTHON = "usr/lib/python3/dist-packages"
SMI = ("470", "535", "550", "580", "615")
# What an administrator does with it, and what it says when it may not.  `-pm` and `-acp` are refused as
# well, but say that they were done.
CHANGES = {"-c 3": 4, "-mig 1": 4, "-e 0": 4, "-p 0": 4, "-lgc 1000": 4, "-rgc": 4, "-ac 2619,1980": 4, "-am 1": 4,
           "-caa": 4, "-r": None, "-pl 300": None, "-pm 0": None, "mig -cgi 19": None, "mig -dgi": None,
           "drain -p 0000:10:00.0 -m 1": None, "compute-policy --set-timeslice=1": None}


def need(*names):
    """Ends the test as skipped where one of them was not fetched."""
    missing = [name for name in names if not (FOLDER / name / "versions").exists()]
    if missing:
        skip_all(f"{', '.join(missing)} not in {FOLDER}: make test-vendor fetches it", 77)


def smi(version, folder=FOLDER):
    """The path of nvidia-smi of that branch."""
    inside = "usr/bin" if (FOLDER / f"smi-{version}/usr/bin/nvidia-smi").exists() else "usr/lib/nvidia/current"
    return f"{folder}/smi-{version}/{inside}/nvidia-smi"


def python(age, folder=FOLDER):
    """The command of a Python that has pynvml, gpustat and nvitop of that age."""
    return f"env PYTHONPATH={folder}/{age}/{PYTHON}:{folder}/python/{PYTHON} /usr/bin/python3"


def nvtop(folder=FOLDER, library="$LD_LIBRARY_PATH"):
    """With the C library of its own release."""
    own = f"{folder}/nvtop/usr/lib/x86_64-linux-gnu"
    return f"{own}/ld-linux-x86-64.so.2 --library-path {own}:{library} {folder}/nvtop/usr/bin/nvtop"


# All that pynvml, which gpustat and nvitop are made on, has to say of a process and a device.
PYNVML = """
import pynvml as n
n.nvmlInit(); d = n.nvmlDeviceGetHandleByIndex(0); m = n.nvmlDeviceGetMemoryInfo(d)
print([n.nvmlDeviceGetCount(), m.total >> 20, m.used >> 20, n.nvmlDeviceGetUtilizationRates(d).gpu,
       [[p.pid, p.usedGpuMemory >> 20] for p in n.nvmlDeviceGetComputeRunningProcesses(d)]])
"""
NVITOP = """
import nvitop as n
d = n.Device.all()
print([len(d), d[0].memory_total() >> 20, d[0].memory_used() >> 20, d[0].gpu_utilization(),
       [[pid, p.gpu_memory() >> 20] for pid, p in d[0].processes().items()]])
"""
QUERY = "--query-gpu=uuid,memory.total,memory.used,memory.free,utilization.gpu --format=csv,noheader,nounits"
APPS = "--query-compute-apps=pid,name,used_memory --format=csv,noheader,nounits"


def questions(folder=FOLDER):
    """name -> command, of everything that only asks."""
    found = {}
    for version in SMI:
        for name, words in (("list", "-L"), ("plain", ""), ("query", QUERY), ("apps", APPS), ("all", "-q"),
                            ("xml", "-q -x"), ("pmon", "pmon -c 1"), ("dmon", "dmon -c 1"), ("topo", "topo -m"),
                            ("links", "nvlink -s"), ("others", "-q -i 00000000:16:00.0"), ("second", "-q -i 1"),
                            ("units", "-q -u"), ("accounted", "--query-accounted-apps=pid,gpu_uuid --format=csv")):
            found[f"smi-{version} {name}"] = f"{smi(version, folder)} {words}"
    for age in ("old", "new"):
        found[f"pynvml {age}"] = f"{python(age, folder)} -c {shlex.quote(PYNVML)}"
        found[f"gpustat {age}"] = f"{python(age, folder)} {folder}/{age}/usr/bin/gpustat --json"
        found[f"gpustat-text {age}"] = f"{python(age, folder)} {folder}/{age}/usr/bin/gpustat -cupF --no-color"
    found["nvitop"] = f"{python('new', folder)} -c {shlex.quote(NVITOP)}"
    found["nvitop-text"] = f"{python('new', folder)} {folder}/new/usr/bin/nvitop -1 --ascii"
    found["nvtop"] = f"{nvtop(folder)} -s"
    return found


def script(commands):
    """A shell script that runs them, each to its end, and marks what each said and with which status."""
    return "\n".join(f"echo '### {name}'; timeout 20 {command} 2>&1 < /dev/null; echo \"### = $?\""
                     for name, command in commands.items())


def answers(log):
    """name -> (status, text) of what such a script printed."""
    found = {}
    for name, text, status in re.findall(r"^### ([^=\n].*?)\n(.*?)\n?### = (\d+)$", log, re.M | re.S):
        found[name] = (int(status), text)
    return found


def broke(answer):
    """Was it stopped after its time, or ended by a signal?  (255 is nvidia-smi's own "no".)"""
    return 124 <= answer[0] < 192


class Seen:
    """What one program says of the first GPU: MiB, per cent, and {pid: MiB}; None: it does not say."""

    def __init__(self, gpus, total, used, busy, processes):
        self.gpus, self.total, self.used, self.busy, self.processes = gpus, total, used, busy, processes

    def __repr__(self):
        return f"{self.gpus} GPU, {self.used}/{self.total} MiB, {self.busy} %, {self.processes}"


def number(text):
    return int(text) if text.isdigit() else None


def seen_by_smi(said, version):
    """By one nvidia-smi, in all of its forms, which must agree."""
    rows = [row.split(", ") for row in said[f"smi-{version} query"][1].splitlines()]
    apps = [row.split(", ") for row in said[f"smi-{version} apps"][1].splitlines()]
    processes = {int(pid): int(mib) for pid, _, mib in apps}
    _, total, used, free, busy = rows[0]
    assert int(used) + int(free) == int(total), rows
    root = ElementTree.fromstring(said[f"smi-{version} xml"][1])
    listed = {int(p.findtext("pid")): p.findtext("used_memory") for p in root.find("gpu").iter("process_info")}
    assert listed == {pid: f"{mib} MiB" for pid, mib in processes.items()}, (listed, processes)
    assert root.findtext("attached_gpus") == str(len(rows)), rows
    plain = said[f"smi-{version} plain"][1]
    assert re.search(rf"\b{used}MiB / +{total}MiB", plain), plain
    assert {int(pid) for pid in re.findall(r"^\|    0   N/A  N/A +(\d+) ", plain, re.M)} == set(processes), plain
    assert said[f"smi-{version} list"][1].count("GPU ") == len(rows), said[f"smi-{version} list"]
    watched = re.findall(r"^ +0 +(\d+) ", said[f"smi-{version} pmon"][1], re.M)
    assert {int(pid) for pid in watched} == set(processes), said[f"smi-{version} pmon"]
    assert said[f"smi-{version} dmon"][0] == 0, said[f"smi-{version} dmon"]
    return Seen(len(rows), int(total), int(used), number(busy), processes)


def seen_by_others(said):
    """By each program that is not nvidia-smi: name -> Seen."""
    found = {}
    for age in ("old", "new"):
        count, total, used, busy, processes = json.loads(said[f"pynvml {age}"][1])
        found[f"pynvml {age}"] = Seen(count, total, used, busy, dict(processes))
        gpus = json.loads(said[f"gpustat {age}"][1])["gpus"]
        found[f"gpustat {age}"] = Seen(len(gpus), gpus[0]["memory.total"], gpus[0]["memory.used"],
                                       gpus[0]["utilization.gpu"],
                                       {p["pid"]: p["gpu_memory_usage"] for p in gpus[0]["processes"]})
    count, total, used, busy, processes = json.loads(said["nvitop"][1])
    found["nvitop"] = Seen(count, total, used, busy, dict(processes))
    assert all(f" {pid} C " in said["nvitop-text"][1] for pid in dict(processes)), said["nvitop-text"]
    gpus = json.loads(said["nvtop"][1])
    found["nvtop"] = Seen(len(gpus), None, None, number((gpus[0]["gpu_util"] or "").rstrip("%")), None)
    return found
