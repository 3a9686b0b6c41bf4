#!/usr/bin/env python3
"""What the shim's libcuda.so.1, or the view's libnvidia-ml.so.1, exports, needs and does when it is loaded.

usage: exports_test.py LIBRARY.  Prints TAP."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RUDE = {"abort", "exit", "_exit", "quick_exit", "umask", "setenv", "putenv", "unsetenv", "printf", "fprintf",
        "puts", "fputs", "fopen", "perror", "syslog", "signal", "sigaction", "malloc", "calloc", "realloc", "free",
        "pthread_mutex_lock", "pthread_rwlock_wrlock", "sem_wait", "getenv", "secure_getenv", "system",
        "gettimeofday", "time", "kill", "raise"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def table(name, macro):
    with open(os.path.join(ROOT, "tables", name), encoding="utf-8") as file:
        return re.findall(rf"^{macro}\((\w+)", file.read(), re.M)


def names(library, *options):
    lines = output("nm", "-D", *options, library).splitlines()
    return [line.split()[-1].split("@")[0] for line in lines]


def cuda_rows():
    hooks = table("hooks.tbl", "(?:HOOK|SUBMIT)")
    calls = sum((table(f, "CUDA_CALL") for f in ("cuda.tbl", "cuda_context.tbl", "cuda_memory.tbl", "cuda_work.tbl")), [])
    return [
        ("a hook once", len(hooks) == len(set(hooks)), hooks),
        ("a hook has its row", not set(hooks) - set(calls), sorted(set(hooks) - set(calls))),
    ]


def nvml_rows():
    """The table's rows are calls, each once, and what changes a GPU is among them."""
    calls = set(nvml_names())
    rows = table("nvml_view.tbl", "VIEW_(?:OWN|REFUSED|HIDDEN)")
    refused = set(table("nvml_view.tbl", "VIEW_REFUSED"))
    changes = {name for name in calls if re.match("nvml(Device|GpuInstance|System|Unit|VgpuInstance)?(Set|Reset|Clear)", name)}
    changes |= {name for name in calls if re.search("Instance(Destroy|Create)|Create(Gpu|Compute)Instance|RemoveGpu|DrainState$", name)
                and not name.startswith("nvmlDeviceQuery")}
    return [
        ("an answer once", len(rows) == len(set(rows)), rows),
        ("of a call that there is", not set(rows) - calls, sorted(set(rows) - calls)),
        ("what changes a GPU is refused", not changes - refused, sorted(changes - refused)),
    ]


def nvml_names():
    return table("nvml.tbl", "NVML_(?:CALL|STUB)") + table("nvml_names.tbl", "NVML_NAME")


KINDS = {"libcuda.so.1": (lambda: table("cuda_names.tbl", "CUDA_NAME"), cuda_rows),
         "libnvidia-ml.so.1": (nvml_names, nvml_rows)}


def main(library):
    soname = os.path.basename(library)
    of_kind, rows = KINDS[soname]
    wanted = sorted(of_kind())
    exported = sorted(n for n in names(library, "--defined-only") if not n.startswith("__"))
    undefined = set(names(library, "--undefined-only"))
    dynamic = output("readelf", "-d", library)
    sections = output("readelf", "-SW", library)
    sanitized = "lib" in "".join(re.findall(r"NEEDED.*\[(lib[a-z]*san)", dynamic))
    needed = [n for n in re.findall(r"NEEDED.*\[(.*)\]", dynamic) if not re.match(r"(libc|libdl|libpthread|ld-linux.*|lib[a-z]*san)\.so", n)]
    glibc = sorted({v for v in re.findall(r"GLIBC_(\d+\.\d+)", output("readelf", "-V", library)) if float(v.split(".")[1]) > 17})
    init = re.search(r"\.init_array\s+INIT_ARRAY\s+\w+ \w+ (\w+)", sections)
    results = [
        ("exports", exported == wanted, sorted(set(exported) ^ set(wanted))),
        ("soname", re.findall(r"SONAME.*\[(.*)\]", dynamic) == [soname], dynamic),
        ("libraries beside libc", not needed, needed),
        ("any glibc since 2.17", sanitized or not glibc, glibc),
        ("bound at load, to itself first", sanitized or ("BIND_NOW" in dynamic and "SYMBOLIC" in dynamic), dynamic),
        ("stays once it is there", soname != "libcuda.so.1" or "NODELETE" in dynamic, dynamic),
        ("nothing rude", sanitized or not undefined & RUDE, sorted(undefined & RUDE)),
        ("no thread-local storage that is allocated when touched", "__tls_get_addr" not in undefined, undefined),
        # frame_dummy of the compiler's own start files is the only one
        ("no constructor", sanitized or (init is not None and int(init[1], 16) == 8), sections),
    ] + rows()
    return Report(len(results)).rows(results).close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
