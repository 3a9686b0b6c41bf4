#!/usr/bin/env python3
"""Tests of tools/check-pure, tools/check-headers, tools/run-tests and tools/bench-against.

    tools/tools_test.py COMPILER
"""
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/lib"))
from report import Report  # noqa: E402
HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER = sys.argv[1:] or ["cc"]


def load(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(HERE, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


check_pure, run_tests, bench_against = load("check-pure"), load("run-tests"), load("bench-against")

# (what, C source of a pure archive, faults)
PURE = [
    ("arithmetic", "int bh_a(int a) { return a / 3; }", []),
    ("128-bit division", "unsigned __int128 bh_a(unsigned __int128 a, unsigned __int128 b) { return a / b; }", []),
    ("counting bits", "int bh_a(unsigned long a) { return __builtin_popcountl(a); }", []),
    ("memory moves", "void *memcpy(void *, const void *, unsigned long);"
                     "void bh_a(void *a, void *b, int n) { memcpy(a, b, n); }", []),
    ("a global", "int bh_n; int bh_a(void) { return bh_n; }", ["holds writable data in .bss"]),
    ("a call of base", "int bh_str_len(void); int bh_a(void) { return bh_str_len(); }", []),
    ("malloc", "void *malloc(unsigned long); void *bh_a(void) { return malloc(3); }", ["calls malloc"]),
    ("the clock", "long time(long *); long bh_a(void) { return time(0); }", ["calls time"]),
    ("base's clock", "long bh_time_now(void); long bh_a(void) { return bh_time_now(); }", ["calls bh_time_now"]),
    ("base's growing buffer", "void bh_buf_init(void); void bh_a(void) { bh_buf_init(); }", ["calls bh_buf_init"]),
    ("base's fixed buffer", "void bh_buf_init_fixed(void); void bh_a(void) { bh_buf_init_fixed(); }", []),
    ("base's log", "void bh_log_write(void); void bh_a(void) { bh_log_write(); }", ["calls bh_log_write"]),
    ("a static counter", "int bh_a(void) { static int n = 1; return n++; }", ["holds writable data in .data"]),
    ("constant tables", 'static const char *const names[] = { "a" }; const char *bh_a(int i) { return names[i]; }', []),
]

# (what, TAP, passed failed skipped)
TAP = [
    ("numbered", "1..2\nok 1 - a\nok 2 - b\n", (2, 0, 0)),
    ("without numbers", "ok - a\nnot ok - b\n", (1, 1, 0)),
    ("skipped", "1..2\nok 1 - a # SKIP no gpu\nok 2\n", (1, 0, 1)),
    ("to do", "not ok 1 - a # TODO later\n", (1, 0, 0)),
    ("chatter", "# ok\n  ok indented\nokay\nnot okay\n", (0, 0, 0)),
]

# (what, an entry of meson's log, speaks TAP, passed failed skipped)
RUNS = [
    ("a plain pass", {"name": "x", "result": "OK"}, False, (1, 0, 0)),
    ("a plain failure", {"name": "x", "result": "FAIL"}, False, (0, 1, 0)),
    ("a timeout", {"name": "x", "result": "TIMEOUT"}, False, (0, 1, 0)),
    ("a skip", {"name": "x", "result": "SKIP"}, False, (0, 0, 1)),
    ("TAP that crashed half way", {"name": "x", "result": "ERROR", "stdout": "1..2\nok 1\n"}, True, (1, 1, 0)),
    ("TAP with one failure", {"name": "x", "result": "ERROR", "stdout": "1..2\nok 1\nnot ok 2\n"}, True, (1, 1, 0)),
    ("TAP skipped as a whole", {"name": "x", "result": "SKIP", "stdout": "1..0 # SKIP no gpu\n"}, True, (0, 0, 1)),
]


# (what, load of a machine with two cores, how much slower its tests may be)
BUSY = [
    ("nothing runs but these tests", 0.1, 2.0),
    ("each core has something", 2.0, 2.0),
    ("four for each core", 8.0, 4.0),
    ("not for ever", 200.0, 10.0),
]
# (what, --slower, how much slower for the others, what the tests get)
PATIENCE = [
    ("as it comes", 1.0, 1.0, 1.0),
    ("with a sanitizer", 5.0, 1.0, 5.0),
    ("and with others", 2.0, 3.0, 6.0),
    ("not for ever", 5.0, 8.0, 10.0),
    ("never quicker", 0.1, 2.0, 2.0),
]

# (what, unit, REV's runs, this tree's, REV's as shown, times, mark)
AGAINST = [
    ("less time", "ms", [20, 30, 22], [11, 10, 12], "22 (20 to 30)", "0.50", ""),
    ("more time", "ms", [10], [10.6], "10 (10 to 10)", "1.06", "LOSS"),
    ("five hundredths are none", "MB", [100], [105], "100 (100 to 100)", "1.05", ""),
    ("less in a second", "/s", [100, 110, 90], [94, 94, 94], "100 (90 to 110)", "0.94", "LOSS"),
    ("more in a second", "/s (7 us of the owner thread)", [100], [120], "100 (100 to 100)", "1.20", ""),
    ("nothing before", "lost", [0], [0], "0 (0 to 0)", "-", ""),
]


def pure_faults(folder, source):
    archive = os.path.join(folder, "libpure.a")
    subprocess.run([*COMPILER, "-w", "-O1", "-fPIE", "-c", "-x", "c", "-", "-o", f"{folder}/pure.o"],
                   input=source.encode(), check=True)
    subprocess.run(["ar", "rc", archive, f"{folder}/pure.o"], check=True)
    return sorted(fault.partition(" ")[2] for fault in set(check_pure.faults(archive)))


def tally_of(count, *args):
    tally = run_tests.Tally()
    count(*args, tally)
    return tally.passed, tally.failed, tally.skipped


def header_status(folder, text):
    os.makedirs(f"{folder}/src/x", exist_ok=True)
    os.makedirs(f"{folder}/include", exist_ok=True)
    os.makedirs(f"{folder}/tools", exist_ok=True)
    with open(f"{folder}/src/x/x.h", "w", encoding="utf-8") as file:
        file.write(text)
    script = f"{folder}/tools/check-headers"
    shutil.copy(os.path.join(HERE, "check-headers"), script)
    return subprocess.run([script, *COMPILER], stdout=subprocess.DEVNULL).returncode


def checks():
    """(name, found, expected)"""
    with tempfile.TemporaryDirectory(prefix="tools-test-") as folder:
        for what, source, expected in PURE:
            yield f"pure: {what}", pure_faults(folder, source), expected
        yield "headers: complete", header_status(folder, "#include <stdint.h>\nuint8_t bh_a(void);\n"), 0
        yield "headers: leans on another", header_status(folder, "uint8_t bh_a(void);\n"), 1
    for what, text, expected in TAP:
        yield f"tap: {what}", tally_of(run_tests.count_tap, text), expected
    for what, run, is_tap, expected in RUNS:
        yield f"count: {what}", tally_of(run_tests.count_test, run, is_tap), expected


    for what, load, expected in BUSY:
        yield f"busy: {what}", run_tests.busy(load, 2), expected
    for what, unit, theirs, ours, before, times, mark in AGAINST:
        sides = [[{"it": (value, unit)} for value in values] for values in (theirs, ours)]
        [(_, shown, _, *found)] = bench_against.compare(*sides)
        yield f"against: {what}", (shown, *found), (before, times, mark)
    yield "against: a figure that REV does not have", bench_against.compare([{}], [{"it": (1, "ms")}]), []
    for what, slower, others, expected in PATIENCE:
        yield f"patience: {what}", run_tests.patience(slower, others), expected


def main():
    report = Report()
    for name, found, expected in checks():
        report.line(found == expected, name, f"expected {expected}, found {found}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
