#!/usr/bin/env python3
"""The CUDA runtime of several releases on the simulated driver: how far its start comes.

It does not start.  After what tests/shim/startup_test.c plays it asks for a table by which NVIDIA's driver
proves that it is NVIDIA's; there is none here, and none is imitated.  This says when that changes: a release
that starts, or one that asks for something else first.  Where the machine has a toolkit its runtime is tried
as well, shared and linked into a program that its nvcc compiles.

usage: runtime.py BUILD.  Prints TAP."""
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import programs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report, skip_all

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


# As a program is that was linked with the runtime: a kernel, and the first calls.
LINKED = """
#include <cstdio>
__global__ void nothing(float *x) { *x = 1; }
int main()
{
    int version = -1, count = -1;
    printf("%d", cudaDriverGetVersion(&version));
    printf(" %d\\n", version);
    printf("%d", cudaGetDeviceCount(&count));
    printf(" %d\\n", count);
    nothing<<<1, 1>>>(NULL);
    return cudaGetLastError() == cudaSuccess;
}
"""


def shared_runtimes():
    """name -> library: those that were fetched, and the machine's own."""
    found = {}
    for release in RELEASES:
        paths = (programs.FOLDER / f"cudart-{release}").rglob("libcudart.so.*")
        found[f"libcudart {release}"] = next(path for path in sorted(paths) if not path.is_symlink())
    for path in glob.glob("/usr/local/cuda-*/lib64/libcudart.so"):
        found[f"libcudart of {path.split('/')[3]}"] = path
    return found


class Server:
    """A simulated one, whose libcuda.so.1 programs find."""

    def __init__(self, build, folder):
        self.env = {**os.environ, "BULKHEAD_SIM_STATE": f"{folder}/sim", "LD_LIBRARY_PATH": str(folder)}
        shutil.copy(build / "sim/libcuda.so.1", folder)
        subprocess.run([build / "sim/bulkhead-simctl", "init", "1x H100-80GB"], env=self.env, check=True,
                       capture_output=True)

    def ask(self, *command):
        """What it says, and how it ended."""
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout.splitlines(), done.returncode, done.stderr


def asked(server, folder):
    """(name, what it said and how it ended, what is wanted) of each; the driver's version is had without a start,
    and INVALID_VALUE is what the missing proof is answered with."""
    for name, library in shared_runtimes().items():
        yield name, server.ask("/usr/bin/python3", "-c", ASK, library, PROOF), (["0 13000", "1 -1", "1"], 0, "")
    for nvcc in glob.glob("/usr/local/cuda-*/bin/nvcc"):
        source, program = pathlib.Path(folder) / "linked.cu", f"{folder}/linked"
        source.write_text(LINKED)
        subprocess.run([nvcc, "-cudart", "static", "-o", program, source], check=True, capture_output=True)
        yield f"linked with {nvcc.split('/')[3]}", server.ask(program), (["0 13000", "1 -1"], 0, "")


def main(build):
    if os.geteuid() != 0:
        skip_all("not root", 77)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="bulkhead-vendor-") as folder:
        for name, said, wanted in asked(Server(build, folder), folder):
            report.line(said == wanted, f"{name} ends at the driver's proof, without a crash", said)
    return report.close()


if __name__ == "__main__":
    programs.need(*(f"cudart-{release}" for release in RELEASES))
    sys.exit(main(pathlib.Path(sys.argv[1])))
