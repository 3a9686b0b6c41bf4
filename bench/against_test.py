#!/usr/bin/env python3
"""tools/bench-against holds this tree against itself, with the least rounds of each bench.

    against_test.py BUILD"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/lib"))
import tap  # noqa: E402

FIGURES = ["durable submissions/s, 8 clients", "submit to first instruction, carved",
           "submit to first instruction, to be carved", "trivial 1-GPU jobs end to end",
           "processor time for a submission", "processor time for a trivial job", "added by 10,000 pending",
           "restart after kill -9", "acknowledged jobs lost"]
if tap.missing():
    print("1..0 # SKIP", tap.missing())
    sys.exit(0)
build = sys.argv[1]
benches = [word for name in ("submit", "latency", "throughput", "cost", "pending", "durable") for word in ("--only", name)]
done = subprocess.run([ROOT / "tools/bench-against", ROOT, "--rev-build", build, "--build", build, "--runs", "1",
                       "--", "--share", "0.01", *benches], capture_output=True, text=True)
rows = [line for line in done.stdout.splitlines() if re.search(r"\(.* to .*\).*\(.* to .*\)", line)]
print(f"1..{len(FIGURES) + 1}")
print("ok 1 - bench-against ends well" if done.returncode == 0 else f"not ok 1 - bench-against ends well\n# {done.stderr[-3000:]}")
bad = done.returncode != 0
for number, figure in enumerate(FIGURES, 2):
    found = sum(figure in row for row in rows)
    bad |= found != 1
    print(f"{'ok' if found == 1 else 'not ok'} {number} - the table has a row: {figure}")
sys.exit(bad)
