#!/usr/bin/env python3
"""The pages of a real bulkheadd in Debian's Chromium: a first admin's first visit, passkeys with
the virtual authenticator, an authenticator app, signing in and out, and a command line's door.
Speaks TAP.

    daemon.py BUILD

The tests follow one another, as one person's first day does."""
import base64
import hashlib
import hmac
import http.client
import http.server
import json
import pathlib
import re
import shutil
import ssl
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import bulkhead  # noqa: E402
import chromium  # noqa: E402
import closing  # noqa: E402
import tap  # noqa: E402
from tap import contains, equal  # noqa: E402
from report import Report, skip_all  # noqa: E402

PASSWORD = "correct horse battery"
ADDRESS_FORM = "tenants: [{{name: acme}}]\nsign_in: {{address: 'https://localhost:{port}'}}\n"
tests = []


def test(function):
    tests.append(function)
    return function


def totp(secret, ahead=0):
    """RFC 6238: the code of now, or of some steps ahead."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    mac = hmac.new(key, struct.pack(">Q", int(time.time()) // 30 + ahead), hashlib.sha1).digest()
    at = mac[-1] & 15
    return f"{(struct.unpack('>I', mac[at:at + 4])[0] & 0x7fffffff) % 1000000:06d}"


class Door:
    """A command line's listener on 127.0.0.1: what it was brought."""

    def __enter__(self):
        door = self
        self.brought = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path != "/favicon.ico":
                    door.brought.append((self.path, self.headers.get("Referer")))
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                self.wfile.write(b"at the door")

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Daemon(bulkhead.Site):
    """bulkheadd without a node, which no page needs."""

    def start_node(self):
        pass

    def await_gpus(self, seconds=0):
        pass


class Day:
    """The daemon, a browser that trusts it, and a page with an authenticator."""

    def __init__(self, build):
        self.port = bulkhead.free_port()
        self.origin = f"https://localhost:{self.port}"
        self.site = Daemon(build, topology="1x H100-80GB", site=ADDRESS_FORM.format(port=self.port),
                           daemon_conf=f"https_port = {self.port}")

    def __enter__(self):
        self.site.__enter__()
        try:
            self.site.until(lambda: "ready" in (self.site.dir / "daemon.log").read_text(), what="HTTPS")
            self.pem = (self.site.dir / "state/tls.crt").read_bytes()
            self.browser = chromium.Chromium(trust=[self.pem])
            self.page = self.browser.page()
            self.device = self.page.authenticator()
        except BaseException as fault:
            self.site.__exit__(type(fault), fault, None)
            raise
        return self

    def __exit__(self, kind, *rest):
        self.browser.__exit__()
        self.site.__exit__(kind, *rest)

    def go(self, path):
        self.page.call("Page.navigate", url=self.origin + path)
        self.page.until("document.readyState === 'complete' && location.origin === " + json.dumps(self.origin))

    def at(self, path):
        self.page.until(f"document.readyState === 'complete' && location.pathname === {json.dumps(path)}")

    def says(self, part):
        self.page.until(f"document.body.innerText.includes({json.dumps(part)})")

    def press(self, selector):
        self.page.until(f"!!document.querySelector({json.dumps(selector)})")
        self.page.press(selector)

    def fill(self, **fields):
        for name, value in fields.items():
            self.page.type(f"#{name}", value)

    def expect(self, part):
        """Chromium tells of replies that are errors; those are meant."""
        self.browser.events = [e for e in self.browser.events if part not in json.dumps(e)]

    def cookies(self):
        found = self.page.call("Network.getCookies", urls=[self.origin])["cookies"]
        return {cookie["name"]: cookie for cookie in found}

    def ask(self, method, path, body=None, bearer=None, **headers):
        """(status, headers, text) over HTTPS, without the browser."""
        context = ssl.create_default_context(cadata=self.pem.decode())
        context.check_hostname = False
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=context)
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = connection.getresponse()
        done = reply.status, reply.headers, reply.read().decode()
        connection.close()
        return done

    def sign_in_by_passkey(self):
        self.press("form[action='/signin/passkey'] button")


@test
def first_visit(day):
    "the first admin comes with the code from the file, and is asked for a second factor"
    day.go("/")
    day.at("/signin")
    day.says("names no identity provider and no account")
    day.press("a[href='/enrol']")
    day.at("/enrol")
    code = (day.site.dir / "state/first-admin.code").read_text().strip()
    day.fill(account="ada", code=code, password=PASSWORD, repeated=PASSWORD)
    day.press("form[action='/enrol'] button")
    day.at("/account")
    day.says("Add a second factor to finish")
    day.says("signed in as ada")
    assert not (day.site.dir / "state/first-admin.code").exists()


@test
def cookies(day):
    "the session's cookie is this host's alone, no script's, and ends with the browser"
    cookie = day.cookies()["__Host-bulkhead"]
    equal("flags", [cookie[k] for k in ("path", "secure", "httpOnly", "session", "sameSite", "domain")],
          ["/", True, True, True, "Lax", "localhost"])
    equal("for scripts", day.page.run("document.cookie"), "")


@test
def first_passkey(day):
    "a passkey is added, its recovery codes are shown once, and the account is finished"
    day.fill(name="Ada's phone")
    day.press("form[data-passkey=create] button")
    day.says("Done")
    equal("codes", day.page.run("document.querySelectorAll('.codes li').length"), 10)
    day.press("main a[href='/account']")
    day.says("Ada's phone")
    day.says("Recovery codes left: 10.")
    day.says("with a passkey")
    assert not day.page.run("document.body.innerText.includes('Add a second factor')")


@test
def signs_out(day):
    "signing out ends the session at the server, too"
    before = day.cookies()["__Host-bulkhead"]["value"]
    equal("lives", day.ask("GET", "/v1/whoami", bearer=before)[0], 200)
    day.press("form[action='/signout'] button")
    day.at("/signedout")
    assert "__Host-bulkhead" not in day.cookies()
    equal("over", day.ask("GET", "/v1/whoami", bearer=before)[0], 401)
    day.go("/account")
    day.at("/signin")


@test
def by_passkey(day):
    "a passkey alone signs in, and leads to the page that was asked for"
    day.sign_in_by_passkey()
    day.at("/account")
    day.says("signed in as ada")
    equal("level", json.loads(day.ask("GET", "/v1/sessions", bearer=day.cookies()["__Host-bulkhead"]["value"])[2])
          ["items"][0]["level"], "passkey")


@test
def an_app(day):
    "an authenticator app is added by the code that it shows"
    day.press("form[action='/account/totp/new'] button")
    day.says("Secret:")
    day.secret = day.page.run("document.querySelector('.secret').innerText")
    assert day.page.run("document.querySelector('img.qr').naturalWidth") > 0
    day.fill(code=totp(day.secret))
    day.press("form[action='/account/totp'] button")
    day.says("The authenticator app was added.")


@test
def by_password(day):
    "password and code sign in; a wrong one is only refused"
    day.press("form[action='/signout'] button")
    day.at("/signedout")
    for code, said in (("000000", "That did not match."), (totp(day.secret, 1), "signed in as ada")):
        day.go("/signin")
        day.fill(account="ada", password=PASSWORD, code=code)
        day.press("form[action='/signin'] button")
        day.says(said)
    day.at("/")
    day.go("/account")
    day.says("with a code")
    day.expect("status of 403")


@test
def again(day):
    "what asks again is shown a passkey, in the same session"
    before = day.cookies()["__Host-bulkhead"]["value"]
    day.go("/again?next=/account")
    day.says("Confirm your identity")
    day.press("form[action='/again/passkey'] button")
    day.at("/account")
    day.says("with a passkey")
    equal("session", day.cookies()["__Host-bulkhead"]["value"], before)


@test
def sessions(day):
    "another session is listed, and ended from here"
    mine = day.cookies()["__Host-bulkhead"]["value"]
    equal("one", len(json.loads(day.ask("GET", "/v1/sessions", bearer=mine)[2])["items"]), 1)
    code, verifier = grant(day, mine)
    granted = json.loads(day.ask("POST", "/v1/sign-in/code", {"code": code, "verifier": verifier})[2])["session"]
    day.go("/account")
    day.says("laptop")
    day.press("button[aria-label='End laptop']")
    day.says("The session was ended.")
    equal("over", day.ask("GET", "/v1/whoami", bearer=granted)[0], 401)
    equal("mine", day.ask("GET", "/v1/whoami", bearer=mine)[0], 200)


def challenge_of(verifier):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def grant(day, bearer):
    verifier = "v" * 43
    body = {"challenge": challenge_of(verifier), "host": "laptop"}
    return json.loads(day.ask("POST", "/v1/sign-in/grant", body, bearer)[2])["code"], verifier


@test
def door(day):
    "a command line is let in: the page shows its code, and brings what it waits for to it alone"
    verifier = "w" * 50
    challenge = challenge_of(verifier)
    day.press("form[action='/signout'] button")
    day.at("/signedout")
    with Door() as listener:
        path = f"/sign-in/command-line?challenge={challenge}&state=S-_4&host=ada%27s%20laptop&port={listener.port}"
        day.go(path)
        day.at("/signin")
        day.sign_in_by_passkey()
        day.at("/sign-in/command-line")
        day.says("ada's laptop")
        equal("code", day.page.run("document.querySelector('p.code').innerText"), challenge[:8])
        day.press(".choices form:last-child button")
        day.says("at the door")
        brought, referer = listener.brought[0]
        contains("state", brought, "&state=S-_4")
        equal("referrer", referer, None)
        code = re.fullmatch(r"/\?code=([0-9a-f]+)&state=S-_4", brought)[1]
        status, _, text = day.ask("POST", "/v1/sign-in/code", {"code": code, "verifier": verifier})
        equal("exchanged", status, 201)
        session = json.loads(text)
        equal("who", json.loads(day.ask("GET", "/v1/whoami", bearer=session["session"])[2])["name"], "ada")
        day.go(path)
        day.press(".choices form:first-child button")
        day.says("at the door")
        equal("refused", listener.brought[-1][0], "/?error=access_denied&state=S-_4")
        day.go("/account")
    day.expect(f"127.0.0.1:{listener.port}")  # its picture, after it closed


@test
def headers(day):
    "pages come with the policy that is promised, and are kept nowhere"
    status, head, _ = day.ask("GET", "/signin", **{"Sec-Fetch-Site": "none"})
    equal("status", status, 200)
    promised = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
                "Referrer-Policy": "same-origin", "Strict-Transport-Security": "max-age=63072000",
                "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}
    equal("headers", {name: head.get(name) for name in promised}, promised)
    policy = head["Content-Security-Policy"]
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"):
        contains("policy", policy, part)
    assert "unsafe" not in policy and "*" not in policy


@test
def forged(day):
    "a form of another origin, and one without the page's token, change nothing"
    cookie = "; ".join(f"{name}={value['value']}" for name, value in day.cookies().items())
    for origin, status in (("https://evil.example", 403), (day.origin, 403)):
        equal(origin, day.ask("POST", "/signout", Cookie=cookie, Origin=origin, Host=f"localhost:{day.port}",
                              **{"Content-Type": "application/x-www-form-urlencoded"})[0], status)
    day.go("/account")
    day.says("signed in as ada")


@test
def api_alone(day):
    "the API is where it was, a cookie is no bearer of it, and the unix socket has no pages"
    equal("over https", day.ask("GET", "/healthz")[0], 200)
    session = day.cookies()["__Host-bulkhead"]["value"]
    equal("cookie", day.ask("GET", "/v1/whoami", Cookie=f"__Host-bulkhead={session}")[0], 401)
    for path in ("/", "/signin", "/account"):
        try:
            day.site.client().get(path)
        except bulkhead.Refused as refused:
            equal(path, refused.status, 404)
        else:
            raise AssertionError(f"the socket has a page {path}")


@test
def secrets(day):
    "no secret of it stands in the log or the records"
    log = (day.site.dir / "daemon.log").read_text()
    store = b"".join(p.read_bytes() for p in (day.site.dir / "state").glob("bulkhead.db*"))
    session = day.cookies()["__Host-bulkhead"]["value"]
    for secret in (PASSWORD, session[16:]):
        assert secret not in log and secret.encode() not in store, secret


@test
def quiet(day):
    "no page was refused anything by its own policy, and no script failed"
    equal("trouble", day.page.trouble, [])


def main():
    lacks = [name for name, there in (("chromium", chromium.program()), ("openssl", shutil.which("openssl"))) if not there]
    lack = tap.missing() or (f"{lacks[0]} is not installed" if lacks else "")
    if lack:
        skip_all(lack)
    audit, report = [], Report(len(tests) + 1)
    with closing.kept(audit), Day(sys.argv[1]) as day:
        report.play(tests, day, stop=True)
    report.line(not audit, "the closing audit holds", audit)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
