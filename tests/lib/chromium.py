"""Debian's Chromium, headless, driven through a pipe by its DevTools protocol; nothing but
the standard library.  It has a profile of its own, reaches nothing but this machine, and
ends with the `with` block.

    with Chromium(trust=[pem]) as browser:
        page = browser.page()
        page.go("https://localhost:1234/")
"""
import base64
import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

from bulkhead import PATIENCE_S


class Fault(Exception):
    """What the browser refused, or did not do in time."""


def program():
    """Where Chromium is, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def key_digest(pem):
    """The digest of a certificate's public key, by which Chromium trusts it."""
    spki = subprocess.run(["openssl", "x509", "-pubkey", "-noout"], input=pem, capture_output=True,
                          check=True, timeout=PATIENCE_S).stdout
    der = base64.b64decode(b"".join(spki.split(b"\n")[1:-2]))
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


class Chromium:
    def __init__(self, trust=()):
        self.profile = tempfile.mkdtemp(prefix="bh-chromium-")
        self.number, self.buffer, self.events = 0, b"", []
        command = [program(), "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
                   "--no-first-run", "--no-default-browser-check", "--disable-gpu", "--disable-dev-shm-usage",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--disable-extensions", "--mute-audio", "--no-proxy-server",
                   "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
                   "--ignore-certificate-errors-spki-list=" + ",".join(map(key_digest, trust))]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # it refuses to run as root with one
        there, self.out = os.pipe()
        self.into, back = os.pipe()
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "sh", *command, "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        pass_fds=(there, back), start_new_session=True,
                                        env={"PATH": os.environ["PATH"], "HOME": self.profile, "LANG": "C.UTF-8"})
        os.close(there)
        os.close(back)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for descriptor in (self.out, self.into):
            os.close(descriptor)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _next(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise Fault("no answer in time")
            more = os.read(self.into, 1 << 16)
            if not more:
                raise Fault("the browser has ended")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, wait_s=PATIENCE_S, **parameters):
        """The result of a command; events that come meanwhile are kept."""
        self.number += 1
        asked = self.number
        message = {"id": asked, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + wait_s
        while True:
            got = self._next(until)
            if got.get("id") == asked:
                if "error" in got:
                    raise Fault(f"{method}: {got['error'].get('message')}")
                return got["result"]
            if "method" in got:
                self.events.append(got)

    def page(self):
        return Page(self)


class Page:
    """One tab.  `trouble` is what went wrong in it: refusals by content policy, errors of
    scripts, files that could not be had, dialogs."""

    def __init__(self, browser):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **parameters):
        return self.browser.call(method, session=self.session, **parameters)

    @property
    def trouble(self):
        found = []
        for event in self.browser.events:
            what, parameters = event["method"], event.get("params", {})
            if what == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(parameters["entry"]["text"])
            elif what in ("Runtime.exceptionThrown", "Page.javascriptDialogOpening"):
                found.append(json.dumps(parameters)[:300])
        return found

    def run(self, expression):
        """The value of an expression, promises awaited."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise Fault(f"{expression}: {json.dumps(result['exceptionDetails'])[:300]}")
        return result["result"].get("value")

    def until(self, expression, wait_s=PATIENCE_S):
        """Wait until an expression is true; pages that are just being left have no answer."""
        end = time.monotonic() + wait_s
        while time.monotonic() < end:
            try:
                value = self.run(expression)
            except Fault:
                value = None
            if value:
                return value
            time.sleep(0.02)
        raise Fault(f"did not become true: {expression}; the page says: {self.run('document.body.innerText')!r}")

    def go(self, address):
        """Go to an address and wait until all of it is there."""
        answer = self.call("Page.navigate", url=address)
        if answer.get("errorText"):
            raise Fault(f"{address}: {answer['errorText']}")
        self.until(f"document.readyState === 'complete' && location.href === {json.dumps(address)}")

    def press(self, selector):
        """Press a button as a person does, and not a script: with the mouse, where it stands when the page is all there."""
        before, place = (), None
        while place != before:  # what a script shows moves what is below it
            before, place = place, self.until(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
                if (!e || document.readyState !== 'complete') return null;
                e.scrollIntoView(); const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
                return e.contains(document.elementFromPoint(x, y)) && [x, y]; }})()""")
        x, y = place
        for what in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=what, x=x, y=y, button="left", clickCount=1)

    def type(self, selector, text):
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def authenticator(self, **more):
        """A virtual authenticator with a resident key and a verified user; its id."""
        self.call("WebAuthn.enable")
        options = {"protocol": "ctap2", "ctap2Version": "ctap2_1", "transport": "internal", "hasResidentKey": True,
                   "hasUserVerification": True, "isUserVerified": True, "automaticPresenceSimulation": True, **more}
        return self.call("WebAuthn.addVirtualAuthenticator", options=options)["authenticatorId"]
