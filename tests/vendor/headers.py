#!/usr/bin/env python3
"""include/bulkhead/cuda_*.h, nvml_*.h and the tables of names say what NVIDIA's own headers and libraries do.

usage: headers.py COMPILER...  Prints TAP."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import programs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report  # noqa: E402

sys.path.insert(0, str(programs.ROOT / "sim/cuda"))
import abi_test as abi  # noqa: E402

HEADERS, DRIVERS = ("11.8", "12.4"), ("535", "550")
INCLUDE = ["-I", str(programs.ROOT / "include"), "-I", str(programs.ROOT)]
# Ours: sizes with other names, and words of versions, which are tested by abi_test.py.
OURS_ALONE = re.compile(r"_BUFFER_SIZE$|_BUFFER_V2_SIZE$|_V2_BUFFER_SIZE$|NVML_INSTANCE_ID_NONE|_WORD$|STRUCT_SIZE")
# Those that grow: how many there are of something, and the struct that has room for each metric.
GROWN = re.compile(r"_COUNT$|^(sizeof )?nvmlGpmMetricsGet_t(.metrics)?$")


def nvml_text():
    text = "".join((programs.ROOT / "include/bulkhead" / name).read_text()
                   for name in ("nvml_codes.h", "nvml_structs.h", "nvml_instances.h", "nvml_abi.h"))
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def nvml_structs(text):
    for body, name in re.findall(r"typedef struct(?: \w+)? \{\n(.*?)\n\} (\w+);", text, re.S):
        flat = re.sub(r"(struct|union) \{.*?\}( \w+)?(\[\w+\])?;", "", body, flags=re.S)
        members = [re.sub(r"\[.*", "", part).split()[-1].lstrip("*")
                   for declaration in flat.split(";") if declaration.strip() for part in declaration.split(",")]
        yield name, members


def compare(compiler, include, header, names, shapes, define=()):
    """(what differs, how many were compared, what the vendor's header has under no such name)."""
    with tempfile.TemporaryDirectory() as folder:
        ours = abi.run(compiler, INCLUDE, abi.program(names, shapes, include, False), folder, "ours")
        theirs = abi.run(compiler, list(define), abi.program(names, shapes, header, True), folder, "theirs")
    differ = [f"{name}: {ours[name]} | {theirs[name]}" for name in ours
              if theirs.get(name, ours[name]) != ours[name] and not GROWN.search(name)]
    return differ, len(theirs), sorted(set(ours) - set(theirs))


def nvml_parameters(header):
    """Calls of the table with another number of parameters than the vendor's of that name."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.S)
    theirs = {name: abi.count(parameters) for name, parameters in
              re.findall(r"nvmlReturn_t DECLDIR (nvml\w+)\s*\(([^;]*)\);", text)}
    rows = re.findall(r"^NVML_CALL\((\w+),\s*\((.*?)\)\)$", (programs.ROOT / "tables/nvml.tbl").read_text(), re.M | re.S)
    bad = [f"{name}: {abi.count(parameters)} and {theirs[name]}" for name, parameters in rows
           if name in theirs and theirs[name] != abi.count(parameters)]
    return bad, sum(name in theirs for name, _ in rows)


def exported(library, prefix):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    return {name for name in names if re.match(prefix, name)}


def table(name, macro):
    return set(re.findall(rf"^{macro}\((\w+)", (programs.ROOT / "tables" / name).read_text(), re.M))


def results(compiler):
    text = nvml_text()
    names = sorted(set(re.findall(r"\b(NVML_\w+|nvmlEvent\w+) = ", text)) |
                   {name for name in re.findall(r"#define ((?:NVML|nvmlEvent)\w+) ", text) if not OURS_ALONE.search(name)})
    for version in HEADERS:
        folder = programs.FOLDER / f"headers-{version}/usr/include"
        done = subprocess.run([sys.executable, programs.ROOT / "sim/cuda/abi_test.py", "--header", folder / "cuda.h",
                               *compiler], capture_output=True, text=True, check=False)
        yield f"cuda.h {version}", done.returncode == 0, done.stdout + done.stderr
        differ, known, lacking = compare(compiler, "bulkhead/nvml_abi.h", str(folder / "nvml.h"), names,
                                         list(nvml_structs(text)))
        yield f"nvml.h {version}: constants, sizes and offsets", not differ and known > 350, differ or known
        print(f"# {known} compared, {len(lacking)} not in it")
        if os.environ.get("VERBOSE"):
            print("# " + " ".join(lacking))
        bad, known = nvml_parameters(folder / "nvml.h")
        yield f"nvml.h {version}: as many parameters", not bad and known > 120, bad or known
    ours = {"cuda": table("cuda_names.tbl", "CUDA_NAME"),
            "nvidia-ml": table("nvml.tbl", "NVML_(?:CALL|STUB)") | table("nvml_names.tbl", "NVML_NAME")}
    for version in DRIVERS:
        for library, prefix in (("cuda", "cu[A-Z]"), ("nvidia-ml", "nvml[A-Z]")):
            path = next((programs.FOLDER / f"driver-{version}").rglob(f"lib{library}.so.[0-9][0-9][0-9]*"))
            lacking = sorted(exported(path, prefix) - ours[library])
            yield f"lib{library}.so.1 {version} exports nothing that ours lacks", not lacking, lacking


def main(compiler):
    return Report().rows(results(compiler)).close()


if __name__ == "__main__":
    programs.need(*(f"headers-{version}" for version in HEADERS), *(f"driver-{version}" for version in DRIVERS))
    sys.exit(main(sys.argv[1:] or ["cc"]))
