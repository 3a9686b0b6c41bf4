#!/usr/bin/env python3
"""What a site file changes: shown before, in the answer, in the record and afterwards; and what stays of what it removes."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import Refused
from tap import contains, equal

ONE = "1x H100-80GB"
BATCH = "acme/vision/batch"
KINGMAKER = tap.SITE.replace("bindings:\n", 'bindings:\n  - {role: admin, principal: bob, tenant: "*"}\n')
LINE = "bindings[role=admin,principal=bob,tenant=*]: added"
WITHOUT = "\n".join(line for line in tap.SITE.splitlines() if "vision/batch" not in line)


def put(site, name, text):
    path = site.dir / name
    path.write_text(text)
    return str(path)


def number(text):
    return int(re.search(r"revision (\d+)", text).group(1))


@tap.test(topology=ONE)
def an_administrator_of_everything(site):
    "a binding that makes somebody administrator of everything is shown by every command that could hide it"
    file = put(site, "kingmaker.yaml", KINGMAKER)
    contains("dry run", site.cli("erin", "apply", "--dry-run", "-f", file, check=0).stdout,
             LINE + "\n1 change; nothing was changed\n")
    contains("whatif", site.cli("erin", "whatif", "apply", "-f", file, check=0).stdout, LINE + "\n1 changes of the site file\n")
    said = site.cli("erin", "apply", "-f", file, check=0).stdout
    contains("apply", said, LINE + "\n1 change; revision ")
    record = number(said)
    contains("the record", site.cli("dave", "audit", "show", str(record), check=0).stdout, LINE)
    leaf = next(leaf for leaf in site.leaves() if leaf["seq"] == record)
    equal("its verb", leaf["verb"], "site.apply")
    assert "bob" not in str(leaf) and "admin" not in str(leaf), leaf
    equal("another's is not shown", site.cli("alice", "audit", "show", str(record)).returncode, 5)
    contains("again", site.cli("erin", "apply", "-f", file, check=0).stdout, f"0 changes; revision {record}\n")
    site.cli(None, "audit", "verify", "--vkey", str(site.dir / "state/audit.vkey"), check=0)


@tap.test(topology=ONE)
def lists(site):
    "-o json and -o yaml of a list have every key that the API's document says it has, one page or all"
    lists = (("site history", "/v1/site/revisions"), ("audit search", "/v1/records"), ("audit search --all", "/v1/records"),
             ("audit tail --limit 2", "/v1/records"), ("ps", "/v1/jobs"), ("get gpus", "/v1/gpus"), ("get nodes", "/v1/nodes"),
             ("get tenants", "/v1/tenants"), ("key list", "/v1/keys"), ("token list", "/v1/tokens"), ("layout get", "/v1/layouts"))
    for words, path in lists:
        said = site.cli(None, *words.split(), "-o", "json", check=0).stdout
        site.client().check_schema("GET", path, (200, "application/json", said))
        yaml = site.cli(None, *words.split(), "-o", "yaml", check=0).stdout
        equal(f"{words} -o yaml", re.findall(r"^(\w+):", yaml, re.M), list(json.loads(said)))


@tap.test(topology=ONE)
def history(site):
    "site history, diff and show tell which file was in force when, and what came between"
    first = site.client("erin").get("/v1/site/revisions")["present"]
    second = number(site.cli("erin", "apply", "-f", put(site, "two.yaml", KINGMAKER), check=0).stdout)
    third = number(site.cli("erin", "apply", "-f", put(site, "three.yaml", KINGMAKER.replace("128Mi", "64Mi")), check=0).stdout)
    rows = [line.split() for line in site.cli("erin", "site", "history", check=0).stdout.splitlines()[1:]]
    equal("newest first", [int(row[0]) for row in rows][:3], [third, second, first])
    equal("by whom", [row[2:] for row in rows[:2]], [["erin", "1"], ["erin", "1"]])
    equal("two steps", site.cli("erin", "site", "diff", str(first), str(third), check=0).stdout,
          LINE + "\nskus[small].memory: 128Mi -> 64Mi\n")
    equal("back", site.cli("erin", "site", "diff", str(third), str(second), check=0).stdout,
          "skus[small].memory: 64Mi -> 128Mi\n")
    equal("to the one in force", site.cli("erin", "site", "diff", str(second), check=0).stdout,
          "skus[small].memory: 128Mi -> 64Mi\n")
    old = put(site, "old.yaml", site.cli("erin", "site", "show", str(first), check=0).stdout)
    contains("fit for apply", site.cli("erin", "apply", "-f", old, check=0).stdout, "2 changes; revision ")
    equal("and the same again", site.cli("erin", "site", "diff", str(first), check=0).stdout, "")
    equal("for who may see the site file", site.cli("alice", "site", "history").returncode, 4)
    equal("none such", site.cli("erin", "site", "show", "999999").returncode, 5)


@tap.test(topology=ONE)
def two_editors(site):
    "of two editors who began with the same revision the second is told, with 409"
    begun = site.client("erin").get("/v1/site/revisions")["present"]
    site.cli("erin", "apply", "--revision", str(begun), "-f", put(site, "faster.yaml", KINGMAKER), check=0)
    slower = put(site, "slower.yaml", tap.SITE.replace("128Mi", "64Mi"))
    refused = site.cli("erin", "apply", "--revision", str(begun), "-f", slower, check=3).stderr
    contains("who was faster", refused, "by erin, not ")
    contains("what to do", refused, "site diff")
    try:
        site.apply(tap.SITE, query=f"?revision={begun}")
        raise AssertionError("not refused")
    except Refused as error:
        equal("status", error.status, 409)
    contains("nothing was lost", site.cli("erin", "site", "show", check=0).stdout, "128Mi")


def usage(site):
    """By tenant: own and with all below, in both dimensions; and the tenants' sum."""
    answer = site.client().get("/v1/usage")
    keys = ("compute_part_ns", "memory_part_ns")
    rows = {i["tenant"]: (tuple(int(i[k]) for k in keys), tuple(int(i["with_below"][k]) for k in keys)) for i in answer["items"]}
    sums = answer["sums"]
    for k, key in enumerate(keys):
        equal(f"rows add up: {key}", sum(own[k] for own, _ in rows.values()), int(sums["tenants"][key]))
        equal(f"and with idle and unusable: {key}",
              sum(int(sums[s][key]) for s in ("tenants", "idle", "unusable", "unheard")), int(sums["physical"][key]))
    return rows


def no_less(what, before, after):
    for tenant, (own, below) in before.items():
        for was, now in zip(own + below, after.get(tenant, ((0, 0), (0, 0)))[0] + after.get(tenant, ((0, 0), (0, 0)))[1]):
            assert now >= was, f"{what}: {tenant} used {was}, now {now}"


@tap.test(topology=ONE)
def usage_stays(site):
    "what a tenant used outlives it, is its again when it is declared again, and is part of what those above it used"
    site.run("sleep", "0.3", client=site.client("alice"))
    first = usage(site)
    assert first[BATCH][0] > (0, 0), first
    equal("rolled up", first["acme/vision"], ((0, 0), first[BATCH][1]))
    equal("and up", first["acme"][1], first[BATCH][1])
    file = put(site, "without.yaml", WITHOUT)
    contains("asked for twice", site.cli("erin", "apply", "-f", file, check=3).stderr, f"tenants[{BATCH}]: 0.0")
    contains("listed", site.cli("erin", "apply", "--dry-run", "-f", file, check=0).stdout, "; this needs --prune; nothing was changed")
    pruned = site.cli("erin", "apply", "--prune", "-f", file, check=0).stdout
    contains("said", pruned, f"removes tenants[{BATCH}]: 0.0")
    contains("recorded", site.cli("dave", "audit", "show", str(number(pruned)), check=0).stdout, f"removed tenants[{BATCH}]: 0.0")
    second = usage(site)
    no_less("removed", first, second)
    equal("its row", second[BATCH], first[BATCH])
    table = site.cli("erin", "usage", check=0).stdout
    contains("for people", next(line for line in table.splitlines() if line.startswith(BATCH)), "yes")
    site.kill(site.daemon)
    site.start_daemon()
    no_less("after a restart", second, usage(site))
    site.apply(tap.SITE)
    no_less("declared again", second, usage(site))
    site.until(lambda: site.client().get("/v1/status")["nodes"], what="the node")
    site.run("sleep", "0.2", client=site.client("alice"))
    third = usage(site)
    no_less("and goes on", second, third)
    assert third[BATCH][0] > second[BATCH][0], third


if __name__ == "__main__":
    tap.main()
