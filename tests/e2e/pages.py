#!/usr/bin/env python3
"""The pages on the whole system, over HTTPS: with a plain client, and with passkeys in Chromium."""
import base64
import hashlib
import hmac
import http.client
import html
import json
import pathlib
import re
import ssl
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import chromium
import tap
from bulkhead import PATIENCE_S, free_port
from code_provider import CodeProvider
from tap import contains, equal

PORT = free_port()
ORIGIN = f"https://localhost:{PORT}"
CONF = {"daemon_conf": f"https_port = {PORT}", "site": tap.SITE + f"""
sign_in: {{address: '{ORIGIN}'}}
"""}
PASSWORD = "correct horse battery"


def code_of(secret, at=None):
    """RFC 6238, from the secret as the page shows it."""
    step = int((time.time() if at is None else at) // 30)
    mac = hmac.new(base64.b32decode(secret + "=" * (-len(secret) % 8)), struct.pack(">Q", step), hashlib.sha1).digest()
    at = mac[-1] & 15
    return f"{(struct.unpack_from('>I', mac, at)[0] & 0x7fffffff) % 1000000:06}"


def certificate(site):
    """The daemon's certificate; it answers on its socket before it serves HTTPS."""
    site.until(lambda: "ready" in (site.dir / "daemon.log").read_text(), what="the pages")
    return site.dir / "state/tls.crt"


class Stop(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Browser:
    """As much of one as forms need: cookies, redirects, hidden fields."""

    def __init__(self, site):
        self.context = ssl.create_default_context(cafile=str(certificate(site)))
        self.cookies, self.path, self.text, self.status = {}, "/", "", 0

    def ask(self, method, path, body=None, follow=True, **headers):
        connection = http.client.HTTPSConnection("localhost", PORT, timeout=PATIENCE_S, context=self.context)
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request(method, path, body, {**({"Cookie": cookie} if cookie else {}), **headers})
        reply = connection.getresponse()
        self.text, self.status, self.headers = reply.read().decode(), reply.status, reply.headers
        connection.close()
        for line in reply.headers.get_all("Set-Cookie") or []:
            name, value = line.split(";")[0].split("=", 1)
            for rule in ("; Path=/", "; Secure", "; HttpOnly", "; SameSite=Lax"):
                contains("cookie", line, rule)
            if "Max-Age=0" in line:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        if self.status == 303 and follow:
            return self.go(reply.headers["Location"])
        self.path = path
        return self

    def go(self, path):
        return self.ask("GET", path)

    def send(self, action, origin=ORIGIN, **fields):
        """Fill in and send the page's form for that action."""
        form = re.search(rf'<form method="post" action="{re.escape(action)}".*?</form>', self.text, re.S).group(0)
        hidden = dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form))
        body = urllib.parse.urlencode({**{n: html.unescape(v) for n, v in hidden.items()}, **fields})
        return self.ask("POST", action, body, Origin=origin, **{"Content-Type": "application/x-www-form-urlencoded"})

    def leave(self, link, state=None):
        """Follow the link to the provider, which sends us back at once."""
        path = html.unescape(re.search(rf'href="([^"]*)">{re.escape(link)}<', self.text).group(1))
        self.ask("GET", path, follow=False)
        try:
            urllib.request.build_opener(Stop).open(self.headers["Location"])
        except urllib.error.HTTPError as reply:
            back = reply.headers["Location"].removeprefix(ORIGIN)
        return self.go(re.sub("state=[^&]*", f"state={state}", back) if state else back)

    def says(self, part):
        contains(self.path, html.unescape(self.text), part)
        return self


def add_account(site, name):
    """An account in the site file; its one-time code."""
    root = site.client()
    people = re.sub(r"(?m)^principals:\n", f"principals:\n  - {{name: {name}, account: true}}\n", CONF["site"], count=1)
    people = people.replace("bindings:\n", f"bindings:\n  - {{role: developer, principal: {name}, tenant: acme}}\n", 1)
    site.apply(people)
    return root.post("/v1/accounts", {"principal": name})["code"]


def first_visit(site, browser, name):
    code = add_account(site, name)
    browser.go("/enrol").send("/enrol", account=name, code=code, password=PASSWORD, repeated=PASSWORD)
    browser.says("The password was set.")
    browser.send("/signin", account=name, password=PASSWORD, code="")
    equal("where", browser.path, "/account")
    return browser.says("Add a second factor to finish.")


@tap.test(**CONF)
def factors(site):
    "a first visit, an authenticator app, recovery codes, and signing in with each"
    browser = first_visit(site, Browser(site), "zoe")
    browser.send("/account/totp/new").says("Scan this picture with the app")
    secret = re.search(r'class="secret">([A-Z2-7]+)<', browser.text).group(1)
    browser.send("/account/totp", code="000000").says("That did not match.")
    browser.send("/account/totp/new")
    secret = re.search(r'class="secret">([A-Z2-7]+)<', browser.text).group(1)
    browser.send("/account/totp", code=code_of(secret)).says("Recovery codes")
    codes = re.findall(r"<li>([0-9A-Z-]{19})</li>", browser.text)
    equal("codes", len(codes), 10)
    browser.go("/account").says("Recovery codes left: 10.").says("An authenticator app is set up.")
    browser.send("/signout").says("You are signed out of this site.")
    browser.go("/account")
    contains("sent to sign in", browser.path, "/signin?next=%2Faccount")
    browser.send("/signin", account="zoe", password=PASSWORD, code="").says("That did not match.")
    equal("status", browser.status, 403)
    browser.send("/signin", account="zoe", password=PASSWORD, code=codes[3]).says("Recovery codes left: 9.")
    browser.send("/signout")
    browser.go("/signin").send("/signin", account="zoe", password=PASSWORD, code=codes[3]).says("That did not match.")


@tap.test(**CONF)
def guesses(site):
    "guesses are refused with a notice after some attempts, from other browsers too, and the owner's browser continues"
    owner = first_visit(site, Browser(site), "zoe")
    owner.send("/signout")
    for _ in range(6):
        stranger = Browser(site).go("/signin").send("/signin", account="zoe", password="a guess, a guess", code="")
    stranger.says("Too many attempts.")
    owner.go("/signin").send("/signin", account="zoe", password=PASSWORD, code="").says("Your account")


@tap.test(**CONF)
def tokens(site):
    "a token is shown with when it was used, and revoked"
    browser = first_visit(site, Browser(site), "zoe")
    browser.send("/account/totp/new")
    secret = re.search(r'class="secret">([A-Z2-7]+)<', browser.text).group(1)
    browser.send("/account/totp", code=code_of(secret))
    code = re.search(r"<li>([0-9A-Z-]{19})</li>", browser.text).group(1)
    browser.go("/account").send("/signout")
    browser.go("/signin").send("/signin", account="zoe", password=PASSWORD, code=code).says("signed in as")
    browser.ask("POST", "/v1/tokens", json.dumps({"note": "nightly"}), **{
        "Authorization": "Bearer " + browser.cookies["__Host-bulkhead"], "Content-Type": "application/json"})
    token = json.loads(browser.text)["token"]
    browser.go("/account").says("nightly").says("used never")
    use = {"Authorization": f"Bearer {token}"}
    equal("works", browser.ask("GET", "/v1/whoami", **use).status, 200)
    browser.go("/account").send("/account/token/revoke").says("The token was revoked.")
    equal("works no more", browser.ask("GET", "/v1/whoami", **use).status, 401)


@tap.test(**CONF)
def sessions(site):
    "sessions are shown and ended, forms from elsewhere change nothing, a changed password ends them all"
    first = first_visit(site, Browser(site), "zoe")
    second = Browser(site).go("/signin").send("/signin", account="zoe", password=PASSWORD, code="")
    first.go("/account").says("(this one)")
    first.send("/account/session/end", origin="https://evil.example")
    equal("from elsewhere", first.status, 403)
    equal("still there", second.go("/account").path, "/account")
    first.go("/account").send("/account/session/end").says("The session was ended.")
    contains("ended", second.go("/account").path, "/signin")
    first.go("/account/password").send("/account/password", old=PASSWORD, password="another horse battery",
                                       repeated="another horse battery").says("The password was set.")
    contains("signed out", first.go("/account").path, "/signin")
    first.send("/signin", account="zoe", password=PASSWORD, code="").says("That did not match.")
    first.send("/signin", account="zoe", password="another horse battery", code="").says("Your account")


@tap.test(**CONF)
def headers(site):
    "pages have a strict policy, the session's secret is in no page, the API answers beside them"
    browser = first_visit(site, Browser(site), "zoe")
    contains("policy", browser.headers["Content-Security-Policy"], "default-src 'none'")
    contains("https for ever", browser.headers["Strict-Transport-Security"], "max-age")
    secret = browser.cookies["__Host-bulkhead"]
    equal("secret in the page", secret in browser.text, False)
    equal("a browser is no API client", browser.go("/v1/account").status, 401)
    equal("open to anybody", browser.go("/healthz").status, 200)
    log = (site.dir / "daemon.log").read_text()
    equal("secret in the log", secret in log or PASSWORD in log, False)
    for path in (site.dir / "state").glob("bulkhead.db*"):
        equal(f"secret in {path.name}", secret[16:].encode() in path.read_bytes() or PASSWORD.encode() in path.read_bytes(), False)


@tap.test(**CONF)
def passkey(site):
    "in Chromium: a passkey is added, signs in, shows again who one is, and is removed"
    if not chromium.program():
        raise tap.Skip("chromium is not installed")
    code = add_account(site, "zoe")
    with chromium.Chromium(trust=[certificate(site).read_bytes()]) as browser:
        page = browser.page()
        page.authenticator()

        def says(part):
            page.until(f"document.body.innerText.includes({part!r})")

        page.go(ORIGIN + "/enrol")
        for field, text in (("account", "zoe"), ("code", code), ("password", PASSWORD), ("repeated", PASSWORD)):
            page.type("#" + field, text)
        page.press("form[action='/enrol'] button")
        says("The password was set.")
        page.type("#account", "zoe")
        page.type("#password", PASSWORD)
        page.press("form[action='/signin'] button")
        says("Add a second factor to finish.")
        page.type("#name", "key ring")
        page.press("form[data-passkey] button")
        says("they are not shown again")
        page.press("main a")
        says("Recovery codes left: 10.")
        says("key ring")
        page.press("footer button")
        says("You are signed out of this site.")
        page.go(ORIGIN + "/signin")
        page.press("form[data-passkey] button")
        says("signed in as zoe")
        page.go(ORIGIN + "/account")
        says("with a passkey")
        page.press("form[action='/account/passkey/remove'] button")
        says("Add another way first")
        page.go(ORIGIN + "/again?next=/account/password")
        page.press("form[data-passkey] button")
        says("Set a password")
        equal("trouble", page.trouble, [])
    records = json.dumps(site.client().get("/v1/records?limit=1000"))
    for verb in ("account.passkey", "session.open", "session.prove"):
        contains("audited", records, f'"verb": "{verb}"')


def login(site):
    """`bulkhead login` in a home of its own: the program, and the address that it asks to open."""
    home = site.dir / "home"
    home.mkdir(exist_ok=True)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "BULKHEAD_SERVER": ORIGIN,
           "BULKHEAD_CA_FILE": str(certificate(site))}
    command = [site.program("bulkhead"), "login", "--no-browser"]
    program = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    said = [program.stderr.readline() for _ in range(3)]
    return program, said[1].strip(), said[2].split()[-1], env


@tap.test(**CONF)
def terminal(site):
    "in Chromium: a terminal is refused, and another let in after signing in on the way"
    if not chromium.program():
        raise tap.Skip("chromium is not installed")
    first_visit(site, Browser(site), "zoe")
    with chromium.Chromium(trust=[certificate(site).read_bytes()]) as browser:
        page = browser.page()
        program, address, shown, env = login(site)
        page.call("Page.navigate", url=address)
        page.until("!!document.querySelector('#account')")
        page.type("#account", "zoe")
        page.type("#password", PASSWORD)
        page.press("form[action='/signin'] button")
        page.until("!!document.querySelector('.code')")
        equal("the code in both", page.run("document.querySelector('.code').innerText"), shown)
        page.press(".choices form:first-child button")
        page.until("location.hostname === '127.0.0.1'")
        equal("refused", program.wait(timeout=PATIENCE_S) != 0, True)
        program, address, shown, env = login(site)
        page.call("Page.navigate", url=address)
        page.until(f"document.querySelector('.code')?.innerText === {shown!r}")
        page.press(".choices form:last-child button")
        page.until("location.hostname === '127.0.0.1'")
        equal("let in", program.wait(timeout=PATIENCE_S), 0)
        equal("trouble", [t for t in page.trouble if "favicon" not in t and "404" not in t and "400" not in t], [])
    who = subprocess.run([site.program("bulkhead"), "whoami"], env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    contains("who", who.stdout + who.stderr, "zoe")


@tap.test(**CONF)
def provider(site):
    "at a provider: signed in on the way to a page, asked again, and refused with what is not one's own"
    with CodeProvider(site.dir) as op:
        site.apply(CONF["site"].replace(f"sign_in: {{address: '{ORIGIN}'}}", f"""sign_in:
  address: '{ORIGIN}'
  issuers: [{{name: corp, url: '{op.url}', client_id: bulkhead, loopback: true}}]
"""))
        browser = Browser(site).go("/account")
        contains("sent to sign in", browser.path, "/signin?next=%2Faccount")
        browser.leave("Sign in with corp")
        equal("back, and on", browser.path, "/account")
        browser.says("signed in as").says("corp, ")
        contains("asked with PKCE", op.visits[0]["code_challenge_method"], "S256")
        browser.go("/again?next=/account").leave("Confirm with corp")
        equal("back again", browser.path, "/account")
        equal("asked to sign in anew", op.visits[1]["prompt"], "login")
        stranger = Browser(site).go("/signin")
        stranger.go(op.authorize({**op.visits[0], "state": "of-another"}).removeprefix(ORIGIN))
        stranger.says("This page was open for too long.")
        equal("no session", "__Host-bulkhead" in stranger.cookies, False)
        victim = Browser(site).go("/signin")
        victim.leave("Sign in with corp", state="of-another").says("did not let you in")
        equal("nor here", "__Host-bulkhead" in victim.cookies, False)


if __name__ == "__main__":
    tap.main()
