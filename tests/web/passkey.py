#!/usr/bin/env python3
"""Passkeys and pages in Debian's Chromium with its virtual authenticator.  Speaks TAP.

    passkey.py SERVER GOLDEN-FOLDER

SERVER is passkey_server: the real pages, checks and TLS server with one account in memory.
"""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report, skip_all  # noqa: E402
import chromium  # noqa: E402

tests = []


def test(function):
    tests.append(function)
    return function


class Site:
    """The server, a browser that trusts it, and a page with an authenticator."""

    def __init__(self, server, golden):
        self.golden = sorted(pathlib.Path(golden).glob("*.html"))
        self.server = subprocess.Popen([server, golden], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.origin, path = self.server.stdout.readline().split()
        self.browser = chromium.Chromium(trust=[pathlib.Path(path).read_bytes()])
        self.page = self.browser.page()
        self.device = self.page.authenticator()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.__exit__()
        self.server.stdin.close()
        self.server.wait(timeout=10)

    def go(self, path):
        self.page.go(self.origin + path)

    def verdict(self):
        return self.page.run("fetch('/verdict').then((reply) => reply.text())")

    def says(self, part):
        self.page.until(f"document.body.innerText.includes({json.dumps(part)})")

    def credentials(self):
        return self.page.call("WebAuthn.getCredentials", authenticatorId=self.device)["credentials"]


def equal(what, got, wanted):
    assert got == wanted, f"{what}: {got!r} is not {wanted!r}"


@test
def registers(site):
    "a passkey is made on the account page and named"
    site.go("/account")
    site.page.type("#name", "Ada's <b>phone</b>")
    site.page.press("form[data-passkey] button")
    site.says("The passkey was added.")
    equal("verdict", site.verdict(), "none")
    site.says("Ada's <b>phone</b>")
    kept = site.credentials()
    equal("credentials", [c["rpId"] for c in kept], ["localhost"])
    assert kept[0]["isResidentCredential"]


@test
def signs_in(site):
    "it signs in, and signs in again"
    for _ in range(2):
        before = site.credentials()[0]["signCount"]
        site.go("/signin")
        site.page.press("form[data-passkey] button")
        site.says("signed in as ada")
        equal("verdict", site.verdict(), "none")
        assert site.credentials()[0]["signCount"] > before


@test
def registered_once(site):
    "a device that has a passkey of this account gets a notice"
    site.go("/account")
    site.page.press("form[data-passkey] button")
    site.says("This device has a passkey for this account already.")
    assert site.page.run("!document.querySelector('form[data-passkey] button').disabled")
    equal("credentials", len(site.credentials()), 1)


@test
def unverified(site):
    "no user gets in without showing who they are"
    site.page.call("WebAuthn.setUserVerified", authenticatorId=site.device, isUserVerified=False)
    site.go("/signin")
    site.page.press("form[data-passkey] button")
    site.says("The passkey was not used")
    site.page.call("WebAuthn.setUserVerified", authenticatorId=site.device, isUserVerified=True)


@test
def answered_once(site):
    "an answer counts once: sent again it is refused"
    site.go("/signin")
    site.page.run("""(() => { HTMLFormElement.prototype.submit = function () { window.kept = this; }; })()""")
    site.page.press("form[data-passkey] button")
    site.page.until("!!window.kept")
    replies = site.page.run("""(async () => { const texts = [];
        for (let i = 0; i < 2; i++) {
          await fetch(kept.action, { method: 'POST', body: new URLSearchParams(new FormData(kept)) });
          texts.push(await (await fetch('/verdict')).text());
        }
        return texts; })()""")
    equal("verdicts", replies, ["none", "webauthn_used"])


@test
def other_page(site):
    "a passkey of this site answers no page of another origin"
    fault = site.page.run("""navigator.credentials.get({ publicKey: { challenge: new Uint8Array(32), rpId: 'example.com' } })
        .then(() => 'answered', (fault) => fault.name)""")
    equal("fault", fault, "SecurityError")


@test
def forged(site):
    "a form without the page's token, and one from elsewhere, change nothing"
    site.go("/account")
    status = site.page.run("""fetch('/account/passkey/options', { method: 'POST',
        body: new URLSearchParams({ answer: '', csrf: 'A'.repeat(43) }) }).then((reply) => reply.status)""")
    equal("status", status, 403)
    site.browser.events = [e for e in site.browser.events if "status of 403" not in json.dumps(e)]


@test
def narrow(site):
    "every page fits into 320 pixels, in light and dark, with contrast enough to read"
    site.page.call("Emulation.setDeviceMetricsOverride", width=320, height=640, deviceScaleFactor=1, mobile=False)
    for scheme in ("light", "dark"):
        site.page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for file in site.golden:
            site.go(f"/golden/{file.name}")
            wide, weak = site.page.run("""(() => {
              for (const form of document.querySelectorAll('form[hidden]')) form.hidden = false;
              const light = (colour) => { const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255)
                .map((p) => p <= 0.03928 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4);
                return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]; };
              const behind = (e) => { for (; e; e = e.parentElement) {
                const colour = getComputedStyle(e).backgroundColor;
                if (!colour.includes(', 0)')) return colour; } return 'rgb(255, 255, 255)'; };
              const weak = [];
              for (const e of document.querySelectorAll('body *')) {
                if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
                const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
                if ((a + 0.05) / (b + 0.05) < 4.5) weak.push(e.tagName + ' ' + e.className);
              }
              return [document.documentElement.scrollWidth, weak];
            })()""")
            assert wide <= 320, f"{file.name} is {wide} pixels wide"
            equal(f"{file.name}, {scheme}: too little contrast", weak, [])
    site.page.call("Emulation.clearDeviceMetricsOverride")


@test
def keyboard(site):
    "with the keyboard alone one goes through all fields and buttons, from the top to the bottom"
    site.go("/golden/signin.html")
    order = []
    for _ in range(7):
        site.page.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
        site.page.call("Input.dispatchKeyEvent", type="keyUp", key="Tab", code="Tab", windowsVirtualKeyCode=9)
        order.append(site.page.run("document.activeElement.id || document.activeElement.innerText"))
    equal("order", [order[0], *order[-4:]], ["Use a passkey", "account", "password", "code", "Sign in"])


@test
def quiet(site):
    "no page was refused anything by its own policy, and no script failed"
    equal("trouble", site.page.trouble, [])


def main():
    server, golden = sys.argv[1:3]
    for lack in [name for name, there in (("chromium", chromium.program()), ("openssl", shutil.which("openssl"))) if not there]:
        skip_all(f"{lack} is not installed")
    with Site(server, golden) as site:
        return Report(len(tests)).play(tests, site).close()


if __name__ == "__main__":
    sys.exit(main())
