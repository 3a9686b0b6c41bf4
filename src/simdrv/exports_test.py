#!/usr/bin/env python3
"""The simulated libcuda.so.1 exports the calls of its tables and needs libc alone.

usage: exports_test.py LIBRARY.  Prints TAP."""
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


TABLES = ("cuda.tbl", "cuda_work.tbl")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def calls(table):
    with open(os.path.join(ROOT, "tables", table), encoding="utf-8") as file:
        return re.findall(r"^CUDA_CALL\((\w+),", file.read(), re.M)


def main(library):
    wanted = sorted(name for table in TABLES for name in calls(table))
    exported = sorted(line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines())
    exported = [name for name in exported if not name.startswith("__")]
    dynamic = output("readelf", "-d", library)
    needed = [n for n in re.findall(r"NEEDED.*\[(.*)\]", dynamic) if not re.match(r"(libc|ld-linux.*|lib[a-z]*san)\.so", n)]
    results = [("exports", exported == wanted, sorted(set(exported) ^ set(wanted))),
               ("soname", re.findall(r"SONAME.*\[(.*)\]", dynamic) == ["libcuda.so.1"], dynamic),
               ("libraries beside libc", not needed, needed)]
    print(f"1..{len(results)}")
    for number, (name, good, why) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}" + ("" if good else f"\n# {why}"))
    return not all(good for _, good, _ in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
