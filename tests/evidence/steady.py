#!/usr/bin/env python3
"""A long history in one block: steady.py DIGEST_RUN STEPS

The engine never asks for larger tables, its block keeps its size, and the process needs
no more memory at the end than after a hundredth of the way.  Prints steps per second.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report, note

SLACK_KIB = 256  # pages of the C library's output


def play(program, steps):
    """(exit status, output, seconds of CPU)"""
    child = subprocess.Popen([program, str(steps), "11", "plain"], stdout=subprocess.PIPE,
                             text=True)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, text, usage.ru_utime + usage.ru_stime


def main():
    program, steps = sys.argv[1], int(sys.argv[2])
    _, before, _ = play(program, steps // 100)
    status, text, seconds = play(program, steps)
    sizes = [re.search(r"bytes (\d+)", part).group(1) for part in (before, text)]
    least, most = (int(re.search(r"peak (\d+)", part).group(1)) for part in (before, text))
    good = [("every step was taken, none for want of room", status == 0),
            ("the invariants held", "broken" not in text),
            ("the block kept its size", sizes[0] == sizes[1]),
            ("the process did not grow", most <= least + SLACK_KIB)]
    report = Report(len(good)).rows(good)
    print(f"# {steps} steps in {seconds:.1f} s of CPU: {steps / seconds:.0f} steps/s, "
          f"block {sizes[1]} bytes, process {least} and {most} KiB")
    note(text.splitlines()[-5:])
    sys.exit(report.close())


if __name__ == "__main__":
    main()
