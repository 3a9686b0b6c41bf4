#!/usr/bin/env python3
"""What is said of metrics is what there is: tables/metrics.tbl, docs/metrics.md and the golden text
agree, and the reader of tests/metrics/exposition.py refuses what the formats do not allow."""
import sys
import pathlib
import re

import exposition

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'^BH_METRIC\((\w+), +"([^"]*)", +(\w+), +"([^"]*)", +(\w+), +(BH_DEVICE_LABELS(?: "[^"]*")?|"[^"]*"), +"([^"]*)"\)$', re.M)
DEVICE = re.compile(r'define BH_DEVICE_LABELS[\s\\\\]*"([^"]*)"')
HEAD = "# HELP a b\n# TYPE a gauge\n"
OPEN = "# HELP a b\n# TYPE a counter\n"
WRONG = [("no newline", HEAD + "a 1", False), ("empty line", HEAD + "\na 1\n", False), ("no type", "# HELP a b\na 1\n", False),
         ("no help", "# TYPE a gauge\na 1\n", False), ("unknown type", "# HELP a b\n# TYPE a thing\na 1\n", False),
         ("open label", HEAD + 'a{b="1} 1\n', False), ("bare label", HEAD + "a{b=1} 1\n", False), ("label twice", HEAD + 'a{b="1",b="2"} 1\n', False),
         ("comma at the end", HEAD + 'a{b="1",} 1\n', False), ("bad escape", HEAD + 'a{b="\\t"} 1\n', False),
         ("raw newline", HEAD + 'a{b="1\n2"} 1\n', False), ("no number", HEAD + "a\n", False), ("text", HEAD + "a one\n", False),
         ("twice", HEAD + "a 1\na 2\n", False), ("another's", HEAD + "b 1\n", False), ("apart", HEAD + "a 1\n# HELP b c\n# TYPE b gauge\nb 1\n# HELP a b\n", False),
         ("no samples", HEAD, False), ("counter below zero", "# HELP a b\n# TYPE a counter\na -1\n", False),
         ("no EOF", OPEN + "a_total 1\n", True), ("behind EOF", OPEN + "a_total 1\n# EOF\n# EOF\n", True), ("EOF in text", HEAD + "a 1\n# EOF\n", False),
         ("no _total", OPEN + "a 1\n# EOF\n", True), ("unit", OPEN + "# UNIT a bytes\na_total 1\n# EOF\n", True),
         ("help's quote", '# HELP a "b"\n# TYPE a gauge\na 1\n# EOF\n', True),
         ("buckets", '# HELP a b\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n', False),
         ("last bucket", '# HELP a b\n# TYPE a histogram\na_bucket{le="1"} 2\na_sum 1\na_count 2\n', False)]
RIGHT = [("text", HEAD + 'a{b="\\"\\\\\\n",c="}"} 1.5e3\n', False), ("open", OPEN + "a_total 1\n# EOF\n", True),
         ("info", "# HELP a b\n# TYPE a info\na_info{v=\"1\"} 1\n# EOF\n", True)]
results = []


def check(sentence, bad):
    results.append((sentence, not bad, bad))


def accepted(text, open_metrics):
    try:
        exposition.read(text, open_metrics)
    except exposition.Wrong:
        return False
    return True


def shown(text):
    """Labels as the page has them: those of devices stand in a table of their own there."""
    words = text.replace('"', "").split()
    return " ".join("device" if word == "BH_DEVICE_LABELS" else f"`{word}`" for word in words)


def main():
    table = (ROOT / "tables/metrics.tbl").read_text()
    rows = ROW.findall(table)
    check("every row of the table is read", [] if len(rows) == table.count("\nBH_METRIC(") else [len(rows)])
    check("the reader refuses what is wrong", [name for name, text, of in WRONG if accepted(text, of)])
    check("and takes what is right", [name for name, text, of in RIGHT if not accepted(text, of)])
    families, _ = exposition.read((ROOT / "src/api/metrics/metrics_golden.txt").read_text())
    types = {"GAUGE": "gauge", "COUNTER": "counter", "HISTOGRAM": "histogram", "INFO": "gauge"}
    wanted = {name: (types[kind], text) for _, name, kind, _, _, _, text in rows}
    check("the golden text has the table's families", [n for n, f in families.items() if wanted.get(n) != (f["TYPE"], f["HELP"])])
    check("in the table's order", [] if list(families) == [n for n in wanted if n in families] else list(families))
    check("all but those that need more than a fixture", sorted(set(wanted) - set(families) - {"bulkhead_audit_checkpoint_age_seconds"}))
    device = DEVICE.search((ROOT / "src/api/metrics/exposition.h").read_text()).group(1)
    labels = {name: text.replace("BH_DEVICE_LABELS", device).replace('"', "").split() for _, name, _, _, _, text, _ in rows}
    check("with its labels, in order", [n for n, f in families.items() for _, given, _ in f["samples"]
                                        if n != "bulkhead_commit_seconds" and list(given) != [x for x in labels[n] if x in given]])
    page = (ROOT / "docs/metrics.md").read_text()
    lines = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*?) \| ([^|]*?) \|$", page, re.M)
    said = [(name, kind.lower(), shown(text), what) for _, name, kind, _, _, text, what in rows]
    check("docs/metrics.md says the same of each", [row[0] for row in set(said) ^ set(lines)])
    described = re.findall(r"^\| `(\w+)` \| [^|]* \|$", page.split("## Devices")[1].split("\n## ")[0], re.M)
    check("and of each label of devices", [] if described == device.split() else [described])
    return Report(len(results)).rows(results).close()


sys.exit(main())
