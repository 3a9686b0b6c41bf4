#!/usr/bin/env python3
"""GPUs that misbehave, and GPUs that are not Bulkhead's."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import SLOW, has_thread_sanitizer, python_beside
from tap import contains, equal, needs_smi_in_jobs

WAIT = ("sh", "-c", f"echo ready; trap 'exit 0' TERM; sleep 600 & wait")


def control(site, text):
    (site.sim / "control").write_text(text)


def smi(site):
    done = subprocess.run([site.bin.parent / "tools/bulkhead-smi", "--library", site.dir / "lib/libnvidia-ml.so.1", "-L"],
                          capture_output=True, text=True, check=True, env={"BULKHEAD_SIM_STATE": str(site.sim), "PATH": os.environ["PATH"]})
    return done.stdout


def gpus(site):
    return site.client().get("/v1/gpus")["items"]


@tap.test(topology="3x H100-80GB", node_conf=f"call_timeout_ms = {int(3000 * SLOW)}")
def hung_call(site):
    """a driver call that hangs costs one child and one GPU and not the node: jobs of the
    others run on, the API answers, and work goes on elsewhere"""
    needs_smi_in_jobs(site.dir / "lib/libnvidia-ml.so.1")
    beside = site.submit(*WAIT, tenant="acme/speech/asr", sku="large")
    pieces = site.await_state(beside, "running")["partitions"]
    children = set(site.processes("bulkhead-gpu"))
    control(site, "nvmlDeviceCreateGpuInstanceWithPlacement hang count=1\n")
    job, node = site.submit("bulkhead-smi", "-L", sku="medium"), site.node.pid
    subprocess.run([site.program("bulkhead-simctl"), "--state", site.sim, "await", "1"], check=True)
    equal("answered before the call is given up", [g["uuid"] for g in gpus(site) if g["fenced"]], [])
    done = site.await_state(job, "completed", "failed")
    equal("the job", done["state"], "completed")
    equal("the node", (site.node.poll(), site.node.pid), (None, node))
    row = site.job(beside)
    equal("neighbour", (row["state"], row["restarts"], row["partitions"]), ("running", 0, pieces))
    fenced = [g["uuid"] for g in gpus(site) if g["fenced"]]
    equal("fenced GPUs", len(fenced), 1)
    assert not pieces.startswith(fenced[0][:12]) and not done["partitions"].startswith(fenced[0][:12])
    site.until(lambda: set(site.processes("bulkhead-gpu")) not in (set(), children), what="another child")


@tap.test(topology="2x H100-80GB")
def failed_call(site):
    "a carving that the driver refuses once is done elsewhere or again, and nothing leaks"
    needs_smi_in_jobs(site.dir / "lib/libnvidia-ml.so.1")
    control(site, "nvmlDeviceCreateGpuInstanceWithPlacement gpu=0 fail=INSUFFICIENT_RESOURCES count=1\n"
                  "nvmlGpuInstanceCreateComputeInstance fail=UNKNOWN count=1\n")
    for _ in range(3):
        job, _ = site.run("bulkhead-smi", "-L")
        equal("job", job["state"], "completed")
    ours = sum(len(g["partitions"]) for g in gpus(site))
    equal("instances", smi(site).count("  MIG "), ours)


@tap.test(topology="2x H100-80GB")
def lost_gpu(site):
    "a GPU that falls off the bus is fenced: its job ends as gpu_lost or is queued again, new ones run elsewhere"
    jobs = [site.submit(*WAIT, sku="large", tenant="acme/vision/batch") for _ in range(2)]
    rows = [site.await_state(j, "running") for j in jobs]
    victim = next(g for g in gpus(site) if g["uuid"].startswith(rows[0]["partitions"].split()[0]))
    control(site, f"gpu={victim['id'] - 1} lost\n")  # with XID 79 the node gets no new work: e2e/health
    site.until(lambda: next(g for g in gpus(site) if g["id"] == victim["id"])["fenced"], what="a fence")
    site.until(lambda: site.job(jobs[0])["state"] != "running", what="an end of the job")
    equal("the other", site.job(jobs[1])["state"], "running")
    for job in jobs:
        site.client().post(f"/v1/jobs/{job}/cancel")
    job, _ = site.run("true", sku="large", tenant="acme/speech/asr")
    equal("new job", (job["state"], job["partitions"].startswith(rows[1]["partitions"].split()[0])), ("completed", True))


FOREIGN = """
import ctypes, sys
nvml = ctypes.CDLL(sys.argv[1])
device, gi, ci = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(int(sys.argv[2]), ctypes.byref(device)) == 0
assert nvml.nvmlDeviceCreateGpuInstance(device, 19, ctypes.byref(gi)) == 0
assert nvml.nvmlGpuInstanceCreateComputeInstance(gi, 0, ctypes.byref(ci)) == 0
"""


DESTROY = """
import ctypes, sys
nvml = ctypes.CDLL(sys.argv[1])
device, gi, ci, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint(1)
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(int(sys.argv[2]), ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetGpuInstances(device, 19, ctypes.byref(gi), ctypes.byref(n)) == 0
assert nvml.nvmlGpuInstanceGetComputeInstances(gi, 0, ctypes.byref(ci), ctypes.byref(n)) == 0
assert nvml.nvmlComputeInstanceDestroy(ci) == 0 and nvml.nvmlGpuInstanceDestroy(gi) == 0
"""


def make_foreign(site, index, script=FOREIGN):
    """A MIG instance that somebody else made with the driver's own calls."""
    library = site.dir / "lib/libnvidia-ml.so.1"
    if has_thread_sanitizer(library):
        raise tap.Skip("Python does not run with ThreadSanitizer")
    subprocess.run([*python_beside(library, sys.executable), "-c", script, library, str(index)], check=True,
                   env={"BULKHEAD_SIM_STATE": str(site.sim), "PATH": os.environ["PATH"]})


@tap.test(topology="3x H100-80GB mig=on", site="")
def unmanaged(site):
    "GPUs that the site file does not mark managed, and those with instances that are not Bulkhead's, are never touched"
    found = site.until(lambda: gpus(site), what="GPUs")
    equal("managed before any site file", [g["managed"] for g in found], [False] * 3)
    make_foreign(site, 1)
    make_foreign(site, 2)
    site.stop(site.node)
    site.start_node()
    before = smi(site)
    equal("instances", before.count("  MIG "), 2)
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")
    for entry in (f"{{uuid: {found[0]['uuid']}, managed: true}}", "{uuid: all, managed: true}"):
        site.apply(tap.SITE.replace("{uuid: all, managed: true}", entry))
        site.until(lambda: [g["managed"] for g in gpus(site)] == [True, False, False], what="one managed GPU")
    jobs = [site.submit(*WAIT, sku="large", tenant="acme/vision/batch") for _ in range(2)]
    site.await_state(jobs[0], "running")
    equal("the second waits", site.job(jobs[1])["state"], "pending")
    equal("why", site.client().get(f"/v1/jobs/{jobs[1]}/why")["reason"], "no_capacity")
    site.client().post(f"/v1/jobs/{jobs[0]}/cancel")
    site.await_state(jobs[1], "running")
    site.kill(site.node)
    site.start_node()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")
    equal("others' devices", smi(site)[smi(site).index("GPU 1"):], before[before.index("GPU 1"):])


@tap.test(topology="2x H100-80GB mig=on")
def foreign_instances(site):
    "what keeps a GPU unmanaged is said wherever one looks, with what to do; when that is done it is managed by itself"
    job = site.submit("true")
    site.await_state(job, "completed")
    used = next(g for g in gpus(site) if g["partitions"])
    site.stop(site.node)
    (site.dir / "node/journal").unlink()
    site.start_node()
    lost = site.until(lambda: next((g for g in gpus(site) if not g["managed"]), None), what="a GPU that is not managed")
    equal("which", lost["uuid"], used["uuid"])
    contains("why", lost["unmanaged_why"], "it has MIG instances that are not in its node's journal: 1g.10gb at ")
    gi = re.search(r"GPU instance (\d+)", lost["unmanaged_why"]).group(1)
    remedy = f"nvidia-smi mig -dci -gi {gi} -i {lost['uuid']} && nvidia-smi mig -dgi -gi {gi} -i {lost['uuid']}"
    equal("what to do", lost["unmanaged_fix"], remedy)
    for words in (["gpu"], ["gpu", "-o", "wide"], ["uncordon", lost["uuid"]], ["uncordon", lost["uuid"], "--clear-fault"], ["doctor"]):
        shown = site.cli(None, *words).stdout
        contains(" ".join(words), shown, "unmanaged")
        equal("no promise", "is tested" in shown, False)
        if words[0] in ("uncordon", "doctor"):
            contains(" ".join(words), shown, remedy)
    said = [line for line in (site.dir / "daemon.log").read_text().splitlines() if "is left unchanged" in line]
    equal("once in the log", len(said), 1)
    contains("the log", said[0], remedy)
    make_foreign(site, lost["index"], DESTROY)
    back = site.until(lambda: next((g for g in gpus(site) if g["uuid"] == lost["uuid"] and g["managed"]), None), what="the GPU")
    equal("nothing is said", [key for key in back if key in ("unmanaged_why", "unmanaged_fix", "foreign_instances")], [])


if __name__ == "__main__":
    tap.main()
