#!/usr/bin/env python3
"""Datasets on a running site: what jobs may do with them, and what is recorded of it."""
import json
import os
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
import tap
from bulkhead import SLOW
from tap import contains, equal

ONE = "1x H100-80GB"
BATCH, ASR = "acme/vision/batch", "acme/speech/asr"
READERS = "{tenant: acme/vision, may: [mount, read]}"
NODE = {"topology": ONE, "node_conf": "mount_roots = /tmp"}


def datasets(site, imagenet=READERS, models="{tenant: acme/vision, may: [mount, read, write]}", more=""):
    """The tests' site with two folders of alice's: imagenet and models; and one that may be mounted by its path."""
    for name in ("imagenet", "models", "share"):
        place = site.dir / name
        place.mkdir(exist_ok=True)
        os.chown(place, 20001, 20001)
        (place / "note").write_text(f"note of {name}\n")
        os.chown(place / "note", 20001, 20001)
    site.apply(tap.SITE + f"""
mounts: [{{path: {site.dir}/share, tenant: acme, write: true}}]
datasets:
  - {{name: imagenet, path: {site.dir}/imagenet, tenant: acme/vision, grants: [{imagenet}]{more}}}
  - {{name: llama, kind: model, path: {site.dir}/models, tenant: acme/vision, grants: [{models}]}}
""")


def run(site, script, *mounts, person="alice", tenant=BATCH, check=0, more=()):
    asked = [word for mount in mounts for word in ("--mount", mount)]
    return site.cli(person, "run", "--tenant", tenant, "--sku", "small", *asked, *more, "--", "sh", "-c", script, check=check)


def found(site, *asked, person="dave"):
    """Records about datasets: (verb, who, allowed, rule)."""
    said = site.cli(person, "audit", "search", *asked, "-o", "json", check=0).stdout
    items = json.loads(said)
    items = items["items"] if isinstance(items, dict) else items
    return [(i["verb"], i.get("actor", {}).get("name"), i["decision"].get("allow", False), i["decision"].get("rule", 0)) for i in items]


@tap.test(**NODE)
def mounted(site):
    "a job mounts a dataset by its name, reads it, cannot write it, and each start is on record"
    datasets(site)
    said = run(site, "cat /datasets/imagenet/note; echo x > /datasets/imagenet/new || echo refused", "dataset=imagenet").stdout
    contains("read", said, "note of imagenet")
    contains("write", said, "refused")
    assert not (site.dir / "imagenet/new").exists()
    contains("elsewhere", run(site, "cat /d/note", "dataset=imagenet:/d").stdout, "note of imagenet")
    run(site, "echo weights > /datasets/llama/new", "dataset=llama::rw")
    equal("written", (site.dir / "models/new").read_text(), "weights\n")
    equal("records", found(site, "--object", "dataset/imagenet"), [("dataset.read", "alice", True, 3100)] * 2)
    equal("by number", found(site, "--object", "dataset/2"), [("dataset.write", "alice", True, 3100)])
    equal("no such", found(site, "--object", "dataset/nothing"), [])


@tap.test(**NODE)
def unseen(site):
    "an image's path does not tell where another tenant's dataset lies: one answer for it, what is above it, and any other"
    datasets(site)
    for command in (("submit", "--dry-run"), ("submit",), ("submit", "--grace", "11m"), ("submit", "--cpu", "100000"),
                    ("whatif", "submit")):
        heard = set()
        for path in (site.dir / "imagenet", site.dir / "imagenet/note", site.dir, site.dir / "imagenot", "/etc"):
            done = site.cli("bob", *command, "--tenant", ASR, "--sku", "small", "--image", f"dir:{path}", "--", "true")
            heard.add((done.returncode, done.stderr.replace(str(path), "PATH")))
        equal(f"{command}: {heard}", len(heard), 1)
        if command[-1] in ("--dry-run", "submit"):
            contains("says", heard.pop()[1], "image: PATH may not be used")


@tap.test(**NODE)
def shown(site):
    "get datasets shows what one may do and until when, and nothing of what one may not see"
    datasets(site, imagenet=READERS + ", {principal: bob, tenant: acme/speech, may: [mount, read], until: '2100-01-01T00:00:00Z'}")
    contains("bob's", site.cli("bob", "get", "datasets", check=0).stdout, "imagenet")
    said = json.loads(site.cli("bob", "get", "datasets", "-o", "json", check=0).stdout)
    items = said["items"] if isinstance(said, dict) else said
    equal("only what he is named for", [(i["name"], i["may"], i["until_ns"]) for i in items],
          [("imagenet", "mount, read", "4102444800000000000")])
    assert "declared" not in items[0] and "owner" not in items[0], items
    contains("an admin's", site.cli("erin", "get", "datasets", "-o", "wide", check=0).stdout, f"{site.dir}/models")
    contains("in full", site.cli("carol", "describe", "dataset", "llama", check=0).stdout, "acme/vision")
    site.cli("bob", "get", "dataset", "llama", check=5)


@tap.test(**NODE)
def refused(site):
    "without a grant, after its end, for writing or from another tenant it is refused, with what would help, and recorded"
    datasets(site, imagenet=READERS + ", {tenant: acme/speech, may: [mount, read], until: '2020-01-01T00:00:00Z'}")
    said = run(site, "true", "dataset=imagenet::rw", check=4).stderr
    contains("no right", said, "mounts[0]: imagenet: grants[0] gives mount, read, and no grant gives write")
    contains("what helps", said, "mount it read-only")
    said = run(site, "true", "dataset=imagenet", person="bob", tenant=ASR, check=4).stderr
    contains("ended", said, "imagenet: grants[1] gave mount, read until 2020-01-01T00:00:00Z")
    hidden = run(site, "true", "dataset=llama", person="bob", tenant=ASR, check=5).stderr
    none = run(site, "true", "dataset=llamb", person="bob", tenant=ASR, check=5).stderr
    equal("as if there were none", hidden.replace("llama", "llamb"), none)
    equal("of imagenet", found(site, "--object", "dataset/imagenet"),
          [("dataset.write", "alice", False, 3004), ("dataset.read", "bob", False, 3005)])
    equal("of llama", found(site, "--object", "dataset/llama"), [("dataset.read", "bob", False, 3002)])
    equal("bob's tenant sees no number of it", [r[3] for r in found(site, "--verb", "job.submit", "--tenant", ASR)], [3005, 3001])  # the third is as the second: counted with the next
    equal("his own records", found(site, "--object", "dataset", person="bob"), [])
    site.cli("bob", "whatif", "submit", "--tenant", ASR, "--sku", "small", "--mount", "dataset=llama", "--", "true", check=5)
    equal("jobs", site.client().get("/v1/jobs")["total"], 0)


@tap.test(**NODE)
def other_doors(site):
    "no path leads to a dataset: not its own, not one above, not an image, not a symbolic link"
    datasets(site)
    folder = site.dir / "imagenet"
    said = run(site, "true", str(folder), check=4).stderr
    contains("its path", said, "may not mount")
    contains("its name", said, "--mount dataset=imagenet")
    site.until(lambda: found(site, "--verb", "job.submit", "--tenant", BATCH, "--decision", "deny", person="alice"),
               what="her tenant has the record")
    run(site, "true", str(site.dir), check=4)
    run(site, "true", more=("--cwd", str(folder)), check=4)
    said = run(site, "true", more=("--image", f"dir:{site.dir}"), check=4).stderr
    contains("an image above it", said, "overlap")
    (site.dir / "share/link").symlink_to(folder)
    job, log = site.run("cat", f"{site.dir}/share/link/note", client=site.client("alice"),
                        mounts=[{"source": f"{site.dir}/share/link"}])
    equal("a link to it", (job["state"], job["cause"]), ("failed", "start_failed"))
    assert "note of imagenet" not in log, log
    contains("and from inside", run(site, f"cat {site.dir}/share/link/note || echo none", f"{site.dir}/share").stdout, "none")
    for mounts in (f"[{{path: {site.dir}, tenant: acme}}]", f"[{{path: {folder}/train, tenant: acme}}]"):
        path = site.dir / "wide.yaml"
        path.write_text(f"{tap.SITE}\nmounts: {mounts}\ndatasets: [{{name: imagenet, path: {folder}, tenant: acme}}]\n")
        contains("a site file that opens one", site.cli("erin", "apply", "-f", str(path), check=3).stderr, "overlap")
    (site.dir / "alias").symlink_to(folder)
    site.apply(tap.SITE + f"\ndatasets: [{{name: alias, path: {site.dir}/alias, tenant: acme, grants: [{{tenant: '*', may: [mount, read]}}]}}]\n")
    job, log = site.run("cat", "/datasets/alias/note", client=site.client("alice"), mounts=[{"dataset": "alias"}])
    equal("a dataset that is a link", job["state"], "failed")


@tap.test(**NODE)
def copied(site):
    "beside another place that can be written it takes the right to copy"
    datasets(site)
    share, out = f"{site.dir}/share:/out:rw", "cp /datasets/imagenet/note /out/copy"
    said = run(site, out, "dataset=imagenet", share, check=4).stderr
    contains("why", said, "imagenet: grants[0] gives mount, read, and no grant gives copy")
    contains("what helps", said, "leave out the other mounts for writing")
    run(site, out, "dataset=imagenet", "dataset=llama:/out:rw", check=4)
    run(site, "cat /out/note /datasets/imagenet/note", "dataset=imagenet", f"{site.dir}/share:/out")
    datasets(site, imagenet="{tenant: acme/vision, may: [mount, read, copy]}")
    run(site, out, "dataset=imagenet", share)
    equal("copied", (site.dir / "share/copy").read_text(), "note of imagenet\n")


@tap.test(**{**NODE, "node_conf": "mount_roots = /tmp\nnetworks = tenant\nnetwork_pool = 10.213.0.0/16"})
def sent(site):
    "with a network it takes the right to copy, in earnest, rehearsed, asked about and tested; without one it is lost"
    datasets(site)
    asked = ("--tenant", BATCH, "--sku", "small", "--network", "tenant", "--mount", "dataset=imagenet", "--", "true")
    for command in (("run",), ("submit", "--dry-run"), ("whatif", "submit")):
        said = site.cli("alice", *command, *asked, check=4).stderr
        contains("why", said, "mounts[0]: imagenet: grants[0] gives mount, read, and no grant gives copy")
        contains("what helps", said, "leave out --network tenant")
    copiers = "{tenant: acme/vision, may: [mount, read, copy]}"
    datasets(site, imagenet=copiers, more=", on_expiry: stop")
    alice = site.client("alice")
    job = site.submit("sleep", "600", client=alice, network="tenant", grace="1s", mounts=[{"dataset": "imagenet"}])
    site.await_state(job, "running")
    jobs = site.dir / "jobs.yaml"
    jobs.write_text(f"- {{args: [x], sku: small, tenant: {BATCH}, network: tenant, mounts: [{{dataset: imagenet}}]}}\n")
    site.cli("erin", "policy", "test", "--against", str(jobs), check=0)
    datasets(site, more=", on_expiry: stop")
    equal("stopped", site.await_state(job, "failed")["cause"], "dataset")
    contains("tested", site.cli("erin", "policy", "test", "--against", str(jobs), check=1).stdout, "no grant gives copy")
    equal("recorded", found(site, "--object", "dataset/imagenet", "--decision", "deny")[-1], ("dataset.read", "alice", False, 3004))


@tap.test(**NODE)
def taken_back(site):
    "a grant that is gone when a job would start ends it, and why says so; other jobs go on"
    datasets(site)
    alice = site.client("alice")
    first = site.submit("sleep", "600", sku="large", client=alice)
    site.await_state(first, "running")
    job = site.submit("cat", "/datasets/imagenet/note", sku="large", client=alice, mounts=[{"dataset": "imagenet"}])
    other = site.submit("true", sku="large", client=alice)
    datasets(site, imagenet="{tenant: acme/speech, may: [mount, read]}")
    equal("it still waits", site.job(job)["state"], "pending")
    site.cli("alice", "cancel", str(first), check=0)
    seen = site.await_state(job, "failed")
    equal("why", (seen["cause"], site.log(job)), ("dataset", ""))
    contains("in words", site.cli("alice", "why", str(job), check=0).stdout, "it has ended: failed (dataset): mounts[0]: no dataset imagenet that you may see")
    contains("to who may see it", site.cli("erin", "why", str(job), check=0).stdout, "mounts[0]: imagenet: no grant covers alice in acme/vision/batch")
    contains("in the list", site.cli("alice", "ps", "-A", check=0).stdout, "dataset")
    site.await_state(other, "completed")
    equal("recorded", found(site, "--object", "dataset/imagenet"), [("dataset.read", "alice", False, 3002)])
    equal("and its end", [r[0] for r in found(site, "--object", f"job/{job}", "--decision", "deny")], ["job.refuse"])


@tap.test(**NODE)
def expired(site):
    "a grant that ends while a job runs is recorded, and the job stopped where the dataset says so"
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2 + 4 * SLOW))
    datasets(site, imagenet=f"{{tenant: acme/vision, may: [mount, read], until: '{until}'}}", more=", on_expiry: stop",
             models=f"{{tenant: acme/vision, may: [mount, read], until: '{until}'}}")
    alice = site.client("alice")
    stopped, kept = (site.submit("sleep", "600", client=alice, grace="1s", mounts=[{"dataset": name}]) for name in ("imagenet", "llama"))
    for job in (stopped, kept):
        site.await_state(job, "running")
    equal("stopped", site.await_state(stopped, "failed")["cause"], "dataset")
    equal("kept", site.job(kept)["state"], "running")
    for name in ("imagenet", "llama"):
        equal(name, found(site, "--object", f"dataset/{name}"), [("dataset.read", "alice", True, 3100), ("dataset.read", "alice", False, 3005)])
    run(site, "true", "dataset=llama", check=4)


@tap.test(**NODE)
def tested(site):
    "policy test says which submissions the grants of another site file would deny"
    datasets(site)
    run(site, "true", "dataset=imagenet")
    run(site, "true")
    equal("none", site.cli("erin", "policy", "test", check=0).stdout, "0 of 2 submissions would be denied\n")
    path = site.dir / "tight.yaml"
    path.write_text(f"{tap.SITE}\ndatasets: [{{name: imagenet, path: {site.dir}/imagenet, tenant: acme}}]\n")
    said = site.cli("erin", "policy", "test", "-f", str(path), check=1).stdout
    contains("why", said, "mounts[0]: imagenet: no grant covers alice in acme/vision/batch")
    contains("how many", said, "1 of 2 submissions would be denied")
    path.write_text(f"policy: {{datasets: [none]}}\n{path.read_text()}")
    contains("and by the policy", site.cli("erin", "policy", "test", "-f", str(path), check=1).stdout,
             "policy.datasets of the site: imagenet is not allowed, only none")


@tap.test(**NODE)
def documented(site):
    "the example of docs/data.md does what the page says"
    page = (ROOT / "docs/data.md").read_text()
    blocks = dict(re.findall(r"<!-- (\S+) -->\n```\w*\n(.*?)```", page, re.S))
    for name in ("site.yaml", "jobs.yaml"):
        (site.dir / name).write_text(blocks[name])
    command, wanted = blocks["console"].split("\n", 1)
    words = [str(site.dir / w) if w in blocks else w for w in command.removeprefix("$ bulkhead ").split()]
    equal("said", site.cli("erin", *words, check=1).stdout, wanted)


tap.main()
