"""The rule on words: comments, tables and documentation name programs and users, not "nobody" or "whom".

A word in backticks is a name of the code or the system, and free.
"""
import re

from . import csource, law
from .finding import Finding

NAME = re.compile(r"`[^`]*`")
WORD = re.compile(r"\b(" + "|".join(law.WORDS) + r")\b")
FREE = re.compile("|".join(law.WORDS_FREE))


def keep_lines(match):
    return "\n" * match.group(0).count("\n")


def words_of(text):
    """(line within the text, word) of each word that the text should not have."""
    text = FREE.sub(keep_lines, NAME.sub(keep_lines, text))
    return [(text.count("\n", 0, match.start()), match.group(0)) for match in WORD.finditer(text)]


def comments_of(text):
    """(line, text) of each comment."""
    return [(text.count("\n", 0, match.start()) + 1, match.group(0)) for match in csource.NOISE.finditer(text)
            if match.group(0).startswith("/")]


def words(tree):
    texts = [(source.path, *comment) for source in tree.sources for comment in comments_of(source.text)]
    texts += [(path, 1, text) for path, text in sorted({**tree.tables, **tree.pages}.items())]
    for path, first, text in texts:
        for line, word in words_of(text):
            yield Finding(path, first + line, "word", word, f"{word}: name the program or the user, and what happens")
