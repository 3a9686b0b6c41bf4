#!/usr/bin/env python3
"""Cases of src/audit/verdicts.txt changed at random, judged by both verifiers.  TAP on standard output.

usage: verify_audit_mutants_test.py VERIFY_ROWS_TEST VERDICTS ROUNDS [SEED]

VERIFY_ROWS_TEST is the C test that judges such a file.  A round is 400 cases.  What it finds
belongs into the list, with the verdict that is right.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import verify_audit_verdicts_test as verdicts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/lib"))
from report import Report

CASES = 400
VALUES = [0, 1, -1, 2, 4, 5, 7, 9, 10**6, 2**31, 2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**63 - 1, 2**63, 2**64, "", "0", "1", "01", "4", "x", "1002", "1006",
          "alice", "mallory", "(erased)", "principal", "tenant", "exited", "ab" * 32, "0" * 64, "a" * 23, "a" * 24, str(2**64 - 1), str(2**64), True, False, None,
          [], {}, [1], "\u00e9", "a\nb", "\x7f", "\x01"]
MEMBERS = "erased_by key name kind id row status started ended cause text tenant count order orders actor dec boot sealed do ev obj res req submit token v ts seq more".split()
LETTERS = '{}[]",:0123456789 \\\t.eE-+uxtnf/\u00e9\x7f'
STANDS_BEHIND = ("record", "names", "jobs", "texts", "documents", "keys")


def changed_value(dice, value):
    """Another value in the place of one within, or a member more or less."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key, what = dice.choice(list(value)), dice.random()
        if what < 0.15:
            return {other: value[other] for other in value if other != key}
        if what < 0.25:
            return {**value, dice.choice(MEMBERS): dice.choice(VALUES)}
        return {**value, key: changed_value(dice, value[key])}
    if isinstance(value, list) and value and dice.random() < 0.8:
        at = dice.randrange(len(value))
        return value[:at] + [changed_value(dice, value[at])] + value[at + 1:]
    return dice.choice(VALUES)


def changed_text(dice, text):
    at, what, letter = dice.randrange(len(text) + 1), dice.random(), dice.choice(LETTERS)
    return text[:at] + (letter if what < 0.7 else "") + text[at + (what >= 0.35):]


def changed_line(dice, line):
    word, _, rest = line.partition(" ")
    try:
        if rest and dice.random() < 0.7:
            value = changed_value(dice, json.loads(rest))
            return word + " " + json.dumps(value, ensure_ascii=dice.random() < 0.2, sort_keys=dice.random() < 0.9, separators=(",", ":"))
    except ValueError:
        pass
    return word + " " + changed_text(dice, rest)


def whole(lines, logs):
    return [each for line in lines for each in (logs[line[5:]] if line.startswith("with ") else [line])]


def mutant(dice, cases, logs):
    """The lines of a case with one to three of them changed, of which some stand twice; None: it cannot be written down."""
    lines = whole(dice.choice(cases)[1], logs)
    places = [at for at, line in enumerate(lines) if line.partition(" ")[0] in STANDS_BEHIND]
    for at in (dice.choice(places) for _ in range(dice.choice((1, 1, 2, 3)) if places else 0)):
        lines[at] = changed_line(dice, lines[at])
    if places and dice.random() < 0.1:
        at = dice.choice(places)
        lines.insert(at, lines[at])
    return None if any(letter in "\0\n" or "\ud800" <= letter <= "\udfff" for line in lines for letter in line) else lines


def write_round(path, dice, cases, logs):
    count, out = 0, []
    while count < CASES:
        lines = mutant(dice, cases, logs)
        if lines is None:
            continue
        count += 1
        out += [f"case {count}", *lines, *(f"> {line}" for line in verdicts.judged(lines, {}, None)), ""]
    path.write_text("\n".join(out), encoding="utf-8")


def main():
    program, rounds, seed = sys.argv[1], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1
    logs, cases = verdicts.parts_of(pathlib.Path(sys.argv[2]))
    cases = [case for case in cases if not any(line.startswith("sql ") for line in whole(case[1], logs))]
    report = Report(rounds)
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "mutants"
        for number in range(seed, seed + rounds):
            write_round(path, random.Random(number), cases, logs)
            done = subprocess.run([program, path], capture_output=True, text=True)
            report.line(done.returncode == 0, f"seed {number}", [line[:300] for line in done.stderr.splitlines()[:40]])
    sys.exit(report.close())


if __name__ == "__main__":
    main()
