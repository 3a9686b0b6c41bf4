"""Chromium or Firefox, driven by tests/web/pages.mjs: deeds in, observations out.

    with Driven(modules, "chromium", trust=site.certificate) as browser:
        page = browser.open(site.origin, session)
        status = page.go("/")
        page.ask("content")["title"]

`modules` is the folder that tools/browser-packages filled."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import chromium
from bulkhead import PATIENCE_S, ROOT

PROGRAMS = {"chromium": ("chromium", "chromium-browser"), "firefox": ("firefox-esr",)}


class Fault(Exception):
    """What the browser refused, or did not do in time."""


def program(browser):
    return next(filter(None, map(shutil.which, PROGRAMS[browser])), None)


def missing(modules, *browsers):
    """What this machine lacks to drive these browsers, or ""."""
    if not shutil.which("node"):
        return "nodejs is not installed"
    if not (pathlib.Path(modules) / "installed").is_file():
        return f"puppeteer-core is not in {modules}: run tools/browser-packages {modules}"
    return next((f"{name} is not installed" for name in browsers if not program(name)), "")


class Driven:
    def __init__(self, modules, browser="chromium", trust=b"", plain=False, scheme="light"):
        self.home = tempfile.mkdtemp(prefix="bulkhead-browser-")
        options = {"browser": browser, "program": program(browser), "plain": plain, "scheme": scheme,
                   "trust": chromium.key_digest(trust) if browser == "chromium" else ""}
        self.process = subprocess.Popen(
            ["node", ROOT / "tests/web/pages.mjs", modules, json.dumps(options)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env={"PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8", "TMPDIR": self.home, "TZ": "UTC"})

    def __enter__(self):
        try:
            self.version = self.answer()["version"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """At the end of its input it ends the browser; at SIGTERM it does so at once."""
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Fault("the browser did not start, or has ended")
        return json.loads(line)

    def call(self, deed, **parameters):
        self.process.stdin.write(json.dumps({"deed": deed, **parameters}) + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        if "fault" in answer:
            raise Fault(answer["fault"])
        return answer["value"]

    def open(self, origin, session=None, zone=None):
        return Page(self, origin, self.call("open", origin=origin, session=session, zone=zone))


class Page:
    """One tab in a context of its own: cookies of its own."""

    def __init__(self, browser, origin, number):
        self.browser, self.origin, self.number = browser, origin, number

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("close")

    def call(self, deed, **parameters):
        return self.browser.call(deed, page=self.number, **parameters)

    def go(self, path, width=1280):
        """The status; waits until all of it is there."""
        return self.call("go", address=self.origin + path, width=width)

    def show(self, width=None, medium=None, **features):
        """prefers_color_scheme="dark" and the like; what is left out is as the browser has it.  In Firefox all is."""
        more = {"medium": medium} if medium is not None else {}
        self.call("show", width=width, features={name.replace("_", "-"): value for name, value in features.items()}, **more)

    def ask(self, what):
        return self.call("ask", what=what)

    def run(self, code):
        return self.call("run", code=code)

    def until(self, code, wait_s=PATIENCE_S):
        return self.call("until", code=code, wait_s=wait_s)

    def says(self, text):
        return self.until(f"document.body.innerText.includes({json.dumps(text)})")
