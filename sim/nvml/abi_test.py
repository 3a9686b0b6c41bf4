#!/usr/bin/env python3
"""Compare the simulated library with the tables, and the tables with NVIDIA's header.

usage: abi_test.py LIBRARY.  The second half needs ../shared/data beside the
source tree and is skipped, by name, where that is missing.  Prints TAP."""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FACTS = os.path.join(os.path.dirname(ROOT), "shared", "data")
ALSO = {"nvmlErrorString", "nvmlInternalGetExportTable", "nvmlGetBlacklistDeviceCount",
        "nvmlGetBlacklistDeviceInfoByIndex"}
PROFILE_COLUMNS = ("name", "nvml_profile_enum", "driver_profile_id", "compute_slices", "memory_units",
                   "placements", "max_instances", "memory_mib", "sm_count", "decoders", "encoders",
                   "copy_engines", "jpeg", "ofa")


class Skip(Exception):
    pass


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def facts(name):
    path = os.path.join(FACTS, name)
    if not os.path.exists(path):
        raise Skip(f"no {path}")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def equal(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: {got!r}, want {want!r}")


def table_names():
    return re.findall(r"^NVML_(?:CALL|STUB)\((\w+)", read("tables", "nvml.tbl"), re.M)


def test_exports(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    names = {line.split()[-1] for line in out.stdout.splitlines()}
    equal("exported, not in the table", sorted(names - set(table_names()) - ALSO), [])
    equal("in the table, not exported", sorted((set(table_names()) | ALSO) - names), [])


def test_imports(library):
    """A tenant's process must not be ended, spoken for or changed by it.  (sigaction: for the time of a look;
    sim/meter holds that the process's own is back after it.)"""
    out = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True)
    names = {line.split()[-1].split("@")[0] for line in out.stdout.splitlines()}
    banned = {"exit", "_exit", "abort", "printf", "fprintf", "puts", "stderr", "stdout", "umask", "setenv",
              "putenv", "signal", "chdir", "fork", "system", "__printf_chk", "__fprintf_chk",
              "atexit", "pthread_atfork", "setlocale"}
    equal("imported", sorted(names & banned), [])


def test_needs(library):
    out = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True)
    needed = re.findall(r"NEEDED.*\[(.*)\]", out.stdout)
    equal("libraries beside libc", [n for n in needed if not re.match(r"(libc|ld-linux.*|lib[a-z]*san)\.so", n)], [])
    equal("soname", re.findall(r"SONAME.*\[(.*)\]", out.stdout), ["libnvidia-ml.so.1"])


def test_names(_library):
    names = table_names()
    equal("named twice", sorted({n for n in names if names.count(n) > 1}), [])
    equal("names", sorted(names), sorted(facts("nvml_abi.json")["functions"]))


def normal(text):
    return re.sub(r"\s+", "", text) or "void"


def test_prototypes(_library):
    known = facts("nvml_abi.json")["functions"]
    for name, params in re.findall(r"^NVML_CALL\((\w+),\s*\((.*)\)\)$", read("tables", "nvml.tbl"), re.M):
        equal(name, normal(params), normal(known[name]))


def test_structs(_library):
    known = facts("nvml_abi.json")["structs"]
    text = read("include", "bulkhead", "nvml_structs.h") + read("include", "bulkhead", "nvml_instances.h")
    sizes = dict(re.findall(r"^NVML_STRUCT_SIZE\((\w+), (\d+)\);", text, re.M))
    words = dict(re.findall(r"NVML_STRUCT_WORD\((\w+), (\d+)\)$", text, re.M))
    assert len(sizes) > 40, sizes
    for name, size in sizes.items():
        equal(f"size of {name}", int(size), known[name]["size"])
        version = known[name].get("version")
        if version is not None:
            equal(f"version of {name}", int(words[name]), version >> 24)


def test_constants(_library):
    known = facts("nvml_abi.json")
    text = read("include", "bulkhead", "nvml_codes.h")
    for body, name in re.findall(r"typedef enum \{(.*?)\} (\w+);", text, re.S):
        values = {k: int(v, 0) for k, v in re.findall(r"(\w+) = (-?\w+)", body)}
        equal(name, values, known["enums"][name])
    for name, value in re.findall(r"#define (NVML_FI_\w+) (\d+)", read("include", "bulkhead", "nvml_abi.h")):
        equal(name, int(value), int(known["defines"][name], 0))


def rows(kind):
    text = re.sub(r"/\*.*?\*/", "", read("tables", "mig.tbl"), flags=re.S)
    for line in re.findall(rf"^{kind}\((.*)\)$", text, re.M):
        yield [field.strip().strip('"') for field in line.split(",")]


def test_models(_library):
    known = {gpu["short"]: gpu for gpu in facts("mig_profiles.json")["gpus"]}
    for row in rows("MIG_MODEL"):
        gpu = known[row[1]]
        equal(f"{row[1]} pci", f"0x{int(row[3], 0):04X}" in gpu["pci_device_ids"], True)
        equal(f"{row[1]} cc", f"{row[5]}.{row[6]}", gpu["compute_capability"])
        equal(f"{row[1]} SMs, units, slices", [int(row[7]), int(row[8]), int(row[9])],
              [gpu["sm_total"], gpu["memory_units"], gpu["compute_slices"]])
        equal(f"{row[1]} driver", row[12], gpu["min_driver"])


def test_profiles(_library):
    models = {row[0]: row[1] for row in rows("MIG_MODEL")}
    known = {gpu["short"]: gpu for gpu in facts("mig_profiles.json")["gpus"]}
    seen = {short: [] for short in models.values()}
    for row in rows("MIG_PROFILE"):
        short = models[row[0]]
        profile = {p["name"]: p for p in known[short]["profiles"]}[row[1]]
        starts = [s for s in range(32) if int(row[6], 0) >> s & 1]
        mine = [row[1], int(row[2]), int(row[3]), int(row[4]), int(row[5]), [[s, int(row[5])] for s in starts]]
        mine += [int(field) for field in row[7:15]]
        theirs = [profile[column] for column in PROFILE_COLUMNS]
        for column, got, want in zip(PROFILE_COLUMNS, mine, theirs):
            if want is not None:
                equal(f"{short} {row[1]} {column}", got, want)
        seen[short].append(row[1])
    for short, names in seen.items():
        equal(f"profiles of {short}", sorted(names), sorted(p["name"] for p in known[short]["profiles"]))


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}")
    for number, (name, test) in enumerate(tests, 1):
        try:
            test(sys.argv[1])
            print(f"ok {number} - {name}")
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}")
        except Exception as error:  # one broken test must not hide the others
            print(f"not ok {number} - {name}\n# {error}")
            failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
