#!/usr/bin/env python3
"""Jobs with shares of a GPU that keep to their turns, and those that do not, through the whole stack (ADR 0048).

out_of_turn.py BUILD [WORD]: `SECONDS=N` in the environment makes the honest run as long."""
import os
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import sanitizer_of
from tap import contains, equal

BURN = "/usr/local/bulkhead/bin/bulkhead-burn"
ROUND = ("--library", "/run/bulkhead/driver/libcuda.so.1")


def sku(name, share, more=""):
    return (f"  - name: {name}\n    grade: F\n    cpu: \"0.25\"\n    memory: 64Mi\n{more}"
            f"    models: [{{model: H100-80GB, share: {share}, memory: 4Gi, rounding: up}}]\n")


SITE = tap.SITE.replace("managed: true}", "managed: true, shared: true}").replace(
    "skus:\n", "skus:\n" + sku("seventh", "1/7") + sku("quarter", "1/4") + sku("half", "1/2")
    + sku("strict", "1/4", "    over_time: stop\n"), 1)


def start(site, name, *more):
    return site.submit(BURN, "--loops-per-ms", "1000", "--time", "600s", *more, tenant="acme/vision/batch", sku=name)


def told(site, job):
    return {notice["name"]: notice["count"] for notice in site.client().get(f"/v1/jobs/{job}").get("notices", [])}


def end(site, *jobs):
    for job in jobs:
        site.client().post(f"/v1/jobs/{job}/cancel")
    for job in jobs:
        site.await_state(job, "cancelled", "failed")


def wants(site):
    if sanitizer_of(site.bin / "libcuda.so.1"):
        raise tap.Skip("burn cannot load a library that a sanitizer is in")
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")


@tap.test(topology="1x H100-80GB", site=SITE)
def seen(site):
    """a job that works past the shim during others' time slices is reported or ended, as its SKU says; alone it harms no job"""
    wants(site)
    equal("the SKUs say so", {row["name"]: row.get("over_time") for row in site.client().get("/v1/skus")["items"]
                              if row["name"] in ("strict", "quarter", "small")},
          {"strict": "stop", "quarter": "warn", "small": None})
    alone = start(site, "quarter", "--kernel", "1ms", *ROUND)
    site.await_state(alone, "running")
    time.sleep(15)
    assert "out_of_turn" not in told(site, alone), told(site, alone)
    honest = start(site, "half", "--kernel", "2ms")
    site.await_state(honest, "running")
    began = time.monotonic()
    site.until(lambda: "out_of_turn" in told(site, alone), what="what its people are told")
    print(f"# reported after {time.monotonic() - began:.0f} s")
    contains("as they read it", site.cli(None, "describe", str(alone), check=0).stdout, "uses the GPU outside its time slices")
    equal("it runs on", site.job(alone)["state"], "running")
    end(site, alone)
    strict = start(site, "strict", "--kernel", "50ms", *ROUND)
    began = time.monotonic()
    site.await_state(strict, "failed")
    print(f"# ended after {time.monotonic() - began:.0f} s")
    assert {"out_of_turn", "stopped_out"} <= set(told(site, strict)), told(site, strict)
    contains("its cause", site.cli(None, "why", str(strict), check=0).stdout, "failed (over_time)")
    contains("what was seen", site.cli(None, "describe", str(strict), check=0).stdout, "its own time slices were 0 %")
    equal("a record", [r["verb"] for r in site.records() if r["verb"] == "share.stopped_out"], ["share.stopped_out"])
    equal("the honest one", told(site, honest), {})
    end(site, honest)


# Kernels and pauses of seven at once, and of two.
MIXES = [
    [("--kernel", "1ms"), ("--kernel", "10ms"), ("--kernel", "50ms"), ("--kernel", "10us"),
     ("--kernel", "20ms", "--rate", "2"), ("--kernel", "2ms", "--rate", "30"), ("--kernel", "500us", "--processes", "2")],
    [("--kernel", "1ms")] * 7,
    [("--kernel", "10us")] * 7,
    [("--kernel", "20ms", "--rate", "1")] * 3 + [("--kernel", "5ms")] * 4,
    [("--kernel", "1ms"), ("--kernel", "50ms")],
]


@tap.test(topology="1x H100-80GB", site=SITE)
def honest(site):
    """no job that keeps to its time slices is reported, whatever its kernels and its pauses are"""
    wants(site)
    span = int(os.environ.get("SECONDS", 120)) / len(MIXES)
    for mix in MIXES:
        jobs = [start(site, "seventh" if len(mix) == 7 else "half", *words) for words in mix]
        for job in jobs:
            site.await_state(job, "running")
        time.sleep(span)
        equal("nobody is told", {job: told(site, job) for job in jobs if told(site, job)}, {})
        end(site, *jobs)
    log = (site.dir / "node.log").read_text() if (site.dir / "node.log").exists() else ""
    assert "outside its time slices" not in log, log


if __name__ == "__main__":
    tap.main()
