#!/usr/bin/env python3
"""Are the pages fit to be used by everybody, and free of what content policy forbids?
Reads src/web/golden/*.html.  Speaks TAP.

    pages_test.py FOLDER
"""
import pathlib
import sys
from html.parser import HTMLParser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report

VOID = {"input", "img", "link", "meta"}
FIELDS = {"text", "password", "search"}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.faults, self.texts = [], [], [], {}
        self.feed(text)
        self.close()
        if self.open:
            self.faults.append(f"never closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        if len(names) != len(set(names)):
            self.faults.append(f"<{tag}> has an attribute twice")
        form = next((e for e in reversed(self.open) if e["tag"] == "form"), None)
        picture = any(e["tag"] == "svg" for e in self.open)  # a <title> in it is a shape's
        element = {"tag": f"svg:{tag}" if picture else tag, "form": form, "text": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1]["tag"] not in (tag, f"svg:{tag}"):
            self.faults.append(f"</{tag}> closes nothing")
        else:
            self.open.pop()

    def handle_data(self, text):
        for element in self.open:
            element["text"] += text

    def all(self, tag):
        return [e for e in self.elements if e["tag"] == tag]


def frame(page):
    "one title, one main, one first heading, a language, a viewport"
    for tag in ("title", "main", "h1", "html"):
        if len(page.all(tag)) != 1:
            yield f"{len(page.all(tag))} <{tag}>"
    if not page.all("html")[0].get("lang"):
        yield "no language"
    if not any(e.get("name") == "viewport" for e in page.all("meta")):
        yield "no viewport"
    if not page.all("title")[0]["text"].startswith(page.all("h1")[0]["text"]):
        yield "title and heading differ"
    levels = [int(e["tag"][1]) for e in page.elements if e["tag"] in ("h1", "h2", "h3")]
    if any(after > before + 1 for before, after in zip(levels, levels[1:])):
        yield f"headings jump: {levels}"


def labels(page):
    "each field has one label, each id is one element's, each picture a description"
    ids = [e["id"] for e in page.elements if e.get("id")]
    if len(ids) != len(set(ids)):
        yield f"an id twice: {ids}"
    for field in page.all("input"):
        if field["type"] in FIELDS and sum(e.get("for") == field.get("id") for e in page.all("label")) != 1:
            yield f"field {field.get('name')} without a label"
        if field["type"] in FIELDS and not field.get("autocomplete"):
            yield f"field {field.get('name')} does not say what browsers may fill in"
    for field in page.all("select") + page.all("textarea") + [e for e in page.all("input") if e["type"] == "checkbox"]:
        if sum(e.get("for") == field.get("id") for e in page.all("label")) != 1:
            yield f"field {field.get('id')} without a label"
    for element in page.elements:
        if element.get("aria-describedby", ids[0] if ids else "") not in ids + [""]:
            yield f"described by {element['aria-describedby']}, which is nothing"
    for picture in page.all("img"):
        if not picture.get("alt"):
            yield "a picture without description"
    for button in page.all("button"):
        if not (button["text"].strip() or button.get("aria-label")):
            yield "a button that says nothing"
    names = [(b.get("aria-label") or b["text"]) for b in page.all("button")]
    if len(names) != len(set(names)):
        yield f"two buttons of one name: {names}"
    if sum("autofocus" in e for e in page.elements) > 1:
        yield "several fields want to be first"


def forms(page):
    "each form goes here, with one token where it is posted and no name twice"
    for form in page.all("form"):
        names = [e["name"] for tag in ("input", "select", "textarea") for e in page.all(tag) if e["form"] is form]
        search = form["method"] == "get" and form.get("role") == "search"
        if not (search or form["method"] == "post") or not form["action"].startswith("/") or form["action"].startswith("//"):
            yield f"form {form['action']}"
        if names.count("csrf") != (0 if search else 1) or len(names) != len(set(names)):
            yield f"form {form['action']} has fields {names}"


def policy(page):
    "no script, style or address but our own"
    for element in page.elements:
        for name, value in element.items():
            if name.startswith("on") or name == "style":
                yield f"<{element['tag']} {name}>"
            away = element["tag"] == "a" and name == "href" and value.startswith("https://") and element.get("rel") == "noreferrer"
            if name in ("href", "src") and not away and not value.startswith(("/", "data:image/svg+xml;base64,")):
                yield f"{name}={value}"
    for script in page.all("script"):
        if script["text"] or not script.get("src", "").startswith("/assets/"):
            yield "a script within the page"
    for tag in ("style", "iframe", "object", "base"):
        if page.all(tag):
            yield f"<{tag}>"


def main():
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.html"))
    rules = [frame, labels, forms, policy]
    report = Report(len(files) * len(rules))
    for file in files:
        page = Page(file.read_text(encoding="utf-8"))
        for rule in rules:
            faults = page.faults + list(rule(page))
            report.line(not faults, f"{file.stem}: {rule.__doc__}", faults)
    return report.close() or not files


if __name__ == "__main__":
    sys.exit(main())
