#!/usr/bin/env python3
"""include/bulkhead/cuda_*.h says what NVIDIA's cuda.h says: sizes and offsets of structs,
values of constants, and that calls have as many parameters.

usage: cuda_abi_test.py [--header CUDA.H] COMPILER...  Prints TAP; skips where there is no cuda.h.  A header
that is older than CUDA 13 has not got all: what it lacks is counted."""
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
HEADERS = ["cuda_codes.h", "cuda_results.h", "cuda_types.h", "cuda_work.h"]
TABLES = ["cuda.tbl", "cuda_context.tbl", "cuda_memory.tbl", "cuda_work.tbl"]
VENDOR_NAME = {"CUDA_KERNEL_NODE_PARAMS": "CUDA_KERNEL_NODE_PARAMS_v2"}
# nested structs, and room that the vendor may name otherwise
SKIPPED_MEMBERS = {"pad", "allocFlags", "handle", "reserved0", "reserved1", "reserved2", "reserved"}


def text_of(name):
    with open(os.path.join(ROOT, "include", "bulkhead", name), encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)


def constants(text):
    """Names in enums."""
    for body in re.findall(r"enum\s*\w*\s*\{(.*?)\}", text, re.S):
        yield from re.findall(r"(\w+)\s*=", body)


def structs(text):
    """(name, members) of each struct with a body; members of nested ones are left out."""
    for body, name in re.findall(r"typedef struct \w+ \{\n(.*?)\n\} (\w+);", text, re.S):
        flat = re.sub(r"(struct|union) \{.*\n    \}( \w+)?;", r"", body, flags=re.S)
        members = []
        for declaration in re.findall(r"^    ([^{};]+);", flat, re.M):
            declaration = re.sub(r"\[[^\]]*\]", "", declaration)
            members += [re.findall(r"(\w+)\s*$", part.strip())[0] for part in declaration.split(",")]
        yield name, [member for member in members if member not in SKIPPED_MEMBERS]


def program(names, shapes, include, vendor):
    lines = [f'#include "{include}"', "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    lines += [f'printf("{name} %lld\\n", (long long)({name}));' for name in names]
    for name, members in shapes:
        real = VENDOR_NAME.get(name, name) if vendor else name
        lines.append(f'printf("sizeof {name} %zu\\n", sizeof({real}));')
        lines += [f'printf("{name}.{m} %zu %zu\\n", offsetof({real}, {m}), sizeof((({real} *)0)->{m}));' for m in members]
    return "\n".join(lines + ["return 0; }"]) + "\n"


def run(compiler, flags, source, folder, name):
    """What the program prints, as {word: rest}, without its lines that the header has nothing for."""
    path = os.path.join(folder, name + ".c")
    lines = source.splitlines()
    for _ in range(9):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        done = subprocess.run([*compiler, "-w", *flags, path, "-o", path[:-2]], check=False,
                              capture_output=True, text=True)
        lacking = {int(at) for at in re.findall(rf"{re.escape(path)}:(\d+):\d+: error:", done.stderr)}
        if done.returncode == 0:
            break
        assert lacking, done.stderr
        lines = ["" if at in lacking else line for at, line in enumerate(lines, 1)]
    out = subprocess.run([path[:-2]], check=True, capture_output=True, text=True).stdout
    return dict(re.match(r"((?:sizeof )?\S+) (.*)", line).groups() for line in out.splitlines())


def signatures(compiler, header, folder):
    """Calls that have another number of parameters than the vendor's of that name, and how
    many of the vendor's were found.  Types are spelt differently: they are not compared."""
    source = f'#define __CUDA_API_VERSION_INTERNAL\n#include "{header}"\n'
    path = os.path.join(folder, "names.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    text = subprocess.run([*compiler, "-E", "-P", path], check=True, capture_output=True, text=True).stdout
    vendor = {}
    for name, parameters in re.findall(r"CUresult\s+(cu\w+)\s*\(((?:[^()]|\([^()]*\))*)\)\s*;", text):
        vendor.setdefault(name, count(parameters))
    bad = []
    for table in TABLES:
        with open(os.path.join(ROOT, "tables", table), encoding="utf-8") as file:
            rows = re.findall(r"^CUDA_CALL\((\w+), \w+, \d+, \((.*)\)\)$", file.read(), re.M)
        bad += [f"{name}: {count(parameters)} and {vendor[name]}" for name, parameters in rows
                if name in vendor and vendor[name] != count(parameters)]
    return bad, len(vendor)


def count(parameters):
    parameters = parameters.strip()
    return 0 if parameters in ("", "void") else parameters.count(",") + 1


def main(compiler):
    if compiler[0] == "--header":
        found, compiler = [compiler[1]], compiler[2:]
    else:
        found = sorted(glob.glob("/usr/local/cuda*/include/cuda.h"))
    if not found:
        print("1..0 # SKIP no /usr/local/cuda*/include/cuda.h: nothing to compare with")
        return 77
    header = found[-1]
    text = "\n".join(text_of(name) for name in HEADERS)
    names = sorted(set(constants(text)))
    shapes = [(name, members) for name, members in structs(text)]
    with tempfile.TemporaryDirectory() as folder:
        define = ["-D__CUDA_API_VERSION_INTERNAL"]
        ours = run(compiler, ["-I", os.path.join(ROOT, "include"), "-I", ROOT],
                   program(names, shapes, "bulkhead/cuda_work.h", False), folder, "ours")
        theirs = run(compiler, define, program(names, shapes, header, True), folder, "theirs")
        differ = [f"{name}: {ours[name]} | {theirs[name]}" for name in ours if theirs.get(name, ours[name]) != ours[name]]
        lacking = [name for name in ours if name not in theirs]
        bad, known = signatures(compiler, header, folder)
    whole = "/usr/local/cuda" in header
    results = [("constants, sizes and offsets", not differ and not (whole and lacking), differ + lacking * whole),
               ("as many parameters", not bad and known > 300, bad or known)]
    print(f"# {len(ours)} compared with {header}, which lacks {len(lacking)}")
    print(f"1..{len(results)}")
    for number, (name, good, why) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}" + ("" if good else f"\n# {why}"))
    return not all(good for _, good, _ in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["cc"]))
