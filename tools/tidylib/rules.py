"""The rules.  Each takes the tree and yields findings; law.py holds the numbers."""
import os
import re

from . import calls, csource, law, names, words
from .finding import Finding, floor_of, folder_of, is_test, place_of


def library_paths(header):
    for pattern, paths in law.LIBRARIES:
        if re.fullmatch(pattern, header):
            return paths
    return None


def is_system(header):
    return bool(law.SYSTEM_FOLDER.match(header)) or (header.endswith(".h") and header[:-2] in law.SYSTEM)


def quoted_fault(path, header):
    folder, layer = folder_of(path), header.split("/")[0]
    if law.NO_LAYER.match(header):
        return None
    if not re.fullmatch(r"[a-z0-9_]+/[a-z0-9_/]+\.h", header):
        return 'write "layer/what.h", from src/ (of sim and lab from the root)'
    if (layer == "tests" or is_test(f"src/{header}")) and not is_test(path):
        return "only tests may include it"
    if header.endswith("_internal.h") and layer != folder:
        return "an internal header belongs to its own folder"
    if is_test(path) and layer in ("base", "tests"):
        return None
    if layer == folder and floor_of(header) > floor_of(path) and not is_test(path):
        return f"{header} is on a higher floor"
    if not folder or layer == folder or header in law.ALSO.get(folder, ()):
        return None
    if layer not in law.MAY_INCLUDE:
        return f"{layer} is no room"
    if layer in law.MAINS:
        return f"{layer} is a main, and mains are never included"
    if layer in law.MAY_INCLUDE.get(folder, ()):
        return None
    return f"{folder} may not include {layer}"


def angle_fault(path, header):
    folder = folder_of(path)
    if folder in law.PURE and not is_test(path):
        return None if header in law.PURE_SYSTEM else f"{folder} is pure: no system header but " + \
            " ".join(sorted(law.PURE_SYSTEM))
    if is_system(header) or header in law.ALSO.get(folder, ()) or law.NO_LAYER.match(header):
        return None
    if folder in ("ports", "wire"):
        return f"{folder} may not include an outside library"
    if library_paths(header) is None and not is_test(path):
        return "unknown header: give it a row in tools/tidylib/law.py"
    return None


def includes(tree):
    for source in tree.sources:
        for line, header, quoted in source.includes:
            fault = (quoted_fault if quoted else angle_fault)(source.path, header)
            homes = library_paths(header)
            if homes is not None and not source.path.startswith((*homes, "tests/", "bench/")):
                if not (header == "cmocka.h" and is_test(source.path)):
                    fault = f"belongs only in {', '.join(homes)}"
            if fault:
                yield Finding(source.path, line, "include", header, f"#include {header}: {fault}")


def sizes(tree):
    for source in tree.sources:
        header = source.path.endswith(".h")
        limit = law.HEADER_LINES if header else law.FILE_LINES
        if source.lines > limit:
            yield Finding(source.path, 1, "size", "file", f"{source.lines} lines, limit {limit}")
        for function in source.functions:
            for what, value, most in (("lines", function.lines, law.FUNCTION_LINES),
                                      ("parameters", function.parameters, law.PARAMETERS),
                                      ("levels of nesting", function.nesting, law.NESTING)):
                if value > most and not (what == "parameters" and law.VENDOR.fullmatch(function.name)):
                    yield Finding(source.path, function.line, "size", function.name,
                                  f"{function.name}: {value} {what}, limit {most}")


def is_vague(name, path):
    """do_this, handle_that; not of a file whose noun is the handle."""
    return bool(law.BANNED_FUNCTION.fullmatch(name)) and not os.path.basename(path).startswith("handle")


def banned(tree):
    for source in tree.sources:
        product = folder_of(source.path) == "base" and not is_test(source.path)
        pure = folder_of(source.path) in law.PURE and not is_test(source.path)
        previous = ""
        following = [word for word, _ in source.tokens[1:]] + [""]
        for (word, line), after in zip(source.tokens, following):
            if (after == "(" or word.startswith("SYS_")) and word in law.BANNED_CALLS and previous not in (".", "->") and \
                    not any(word == call and home.match(source.path) for call, home in law.BANNED_HOMES):
                yield Finding(source.path, line, "banned-call", word, f"{word}(): use {law.BANNED_CALLS[word]}")
            elif law.BANNED_NAME.fullmatch(word) or (after == "(" and is_vague(word, source.path)):
                yield Finding(source.path, line, "banned-name", word, f"{word}: a name that says nothing")
            elif product and word.islower() and law.PRODUCT_WORDS & set(word.split("_")):
                yield Finding(source.path, line, "product-word", word, f"{word}: base knows no word of the product")
            elif pure and word in ("float", "double"):
                yield Finding(source.path, line, "float", word, f"{word}: pure layers use integers only")
            elif previous == "goto" and word != "out":
                yield Finding(source.path, line, "goto", word, f"goto {word}: only one label, out")
            previous = word


def proc(tree):
    for source in tree.sources:
        if is_test(source.path) or not source.path.startswith(("src/", "sim/", "lab/")) \
                or any(home.match(source.path) for home, _ in law.PROC_HOMES):
            continue
        for match in csource.NOISE.finditer(source.text):
            if match.group(0).startswith('"/proc/'):
                line = source.text.count("\n", 0, match.start()) + 1
                yield Finding(source.path, line, "proc", match.group(0).strip('"'), "a path of /proc: use base/proc.h")


def opens(tree):
    for source in tree.sources:
        if is_test(source.path) or not source.path.startswith("src/") \
                or any(home.match(source.path) for home, _ in law.OPEN_HOMES):
            continue
        words = [word for word, _ in source.tokens]
        for at in range(1, len(words) - 1):
            if words[at] not in law.OPENS or words[at + 1] != "(" or words[at - 1] in (".", "->", "*") \
                    or law.OPENS_AT_ONCE & set(words[at:csource.closing(source.tokens, at + 1)]):
                continue
            yield Finding(source.path, source.tokens[at][1], "open", words[at],
                          f"{words[at]}() may wait at a FIFO: use bh_file_open() or bh_file_read() of base/fd.h")


def has_beside(tree, path, ending):
    """place.c has place.h; place_score.c, split off for its size, may share it."""
    stem = path[:-2]
    while not stem.endswith("/"):
        if stem + ending in tree.paths:
            return True
        stem = stem.rpartition("_")[0] if "_" in os.path.basename(stem) else "/"
    return False


def pairs(tree):
    for source in tree.sources:
        path = source.path
        folder = folder_of(path)
        if not folder or not path.endswith(".c") or is_test(path):
            continue
        vendor = folder in law.EXPORTED and source.functions and \
            all(f.static or not f.name.startswith("bh_") for f in source.functions)
        main = any(f.name == "main" for f in source.functions)
        stub = folder in law.EXPORTED and os.path.basename(path) == "stub.c"  # names out of a table
        if not main and not vendor and not stub and not has_beside(tree, path, ".h"):
            yield Finding(path, 1, "pair", "header", "no header of the same name")
        if folder in law.UNIT_TESTED and not has_beside(tree, path, "_test.c"):
            yield Finding(path, 1, "pair", "test", "no _test.c beside it")


def contracts(tree):
    """In a header each function stands in a paragraph that begins with a comment."""
    for source in tree.sources:
        if not folder_of(source.path) or not source.path.endswith(".h") or is_test(source.path):
            continue
        lines = source.text.split("\n")
        for name, line in source.prototypes:
            top = line
            while top > 1 and lines[top - 2].strip():
                top -= 1
            if not re.search(r"\*/|//", "\n".join(lines[top - 1:line])):
                yield Finding(source.path, line, "contract", name, f"{name}: no comment says what it promises")


def guards(tree):
    for source in tree.sources:
        if not source.path.endswith(".h"):
            continue
        folder, name = source.path[:-2].split("/")[-2:]
        room = folder_of(source.path)
        stem = f"BULKHEAD_{name}" if folder == "bulkhead" else \
            f"BH_{source.path[:-2].removeprefix('src/')}" if room else f"BH_{folder}_{name}"
        guard = re.sub(r"\W", "_", stem).upper() + "_H"
        first = re.search(r"^[ \t]*#[ \t]*(\w+)[ \t]*(\w*)[^\n]*\n[ \t]*#[ \t]*(\w*)[ \t]*(\w*)", source.text, re.M)
        if not first or first.groups() != ("ifndef", guard, "define", guard):
            yield Finding(source.path, 1, "guard", "guard", f"the include guard is not {guard}")


def linkage(tree):
    for source in tree.sources:
        folder = folder_of(source.path)
        allowed = law.EXPORTED.get(folder, law.EXPORTED_ELSEWHERE)
        names = [(f.name, f.line) for f in source.functions if not f.static]
        for name, line in names + source.globals:
            if not allowed.match(name):
                yield Finding(source.path, line, "prefix", name, f"{name}: exported, but does not begin with bh_")
        for line in source.externs if source.path.endswith(".c") else ():
            yield Finding(source.path, line, "extern", "extern", "extern in a .c file: declare it in a header")


def is_listed(tree, path):
    """Does a meson.build name this file, in its own folder or one above?

    A loop over stems counts: `foreach t : ['arena']  files(t + '_test.c')`.
    """
    folder = os.path.dirname(path)
    while True:
        meson = tree.mesons.get(f"{folder}/meson.build".lstrip("/"))
        if meson is not None:
            name = os.path.relpath(path, folder or ".")
            if name in meson:
                return True
            base = os.path.basename(name) if os.path.dirname(name) in meson else ""
            if any(base.endswith(end) and base[:-len(end)] in meson for end in (".c", "_test.c") if end in meson):
                return True  # folder / name + '.c'
            endings = {s.split("@")[-1] for s in meson if s.endswith(os.path.splitext(path)[1])}
            if any(name.endswith(end) and name[:-len(end)] in meson for end in endings if end):
                return True
        if not folder:
            return False
        folder = os.path.dirname(folder)


def listed(tree):
    """A test that nothing runs is worse than none: scripts of tests count like C."""
    for path in [s.path for s in tree.sources if s.path.endswith(".c")] + sorted(tree.scripts):
        if not is_listed(tree, path):
            yield Finding(path, 1, "meson", "meson", "not listed in any meson.build")


def documents(tree):
    folders = {folder_of(source.path) for source in tree.sources} - {""}
    for folder in sorted(folders):
        lines = tree.documents.get(f"{place_of(folder)}/README.md")
        if lines is None:
            yield Finding(place_of(folder), 1, "document", "readme", "no README.md")
    for path, lines in sorted(tree.documents.items()):
        limit = law.README_LINES if path.startswith(("src/", "sim/", "lab/")) else \
            law.ADR_LINES if path.startswith("docs/adr/") else law.ARCHITECTURE_LINES
        if lines > limit:
            yield Finding(path, 1, "document", "file", f"{lines} lines, limit {limit}")


def circles(tree):
    """A file calls files below it, so that each can be read without those above."""
    graph = calls.of_rooms(tree)
    for circle in calls.circles(graph):
        if any(circle <= set(row["units"]) for row in law.CIRCLES):
            continue
        edges = [f"{unit} -> {other} {graph[unit][other].name}"
                 for unit in sorted(circle) for other in sorted(graph[unit]) if other in circle]
        least = min(circle)
        yield Finding(least + ".c", 1, "circle", least, "\n    ".join(
            [f"{len(circle)} files call each other: {' '.join(sorted(circle))}", *edges]))
    for row in law.CIRCLES:
        if row["adr"] and row["adr"] not in tree.documents:
            yield Finding(min(row["units"]) + ".c", 1, "circle", "adr", f"{row['adr']} is no ADR")


def floors(tree):
    for unit, below in sorted(calls.of_rooms(tree).items()):
        for other, call in sorted(below.items()):
            if folder_of(unit + ".c") == folder_of(other + ".c") and \
                    floor_of(other + ".c") > floor_of(unit + ".c"):
                yield Finding(unit + ".c", call.line, "floor", call.name,
                              f"{call.name}() is on a higher floor, in {other}.c")


ALL = [includes, sizes, banned, proc, opens, pairs, guards, linkage, listed, documents, circles, floors, names.nouns, names.once, words.words]
STRICT = ALL + [contracts]
