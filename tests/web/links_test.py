#!/usr/bin/env python3
"""Does every page of panels name its command, does each panel have its JSON, and does what a cell names
lead to its page?  Reads the golden pages of the views' test.  Speaks TAP.

    links_test.py GOLDEN-FOLDER
"""
import html.parser
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report

COLUMNS = ("Job", "Tenant", "Node", "GPU")  # whose cells are names of what has a page
PAGELESS = re.compile(r"unavailable|^the site$")
GPU = re.compile(r"GPU-[0-9a-f]{8}")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.panels, self.json, self.cells = [], set(), []  # cells: column, text in links, text beside them
        self.command = False
        self.columns, self.cell, self.head, self.depth, self.at = [], None, None, 0, 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "section" and "panel" in given.get("class", ""):
            self.panels.append(given["id"])
        if tag == "a":
            self.depth += 1
            self.json.update(re.findall(r"[?&]json=([\w-]+)", given.get("href", "")))
        if tag == "table":
            self.columns = []
        if tag == "tr":
            self.at = 0
        if tag == "th":
            self.head = ""
        if tag in ("td", "dd"):
            column = self.columns[self.at] if tag == "td" and self.at < len(self.columns) else ""
            self.cell = [column, "", ""]
            self.at += int(given.get("colspan", 1))

    def handle_endtag(self, tag):
        if tag == "a":
            self.depth -= 1
        if tag == "th" and self.head is not None:
            self.columns.append(self.head)
            self.head = None
        if tag in ("td", "dd") and self.cell:
            self.cells.append(self.cell)
            self.cell = None

    def handle_data(self, text):
        self.command |= text.lstrip().startswith("bulkhead ")
        if self.head is not None:
            self.head += text
        if self.cell:
            self.cell[1 if self.depth else 2] += text


def gaps(page):
    """What of it leads nowhere."""
    if not page.command:
        yield "no command"
    for panel in page.panels:
        if panel not in page.json:
            yield f"panel {panel} has no JSON"
    for column, linked, beside in page.cells:
        if GPU.search(beside):
            yield f"a GPU without a link: {beside.strip()!r}"
        if column in COLUMNS and beside.strip() and not linked and not PAGELESS.search(beside.strip()):
            yield f"{column} without a link: {beside.strip()!r}"


def main():
    pages = sorted(pathlib.Path(sys.argv[1]).glob("view_*.html"))
    assert pages, f"no page in {sys.argv[1]}"
    report = Report(len(pages))
    for path in pages:
        page = Page(path.read_text())
        found = list(gaps(page)) + ([] if page.panels else ["no panel"])
        report.line(not found, path.stem, found)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
