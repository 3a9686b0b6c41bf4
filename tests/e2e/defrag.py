#!/usr/bin/env python3
"""Defragmentation on a running site: off by default, a plan that is shown and carried out, and by itself."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from tap import contains, equal

TWO = "2x H100-80GB"
HOLD_ON = ("sh", "-c", "trap 'exit 0' TERM USR1; sleep 600 & wait")


def said(mode, more=""):
    return tap.SITE + f"\nscheduling: {{defrag: {mode}{more}}}\n"


def broken_up(site):
    """Half a GPU in use on each of two, and a whole one that waits."""
    a, b, c = (site.submit(*HOLD_ON, sku="medium", cpu="0.1", on_preempt="checkpoint") for _ in range(3))
    for job in (a, b, c):
        site.await_state(job, "running")
    site.client().post(f"/v1/jobs/{b}/cancel")
    site.await_state(b, "cancelled")
    big = site.submit("sleep", "600", sku="large", cpu="0.1", time_limit="2h")
    site.until(lambda: site.job(big)["reason"] == "no_shape", what="nothing is free in one piece")
    return a, c, big


@tap.test(topology=TWO)
def off(site):
    "it is off unless the site file says so"
    a, c, big = broken_up(site)
    contains("for people", site.cli(None, "defrag", check=0).stdout, "defrag: off; defragmentation is off on this site")
    done = site.cli(None, "defrag", "--apply", "0123456789abcdef")
    contains("refused", done.stderr, "defragmentation is off on this site")
    contains("next", done.stderr, "scheduling.defrag")
    equal("nobody moved", [site.job(j)["restarts"] for j in (a, c)], [0, 0])


@tap.test(topology=TWO, site=said("suggest"))
def suggest(site):
    "the plan is shown with what it gains and costs, and carried out by its token, once"
    a, c, big = broken_up(site)
    before = site.record_count()
    shown = site.cli(None, "defrag", check=0).stdout
    answer = json.loads(site.cli(None, "defrag", "-o", "json", check=0).stdout)
    equal("looking changes nothing", site.record_count(), before)
    plan = answer["plan"]
    equal("for whom", plan["for_job"], big)
    equal("one job moves", len(plan["moves"]), 1)
    moved = plan["moves"][0]["job"]
    assert moved in (a, c), plan
    stays = a if moved == c else c
    contains("for people", shown, f"job {moved} (acme/vision/batch) would move from 3g.40gb at ")
    contains("for people", shown, f"so that job {big} can start")
    contains("for people", shown, "simulated: 1 start sooner and 0 later")
    contains("for people", shown, f"bulkhead defrag --apply {plan['token']}")
    assert plan["gain_gpu_ms"] >= 2 * plan["cost_gpu_ms"], plan
    equal("a stale token", site.cli(None, "defrag", "--apply", "0000000000000001").returncode != 0, True)
    equal("nobody moved", [site.job(j)["restarts"] for j in (a, c)], [0, 0])
    for person in ("alice", "carol"):  # carol operates acme, not the site
        site.cli(person, "defrag", check=4)
        site.cli(person, "defrag", "--apply", plan["token"], check=4)
    site.cli("dave", "defrag", check=0)  # an auditor looks
    site.cli("dave", "defrag", "--apply", plan["token"], check=4)
    done = site.cli(None, "defrag", "--apply", plan["token"], check=0)
    equal("told", done.stdout, f"job {moved} is being moved\n")
    site.await_state(big, "running")
    site.await_state(moved, "running")
    equal("once", [site.job(moved)["restarts"], site.job(stays)["restarts"]], [1, 0])
    to = {p["gpu"] for p in plan["moves"][0]["to"]}
    pieces = [(g["uuid"], p.get("job")) for g in site.client().get("/v1/gpus")["items"] for p in g["partitions"]]
    equal("where it was to", {uuid for uuid, job in pieces if job == moved}, to)
    contains("why", site.cli(None, "why", str(moved), check=0).stdout, f"to make room for job {big}")
    contains("not twice", site.cli(None, "defrag", "--apply", plan["token"]).stderr, "the state has changed since the plan")
    record = next(r for r in site.leaves() if "move" in r.get("ev", {}))
    equal("the record says what it gained and cost", [record["ev"]["move"][k] for k in ("gain_gpu_ms", "cost_gpu_ms")],
          [plan["gain_gpu_ms"], plan["cost_gpu_ms"]])


@tap.test(topology=TWO, site=said("on"), daemon_conf="defrag_interval = 300ms\n")
def on(site):
    "the site does it by itself, records it as its own, and says so"
    a, c, big = broken_up(site)
    site.await_state(big, "running")
    site.until(lambda: sum(site.job(j)["restarts"] for j in (a, c)) == 1, what="one of them moved")
    records = [r for r in site.leaves() if "move" in r.get("ev", {})]
    equal("one record, of nobody but the system", [(r["verb"], "actor" in r) for r in records], [("job.move", False)])
    contains("why", site.cli(None, "why", str(big), check=0).stdout, "it has what it asked for")


if __name__ == "__main__":
    tap.main()
