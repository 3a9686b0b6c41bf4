#!/usr/bin/env python3
"""Is the overview of a large site small enough?  Has the views' test write it, and weighs it as a
browser gets it.  Speaks TAP.

    size_test.py VIEWS-TEST GOLDEN-FOLDER BUILD-FOLDER FIXTURE-FOLDER
"""
import gzip
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report

LIMIT = 12 << 10


def main():
    program, golden, _, fixtures = sys.argv[1:]
    report = Report(1)
    with tempfile.TemporaryDirectory() as folder:  # the views' own test may be writing beside it
        subprocess.run([program, golden, folder, fixtures], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        page = (pathlib.Path(folder) / "overview_crowded.html").read_bytes()
    packed = len(gzip.compress(page, 9))
    report.line(packed <= LIMIT, f"64 GPUs and 200 jobs are {packed} bytes, at most {LIMIT}", [f"{len(page)} before"])
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
