"""The graph of calls: which file names a function that another one defines.

A unit is a .c file with its header.  A function that is handed on (a callback, a row of a
table) counts as called.  Functions of the same name in several programs (main) are left out.
"""
from . import law

NO_FUNCTION = {".", "->", "struct", "enum", "union"}     # what follows is a member or a tag


def unit_of(path):
    return path[:-2]


def graph(sources):
    """{unit: {unit it calls: a function's name}}"""
    home = {}
    for source in sources:
        for function in source.functions:
            if not function.static:
                home.setdefault(function.name, set()).add(unit_of(source.path))
    home = {name: units.pop() for name, units in home.items() if len(units) == 1}
    calls = {unit_of(source.path): {} for source in sources}
    for source in sources:
        me = unit_of(source.path)
        mine = calls[me]
        if source.path.endswith(".h"):      # prototypes are no calls
            continue
        before = ""
        for word, _ in source.tokens:
            if before not in NO_FUNCTION and home.get(word, me) != me:
                mine.setdefault(home[word], word)
            before = word
    return calls


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


def named(circle):
    """Is the circle one that law.py names, with its ADR?"""
    return any(circle <= set(row["units"]) for row in law.CIRCLES)
