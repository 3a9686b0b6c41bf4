"""The files that tidy looks at, read once."""
import os
import re

from . import csource

SOURCE_FOLDERS = ["src", "sim", "lab", "include", "tests", "bench"]
QUOTED = re.compile(r"'([^'\n]*)'")


class Tree:
    def __init__(self, root):
        self.root = root
        self.sources, self.mesons, self.documents = [], {}, {}
        self.scripts = set()  # of tests/, those that can be run
        self.pages, self.tables = {}, {}  # docs/**.md and tables/*.tbl: their texts
        self._visit("", recurse=False)
        for folder in SOURCE_FOLDERS + ["docs", "tables"]:
            for where, _, _ in sorted(os.walk(os.path.join(root, folder))):
                self._visit(os.path.relpath(where, root))
        self.paths = {source.path for source in self.sources}

    def _visit(self, folder, recurse=True):
        for name in sorted(os.listdir(os.path.join(self.root, folder))):
            path = f"{folder}/{name}".lstrip("/")
            if name.endswith((".c", ".h")) and recurse:
                self.sources.append(csource.read(path, self._text(path)))
            elif name == "meson.build":
                self.mesons[path] = set(QUOTED.findall(self._text(path)))
            elif path.startswith("tests/") and name.endswith(".py"):
                if '__name__ == "__main__"' in self._text(path):
                    self.scripts.add(path)
            elif name.endswith(".tbl"):
                self.tables[path] = self._text(path)
            if path.startswith("docs/") and name.endswith(".md"):
                self.pages[path] = self._text(path)
            if self._is_limited(path):
                self.documents[path] = self._text(path).count("\n")

    @staticmethod
    def _is_limited(path):
        return path == "docs/ARCHITECTURE.md" or path == "ARCHITECTURE.md" or \
            re.fullmatch(r"docs/adr/[^/]+\.md|(src|sim|lab)/.*README\.md", path) is not None

    def _text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
            return file.read()
