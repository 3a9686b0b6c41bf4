#!/usr/bin/env python3
"""What jobs may do with datasets, found again by other means: second.py DATASET_CASES COUNT SEED

A second evaluator, written from docs/data.md; it shares no line with src/policy/datasets.c.  It
answers every question that dataset_cases prints, and each difference is a failure.  It is then
made wrong on purpose, in one rule at a time, and each time differences must appear.

A grant counts for a job when all that it says holds: its tenant is the job's or above it ("*": any),
its principal is the job's, its role is bound by name to the principal on the job's tenant or
above, the job has its label, the job is on one of its nodes or in one of its pools, and its end is
still to come.  Rights come from any of the grants that count.  Who lacks one is told the nearest
reason for the first that lacks: a grant that gives it elsewhere (3006), one that gave it (3005), one
that gives other rights (3004), one for another label (3003), none (3002)."""
import os
import collections
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report

MOUNT, READ, WRITE, COPY = 1, 2, 4, 8
NEVER = 2**64 - 1
FAULTS = {
    "grants of a tenant reach below": "below",
    "a name that begins like a tenant's is not below it": "prefix",
    "\"*\" is every tenant": "star",
    "a principal's grant is no other principal's": "principal",
    "a role must be held": "role",
    "a role is held on the job's tenant or above": "role_place",
    "a group's role does not count": "group",
    "the label must be there": "label",
    "of a label's choices each will do": "choices",
    "an end ends": "end",
    "at its very moment": "moment",
    "places count": "place",
    "a pool's nodes are its places": "pools",
    "the rest of the nodes has a pool, too": "rest",
    "an unknown place is any": "unknown",
    "grants add up": "add",
    "the first grant is named": "first",
    "write is named before read": "main",
    "it holds until the earliest of the latest ends": "until",
    "the first right that lacks is explained": "reason",
    "the nearest reason is said": "nearest",
    "all that lacks is named": "lacks",
    "to copy takes another place": "copy",
    "the same dataset is no other place": "same",
    "a working directory is one": "cwd",
    "unless a mount shows it": "shown",
    "a network is one": "network",
    "so is one of its tenant alone": "peers",
}
EVERY = 30000  # of the questions, how many each fault is tried on


def words(text):
    return [] if text in ("-", "") else text.split(",")


class Evaluator:
    def __init__(self, fault=""):
        self.fault = fault
        self.reset()

    def reset(self):
        self.bindings, self.pools, self.grants = [], [], []

    def take(self, f):
        if f[0] == "w":
            self.reset()
        elif f[0] == "b":
            self.bindings.append(f[1:])
        elif f[0] == "p":
            self.pools.append((f[1], words(f[2])))
        else:
            self.grants.append((*f[1:5], int(f[5]), int(f[6]), words(f[7]), words(f[8])))

    def within(self, above, tenant):
        if above == "*":
            return self.fault != "star"
        if self.fault == "prefix":
            return tenant.startswith(above)
        if self.fault == "below":
            return tenant == above
        return (tenant + "/").startswith(above + "/")

    def holds(self, role, who, tenant):
        if self.fault == "role":
            return True
        return any(r == role and (p == who or (self.fault == "group" and p == "-"))
                   and (self.fault == "role_place" or self.within(t, tenant)) for r, p, t in self.bindings)

    def pool_of(self, node):
        for name, nodes in self.pools:
            if node in nodes:
                return name
        rest = [name for name, nodes in self.pools if "all" in nodes]
        return rest[-1] if rest and self.fault != "rest" else None

    def labelled(self, wanted, labels):
        if labels is None or self.fault == "label":
            return True
        key, equals, values = wanted.partition("=")
        given = [l.partition("=") for l in labels]
        choices = values.split("|")[:1] if self.fault == "choices" else values.split("|")
        return any(k == key and (not equals or v in choices) for k, _, v in given)

    def there(self, node, nodes, pools):
        if self.fault == "place" or not (nodes or pools):
            return True
        if node == "-":
            return self.fault != "unknown"
        return node in nodes or (self.fault != "pools" and self.pool_of(node) in pools)

    def is_for(self, grant, tenant, who):
        return ((grant[0] == "-" or self.within(grant[0], tenant))
                and (grant[1] in ("-", who) or self.fault == "principal")
                and (grant[2] == "-" or self.holds(grant[2], who, tenant)))

    def reason(self, grant, right, tenant, who, labels, node, now):
        """0 when the grant gives the right, else how near it comes."""
        _, _, _, label, may, until, nodes, pools = grant
        if not self.is_for(grant, tenant, who):
            return 3002
        if label != "-" and not self.labelled(label, labels):
            return 3003
        if not may & right:
            return 3004
        if self.fault != "end" and (until < now if self.fault == "moment" else until <= now):
            return 3005
        return 0 if self.there(node, nodes, pools) else 3006

    def one(self, right, *job):
        """(given by which first, until when) or (None, (reason, grant))"""
        reasons = [self.reason(g, right, *job) for g in self.grants]
        giving = [i for i, r in enumerate(reasons) if r == 0]
        if giving:
            until = max(self.grants[i][5] for i in giving)
            return (giving[-1] if self.fault == "first" else giving[0]), until
        near = max(reasons, default=3002)
        if self.fault == "nearest":
            near = min(reasons, default=3002)
        return None, (near, reasons.index(near) if near != 3002 else 0)

    def check(self, rights, *job):
        """(allow, rule, grant, lacks, until)"""
        wanted = [r for r in (MOUNT, READ, WRITE, COPY) if rights & r]
        found = {r: self.one(r, *job) for r in wanted}
        lacking = [r for r in wanted if found[r][0] is None]
        if self.fault == "add" and not lacking and not any(
                all(self.reason(g, r, *job) == 0 for r in wanted) for g in self.grants):
            lacking = wanted
            return 0, 3004, 0, rights, 0
        if lacking:
            rule, grant = found[lacking[-1 if self.fault == "reason" else 0]][1]
            return 0, rule, grant, lacking[0] if self.fault == "lacks" else sum(lacking), 0
        order = (MOUNT, READ, WRITE, COPY) if self.fault == "main" else (WRITE, READ, MOUNT, COPY)
        grant = found[next(r for r in order if r in found)][0]
        untils = [until for _, until in found.values()]
        return 1, 3100 + grant, grant, 0, max(untils) if self.fault == "until" else min(untils)

    def wanted(self, cwd, mounts, network):
        name, _, write = mounts[0]
        rights = MOUNT | READ | (WRITE if write == "1" else 0)
        sinks = [m for m in mounts if m[2] == "1" and (m[0] != name or self.fault == "same" and m is not mounts[0])]
        folders = [m for m in mounts if m[0].startswith("/")]
        shown = self.fault != "shown" and any(
            m[1] in ("-", m[0]) and (cwd + "/").startswith(m[0].rstrip("/") + "/") for m in folders)
        if cwd not in ("-", "/tmp", "/") and not shown and self.fault != "cwd":
            sinks.append(cwd)
        if network != "none" and self.fault != "network" and (network != "tenant" or self.fault != "peers"):
            sinks.append(network)
        return rights | (COPY if sinks and self.fault != "copy" else 0)

    def answer(self, f):
        """(what it is, what was said)"""
        if f[0] == "j":
            return self.wanted(f[1], [m.split(",") for m in f[2].split(";")], f[3]), int(f[4])
        if f[0] == "n":
            return any(self.is_for(g, f[1], f[2]) for g in self.grants), f[3] == "1"
        labels = None if f[3] == "-" else words(f[3])
        if f[0] == "q":
            return self.check(int(f[5]), f[1], f[2], labels, f[4], int(f[6])), tuple(map(int, f[7:12]))
        found = {r: self.one(r, f[1], f[2], labels, f[4], int(f[5])) for r in (MOUNT, READ, WRITE, COPY)}
        given = {r: until for r, (grant, until) in found.items() if grant is not None}
        return (sum(given), max(given.values(), default=0)), (int(f[6]), int(f[7]))


def main():
    program, count, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    truth, wrong = Evaluator(), [(sentence, Evaluator(fault)) for sentence, fault in FAULTS.items()]
    asked = different = 0
    rules, noticed = collections.Counter(), collections.Counter()
    with subprocess.Popen([program, str(count), seed], stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            fields = line.rstrip("\n").split("\t")
            if fields[0] in "wbpg":
                for evaluator in [truth] + ([e for _, e in wrong] if asked < EVERY else []):
                    evaluator.take(fields)
                continue
            asked += 1
            mine, told = truth.answer(fields)
            if mine != told:
                different += 1
                if different <= 10:
                    print(f"# {line.rstrip()}: should be {mine}; grants {truth.grants}, bindings {truth.bindings}, pools {truth.pools}")
            if fields[0] == "q":
                rules[told[1]] += 1
            if asked <= EVERY:
                noticed.update(sentence for sentence, evaluator in wrong if evaluator.answer(fields)[0] != told)
    good = [(f"{count} questions were asked", child.returncode == 0 and asked == count),
            ("both evaluators agree on every one", different == 0),
            ("every reason was said, and six places of grants", {3002, 3003, 3004, 3005, 3006, *range(3100, 3106)} == set(rules))]
    good += [(f"it would be noticed if not: {sentence}", noticed[sentence] > 0) for sentence in FAULTS]
    report = Report(len(good)).rows(good)
    allowed = sum(n for rule, n in rules.items() if rule >= 3100)
    print(f"# {asked} questions, {different} differences; of checks {allowed / max(1, sum(rules.values())):.0%} allowed")
    return report.close()


sys.exit(main())
