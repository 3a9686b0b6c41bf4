#!/usr/bin/env python3
"""The simulated libcuda.so.1 exports the names of tables/cuda_names.tbl and needs libc alone.

usage: exports_test.py LIBRARY.  Prints TAP."""
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(library):
    with open(os.path.join(ROOT, "tables", "cuda_names.tbl"), encoding="utf-8") as file:
        wanted = sorted(re.findall(r"^CUDA_NAME\((\w+)\)", file.read(), re.M))
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
