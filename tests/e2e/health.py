#!/usr/bin/env python3
"""GPUs with faults: who ends, what is reset, what comes back by itself; cordon and drain."""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import SLOW
from tap import contains, equal

WAIT = ("sh", "-c", "echo ready; trap 'exit 0' TERM; sleep 600 & wait")
SITE = tap.SITE + "\nscheduling: {burn_in: 1s}\n"
LONG = SITE.replace("1s", f"{round(4 * SLOW)}s")  # long enough to be seen
CONF = "health_interval_ms = 200"


def simctl(site, *words):
    return subprocess.run([site.program("bulkhead-simctl"), "--state", str(site.sim), *words], check=True, capture_output=True,
                          text=True, env={"PATH": os.environ["PATH"]}).stdout


def gpus(site):
    return site.client().get("/v1/gpus")["items"]


def gpu(site, index):
    return next(g for g in gpus(site) if g.get("index") == index)


def health(site, index):
    return gpu(site, index)["health"]


def await_health(site, index, *wanted):
    """The GPU, once its health is one of these; of those that last for a moment any may be missed."""
    return site.until(lambda: (one := gpu(site, index))["health"] in wanted and one, what=f"health {wanted} of GPU {index}")


def await_resets(site, index, count):
    site.until(lambda: gpu(site, index)["resets"] == count, what=f"reset {count} of GPU {index}")


def restart_node(site):
    site.stop(site.node)
    site.until(lambda: not site.client().get("/v1/status")["node"]["connected"], what="the loss of the node")
    site.start_node()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")


def place(site, job):
    """(GPU index, place) of a job's first piece."""
    for one in gpus(site):
        for piece in one["partitions"]:
            if piece.get("job") == job:
                return one["index"], piece["start"]
    raise AssertionError(f"job {job} has no piece")


def gi_at(site, index, start):
    found = re.search(rf"^gpu {index} .*?(?=^gpu |\Z)", simctl(site, "status"), re.M | re.S).group(0)
    return re.search(rf"gi (\d+) .* at {start}:", found).group(1)


def verbs(site):
    return [leaf.get("verb") for leaf in site.leaves()]


def await_xid(site, number, xid):
    """Its record, of the GPU of that number: what the GPU says of its fault goes when it is well."""
    site.until(lambda: any(leaf.get("verb") == "node.xid" and leaf["obj"]["id"] == number and f'"xid": {xid}' in json.dumps(leaf)
                           for leaf in site.leaves()), what=f"a record of XID {xid}")


@tap.test(site=SITE, node_conf=CONF)
def two_at_once(site):
    "an XID of one GPU is not lost while another GPU is being reset"
    simctl(site, "xid", "1", "94")
    site.until(lambda: "node.reset" in verbs(site) or health(site, 1) != "ok", what="what the first XID leads to")
    simctl(site, "xid", "6", "48")
    for index, xid in ((1, 94), (6, 48)):
        await_xid(site, gpu(site, index)["id"], xid)
        await_resets(site, index, 1)
        await_health(site, index, "ok")


@tap.test(topology="4x H100-80GB", site=SITE, node_conf=CONF)
def lost_at_start(site):
    "a GPU that is lost when its node starts stays what it was; the others serve, and it is back when its driver answers"
    simctl(site, "lose", "3")
    await_health(site, 3, "lost")
    restart_node(site)
    lost = gpu(site, 3)
    equal("what it is", (lost["health"], lost["fenced"], lost["managed"], lost["model"]), ("lost", True, True, "H100-80GB"))
    equal("the others", [health(site, index) for index in range(3)], ["ok"] * 3)
    metrics = site.cli(None, "metrics", check=0).stdout
    contains("its metric", metrics, f'bulkhead_gpu_health{{UUID="{lost["uuid"]}",hostname="{lost["node"]}",health="lost"}} 1')
    site.await_state(site.submit("true"), "completed")
    simctl(site, "clear")
    await_health(site, 3, "ok")
    for index in range(3):
        site.cli(None, "cordon", f"gpu{index}", "--reason", "the test's", check=0)
    site.await_state(site.submit("true"), "completed")


def kill_node(site):
    site.node.kill()
    site.node.wait()
    site.until(lambda: not site.client().get("/v1/status")["node"]["connected"], what="the loss of the node")
    site.start_node()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")


def placed(one):
    "Its partitions, without what runs on them at this moment."
    return [{key: value for key, value in part.items() if key not in ("busy_bp", "memory_used_mib", "sm_bp")} for part in one["partitions"]]


@tap.test(topology="2x H100-80GB mig=on", site=SITE, node_conf=CONF)
def lost_with_idle_instances(site):
    "the idle instances of a GPU that is lost when its node starts are Bulkhead's when it answers again"
    site.await_state(site.submit("true"), "completed")
    [used] = [one for one in gpus(site) if one["partitions"]]
    index, before = used["index"], placed(used)
    simctl(site, "lose", str(index))
    await_health(site, index, "lost")
    for _ in range(2):
        kill_node(site)
        lost = gpu(site, index)
        equal("what it is", (lost["health"], lost["managed"], placed(lost)), ("lost", True, before))
    simctl(site, "clear")
    back = await_health(site, index, "ok")
    equal("it is back", (back["managed"], back["mode"], placed(back)), (True, "mig", before))
    site.cli(None, "cordon", f"gpu{1 - index}", "--reason", "the test's", check=0)
    site.await_state(site.submit("true"), "completed")


@tap.test(topology="2x H100-80GB mig=on", site=SITE, node_conf=CONF)
def lost_under_a_job(site):
    "a job of a GPU that is lost while its node restarts goes on elsewhere, and the GPU is managed when it answers; so it is where the node stayed"
    job = site.submit(*WAIT)
    site.await_state(job, "running")
    said = len((site.dir / "daemon.log").read_text())  # before the site file nothing is managed
    for number, restarts in enumerate((True, False), 1):
        index, _ = place(site, job)
        simctl(site, "lose", str(index))
        if restarts:
            kill_node(site)
        site.until(lambda: site.job(job)["restarts"] == number and site.job(job)["state"] == "running", what="the job elsewhere")
        equal("elsewhere", place(site, job)[0], 1 - index)
        simctl(site, "clear")
        await_health(site, index, "ok")
        site.until(lambda: (g := gpu(site, index))["managed"] and g["mode"] in ("mig", "free"), what="a managed GPU")
        equal("not Bulkhead's", "managed=0" in (site.dir / "daemon.log").read_text()[said:], False)
    restart_node(site)
    equal("all are managed", [one["managed"] for one in gpus(site)], [True, True])


@tap.test(topology="1x H100-80GB mig=on", site=SITE, node_conf=CONF)
def contained(site):
    """XID 94 ends the one lease whose instance it names; the neighbour of another tenant runs on,
    and the GPU is reset when idle"""
    hit = site.submit(*WAIT)
    beside = site.submit(*WAIT, tenant="acme/speech/asr")
    for job in (hit, beside):
        site.await_state(job, "running")
    index, start = place(site, hit)
    simctl(site, "xid", str(index), "94", gi_at(site, index, start), "0")
    site.until(lambda: site.job(hit)["restarts"] == 1, what="another start of the job that was hit")
    site.await_state(hit, "running")
    equal("the neighbour", (site.job(beside)["state"], site.job(beside)["restarts"]), ("running", 0))
    equal("the GPU", (health(site, 0), gpu(site, 0)["reset_due"]), ("watched", True))
    contains("why", gpu(site, 0)["fault"], "XID 94")
    for job in (hit, beside):
        site.client().post(f"/v1/jobs/{job}/cancel")
    await_health(site, 0, "burn_in", "ok")
    equal("resets", gpu(site, 0)["resets"], 1)
    equal("instances", simctl(site, "status").count("gi "), 0)
    await_health(site, 0, "ok")
    site.run("true")


@tap.test(topology="2x H100-80GB mig=on", site=LONG, node_conf=CONF)
def transient(site):
    """a GPU with a fault that a reset cures is not gone for ever (k8s-device-plugin#234): fenced,
    emptied, reset, tested, watched, and it gets work again; what ran goes on elsewhere"""
    job = site.submit(*WAIT, sku="large")
    site.await_state(job, "running")
    index, _ = place(site, job)
    simctl(site, "inject", f"gpu={index}", "recovery=1")
    simctl(site, "xid", str(index), "119")
    equal("no work meanwhile", await_health(site, index, "burn_in")["idle"]["compute"], 0)
    site.until(lambda: site.job(job)["restarts"] == 1, what="the job elsewhere")
    site.await_state(job, "running")
    equal("elsewhere", place(site, job)[0], 1 - index)
    await_health(site, index, "ok")
    equal("recovery action", "recovery" in (site.sim / "control").read_text(), False)
    other = site.submit("true", sku="large", tenant="acme/speech/asr")
    site.await_state(other, "completed")
    seen = verbs(site)
    for verb in ("node.reset", "node.tested"):
        assert verb in seen, f"no record of {verb}"
    assert "node.xid" in seen or "node.health" in seen, "no record of either fault"  # whichever came first


@tap.test(topology="1x H100-80GB", site=SITE, node_conf=CONF)
def quarantine(site):
    "the third reset within a day is not made; an operator clears it; an applications' fault changes nothing"
    simctl(site, "xid", "0", "31")
    await_xid(site, gpu(site, 0)["id"], 31)
    for number in (1, 2):
        equal("before", health(site, 0), "ok")
        simctl(site, "xid", "0", "95")
        await_resets(site, 0, number)
        await_health(site, 0, "ok")
    simctl(site, "xid", "0", "95")
    await_health(site, 0, "quarantined")
    job = site.submit("true")
    equal("why", site.job(job)["reason"], "quarantined")
    contains("how to clear it", site.cli("erin", "why", str(job), check=0).stdout, f"bulkhead uncordon {gpu(site, 0)['uuid']} --clear-fault")
    equal("resets", gpu(site, 0)["resets"], 2)
    site.stop(site.daemon)
    site.start_daemon()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")
    equal("it persists", health(site, 0), "quarantined")
    still = site.cli("erin", "uncordon", "gpu0", check=0).stdout
    contains("a hold that ended is not all", still, "still gets no new work: quarantined (XID 95")
    contains("what ends it", still, "--clear-fault")
    denied = site.cli("alice", "uncordon", "gpu0", "--clear-fault", check=4)
    contains("who may", denied.stderr, "gpu.cordon")
    site.cli("erin", "uncordon", "gpu0", "--clear-fault", "--reason", "cable changed", check=0)
    await_health(site, 0, "ok")
    site.await_state(job, "completed")
    contains("the log", (site.dir / "daemon.log").read_text(), "quarantined")


@tap.test(topology="2x H100-80GB", site=SITE, node_conf=CONF)
def off_the_bus(site):
    "XID 79 keeps new work off the whole node until the GPU answers again; what runs on others goes on"
    jobs = [site.submit(*WAIT, sku="large") for _ in range(2)]
    for job in jobs:
        site.await_state(job, "running")
    index, other = place(site, jobs[0])[0], place(site, jobs[1])[0]
    (site.sim / "control").write_text(f"gpu={index} lost\ngpu={index} xid=79\n")
    await_health(site, index, "needs_reboot")
    site.until(lambda: gpu(site, index)["fenced"], what="a fence")
    equal("the other", (site.job(jobs[1])["state"], health(site, other)), ("running", "ok"))
    site.client().post(f"/v1/jobs/{jobs[1]}/cancel")
    site.await_state(jobs[1], "cancelled")
    equal("nothing starts", site.job(jobs[0])["state"] in ("pending", "stopping"), True)
    contains("node", site.cli("erin", "node", check=0).stdout, "reboot")
    simctl(site, "reset", str(index))
    await_health(site, index, "ok")
    equal("the XID came once", verbs(site).count("node.xid"), 1)
    site.await_state(jobs[0], "running")


@tap.test(topology="2x H100-80GB", site=SITE, node_conf=CONF + f"\ncall_timeout_ms = {round(3000 * SLOW)}")
def hang(site):
    "a driver that hangs on one GPU costs that GPU, until it answers: then it is back by itself"
    control = site.sim / "control"
    control.write_text("nvmlDeviceGetFieldValues gpu=0 hang\n")
    site.until(lambda: gpu(site, 0)["fenced"], what="a fence")
    job, _ = site.run("true", sku="large")
    equal("elsewhere", job["state"], "completed")
    control.write_text("")
    site.until(lambda: not gpu(site, 0)["fenced"], what="the GPU back")


@tap.test(topology="1x H100-80GB", site=SITE, node_conf=CONF)
def no_program(site):
    "without a program in node.conf the answer is that it cannot be reset here, and people are asked"
    site.stop(site.node)
    conf = site.dir / "node.conf"
    conf.write_text(re.sub(r"(?m)^gpu_reset = .*$", "", conf.read_text()))
    site.start_node()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")
    simctl(site, "xid", "0", "48")
    await_health(site, 0, "quarantined")
    contains("why", (site.dir / "node.log").read_text(), "cannot reset: node.conf")


@tap.test(topology="2x H100-80GB", site=SITE, node_conf=CONF)
def cordon_and_drain(site):
    "a GPU is cordoned, drained now and let go again by verbs of operators; a node, too; it persists"
    node = gpus(site)[0]["node"]
    jobs = [site.submit(*WAIT, sku="large") for _ in range(2)]
    for job in jobs:
        site.await_state(job, "running")
    site.cli("alice", "cordon", "gpu0", check=4)
    site.until(lambda: any(leaf["verb"] == "gpu.cordon" for leaf in site.leaves()), what="the refusal's record")
    refused = next(leaf for leaf in site.leaves() if leaf["verb"] == "gpu.cordon")
    equal("the refusal names the GPU", (refused["res"], refused.get("dec", {}).get("allow", False), refused["obj"]["type"]), ("denied", False, "gpu"))
    site.cli("erin", "cordon", f"{node}/0", "--reason", "fan replaced", check=0)
    equal("held", (gpu(site, 0)["cordon"], gpu(site, 1)["cordon"]), ("cordon", "no"))
    contains("table", site.cli("erin", "gpu", check=0).stdout, "cordoned")
    equal("both run", [site.job(j)["state"] for j in jobs], ["running", "running"])
    waits = site.cli("erin", "drain", "gpu0", "--wait", "100ms")
    equal("still in use", waits.returncode, 7)
    moved = next(j for j in jobs if place(site, j)[0] == 0)
    done = site.cli("erin", "drain", "gpu0", "--now", "--wait", "10m", check=0)
    contains("said", done.stdout, "is empty")
    equal("queued again", (site.job(moved)["state"], site.job(moved)["restarts"]), ("pending", 1))
    contains("why", site.cli("erin", "why", str(moved), check=0).stdout, f"and {gpu(site, 0)['uuid']} could hold it, but is cordoned by an operator")
    site.stop(site.daemon)
    site.start_daemon()
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the node")
    equal("it persists", gpu(site, 0)["cordon"], "drain_now")
    said = site.cli("erin", "uncordon", gpu(site, 0)["uuid"], check=0).stdout
    contains("let go", said, "may get new work")
    site.await_state(moved, "running")
    site.cli("erin", "cordon", node, check=0)
    contains("its node is held", site.cli("erin", "uncordon", "gpu0", check=0).stdout, f"still gets no new work: cordoned; bulkhead uncordon {node} releases")
    equal("node", site.client().get("/v1/nodes")["items"][0]["cordon"], "cordon")
    contains("node list", site.cli("erin", "node", check=0).stdout, "cordon")
    site.cli("erin", "uncordon", node, check=0)
    seen = [leaf for leaf in site.leaves() if leaf.get("verb") == "gpu.cordon" and leaf.get("ev")]
    equal("records", len(seen), 7)
    shown = json.loads(site.cli("dave", "audit", "search", "--verb", "gpu.cordon", "--decision", "allow", "--all", "-o", "json", check=0).stdout)["items"]
    equal("each says what it did", [r["event"] for r in shown], [leaf["ev"] for leaf in seen])
    emptied = next(leaf["seq"] for leaf in seen if leaf["ev"]["cordon"].get("held") == "drain_now")
    contains("one in full", site.cli("dave", "audit", "show", str(emptied), check=0).stdout.lower(), "drain_now")
    equal("unknown", site.cli("erin", "cordon", "gpu7", check=5).returncode, 5)


if __name__ == "__main__":
    tap.main()
