#!/usr/bin/env python3
"""The second verifier's verdicts of src/audit/verdicts.txt, which says how it is written.  TAP on
standard output.  src/cli/verify_rows_test.c judges the same cases with the first verifier.

usage: verify_audit_verdicts_test.py VERDICTS
"""
import pathlib
import re
import sys

import verify_audit as v

CASES_AT_LEAST = 150


def parts_of(path):
    """(logs by name, cases): a case is its first line, its lines and its verdict; of a line alone that is whether it is good."""
    logs, cases, into, wanted = {}, [], None, None
    for line in path.read_text(encoding="utf-8").split("\n"):
        word, _, rest = line.partition(" ")
        if into is not None and line:
            (wanted if word == ">" else into).append(rest if word == ">" else line)
        elif word in ("log", "case"):
            into, wanted = [], []
            logs.update({rest: into} if word == "log" else {})
            cases += [(line, into, wanted)] if word == "case" else []
        elif word in ("good", "bad"):
            cases.append((line, [rest], word == "good"))
        elif line and word != "#":
            raise ValueError(f"no case: {line}")
        else:
            into = None
    return logs, cases


def sorted_lines(lines, logs):
    """(leaves, rows by their tables) of a case."""
    leaves, rows = [], {table: [] for table in v.TABLES}
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "with":
            leaves += sorted_lines(logs[rest], logs)[0]
        elif word in ("record", "pruned"):
            leaves.append(rest.encode() if word == "record" else None)
        else:
            rows[word].append(rest)
    return leaves, rows


def judged(lines, logs):
    """The verdict, in the words of the file."""
    leaves, rows = sorted_lines(lines, logs)
    claims = v.Claims()
    try:
        v.check_records(leaves, claims)
        v.compare_export(lambda name: "".join(row + "\n" for row in rows[name]).encode(), claims)
    except v.Missing:
        return ["missing records"]
    except v.Bad as wrong:
        fault = re.match("record ([0-9]+): |([a-z]+): a row is malformed", str(wrong))
        return [str(wrong) if not fault else f"bad record {fault[1]}" if fault[1] else f"malformed {fault[2]}"]
    counts = [f"{table}: " + ", ".join(f"{number} {what}" for what, number in claims.counts[table].items() if number)
              for table in v.TABLES if table in claims.counts]
    return sorted(claims.differing) + counts


def main():
    logs, cases = parts_of(pathlib.Path(sys.argv[1]))
    for number, (what, lines, wanted) in enumerate(cases, 1):
        found = judged(lines, logs)
        good = found == wanted if isinstance(wanted, list) else (not found[0].startswith(("bad", "malformed")) if found else True) == wanted
        print(f"{'ok' if good else 'not ok'} {number} - {what[:120]}" + ("" if good else f"\n# found {found}"))
    print(f"{'ok' if len(cases) >= CASES_AT_LEAST else 'not ok'} {len(cases) + 1} - all of them\n1..{len(cases) + 1}")


if __name__ == "__main__":
    main()
