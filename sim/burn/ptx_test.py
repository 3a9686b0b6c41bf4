#!/usr/bin/env python3
"""The kernel of bulkhead-burn is what NVIDIA's assembler takes, for old GPUs and new ones.

usage: ptx_test.py PROGRAM.  Prints TAP; skips where there is no ptxas."""
import os
import shutil
import subprocess
import sys
import tempfile

TARGETS = ("sm_75", "sm_80", "sm_90", "sm_100")


def find_ptxas():
    return shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")


def main(program):
    with open(program, "rb") as file:
        content = file.read()
    start = content.index(b".version 7.0\n")
    ptx = content[start:content.index(b"\0", start)]
    ptxas = find_ptxas()
    if ptxas is None:
        print("1..0 # SKIP there is no ptxas")
        return 0
    print(f"1..{len(TARGETS)}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "burn.ptx")
        with open(path, "wb") as file:
            file.write(ptx)
        for number, target in enumerate(TARGETS, 1):
            done = subprocess.run([ptxas, f"-arch={target}", "-o", os.path.join(folder, "out"), path],
                                  capture_output=True, text=True, check=False)
            failed += done.returncode != 0
            print(f"{'ok' if done.returncode == 0 else 'not ok'} {number} - {target}")
            for line in (done.stdout + done.stderr).splitlines():
                print(f"# {line}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
