#!/usr/bin/env python3
"""shim_bench with a preloaded library: a column of its own, on the same driver.  Needs root.

usage: preload_test.py SHIM_BENCH LIBCUDA NULL_DRIVER PRELOAD NVML.  Prints TAP.  PRELOAD makes cuMemGetInfo a
microsecond slower, and nothing else."""
import os
import re
import subprocess
import sys

ROW = re.compile(r"(.{28}) (\d) threads? +driver +([\d.]+)  shim +([\d.]+)  added +(-?[\d.]+)  preload +([\d.]+)"
                 r"  added +(-?[\d.]+)  ratio +(-?[\d.]+)")


def main(bench, libcuda, driver, preload, nvml):
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root for a mount namespace")
        return 0
    paths = [os.path.realpath(path) for path in (libcuda, driver, preload, nvml)]
    done = subprocess.run([bench, *paths[:2], "1", *paths[2:]], capture_output=True, text=True, check=False)
    rows = [(name.strip(), float(preload_ns), float(added)) for name, _, _, _, _, preload_ns, added, _
            in ROW.findall(done.stdout)]
    info = [added for name, _, added in rows if name == "cuMemGetInfo"]
    results = [("it runs", done.returncode == 0, done.stdout + done.stderr),
               ("eleven rows with the preload", len(rows) == 11, rows),
               ("each was timed", all(ns > 0 for _, ns, _ in rows), rows),
               ("it went through the preload", len(info) == 1 and info[0] > 900, rows)]
    print(f"1..{len(results)}")
    for number, (name, good, why) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}" + ("" if good else f"\n# {why}"))
    return not all(good for _, good, _ in results)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
