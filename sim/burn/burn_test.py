#!/usr/bin/env python3
"""bulkhead-burn on the simulated driver: what it completes alone and beside another, in all its
manners, and how it ends.

usage: burn_test.py PROGRAM LIBRARY SIMCTL.  Prints TAP."""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM, LIBRARY, SIMCTL = (os.path.abspath(path) for path in sys.argv[1:4])
SLOW = float(os.environ.get("BULKHEAD_TEST_SLOW", "1"))  # so many times longer takes everything here
FIELDS = {"event", "pid", "start_ns", "end_ns", "kernels", "work_ns", "launches", "allocations", "refused"}


def simctl(*words):
    subprocess.run([SIMCTL, *words], check=True, capture_output=True)


def burn(*options):
    return subprocess.run([PROGRAM, "--library", LIBRARY, "--loops-per-ms", "1000", *options],
                          capture_output=True, text=True, check=False, timeout=50)


def ends(done):
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        assert line["event"] == "start" or set(line) == FIELDS, line
    return [line for line in lines if line["event"] == "end"]


def share(end):
    return end["work_ns"] / (end["end_ns"] - end["start_ns"])


def shares(*options):
    return [share(end) for end in ends(burn(*options))]


def time(ms):
    return ["--time", f"{round(ms * SLOW)}ms"]


def between(values, least, most):
    """A program that shares the machine with others completes so much less."""
    print(f"# {[round(value, 4) for value in values]}")
    return all(least / SLOW <= value <= most for value in values)


# Work that was completed is reported up to 20 ms later, and later still on a loaded machine.
def alone():
    return between(shares(*time(300), "--kernel", "1ms", "--streams", "2"), 0.75, 1.0)


def graphs():
    return between(shares(*time(200), "--kernel", "50us", "--graph", "20"), 0.7, 1.0)


def two():
    got = shares(*time(400), "--kernel", "1ms", "--processes", "2")
    return len(got) == 2 and between(got, 0.3, 0.5 if SLOW == 1 else 0.7)


# The holder of the GPU keeps it while the slice is long: together they lose less to switching.
def slices():
    simctl("timeslice", "30000")
    got = shares(*time(400), "--kernel", "1ms", "--processes", "2")
    simctl("timeslice", "2000")
    refused = subprocess.run([SIMCTL, "timeslice", "99"], capture_output=True, check=False).returncode
    return refused == 1 and between([sum(got)], 0.85, 1.05)


def paced():
    end, = ends(burn(*time(300), "--kernel", "100us", "--rate", "100"))
    return 15 <= end["launches"] <= 30 * SLOW + 1


def windows():
    lines = [json.loads(line) for line in burn(*time(200), "--window", "50ms").stdout.splitlines()]
    shown = [line for line in lines if line["event"] == "window"]
    return lines[0]["event"] == "start" and len(shown) >= 2 and \
        all(a["end_ns"] == b["start_ns"] for a, b in zip(shown, shown[1:])) and \
        sum(line["kernels"] for line in shown) == lines[-1]["kernels"]


def first_allocations(*options):
    """As many as the first window shows that has any; a busy machine may take a while to come to it."""
    command = [PROGRAM, "--library", LIBRARY, "--loops-per-ms", "1000", "--time", "40s", "--window", "20ms", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        shown = (json.loads(line).get("allocations", 0) for line in running.stdout)
        count = next((some for some in shown if some), 0)
        running.kill()
    return count


def storms():
    counts = {}
    for kind in ("linear", "managed", "async", "host", "vmm", "array"):
        counts[kind] = first_allocations("--kernel", "0", "--storm", kind)
    print(f"# {counts}")
    return min(counts.values()) > 0


def full():
    end, = ends(burn(*time(50), "--kernel", "0", "--hold-mib", "79000", "--storm", "linear",
                     "--storm-mib", "1024", "--storm-live", "16"))
    return end["refused"] > 0


def statuses():
    missing = subprocess.run([PROGRAM, "--library", "/nowhere/libcuda.so.1"], capture_output=True, check=False)
    return [burn("--kernel", "1x").returncode, burn("--kind").returncode, missing.returncode,
            burn("--device", "7").returncode, burn("--hold-mib", "999999").returncode,
            burn("--help").returncode] == [2, 2, 8, 8, 1, 0]


CASES = [alone, graphs, two, slices, paced, windows, storms, full, statuses]


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root: the simulated driver's state is root's")
        return 0
    print(f"1..{len(CASES)}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="bulkhead-burn-test.") as state:
        os.environ["BULKHEAD_SIM_STATE"] = state
        simctl("init", "1x H100-80GB")
        for number, case in enumerate(CASES, 1):
            good = case()
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {case.__name__}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
