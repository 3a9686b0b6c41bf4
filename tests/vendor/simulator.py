#!/usr/bin/env python3
"""nvidia-smi, gpustat, nvitop, nvtop and pynvml on the simulated driver itself, as root on a node has them.

usage: simulator.py BUILD.  Prints TAP."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import programs
from tap import equal
from report import Report, skip_all

WHOLE_MIB, HELD_MIB = 81559, 3000


class Server:
    """A simulated server with the two libraries in a folder of their own, as a loader finds them."""

    def __init__(self, build, folder, topology):
        self.build, self.lib = build / "sim", folder / "lib"
        self.lib.mkdir(parents=True)
        for name in ("libnvidia-ml.so.1", "libcuda.so.1"):
            shutil.copy(self.build / name, self.lib)
        self.env = {**os.environ, "BULKHEAD_SIM_STATE": str(folder / "sim"), "LD_LIBRARY_PATH": str(self.lib),
                    "TERM": "dumb", "HOME": str(folder)}
        self.run(str(self.build / "bulkhead-simctl"), "init", topology)

    def run(self, *command):
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (command, done)
        return done.stdout

    def ask(self, commands):
        said = programs.answers(self.run("sh", "-c", programs.script(commands)))
        equal("all came to an end", sorted(set(commands) ^ set(said)), [])
        equal("none crashed or hung", [(name, answer) for name, answer in said.items() if programs.broke(answer)], [])
        return said

    def smi(self, version, *words):
        done = subprocess.run([programs.smi(version), *words], env=self.env, capture_output=True, text=True,
                              timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    def burn(self):
        """A program that holds memory and works, once it does."""
        child = subprocess.Popen([str(self.build / "burn/bulkhead-burn"), "--library", str(self.lib / "libcuda.so.1"),
                                  "--kernel", "1ms", "--loops-per-ms", "1000", "--time", "120s", "--hold-mib", str(HELD_MIB)],
                                 env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and str(child.pid) not in self.smi("580", *programs.APPS.split())[1]:
            time.sleep(0.1)
        return child


def watched(server):
    """every program sees two GPUs, and the process that keeps the first one busy"""
    child = server.burn()
    try:
        time.sleep(1)  # what was before is not in the first figure that they read
        said = server.ask(programs.questions())
    finally:
        child.kill()
        child.wait()
    seen = {f"nvidia-smi {version}": programs.seen_by_smi(said, version) for version in programs.SMI}
    seen |= programs.seen_by_others(said)
    for name, one in seen.items():
        print(f"# {name}: {one}")
        equal(f"{name}: GPUs", one.gpus, 2)
        assert one.busy >= 60, (name, one)
        if one.total is not None:
            equal(f"{name}: total", one.total, WHOLE_MIB)
            assert list(one.processes) == [child.pid], (name, one)
            assert HELD_MIB <= one.used < HELD_MIB + 1000 and one.processes[child.pid] == one.used, (name, one)


def changed(server):
    """nvidia-smi up to 580 changes the simulated driver as root may: compute mode, ECC, up to 550 persistence"""
    for version in programs.SMI[:-1]:  # 615 changes nothing before a function of the table has answered
        for words, field, wanted in (("-c 3", "compute_mode", "Exclusive_Process"), ("-c 0", "compute_mode", "Default"),
                                     ("-pm 0", "persistence_mode", "Disabled"), ("-pm 1", "persistence_mode", "Enabled"),
                                     ("-e 0", "ecc.mode.pending", "Disabled"), ("-e 1", "ecc.mode.pending", "Enabled")):
            if words.startswith("-pm") and version > "550":
                continue  # by a function of the table that is not described
            status, text = server.smi(version, *words.split())
            equal(f"{version} {words}: {text}", status, 0)
            asked = server.smi(version, f"--query-gpu={field}", "--format=csv,noheader")[1].split()
            equal(f"{version} {words}", asked, [wanted] * 2)


def carved(server):
    """nvidia-smi makes MIG instances, shows them with the process in one of them, and destroys them"""
    for version in programs.SMI:
        modes = "580" if version == "615" else version  # that one asks the table how many GPUs are not listed
        equal(f"{version}: mode", server.smi(modes, "-i", "0", "-mig", "1")[0], 0)
        status, text = server.smi(version, "mig", "-i", "0", "-cgi", "19,9", "-C")
        equal(f"{version}: made: {text}", [status, text.count("Successfully created")], [0, 4])
        listed = server.smi(version, "-L")[1]
        equal(f"{version}: listed: {listed}", [listed.count("MIG 1g.10gb"), listed.count("MIG 3g.40gb")], [1, 1])
        child = server.burn()
        try:
            text = server.smi(version)[1]
            assert "40448MiB" in text and re.search(rf"^\|    0   13    0 +{child.pid} .*bulkhead-burn", text, re.M), text
        finally:
            child.kill()
            child.wait()
        for words in ("-dci", "-dgi"):
            status, text = server.smi(version, "mig", "-i", "0", words)
            equal(f"{version}: {words}: {text}", [status, text.count("Successfully destroyed")], [0, 2])
        equal(f"{version}: mode", server.smi(modes, "-i", "0", "-mig", "0")[0], 0)


def main(build):
    if os.geteuid() != 0:
        skip_all("not root", 77)
    report = Report(3)
    for test in (watched, changed, carved):
        with tempfile.TemporaryDirectory(prefix="bulkhead-vendor-") as folder:
            report.play([test], Server(build, pathlib.Path(folder), "2x H100-80GB"))
    return report.close()


if __name__ == "__main__":
    programs.need(*(f"smi-{version}" for version in programs.SMI), "old", "new", "python", "nvtop")
    sys.exit(main(pathlib.Path(sys.argv[1])))
