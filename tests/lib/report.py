"""The results of a test program in Python, as TAP: the one writer of it.

    report = Report(len(rows))              # Report() where the number is known at the end only
    for what, good, why in rows:
        report.line(good, what, why)
    sys.exit(report.close())

`why` is a text or a list of lines; it is shown where the line is not good.  report.play(tests)
runs functions whose docstrings are the sentences that they prove; skip_all(reason) ends a program
that cannot run here."""
import sys
import time
import traceback


class Skip(Exception):
    """Why a test cannot run on this machine."""


def skip_all(reason, status=0):
    print(f"1..0 # SKIP {reason}", flush=True)
    sys.exit(status)


def note(text):
    """A comment: a text, or a list of lines."""
    lines = text.splitlines() if isinstance(text, str) else [str(line) for line in text]
    print("".join(f"# {line}\n" for line in "\n".join(lines).splitlines()), end="", flush=True)


class Report:
    def __init__(self, count=None):
        self.count, self.number, self.failed = count, 0, 0
        if count is not None:
            print(f"1..{count}", flush=True)

    def line(self, good, what, why="", skip="", todo=""):
        """One result; answers whether it is good."""
        self.number += 1
        self.failed += not good and not todo
        label = f" # SKIP {skip}" if skip else f" # TODO {todo}" if todo else ""
        print(f"{'ok' if good else 'not ok'} {self.number} - {what}{label}", flush=True)
        if not good and why:
            note(why if isinstance(why, (str, list, tuple)) else repr(why))
        return good

    def rows(self, rows):
        """(sentence, good) or (sentence, good, why) of each."""
        for what, good, *why in rows:
            self.line(bool(good), what, *why)
        return self

    def attempt(self, what, function, *arguments, todo=""):
        """Run a function: it is good when it returns, and skipped when it raises Skip."""
        began, skip, why = time.monotonic(), "", ""
        try:
            function(*arguments)
        except Skip as reason:
            skip = str(reason)
        except Exception:
            why = traceback.format_exc()
        self.line(not why, what, why, skip, todo)
        note(f"{time.monotonic() - began:.2f} s")
        return not why

    def play(self, tests, *arguments, stop=False, todo=""):
        """Attempt each function; with `stop` the first failure is the last that runs."""
        for function in tests:
            sentence = " ".join((function.__doc__ or function.__name__).split())
            if not self.attempt(f"{function.__name__}: {sentence}", function, *arguments, todo=todo) and stop:
                break
        return self

    def close(self):
        """The plan where it was not known before; the exit status."""
        if self.count is None:
            self.count = self.number
            print(f"1..{self.number}", flush=True)
        return 1 if self.failed or self.number != self.count else 0
