#!/usr/bin/env python3
"""The boards and rules that are shipped: what they ask for is in tables/metrics.tbl, each alert has its page,
and promtool finds the rules right: packaging/grafana, packaging/prometheus, docs/alerts."""
import pathlib
import re
import shutil
import subprocess
import sys

import boards

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging/prometheus/bulkhead-rules.yml"
PAGES = ROOT / "docs/alerts"
URL = "file:///usr/share/doc/bulkhead/alerts/"
results = []


def check(sentence, bad, skip=""):
    results.append((sentence, not bad, bad, skip))


def known(names):
    table = (ROOT / "tables/metrics.tbl").read_text()
    there = set(re.findall(r'^BH_METRIC\(\w+, +"(\w+)"', table, re.M))
    return sorted(name for name in names if re.sub(r"_(bucket|sum|count)$", "", name) not in there and name not in there)


def promtool(*arguments):
    """What it complains about."""
    done = subprocess.run(["promtool", *arguments], cwd=ROOT, capture_output=True, text=True)
    return [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()


def check_boards():
    for path in sorted((ROOT / "packaging/grafana").glob("*.json")):
        board = boards.read(path)
        asked = [expression for _, targets in boards.panels(board) for expression in targets]
        asked += [boards.query_of(variable) for variable in board["templating"]["list"]]
        check(f"{path.name} asks for what there is", known(set().union(*(boards.names_in(text) for text in asked))))
        titles = [title for title, _ in boards.panels(board)]
        check(f"{path.name} has each title and place once", [t for t in titles if titles.count(t) > 1] or overlaps(board))


def overlaps(board):
    places = [panel["gridPos"] for panel in board["panels"]]
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    return [] if len(cells) == len(set(cells)) else ["overlapping panels"]


def check_alerts():
    text = RULES.read_text()
    alerts = re.findall(r"^ +- alert: (\w+)$", text, re.M)
    pages = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    check("each alert has a page, and each page an alert", sorted(set(alerts) ^ pages))
    check("each names its page", [] if re.findall(r'runbook_url: "(.*)"', text) == [f"{URL}{name}.md" for name in alerts] else ["runbook_url"])
    index = re.findall(r"^\| \[(\w+)\]", (PAGES / "README.md").read_text(), re.M)
    check("the index has all", [] if index == alerts else index)
    expressions = dict(re.findall(r"- alert: (\w+)\n +expr: \|-\n +(.*)\n", text))
    squeezed = {name: re.sub(r"\s+", " ", (PAGES / f"{name}.md").read_text()) for name in alerts}
    check("each page has the alert's expression", [name for name in alerts if expressions[name] not in squeezed[name]])
    check("rules ask for what there is", known(boards.names_in(re.sub(r"record: \S+", "", text).replace("build_info for", ""))))
    tested = (ROOT / "tests/metrics/rules.yml").read_text()
    check("each alert is tested", [name for name in alerts if f"alertname: {name}\n" not in tested])


def main():
    check_boards()
    check_alerts()
    missing = "" if shutil.which("promtool") else "promtool is not installed"
    check("promtool takes the rules", [] if missing else promtool("check", "rules", str(RULES)), missing)
    check("alerts fire for what they are for", [] if missing else promtool("test", "rules", "tests/metrics/rules.yml"), missing)
    return Report(len(results)).rows(results).close()


sys.exit(main())
