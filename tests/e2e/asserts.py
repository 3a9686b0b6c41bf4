#!/usr/bin/env python3
"""A failed assert of bulkheadd: jobs go on, what failed is refused the second time, all else works.  The daemon is
one whose asserts fail on request (tests/crash/planted.c); this test starts it again, as systemd does."""
import http.client
import json
import pathlib
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import bulkhead
import tap
from bulkhead import Refused
from tap import contains, equal

WAIT = ("sh", "-c", "echo ready; trap 'exit 0' TERM; sleep 600 & wait")
AN_HOUR_NS = 3600 * 10**9
TENANT = "acme/vision/batch"


def plant():
    """All sites of this program have the planted daemon."""
    build = pathlib.Path(sys.argv[1])
    shutil.copy(bulkhead.find_program(build, "tests/crash/bulkheadd_planted"), bulkhead.stage(sys.argv[1]) / "bin/bulkheadd")


def dumps(site):
    return [json.loads(path.read_text()) for path in sorted((site.state / "crash").glob("assert-*.json"))]


def die(site, ask):
    """What is asked has no answer: the daemon ends by SIGABRT, leaves one more description, and is started."""
    before = len(dumps(site))
    try:
        ask()
    except (OSError, http.client.HTTPException):
        pass
    else:
        raise AssertionError("it was answered")
    revive(site, before + 1)


def revive(site, count):
    site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
    equal("its end", site.daemon.poll(), -signal.SIGABRT)
    equal("descriptions", len(dumps(site)), count)
    site.start_daemon()


def forget(site):
    """What an operator does who wants it tried again.  The closing audit finds descriptions that are left."""
    shutil.rmtree(site.state / "crash")


def refusal(ask):
    try:
        ask()
    except Refused as error:
        return error
    raise AssertionError("it was not refused")


def recorded_refusals(site):
    """Verbs of their records; a worker does not wait for its own."""
    def verbs():
        return [leaf["verb"] for leaf in site.leaves() if leaf["res"] == "bug"]
    site.until(verbs, what="a record of a refusal")
    return verbs()


@tap.test()
def command(site):
    "a command that fails an assert ends no job and is refused the second time; others are taken"
    job = site.submit(*WAIT)
    site.await_state(job, "running")
    leases = [leaf["seq"] for leaf in site.leaves() if leaf["verb"] == "node.started"]
    die(site, lambda: site.submit("true", name="planted"))
    left = dumps(site)[0]
    equal("what it was", (left["kind"], left["operation"]), ("request", "JOB_SUBMIT"))
    contains("which assert", left["assertion"], "planted")
    equal("no text of a tenant's", "true" in json.dumps(left), False)
    equal("modes", {oct(p.stat().st_mode & 0o777) for p in (site.state / "crash").iterdir()}, {"0o600"})
    equal("the engine's block", len(list((site.state / "crash").glob("*.block"))), 1)
    contains("the log", " ".join(site.bad_lines("failed asserts")), "planted.c:")

    error = refusal(lambda: site.submit("true", name="planted"))
    equal("refused", (error.status, error.body["error"]["code"]), (500, "bug"))
    contains("by this line", error.body["error"]["message"], "this very request made bulkheadd fail an internal check")
    contains("what to do", error.body["error"]["next"], "report it")
    equal("that is a record", recorded_refusals(site), ["job.submit"])
    equal("the daemon lives", site.daemon.poll(), None)
    equal("a different command", site.run("true")[0]["state"], "completed")
    equal("the job", site.job(job)["state"], "running")
    equal("was not started again", [leaf["seq"] for leaf in site.leaves() if leaf["verb"] == "node.started"][:1], leases)
    equal("the only one in the queue", [j["name"] for j in site.client().get("/v1/jobs?limit=100")["items"] if j["name"].startswith("planted")], [])
    forget(site)


@tap.test()
def persistent(site):
    "a caller that varies the command is refused all like it after the second, for an hour; others are taken"
    die(site, lambda: site.submit("true", name="planted-1"))
    die(site, lambda: site.submit("true", name="planted-2"))
    error = refusal(lambda: site.submit("true", name="planted-3"))
    contains("by this line", error.body["error"]["message"], "of the same caller")
    refusal(lambda: site.submit("true"))
    other = bulkhead.Client(site.socket, bulkhead.PEOPLE["alice"])
    equal("a different caller", other.post("/v1/jobs", {"tenant": TENANT, "sku": "small", "args": ["true"]})["state"] != "", True)
    for path in (site.state / "crash").glob("*.json"):  # an hour passes
        left = json.loads(path.read_text())
        left["at_ns"] = str(int(left["at_ns"]) - AN_HOUR_NS)
        path.write_text(json.dumps(left, separators=(",", ":")))
    site.stop(site.daemon)
    site.start_daemon()
    site.run("true")
    forget(site)


@tap.test()
def read(site):
    "a read that fails an assert in its worker is refused the second time, to that caller"
    (site.state / "planted-read").touch()
    die(site, lambda: site.client().get("/v1/datasets"))
    equal("refused", refusal(lambda: site.client().get("/v1/datasets")).status, 500)
    equal("that is a record", recorded_refusals(site), ["dataset.view"])
    equal("no block: the owner thread was at work", list((site.state / "crash").glob("*.block")), [])
    site.client().get("/v1/skus")
    bulkhead.Client(site.socket, bulkhead.PEOPLE["alice"]).get("/v1/datasets")
    (site.state / "planted-read").unlink()
    forget(site)


@tap.test()
def node(site):
    "a node whose messages fail an assert is out of reach for a while; its jobs go on"
    job = site.submit(*WAIT)
    site.await_state(job, "running")
    (site.state / "planted-node").touch()
    revive(site, 1)
    equal("what it was", dumps(site)[0]["kind"], "node")
    contains("the log", " ".join(site.bad_lines("is not connected for a while")), "node.sock")
    time.sleep(2)
    equal("the daemon lives", site.daemon.poll(), None)
    equal("without the node", site.client().get("/v1/status")["node"]["connected"], False)
    contains("a record", [leaf["verb"] for leaf in site.leaves()], "node.down")
    (site.state / "planted-node").unlink()
    site.stop(site.daemon)
    forget(site)  # or a minute passes
    site.start_daemon()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")
    equal("the job", site.job(job)["state"], "running")


@tap.test()
def own(site):
    "what the daemon does by itself and fails thrice waits: reads are served, changes are refused"
    site.run("true")
    (site.state / "planted-tick").touch()
    for count in (1, 2, 3):
        site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
        equal("descriptions", len(dumps(site)), count)
        site.start_daemon(wait=count == 3)
    equal("it serves", len(site.client().get("/v1/jobs")["items"]), 1)
    error = refusal(lambda: site.submit("true"))
    equal("changes are refused", (error.status, error.body["error"]["code"]), (503, "unavailable"))
    contains("the log", " ".join(site.bad_lines("changes are refused")), "seconds=")
    (site.state / "planted-tick").unlink()
    site.stop(site.daemon)
    forget(site)
    site.start_daemon()
    site.await_gpus()
    site.run("true")


@tap.test()
def replay(site):
    "a journal whose replay fails an assert twice is not replayed again, and a line says what to do"
    site.announce("cannot continue")
    site.run("true")
    site.kill(site.daemon)
    (site.state / "planted-replay").touch()
    for count in (1, 2, 2):
        site.start_daemon(wait=False)
        site.until(lambda: site.daemon.poll() is not None, what="the end of bulkheadd")
        equal("descriptions", len(dumps(site)), count)
    equal("refused", site.daemon.poll(), 8)
    line = site.bad_lines("cannot continue")[-1]
    contains("why", line, "fails an internal check when it is replayed")
    contains("the way back", line, "install the version that wrote the record")
    (site.state / "planted-replay").unlink()
    forget(site)
    site.start_daemon()
    site.await_gpus()
    site.run("true")


if __name__ == "__main__":
    plant()
    tap.main()
