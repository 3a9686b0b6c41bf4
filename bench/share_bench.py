#!/usr/bin/env python3
"""How shares of a GPU come out through the whole stack: sandboxes, shim, bulkhead-share, simulated driver.

share_bench.py BUILD [SECONDS [short|long]]: as root.  For each mix one job a share runs kernels without a pause; a
line says what each had of the GPU, how far windows of a second were off its share (p95, in points), how far the whole
run was, and what all did together against one alone in the same run.  Mixes of long kernels run for a minute at least:
of these the run counts, in whole kernels.  All of it takes some six minutes with 12 seconds."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/lib"))
import gpu
import tap
from bulkhead import Site

BURN = "/usr/local/bulkhead/bin/bulkhead-burn"
MIXES = [((50, 50), "1ms"), ((50, 50), "10ms"), ((50, 50), "50ms"), ((30, 70), "1ms"), ((30, 70), "10ms"),
         ((10, 90), "1ms"), ((10, 90), "10ms"), ((14,) * 7, "1ms"), ((14,) * 7, "10ms"), ((14,) * 7, "50ms")]
# A window of a second says nothing of kernels that long: what counts is the whole run.
LONG = [((50, 50), "1s"), ((30, 70), "200ms"), ((10, 90), "200ms")]
LONG_SECONDS = 62  # the first and the last second are left out
LONG_ALONE = "50ms"  # one alone is as busy with any


def site_text():
    rows = "".join(f"""
  - name: part{percent}
    grade: F
    models: [{{model: H100-80GB, share: {percent}%, memory: 4Gi, rounding: up}}]
    cpu: "{0.25 if percent < 15 and percent != 10 else 0.8}"
    memory: 64Mi""" for percent in sorted({share for mix, _ in MIXES for share in mix}))
    return tap.SITE.replace("managed: true}", "managed: true, shared: true}").replace("skus:", "skus:" + rows, 1)


def start(site, percent, kernel, seconds):
    return site.submit(BURN, "--kernel", kernel, "--time", f"{seconds}s", "--window", "1s", "--loops-per-ms", "1000",
                       tenant="acme/vision/batch", sku=f"part{percent}")


def measure(site, mix, kernel, seconds):
    jobs = [start(site, percent, kernel, seconds) for percent in mix]
    for job in jobs:
        site.await_state(job, "completed", seconds=seconds + 30)
    return [gpu.windows(site.log(job)) for job in jobs]


def main():
    build, seconds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    rows = {"short": MIXES, "long": LONG}[sys.argv[3]] if len(sys.argv) > 3 else MIXES + LONG
    alone = {}
    with Site(build, topology="1x H100-80GB", site=site_text()) as site:
        shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
        for mix, kernel in rows:
            long = (mix, kernel) in LONG
            by = LONG_ALONE if long else kernel
            if by not in alone:
                alone[by] = gpu.mean_part(gpu.windows(site.log(one_alone(site, by))))
            runs = measure(site, mix, kernel, max(seconds, LONG_SECONDS) if long else seconds)
            print(gpu.share_line(mix, kernel, gpu.share_figures(mix, runs, alone[by])), flush=True)


def one_alone(site, kernel):
    job = start(site, 50, kernel, 5)
    site.await_state(job, "completed", seconds=30)
    return job


if __name__ == "__main__":
    main()
