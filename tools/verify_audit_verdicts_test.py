#!/usr/bin/env python3
"""The second verifier's verdicts of src/audit/verdicts.txt, which says how it is written.  TAP on
standard output.  src/cli/verifier/verify_rows_test.c judges the same cases with the first verifier.

usage: verify_audit_verdicts_test.py VERDICTS VERIFY_ROWS_TEST

The second is that program, which makes an empty store.
"""
import contextlib
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import verify_audit as v

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/lib"))
from report import Report

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
    """(leaves, rows by their tables, statements that fill a store) of a case."""
    leaves, rows, statements = [], {table: [] for table in v.TABLES}, []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "with":
            more, _, filled = sorted_lines(logs[rest], logs)
            leaves, statements = leaves + more, statements + filled
        elif word == "sql":
            statements.append(rest)
        elif word in ("record", "pruned"):
            leaves.append(rest.encode() if word == "record" else None)
        else:
            rows[word].append(rest)
    return leaves, rows, statements


def compare_filled(empty, statements, claims):
    """Of a store that the statements fill: what is wrong with it as a whole, or None."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(empty, f"{folder}/store.db")
        with contextlib.closing(sqlite3.connect(f"{folder}/store.db", isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = OFF")
            for statement in statements:
                database.execute(statement)
            try:
                v.compare_store(database, claims)
            except ValueError as wrong:
                return str(wrong)
    return None


def judged(lines, logs, empty):
    """The verdict, in the words of the file."""
    leaves, rows, statements = sorted_lines(lines, logs)
    claims = v.Claims()
    try:
        v.check_records(leaves, claims)
        if statements:
            wrong = compare_filled(empty, statements, claims)
            if wrong:
                return [wrong]
        else:
            v.compare_export(lambda name: "".join(row + "\n" for row in rows[name]).encode(), claims)
    except v.Missing:
        return ["missing records"]
    except v.Bad as wrong:
        fault = re.match("record ([0-9]+): |([a-z]+): a row is malformed", str(wrong))
        return [str(wrong) if not fault else f"bad record {fault[1]}" if fault[1] else f"malformed {fault[2]}"]
    counts = [f"{table}: " + ", ".join(f"{number} {what}" for what, number in claims.counts[table].items() if number)
              for table in (*v.TABLES, "tokens") if table in claims.counts]
    return sorted(claims.differing) + counts


def main():
    logs, cases = parts_of(pathlib.Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        empty = f"{folder}/empty.db"
        subprocess.run([sys.argv[2], "--store", empty], check=True, stdout=subprocess.DEVNULL)
        judge(logs, cases, empty)


def judge(logs, cases, empty):
    report = Report(len(cases) + 1)
    for what, lines, wanted in cases:
        found = judged(lines, logs, empty)
        good = found == wanted if isinstance(wanted, list) else (not found[0].startswith(("bad", "malformed")) if found else True) == wanted
        report.line(good, what[:120], f"found {found}")
    report.line(len(cases) >= CASES_AT_LEAST, "all of them")
    sys.exit(report.close())


if __name__ == "__main__":
    main()
