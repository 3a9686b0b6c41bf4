#!/usr/bin/env python3
"""What references.py finds in a small tree: each row is a text, and what is said of it.  Prints TAP."""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import references  # noqa: E402  (the path comes first)
from report import Report  # noqa: E402

BASE = {
    "docs/adr/0001-first.md": "# 0001: First\n",
    "docs/page.md": "# Page\n\n## A section\n",
    "src/base/buf.c": "int x;\n",
    "src/base/meson.build": "test('base/buf', x)\n",
}
CASES = [
    ("a decision that exists", {"a.md": "ADR 0001\n"}, None),
    ("a decision that does not", {"a.md": "ADR 0002\n"}, "ADR 0002: no such decision"),
    ("the second of two", {"src/base/a.c": "/* ADR 0001, 0003 */\n"}, "ADR 0003: no such decision"),
    ("a decision's file", {"a.md": "docs/adr/0009-none.md\n"}, "docs/adr/0009-none.md: no such decision"),
    ("two of one number", {"docs/adr/0001-second.md": "# 0001: Second\n"}, "the number is also"),
    ("a title of another number", {"docs/adr/0002-second.md": "# 0003: Second\n"}, "the title is not `# 0002: ...`"),
    ("a link", {"a.md": "[x](docs/page.md#a-section)\n"}, None),
    ("a link that leads nowhere", {"a.md": "[x](docs/none.md)\n"}, "docs/none.md: the link leads nowhere"),
    ("an anchor that is not there", {"a.md": "[x](docs/page.md#b)\n"}, "the page has no such anchor"),
    ("a link in a block of code", {"a.md": "```\n[x](none.md)\n```\n"}, None),
    ("a section by its title", {"src/base/a.c": '/* (docs/page.md, "A section") */\n'}, None),
    ("a section that is not there", {"src/base/a.c": '/* (docs/page.md, "B section") */\n'}, "the page has no such section"),
    ("paths in backticks", {"a.md": "`src/base/buf.c` `base/buf` `src/base/` `src/base/*.c`\n"}, None),
    ("a path that is not there", {"a.md": "`src/base/bux`\n"}, "src/base/bux: no such path"),
    ("a file by its name", {"a.md": "`buf.c` `bux.c`\n"}, "bux.c: no file has that name"),
    ("an identifier", {"src/base/a.c": "int bh_a;\n", "a.md": "`bh_a` `bh_b`\n"}, "bh_b: no source has that identifier"),
    ("where it moved", {"a.md": "`src/model/buf.c`\n"}, "there is src/base/buf.c"),
    ("a file that a comment names", {"src/base/a.c": "/* src/model/buf.c */\n"}, "no such file"),
    ("notes outside", {"src/base/a.c": "/* DESIGN section 4 */\n"}, "cannot follow"),
    ("an allowed one", {"a.md": "ADR 0002\n", references.ALLOW: "a.md | ADR 0002 | a reason\n"}, None),
    ("an exception without a reason", {references.ALLOW: "a.md | ADR 0002 |\n"}, "write `path | text | reason`"),
    ("an exception that nothing needs", {references.ALLOW: "a.md | ADR 0002 | a reason\n"}, "no longer needed"),
]


def found(files):
    with tempfile.TemporaryDirectory(prefix="bulkhead-references-") as folder:
        for name, text in {**BASE, **files}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return references.check(pathlib.Path(folder))


def main():
    report = Report(len(CASES))
    for name, files, wanted in CASES:
        wrong = found(files)
        report.line(not wrong if wanted is None else len(wrong) == 1 and wanted in wrong[0], name, wrong)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
