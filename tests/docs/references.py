#!/usr/bin/env python3
"""Every reference in the repository's texts leads somewhere: references.py [ROOT].  Prints TAP.

What is checked, in every text file that git tracks:
- `ADR NNNN` and docs/adr/NNNN-*.md name a decision that exists; two decisions share no number.
- Links of .md files name a file that exists, and an anchor that it has.
- Paths, names of source files and identifiers bh_... in backticks in .md files exist, and files of the repository named anywhere, and docs/X.md, "Section".
- No text refers to what is outside of the repository: design notes, facts, shared folders, a tracker.

references.allow lists exceptions with a reason; an exception that nothing needs is a failure, too."""
import fnmatch
import functools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report

HERE = pathlib.Path(__file__).resolve().parent
ALLOW = "tests/docs/references.allow"
OWN = {"tests/docs/references.py", "tests/docs/references_test.py", ALLOW}
# Trees of text that describe other trees, or are input of tests.
FOREIGN = ("tests/fuzz/corpus/", "tools/tidy_test.py", "tools/tools_test.py", "CHANGELOG.md")
OUTSIDE = re.compile(r"\bDESIGN\b(?:\.md)?|\bSTYLE\.md|\bWORDS\.md|\.\./(?:facts|shared)\b"
                     r"|\b(?:issue [0-9]+|(?:first|second|third) issue(?:'s)?)\b")
DECISION = re.compile(r"\bADRs? ?((?:[0-9]{4})(?:(?:, | and |, and | to )[0-9]{4})*)")
DECISION_FILE = re.compile(r"docs/adr/([0-9]{4}[\w-]*(?:\.md)?)")
NAMED = re.compile(r"(?<![\w./${}@<>*-])((?:src|sim|lab|tests|tools|tables|bench|docs|include|packaging)"
                   r"/[\w./-]+\.(?:c|h|py|tbl|md|bh|txt|yaml|html))\b")
SECTION = re.compile(r'((?:docs/)?[a-z0-9_/-]+\.md),\s+(?:\*\s+)?"([A-Z][^"]{2,60})"')
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[A-Za-z0-9][\w-]*\.(?:c|h|py|tbl|bh)")
IDENTIFIER = re.compile(r"\b(?:bh|BH)_\w+")
PATH = re.compile(r"(?:\.?[\w-]+/)+[\w.*-]*")
ENDINGS = ("", ".c", ".h", ".py", ".tbl", "_test.c")


def tracked(root):
    """Paths that git tracks, or new ones that it does not ignore; without git every file of the sources."""
    done = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    paths = done.stdout.split("\n") if done.returncode == 0 else \
        [str(path.relative_to(root)) for path in root.rglob("*") if not str(path.relative_to(root)).startswith(("build", "stage", "."))]
    return sorted({path for path in paths if path and (root / path).is_file() and "__pycache__" not in path})


def slug(title):
    """The anchor that GitHub gives a heading."""
    title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def outside_code(text):
    """The text with its fenced blocks blank, line for line."""
    return re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S)


class Tree:
    def __init__(self, root):
        self.root = root
        self.paths = tracked(root)
        self.known = set(self.paths)
        self.folders = {str(parent) for path in self.paths for parent in pathlib.PurePath(path).parents} - {"."}
        self.tops = {folder for folder in self.folders if "/" not in folder}
        self.rooms = {folder.split("/")[1] for folder in self.folders if re.match(r"(src|sim|lab)/", folder)}
        self.decisions = {}
        for path in self.paths:
            if match := re.fullmatch(r"docs/adr/([0-9]{4})-.*\.md", path):
                self.decisions.setdefault(match[1], []).append(path)
        self.programs = set()
        for path in self.paths:
            if path.endswith("meson.build"):
                self.programs |= set(re.findall(r"'([\w./-]+)'", self.text(path)))

        self.names = {path.rpartition("/")[2] for path in self.paths}

    @functools.cached_property
    def identifiers(self):
        """Every bh_... of the sources and tables."""
        sources = [path for path in self.paths if path.endswith((".c", ".h", ".S", ".tbl", ".build"))]
        return {name for path in sources for name in IDENTIFIER.findall(self.text(path))}

    @functools.lru_cache(None)
    def text(self, path):
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return ""

    @functools.lru_cache(None)
    def titles(self, path):
        return [match[1] for match in re.finditer(r"^#+ (.+)$", outside_code(self.text(path)), re.M)]

    def anchors(self, path):
        found, seen = set(), {}
        for title in self.titles(path):
            anchor = slug(title)
            found.add(anchor if anchor not in seen else f"{anchor}-{seen[anchor]}")
            seen[anchor] = seen.get(anchor, 0) + 1
        return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', self.text(path)))

    def has(self, path):
        """Whether a path as texts write it exists: whole, without its ending, with *, or below src/, sim/ or lab/."""
        path = path.rstrip("/")
        for start in ("", "src/", "sim/", "lab/"):
            full = start + path
            if full in self.folders or any(full + ending in self.known for ending in ENDINGS):
                return True
            if "*" in full and any(fnmatch.fnmatchcase(name, full) for name in self.known | self.folders):
                return True
        return False

    def tests(self, name):
        """Whether a test has that name: whole in a meson.build, or as 'group/' + name."""
        group, _, last = name.rpartition("/")
        return name in self.programs or group + "/" in self.programs and last in self.programs

    def built(self, path):
        """Whether a path below build/ is a folder of the sources, or a program that some meson.build names."""
        rest = path.rstrip("/").removeprefix("build/")
        folder, _, name = rest.rpartition("/")
        return rest in self.folders or (not folder or folder in self.folders) and name.removesuffix(".so") in \
            {program.removesuffix(".so") for program in self.programs} | {"libnullcuda"}

    def moved(self, path):
        """Where files of that name are, as a hint."""
        name = path.rstrip("/").rpartition("/")[2]
        there = [known for known in self.paths if known.rpartition("/")[2].partition(".")[0] == name.partition(".")[0] and name]
        return f"; there is {there[0]}" if there else ""


def placeholder(path):
    """Whether a word of it is to be replaced, as NAME in tests/fuzz/corpus/NAME/."""
    return re.search(r"(?:^|/)[A-Z]{2,}(?:_test)?(?:/|\.\w+$|$)", path) is not None and not path.endswith("README.md")


def lines_of(text, pattern):
    """(number of the line, match) of each match."""
    for match in pattern.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match


def decisions(tree, path, text):
    for line, match in lines_of(text, DECISION):
        for number in re.findall("[0-9]{4}", match[1]):
            if number not in tree.decisions:
                yield line, f"ADR {number}", "no such decision"
    for line, match in lines_of(text, DECISION_FILE):
        named = match[1] if match[1].endswith(".md") else match[1] + "*.md"
        if not any(fnmatch.fnmatchcase(name, f"docs/adr/{named}") for name in tree.known):
            yield line, match[0], "no such decision"


def numbers(tree):
    for number, paths in sorted(tree.decisions.items()):
        if len(paths) > 1:
            yield paths[1], 1, number, f"the number is also {paths[0]}'s"
        for path in paths:
            if not tree.text(path).startswith(f"# {number}: "):
                yield path, 1, number, f"the title is not `# {number}: ...`"


def outside(_tree, _path, text):
    for line, match in lines_of(text, OUTSIDE):
        yield line, match[0], "a reader of the repository cannot follow it"


def named(tree, path, text):
    for line, match in lines_of(text, NAMED):
        if match[1] not in tree.known and str(pathlib.PurePath(path).parent / match[1]) not in tree.known \
                and not placeholder(match[1]):
            yield line, match[1], "no such file" + tree.moved(match[1])
    for line, match in lines_of(text, SECTION):
        page = match[1] if match[1] in tree.known else str(pathlib.PurePath(path).parent / match[1])
        if page in tree.known and match[2].split("\n")[0].strip() not in tree.titles(page) \
                and " ".join(re.sub(r"\n[ #*]*", " ", match[2]).split()) not in tree.titles(page):
            yield line, f'{match[1]}, "{" ".join(match[2].split())}"', "the page has no such section"


def links(tree, path, text):
    folder = pathlib.PurePath(path).parent
    for line, match in lines_of(outside_code(text), LINK):
        target, _, anchor = match[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        page = re.sub(r"[^/]+/\.\./", "", str(folder / target)) if target else path
        while "/../" in page:
            page = re.sub(r"[^/]+/\.\./", "", page, count=1)
        page = page.removeprefix("./")
        if page not in tree.known and page.rstrip("/") not in tree.folders:
            yield line, match[1], "the link leads nowhere" + tree.moved(target)
        elif anchor and page in tree.known and anchor not in tree.anchors(page):
            yield line, match[1], "the page has no such anchor"


def paths_in_code(tree, path, text):
    folder = str(pathlib.PurePath(path).parent)
    for line, match in lines_of(outside_code(text), CODE):
        for word in match[1].split():
            word = re.sub(r":[0-9]+$", "", word.strip(",;:()"))
            if word == match[1] and FILE.fullmatch(word) and word not in tree.names and not placeholder(word):
                yield line, word, "no file has that name"
            if IDENTIFIER.fullmatch(word) and word not in tree.identifiers and not word.endswith("_"):
                yield line, word, "no source has that identifier"
            if not PATH.fullmatch(word):
                continue
            first = word.split("/")[0]
            if placeholder(word) or word.startswith("build/meson-logs/"):
                continue
            if first == "build":
                good = tree.built(word)
            elif first in tree.tops or first in tree.rooms:
                good = tree.has(word) or tree.has(f"{folder}/{word}") or tree.tests(word)
            else:
                continue
            if not good:
                yield line, word, "no such path" + tree.moved(word)


def findings(tree):
    for path in tree.paths:
        if path in OWN or path.startswith(FOREIGN):
            continue
        text = tree.text(path)
        rules = [decisions, outside] + ([links, paths_in_code] if path.endswith(".md") else []) + [named]
        seen = set()
        for rule in rules:
            for line, name, why in rule(tree, path, text):
                if (line, name) not in seen:
                    yield path, line, name, why
                seen.add((line, name))
    yield from numbers(tree)


def allowed(root):
    """[(pattern of paths, text, reason)]"""
    rows = []
    if (root / ALLOW).exists():
        for line in (root / ALLOW).read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                rows.append(tuple(part.strip() for part in line.split("|")))
    return rows


def check(root):
    """Lines that say what is wrong."""
    tree, rows, used, wrong = Tree(root), allowed(root), set(), []
    wrong += [f"{ALLOW}: write `path | text | reason`: {row}" for row in rows if len(row) != 3 or not all(row)]
    rows = [row for row in rows if len(row) == 3 and all(row)]
    for path, line, name, why in findings(tree):
        fits = [row for row in rows if fnmatch.fnmatchcase(path, row[0]) and row[1] == name]
        used |= set(fits)
        if not fits:
            wrong.append(f"{path}:{line}: {name}: {why}")
    return wrong + [f"{ALLOW}: no longer needed: {' | '.join(row)}" for row in rows if row not in used]


def main():
    wrong = check(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE.parents[1])
    return Report(1).rows([("every reference leads somewhere", not wrong, wrong)]).close()


if __name__ == "__main__":
    sys.exit(main())
