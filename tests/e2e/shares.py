#!/usr/bin/env python3
"""Shares of a GPU on a running site, as people see them (docs/shares.md)."""
import atexit
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import UNTIL_GO, sanitizer_of
from tap import contains, equal

HOLD_ON = ("sh", "-c", "ls /dev/nvidia0; trap 'exit 0' TERM; sleep 600 & wait")
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
        contains("which share", site.job(job)["partitions"], "1/4:18446Mi+hard@")
        contains("describe", site.cli(None, "describe", str(job), check=0).stdout, "1/4:18446Mi+hard")
    contains("ps", site.cli(None, "ps", "-o", "wide", check=0).stdout, "1/4:18446Mi+hard")
    gpu = site.client().get("/v1/gpus")["items"][0]
    equal("mode", gpu["mode"], "shared")
    schemas = site.client().get("/openapi.json")["components"]["schemas"]
    for schema, shown in (("gpu_shown", gpu), ("gpu_partition", gpu["partitions"][0]), ("gpu_parts", gpu["used"])):
        equal(f"as documented: {schema}", [sorted(set(shown) - set(schemas[schema]["properties"])),
                                           sorted(set(schemas[schema]["required"]) - set(shown))], [[], []])
    equal("both are shares", [piece["grade"] for piece in gpu["partitions"]], ["F", "F"])
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


def measured(site, job, family):
    """What the metrics say of a job, by name without bulkhead_job_, and kind; the family must be there."""
    rows = re.findall(rf'^bulkhead_job_(\S+?){{tenant="[^"]*",job_id="{job}"(?:,kind="(.*)")?}} (\S+)$',
                      site.cli(None, "metrics", check=0).stdout, re.M)
    shown = {f"{name} {kind}".strip(): float(value) for name, kind, value in rows if name.startswith(family.split("_")[0])}
    return shown if any(name.startswith(family) for name in shown) else None


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
    means = [sum(job) / len(job) for job in had]  # on an overloaded machine both have less than a quarter, alike
    assert min(means) > 0.02 and max(means) < 3 * min(means), f"one has the other's turns: {had}"
    around = site.submit(burn, "--kernel", "0", "--time", "600s", "--hold-mib", "20000", "--library",
                         "/run/bulkhead/driver/libcuda.so.1", tenant="acme/vision/train", sku="quarter")
    told = {"more": 1, "over_cap": 1, "round": 1}  # the grade's limit: a process can go round the shim, and is seen
    site.until(lambda: {notice["name"]: notice["count"] for notice in
                        site.client().get(f"/v1/jobs/{around}").get("notices", [])} == told, what="what its people are told")
    contains("as they read it", site.cli(None, "describe", str(around), check=0).stdout,
             "it has more GPU memory than it reserved")
    site.until(lambda: (measured(site, around, "share_driver") or {}).get("share_driver_bytes", 0) >= 20000 << 20, what="a sample")
    numbers = measured(site, around, "share_driver")
    equal("its cap", numbers["share_cap_bytes"], (18446 + 600) << 20)
    shown = site.client().get(f"/v1/jobs/{around}")["members"][0]["share"]
    equal("how it stands", [shown["cap_mib"], shown["reserved_mib"], shown["promised_permille"], shown["driver_mib"] >= 20000],
          [18446 + 600, 0, 250, True])
    equal("as documented", sorted(shown), sorted(site.client().get("/openapi.json")["components"]["schemas"]["job_share"]["properties"]))
    equal("nothing of that was reserved", [numbers["share_charged_bytes"], measured(site, around, "notices")],
          [0, {f"notices_total {name}": told.get(name, 0) for name in
               ("forged", "full", "stranger", "stuck", "more", "round", "over_cap", "throttled", "released", "stopped", "outdated",
                "uncounted", "out_of_turn", "stopped_out", "static", "unverified", "verified", "not_isolated")}])
    equal("each is a record", sorted(r["verb"] for r in site.records() if r["verb"].startswith("share.")),
          ["share.more", "share.over_cap", "share.round"])
    site.client().post(f"/v1/jobs/{around}/cancel")
    site.await_state(around, "cancelled")
    site.until(lambda: not list((site.dir / "run/shares").iterdir()), what="the end of their pages")


# Shows what it sees once its own process holds memory; that process ends with the job.
WATCHED = """bulkhead-burn --kernel 0 --time 600s --hold-mib %d >/dev/null &
until bulkhead-smi --json | grep -q '"pid"'; do sleep 0.05; done
bulkhead-smi; bulkhead-smi --json; echo BURN=$!; %s"""


BUSY = """bulkhead-burn --kernel 2ms --loops-per-ms 1000 --time 600s >/dev/null &
touch /tmp/stay; while [ -e /tmp/stay ]; do sleep 1; bulkhead-smi --json; done; kill $!"""


def percents(site, job):
    """What a job saw of its GPU's use, each time that it was known; the last look may be half there."""
    return [int(found) for found in re.findall(r'"utilization_percent": *(\d+),', site.log(job))]


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
    assert report["devices"][0]["utilization_percent"] in (None, 0), report  # None: not measured yet
    two = site.submit("bulkhead-smi", "--json", tenant="acme/vision/train", sku="quarter", count=2)
    site.await_state(two, "completed")
    equal("two shares of one GPU are one device", [device["memory_total_bytes"] >> 20 for device in
                                                   json.loads(site.log(two))["devices"]], [2 * 18446])
    busy = site.submit("sh", "-c", BUSY, tenant="acme/vision/train", sku="quarter")
    site.until(lambda: [percent for percent in percents(site, busy) if percent >= 12], what="a hard quarter that works all the time")
    site.let_go(busy)
    site.await_state(busy, "completed")
    assert max(percents(site, busy)) <= 33, f"a hard quarter is so busy: {percents(site, busy)} %"
    site.client().post(f"/v1/jobs/{beside}/cancel")
    site.await_state(beside, "cancelled")


# Fills memory through its share, and looks at it again when there is a file.
KEEPS = """exec python3 -c '
import ctypes as c, os, random, time
l = c.CDLL("libcuda.so.1"); x = c.c_void_p(); p = c.c_uint64(); n = 8 << 20
assert not l.cuInit(0)
assert not l.cuDevicePrimaryCtxRetain(c.byref(x), 0) and not l.cuCtxSetCurrent(x)
assert not l.cuMemAlloc_v2(c.byref(p), c.c_size_t(n))
b = random.randbytes(n); r = c.create_string_buffer(n)
assert not l.cuMemcpyHtoD_v2(p, b, c.c_size_t(n))
print("begun", flush=True)
while not os.path.exists("%s"):
    assert not l.cuMemcpyDtoH_v2(r, p, c.c_size_t(4096)); time.sleep(0.02)
assert not l.cuMemcpyDtoH_v2(r, p, c.c_size_t(n))
print("same" if r.raw == b else "CHANGED", flush=True)
'"""


@tap.test(topology="1x H100-80GB", site=SITE, node_conf="checkpoint_timeout_ms = 20000")
def makes_way(site):
    """a job with memory on the GPU is suspended for a higher one, which gets its share, and goes on with the same bytes"""
    if sanitizer_of(site.bin / "libcuda.so.1"):
        raise tap.Skip("Python cannot load a library that a sanitizer is in")
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
    site.stop(site.node)
    site.start_node()  # looks whether the driver has the calls
    site.until(lambda: site.client().get("/v1/nodes")["items"][0].get("checkpoint") == "yes", what="the node")
    contains("shown", site.cli(None, "node", "-o", "wide", check=0).stdout, "CHECKPOINTS")
    go = site.sim / "view/0-w/go"
    low = site.submit("sh", "-c", KEEPS % "/run/bulkhead-sim/view/go", tenant="acme/vision/train", sku="quarter",
                      priority="low", on_preempt="suspend", memory="512Mi")
    site.until(lambda: "begun" in site.log(low), what="its memory")
    beside = [site.submit(*HOLD_ON, tenant="acme/vision/batch", sku="quarter") for _ in range(3)]
    for job in beside:
        site.await_state(job, "running")
    high = site.submit("sh", "-c", UNTIL_GO, tenant="acme/vision/batch", sku="quarter", priority="high")
    site.await_state(high, "running")
    equal("makes way", site.job(low)["state"], "suspended")
    contains("why", site.cli(None, "why", str(low), check=0).stdout, "suspended")
    site.let_go(high)
    site.await_state(high, "completed")
    site.await_state(low, "running")
    go.write_text("")
    done = site.await_state(low, "completed", "failed")
    equal("its output", site.log(low), "begun\nsame\n")
    equal("it did not begin anew", done["restarts"], 0)
    equal("outcomes", [r["ev"]["suspended"].get("outcome") for r in site.leaves() if r["verb"] == "node.suspended"], [None])


ROUND = "bulkhead-burn --kernel 0 --time 600s --hold-mib 20000 --library /run/bulkhead/driver/libcuda.so.1"
SPIN = "bulkhead-burn --kernel 2ms --window 500ms --loops-per-ms 1000 --time 600s"


MANAGED = "bulkhead-burn --kernel 0 --time 200ms --storm managed --storm-mib 20000 --storm-live 1"


def with_policy(name, policy, managed):
    return (f"skus:\n  - name: {name}\n    grade: F\n    over_cap: {policy}\n    managed: {managed}\n"
            "    models: [{model: H100-80GB, share: 25%, memory: 18Gi, rounding: up}]\n"
            "    cpu: \"0.1\"\n    memory: 64Mi\n")


@tap.test(topology="1x H100-80GB", site=SITE.replace("skus:\n", with_policy("slow", "throttle", "host"), 1)
          .replace("skus:\n", with_policy("strict", "stop", "refuse"), 1))
def over_cap(site):
    """what is done about a job past its cap, and what managed memory is, says its SKU, and its people read why"""
    if sanitizer_of(site.bin / "libcuda.so.1"):
        raise tap.Skip("burn cannot load a library that a sanitizer is in")
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
    equal("the SKUs say so", {sku["name"]: (sku["over_cap"], sku["managed"])
                              for sku in site.client().get("/v1/skus")["items"]
                              if sku["name"] in ("slow", "strict", "quarter")},
          {"slow": ("throttle", "host"), "strict": ("stop", "refuse"), "quarter": ("warn", "charge")})
    managed = {sku: site.submit("sh", "-c", f"exec {MANAGED}", tenant="acme/vision/batch", sku=sku)
               for sku in ("slow", "strict", "quarter")}
    for sku, had in (("slow", True), ("quarter", False)):
        site.await_state(managed[sku], "completed")
        equal(f"{sku}: more than its cap", lines(site, managed[sku])[-1]["allocations"] > 0, had)
    site.await_state(managed["strict"], "failed")
    contains("no managed memory", site.cli(None, "logs", str(managed["strict"])).stdout, "managed: CUDA_ERROR_NOT_SUPPORTED")
    strict = site.submit("sh", "-c", f"exec {ROUND}", tenant="acme/vision/batch", sku="strict")
    # What it has beyond its promise is anybody's: the scrub before the other's start may take all of that (docs/scrub.md).
    site.until(lambda: lines(site, strict), what="its memory")
    slow = site.submit("sh", "-c", f"{ROUND} >/dev/null & exec {SPIN}", tenant="acme/vision/train", sku="slow")
    site.await_state(strict, "failed")
    told = site.until(lambda: [notice["name"] for notice in site.client().get(f"/v1/jobs/{strict}").get("notices", [])],
                      what=f"its notices: {site.client().get(f'/v1/jobs/{strict}')}")
    assert "over_cap" in told and "stopped" in told, told
    contains("its cause", site.cli(None, "why", str(strict), check=0).stdout, "failed (over_cap)")
    contains("describe", site.cli(None, "describe", str(strict), check=0).stdout, "it had 20")
    contains("why", site.cli(None, "why", str(strict), check=0).stdout, "its share allows 19046")
    site.until(lambda: "throttled" in [n["name"] for n in site.client().get(f"/v1/jobs/{slow}").get("notices", [])],
               what="the other's fewer turns")
    told = len(lines(site, slow))
    site.until(lambda: len(lines(site, slow)) >= told + 4, what="windows")
    shares = [line["work_ns"] / (line["end_ns"] - line["start_ns"]) for line in lines(site, slow)[told + 2:]]
    assert sum(shares) / len(shares) < 0.2, f"as if it was not throttled, alone on the GPU: {shares}"
    site.client().post(f"/v1/jobs/{slow}/cancel")
    site.await_state(slow, "cancelled")


# One process writes nonsense into its page and ends; others say what cannot be; and there is one too many.
HOSTILE = """exec python3 -c '
import mmap, os, socket, struct, time
def knock(version, slot):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/run/bulkhead/share.sock")
    s.send(struct.pack("<IIiI", 0x42485348, version, slot, 0))
    return s, socket.recv_fds(s, 64, 2)[1]
if os.fork() == 0:
    held, pages = knock(%d, -1)
    page = mmap.mmap(pages[1], 1024 + 65536)
    page[1024:] = b"Z" * 65536
    os._exit(0)
os.wait()
knock(99, -1)
knock(%d, -3)
kept = []
for i in range(512):
    one, pages = knock(%d, -1)
    kept.append(one)
    for page in pages:
        os.close(page)
time.sleep(600)
'"""
SOURCE = pathlib.Path(__file__).resolve().parents[2]


@tap.test(topology="1x H100-80GB", site=SITE)
def told(site):
    """what a job's processes do wrong with its share its people read, a line for each kind"""
    version = int(re.search(r"BH_SHARE_VERSION (\d+)u", (SOURCE / "include/bulkhead/share_page.h").read_text()).group(1))
    job = site.submit("sh", "-c", HOSTILE % (version, version, version), tenant="acme/vision/train", sku="quarter",
                      cpu="1", memory="256Mi")
    site.until(lambda: {"forged", "full", "static", "stranger"} <=
               {n["name"] for n in site.client().get(f"/v1/jobs/{job}").get("notices", [])}, what="what its people are told")
    text = site.cli(None, "describe", str(job), check=0).stdout
    for line in ("impossible values", "too many of its processes", "a different version", "statically linked"):
        contains("as they read it", text, line)
    site.client().post(f"/v1/jobs/{job}/cancel")
    site.await_state(job, "cancelled")


TURNS = """skus:
  - name: turn
    grade: F
    models: [{model: H100-80GB, share: 25%, memory: 18Gi, rounding: up, mode: multiplexed}]
    cpu: "0.1"
    memory: 64Mi
"""


@tap.test(topology="1x H100-80GB", site=SITE.replace("skus:\n", TURNS, 1), node_conf="share_quantum_ms = 1500")
def handed_on(site):
    """multiplexed shares have the GPU for themselves, one after the other"""
    if sanitizer_of(site.bin / "libcuda.so.1"):
        raise tap.Skip("burn cannot load a library that a sanitizer is in")
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
    spin = ("/usr/local/bulkhead/bin/bulkhead-burn", "--kernel", "2ms", "--window", "250ms", "--loops-per-ms", "1000",
            "--time", "7s")
    pair = [site.submit(*spin, tenant=f"acme/vision/{project}", sku="turn") for project in ("train", "batch")]
    for job in pair:
        site.await_state(job, "completed")
    had = [[line["work_ns"] / (line["end_ns"] - line["start_ns"]) for line in lines(site, job) if "work_ns" in line]
           for job in pair]
    print("#", had)
    for job in had:  # turns of 20 ms would be in every window of 250
        idle = [share for share in job if share < 0.05]
        assert len(idle) * 5 > len(job), f"turns of a share, not quanta: {had}"
        assert sum(job) / len(job) > 0.2, f"not a half: {had}"


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
