#!/usr/bin/env python3
"""MIG on a running site: declared layouts, what a driver's fault forbids, what other programs may use."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import PATIENCE_S
from tap import contains, equal

HOLD_ON = ("sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait")
SEVEN = [f"1g.10gb@{i}" for i in range(7)]


def control(site, text):
    (site.sim / "control").write_text(text)


def write(site, text, name="layout.yaml"):
    path = site.dir / name
    path.write_text(text)
    return str(path)


def rows(site):
    return {row["index"]: row for row in site.client().get("/v1/layouts")["items"]}


def standing(row):
    return sorted(one["partition"] for one in row["partitions"] if one["state"] in ("idle", "leased"))


@tap.test(topology="3x H100-80GB")
def declared(site):
    """a layout is diffed, rehearsed, made, told and rolled back; GPUs that it does not name are left
    alone (complaints 7 and 9), what stands is what is read back (6), and a piece in use is not touched (3)"""
    node = site.client().get("/v1/nodes")["items"][0]["name"]
    seven = write(site, f"layouts:\n- {{gpu: {node}/0, partitions: [1g.10gb x7]}}\n- {{gpu: {node}/2, partitions: [3g.40gb@0, 1g.10gb]}}\n")
    shown = site.cli(None, "layout", "diff", seven, check=1).stdout
    for part in ("+ 1g.10gb@6", "+ 3g.40gb@0", "+ 1g.10gb@4", "9 changes on 2 GPUs"):
        contains("diff", shown, part)
    records = site.record_count()
    contains("dry run", site.cli(None, "layout", "apply", seven, "--dry-run", check=0).stdout, "nothing was changed")
    equal("a dry run records nothing", (site.record_count(), standing(rows(site)[0])), (records, []))
    done = site.cli(None, "layout", "apply", seven, check=0)
    contains("told", done.stdout, "change 1 of 2 GPUs")
    contains("progress", done.stderr, "9 of 9 partitions are ready on 2 GPUs")
    now = rows(site)
    equal("made", (standing(now[0]), standing(now[2])), (SEVEN, ["1g.10gb@4", "3g.40gb@0"]))
    equal("left alone", (standing(now[1]), now[1]["is_declared"]), ([], False))
    equal("nothing to do", site.cli(None, "layout", "diff", seven).returncode, 0)
    # a job takes a piece that stands: nothing is carved for it
    carved = sum("carved" in r["verb"] for r in site.leaves())
    job = site.submit(*HOLD_ON, tenant="acme/vision/train", sku="small")
    site.await_state(job, "running")
    equal("ready at once", sum("carved" in r["verb"] for r in site.leaves()), carved)
    halves = write(site, "layouts:\n- {gpu: all, partitions: [3g.40gb x2]}\n")
    contains("what it waits for", site.cli(None, "layout", "diff", halves).stdout, f"is in use by job {job}")
    done = site.cli(None, "layout", "apply", halves)
    equal("it waits", done.returncode, 7)
    contains("and says so", done.stderr, "the rest waits for jobs to end")
    equal("the job runs on", site.job(job)["state"], "running")
    contains("a table", site.cli(None, "layout", "get", check=0).stdout, "applying")
    site.client().post(f"/v1/jobs/{job}/cancel")
    site.until(lambda: all(standing(row) == ["3g.40gb@0", "3g.40gb@4"] for row in rows(site).values()), what="all halves")
    site.cli(None, "layout", "rollback", check=0)
    now = rows(site)
    equal("rolled back", [standing(now[i]) for i in range(3)], [SEVEN, [], ["1g.10gb@4", "3g.40gb@0"]])
    for text, words in (("{gpu: GPU-none, partitions: []}", "there is no GPU"), ("{gpu: all, partitions: [2g.20gb x4]}", "does not fit"),
                        ("{gpu: all, partitions: [9g.10gb]}", "have no MIG profile 9g.10gb")):
        refused = site.cli(None, "layout", "apply", write(site, f"layouts:\n- {text}\n", "bad.yaml"))
        equal("refused", refused.returncode, 3)
        contains("one clear line", refused.stderr, words)
    for person in ("alice", "dave"):
        site.cli(person, "layout", "apply", seven, check=4)
        site.cli(person, "layout", "rollback", check=4)


@tap.test(topology="2x H100-80GB")
def taken_back(site):
    """a change that fails in the middle is undone as a whole, and the failure is shown with its GPU and
    cause (complaints 2 and 6); an instance that is held for a while is tried again (complaint 4)"""
    whole = write(site, "layouts:\n- {gpu: all, partitions: [3g.40gb x2]}\n")
    site.cli(None, "layout", "apply", whole, "-q", check=0)
    control(site, "nvmlDeviceCreateGpuInstanceWithPlacement gpu=1 fail=INSUFFICIENT_RESOURCES count=1\n")
    failed = site.cli(None, "layout", "apply", write(site, "layouts:\n- {gpu: all, partitions: [1g.10gb x7]}\n"))
    equal("failed", failed.returncode != 0, True)
    contains("whole", failed.stderr, "could not be applied and was undone")
    equal("as before", [standing(row) for row in rows(site).values()], [["3g.40gb@0", "3g.40gb@4"]] * 2)
    equal("both went back", {row["state"] for row in rows(site).values()}, {"undone"})
    # held by somebody for a moment: the order waits, the node does not
    control(site, "nvmlGpuInstanceDestroy gpu=0 fail=IN_USE count=9\n")
    site.cli(None, "layout", "apply", write(site, "layouts:\n- {gpu: all, partitions: [7g.80gb]}\n"), "-q", check=0)
    equal("in the end", [standing(row) for row in rows(site).values()], [["7g.80gb@0"]] * 2)


@tap.test(topology="2x H100-80GB")
def crashes(site):
    """kill -9 of node and daemon in the middle of a change, a GPU that lost its instances and its MIG mode:
    it stands again after each start, nothing is left over (complaint 10)"""
    site.cli(None, "layout", "apply", write(site, "layouts:\n- {gpu: all, partitions: [3g.40gb x2]}\n"), "-q", check=0)
    control(site, "nvmlDeviceCreateGpuInstanceWithPlacement delay-ms=150\n")
    path = write(site, "layouts:\n- {gpu: all, partitions: [1g.10gb x7]}\n")
    change = subprocess.Popen([site.program("bulkhead"), "--socket", site.socket, "layout", "apply", path],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    site.until(lambda: any("1g.10gb@0" in standing(row) for row in rows(site).values()), what="the middle")
    site.kill(site.node)
    site.kill(site.daemon)
    control(site, "")
    site.start_node()
    site.start_daemon()
    change.wait(PATIENCE_S)
    site.until(lambda: all(standing(row) == SEVEN and row["state"] == "stands" for row in rows(site).values()), what="all of it")
    listed = subprocess.run([site.bin.parent / "tools/bulkhead-smi", "--library", site.dir / "lib/libnvidia-ml.so.1", "-L"],
                            capture_output=True, text=True, check=True, env={"BULKHEAD_SIM_STATE": str(site.sim)}).stdout
    equal("instances on the GPUs", listed.count("MIG 1g.10gb"), 14)
    # Hopper loses instances and mode with a reset: both are made again
    site.stop(site.node)
    subprocess.run([site.program("bulkhead-simctl"), "--state", str(site.sim), "reset", "0"], check=True, stdout=subprocess.DEVNULL)
    site.start_node()
    site.until(lambda: [standing(row) for row in rows(site).values()] == [SEVEN, SEVEN], what="the layout after a reset")


@tap.test(topology="1x H100-80GB driver=580.65.06")
def old_driver(site):
    """a driver without the fix for CVE-2026-24197: nothing is carved beside another tenant's job, which is
    shown with the reason and the builds that have it; partitions that are ready are used"""
    contains("the node tells", site.cli(None, "node", check=0).stdout, "CVE-2026-24197")
    first = site.submit(*HOLD_ON, tenant="acme/vision/train", sku="small")
    site.await_state(first, "running")
    same = site.submit(*HOLD_ON, tenant="acme/vision/train", sku="small")
    site.await_state(same, "running")
    other = site.submit(*HOLD_ON, tenant="acme/speech/asr", sku="small")
    site.until(lambda: site.job(other)["reason"] == "repartition", what="the reason")
    told = site.cli(None, "why", str(other), check=0).stdout
    contains("why", told, "lacks the fix for CVE-2026-24197")
    contains("the fix", told, "580.159.03")
    for job in (first, same):
        site.client().post(f"/v1/jobs/{job}/cancel")
    site.await_state(other, "running")
    site.client().post(f"/v1/jobs/{other}/cancel")
    site.await_state(other, "cancelled")
    site.cli(None, "layout", "apply", write(site, "layouts:\n- {gpu: all, partitions: [1g.10gb x7]}\n"), "-q", "--wait", "20s", check=0)
    jobs = [site.submit(*HOLD_ON, tenant=t, sku="small") for t in ("acme/vision/train", "acme/speech/asr")]
    for job in jobs:
        site.await_state(job, "running")


FUNGIBLE = tap.SITE.replace("""models: [{model: H100-80GB, profile: 3g.40gb}]""",
                            """models: [{model: H100-80GB, profile: 3g.40gb}, {model: H100-80GB, profile: whole}]""")
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
EDITS = {"env", "deviceNodes", "mounts"}


def check_cdi(spec):
    """The rules of CDI for what we write; unknown members are refused by its readers."""
    equal("members", set(spec), {"cdiVersion", "kind", "devices", "containerEdits"})
    equal("version and kind", (spec["cdiVersion"], spec["kind"]), ("0.3.0", "bulkhead.dev/gpu"))
    names = [device["name"] for device in spec["devices"]]
    assert names and len(set(names)) == len(names) and all(NAME.fullmatch(n) for n in names), names
    for edits in [spec["containerEdits"]] + [device["containerEdits"] for device in spec["devices"]]:
        assert set(edits) <= EDITS, edits
        for node in edits.get("deviceNodes", []):
            assert node["type"] == "c" and set(node["permissions"]) <= set("rwm") and node["path"].startswith("/dev/"), node
        for mount in edits.get("mounts", []):
            assert "ro" in mount["options"] and "nosuid" in mount["options"], mount
        assert all("=" in text for text in edits.get("env", []))
    return names


@tap.test(topology="2x H100-80GB", site=FUNGIBLE)
def sizes(site):
    """a size is kept by a MIG instance or by a whole GPU, and it is shown which (complaints 1, 8 and 11);
    a CDI specification stands for each lease; grades D and E are refused as not verified"""
    jobs = [site.submit(*HOLD_ON, sku="medium", cpu="0.1") for _ in range(2)]
    blocker = site.submit(*HOLD_ON, tenant="acme/vision/train", sku="small")
    for job in jobs + [blocker]:
        site.await_state(job, "running")
    third = site.submit(*HOLD_ON, sku="medium", cpu="0.1")
    site.await_state(third, "running")
    kept = {job: site.job(job)["partitions"] for job in jobs + [third]}
    for job in jobs + [third]:
        contains("which keeps it", kept[job], "3g.40gb" if "3g.40gb" in kept[job] else "whole")
        contains("ps shows it", site.cli(None, "ps", "-o", "wide", check=0).stdout, kept[job])
        contains("describe shows it", site.cli(None, "describe", str(job), check=0).stdout, kept[job])
    specs = {path.name: json.loads(path.read_text()) for path in (site.dir / "cdi").glob("*.json")}
    equal("one for each lease", len(specs), 4)
    for name, spec in specs.items():
        contains("the lease's own name", check_cdi(spec), name[len("bulkhead-"):-len(".json")])
    for job in jobs + [blocker, third]:
        site.client().post(f"/v1/jobs/{job}/cancel")
    site.until(lambda: not list((site.dir / "cdi").glob("*.json")), what="all specifications are gone")
    for grade in "DE":
        path = write(site, FUNGIBLE.replace("- name: small\n    grade: C", f"- name: small\n    grade: {grade}"), "site.yaml")
        refused = site.cli(None, "apply", "-f", path, check=3).stderr
        contains("refused", refused, f"grade {grade} (")
        contains("why", refused, "is not offered: not verified on hardware")
    grades = site.client().get("/v1/nodes")["items"][0]["grades_not_offered"]
    equal("the node tells", [g["grade"] for g in grades], ["D", "E"])
    assert all("not verified on hardware" in g["why"] for g in grades), grades


if __name__ == "__main__":
    tap.main()
