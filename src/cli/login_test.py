#!/usr/bin/env python3
"""Signing in from the command line against a server that plays the API's part: what is
asked, what is sent, what is kept and what is shown.  TAP on standard output.

usage: login_test.py BULKHEAD [WORD]
"""
import base64
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/lib"))
import terminal

BULKHEAD = os.path.abspath(sys.argv[1])
PASSWORD, CODE, SECRET = "correct horse battery", "123456", "bs_" + "s" * 40
STEP_UP = 'Bearer realm="bulkhead", error="insufficient_user_authentication", acr_values="{}", max_age="300"'
tests = []


def test(function):
    tests.append(function)
    return function


def equal(what, got, wanted):
    assert got == wanted, f"{what}: {got!r} is not {wanted!r}"


def contains(what, text, part):
    assert part in text, f"{what}: {part!r} is not in {text!r}"


def lacks(what, text, part):
    assert part not in text, f"{what}: {part!r} is in {text!r}"


class Refuse(Exception):
    def __init__(self, status, code, message, challenge=None):
        self.status, self.code, self.message, self.challenge = status, code, message, challenge


class Server(socketserver.ThreadingUnixStreamServer):
    """Answers by `routes`, {"POST /v1/x": a function of (body, bearer), or what it answers}."""
    daemon_threads = True

    def __init__(self, path):
        super().__init__(path, Handler)
        self.requests, self.routes = [], {}
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def asked(self, what):
        return [r for r in self.requests if r[0] == what]


class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        bearer = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        what = f"{self.command} {self.path}"
        self.server.requests.append((what, body, bearer, self.headers.get("Idempotency-Key")))
        status, headers = 200, {}
        try:
            answer = self.server.routes[what]
            answer = answer(body, bearer) if callable(answer) else answer
        except Refuse as refused:
            status, answer = refused.status, {"error": {"code": refused.code, "message": refused.message}}
            headers = {"WWW-Authenticate": refused.challenge} if refused.challenge else {}
        except KeyError:
            status, answer = 404, {"error": {"code": "not_found", "message": f"the test has no {what}"}}
        text = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": len(text)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = serve


def session(name="ada", secret=SECRET, lasts_s=3600, **more):
    return {"expires_ns": str(time.time_ns() + lasts_s * 10**9), "id": "s" + secret[-4:], "level": "code",
            "name": name, "session": secret, **more}


def unauthenticated(message="the name, password or code is wrong"):
    return Refuse(401, "unauthenticated", message, 'Bearer realm="bulkhead"')


class Place:
    """A home and a server of one test's own."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-login-"))
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        self.socket = str(self.dir / "s")
        self.server = Server(self.socket)
        self.kept = self.dir / "state/bulkhead/sessions"
        self.env = {"PATH": str(self.bin), "HOME": str(self.dir / "home"), "BULKHEAD_SOCKET": self.socket,
                    "XDG_STATE_HOME": str(self.dir / "state"), "TERM": "dumb"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.dir)

    def run(self, *argv, stdin="", status=0):
        """Without a terminal: neither on standard input nor as /dev/tty."""
        done = subprocess.run([BULKHEAD, *argv], input=stdin, capture_output=True, text=True, env=self.env,
                              start_new_session=True, timeout=30)
        equal(f"status of {argv} ({done.stderr})", done.returncode, status)
        return done

    def sign_in(self, secret=SECRET, **more):
        self.server.routes["POST /v1/sign-in"] = session(secret=secret, **more)
        self.run("login", "--account", "ada", "--password-stdin", stdin=f"{PASSWORD}\n{CODE}\n")

    def sessions(self):
        return json.loads(self.kept.read_text())["sessions"] if self.kept.exists() else []

    def script(self, name, text):
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def talk(self, argv, *turns, status=0):
        """On a terminal: wait for each question, then type its answer.  All that was seen."""
        return terminal.talk([BULKHEAD, *argv], turns, self.env, status)


# ---- accounts ----

ACCOUNT_TURNS = [("password: ", PASSWORD), ("(empty: none): ", CODE)]


@test
def account(place):
    "--account asks for password and code unseen, keeps the session for its owner, and commands use it"
    place.server.routes["POST /v1/sign-in"] = session()
    seen = place.talk(["login", "--account", "ada"], *ACCOUNT_TURNS)
    lacks("typed", seen, PASSWORD)
    lacks("typed", seen, CODE)
    contains("who", seen, "as ada until 20")
    what, body, bearer, key = place.server.requests[-1]
    equal("sent", {**body, "host": ""}, {"account": "ada", "code": CODE, "host": "", "password": PASSWORD})
    equal("bearer and key", (bearer, key), ("", None))
    equal("host", body["host"], os.uname().nodename)
    equal("modes", [oct(p.stat().st_mode & 0o777) for p in (place.kept, place.kept.parent)], ["0o600", "0o700"])
    equal("kept", [(s["name"], s["session"], s["address"]) for s in place.sessions()],
          [("ada", SECRET, f"unix:{os.path.realpath(place.socket)}")])
    place.server.routes["GET /v1/whoami"] = {"name": "ada", "via": "session", "roles": []}
    contains("who", place.run("whoami").stdout, "ada, known by session")
    equal("bearer", place.server.requests[-1][2], SECRET)


@test
def account_from_stdin(place):
    "--password-stdin takes password and code from two lines; without a code none is sent"
    place.sign_in()
    equal("sent", place.server.requests[-1][1]["code"], CODE)
    place.run("login", "--account", "ada", "--password-stdin", stdin=PASSWORD + "\n")
    sent = place.server.asked("POST /v1/sign-in")[-1][1]
    equal("sent", (sent["password"], "code" in sent), (PASSWORD, False))


@test
def no_terminal(place):
    "without a terminal nothing is sent, and --password-stdin is named"
    done = place.run("login", "--account", "ada", status=8)
    contains("hint", done.stderr, "--password-stdin")
    equal("requests", place.server.requests, [])


@test
def wrong(place):
    "a wrong password is status 4, and nothing is kept"
    def refuse(*_):
        raise unauthenticated()
    place.server.routes["POST /v1/sign-in"] = refuse
    done = place.run("login", "--account", "ada", "--password-stdin", stdin="x\ny\n", status=4)
    contains("said", done.stderr, "the name, password or code is wrong")
    equal("kept", place.sessions(), [])


@test
def first(place):
    "--first makes the first administrator: name, code, and a password that is typed twice"
    place.server.routes["POST /v1/sign-in/first"] = session()
    turns = [("name of the new account: ", "ada"), ("first-admin.code: ", "ab-cd"), ("new password: ", PASSWORD)]
    place.talk(["login", "--first"], *turns, ("again: ", "another"), status=3)
    equal("requests", place.server.requests, [])
    seen = place.talk(["login", "--first"], *turns, ("again: ", PASSWORD))
    contains("next", seen, "account totp")
    equal("sent", place.server.requests[-1][1], {"account": "ada", "code": "ab-cd", "password": PASSWORD})
    place.run("login", "--first", "--password-stdin", stdin="ab-cd\n" + PASSWORD + "\n", status=3)
    place.run("login", "--first", "--account", "bob", "--password-stdin", stdin="ab-cd\n" + PASSWORD + "\n")
    equal("sent", place.server.asked("POST /v1/sign-in/first")[-1][1], {"account": "bob", "code": "ab-cd", "password": PASSWORD})


@test
def device_is_known(place):
    "what the server gave this device is kept beyond the session and shown at the next sign-in of that account"
    place.server.routes["POST /v1/sign-out"] = {"ended": True, "logout": ""}
    place.sign_in(device="dev-1")
    guarded(place)
    place.talk(["account", "list"], ("authenticator app: ", CODE))
    equal("proved", place.server.asked("POST /v1/prove")[0][1], {"code": CODE, "device": "dev-1"})
    place.run("logout")
    place.sign_in()
    place.run("login", "--account", "bob", "--password-stdin", stdin="x\ny\n")
    equal("sent", [r[1].get("device") for r in place.server.asked("POST /v1/sign-in")], [None, "dev-1", None])


@test
def former(place):
    "who signs in again leaves no session behind"
    place.sign_in()
    place.server.routes["POST /v1/sign-out"] = {"ended": True, "logout": ""}
    place.sign_in("bs_" + "t" * 40)
    equal("ended", place.server.requests[-1][0::2][:2], ("POST /v1/sign-out", SECRET))
    equal("kept", [s["session"] for s in place.sessions()], ["bs_" + "t" * 40])


# ---- browsers ----

def visit(address, **changes):
    """What the server's page does once the person said yes: the status of the answer."""
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
    back = urllib.parse.urlencode({"code": "CODE-1", "state": query["state"], **changes})
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{query['port']}/?{back}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def offer(place, **more):
    place.server.routes["GET /v1/sign-in"] = {"accounts": True, "address": "https://gpu.example/", "issuers": [],
                                              "passkeys": True, **more}

    def exchange(body, _):
        digest = hashlib.sha256(body["verifier"].encode()).digest()
        place.challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if body["code"] != "CODE-1":
            raise unauthenticated("the code is not valid")
        return session()
    place.server.routes["POST /v1/sign-in/code"] = exchange


def begin(place, *more):
    """A login that waits for its browser: the process and the address it prints."""
    process = subprocess.Popen([BULKHEAD, "login", *more], env=place.env, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    process.stderr.readline()
    return process, process.stderr.readline().strip()


@test
def browser(place):
    "the browser's code is exchanged with the verifier of its challenge; strangers do not disturb"
    offer(place)
    process, address = begin(place, "--no-browser")
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
    contains("page", address, "https://gpu.example/sign-in/command-line?")
    equal("host", query["host"], os.uname().nodename)
    contains("shown", process.stderr.readline(), query["challenge"][:8])
    equal("a stranger", visit(address, state="x" * 43)[0], 400)
    equal("kept", place.sessions(), [])
    status, page = visit(address)
    contains("page", page, "You can close this window.")
    rest = process.communicate(timeout=10)[1]
    equal("status", (process.returncode, status), (0, 200))
    equal("challenge", place.challenge, query["challenge"])
    contains("who", rest, "as ada until")
    lacks("secret", rest, SECRET)
    equal("kept", [s["session"] for s in place.sessions()], [SECRET])


@test
def browser_says_no(place):
    "who says no in the browser ends the waiting, with status 4; a code that is none, too"
    offer(place)
    process, address = begin(place)
    equal("page", visit(address.replace("state=", "state="), error="access_denied", code="")[0], 400)
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
    urllib.request.urlopen(f"http://127.0.0.1:{query['port']}/?error=access_denied&state={query['state']}").read()
    contains("said", process.communicate(timeout=10)[1], "refused in the browser")
    equal("status", process.returncode, 4)
    process, address = begin(place)
    visit(address, code="CODE-2")
    contains("said", process.communicate(timeout=10)[1], "the code is not valid")
    equal("status", process.returncode, 4)
    equal("kept", place.sessions(), [])


@test
def browser_is_opened(place):
    "xdg-open gets the address where there is a display, and not with --no-browser or without one"
    offer(place)
    place.script("xdg-open", f'printf "%s\\n" "$#" "$1" > {place.dir}/opened.new; /bin/mv {place.dir}/opened.new {place.dir}/opened')
    for display, more, opened in ((None, [], False), ("DISPLAY", ["--no-browser"], False), ("DISPLAY", [], True),
                                  ("WAYLAND_DISPLAY", [], True)):
        (place.dir / "opened").unlink(missing_ok=True)
        place.env = {k: v for k, v in place.env.items() if "DISPLAY" not in k}
        if display:
            place.env[display] = ":0"
        process, address = begin(place, *more)
        deadline = time.monotonic() + (10 if opened else 0.2)
        while time.monotonic() < deadline and not (place.dir / "opened").exists():
            time.sleep(0.01)
        equal("opened", (place.dir / "opened").exists(), opened)
        if opened:
            equal("with", (place.dir / "opened").read_text(), f"1\n{address}\n")
        visit(address)
        process.communicate(timeout=10)


@test
def no_address(place):
    "a server without an address for browsers, or with one that no browser should see, is refused"
    offer(place, address="")
    contains("hint", place.run("login", status=8).stderr, "--account NAME")
    for bad in ("javascript:alert(1)", "https://x/$(id)", "https://x/'", "file:///etc/passwd", "https://x/ y", "-x"):
        offer(place, address=bad)
        contains(bad, place.run("login", status=3).stderr, "address for browsers is invalid")


# ---- devices ----

@test
def device(place):
    "--device shows address and code and asks at the server's pace until somebody signed in"
    place.server.routes["GET /v1/sign-in"] = {"accounts": False, "address": "", "passkeys": False, "issuers": [
        {"device": False, "name": "other"}, {"device": True, "name": "corp"}]}
    place.server.routes["POST /v1/sign-in/device"] = {
        "address": "https://idp.example/device", "address_complete": "https://idp.example/device?c=ABCD-EFGH",
        "code": "ABCD-EFGH", "expires_ns": str(time.time_ns() + 10**12), "id": "d 1", "interval_s": 1}
    polled = []

    def poll(*_):
        polled.append(time.monotonic())
        if len(polled) == 2:
            raise Refuse(503, "unavailable", "the issuer does not answer")
        return session() if len(polled) == 4 else {"interval_s": 2 if len(polled) == 3 else 1, "state": "waiting"}
    place.server.routes["POST /v1/sign-in/device/d%201"] = poll
    done = place.run("login", "--device")
    contains("shown", done.stderr, "https://idp.example/device on any machine and enter the code ABCD-EFGH")
    contains("shown", done.stderr, "https://idp.example/device?c=ABCD-EFGH")
    equal("issuer", place.server.asked("POST /v1/sign-in/device")[0][1]["issuer"], "corp")
    pauses = [b - a for a, b in zip(polled, polled[1:])]
    assert pauses[0] >= 1 and pauses[1] >= 1 and pauses[2] >= 2, f"asked too soon: {pauses}"
    equal("kept", len(place.sessions()), 1)


@test
def device_ends(place):
    "an expired code ends the waiting; without a fitting issuer it is not begun"
    ways = {"accounts": False, "address": "", "passkeys": False}
    place.server.routes["GET /v1/sign-in"] = {**ways, "issuers": [{"device": True, "name": n} for n in ("a", "b")]}
    contains("several", place.run("login", "--device", status=3).stderr, "--issuer NAME")
    place.run("login", "--device", "--issuer", "c", status=5)
    place.server.routes["POST /v1/sign-in/device"] = {"address": "https://x", "address_complete": "", "code": "\x1b[31mA",
                                                      "expires_ns": "0", "id": "d", "interval_s": 1}

    def over(*_):
        raise Refuse(404, "not_found", "no such sign-in: it may be over")
    place.server.routes["POST /v1/sign-in/device/d"] = over
    done = place.run("login", "--device", "--issuer", "b", status=5)
    contains("scrubbed", done.stderr, "?[31mA")
    place.server.routes["GET /v1/sign-in"] = {**ways, "issuers": [{"device": False, "name": "a"}]}
    place.run("login", "--device", status=8)


# ---- the kept session ----

@test
def refused_file(place):
    "a file that others can read is neither used nor written over; the bearer stays at home"
    place.sign_in()
    place.kept.chmod(0o644)
    count = len(place.server.requests)
    contains("said", place.run("whoami", status=4).stderr, "is open to other users")
    place.run("login", "--account", "ada", "--password-stdin", stdin="x\n", status=4)
    equal("requests", len(place.server.requests), count)
    place.run("version")


@test
def token_wins(place):
    "a token file wins over the kept session, and is not shown at the door"
    place.sign_in()
    (place.dir / "token").write_text("bh_token\n")
    place.server.routes["GET /v1/whoami"] = {"name": "bot", "via": "token", "roles": []}
    place.run("whoami", "--token-file", str(place.dir / "token"))
    equal("bearer", place.server.requests[-1][2], "bh_token")
    place.run("login", "--account", "ada", "--password-stdin", "--token-file", str(place.dir / "token"), stdin="x\ny\n")
    equal("who signs in is nobody yet", place.server.asked("POST /v1/sign-in")[-1][2], "")


@test
def another_server(place):
    "the session goes to the server it is from and to no other"
    place.sign_in()
    other = Server(str(place.dir / "other"))
    other.routes["GET /v1/whoami"] = {"name": "root", "via": "peer", "roles": []}
    place.run("whoami", "--socket", str(place.dir / "other"))
    equal("bearer", other.requests[-1][2], "")
    other.shutdown()
    other.server_close()


@test
def ended(place):
    "a session that the server does not know any more is forgotten, and login is named"
    place.sign_in()

    def refuse(*_):
        raise unauthenticated("the session has ended")
    place.server.routes["GET /v1/gpus"] = place.server.routes["GET /v1/whoami"] = refuse
    done = place.run("gpu", status=4)
    contains("said", done.stderr, "your session as ada has ended")
    contains("hint", done.stderr, "bulkhead login signs in again")
    equal("kept", place.sessions(), [])


@test
def expired(place):
    "a session past its time is forgotten without asking"
    place.sign_in(lasts_s=-1)
    count = len(place.server.requests)
    contains("said", place.run("whoami", status=4).stderr, "has ended")
    equal("requests", len(place.server.requests), count)
    equal("kept", place.sessions(), [])


@test
def logout(place):
    "logout ends the session at the server, forgets it and names the provider's address"
    place.sign_in()
    place.server.routes["POST /v1/sign-out"] = {"ended": True, "logout": "https://idp.example/logout?x=1"}
    contains("address", place.run("logout").stderr, "https://idp.example/logout?x=1")
    equal("bearer", place.server.requests[-1][2], SECRET)
    equal("kept", place.sessions(), [])
    place.run("logout", status=5)


@test
def logout_fails(place):
    "a session that could not be ended is kept; one that had ended is forgotten"
    place.sign_in()

    def fail(*_):
        raise Refuse(503, "unavailable", "the disk is full")
    place.server.routes["POST /v1/sign-out"] = fail
    place.run("logout", status=8)
    equal("kept", len(place.sessions()), 1)

    def refuse(*_):
        raise unauthenticated()
    place.server.routes["POST /v1/sign-out"] = refuse
    place.run("logout")
    equal("kept", place.sessions(), [])


# ---- showing a factor again ----

def guarded(place, level="code"):
    """GET /v1/accounts wants a factor that was shown just now."""
    place.shown = False

    def prove(body, bearer):
        equal("bearer", bearer, SECRET)
        if body["code"] != CODE:
            raise unauthenticated("the code is wrong")
        place.shown = True
        return {"level": "code", "shown_ns": "1"}

    def accounts(*_):
        if not place.shown:
            raise Refuse(401, "unauthenticated", "account.any takes a code shown just now", STEP_UP.format(level))
        return {"items": [{"name": "ada", "password": True, "passkeys": 0, "totp": True, "sessions": 1}]}
    place.server.routes["GET /v1/accounts"] = accounts
    place.server.routes["POST /v1/prove"] = prove
    place.server.routes["GET /v1/whoami"] = {"name": "ada"}


@test
def stepped_up(place):
    "where a factor is wanted again a person is asked for a code, and the request is repeated once"
    place.sign_in()
    guarded(place)
    seen = place.talk(["account", "list"], ("authenticator app: ", CODE))
    contains("list", seen, "ada")
    lacks("typed", seen, CODE)
    equal("requests", [r[0] for r in place.server.requests[-3:]], ["GET /v1/accounts", "POST /v1/prove", "GET /v1/accounts"])


@test
def step_up_fails(place):
    "a wrong code ends it with status 4 and keeps the session; a script gets the command to run"
    place.sign_in()
    guarded(place)
    contains("said", place.talk(["account", "list"], ("authenticator app: ", "000000"), status=4), "the code is wrong")
    equal("requests", len(place.server.asked("GET /v1/accounts")), 1)
    equal("kept", len(place.sessions()), 1)
    contains("hint", place.run("account", "list", status=4).stderr, "bulkhead login --again")
    equal("asked", len(place.server.asked("POST /v1/prove")), 1)
    (place.dir / "token").write_text("bh_token\n")
    place.talk(["account", "list", "--token-file", str(place.dir / "token")], status=4)
    equal("asked", len(place.server.asked("POST /v1/prove")), 1)
    guarded(place, "passkey")
    contains("hint", place.talk(["account", "list"], status=4), "use one in the browser")
    equal("asked", len(place.server.asked("POST /v1/prove")), 1)


@test
def again(place):
    "login --again shows a code for the kept session; a wrong one does not end it"
    place.run("login", "--again", status=5)
    place.sign_in()
    guarded(place)
    place.run("login", "--again", "--password-stdin", stdin="000000\n", status=4)
    equal("kept", len(place.sessions()), 1)
    place.talk(["login", "--again"], ("authenticator app: ", CODE))
    place.run("account", "list")


# ---- sessions and accounts ----

@test
def sessions(place):
    "sessions are listed and ended; all others but this one; this one is forgotten, too"
    place.sign_in()
    own = place.sessions()[0]["id"]
    place.server.routes["GET /v1/sessions"] = {"items": [
        {"id": own, "this": True, "principal": "ada", "kind": "command-line", "host": "here", "level": "code"},
        {"id": "s/2", "this": False, "principal": "ada", "kind": "browser", "host": "", "level": "passkey"}]}
    contains("list", place.run("session", "list").stdout, "passkey")
    equal("json", [s["id"] for s in json.loads(place.run("session", "list", "-o", "json").stdout)["items"]], [own, "s/2"])
    for id in (own, "s%2F2"):
        place.server.routes[f"DELETE /v1/sessions/{id}"] = {"ended": True, "id": id}
    place.run("session", "end", "--all-others")
    equal("ended", [r[0] for r in place.server.requests if r[0].startswith("DELETE")], ["DELETE /v1/sessions/s%2F2"])
    place.run("session", "end", status=3)
    place.run("session", "end", "x", "--all-others", status=3)
    place.run("session", "end", own)
    equal("kept", place.sessions(), [])


@test
def break_glass(place):
    "break-glass sends the reason in full and says loudly what it means"
    place.sign_in()
    place.server.routes["POST /v1/break-glass"] = {"until_ns": "1763650800000000000"}
    said = place.run("break-glass", "the", "on-call", "admin is", "away", "-q").stderr
    contains("said", said, "BREAK-GLASS until 2025-11-20T15:00:00Z")
    equal("reason", place.server.requests[-1][1], {"reason": "the on-call admin is away"})


@test
def password(place):
    "one's password is changed with the old one, or set with a one-time code and without a session"
    place.sign_in()
    place.server.routes["GET /v1/account"] = {"name": "ada", "passkeys": []}
    place.server.routes["PUT /v1/account/password"] = {"set": True}
    place.server.routes["GET /v1/whoami"] = {"name": "ada"}
    seen = place.talk(["account", "password"], ("present password: ", PASSWORD), ("new password: ", "new one"), ("again: ", "new one"))
    lacks("typed", seen, "new one")
    equal("sent", place.server.asked("PUT /v1/account/password")[-1][1], {"account": "ada", "old": PASSWORD, "password": "new one"})
    equal("kept", len(place.sessions()), 1)

    def refuse(*_):
        raise unauthenticated("the session is over")
    place.server.routes["GET /v1/whoami"] = refuse
    said = place.run("account", "password", "--account", "ada", "--password-stdin", stdin="old\nnew one\n").stderr
    contains("said", said, "your session as ada has ended")
    equal("kept", place.sessions(), [])
    place.run("account", "password", "--enrol", "--account", "bob", "--password-stdin", stdin="one-time\nnew one\n")
    equal("sent", place.server.requests[-1][1:3], ({"account": "bob", "enrol": "one-time", "password": "new one"}, ""))
    place.run("account", "password", "--enrol", status=3)


@test
def totp(place):
    "an app is added with a code of it; the QR code's text goes through a pipe; recovery codes are printed"
    place.sign_in()
    address = "otpauth://totp/Bulkhead:ada?secret=JBSWY3DPEHPK3PXP"
    place.server.routes["POST /v1/account/totp"] = {"address": address, "secret": "JBSWY3DPEHPK3PXP"}
    place.server.routes["PUT /v1/account/totp"] = {"recovery": ["aaaa-bbbb", "cccc-dddd"], "totp": True}
    place.script("qrencode", f'/bin/cat > {place.dir}/text; echo "$@" > {place.dir}/words; echo QR-QR')
    seen = place.talk(["account", "totp"], ("the app shows: ", CODE))
    for part in (address, "secret: JBSWY3DPEHPK3PXP", "QR-QR", "not shown again", "aaaa-bbbb\ncccc-dddd\n"):
        contains("shown", seen, part)
    equal("to qrencode", ((place.dir / "text").read_text(), (place.dir / "words").read_text()), (address, "-t ANSIUTF8 -o -\n"))
    equal("sent", place.server.requests[-1][1], {"code": CODE})
    (place.bin / "qrencode").unlink()
    place.talk(["account", "totp"], ("the app shows: ", CODE))

    def refuse(*_):
        raise unauthenticated("the code is wrong")
    place.server.routes["PUT /v1/account/totp"] = refuse
    place.server.routes["GET /v1/whoami"] = {"name": "ada"}
    contains("said", place.run("account", "totp", "--password-stdin", stdin="1\n", status=4).stderr, "the app is not added: the code is wrong")
    place.server.routes["DELETE /v1/account/totp"] = {"removed": True}
    place.run("account", "totp", "remove")
    place.run("account", "totp", "frob", status=3)


@test
def own_account(place):
    "one's account, its passkeys and recovery codes"
    place.sign_in()
    place.server.routes["GET /v1/account"] = {"name": "ada", "identity": "", "recovery_left": 7, "totp": True, "passkeys": [
        {"id": "pk/1", "name": "key\x1b[2J", "created_ns": "1763650800000000000", "last_used_ns": "0"}]}
    contains("account", place.run("account", "show").stdout, "ada")
    equal("json", json.loads(place.run("account", "show", "-o", "json").stdout)["recovery_left"], 7)
    contains("passkeys", place.run("account", "passkey", "list").stdout, "key?[2J")
    equal("json", json.loads(place.run("account", "passkey", "list", "-o", "json").stdout)[0]["id"], "pk/1")
    place.server.routes["DELETE /v1/account/passkeys/pk%2F1"] = {"removed": True}
    place.run("account", "passkey", "remove", "pk/1")
    place.run("account", "passkey", "remove", status=3)
    offer(place)
    equal("where", place.run("account", "passkey", "add").stdout, "https://gpu.example/account\n")
    place.server.routes["POST /v1/account/recovery"] = {"recovery": ["aaaa", "bbbb"]}
    equal("codes", place.run("account", "recovery").stdout, "aaaa\nbbbb\n")


@test
def others_accounts(place):
    "administrators list accounts, enrol people and reset accounts"
    place.sign_in()
    place.server.routes["GET /v1/accounts"] = {"items": [{"name": "bob", "passkeys": 2, "password": True, "totp": False}]}
    contains("list", place.run("account", "list").stdout, "bob")
    place.server.routes["POST /v1/accounts"] = {"code": "one-time", "expires_ns": "1763650800000000000", "name": "bob"}
    done = place.run("account", "enrol", "bob")
    equal("code", done.stdout, "one-time\n")
    contains("how", done.stderr, "account password --enrol --account bob")
    equal("sent", place.server.requests[-1][1], {"principal": "bob"})
    place.server.routes["DELETE /v1/accounts/corp%2Fbob"] = {"reset": True}
    place.run("account", "reset", "corp/bob")


@test
def ways(place):
    "ways that exclude each other are refused before anything is asked"
    for argv in (["--device", "--account", "x"], ["--again", "--device"], ["--issuer", "x"], ["--again", "--first"]):
        place.run("login", *argv, status=3)
    equal("requests", place.server.requests, [])


def main():
    try:
        for end in os.openpty():
            os.close(end)
    except OSError:
        print("1..0 # SKIP this machine has no pseudo-terminals")
        return
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    chosen, failed = [t for t in tests if word in t.__name__], 0
    print(f"1..{len(chosen)}", flush=True)
    for number, function in enumerate(chosen, 1):
        place, trouble = Place(), ""
        try:
            function(place)
        except Exception:
            trouble = traceback.format_exc()
        place.close()
        failed += bool(trouble)
        print(f"{'not ok' if trouble else 'ok'} {number} - {function.__name__}: {function.__doc__}", flush=True)
        for line in trouble.splitlines():
            print("# " + line)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
