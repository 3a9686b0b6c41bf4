#!/usr/bin/env python3
"""One history, four programs: determinism.py [--two] FOLDER STEPS SEED...

The engine is compiled by gcc and by clang, each without optimisation and with all of it,
and digest_run plays the same histories with each; --two leaves it at the two that differ most,
which is what `make test` has time for.  What they print (digests every 1,000
steps, hashes of all answers, counts) must be the same to the last byte.  Programs are
kept in FOLDER by a hash of what went into them.  There is no program of 32 bits: the
ledger counts in integers of 128 bits, which such compilers do not have.
"""
import concurrent.futures
import glob
import hashlib
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report, note

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-fno-strict-aliasing",
         *(f"-I{os.path.join(ROOT, folder)}" for folder in (".", "src", "include"))]
WAYS = [(compiler, level) for compiler in ("gcc", "clang") for level in ("-O0", "-O3")]
PATTERNS = ("src/engine/**/*.c", *(f"src/base/{name}.c" for name in ("assert", "buf", "err", "num", "time", "utf8")), "tests/evidence/play.c",
            "tests/evidence/digest_run.c", *(f"src/model/{name}.c" for name in (
                "boundary", "geometry", "gpu_form", "health", "ids", "job", "period", "partition", "quantity", "share", "share_profile")))
HEADERS = ("src/base/*.h", "src/model/*.h", "src/engine/**/*.h", "tables/*.tbl",
           "tests/evidence/*.h")


def files(patterns):
    found = (path for pattern in patterns for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))
    return sorted(path for path in found if not path.endswith("_test.c"))


def key_of(command):
    """A name for the program that the command makes of today's files."""
    digest = hashlib.sha256(" ".join(command).encode())
    digest.update(subprocess.run([command[0], "--version"], capture_output=True).stdout)
    for path in files(PATTERNS + HEADERS):
        with open(path, "rb") as source:
            digest.update(path.encode() + source.read())
    return digest.hexdigest()[:16]


def build(folder, compiler, level):
    """The program, compiled if its like is not there; "" where there is no compiler."""
    if not shutil.which(compiler):
        return ""
    command = [compiler, level, *FLAGS, *files(PATTERNS)]
    program = os.path.join(folder, f"digest_run_{compiler}{level}_{key_of(command)}")
    if not os.path.exists(program):
        for old in glob.glob(os.path.join(folder, f"digest_run_{compiler}{level}_*")):
            os.unlink(old)
        subprocess.run([*command, "-o", program + ".new"], check=True)
        os.rename(program + ".new", program)
    return program


def play(program, steps, seed):
    run = subprocess.run([program, steps, seed], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def first_difference(one, other):
    lines = zip(one.splitlines(), other.splitlines())
    return next((f"{a!r} against {b!r}" for a, b in lines if a != b), "one is shorter")


def compare(seed, results):
    """What is wrong with the programs' results, or ""."""
    (first, (status, text)), *others = results
    if status != 0 or "broken" in text:
        return f"seed {seed}, {first} ended with {status}: {text[-800:]}"
    for way, result in others:
        if result != (status, text):
            return f"seed {seed}, {first} and {way}: {first_difference(text, result[1])}"
    return ""


def main():
    words = [word for word in sys.argv[1:] if word != "--two"]
    folder, steps, *seeds = words
    chosen = [WAYS[0], WAYS[-1]] if "--two" in sys.argv else WAYS
    os.makedirs(folder, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        built = list(pool.map(lambda way: build(folder, *way), chosen))
        ways = [("".join(way), program) for way, program in zip(chosen, built) if program]
        runs = {(seed, way): pool.submit(play, program, steps, seed)
                for seed in seeds for way, program in ways}
    report = Report(len(seeds))
    for compiler in ("gcc", "clang"):
        if not shutil.which(compiler):
            note(f"{compiler} is not installed: its programs are left out")
    for seed in seeds:
        results = [(way, runs[seed, way].result()) for way, _ in ways]
        if len(results) < 2:
            report.line(True, f"seed {seed}", skip="neither gcc nor clang is installed")
            continue
        trouble = compare(seed, results)
        report.line(not trouble, f"seed {seed}: {steps} steps, the same by {', '.join(way for way, _ in results)}")
        note((trouble or results[0][1][1][-800:]).splitlines()[-4:])
    sys.exit(report.close())


if __name__ == "__main__":
    main()
