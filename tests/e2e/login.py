#!/usr/bin/env python3
"""Signing in from the command line, at real daemons, over HTTPS and over the unix socket."""
import base64
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
import terminal
from bulkhead import PATIENCE_S, PEOPLE, SLOW, free_port
from provider import Provider
from tap import contains, equal

ONE = "1x H100-80GB"
BOSS, ADA = "boss correct horse", "ada's own sentence"


PORT = free_port()
CONF = {"topology": ONE, "daemon_conf": f"https_port = {PORT}"}
ACCOUNTS = tap.SITE.replace("{name: alice, uid: 20001}", "{name: alice, uid: 20001, account: true}") \
    .replace("{name: erin, uid: 20005}", "{name: erin, uid: 20005, account: true}")


def totp(secret, ahead=0):
    """RFC 6238: the code of now, or of some steps ahead."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    digest = hmac.new(key, struct.pack(">Q", int(time.time()) // 30 + ahead), hashlib.sha1).digest()
    at = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[at:at + 4])[0] & 0x7fffffff) % 10**6:06d}"


def listens():
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", PORT)) == 0


def await_https(site):
    """The daemon listens there a little later than on its socket."""
    site.until(listens, what="the HTTPS listener")


class Person:
    """A user at a machine of their own: a home, and the server's address."""

    def __init__(self, site, name, server=None, user=None):
        self.site, self.home = site, site.dir / f"home-{name}"
        self.user = {"user": PEOPLE[user], "group": PEOPLE[user], "extra_groups": []} if user else {}
        self.home.mkdir()
        if user:
            os.chown(self.home, PEOPLE[user], PEOPLE[user])
        await_https(site)
        certificate = site.dir / "crt"
        certificate.write_bytes((site.dir / "state/tls.crt").read_bytes())
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.home)}
        self.env |= {"BULKHEAD_SOCKET": site.socket} if server == "unix" else \
            {"BULKHEAD_SERVER": f"https://127.0.0.1:{PORT}", "BULKHEAD_CA_FILE": str(certificate)}

    def run(self, *argv, stdin="", status=0):
        done = subprocess.run([self.site.program("bulkhead"), *argv], input=stdin, capture_output=True, text=True,
                              timeout=PATIENCE_S, env=self.env, cwd="/", start_new_session=True, **self.user)
        equal(f"status of {argv} ({done.stdout}{done.stderr})", done.returncode, status)
        return done

    def talk(self, argv, *turns, status=0):
        return terminal.talk([self.site.program("bulkhead"), *argv], turns, self.env, status)

    def login(self, account, password, code="", status=0):
        return self.run("login", "--account", account, "--password-stdin", stdin=f"{password}\n{code}\n", status=status)

    def secret(self):
        return json.loads((self.home / ".local/state/bulkhead/sessions").read_text())["sessions"][0]["session"]

    def add_app(self):
        """The app's secret, and the recovery codes."""
        with subprocess.Popen([self.site.program("bulkhead"), "account", "totp", "--password-stdin"], text=True, cwd="/",
                              env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as add:
            assert add.stdout.readline().startswith("otpauth://totp/Bulkhead:"), add.communicate()
            secret = add.stdout.readline().split()[1]
            codes, said = add.communicate(totp(secret) + "\n", timeout=PATIENCE_S)
        equal(f"status of account totp ({said})", add.returncode, 0)
        equal("recovery codes", len(codes.split()), 10)
        return secret, codes.split()


def first_admin(site):
    """The first administrator, with a code shown: Person, secret of the app, recovery codes."""
    boss = Person(site, "boss")
    code = (site.dir / "state/first-admin.code").read_text()
    boss.run("login", "--first", "--account", "boss", "--password-stdin", stdin=f"{code}{BOSS}\n")
    secret, codes = boss.add_app()
    boss.run("login", "--again", "--password-stdin", stdin=totp(secret, 1) + "\n")
    return boss, codes


def enrolled(site, boss, name, password):
    """A user with an account and an app: Person and recovery codes."""
    person = Person(site, name)
    code = boss.run("account", "enrol", name).stdout
    person.run("account", "password", "--enrol", "--account", name, "--password-stdin", stdin=f"{code}{password}\n")
    person.login(name, password)
    secret, codes = person.add_app()
    person.run("login", "--again", "--password-stdin", stdin=totp(secret, 1) + "\n")
    return person, codes


@tap.test(**CONF)
def first(site):
    "the first administrator is made on a terminal with the daemon's code, once, and adds an app before anything else"
    boss, code = Person(site, "boss"), (site.dir / "state/first-admin.code").read_text().strip()
    turns = [("name of the new account: ", "boss"), ("first-admin.code: ", "wrong"), ("new password: ", BOSS), ("again: ", BOSS)]
    boss.talk(["login", "--first"], *turns, status=4)
    turns[1] = ("first-admin.code: ", code)
    seen = boss.talk(["login", "--first"], *turns)
    contains("who", seen, "as boss until 20")
    for hidden in (code, BOSS):
        assert hidden not in seen, "what was typed was shown"
    equal("file", (site.dir / "state/first-admin.code").exists(), False)
    contains("hint", Person(site, "nobody").run("gpu", status=4).stderr, "sign in with bulkhead login")
    boss.run("gpu", status=4)
    secret, codes = boss.add_app()
    boss.run("gpu")
    boss.run("login", "--again", "--password-stdin", stdin="000000\n", status=4)
    boss.run("login", "--again", "--password-stdin", stdin=totp(secret, 1) + "\n")
    contains("who", boss.run("whoami").stdout, "boss")
    Person(site, "late").run("login", "--first", "--account", "late", "--password-stdin", stdin=f"{code}\n{BOSS}\n", status=4)
    equal("account", json.loads(boss.run("account", "show", "-o", "json").stdout)["recovery_left"], 10)


@tap.test(site=ACCOUNTS, **CONF)
def enrol(site):
    "an administrator's one-time code sets a password once; password and code sign in, neither alone; a code only once"
    boss, _ = first_admin(site)
    alice = Person(site, "alice")
    code = boss.run("account", "enrol", "alice").stdout
    setting = ["account", "password", "--enrol", "--account", "alice", "--password-stdin"]
    alice.run(*setting, stdin=f"wrong\n{ADA}\n", status=4)
    alice.run(*setting, stdin=f"{code}{ADA}\n")
    alice.run(*setting, stdin=f"{code}another one\n", status=4)
    alice.login("alice", ADA)
    secret, codes = alice.add_app()
    alice.login("alice", ADA, status=4)
    alice.login("alice", "not the password", codes[1], status=4)
    alice.login("alice", ADA, codes[0])
    alice.login("alice", ADA, codes[0], status=4)
    alice.login("alice", ADA, totp(secret, 1))
    alice.login("alice", ADA, totp(secret, 1), status=4)
    contains("who", alice.run("whoami").stdout, "alice")
    people = {a["name"]: a for a in json.loads(boss.run("account", "list", "-o", "json").stdout)["items"]}
    equal("listed", [(people["alice"][k]) for k in ("password", "totp", "recovery_left")], [True, True, 9])
    boss.run("account", "enrol", "bob", status=5)


FRESH_S = round(5 * SLOW)  # longer than a step and what it was made for take


def await_stale(person):
    """Until a code that was shown is too old for what wants one that is fresh; what is said then."""
    done = []

    def is_stale():
        done[:] = [subprocess.run([person.site.program("bulkhead"), "account", "list"], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=PATIENCE_S, env=person.env, cwd="/", start_new_session=True)]
        return done[0].returncode == 4
    person.site.until(is_stale, what="the end of what is fresh")
    return done[0].stderr


@tap.test(site=f"sign_in: {{step_up: [{{verb: account.any, level: code, within: {FRESH_S}s}}]}}\n" + ACCOUNTS, **CONF)
def stepped_up(site):
    "a verb that needs a recent code asks for it on a terminal and continues; a script gets an error"
    boss, codes = first_admin(site)
    contains("hint", await_stale(boss), "bulkhead login --again")
    contains("said", boss.talk(["account", "list"], ("authenticator app: ", "000000"), status=4), "wrong")
    contains("list", boss.talk(["account", "list"], ("authenticator app: ", codes[0])), "boss")
    await_stale(boss)
    boss.run("login", "--again", "--password-stdin", stdin=codes[1] + "\n")
    boss.run("account", "list")
    boss.run("whoami")


@tap.test(site=ACCOUNTS, **CONF)
def sessions(site):
    "one's sessions are listed and ended, in effect at once; they outlive a restart; logout ends one"
    boss, _ = first_admin(site)
    alice, codes = enrolled(site, boss, "alice", ADA)
    others = [Person(site, f"alice-{n}") for n in range(2)]
    for other, code in zip(others, codes):
        other.login("alice", ADA, code)
    site.kill(site.daemon)
    site.start_daemon()
    await_https(site)
    listed = json.loads(alice.run("session", "list", "-o", "json").stdout)["items"]
    equal("sessions", (len(listed), [s["this"] for s in listed].count(True), {s["kind"] for s in listed}), (3, 1, {"command-line"}))
    equal("host", {s["host"] for s in listed}, {os.uname().nodename})
    others[0].run("whoami")
    bosses = json.loads(boss.run("session", "list", "-o", "json").stdout)["items"][0]["id"]
    alice.run("session", "end", bosses, status=5)
    alice.run("session", "end", "--all-others")
    for other in others:
        contains("said", other.run("whoami", status=4).stderr, "your session as alice has ended")
    secret = alice.secret()
    alice.run("logout")
    alice.run("logout", status=5)
    (site.dir / "bearer").write_text(secret)
    alice.run("whoami", "--token-file", str(site.dir / "bearer"), status=4)
    boss.run("account", "reset", "alice")
    alice.login("alice", ADA, codes[5], status=4)


class Browser:
    """A login that waits for a browser; the test does what the page does for who is signed in."""

    def __init__(self, person):
        self.process = subprocess.Popen([person.site.program("bulkhead"), "login", "--no-browser"], env=person.env, cwd="/",
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.process.stderr.readline()
        self.address = urllib.parse.urlsplit(self.process.stderr.readline().strip())
        self.query = dict(urllib.parse.parse_qsl(self.address.query))

    def grant(self, signed_in):
        """The code for the command line, of a session that said yes."""
        body = json.dumps({"challenge": self.query["challenge"], "host": self.query["host"]})
        context = ssl.create_default_context(cafile=signed_in.env["BULKHEAD_CA_FILE"])
        context.check_hostname = False
        server = http.client.HTTPSConnection("127.0.0.1", PORT, timeout=PATIENCE_S, context=context)
        server.request("POST", "/v1/sign-in/grant", body, {"Content-Type": "application/json",
                                                           "Authorization": f"Bearer {signed_in.secret()}"})
        answer = json.loads(server.getresponse().read())
        server.close()
        return answer["code"]

    def come_back(self, code, status=0):
        back = urllib.parse.urlencode({"code": code, "state": self.query["state"]})
        urllib.request.urlopen(f"http://127.0.0.1:{self.query['port']}/?{back}", timeout=PATIENCE_S).read()
        said = self.process.communicate(timeout=PATIENCE_S)[1]
        equal(f"status of login ({said})", self.process.returncode, status)
        return said


PAGES = f"sign_in: {{address: 'https://127.0.0.1:{PORT}', step_up: [{{verb: account.any, level: code, within: 1s}}]}}\n"


@tap.test(site=PAGES + ACCOUNTS, **CONF)
def browser(site):
    "a browser's session lets a command line in as the same person, by a code that is good once and for that one alone"
    boss, _ = first_admin(site)
    other = Person(site, "other")
    first, second = Browser(other), Browser(other)
    equal("page", (first.address.netloc, first.address.path), (f"127.0.0.1:{PORT}", "/sign-in/command-line"))
    code = first.grant(boss)
    contains("another's code", second.come_back(code, status=4), "the code has expired")
    contains("used up", first.come_back(code, status=4), "the code has expired")
    third = Browser(other)
    contains("who", third.come_back(third.grant(boss)), "as boss until 20")
    contains("who", other.run("whoami").stdout, "boss, known by session")
    equal("hosts", {s["host"] for s in json.loads(other.run("session", "list", "-o", "json").stdout)["items"] if s["this"]},
          {os.uname().nodename})


@tap.test(site=PAGES + ACCOUNTS, **CONF)
def no_fresher(site):
    "a command line that a browser let in has shown its factor when the browser did, not just now"
    boss, _ = first_admin(site)
    time.sleep(1.2)
    other = Person(site, "other")
    waiting = Browser(other)
    waiting.come_back(waiting.grant(boss))
    contains("hint", other.run("account", "list", status=4).stderr, "bulkhead login --again")


def with_issuer(site, provider):
    issuer = f"{{name: corp, url: '{provider.url}', client_id: {provider.client}, loopback: true}}"
    site.apply(f"sign_in: {{address: 'https://127.0.0.1:{PORT}', issuers: [{issuer}]}}\n{tap.SITE}")


@tap.test(**CONF)
def device(site):
    "--device signs in at an issuer, whatever it answers until the code is entered, and shows the user"
    with Provider(site.dir) as provider:
        with_issuer(site, provider)
        provider.answers = ["authorization_pending", None, {"sub": "ada", "amr": ["pwd", "otp"]}]
        person = Person(site, "ada")
        said = person.run("login", "--device").stderr
        contains("where", said, f"open {provider.url}/enter on any machine and enter the code WDJB-MJHT")
        contains("who", said, "as corp:ada until 20")
        equal("asked", (len(provider.asked), provider.asked[0]["device_code"]), (3, "DEVICE-CODE"))
        contains("who", person.run("whoami").stdout, "corp:ada, known by session")
        mine = json.loads(person.run("session", "list", "-o", "json").stdout)["items"][0]
        equal("session", [mine[k] for k in ("issuer", "kind", "level", "host")], ["corp", "command-line", "code", os.uname().nodename])
        person.run("logout")


@tap.test(**CONF)
def device_refused(site):
    "who says no at the issuer, lets the code expire, or comes with a token of another is not signed in"
    with Provider(site.dir) as provider:
        with_issuer(site, provider)
        person = Person(site, "ada")
        for answer in ("access_denied", "expired_token", {"sub": "ada", "aud": "another"}, {"sub": "ada", "iss": "http://127.0.0.1:1"}):
            provider.answers = [answer]
            done = subprocess.run([site.program("bulkhead"), "login", "--device"], env=person.env, cwd="/", capture_output=True,
                                  text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
            assert done.returncode not in (0, 8), f"{answer}: {done}"
            person.run("logout", status=5)
        person.run("login", "--device", "--issuer", "other", status=5)


@tap.test(site=ACCOUNTS, **CONF)
def password(site):
    "a new password ends all sessions of the account, this one too, and says so"
    boss, _ = first_admin(site)
    alice, codes = enrolled(site, boss, "alice", ADA)
    change = ["account", "password", "--password-stdin"]
    alice.run(*change, stdin="not the password\na new sentence\n", status=4)
    contains("said", alice.run(*change, stdin=f"{ADA}\na new sentence\n").stderr, "your session as alice has ended")
    alice.login("alice", ADA, codes[0], status=4)
    alice.login("alice", "a new sentence", codes[0])


@tap.test(site=ACCOUNTS, **CONF)
def lockout(site):
    "after five wrong passwords the name waits, with the right one too, but not on the device of its owner"
    boss, _ = first_admin(site)
    alice, codes = enrolled(site, boss, "alice", ADA)
    stranger = Person(site, "stranger")
    for n in range(5):
        stranger.login("alice", f"guess number {n}", "123456", status=4)
    done = stranger.login("ALICE", ADA, codes[0], status=4)
    contains("said", done.stderr, "too many attempts")
    contains("until", done.stderr, "try again after 20")
    alice.run("whoami")
    alice.run("logout")
    alice.login("alice", ADA, codes[0])


@tap.test(site=ACCOUNTS, **CONF)
def on_the_socket(site):
    "on the unix socket one is the machine's user, until one signs in there, and again after logout"
    boss, _ = first_admin(site)
    alice, codes = enrolled(site, boss, "alice", ADA)
    here = Person(site, "here", server="unix", user="bob")
    contains("before", here.run("whoami").stdout, "bob, known by peer")
    here.login("alice", ADA, codes[0])
    contains("signed in", here.run("whoami").stdout, "alice, known by session")
    here.run("logout")
    contains("after", here.run("whoami").stdout, "bob, known by peer")


@tap.test(site=ACCOUNTS.replace("{name: alice, uid: 20001, account: true}", "{name: alice, uid: 20001, account: true, break_glass: true}"), **CONF)
def glass(site):
    "who may break the glass is an administrator for the session's next hour, on record with the reason"
    boss, _ = first_admin(site)
    alice, _ = enrolled(site, boss, "alice", ADA)
    alice.run("get", "site", status=4)
    boss.run("break-glass", "I would like to try it", status=4)
    contains("said", alice.run("break-glass", "nobody else", "answers the phone").stderr, "BREAK-GLASS until 20")
    alice.run("get", "site")
    contains("record", site.cli("dave", "audit", "search", "--verb", "glass.break", "-o", "json", check=0).stdout, "glass.break")
    alice.run("logout")
    alice.run("whoami", status=4)


@tap.test(site=ACCOUNTS, **CONF)
def secrets(site):
    "no password, code or session is in the logs or in the store"
    boss, bosses = first_admin(site)
    alice, codes = enrolled(site, boss, "alice", ADA)
    alice.login("alice", "a wrong sentence", codes[2], status=4)
    canaries = [BOSS, ADA, "a wrong sentence", codes[0], codes[2], bosses[0], boss.secret()[16:59], alice.secret()[16:59]]
    site.kill(site.daemon)
    for path in [site.dir / "daemon.log", site.dir / "node.log", *(p for p in (site.dir / "state").rglob("*") if p.is_file())]:
        text = path.read_bytes()
        for canary in canaries:
            assert canary.encode() not in text, f"{canary!r} is in {path}"
    site.start_daemon()


MAKE = """
ask() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" "${@:2}"; }
ask authority -x509 -days 2 -out authority.crt
ask stranger -x509 -days 2 -out stranger.crt
echo extendedKeyUsage=clientAuth >purpose
for name in ada bob; do
  ask $name -out $name.csr
  openssl x509 -req -in $name.csr -CA authority.crt -CAkey authority.key -set_serial 7 -extfile purpose -days 2 -out $name.crt
done
"""


def make_certificates(site):
    folder = site.dir / "certificates"
    folder.mkdir()
    subprocess.run(["bash", "-ec", MAKE], cwd=folder, check=True, capture_output=True)
    return folder


def showing(folder, name):
    return ["--client-cert", str(folder / f"{name}.crt"), "--client-key", str(folder / f"{name}.key")]


@tap.test(site=ACCOUNTS, **CONF)
def client_certificate(site):
    "a session opened with a certificate is refused without it and with another; a stranger's is refused at once"
    folder = make_certificates(site)
    boss, _ = first_admin(site)
    alice, codes = enrolled(site, boss, "alice", ADA)
    site.kill(site.daemon)
    conf = site.dir / "bulkheadd.conf"
    conf.write_text(conf.read_text() + f"\nclient_ca = {folder}/authority.crt\n")
    site.start_daemon()
    await_https(site)
    alice.run("whoami")
    alice.run("logout")
    with_ada = showing(folder, "ada")
    alice.run("login", "--account", "alice", "--password-stdin", *with_ada, stdin=f"{ADA}\n{codes[0]}\n")
    contains("who", alice.run("whoami", *with_ada).stdout, "alice, known by session")
    mine = json.loads(alice.run("session", "list", "-o", "json", *with_ada).stdout)["items"]
    print_of = subprocess.run("openssl x509 -in ada.crt -outform DER | sha256sum", shell=True, cwd=folder, check=True,
                              capture_output=True, text=True).stdout[:64]
    equal("thumbprint", [s["certificate"] for s in mine if s["this"]], [print_of])
    kept = alice.home / ".local/state/bulkhead/sessions"
    text = kept.read_text()
    for others in ([], showing(folder, "bob")):
        contains("refused", alice.run("whoami", *others, status=4).stderr, "your session as alice has ended")
        kept.write_text(text)
    contains("stranger", alice.run("whoami", *showing(folder, "stranger"), status=4).stderr, "client certificate is not accepted")
    kept.write_text(text)
    alice.env |= {"BULKHEAD_CLIENT_CERT": with_ada[1], "BULKHEAD_CLIENT_KEY": with_ada[3]}
    contains("by the environment", alice.run("whoami").stdout, "alice, known by session")


if __name__ == "__main__":
    tap.main()
