#!/usr/bin/env python3
"""Does web/style.css keep what docs/design.md says?  Colors, their contrasts (WCAG 2.2) and states.  Speaks TAP.

    design_test.py SHEET PAGE"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report

TEXTS = ("ink", "faint", "accent", "bad", "good", "warn")
EDGES = ("faint", "accent", "bad", "good", "warn")
HUES = [f"t{i}" for i in range(8)]


def schemes(sheet):
    """{name: value} of :root, as it is and as dark has it."""
    light, dark = {}, {}
    for is_dark, block in re.findall(r"(@media [^{]*dark[^{]*\{\s*)?:root \{(.*?)\}", sheet, re.S):
        (dark if is_dark else light).update(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    return {"light": light, "dark": {**light, **dark}}


def luminance(color):
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def too_weak(colors, pairs, least):
    return [f"--{a} on --{b}: {contrast(colors[a], colors[b]):.2f}" for a, b in pairs if contrast(colors[a], colors[b]) < least]


def marks(sheet):
    """{state: (mark, color)} of the sheet; None is every other state."""
    found = {}
    for selectors, body in re.findall(r"^((?:\.state[\w.]*::before(?:,\s*)?)+) \{(.*?)\}", sheet, re.M):
        mark = chr(int(re.search(r'content: "\\([0-9A-F]+)', body)[1], 16))
        color = re.search(r"color: var\((--\w+)\)", body)
        for state in re.findall(r"\.state(?:\.(\w+))?::before", selectors):
            found[state or None] = (mark, color[1] if color else "--ink")
    return found


def declared_marks(text):
    found = {}
    for states, mark, color in re.findall(r"^\| ([^|`]+) \| (\S) \| `(--\w+)` \|$", text, re.M):
        for state in [None] if states.startswith("all others") else states.split(", "):
            found[state] = (mark, color)
    return found


def main():
    sheet, text = (pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[1:3])
    report, rest = Report(), re.sub(r":root \{.*?\}", "", sheet, flags=re.S)
    for scheme, colors in schemes(sheet).items():
        texts = [(a, b) for a in TEXTS for b in ("paper", "sunk")] + [("ink", hue) for hue in HUES] + [("on-accent", "accent")]
        edges = [(a, b) for a in EDGES for b in ("paper", "sunk", "board")]
        report.line(not too_weak(colors, texts, 4.5), f"{scheme}: text is at least 4.5:1", too_weak(colors, texts, 4.5))
        report.line(not too_weak(colors, edges, 3), f"{scheme}: edges and bars are at least 3:1", too_weak(colors, edges, 3))
        least = min(contrast(colors[a], colors[b]) for a, b in texts)
        report.line(scheme == "dark" or f"{least:.2f}:1" in text, "the least contrast is what the page says", f"{least:.2f}")
    rows = {name: values for name, *values in re.findall(r"^\| `--([\w-]+)` \|[^|]*\| (#\w{6}) \| (#\w{6}) \|$", text, re.M)}
    both = [schemes(sheet)[scheme] for scheme in ("light", "dark")]
    named = {name: [colors[name] for colors in both] for name in both[0] if name not in HUES}
    report.line(rows == named, "the page names the colors that the sheet has", [f"{k}: {named.get(k)} {rows.get(k)}" for k in {*rows, *named} if named.get(k) != rows.get(k)])
    literal = [hit for hit in re.findall(r"#[0-9a-f]{3,8}\b", rest) if hit != "#ffffff"]  # paper below a QR code
    report.line(not literal, "no color by its value outside :root", literal)
    unknown = set(re.findall(r"var\(--([\w-]+)\)", sheet)) - set(both[0])
    report.line(not unknown, "each name that is used is declared", sorted(unknown))
    there, said = marks(sheet), declared_marks(text)
    report.line(there == said, "states have the marks and colors that the page says", [f"{k}: {there.get(k)} {said.get(k)}" for k in {*there, *said} if there.get(k) != said.get(k)])
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
