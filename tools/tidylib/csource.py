"""A light reading of C: enough to find functions, calls, includes and nesting.

It knows comments, strings, preprocessor lines, brackets and statements, and no
types.  Text that is blanked keeps its line breaks, so line numbers stay true.
"""
import re
from dataclasses import dataclass, field

NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|->|\.\.\.|\n|[^\s\w]")
MARK = re.compile(r"^[ \t]*/\* clang-format (?:off|on) \*/\n", re.M)     # around a table: no line of code
COMMENT_ONLY = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
CONTROL = {"if", "for", "while", "switch"}


@dataclass
class Function:
    name: str
    line: int           # of the opening brace
    lines: int          # from { to }
    parameters: int
    nesting: int
    static: bool


@dataclass
class Source:
    path: str
    lines: int
    includes: list      # (line, text, quoted)
    tokens: list        # (text, line), preprocessor lines included
    functions: list = field(default_factory=list)
    globals: list = field(default_factory=list)     # (name, line) of non-static definitions
    externs: list = field(default_factory=list)     # lines
    prototypes: list = field(default_factory=list)  # (name, line)
    text: str = ""


def blank(match):
    text = match.group(0)
    if text[0] in "\"'":
        return text[0] + "0" * (text[0] == "'") + text[0]
    return "\n" * text.count("\n") or " "


def tokenize(text):
    tokens, line = [], 1
    for match in TOKEN.finditer(text):
        word = match.group(0)
        if word == "\n":
            line += 1
        elif word != "\\":
            tokens.append((word, line))
    return tokens


def closing(tokens, start):
    """Index of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(tokens)):
        word = tokens[i][0]
        if word in "([{":
            depth += 1
        elif word in ")]}":
            depth -= 1
            if depth == 0:
                return i
    return len(tokens) - 1


class Nesting:
    """Deepest statement block of a function body: `else if` adds nothing."""

    def __init__(self, tokens):
        self.tokens, self.deepest = tokens, 0

    def word(self, i):
        return self.tokens[i][0] if i < len(self.tokens) else ""

    def block(self, i, end, depth):
        while i < end:
            i = self.statement(i, end, depth)

    def inner(self, i, end, depth):
        """The statement below a control statement."""
        self.deepest = max(self.deepest, depth)
        if self.word(i) == "{":
            close = closing(self.tokens, i)
            self.block(i + 1, close, depth)
            return close + 1
        return self.statement(i, end, depth)

    def statement(self, i, end, depth):
        word = self.word(i)
        if word == "{":
            return self.inner(i, end, depth + 1)
        if word == "do":
            i = self.inner(i + 1, end, depth + 1)
            return self.simple(i, end)
        if word in CONTROL or (word and self.word(i + 1) == "(" and
                               self.word(closing(self.tokens, i + 1) + 1) == "{"):
            i = self.inner(closing(self.tokens, i + 1) + 1, end, depth + 1)
            while self.word(i) == "else":
                i += 1
                if self.word(i) == "if":
                    i = closing(self.tokens, i + 1) + 1
                i = self.inner(i, end, depth + 1)
            return i
        if word in ("case", "default") or (self.word(i + 1) == ":" and word.isidentifier()):
            while i < end and self.word(i) != ":":
                i += 1
            return i + 1
        return self.simple(i, end)

    def simple(self, i, end):
        while i < end and self.word(i) != ";":
            i = closing(self.tokens, i) + 1 if self.word(i) in ("(", "[", "{") else i + 1
        return i + 1


def count_parameters(tokens):
    words = [word for word, _ in tokens]
    if words in ([], ["void"]):
        return 0
    # The object of a port's slot is not an argument of the operation.
    depth, count = 0, 0 if words[:3] == ["void", "*", "self"] else 1
    for word in words:
        depth += (word in "([{") - (word in ")]}")
        count += word == "," and depth == 0
    return count - (words[-1] == "...")


def declarator(head):
    """Index of the name of the function that `head` declares, or None."""
    i = 0
    while i < len(head) - 1:
        word = head[i][0]
        if head[i + 1][0] == "(":
            if word.isidentifier() and not word.startswith("__") and not word.isupper():
                return i
            i = closing(head, i + 1)
        i += 1
    return None


def function_of(tokens, head, open_brace):
    words = [word for word, _ in head]
    if not words or words[-1] != ")" or "=" in words:
        return None
    close = closing(tokens, open_brace)
    name = declarator(head)
    body = Nesting(tokens[open_brace + 1:close])
    body.block(0, len(body.tokens), 0)
    parameters = head[name + 2:closing(head, name + 1)] if name is not None else []
    return Function(head[name][0] if name is not None else words[0], tokens[open_brace][1],
                    tokens[close][1] - tokens[open_brace][1] + 1, count_parameters(parameters),
                    body.deepest, "static" in words or name is None)


def outermost(words):
    """The words outside all brackets, so that an enum's `= 1` is no initialiser."""
    depth, kept = 0, []
    for word in words:
        depth -= word in ")]}"
        if depth == 0 and word not in "([{)]}":
            kept.append(word)
        depth += word in "([{"
    return kept


def global_of(words, line):
    """The name that a file-scope definition with an initialiser gives the linker."""
    words = outermost(words)
    if "=" not in words or {"static", "typedef", "extern"} & set(words):
        return None
    names = [word for word in words[:words.index("=")] if word.isidentifier()]
    return (names[-1], line) if names else None


def read_declarations(source, tokens):
    i = start = 0
    while i < len(tokens):
        word = tokens[i][0]
        if word == "{":
            function = function_of(tokens, tokens[start:i], i)
            i = closing(tokens, i)
            if function:
                source.functions.append(function)
                start = i + 1
        elif word in "([":
            i = closing(tokens, i)
        elif word == ";":
            head = tokens[start:i]
            words = [text for text, _ in head]
            if "extern" in words:
                source.externs.append(head[words.index("extern")][1])
            name = declarator(head)
            if name is not None and not {"typedef", "=", "{"} & set(words):
                source.prototypes.append(head[name])
            found = global_of(words, head[0][1] if head else 0)
            if found:
                source.globals.append(found)
            start = i + 1
        i += 1


def read(path, text):
    marks = [text.count("\n", 0, match.start()) + 1 for match in MARK.finditer(text)]
    code = NOISE.sub(blank, text)
    without_comments = COMMENT_ONLY.sub(lambda m: "\n" * m.group(0).count("\n"), text)
    includes = [(without_comments.count("\n", 0, m.start(m.lastindex)) + 1, m.group(1) or m.group(2),
                 m.group(1) is not None) for m in INCLUDE.finditer(without_comments)]
    body = DIRECTIVE.sub(lambda m: "\n" * m.group(0).count("\n"), code)
    source = Source(path, text.count("\n") + (not text.endswith("\n")) - len(marks), includes,
                    tokenize(DIRECTIVE.sub(lambda m: re.sub(r"#[ \t]*include[^\n]*", "", m.group(0)), code)),
                    text=text)
    read_declarations(source, tokenize(body))
    for function in source.functions:
        function.lines -= sum(function.line < mark < function.line + function.lines for mark in marks)
    return source
