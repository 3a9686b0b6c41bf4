#!/usr/bin/env python3
"""Shares of a GPU on a running site, as people see them (docs/shares.md)."""
import atexit
import json
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import sanitizer_of
from tap import contains, equal

HOLD_ON = ("sh", "-c", "ls /dev/nvidia0; trap 'exit 0' TERM; sleep 60 & wait")
SITE = tap.SITE.replace("managed: true}", "managed: true, shared: true}").replace("""skus:
""", """skus:
  - name: quarter
    grade: F
    models: [{model: H100-80GB, share: 25%, memory: 18Gi, rounding: up, mode: hard}]
    cpu: "0.1"
    memory: 64Mi
""", 1)


def apply(site, text, check=0):
    path = site.dir / "shares.yaml"
    path.write_text(text)
    return site.cli(None, "apply", "-f", str(path), check=check)


@tap.test(topology="1x H100-80GB", site=SITE)
def shared(site):
    """two projects share a GPU, a department does not join them; gpu, ps, describe and why show it"""
    first = site.submit(*HOLD_ON, tenant="acme/vision/train", sku="quarter")
    second = site.submit(*HOLD_ON, tenant="acme/vision/batch", sku="quarter")
    for job in (first, second):
        site.await_state(job, "running")
        contains("which share", site.job(job)["pieces"], "1/4:18446Mi+hard@")
        contains("describe", site.cli(None, "describe", str(job), check=0).stdout, "1/4:18446Mi+hard")
    contains("ps", site.cli(None, "ps", "-o", "wide", check=0).stdout, "1/4:18446Mi+hard")
    gpu = site.client().get("/v1/gpus")["items"][0]
    equal("mode", gpu["mode"], "shared")
    schemas = site.client().get("/openapi.json")["components"]["schemas"]
    for schema, shown in (("gpu_shown", gpu), ("gpu_piece", gpu["pieces"][0]), ("gpu_parts", gpu["used"])):
        equal(f"as documented: {schema}", [sorted(set(shown) - set(schemas[schema]["properties"])),
                                           sorted(set(schemas[schema]["required"]) - set(shown))], [[], []])
    equal("both are shares", [piece["grade"] for piece in gpu["pieces"]], ["F", "F"])
    equal("used", [gpu["used"]["compute"], gpu["used"]["memory"]], [2100, 1900])
    equal("kept back", gpu["unusable"]["memory"], 22 + 2 * 31)
    contains("table", site.cli(None, "gpu", check=0).stdout, "shared")
    contains("its grade", site.cli(None, "gpu", check=0).stdout, "grade F")
    far = site.submit(*HOLD_ON, tenant="acme/speech/asr", sku="quarter")
    site.until(lambda: site.job(far)["reason"] == "boundary", what="the reason")
    contains("why", site.cli(None, "why", str(far), check=0).stdout, "boundary")
    for job in (first, second):
        site.client().post(f"/v1/jobs/{job}/cancel")
    site.await_state(far, "running")
    apply(site, SITE.replace(", shared: true", ""))
    last = site.submit(*HOLD_ON, tenant="acme/speech/asr", sku="quarter")
    site.until(lambda: site.job(last)["reason"] == "not_shared", what="the reason")


def lines(site, job):
    return [json.loads(line) for line in site.log(job).splitlines() if line.startswith("{")]


@tap.test(topology="1x H100-80GB", site=SITE)
def enforced(site):
    """a job's CUDA programs see their share, get no more of the memory than it is, and take turns with the other"""
    if sanitizer_of(site.bin / "libcuda.so.1"):
        raise tap.Skip("burn cannot load a library that a sanitizer is in")
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
    burn = "/usr/local/bulkhead/bin/bulkhead-burn"
    fits = site.submit(burn, "--kernel", "0", "--time", "100ms", "--hold-mib", "17000",
                       tenant="acme/vision/train", sku="quarter")
    site.await_state(fits, "completed")
    over = site.submit(burn, "--kernel", "0", "--time", "100ms", "--hold-mib", "19000",
                       tenant="acme/vision/train", sku="quarter")
    site.await_state(over, "failed")
    contains("refused by its cap", site.log(over), "OUT_OF_MEMORY")
    spin = (burn, "--kernel", "2ms", "--window", "500ms", "--loops-per-ms", "1000", "--time")
    first = site.submit(*spin, "5s", tenant="acme/vision/train", sku="quarter")
    site.until(lambda: lines(site, first), what="a first window")  # it is on the GPU when the other starts
    second = site.submit(*spin, "3s", tenant="acme/vision/batch", sku="quarter")
    pair = (first, second)
    for job in pair:
        site.await_state(job, "completed")
    had = [[line["work_ns"] / (line["end_ns"] - line["start_ns"]) for line in lines(site, job) if "work_ns" in line]
           for job in pair]
    print("#", had)
    for job in had:
        assert all(share < 0.32 for share in job[1:-1]), f"more than a hard quarter: {had}"
        assert sum(job) / len(job) > 0.15, f"less than a quarter: {had}"
    around = site.submit(burn, "--kernel", "0", "--time", "4s", "--hold-mib", "20000", "--library",
                         "/run/bulkhead/driver/libcuda.so.1", tenant="acme/vision/train", sku="quarter")
    site.await_state(around, "completed")  # the grade's limit: a process can go round the shim, and is seen
    contains("seen by the node", (site.dir / "node.log").read_text(), "it has more GPU memory than it reserved")
    site.until(lambda: not list((site.dir / "run/shares").iterdir()), what="the end of their pages")


# Shows what it sees once its own process holds memory; that process ends with the job.
WATCHED = """bulkhead-burn --kernel 0 --time 60s --hold-mib %d >/dev/null &
until bulkhead-smi --json | grep -q '"pid"'; do sleep 0.05; done
bulkhead-smi; bulkhead-smi --json; echo BURN=$!; %s"""


@tap.test(topology="1x H100-80GB", site=SITE)
def seen(site):
    """bulkhead-smi in a job shows the share: its memory, its processes, and nothing of a neighbour on the GPU"""
    if sanitizer_of(site.bin / "libcuda.so.1"):
        raise tap.Skip("burn cannot load a library that a sanitizer is in")
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
    beside = site.submit("sh", "-c", WATCHED % (9000, "wait"), tenant="acme/vision/batch", sku="quarter")
    site.until(lambda: "BURN=" in site.log(beside), what="the neighbour's memory")
    job = site.submit("sh", "-c", WATCHED % (4000, "kill $!"), tenant="acme/vision/train", sku="quarter")
    site.await_state(job, "completed")
    log = site.log(job)
    contains("as people see it", log, "18446MiB")
    report, end = json.JSONDecoder().raw_decode(log[log.index("{\n"):])
    equal("one GPU", [device["memory_total_bytes"] >> 20 for device in report["devices"]], [18446])
    used = report["devices"][0]["memory_used_bytes"] >> 20
    equal("its own process", [process["pid"] for process in report["processes"]], [int(log.split("BURN=")[1].split()[0])])
    assert 4000 <= report["processes"][0]["memory_bytes"] >> 20 <= used < 5000, report
    equal("nobody knows how busy its share is", report["devices"][0]["utilization_percent"], None)
    site.client().post(f"/v1/jobs/{beside}/cancel")
    site.await_state(beside, "cancelled")


ASIDE = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-test-", dir="/srv"))  # a machine's folder of libraries
os.chmod(ASIDE, 0o755)
atexit.register(shutil.rmtree, ASIDE, ignore_errors=True)


@tap.test(topology="1x H100-80GB", site=SITE, node_conf=f"host_paths = {ASIDE}\ndriver_search = {ASIDE}\n")
def covered(site):
    """the driver's library of the machine's own file system is the shim in a job with a share, whatever its environment"""
    if sanitizer_of(site.bin / "libcuda.so.1"):
        raise tap.Skip("burn cannot load a library that a sanitizer is in")
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
    shutil.copy(site.bin / "libcuda.so.1", ASIDE / "libcuda.so.580.159.03")
    (ASIDE / "libcuda.so.1").symlink_to("libcuda.so.580.159.03")
    over = site.submit("env", "-u", "LD_LIBRARY_PATH", "/usr/local/bulkhead/bin/bulkhead-burn", "--kernel", "0", "--time", "100ms",
                       "--hold-mib", "19000", "--library", str(ASIDE / "libcuda.so.580.159.03"), tenant="acme/vision/train",
                       sku="quarter")
    site.await_state(over, "failed")
    contains("refused by its cap", site.log(over), "OUT_OF_MEMORY")


if __name__ == "__main__":
    tap.main()
