#!/usr/bin/env python3
"""nvidia-smi, gpustat, nvitop, nvtop and pynvml in a job with a share of a GPU, beside another tenant's
(docs/shares.md).  tools/vendor-programs fetches them.

usage: shares.py BUILD [WORD].  Prints TAP."""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import programs
import tap
from bulkhead import sanitizer_of
from tap import contains, equal

SITE = tap.SITE.replace("managed: true}", "managed: true, shared: true}").replace("""skus:
""", """skus:
  - name: quarter
    grade: F
    models: [{model: H100-80GB, share: 25%, memory: 18Gi, rounding: up, mode: hard}]
    cpu: "1"
    memory: 512Mi
""", 1)
INSIDE = "/run/vendor"
TOTAL_MIB, HELD_MIB, OTHERS_MIB = 18446, 4000, 9123
# A process of the job's own holds memory and works; once bulkhead-share has measured, the programs are asked.
WATCHED = """bulkhead-burn --kernel 2ms --loops-per-ms 1000 --time 120s --hold-mib %d >/dev/null &
until bulkhead-smi --json | grep -q '"utilization_percent": [1-9]'; do sleep 0.1; done; echo BURN=$!
%s
kill $!"""
OTHERS = """ln -s "$(command -v bulkhead-burn)" /tmp/of-the-neighbour; /tmp/of-the-neighbour --kernel 2ms --loops-per-ms 1000 \
--time 120s --hold-mib %d >/dev/null & until bulkhead-smi --json | grep -q '"pid"'; do sleep 0.1; done; echo READY; wait"""


def outside(site, *words):
    """What the machine's own nvidia-smi says."""
    env = {"BULKHEAD_SIM_STATE": str(site.sim), "LD_LIBRARY_PATH": str(site.dir / "lib")}
    return subprocess.run([programs.smi("580"), *words], env=env, capture_output=True, text=True, check=False).stdout


def settings(site):
    text = outside(site, "--query-gpu=uuid,persistence_mode,compute_mode,ecc.mode.pending,mig.mode.pending,power.limit,"
                         "clocks.applications.graphics,accounting.mode", "--format=csv")
    assert text.count("\n") == 3, text
    return text


def in_job(site, commands):
    """What the programs say in a job beside another tenant's: (text, {name: (status, text)}, pid that they know)."""
    if sanitizer_of(site.bin / "libcuda.so.1"):
        raise tap.Skip("burn cannot load a library that a sanitizer is in")
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
    beside = site.submit("sh", "-c", OTHERS % OTHERS_MIB, tenant="acme/vision/batch", sku="quarter")
    site.until(lambda: "READY" in site.log(beside), what="the neighbour's memory")
    job = site.submit("sh", "-c", WATCHED % (HELD_MIB, programs.script(commands)), tenant="acme/vision/train", sku="quarter")
    site.await_state(job, "running")
    equal("on one GPU", [len(gpu["partitions"]) for gpu in site.client().get("/v1/gpus")["items"]], [2, 0])
    site.await_state(job, "completed", seconds=150)
    site.client().post(f"/v1/jobs/{beside}/cancel")
    site.await_state(beside, "cancelled")
    log = site.log(job)
    return log, programs.answers(log), int(log.split("BURN=")[1].split()[0])


@tap.test(topology="2x H100-80GB", site=SITE, node_conf=f"job_driver_mount = {programs.FOLDER}:{INSIDE}")
def agree(site):
    """every program sees one GPU of the share's memory, the job's own process and its part of the time, and nothing else"""
    commands = programs.questions(INSIDE)
    log, said, burn = in_job(site, commands)
    equal("all came to an end", sorted(set(commands) ^ set(said)), [])
    equal("none crashed or hung", [(name, answer) for name, answer in said.items() if programs.broke(answer)], [])
    seen = {f"nvidia-smi {version}": programs.seen_by_smi(said, version) for version in programs.SMI}
    seen |= programs.seen_by_others(said)
    for name, one in seen.items():
        print(f"# {name}: {one}")
        equal(f"{name}: GPUs", one.gpus, 1)
        assert 8 <= one.busy <= 40, f"{name}: a hard quarter that works all the time is {one.busy} % busy"
        if one.total is not None:
            equal(f"{name}: total", one.total, TOTAL_MIB)
            equal(f"{name}: its process alone", list(one.processes), [burn])
            assert HELD_MIB <= one.used < HELD_MIB + 1000, f"{name}: {one.used} MiB used"
            equal(f"{name}: what the process holds is what is used", one.processes[burn], one.used)
    hidden = [field.strip() for field in outside(site, "-i", "1", "--query-gpu=uuid,serial,pci.bus_id",
                                                 "--format=csv,noheader").split(",")]
    equal("what there is to hide", len(hidden), 3)
    hidden += ["of-the-neighbour", str(OTHERS_MIB), str(OTHERS_MIB + 600), "81559"]
    equal("other GPUs and tenants in the log", [word for word in hidden if word in log], [])


@tap.test(topology="2x H100-80GB", site=SITE, node_conf=f"job_driver_mount = {programs.FOLDER}:{INSIDE}")
def refused(site):
    """what nvidia-smi would change is refused, and nothing is changed"""
    before = settings(site)
    commands = {f"{version} {words}": f"{programs.smi(version, INSIDE)} {words}"
                for version in ("535", "580") for words in programs.CHANGES}
    _, said, _ = in_job(site, commands)
    equal("all came to an end", sorted(set(commands) ^ set(said)), [])
    for name, (status, text) in said.items():
        wanted = programs.CHANGES[name.split(" ", 1)[1]]
        assert not programs.broke((status, text)), (name, status, text)
        if wanted is not None:
            equal(name, status, wanted)
            assert "ermission" in text, (name, text)
        assert "uccessfully" not in text, (name, text)
    equal("as before", settings(site), before)
    contains("no instance was made", outside(site, "mig", "-lgi"), "No MIG-enabled devices found")


if __name__ == "__main__":
    programs.need(*(f"smi-{version}" for version in programs.SMI), "old", "new", "python", "nvtop")
    tap.main()
