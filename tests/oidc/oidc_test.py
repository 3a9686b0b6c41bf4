#!/usr/bin/env python3
"""Sign-ins against a real provider: npm's oidc-provider, over TLS.  Speaks TAP.

    oidc_test.py PARTY BULKHEAD-FETCH FOLDER [WORD]

PARTY is the program of party.c: src/identity with src/fetch.  oidc-provider is fetched into
FOLDER where the registry can be reached.  The browser is this file: it fills in the provider's
own pages.  Skipped by name where node, npm, openssl or the registry are missing.
"""
import html.parser
import http.cookiejar
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import traceback
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report, skip_all

PACKAGE = "oidc-provider@9.13.3"
REDIRECT = "https://gpu.example/callback"
HERE = os.path.dirname(os.path.abspath(__file__))
tests = []


def test(function):
    tests.append(function)
    return function


def equal(what, got, wanted):
    assert got == wanted, f"{what}: {got!r} is not {wanted!r}"


# ---- the browser ----

class Form(html.parser.HTMLParser):
    """The first form of a page, with its fields."""

    def __init__(self, page):
        super().__init__()
        self.action, self.fields = None, {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = values["action"]
        if tag == "input" and self.action is not None and "name" in values:
            self.fields[values["name"]] = values.get("value", "")


class Stop(urllib.request.HTTPRedirectHandler):
    """Follows what stays at the provider."""

    def redirect_request(self, request, answer, code, message, headers, address):
        if address.startswith(REDIRECT):
            return None
        return super().redirect_request(request, answer, code, message, headers, address)


class Browser:
    """One user's browser, with cookies of its own."""

    def __init__(self, site, name):
        context = ssl.create_default_context(cafile=f"{site.folder}/server.pem")
        self.name = name
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context), Stop,
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def open(self, address, fields=None):
        """The address it ended at, and the page; at REDIRECT there is none."""
        body = urllib.parse.urlencode(fields).encode() if fields is not None else None
        try:
            with self.opener.open(address, body, timeout=20) as answer:
                return answer.geturl(), answer.read().decode()
        except urllib.error.HTTPError as error:
            if error.code in (302, 303):
                return error.headers["Location"], ""
            raise AssertionError(f"{address}: {error.code} {error.read().decode()[:2000]}") from error

    def submit(self, address, page, **more):
        form = Form(page)
        assert form.action, f"no form at {address}: {page[:500]}"
        return self.open(urllib.parse.urljoin(address, form.action), {**form.fields, **more})

    def walk(self, address, page):
        """Signs in and agrees, until the provider asks no more."""
        while page:
            form = Form(page)
            if form.fields.get("prompt") == "login":
                address, page = self.submit(address, page, login=self.name, password="any")
            elif form.fields.get("prompt") == "consent":
                address, page = self.submit(address, page)
            else:
                break
        return address, page

    def sign_in(self, address):
        """What the provider sends back, as a query."""
        back, _ = self.walk(*self.open(address))
        assert back.startswith(f"{REDIRECT}?"), back
        return back.partition("?")[2]


# ---- the programs ----

class Party:
    """The relying party, as one client of the provider."""

    def __init__(self, site, client, **more):
        arguments = {"fetch": site.fetch, "issuer": site.issuer, "client": client, "redirect": REDIRECT,
                     "ca": f"{site.folder}/server.pem", "scope": "openid groups", **more}
        self.process = subprocess.Popen([site.party, *(f"{k}={v}" for k, v in arguments.items())],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        site.parties.append(self)

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().rstrip("\n")
        assert answer, f"{command}: the program ended"
        return answer

    def good(self, command):
        """What follows "ok"."""
        answer = self.say(command)
        assert answer.split(" ", 1)[0] == "ok", f"{command}: {answer}"
        return answer[3:]

    def who(self, command):
        return dict(part.split("=", 1) for part in self.good(command).split(" "))

    def sign_in(self, browser):
        self.good("callback " + browser.sign_in(self.good("login")))
        return self.who("tokens")

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


class Listener(http.server.BaseHTTPRequestHandler):
    """Where the provider delivers logout tokens."""
    tokens = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.tokens.append(urllib.parse.parse_qs(body)["logout_token"][0])
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


class Site:
    """The provider, and the files that it and its clients have.  One for all tests: each has
    browsers and relying parties of its own."""

    def __init__(self, party, fetch, packages):
        self.party, self.fetch, self.parties = party, fetch, []
        self.temporary = tempfile.TemporaryDirectory(prefix="bh-oidc-")
        self.folder = self.temporary.name
        self.make_keys()
        self.listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()
        shutil.copy(f"{HERE}/provider.mjs", packages)
        logout = f"http://127.0.0.1:{self.listener.server_port}/logout"
        self.log = open(f"{self.folder}/log", "w+", encoding="utf-8")
        self.provider = subprocess.Popen(["node", f"{packages}/provider.mjs", self.folder, logout, REDIRECT],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.issuer = self.hear("ready")

    def make_keys(self):
        for name, names in (("server", "IP:127.0.0.1,DNS:localhost"), ("client", "DNS:bulkhead")):
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}",
                    "-keyout", f"{self.folder}/{name}.key", "-out", f"{self.folder}/{name}.pem")
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", f"{self.folder}/rsa.key")
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", f"{self.folder}/ec.key")

    def hear(self, word):
        "What follows the word on a line of the provider's, which says other things, too."
        for line in self.provider.stdout:
            if line.split()[:1] == [word]:
                return line.strip().partition(" ")[2]
        raise AssertionError(f"the provider ended before it was {word}")

    def rotate(self):
        self.provider.stdin.write("rotate\n")
        self.provider.stdin.flush()
        self.hear("rotated")

    def leave(self):
        while self.parties:
            self.parties.pop().close()

    def close(self):
        self.provider.stdin.close()
        self.provider.wait(20)
        self.provider.stdout.close()
        self.listener.shutdown()
        self.listener.server_close()
        self.log.close()
        self.temporary.cleanup()


def with_secret(site):
    party = Party(site, "secret", secret="p:a%ss w0rd/+")
    party.good("discover")
    return party


# ---- tests ----

@test
def code_and_groups(site):
    "discovery, code with PKCE and a secret: the person, the groups, userinfo"
    party = Party(site, "secret", secret="p:a%ss w0rd/+")
    found = party.who("discover")
    equal("the answer names its issuer", found["iss"], "1")
    equal("device flow", found["device"], f"{site.issuer}/device/auth")
    who = party.sign_in(Browser(site, "alice"))
    equal("subject", who["sub"], "alice")
    equal("groups", who["groups"], "gpu-users,ml")
    assert who["sid"], "no session id"
    party.good("userinfo")
    equal("keys", party.good("keys"), "asked=1")


@test
def no_groups(site):
    "a person of no group has none, and another's session does not count"
    party = with_secret(site)
    equal("alice", party.sign_in(Browser(site, "alice"))["groups"], "gpu-users,ml")
    who = party.sign_in(Browser(site, "bob"))
    equal("bob", (who["sub"], who["groups"]), ("bob", ""))
    equal("keys", party.good("keys"), "asked=1")


@test
def refused_by_the_person(site):
    "who turns back at the provider comes back with an error and is not signed in"
    party, browser = with_secret(site), Browser(site, "alice")
    address, _ = browser.open(party.good("login"))
    back, _ = browser.open(f"{address}/abort")
    equal("callback", party.say("callback " + back.partition("?")[2]), "fault callback_error")


@test
def code_twice(site):
    "a code is good once, and its second use ends what the first gave"
    party = with_secret(site)
    equal("first", party.sign_in(Browser(site, "alice"))["refresh"], "yes")
    equal("second", party.say("tokens"), "fault grant_refused")
    equal("the grant", party.say("refresh"), "fault grant_refused")


@test
def another_secret(site):
    "a wrong secret is refused, and told apart from a wrong code"
    party = Party(site, "secret", secret="p:a%ss w0rd/-")
    party.good("discover")
    party.good("callback " + Browser(site, "alice").sign_in(party.good("login")))
    equal("tokens", party.say("tokens"), "fault client_refused")


@test
def by_rsa_key(site):
    "private_key_jwt with RS256: code and refresh, each with a proof of its own"
    party = Party(site, "rsa", key=f"{site.folder}/rsa.key", kid="one")
    party.good("discover")
    equal("code", party.sign_in(Browser(site, "alice"))["sub"], "alice")
    equal("refresh", party.who("refresh")["sub"], "alice")
    equal("again", party.who("refresh")["sub"], "alice")


@test
def by_ec_key(site):
    "private_key_jwt with ES256"
    party = Party(site, "ec", key=f"{site.folder}/ec.key", kid="two")
    party.good("discover")
    equal("code", party.sign_in(Browser(site, "alice"))["sub"], "alice")
    equal("refresh", party.who("refresh")["sub"], "alice")


@test
def by_another_key(site):
    "a proof by a key that is not the client's is refused"
    party = Party(site, "rsa", key=f"{site.folder}/ec.key", kid="one")
    party.good("discover")
    party.good("callback " + Browser(site, "alice").sign_in(party.good("login")))
    equal("tokens", party.say("tokens"), "fault client_refused")


@test
def by_certificate(site):
    "a client certificate, shown at the alias for those who have one"
    party = Party(site, "certificate", identity=f"{site.folder}/client.pem:{site.folder}/client.key")
    party.good("discover")
    equal("code", party.sign_in(Browser(site, "alice"))["sub"], "alice")
    equal("refresh", party.who("refresh")["sub"], "alice")


@test
def by_another_certificate(site):
    "another certificate, or none, is refused"
    for more in ({"identity": f"{site.folder}/server.pem:{site.folder}/server.key"}, {}):
        party = Party(site, "certificate", **more)
        party.good("discover")
        party.good("callback " + Browser(site, "alice").sign_in(party.good("login")))
        equal("tokens", party.say("tokens"), "fault client_refused")


@test
def device(site):
    "the device flow waits until the code was typed and confirmed; a spent one ends the grant"
    party, browser = Party(site, "device"), Browser(site, "alice")
    party.good("discover")
    code, address = party.good("device").split(" ")
    equal("before", party.good("poll"), "waiting")
    address, page = browser.submit(*browser.open(address), user_code=code)
    assert code in page and "Confirm" in page, page[:500]
    equal("typed", party.good("poll"), "waiting")
    browser.walk(*browser.submit(address, page))
    who = party.who("poll")
    equal("who", (who["sub"], who["groups"], who["refresh"]), ("alice", "gpu-users,ml", "yes"))
    equal("refresh", party.who("refresh")["sub"], "alice")
    equal("spent", party.say("poll-spent"), "fault grant_refused")
    equal("the grant", party.say("refresh"), "fault grant_refused")


@test
def device_denied(site):
    "a person who says no at the confirmation ends the device's wait"
    party, browser = Party(site, "device"), Browser(site, "alice")
    party.good("discover")
    code, address = party.good("device").split(" ")
    address, page = browser.submit(*browser.open(address), user_code=code)
    form = Form(page)
    form.fields.pop("confirm")
    browser.open(urllib.parse.urljoin(address, form.action), {**form.fields, "abort": "yes"})
    equal("denied", party.say("poll"), "fault device_denied")


@test
def refresh_rotates(site):
    "a refresh token is replaced at each use; an old one ends the whole grant"
    party = with_secret(site)
    party.sign_in(Browser(site, "alice"))
    for _ in range(3):
        who = party.who("refresh")
        equal("who", (who["sub"], who["groups"]), ("alice", "gpu-users,ml"))
    equal("an old one", party.say("refresh-spent"), "fault grant_refused")
    equal("the newest", party.say("refresh"), "fault grant_refused")


@test
def logout(site):
    "the browser is sent to sign out; it comes back with the state, and the back channel reports the sign-out"
    party, browser = with_secret(site), Browser(site, "alice")
    sid = party.sign_in(browser)["sid"]
    before = len(Listener.tokens)
    back, _ = browser.submit(*browser.open(party.good(f"logout-url {REDIRECT}/out")), logout="yes")
    assert back.startswith(f"{REDIRECT}/out?"), back
    party.good("logout-callback " + back.partition("?")[2])
    equal("a wrong state", party.say("logout-callback state=x"), "fault state_wrong")
    equal("told", len(Listener.tokens) - before, 1)
    token = Listener.tokens[-1]
    equal("whose", party.who(f"logout-token {token}"), {"sub": "alice", "sid": sid})
    equal("once", party.say(f"logout-token {token}"), "fault logout_replayed")
    equal("damaged", party.say(f"logout-token {token[:-8]}AAAAAAAA"), "fault signature")
    equal("the grant", party.say("refresh"), "fault grant_refused")


@test
def logout_of_another_client(site):
    "a logout token for one client is refused by another"
    party, other, browser = with_secret(site), Party(site, "rsa", key=f"{site.folder}/rsa.key"), Browser(site, "alice")
    other.good("discover")
    party.sign_in(browser)
    browser.submit(*browser.open(party.good(f"logout-url {REDIRECT}/out")), logout="yes")
    equal("other", other.say(f"logout-token {Listener.tokens[-1]}"), "fault aud_wrong")


@test
def keys_rotate(site):
    "a new signing key is fetched once it is named, and no more often than every 30 s"
    party = with_secret(site)
    party.sign_in(Browser(site, "alice"))
    site.rotate()
    party.good("callback " + Browser(site, "alice").sign_in(party.good("login")))
    equal("too soon", party.say("tokens"), "fault key_unknown")
    equal("keys", party.good("keys"), "asked=1")
    party.good("advance 31")
    equal("then", party.sign_in(Browser(site, "alice"))["sub"], "alice")
    equal("keys", party.good("keys"), "asked=2")
    equal("from the cache", party.sign_in(Browser(site, "alice"))["sub"], "alice")
    equal("keys", party.good("keys"), "asked=2")


@test
def another_provider(site):
    "a provider behind another certificate, or of another name, is none"
    party = Party(site, "secret", secret="p:a%ss w0rd/+", ca=f"{site.folder}/client.pem")
    equal("certificate", party.say("discover"), "fault provider_down")
    party = Party(site, "secret", secret="p:a%ss w0rd/+", issuer=site.issuer.replace("127.0.0.1", "localhost"))
    equal("name", party.say("discover"), "fault discovery_issuer")


# ---- running them ----

def missing(packages):
    """What this machine lacks, or ""."""
    for program in ("node", "npm", "openssl"):
        if not shutil.which(program):
            return f"{program} is not installed"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=20).stdout
    if int(version.strip().lstrip("v").split(".")[0] or 0) < 20:
        return f"node {version.strip()} is too old for {PACKAGE}"
    if os.path.isdir(f"{packages}/node_modules/oidc-provider"):
        return ""
    os.makedirs(packages, exist_ok=True)
    command = ["npm", "install", "--prefix", packages, "--no-audit", "--no-fund", "--ignore-scripts",
               "--fetch-retries=0", PACKAGE]
    try:
        good = subprocess.run(command, capture_output=True, timeout=120).returncode == 0
    except subprocess.TimeoutExpired:
        good = False
    return "" if good else "the npm registry cannot be reached"


def run_one(function, site):
    """What went wrong, or ""."""
    try:
        function(site)
        return ""
    except Exception:
        site.log.seek(0)
        return traceback.format_exc() + site.log.read()[-4000:]
    finally:
        site.leave()


def main():
    if len(sys.argv) < 4:
        sys.exit(f"usage: {sys.argv[0]} PARTY BULKHEAD-FETCH FOLDER [WORD]")
    arguments, word = sys.argv[1:4], sys.argv[4] if len(sys.argv) > 4 else ""
    lack = missing(arguments[2])
    if lack:
        skip_all(lack)
    chosen = [t for t in tests if word in t.__name__]
    report = Report(len(chosen))
    site = Site(*arguments)
    for function in chosen:
        trouble = run_one(function, site)
        report.line(not trouble, f"{function.__name__}: {function.__doc__}", trouble)
    site.close()
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
