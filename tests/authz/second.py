#!/usr/bin/env python3
"""The authoriser's answers, found again by other means: second.py AUTHZ_CASES COUNT SEED

This is a second evaluator, written from the rules in src/policy/authz.h and reading
tables/roles.tbl by itself; it shares no line with the first.  It answers every question
that authz_cases prints, and each difference is a failure.  It is then made wrong on
purpose, in one rule at a time, and each time differences must appear: so the questions
reach every rule.

The rules: a verb that is "" is open (1001).  A token does what its scopes name and no
more (1002).  Local root does everything (1000).  Whoever is not known, or was removed,
does nothing (0).  Otherwise the lowest rule of tables/roles.tbl decides that gives the verb
to a role bound to the caller, or to one of the caller's groups (the Unix ones, or those of the
provider), on the site, on the object's tenant or on one above it; for the site itself only on
the site.  If there is none, a session with the glass broken holds what admin holds (1006),
before the end of that time; else it is denied (0).  What was granted so is denied (1005) where
the verb asks for a person who is there: of a session, when less than the level was shown, or
too long ago, or in the future; of a token, when it has no scopes."""
import collections
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'^BH_GRANT\((\d+),\s*([A-Z]+),\s*"([^"]+)"\)', re.M)
FAULTS = {
    "a tenant's role reaches what is below": "below",
    "a role elsewhere grants nothing": "elsewhere",
    "the site is above all tenants": "site",
    "a tenant's role grants nothing on the site": "tenant_on_site",
    "groups count": "groups",
    "a group's role is not everybody's": "everybody",
    "scopes narrow": "scopes",
    "scopes are whole words": "prefixes",
    "root holds all": "root",
    "root's token is as narrow as another": "root_scopes",
    "removed principals hold nothing": "removed",
    "the lowest rule is named": "lowest",
    "open verbs are open": "open",
    "a provider's groups count": "provider",
    "a provider's groups are not Unix groups": "mixed",
    "verbs ask for somebody who is there": "absent",
    "longer ago is not just now": "age",
    "a code is no passkey": "level",
    "what is to come was not shown": "future",
    "a token names what asks for a person": "token",
    "the first row of a verb counts": "first",
    "broken glass gives what admin holds": "glass",
    "broken glass ends": "mended",
    "broken glass is the session's": "glass_token",
}
EVERY = 50000  # of the questions, how many each fault is tried on


def read_grants():
    """{verb: {role: rule}}, and each role's verbs in the table's order."""
    by_verb, by_role = collections.defaultdict(dict), collections.defaultdict(list)
    for number, role, verb in ROW.findall((ROOT / "tables/roles.tbl").read_text()):
        by_verb[verb][role.lower()] = int(number)
        by_role[role.lower()].append(verb)
    return by_verb, by_role


class Evaluator:
    def __init__(self, fault=""):
        self.fault = fault
        self.by_verb, self.by_role = read_grants()
        self.reset()

    def reset(self):
        self.parents, self.present, self.bindings, self.asks = {}, set(), [], {}
        self.reach = {}  # a tenant and all above it, by tenant

    def line_of(self, tenant):
        """The tenant and all that stand above it; 0 is the site, above everything."""
        if tenant not in self.reach:
            line, at = {tenant}, tenant
            while self.fault != "below" and self.parents.get(at, 0) not in line | {0}:
                at = self.parents[at]
                line.add(at)
            if self.fault != "site":
                line.add(0)
            if self.fault == "elsewhere":
                line |= set(self.parents)
            if tenant == 0 and self.fault == "tenant_on_site":
                line |= set(self.parents)
            self.reach[tenant] = line
        return self.reach[tenant]

    def settled(self, who, verb):
        principal, root, _, scopes, _, _ = who
        if verb == "" and self.fault != "open":
            return 1, 1001
        if self.fault == "root_scopes" and root:
            return 1, 1000
        if scopes is not None and self.fault != "scopes":
            named = any(word.startswith(verb) for word in scopes) if self.fault == "prefixes" else verb in scopes
            if not named:
                return 0, 1002
        if root and self.fault != "root":
            return 1, 1000
        if principal not in self.present:
            return 0, 0
        return None

    def holds(self, who, binding):
        _, principal, gid, _, group = binding
        if principal:
            return principal == who[0]
        if group and self.fault != "mixed":
            return group in who[4] and self.fault != "provider"
        if self.fault == "groups":
            return False
        return gid in who[2] or self.fault == "everybody"

    def decide(self, who, verb, tenant):
        """(allowed, rule); tenant None: anywhere."""
        known = self.settled(who, verb)
        if known:
            return known
        by_role = self.by_verb.get(verb, {})
        line = None if tenant is None else self.line_of(tenant)
        rules = [by_role[b[0]] for b in self.bindings
                 if b[0] in by_role and (line is None or b[3] in line) and self.holds(who, b)]
        if rules:
            rule = rules[0] if self.fault == "lowest" else min(rules)
        elif self.broken(who[5]) and "admin" in by_role:
            rule = 1006
        else:
            return 0, 0
        return (1, rule) if self.is_there(who, verb) else (0, 1005)

    def broken(self, presence):
        kind, _, _, now, until = presence
        if self.fault == "glass":
            return False
        return (kind == 2 or self.fault == "glass_token") and (now < until or (self.fault == "mended" and until))

    def is_there(self, who, verb):
        kind, level, shown, now, _ = who[5]
        if kind == 0 or verb not in self.asks or self.fault == "absent":
            return True
        wanted, within = self.asks[verb][-1 if self.fault == "first" else 0]
        if wanted == 0:
            return True
        if kind == 1:
            return who[3] is not None or self.fault == "token"
        return ((level >= wanted or (self.fault == "level" and level)) and (shown <= now or self.fault == "future")
                and (now - shown <= within or self.fault == "age"))

    def visible(self, who, verb):
        if self.decide(who, verb, 0)[0]:
            return 1, list(self.parents)
        return 0, [tenant for tenant in self.parents if self.decide(who, verb, tenant)[0]]

    def not_held(self, who, role, tenant, words):
        wanted = [verb for verb in self.by_role[role] if not words or verb in words.split()]
        return next((verb for verb in wanted if not self.decide(who, verb, tenant)[0]), "")

    def take(self, f):
        """A line of the world."""
        if f[0] == "w":
            self.reset()
        elif f[0] == "t":
            self.parents[int(f[1])] = int(f[2])
        elif f[0] == "p":
            if f[2] == "0" or self.fault == "removed":
                self.present.add(int(f[1]))
        elif f[0] == "s":
            self.asks.setdefault(f[1], []).append((int(f[2]), int(f[3])))
        else:
            self.bindings.append((f[1], int(f[2]), int(f[3]), int(f[4]), int(f[5])))

    def answer(self, f):
        """(what it is, what was said)"""
        who = (int(f[1]), f[2] == "1", set(map(int, f[3].split(","))) if f[3] else set(),
               None if f[4] == "-" else set(f[4][1:].split()), set(map(int, f[5].split(","))) if f[5] else set(),
               tuple(map(int, f[6].split(","))))
        if f[0] == "c":
            return self.decide(who, f[7], int(f[8])), (int(f[9]), int(f[10]))
        if f[0] == "a":
            return self.decide(who, f[7], None), (int(f[8]), int(f[9]))
        if f[0] == "v":
            return self.visible(who, f[7]), (int(f[8]), list(map(int, f[9].split(","))) if f[9] else [])
        return self.not_held(who, f[7], int(f[8]), f[9]), f[10]


def main():
    program, count, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    truth, wrong = Evaluator(), [(sentence, Evaluator(fault)) for sentence, fault in FAULTS.items()]
    asked = different = allowed = 0
    rules, noticed, worlds = collections.Counter(), collections.Counter(), []
    with subprocess.Popen([program, str(count), seed], stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            fields = line.rstrip("\n").split("\t")
            if fields[0] in "wtpbs":
                truth.take(fields)
                for _, evaluator in wrong if asked < EVERY else []:
                    evaluator.take(fields)
                continue
            asked += 1
            mine, said = truth.answer(fields)
            if mine != said:
                different += 1
                if different <= 10:
                    print(f"# {line.rstrip()}: should be {mine}; bindings {truth.bindings}, parents {truth.parents}")
            if fields[0] == "c":
                allowed += said[0]
                rules[said[1]] += 1
            if asked <= EVERY:
                noticed.update(sentence for sentence, evaluator in wrong if evaluator.answer(fields)[0] != said)
    every_rule = {0, 1000, 1001, 1002, 1005, 1006} | {rule for roles in truth.by_verb.values() for rule in roles.values()}
    good = [(f"{count} questions were asked", child.returncode == 0 and asked == count),
            ("both evaluators agree on every one", different == 0),
            ("every rule of the table decided one", every_rule <= set(rules))]
    good += [(f"it would be noticed if not: {sentence}", noticed[sentence] > 0) for sentence in FAULTS]
    report = Report(len(good)).rows(good)
    print(f"# {asked} questions, {different} differences; of checks {allowed / max(1, sum(rules.values())):.0%} allowed")
    return report.close()


sys.exit(main())
