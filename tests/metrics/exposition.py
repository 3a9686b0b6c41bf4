"""Reads Prometheus' text format 0.0.4 and OpenMetrics 1.0 strictly: what a scraper might let pass is
raised here, what is right is returned."""
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|Inf|NaN)\Z", re.I)
TYPES = {False: {"counter", "gauge", "histogram", "summary", "untyped"},
         True: {"counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown"}}
SUFFIXES = {"counter": ("_total", "_created"), "histogram": ("_bucket", "_sum", "_count"), "info": ("_info",)}


class Wrong(Exception):
    pass


def need(true, why, line):
    if not true:
        raise Wrong(f"{why}: {line[:200]}")


def labels_of(text, line):
    """{name: value} of what stands in braces."""
    found, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        need(match, "label", line)
        name, value = match.groups()
        need(name not in found, "a label twice", line)
        need(not name.startswith("__"), "a reserved label", line)
        found[name] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m.group(1), m.group(1)), value)
        at = match.end()
        if at < len(text):
            need(text[at] == "," and at + 1 < len(text), "what follows a label", line)
            at += 1
    return found


class Reader:
    def __init__(self, open_metrics):
        self.open, self.families, self.series = open_metrics, {}, {}
        self.family, self.ended = None, False

    def begin(self, name, line):
        if self.family != name:
            need(name not in self.families, "a family in two places", line)
            self.families[name], self.family = {}, name

    def comment(self, line):
        if self.open and line == "# EOF":
            self.ended = True
            return
        match = re.fullmatch(r"# (HELP|TYPE|UNIT) ([a-zA-Z_:][a-zA-Z0-9_:]*) ?(.*)", line)
        need(match, "comment", line)
        what, name, text = match.groups()
        self.begin(name, line)
        need(what not in self.families[name], f"{what} twice", line)
        need("samples" not in self.families[name], f"{what} behind samples", line)
        self.families[name][what] = text
        if what == "TYPE":
            need(text in TYPES[self.open], "type", line)
        elif what == "UNIT":
            need(self.open and (not text or name.endswith("_" + text)), "unit", line)
        else:
            need(re.fullmatch(r'(?:[^\\"]|\\["\\n])*' if self.open else r'(?:[^\\]|\\[\\n])*', text), "help", line)

    def sample(self, line):
        match = NAME.match(line)
        need(match, "name", line)
        name, rest = match.group(), line[match.end():]
        labels = {}
        if rest.startswith("{"):
            end = re.match(r'\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}', rest)
            need(end, "braces", line)
            labels, rest = labels_of(end.group(1), line), rest[end.end():]
        need(rest.startswith(" ") and NUMBER.match(rest[1:]), "number", line)
        family = self.family_of(name, line)
        key = (name, tuple(sorted(labels.items())))
        need(key not in self.series, "a series twice", line)
        self.series[key] = float(rest)
        family.setdefault("samples", []).append((name, labels, float(rest)))

    def family_of(self, name, line):
        need(self.family, "a sample before its family", line)
        family, kind = self.families[self.family], self.families[self.family].get("TYPE")
        need(kind, "a sample before its type", line)
        if kind == "histogram" or (self.open and kind in SUFFIXES):
            right = name in [self.family + suffix for suffix in SUFFIXES[kind]]
        else:
            right = name == self.family
        need(right, f"not of the family {self.family}", line)
        return family

    def check(self):
        for name, family in self.families.items():
            need(family.get("samples") and "HELP" in family, "a family without samples or help", name)
            if family["TYPE"] in ("counter", "histogram"):
                need(all(value >= 0 for _, _, value in family["samples"]), "below zero", name)
            if family["TYPE"] == "histogram":
                self.histogram(name, family["samples"])

    def histogram(self, name, samples):
        buckets = [(float(labels["le"].replace("Inf", "inf")), value) for n, labels, value in samples if n.endswith("_bucket")]
        need(buckets == sorted(buckets) and [v for _, v in buckets] == sorted(v for _, v in buckets), "order of buckets", name)
        count = [value for n, _, value in samples if n.endswith("_count")]
        need(buckets[-1][0] == float("inf") and count == [buckets[-1][1]], "the last bucket", name)


def read(text, open_metrics=False):
    """({family: {HELP, TYPE, UNIT, samples: [(name, labels, value)]}}, {(name, labels): value})."""
    need(text.endswith("\n"), "the last line does not end", text[-50:])
    reader = Reader(open_metrics)
    for line in text[:-1].split("\n"):
        need(not reader.ended and line, "an empty line, or one behind the end", line)
        reader.comment(line) if line.startswith("#") else reader.sample(line)
    need(reader.ended == open_metrics, "# EOF", text[-50:])
    reader.check()
    return reader.families, reader.series
