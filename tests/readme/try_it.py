#!/usr/bin/env python3
"""README.md's "Try it", whole: a clone in an empty folder, and `make demo` there.

usage: try_it.py.  Prints TAP.  What is cloned is the last commit; BULKHEAD_STAGE_BUILD and the stage are
the clone's own."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report, skip_all

ROOT = pathlib.Path(__file__).resolve().parents[2]


def commands():
    """The indented lines of the section."""
    section = re.search(r"^## Try it\n(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S)[1]
    return re.findall(r"^    (.+)$", section, re.M)


def play(folder):
    """(name, whether it holds, what was said) of each step."""
    shown = commands()
    yield "the README shows three commands", len(shown) == 3 and shown[2] == "make demo", shown
    script = shown[1].replace("<this repository>", str(ROOT))
    yield from run("the clone", f"{script} && pwd", folder)
    clone = folder / "bulkhead"
    yield from run("make demo", f"make demo STAGE={folder}/stage", clone, "== Done in ")
    left = [line for line in open("/proc/mounts") if "/bulkhead-demo." in line]
    yield "nothing stays mounted", not left, left


def run(name, script, folder, wanted=""):
    done = subprocess.run(["sh", "-c", script], cwd=folder, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    yield name, done.returncode == 0 and wanted in done.stdout, done.stdout.splitlines()[-30:]


def main():
    lack = [tool for tool in ("git", "make", "crun") if not shutil.which(tool)]
    if os.geteuid() != 0 or lack or not (ROOT / ".git").exists():
        skip_all(f"not root, no clone, or no {' '.join(lack)}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-try-"))
    folder.chmod(0o755)
    try:
        return Report().rows(play(folder)).close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
