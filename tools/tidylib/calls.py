"""The graph of calls: which file names a function that another one defines.

A unit is a .c file with its header.  A function that is handed on (a callback, a row of a
table) counts as called.  Functions of the same name in several programs (main) are left out,
and so is a call of what the caller's room may not include: there the name is the vendor's,
of the simulated driver and of the shim in front of it.
"""
import re
from functools import lru_cache
from typing import NamedTuple

from . import law
from .finding import floor_of, folder_of, is_test

# A row of a macro that defines a call of the vendor's: CUDA_ROW(cuCtxDestroy, ...).
ROW = re.compile(r"^[A-Z_]+\(((?:cu[A-Z]|nvml)\w*),", re.M)
NO_FUNCTION = {".", "->", "struct", "enum", "union"}     # what follows is a member or a tag


class Call(NamedTuple):
    name: str           # of the function
    line: int           # of the first call


def unit_of(path):
    return path[:-2]


def is_seen(caller, callee):
    """Whether the law lets the caller's room include the callee's header."""
    room, other = folder_of(caller + ".c"), folder_of(callee + ".c")
    return room == other or other in law.MAY_INCLUDE.get(room, ()) or \
        callee.removeprefix("src/") + ".h" in law.ALSO.get(room, ())


def rows(source):
    return set(ROW.findall(source.text)) if source.path.endswith(".c") else set()


def homes(sources):
    """{function: the only unit that defines it for others}"""
    found = {}
    for source in sources:
        for function in source.functions:
            if not function.static:
                found.setdefault(function.name, set()).add(unit_of(source.path))
        for name in rows(source):
            found.setdefault(name, set()).add(unit_of(source.path))
    return {name: units.pop() for name, units in found.items() if len(units) == 1}


def graph(sources):
    """{unit: {unit it calls: the first such Call}}; a name that a macro pastes (cuX##suffix) is none."""
    home = homes(sources)
    calls = {unit_of(source.path): {} for source in sources}
    for source in sources:
        me = unit_of(source.path)
        mine = calls[me]
        if source.path.endswith(".h"):      # prototypes are no calls
            continue
        own = {function.name for function in source.functions} | rows(source)
        before = ""
        for (word, line), (after, _) in zip(source.tokens, [*source.tokens[1:], ("", 0)]):
            other = home.get(word, me)
            if other != me and word not in own and before not in NO_FUNCTION and \
                    after != "#" and is_seen(me, other):
                mine.setdefault(other, Call(word, line))
            before = word
    return calls


@lru_cache(maxsize=1)
def of_rooms(tree):
    """The graph of what stands in rooms, without tests."""
    return graph([source for source in tree.sources
                  if folder_of(source.path) and not is_test(source.path)])


def circles(calls):
    """Sets of units that reach each other, by Tarjan's algorithm without recursion."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in sorted(calls):
        work = [] if root in index else [(root, iter(sorted(calls[root])))]
        if work:
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
        while work:
            unit, rest = work[-1]
            below = next(rest, None)
            if below is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[unit])
                if low[unit] == index[unit]:
                    circle = set()
                    while unit not in circle:
                        circle.add(stack.pop())
                    on_stack -= circle
                    if len(circle) > 1:
                        found.append(circle)
            elif below not in index:
                index[below] = low[below] = len(index)
                stack.append(below)
                on_stack.add(below)
                work.append((below, iter(sorted(calls[below]))))
            elif below in on_stack:
                low[unit] = min(low[unit], index[below])
    return found


def heights(calls):
    """{unit: how many calls it is above what calls nothing}; a circle is one step."""
    circle_of = {unit: frozenset(circle) for circle in circles(calls) for unit in circle}
    found = {}

    def height(unit):
        members = circle_of.get(unit, frozenset([unit]))
        if members not in found:
            below = {other for member in members for other in calls[member]} - members
            found[members] = 1 + max((height(other) for other in below), default=-1)
        return found[members]

    return {unit: height(unit) for unit in calls}


def show(tree, room):
    """The graph of one room as text, from the top: floor, height, unit, what it calls there."""
    whole = of_rooms(tree)
    inside = {unit for unit in whole if folder_of(unit + ".c") == room}
    calls = {unit: {other: call for other, call in whole[unit].items() if other in inside}
             for unit in inside}
    height = heights(calls)
    floors = [*law.FLOORS.get(room, []), ""]
    lines, place = [], ""
    for unit in sorted(inside, key=lambda unit: (-floor_of(unit + ".c"), -height[unit], unit)):
        now = f"{floors[floor_of(unit + '.c')]} {height[unit]}".strip()
        if now != place:
            lines.append(f"{now}:")
            place = now
        below = ", ".join(name_in(room, other) for other in sorted(calls[unit]))
        lines.append(f"    {name_in(room, unit)}" + (f": {below}" if below else ""))
    return "\n".join(lines)


def name_in(room, unit):
    return unit.removeprefix("src/").removeprefix(room + "/")
