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
        print(f"1..0 # SKIP not root, no clone, or no {' '.join(lack)}")
        return 0
    folder, failed = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-try-")), 0
    folder.chmod(0o755)
    try:
        for number, (name, good, said) in enumerate(play(folder), 1):
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
            if not good:
                print("\n".join(f"# {line}" for line in said), flush=True)
        print(f"1..{number}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
