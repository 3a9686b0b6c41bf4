#!/usr/bin/env python3
"""What a scrub costs on the simulated driver: scrub.py BUILD [ROUNDS]

Two tenants take a GPU in turns, as an instance and as a whole; the times are those of the
receipts, and from submission to start with and without a scrub.  As root, on a quiet machine."""
import pathlib
import shutil
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/lib"))
from bulkhead import ROOT, Site

FULL = """  - name: eighth
    grade: C
    models: [{model: H100-80GB, profile: 1g.10gb}]
    cpu: "1"
    memory: 256Mi
  - name: full
    grade: C
    models: [{model: H100-80GB, profile: 7g.80gb}]
    cpu: "1"
    memory: 256Mi

principals:"""
TENANTS = ("acme/vision/batch", "acme/speech/asr")


def started_ms(site, tenant, sku):
    job = site.await_state(site.submit("true", tenant=tenant, sku=sku), "completed")
    return (int(job["started_ns"]) - int(job["submitted_ns"])) / 1e6


def main(build, rounds=10):
    text = (ROOT / "tools/demo-site.yaml").read_text().replace("principals:", FULL, 1)
    for sku in ("full", "large"):
        with Site(build, topology="1x H100-80GB", site=text) as site:
            shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
            passing = [started_ms(site, TENANTS[i % 2], sku) for i in range(rounds + 1)][1:]
            receipts = site.client("dave").get("/v1/receipts")["items"][1:]
            own = [started_ms(site, TENANTS[rounds % 2], sku) for _ in range(rounds)]
        took = [(int(r["ended_ns"]) - int(r["begun_ns"])) / 1e6 for r in receipts]
        gib = receipts[0]["bytes"] / 2**30
        print(f"{sku}: {gib:.1f} GiB, {receipts[0]['samples']} samples; scrub {statistics.median(took):.0f} ms "
              f"(most {max(took):.0f}), {statistics.median(took) / gib:.1f} ms/GiB; to start from another tenant "
              f"{statistics.median(passing):.0f} ms, from its own {statistics.median(own):.0f} ms")


main(sys.argv[1], *map(int, sys.argv[2:]))
