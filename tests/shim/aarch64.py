#!/usr/bin/env python3
"""The CUDA shim built for aarch64 and run there by qemu's user emulation, in the sandbox that the
other tests of odd programs have.  Needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and
qemu-user; skips by name without.

    aarch64.py ODD_TEST SOURCE_ROOT SHIM_SOURCE... -- NVML_SOURCE... -- DRIVER_SOURCE..."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import skip_all

COMPILER, EMULATOR, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
COMMON = ["-std=gnu17", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra",
          "-Wno-unused-parameter", "-Werror"]


def library(path, sources, root, *words):
    """As src/shim/meson.build makes it, with libc.h for what ends in tenants' processes."""
    includes = [f"-I{root / folder}" for folder in ("src", ".", "include")]
    subprocess.run([COMPILER, *COMMON, *includes, "-shared", "-o", path, *sources, "-Wl,-Bsymbolic",
                    *words, "-ldl", "-lpthread"], check=True)


def for_tenants(root, exports):
    return ["-ftls-model=initial-exec", "-fno-stack-protector", "-include", root / "src/shim/process/libc.h",
            f"-Wl,--version-script,{root / 'src/shim' / exports}", "-Wl,--no-undefined", "-Wl,-z,nodelete"]


def main():
    odd_test, root, *rest = sys.argv[1:]
    root = pathlib.Path(root)
    first, second = (i for i, word in enumerate(rest) if word == "--")
    for tool, package in ((COMPILER, "gcc-aarch64-linux-gnu and libc6-dev-arm64-cross"), (EMULATOR, "qemu-user")):
        if not shutil.which(tool):
            skip_all(f"needs {package}")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shim, view, driver = folder / "libcuda.so.1", folder / "libnvidia-ml.so.1", folder / "libnullcuda.so"
        library(shim, rest[:first], root, *for_tenants(root, "exports.map"))
        library(view, rest[first + 1:second], root, *for_tenants(root, "nvml/exports.map"))
        library(driver, rest[second + 1:], root, "-fvisibility=default")
        program = folder / "stranger"
        subprocess.run([COMPILER, "-O2", "-o", folder / "program", root / "tests/shim/stranger.c", "-ldl"], check=True)
        program.write_text(f"#!/bin/sh\nexec {EMULATOR} -L {ROOT} {folder / 'program'} \"$@\"\n")
        program.chmod(0o755)
        sys.exit(subprocess.run([odd_test, driver, shim, program, "-", "-", "-", "foreign"]).returncode)


if __name__ == "__main__":
    main()
