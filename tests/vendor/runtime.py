#!/usr/bin/env python3
"""The CUDA runtime of several releases on the simulated driver: how far its start comes.

It does not start.  After what tests/shim/startup_test.c plays it asks for a table by which NVIDIA's driver
proves that it is NVIDIA's; there is none here, and none is imitated.  This says when that changes: a release
that starts, or one that asks for something else first.

usage: runtime.py BUILD.  Prints TAP."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import programs

RELEASES = ("11.2", "11.8", "12.4", "12.5")
PROOF = "42d85a81-23f6-cb47-8298-f6e78a3aecdc"
ASK = """
import ctypes as c, sys
runtime, driver = c.CDLL(sys.argv[1]), c.CDLL("libcuda.so.1")
count, version = c.c_int(-1), c.c_int(-1)
print(runtime.cudaDriverGetVersion(c.byref(version)), version.value)
print(runtime.cudaGetDeviceCount(c.byref(count)), count.value)
table = c.c_void_p()
print(driver.cuGetExportTable(c.byref(table), bytes.fromhex(sys.argv[2].replace("-", ""))))
"""


def ask(build, release, folder):
    """What a program with that runtime says, and how it ended."""
    library = next(path for path in sorted((programs.FOLDER / f"cudart-{release}").rglob("libcudart.so.*")) if not path.is_symlink())
    env = {**os.environ, "BULKHEAD_SIM_STATE": f"{folder}/sim", "LD_LIBRARY_PATH": str(folder)}
    shutil.copy(build / "src/simdrv/libcuda.so.1", folder)
    subprocess.run([build / "src/simdrv/bulkhead-simctl", "init", "1x H100-80GB"], env=env, check=True, capture_output=True)
    done = subprocess.run(["/usr/bin/python3", "-c", ASK, library, PROOF], env=env, capture_output=True, text=True,
                          timeout=60, check=False)
    return done.stdout.splitlines(), done.returncode, done.stderr


def main(build):
    if os.geteuid() != 0:
        print("1..0 # SKIP not root")
        return 77
    failed = 0
    print(f"1..{len(RELEASES)}")
    for number, release in enumerate(RELEASES, 1):
        with tempfile.TemporaryDirectory(prefix="bulkhead-vendor-") as folder:
            said = ask(build, release, folder)
        # the driver's version is had without a start; INVALID_VALUE is what the missing proof is answered with
        good = said == (["0 13000", "1 -1", "1"], 0, "")
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - libcudart {release} ends at the driver's proof, without a crash"
              + ("" if good else f"\n# {said}"), flush=True)
    return failed > 0


if __name__ == "__main__":
    programs.need(*(f"cudart-{release}" for release in RELEASES))
    sys.exit(main(pathlib.Path(sys.argv[1])))
