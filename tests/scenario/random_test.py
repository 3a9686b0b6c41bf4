#!/usr/bin/env python3
"""Random scenarios: people, nodes and crashes in any order, and nothing breaks.

random_test.py BULKHEAD-REPLAY [SCENARIOS [FIRST-SEED [STATEMENTS]]]

A scenario that breaks an invariant is written to the end of the output: it is ready to
be made smaller and kept.
"""
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report, note

SITE = """\
scenario "seed {seed}"
node n1 2x H100-80GB 1x A30-24GB
node n2 2x H100-80GB
sku small C H100-80GB=1g.10gb A30-24GB=1g.6gb
sku half C H100-80GB=3g.40gb
sku big C H100-80GB=4g.40gb A30-24GB=2g.12gb
sku whole B H100-80GB=whole A30-24GB=whole
tenant acme organization
tenant acme/vision department guarantee 1
tenant acme/vision/train project
tenant acme/vision/serve project sku half 2
tenant acme/speech department limit 2
tenant acme/speech/train project
tenant other organization
tenant other/lab department dedicated-nodes
"""
TENANTS = ["acme/vision/train", "acme/vision/serve", "acme/speech/serve", "acme/speech/train", "other",
           "other/lab"]
SKUS = ["small", "small", "half", "big", "whole"]
EFFECTS = ["carve", "destroy", "start", "suspend", "resume", "stop"]
SECONDS = 60  # a scenario takes a tenth of one
GPUS = ["n1/0", "n1/1", "n1/2", "n2/0", "n2/1"]


class Script:
    """Writes statements; remembers only which jobs there may be."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.jobs = []

    def pick(self, *choices):
        return self.dice.choice(choices)

    def job(self):
        return self.dice.choice(self.jobs[-12:] or ["nobody"])

    def submit(self):
        self.jobs.append(f"j{len(self.jobs)}")
        line = f"try submit {self.jobs[-1]} {self.pick(*TENANTS)} {self.pick(*SKUS)}" \
               f" priority {self.pick('low', 'normal', 'high', 'urgent')}" \
               f" on-preempt {self.pick('suspend', 'suspend', 'requeue', 'checkpoint', 'never')}"
        if self.dice.random() < 0.25:
            line += f" count {self.dice.randint(1, 4)}"
        if self.dice.random() < 0.25:
            line += f" gang {self.dice.randint(1, 4)}"
        if self.dice.random() < 0.4:
            line += f" time-limit {self.dice.randint(1, 300)}s"
        if self.dice.random() < 0.2:
            line += f" deadline {self.dice.randint(1, 600)}s"
        if self.dice.random() < 0.2:
            line += f" grace {self.dice.randint(0, 30)}s user {self.dice.randint(1, 3)}"
        if self.dice.random() < 0.2:
            line += f" cpu {self.dice.randint(1, 8)} memory {self.dice.randint(1, 32)}Gi"
        return line + (" hold" if self.dice.random() < 0.05 else "")

    def boundary(self):
        return f"try change {self.pick(*TENANTS[:4])} boundary {self.pick('none', 'soft', 'hard', 'fortress')}"

    def tree(self):
        return self.pick("try move acme/vision/serve acme/speech", "try move acme/speech/serve acme/vision",
                         "try remove-tenant acme/speech/train\ntry tenant acme/speech/train project",
                         "try remove-tenant other/lab\ntry tenant other/lab department dedicated-nodes")

    def sku(self):
        return f"try sku small C H100-80GB={self.pick('1g.10gb', '1g.20gb', '2g.20gb')} A30-24GB=1g.6gb"

    def limit(self):
        return f"try change {self.pick(*TENANTS)} limit {self.pick('1', '1/2', '2', 'none')} " \
               f"guarantee {self.pick('0', '1/2', '1')}"

    def promise(self):
        return f"try change {self.pick(*TENANTS)} " + self.pick(
            f"min-runtime {self.dice.randint(0, 120)}s", f"weight {self.dice.randint(1, 300)}",
            f"user-limit {self.pick('0', '1/2', '2')}", f"lends {self.pick('0', '1/2', '1')}",
            f"budget {self.pick('day', 'week')} {self.pick('1/2', '4', 'none')} none")

    def settings(self):
        """How the site schedules, from now on."""
        return "try settings " + self.pick(
            f"order {self.pick('fair_tree', 'drf', 'fifo')}", f"backfill {self.pick('on', 'on', 'off')}",
            f"half-life {self.pick('1m', '1h', '7d', 'never')}", f"assumed-run {self.dice.randint(1, 900)}s",
            f"min-runtime {self.dice.randint(0, 60)}s")

    def whatif(self):
        return f"try whatif {self.pick(f'cancel {self.job()}', f'gpu {self.pick(*GPUS)} cordoned', self.submit()[4:])}"

    def gpu(self):
        change = self.pick("cordoned", "uncordoned", "lost", "mended", "mended", "managed", "unmanaged")
        return f"try gpu {self.pick(*GPUS)} {change}"

    def node(self):
        node = self.pick("n1", "n2")
        return f"node-down {node}\nadvance {self.dice.randint(0, 30)}s\n" \
               f"node-{self.pick('up', 'up', 'reboot')} {node}"

    def host(self):
        """A node turns out to have other cores and memory than was known."""
        return f"try host {self.pick('n1', 'n2')} cpu {self.dice.randint(2, 16)} memory {self.dice.randint(4, 64)}Gi"

    def daemon(self):
        return f"daemon-down\nadvance {self.dice.randint(0, 30)}s\n" \
               f"try finish {self.job()} {self.dice.randint(0, 1)}\ndaemon-up"

    def statement(self):
        rows = [
            (30, self.submit), (10, lambda: f"try cancel {self.job()}"),
            (20, lambda: f"try finish {self.job()} {self.dice.randint(0, 1)}"),
            (8, lambda: f"try finish {self.job()} member {self.dice.randint(0, 3)} {self.dice.randint(0, 1)}"),
            (30, lambda: f"advance {self.dice.randint(0, 40)}s"),
            (8, lambda: f"delay {self.pick(*EFFECTS)} {self.dice.randint(0, 20)}s"),
            (8, lambda: f"fail next {self.pick(*EFFECTS[:5])} times {self.dice.randint(1, 3)}"),
            (3, lambda: f"try release {self.job()}"), (3, lambda: f"try lose-partitions {self.job()}"),
            (4, lambda: "crash"), (3, self.daemon), (3, self.node), (5, self.gpu), (2, self.host),
            (3, self.boundary), (3, self.tree), (2, self.sku), (4, self.limit),
            (4, self.promise), (4, self.settings), (1, self.whatif),
        ]
        return self.dice.choices([make for _, make in rows], [weight for weight, _ in rows])[0]()


def scenario(seed, statements):
    script = Script(seed)
    return SITE.format(seed=seed) + "".join(script.statement() + "\n" for _ in range(statements))


def play(program, path):
    """Whether the scenario came true, and what was said of it."""
    try:
        done = subprocess.run([program, "scenario", path], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False, f"it does not come to rest in {SECONDS} s"
    return done.returncode == 0, done.stdout + done.stderr


def main():
    program = sys.argv[1]
    count, first, statements = (list(map(int, sys.argv[2:5])) + [20, 1, 150][len(sys.argv) - 2:])
    broken, report = None, Report(count)
    for number in range(1, count + 1):
        text = scenario(first + number - 1, statements)
        with tempfile.NamedTemporaryFile("w", suffix=".bh") as file:
            file.write(text)
            file.flush()
            well, said = play(program, file.name)
        if not report.line(well, f"seed {first + number - 1}", said.strip()):
            broken = broken or text
    if broken:
        note("the first that broke:\n" + broken)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
