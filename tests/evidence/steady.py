#!/usr/bin/env python3
"""A long history in one block: steady.py DIGEST_RUN STEPS

The engine never asks for larger tables, its block keeps its size, and the process needs
no more memory at the end than after a hundredth of the way.  Prints steps per second.
"""
import os
import re
import subprocess
import sys

SLACK_KIB = 256  # pages of the C library's output


def play(program, steps):
    """(exit status, output, seconds of CPU, KiB at most)"""
    child = subprocess.Popen([program, str(steps), "11", "plain"], stdout=subprocess.PIPE,
                             text=True)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main():
    program, steps = sys.argv[1], int(sys.argv[2])
    _, before, _, least = play(program, steps // 100)
    status, text, seconds, most = play(program, steps)
    sizes = [re.search(r"bytes (\d+)", part).group(1) for part in (before, text)]
    good = [("every step was taken, none for want of room", status == 0),
            ("the invariants held", "broken" not in text),
            ("the block kept its size", sizes[0] == sizes[1]),
            ("the process did not grow", most <= least + SLACK_KIB)]
    print(f"1..{len(good)}")
    for number, (sentence, held) in enumerate(good, 1):
        print(f"{'ok' if held else 'not ok'} {number} - {sentence}")
    print(f"# {steps} steps in {seconds:.1f} s of CPU: {steps / seconds:.0f} steps/s, "
          f"block {sizes[1]} bytes, process {least} and {most} KiB")
    print("\n".join("# " + line for line in text.splitlines()[-4:]))
    sys.exit(not all(held for _, held in good))


if __name__ == "__main__":
    main()
