#!/usr/bin/env python3
"""bulkhead-smi, bulkhead-simctl and bulkhead-simload, run as people run them.

usage: programs_test.py SMI SIMCTL SIMLOAD LIBRARY.  Prints TAP."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SMI, SIMCTL, SIMLOAD, LIBRARY = sys.argv[1:5]


class Skip(Exception):
    pass


class Server:
    """A simulated server in a folder of its own."""

    def __init__(self, topology):
        if os.geteuid() != 0:
            raise Skip("not root: the simulated driver is root's")
        self.dir = tempfile.mkdtemp(prefix="bulkhead-smi-test.")
        self.env = dict(os.environ, BULKHEAD_SIM_STATE=self.dir)
        self.run(SIMCTL, "init", topology)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def run(self, *words, status=0):
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode != status:
            raise AssertionError(f"{words}: exit {done.returncode}, want {status}: {done.stderr}")
        return done.stdout if status == 0 else done.stderr

    def smi(self, *words):
        return self.run(SMI, "--library", LIBRARY, *words)

    def devices(self):
        return json.loads(self.smi("--json"))["devices"]


def equal(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: {got!r}, want {want!r}")


def test_usage():
    for words in ([SMI, "--none-such"], [SMI, "word"], [SIMCTL], [SIMCTL, "none-such"], [SIMCTL, "xid", "1"],
                  [SIMLOAD], [SIMLOAD, "--mib", "x", "--seconds", "1"], [SIMLOAD, "--mib", "1"]):
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
        equal(f"status of {words}", done.returncode, 2)
        equal(f"usage after {words}", "usage:" in done.stderr, True)
    for program in (SMI, SIMCTL, SIMLOAD):
        for option in ("--help", "--version"):
            done = subprocess.run([program, option], capture_output=True, text=True, timeout=30, check=False)
            equal(f"{program} {option}", (done.returncode, done.stderr, done.stdout != ""), (0, "", True))


def test_no_library():
    done = subprocess.run([SMI, "--library", "/none/such.so"], capture_output=True, text=True, timeout=30, check=False)
    equal("status", done.returncode, 8)
    equal("cause", "cannot load the NVML library" in done.stderr, True)


def test_no_driver():
    env = dict(os.environ, BULKHEAD_SIM_STATE="/none/such")
    done = subprocess.run([SMI, "--library", LIBRARY], env=env, capture_output=True, text=True, timeout=30, check=False)
    equal("status", done.returncode, 8)
    equal("cause", "Driver Not Loaded" in done.stderr, True)


def test_list():
    with Server("2x H100-80GB") as server:
        lines = server.smi("-L").splitlines()
        equal("lines", len(lines), 2)
        for index, line in enumerate(lines):
            form = rf"GPU {index}: NVIDIA H100 80GB HBM3 \(UUID: GPU-[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}\)"
            equal(line, re.fullmatch(form, line) is not None, True)
        equal("says so", "SIMULATED" in server.smi(), True)


def test_load():
    with Server("1x A100-40GB") as server:
        words = [SIMLOAD, "--mib", "1000", "--seconds", "20", "--busy", "0", "--view", "0-w"]
        with subprocess.Popen(words, env=server.env, stdout=subprocess.PIPE, text=True) as load:
            try:
                equal("line", f"pid {load.pid} holds 1000 MiB" in load.stdout.readline(), True)
                shown = json.loads(server.smi("--json"))
                equal("used", shown["devices"][0]["memory_used_bytes"], 1000 << 20)
                equal("process", [p["pid"] for p in shown["processes"]], [load.pid])
                more = [SIMLOAD, "--mib", "40000", "--seconds", "1", "--view", "0-w"]
                equal("too much", "out of device memory" in server.run(*more, status=1), True)
                equal("reset", "In use" in server.run(SIMCTL, "reset", "0", status=1), True)
            finally:
                load.kill()
        equal("freed by death", server.devices()[0]["memory_used_bytes"], 0)


def test_lose_and_reset():
    with Server("2x H100-80GB mig=on") as server:
        server.run(SIMCTL, "lose", "1")
        equal("lost", [d["lost"] for d in server.devices()], [False, True])
        server.run(SIMCTL, "reset", "1")
        equal("back", [d["lost"] for d in server.devices()], [False, False])
        equal("mode forgotten", [d["mig_mode"] for d in server.devices()], [True, False])
        equal("no rule", server.run(SIMCTL, "inject", "gpu=1", "flat", status=1) != "", True)


def test_init_again():
    """Nothing of the old server shows in the new one."""
    with Server("1x H200-141GB") as server:
        memory = os.path.join(server.dir, "view", "0-w", "memory")
        server.run(SIMCTL, "lose", "0")
        server.run(SIMCTL, "init", "1x A30-24GB")
        equal("memory file", os.stat(memory).st_size, 24576 << 20)
        equal("name", [(d["name"], d["lost"]) for d in server.devices()], [("NVIDIA A30", False)])


def test_wrong_topology():
    with Server("1x H100-80GB") as server:
        equal("cause", "line 1 is wrong" in server.run(SIMCTL, "init", "1x H100", status=1), True)
        equal("old one stays", len(server.devices()), 1)


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}")
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {name}")
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}")
        except Exception as error:  # one broken test must not hide the others
            print(f"not ok {number} - {name}\n# {error}")
            failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
