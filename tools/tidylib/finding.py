"""What a rule finds, and what a path is."""
import re
from dataclasses import dataclass

from . import law


@dataclass
class Finding:
    path: str
    line: int
    rule: str
    name: str       # what tools/tidy.allow calls it, after the path
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text} [{self.rule}]"


def folder_of(path):
    """The room that a path belongs to: a folder of src/, sim or lab; else ""."""
    parts = path.split("/")
    if parts[0] in ("sim", "lab") and len(parts) > 1:
        return parts[0]
    return parts[1] if parts[0] == "src" and len(parts) > 2 else ""


def place_of(folder):
    return folder if folder in ("sim", "lab") else f"src/{folder}"


def floor_of(path):
    """(room, number of the floor): what is on no floor is above all."""
    path = path.removeprefix("src/")
    room, floor = path.split("/")[0], path.split("/")[1]
    floors = law.FLOORS.get(room, [])
    return floors.index(floor) if floor in floors else len(floors)


def is_test(path):
    return path.startswith(("tests/", "bench/")) or path.endswith(("_test.c", "_test.h")) or \
        re.fullmatch(r"(src|sim|lab)/[\w/]+/test(_\w+)?\.[ch]", path) is not None
