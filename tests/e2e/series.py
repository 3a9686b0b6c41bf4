#!/usr/bin/env python3
"""Samples over time: recorded, kept through a kill, lost alone where they cannot be written."""
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import Refused
from tap import contains, equal

BUSY = ("sh", "-c", "while :; do :; done")
SECONDS = 90  # a look every five seconds, a batch every ten, on a machine that does other things


def points(site, of, quantity, person=None):
    reply = site.client(person).get(f"/v1/series?object={of}&quantity={quantity}&points=3000")
    return reply["items"][0]["points"]


def await_points(site, of, quantity, count=1):
    site.until(lambda: len(points(site, of, quantity)) >= count, seconds=SECONDS, what=f"{count} points of {quantity} of {of}")
    return points(site, of, quantity)


def refusal(site, of, person=None):
    try:
        site.client(person).get(f"/v1/series?object={of}")
    except Refused as refused:
        return refused.status
    return 200


@tap.test(topology="2x H100-80GB")
def recorded(site):
    "each kind of object has samples, for those who may see it"
    job = site.submit(*BUSY, client=site.client("alice"))
    site.await_state(job, "running")
    tenant = site.job(job)["tenant"]
    gpu, node = site.client().get("/v1/gpus")["items"][0]["uuid"], site.client().get("/v1/nodes")["items"][0]["name"]
    assert await_points(site, f"job/{job}", "cpu")[-1]["mean"] > 0, "CPU time of a job that computes"
    assert 20 <= await_points(site, f"gpu/{gpu}", "temperature")[-1]["mean"] <= 100, "degrees Celsius"
    assert await_points(site, f"node/{node}", "power")[-1]["min"] > 0, "a node's power"
    equal("jobs of a tenant", await_points(site, f"tenant/{tenant}", "running")[-1]["max"], 1)
    last = {quantity: await_points(site, "site", quantity)[-1]["max"] for quantity in ("leased", "idle", "unusable")}
    equal("two GPUs in all", sum(last.values()), 2 * 4200)
    assert points(site, f"job/{job}", "cpu", "alice"), "its submitter sees it"
    equal("another tenant's job", refusal(site, f"job/{job}", "bob"), 404)
    equal("a job that there is not", refusal(site, "job/4711", "bob"), 404)
    equal("a GPU, for a tenant's developer", refusal(site, f"gpu/{gpu}", "alice"), 404)
    equal("the site, for a tenant's developer", refusal(site, "site", "alice"), 403)
    shown = site.cli("alice", "series", str(job), check=0).stdout
    contains("the command", shown, "QUANTITY")
    contains("the command", shown, "memory")


@tap.test(topology="1x H100-80GB")
def killed(site):
    "a daemon that is killed loses no sample that was written"
    before = await_points(site, "site", "idle", 2)
    site.daemon.send_signal(signal.SIGKILL)
    site.daemon.wait()
    site.start_daemon()
    after = points(site, "site", "idle")
    equal("the points before", after[:len(before) - 1], before[:-1])
    site.until(lambda: len(points(site, "site", "idle")) > len(after), seconds=SECONDS, what="samples after the restart")


@tap.test(topology="1x H100-80GB")
def damaged(site):
    "without its file the daemon serves all else, and a damaged one is made anew"
    await_points(site, "site", "idle")
    site.stop(site.daemon)
    for path in site.state.glob("series.db-*"):
        path.unlink()
    (site.state / "series.db").write_bytes(b"no database, a text" * 4000)
    site.start_daemon()
    contains("the log", (site.dir / "daemon.log").read_text(), "samples over time start empty")
    equal("nothing is left", points(site, "site", "idle"), [])
    await_points(site, "site", "idle")
    site.stop(site.daemon)
    (site.state / "series.db").unlink()
    (site.state / "series.db").mkdir()
    site.start_daemon()
    contains("the log", (site.dir / "daemon.log").read_text(), "samples over time cannot be written")
    equal("series", refusal(site, "site"), 503)
    equal("all else", site.client().get("/v1/status")["gpus"]["total"], 1)
    (site.state / "series.db").rmdir()


if __name__ == "__main__":
    tap.main()
