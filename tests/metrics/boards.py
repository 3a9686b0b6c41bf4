"""Boards of Grafana as questions to Prometheus: which panels ask what, with their variables filled in."""
import json
import re

RATE_INTERVAL = "15s"  # what Grafana takes for $__rate_interval where targets are scraped each second, and more


def read(path):
    return json.loads(path.read_text())


def panels(board):
    """(title, [expressions]) of each panel that asks something, those in rows included."""
    found, waiting = [], list(board.get("panels", []))
    while waiting:
        panel = waiting.pop(0)
        waiting = panel.get("panels", []) + waiting
        asked = [target["expr"] for target in panel.get("targets", []) if target.get("expr")]
        if asked:
            found.append((panel.get("title", ""), asked))
    return found


def query_of(variable):
    query = variable.get("query", "")
    return query.get("query", "") if isinstance(query, dict) else query


def fill(text, values):
    """Variables as Grafana writes them into a query: several values as a regular expression."""
    for name, value in values.items():
        text = re.sub(rf"\$\{{{name}(:\w+)?\}}|\${name}\b", lambda _: value, text)
    return text


def names_in(expression):
    """The series that an expression asks for."""
    bare = re.sub(r'\{[^}]*\}|"[^"]*"|\[[^\]]*\]', "", expression)
    bare = re.sub(r"\b(?:by|on|group_left|group_right|without|ignoring) *\([^)]*\)", "", bare)
    return set(re.findall(r"\b(?:bulkhead|DCGM)_\w+", bare))


def variables(board, ask):
    """{name: value} of the board's variables, each asked as Grafana does: `ask` answers (label, selector) of
    label_values with a list; what has no value matches all."""
    values = {"__rate_interval": RATE_INTERVAL, "__interval": RATE_INTERVAL}
    for variable in board.get("templating", {}).get("list", []):
        match = re.fullmatch(r"label_values\((?:(.*), *)?(\w+)\)", query_of(variable).strip())
        if variable["type"] != "query" or not match:
            continue
        found = ask(match[2], fill(match[1] or "", values))
        values[variable["name"]] = "|".join(re.sub(r"([.+*?^$()\[\]{}|])", r"\\\\\1", value) for value in found) or ".*"
    return values
