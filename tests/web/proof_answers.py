#!/usr/bin/env python3
"""Writes proof_answers.json: proofs, checkpoints and keys of two real sites, which proof_test.mjs checks as
a browser does.  The answers are kept; this makes new ones if formats change.

    proof_answers.py BUILD > proof_answers.json
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import bulkhead  # noqa: E402

JOBS = 6


def signed(client, least):
    """The newest checkpoint, once it covers so many records."""
    log = client.get("/v1/log")
    return log if int(log["size"]) >= least else None


def answers(build):
    with bulkhead.Site(build, topology="1x H100-80GB") as site:
        erin = site.client("erin")
        checkpoints = []
        for i in range(JOBS):
            site.run("true", client=site.client("alice"), tenant="acme/vision/train", name=f"proof-{i}")
            records = int(erin.get("/v1/log")["records"])
            site.until(lambda: signed(erin, records), what="a checkpoint")
            checkpoints.append(erin.get("/v1/log"))
        last = checkpoints[-1]
        size = int(last["size"])
        proofs = [erin.get(f"/v1/records/{i}/proof") for i in sorted({0, 1, 2, 7, 8, 31, 32, size // 2, size - 2, size - 1})]
        pairs = [(int(c["size"]), size) for c in checkpoints]
        consistency = [erin.get(f"/v1/consistency?old={old}&new={new}") for old, new in pairs]
        return {"keys": last["keys"], "proofs": proofs, "checkpoints": [c["checkpoint"] for c in checkpoints], "consistency": consistency}


def main():
    build = pathlib.Path(sys.argv[1])
    first, other = answers(build), answers(build)
    json.dump({**first, "other": {"keys": other["keys"], "checkpoint": other["checkpoints"][-1], "proof": other["proofs"][3]}},
              sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
