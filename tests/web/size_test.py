#!/usr/bin/env python3
"""Is the overview of a large site small enough?  Has the views' test write it, and weighs it and what it
loads as a browser gets them.  Speaks TAP.

    size_test.py VIEWS-TEST GOLDEN-FOLDER BUILD-FOLDER FIXTURE-FOLDER
"""
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"
LIMITS = {"page": 12 << 10, "js": 30 << 10, "css": 6 << 10}


def packed(data):
    return len(gzip.compress(data, 9))


def main():
    program, golden, _, fixtures = sys.argv[1:]
    report = Report(len(LIMITS))
    with tempfile.TemporaryDirectory() as folder:  # the views' own test may be writing beside it
        subprocess.run([program, golden, folder, fixtures], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        page = (pathlib.Path(folder) / "overview_crowded.html").read_bytes()
    sizes = {"page": packed(page), "js": 0, "css": 0}
    for name, kind in set(re.findall(r"/assets/([\w.]+)\.[0-9a-f]{12}\.(js|css)", page.decode())):
        sizes[kind] += packed((WEB / f"{name}.{kind}").read_bytes())
    for kind, limit in LIMITS.items():
        report.line(0 < sizes[kind] <= limit, f"64 GPUs and 200 jobs: {kind} is {sizes[kind]} bytes, at most {limit}", [f"{len(page)} before"])
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
