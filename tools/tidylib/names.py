"""The rules on names: a backtrace, a search and a debugger must say where one is.

A static function of a file above 150 lines carries the file's noun.  A name of one word is in
no second file, another static name in at most three, a tag or an exported name in one.
"""
import collections
import os
import re

from . import law
from .finding import Finding, folder_of, is_test

TAG = re.compile(r"^(?:struct|enum|union) (\w+) *\{", re.M)


def singular(word):
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def nouns_of(path):
    """The words of a file's name; a main.c is called after its folder."""
    *_, folder, name = ("/" + path).split("/")
    return [word for word in os.path.splitext(name)[0].split("_") if word != "main"] or [folder]


def carries(name, nouns):
    singulars = {singular(noun) for noun in nouns}
    return any(singular(word) in singulars for word in name.split("_")) or \
        any(name.startswith(noun) for noun in nouns)


def product(tree):
    return [s for s in tree.sources if folder_of(s.path) and not is_test(s.path)]


def statics(tree):
    """{name: [(source, line)]} of the static functions in .c files."""
    found = collections.defaultdict(list)
    for source in product(tree):
        for function in source.functions if source.path.endswith(".c") else ():
            if function.static and function.name not in ("main", "int"):
                found[function.name].append((source, function.line))
    return found


def nouns(tree):
    for name, places in statics(tree).items():
        most = 3 if "_" in name else 1
        for source, line in places:
            if source.lines > law.NOUN_LINES and not carries(name, nouns_of(source.path)) and \
                    not law.VENDOR.fullmatch(name):
                yield Finding(source.path, line, "noun", name,
                              f"{name}: static, without a word of the file's name")
            elif len({other.path for other, _ in places}) > most:
                yield Finding(source.path, line, "noun", name,
                              f"{name}: static in {len(places)} files, at most {most}")


def once(tree):
    """Tags and exported names that two files define."""
    homes = collections.defaultdict(set)
    for source in product(tree):
        for tag in TAG.findall(source.text):
            homes["tag", tag].add(source.path)
        for function in source.functions:
            if not function.static:
                homes["exported", function.name].add(source.path)
    for (what, name), paths in homes.items():
        if len(paths) > 1 and name != "main" and not law.NAMED_BY_OTHERS.match(name):
            first, *others = sorted(paths)
            yield Finding(others[-1], 1, "once", name, f"{name}: {what} in {', '.join([first, *others[:-1]])}, too")
