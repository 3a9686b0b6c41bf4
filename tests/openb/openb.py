#!/usr/bin/env python3
"""Replay the openb trace and compare every point with FGD's artifact.  Speaks TAP.

    openb.py REPLAY SEEDS

The data is not in the repository: it is looked for in $BULKHEAD_DATA, else in
../shared/data beside the repository (docs/replay.md); without it the test is skipped.
"""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VARIANTS, POLICIES, POINTS = 17, 2, 131


def find_data():
    """The folder that holds the node list, or None."""
    parent = os.environ.get("BULKHEAD_DATA") or os.path.join(os.path.dirname(ROOT), "shared", "data")
    for folder in (parent, os.path.join(parent, "openb")):
        if os.path.exists(os.path.join(folder, "openb_node_list_gpu_node.csv")):
            return folder
    return None


def report(number, good, what):
    print(f"{'ok' if good else 'not ok'} {number} - {what}")
    return good


def main():
    replay, seeds = sys.argv[1:]
    data = find_data()
    if data is None:
        print("1..0 # SKIP the openb data is not here: set BULKHEAD_DATA (docs/replay.md)")
        return 0
    first, last = map(int, seeds.split("-"))
    done = subprocess.run([replay, "openb", "--data", data, "--variant", "all", "--seeds", seeds,
                           "--policy", "bestfit,fgd", "--check", "--json"],
                          stdout=subprocess.PIPE, text=True)
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    wanted = VARIANTS * POLICIES * (last - first + 1)
    far = [f"{run['variant']} {run['policy']} {run['seed']}: off by {run['off_by']}"
           for run in runs if run["off_by"] > 0.0101]
    print("1..4")
    good = [report(1, done.returncode == 0, f"exit status {done.returncode}"),
            report(2, len(runs) == wanted, f"{len(runs)} of {wanted} runs"),
            report(3, all(len(run["points"]) == POINTS and None not in run["points"] for run in runs),
                   f"each with {POINTS} points"),
            report(4, not far, "all points within 0.01 of the artifact's")]
    for line in far:
        print("#", line)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
