#!/usr/bin/env python3
"""Do the examples in docs/scenarios.md run, and does it name every statement?

docs_test.py BULKHEAD-REPLAY PAGE
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report


def examples(page):
    """The page's ```bh blocks; one that is marked `bh fails` must fail."""
    return re.findall(r"^```bh( fails)?\n(.*?)^```$", page, re.M | re.S)


def play(program, text):
    with tempfile.NamedTemporaryFile("w", suffix=".bh") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([program, "scenario", file.name], capture_output=True, text=True)
    return done.returncode, done.stdout


def undocumented(program, page):
    usage = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    statements = usage.split("Statements of a scenario")[1].splitlines()[1:]
    return [word for word in (line.split()[0] for line in statements) if f"`{word}" not in page]


def main():
    program, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        page = file.read()
    results = []
    for number, (fails, text) in enumerate(examples(page), 1):
        status, said = play(program, text)
        results.append((f"example {number} of the page", status == (1 if fails else 0), said))
    missing = undocumented(program, page)
    results.append(("the page names every statement", not missing, " ".join(missing)))
    results.append(("there are examples", len(results) > 2))
    return Report(len(results)).rows(results).close()


if __name__ == "__main__":
    sys.exit(main())
