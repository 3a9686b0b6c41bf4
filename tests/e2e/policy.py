#!/usr/bin/env python3
"""Policies on a running site: denials, caps, what-if, `policy test`, and docs/policy.md's example."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
import tap
from tap import contains, equal

ONE = "1x H100-80GB"
BATCH = "acme/vision/batch"


def with_policy(site, policy, tenant=None):
    """The tests' site with a policy, of the site or of a tenant."""
    text = tap.SITE
    if tenant:
        return text.replace(f"{{name: {tenant}, ", f"{{name: {tenant}, policy: {{{policy}}}, ", 1)
    return f"policy: {{{policy}}}\n{text}"


def submit(site, *more, check=0):
    return site.cli("alice", "submit", "--tenant", BATCH, "--sku", "small", *more, "--", "true", check=check)


@tap.test(topology=ONE)
def denied(site):
    "a denied submission says by which entry and what to do, is recorded, and leaves no job"
    site.apply(with_policy(site, "require_time_limit: true", "acme/vision"))
    before = site.record_count()
    said = submit(site, check=4).stderr
    contains("why", said, "policy.require_time_limit of acme/vision: a job must have a time limit")
    contains("what to do", said, "--time-limit 2h")
    equal("records", site.record_count(), before + 1)
    equal("jobs", site.client().get("/v1/jobs")["total"], 0)
    submit(site, "--time-limit", "1m")
    said = site.cli("alice", "whatif", "submit", "--tenant", BATCH, "--sku", "small", "--", "true", check=4).stderr
    contains("what if", said, "policy.require_time_limit of acme/vision")
    submit(site, "--dry-run", check=4)


@tap.test(topology=ONE)
def labelled(site):
    "labels are asked for by name and value, and kept with the job"
    site.apply(with_policy(site, "labels: [team, 'env=dev|prod']"))
    contains("none", submit(site, check=4).stderr, "the label team")
    contains("another", submit(site, "-l", "team=a", "-l", "env=test", check=4).stderr, "the label env=dev|prod")
    submit(site, "-l", "team=a", "--label", "env=dev")
    equal("kept", site.job(1)["spec"]["labels"], ["team=a", "env=dev"])
    contains("malformed", submit(site, "-l", "team", check=3).stderr, "is not NAME=value")


@tap.test(topology=ONE)
def tested(site):
    "policy test: which recorded submissions another site file would deny, with status 1"
    submit(site)
    submit(site, "--time-limit", "1m")
    equal("none", site.cli("erin", "policy", "test", check=0).stdout, "0 of 2 submissions would be denied\n")
    path = pathlib.Path(site.dir) / "tight.yaml"
    path.write_text(with_policy(site, "require_time_limit: true"))
    said = site.cli("erin", "policy", "test", "-f", str(path), check=1).stdout
    assert re.search(r"job 1 \(acme/vision/batch, alice, 20\S+Z\): policy.require_time_limit of the site: ", said), said
    contains("how many", said, "1 of 2 submissions would be denied")
    answer = json.loads(site.cli("erin", "policy", "test", "-f", str(path), "-o", "json", check=1).stdout)
    equal("as JSON", [(i["job"], i["entry"], i["rule"], i["policy"]) for i in answer["items"]],
          [(1, "require_time_limit", 2014, "*")])
    site.cli("alice", "policy", "test", check=4)
    wide = pathlib.Path(site.dir) / "wide.yaml"
    wide.write_text("policy: {kinds: [batch]}\n" + tap.SITE.replace("{name: acme/vision, ", "{name: acme/vision, policy: {kinds: [service]}, "))
    contains("a file that would widen", site.cli("erin", "apply", "-f", str(wide), check=3).stderr,
             "tenants acme/vision policy: kinds: service is more than the policy above allows")


@tap.test(topology=ONE)
def documented(site):
    "the example of docs/policy.md does what the page says"
    page = (ROOT / "docs/policy.md").read_text()
    blocks = dict(re.findall(r"<!-- (\S+) -->\n```\w*\n(.*?)```", page, re.S))
    for name in ("site.yaml", "jobs.yaml"):
        (pathlib.Path(site.dir) / name).write_text(blocks[name])
    command, wanted = blocks["console"].split("\n", 1)
    words = [str(pathlib.Path(site.dir) / w) if w in blocks else w for w in command.removeprefix("$ bulkhead ").split()]
    equal("said", site.cli("erin", *words, check=1).stdout, wanted)


tap.main()
