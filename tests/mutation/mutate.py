#!/usr/bin/env python3
"""Faults planted on purpose must be caught: mutate.py [--each N] CC ARCHIVE... [-- WORD...]

mutants.txt says which words of which source are replaced by what (`in` again: and of another), and which
tests must then fail.  How a source is laid out is no matter.  Only those sources are compiled anew, in a folder of their own, and linked before the
archives of the build, so that they stand in for the right ones; the tree is not touched.
First each test must pass with nothing planted.  With WORDs only mutants whose names
contain one are tried, with --each N every Nth, those that `make test` has time for.
"""
import concurrent.futures
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g0", "-w", "-fno-strict-aliasing",
         '-DBULKHEAD_VERSION="mutant"', '-DBH_VERSION="mutant"', *(f"-I{os.path.join(ROOT, folder)}" for folder in (".", "src", "include"))]
LIBRARIES = ["-lcmocka", "-lsqlite3", "-lcrypto", "-ljansson", "-lyaml", "-lz", "-lm", "-pthread"]
SECONDS = 90 * float(os.environ.get("BULKHEAD_TEST_SLOW", "1"))
# Beside its own source; arguments that keep it short.
ALSO = {"api/request/auth": ["src/api/fixture_test.c"], "api/metrics/metrics": ["src/api/fixture_test.c"], "api/audit/refused_request": ["src/api/fixture_test.c"], "crash/points": ["tests/crash/disk.c"],
        "evidence/optimum": ["tests/evidence/optimum.c"],
        "evidence/snapshot": ["tests/evidence/play.c"]}
ARGUMENTS = {"api/metrics/metrics": [os.path.join(ROOT, "src/api/metrics/metrics_golden.txt")], "crash/points": ["150", "1"],
             "engine/step/history": ["6000", "1"], "evidence/optimum": ["2500", "1"],
             "evidence/snapshot": ["1500", "1"]}
# Tests of the shim in a sandbox (tests/shim/sandbox.h), which needs root: all of the shim is in them, and
# the driver that answers at once is beside its archive.
SANDBOXED = {"shim/cap": ["tests/shim/ways.c"], "shim/gate": [], "shim/managed": [], "shim/oracle": []}
# Tests of the node with real sandboxes, which need root: what is planted is in a bulkhead-node of its
# own, beside the build's other programs.  With what the node is linked, and which of its tests.
NODE = ["src/node/session/node_main.c"]
NODED = {"node/session/hostile": ["src/node/session/node_fixture_test.c"]}
# The same of programs that play a whole site; each takes too long for --each.
PLAYED = {"e2e/hostile": ["tests/hostile/hostile.py", "--seconds", "20", "--seed", "1"]}
BESIDE = ("keeper", "gpu", "init", "probe", "scrub", "share", "stream", "unpack", "checkpoint")
# scenario/NAME is played by bulkhead-replay, which is linked for the purpose.
REPLAY = "src/replay/main.c"


def anchor(words):
    """A pattern of these words with any space between them, so that a new layout moves no fault."""
    return re.compile(r"\s*".join(re.escape(word) for word in re.findall(r"\w+|[^\w\s]", words)))


class Mutant:
    def __init__(self, name):
        self.name, self.tests, self.only = name, [], ""
        self.edits = []  # [source, text, its replacement]

    def planted(self):
        """The sources with the fault in them, and what is wrong with the table, or ""."""
        texts = []
        for path, old, new in self.edits:
            with open(os.path.join(ROOT, path), encoding="utf-8") as source:
                text = source.read()
            found = list(anchor(old).finditer(text))
            if len(found) != 1:
                return [], (f"the words to replace are {len(found)} times in {path}: "
                            "bring tests/mutation/mutants.txt up to date")
            texts.append(text[:found[0].start()] + new + text[found[0].end():])
        return texts, ""


def read_mutants():
    mutants = []
    with open(os.path.join(HERE, "mutants.txt"), encoding="utf-8") as lines:
        for line in lines:
            word, _, rest = line.strip().partition(" ")
            if line.startswith("-"):
                mutants[-1].edits[-1][1] += line[1:]
            elif line.startswith("+"):
                mutants[-1].edits[-1][2] += line[1:]
            elif word == "mutant":
                mutants.append(Mutant(rest.strip()))
            elif word == "in":
                mutants[-1].edits.append([rest.strip(), "", ""])
            elif word == "caught-by":
                mutants[-1].tests = rest.split()
            elif word == "only":
                mutants[-1].only = rest.strip()
            elif word and not word.startswith("#"):
                sys.exit(f"mutants.txt: cannot read {line.strip()!r}")
    return mutants


def arguments_of(test):
    folder, _, name = test.rpartition("/")
    if folder == "scenario":
        return ["scenario", os.path.join(ROOT, "tests", folder, name + ".bh")]
    return ARGUMENTS.get(test, [])


def source_of(test):
    folder, _, name = test.rpartition("/")
    if folder == "scenario":
        return REPLAY
    beside = os.path.isfile(os.path.join(ROOT, "src", folder, name + "_test.c"))
    return f"{'src' if beside else 'tests'}/{folder}/{name}_test.c"


class Workshop:
    def __init__(self, folder, cc, archives):
        self.folder, self.cc, self.archives = folder, cc, archives

    def compile(self, path, name):
        made = os.path.join(self.folder, name + ".o")
        subprocess.run([*self.cc, *FLAGS, "-c", path, "-o", made], check=True)
        return made

    def compile_test(self, test):
        return [] if test in PLAYED else [self.compile(os.path.join(ROOT, path), path.replace("/", "_"))
                for path in [source_of(test), *ALSO.get(test, []), *NODED.get(test, []), *(SANDBOXED[test] + ["tests/shim/sandbox.c"] if test in SANDBOXED else [])]]

    def shim(self):
        return next(archive for archive in self.archives if archive.endswith("/libbh_shim.a"))

    def words(self, test):
        """What the test is linked with, and its arguments."""
        if not test.startswith("shim/"): # some of its names are the node's, too
            return [], arguments_of(test)
        null = [os.path.join(os.path.dirname(self.shim()), "../../sim/libnullcuda.so"), "-"] if test in SANDBOXED else []
        return (["-Wl,-z,muldefs", "-Wl,--whole-archive", self.shim(), "-Wl,--no-whole-archive"],
                [*null, *arguments_of(test)])

    def make_node(self, name, planted):
        """A bulkhead-node with what is planted in a folder of its own; its arguments for a test."""
        build = os.path.dirname(os.path.dirname(next(a for a in self.archives if a.endswith("/libbh_node.a"))))
        folder = os.path.join(self.folder, name + "_node")
        os.makedirs(folder, exist_ok=True)
        for program in BESIDE:
            with contextlib.suppress(FileExistsError):
                os.symlink(f"{build}/node/bulkhead-{program}", f"{folder}/bulkhead-{program}")
        main = [self.compile(os.path.join(ROOT, path), f"{name}_main") for path in NODE]
        self.link([*planted, *main], f"{folder}/bulkhead-node")
        return [f"{folder}/bulkhead-node", f"{build}/../sim/bulkhead-simctl", f"{build}/../sim/libnvidia-ml.so.1"]

    def link(self, objects, program, words=()):
        subprocess.run([*self.cc, *objects, *words, "-Wl,--as-needed", "-Wl,--start-group", *self.archives,
                        "-Wl,--end-group", *LIBRARIES, "-o", program], check=True)

    def fails(self, test, objects, name, planted=(), only=""):
        """How the test ends with these objects: "" when it passes.  Raises when there is no
        program: that is not how a fault is caught."""
        program = os.path.join(self.folder, f"{name}_{test.replace('/', '_')}")
        words, given = self.words(test)
        if test in PLAYED:
            return self.ends_ill(self.played(test, name, planted))
        if test in NODED:
            given = [*self.make_node(name, planted), only]
        else:
            objects = [*planted, *objects]
        self.link(objects, program, words)
        try:
            return self.ends_ill([program, *given])
        finally:
            os.unlink(program)

    def played(self, test, name, planted):
        """The command of a program that plays a site of the build, with this node."""
        node = self.make_node(name, planted)[0]
        build = os.path.dirname(os.path.dirname(os.path.dirname(next(a for a in self.archives if a.endswith("/libbh_node.a")))))
        return [sys.executable, os.path.join(ROOT, PLAYED[test][0]), build, *PLAYED[test][1:], "--node", node]

    def ends_ill(self, command):
        run = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            run.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return "it does not end"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)  # what it started, too
            run.wait()
        return f"status {run.returncode}" if run.returncode else ""

    def is_sound(self, test, objects):
        """What is wrong with the test when nothing is planted, or ""."""
        try:
            return self.fails(test, objects, "sound")
        except subprocess.CalledProcessError:
            return "it cannot be linked"

    def attempt(self, mutant, tests):
        """What is wrong, or "": every test of the mutant failed."""
        texts, trouble = mutant.planted()
        if trouble:
            return trouble
        planted = []
        try:
            for number, text in enumerate(texts):
                path = os.path.join(self.folder, f"{mutant.name}_{number}.c")
                with open(path, "w", encoding="utf-8") as source:
                    source.write(text)
                planted.append(self.compile(path, f"{mutant.name}_{number}"))
            blind = [test for test in mutant.tests
                     if not self.fails(test, tests[test], mutant.name, planted, mutant.only)]
        except subprocess.CalledProcessError:
            return "it cannot be compiled and linked"
        return f"it lives: {', '.join(blind)} passed" if blind else ""


def main():
    arguments, _, words = " ".join(sys.argv[1:]).partition(" -- ")
    arguments = arguments.split()
    archives = [os.path.abspath(word) for word in arguments if word.endswith(".a")]
    each = int(arguments.pop(1)) if arguments[0] == "--each" else 1
    cc = [word for word in arguments if not word.endswith(".a") and word != "--each"]
    mutants = [m for m in read_mutants()
               if (not words or any(word in m.name for word in words.split()))
               and (each == 1 or not PLAYED.keys() & set(m.tests))][::each]
    if os.geteuid() != 0:
        mutants = [m for m in mutants if not (SANDBOXED.keys() | NODED.keys() | PLAYED.keys()) & set(m.tests)]
    names = sorted({test for mutant in mutants for test in mutant.tests})
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bh-mutation-") as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        shop = Workshop(folder, cc, archives)
        tests = dict(zip(names, pool.map(shop.compile_test, names)))
        sound = pool.map(lambda test: shop.is_sound(test, tests[test]), names)
        results = pool.map(lambda mutant: shop.attempt(mutant, tests), mutants)
        stale = "; ".join(f"{m.name}: {m.planted()[1]}" for m in read_mutants() if m.planted()[1])
        report = Report(len(names) + len(mutants) + 1)
        for test, trouble in zip(names, sound):
            report.line(not trouble, f"{test} passes with nothing planted", trouble)
        for mutant, trouble in zip(mutants, results):
            report.line(not trouble, f"{mutant.name} is caught by {' '.join(mutant.tests)}", trouble)
        report.line(not stale, "each fault of the table can be planted", stale)
    print(f"# {len(mutants)} mutants in {time.monotonic() - began:.1f} s")
    sys.exit(report.close())


if __name__ == "__main__":
    main()
