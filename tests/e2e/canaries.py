#!/usr/bin/env python3
"""Secrets never reach a log: every operation of tables/operations.tbl is asked rightly and
wrongly with canaries for secrets, and all that the programs wrote is searched for them."""
import contextlib
import base64
import fnmatch
import http.client
import json
import os
import pathlib
import pty
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tap
import terminal
from bulkhead import PATIENCE_S, PEOPLE, ROOT, Client
from canary import Canaries
from code_provider import CodeProvider, s256
from login import PORT, Person, await_https, totp
from tap import contains, equal

tap.tests.clear()  # those of login.py
ADDRESS = f"https://localhost:{PORT}"
SITE = tap.SITE.replace("{name: alice, uid: 20001}", "{name: alice, uid: 20001, account: true, break_glass: true}")
ROWS = re.findall(r'(?m)^BH_OPERATION\((\w+), *(\w+), *"([^"]*)", *"[^"]*", *(\w+), *(\w+), *(\w+), *"([^"]*)"',
                  (ROOT / "tables/operations.tbl").read_text())
OPERATIONS = {name: (method, path, kind, query.split()) for name, method, path, _, kind, _, query in ROWS}

# The secrets that an operation is sent, field by field; all others are sent none in the body.
FIELDS = {
    "JOB_SUBMIT": {"env": "env"}, "WHATIF": {"env": "env"}, "POLICY_TEST": {"env": "env"},
    "DEFRAG_APPLY": {"token": "confirmation"}, "KEY_SHRED": {"token": "confirmation"},
    "SIGN_IN": {"password": "password", "code": "code", "device": "device", "authenticator_data": "passkey", "signature": "passkey",
                "client_data": "passkey", "credential": "passkey", "challenge": "passkey", "user_handle": "passkey"},
    "SIGN_IN_RETURN": {"query": "callback"}, "SIGN_IN_LOGOUT": {"logout_token": "logout token"},
    "SIGN_IN_GRANT": {"challenge": "challenge"}, "SIGN_IN_CODE": {"code": "grant", "verifier": "verifier"},
    "SIGN_IN_FIRST": {"code": "first-admin code", "password": "password"},
    "ACCOUNT_PASSWORD": {"old": "password", "enrol": "enrol code", "password": "password"},
    "TOTP_CONFIRM": {"code": "code"},
    "PASSKEY_ADD": {"authenticator_data": "passkey", "client_data": "passkey", "credential": "passkey", "signature": "passkey",
                    "challenge": "passkey", "user_handle": "passkey"},
}
FIELDS["PROVE"] = FIELDS["SIGN_IN"]

# What is asked wrongly only, and why.
NEVER_RIGHT = {
    "DEFRAG_APPLY": "needs a plan of moves, which a site of one GPU has not (e2e/defrag)",
    "PASSKEY_ADD": "needs an authenticator (e2e/pages, in Chromium)",
    "TOTP_REMOVE": "needs a passkey that stays",
    "PASSKEY_REMOVE": "needs a passkey (e2e/pages, in Chromium)",
}

# (secret, place): where it rightly stands.  Nothing else may.
MAY_BE = [
    ("env", "reply/JOB_GET", "the job's owner sees the job"),
    ("client secret", "secrets/corp", "the file that the site file names"),
    ("session", "reply/SIGN_IN*", "shown once, to whom it belongs"),
    ("token", "reply/TOKEN_CREATE", "shown once"),
    ("enrol code", "reply/ACCOUNT_ENROL", "shown once"),
    ("app secret", "reply/TOTP_BEGIN", "shown once"),
    ("recovery code", "reply/TOTP_CONFIRM", "shown once"),
    ("recovery code", "reply/RECOVERY_MAKE", "shown once"),
    ("device", "reply/SIGN_IN*", "for the browser to keep"),
    ("ticket", "reply/JOB_*", "shown once, to who asked"),
    ("grant", "reply/SIGN_IN_GRANT", "for the command line, good once"),
    ("idempotency key", "state/bulkhead.db*", "kept to know the caller's own request again; it opens nothing"),
    ("path", "wrong/*", "no place for a secret: named to who asked, and to nobody else"),
    ("query", "wrong/*", "as the path"),
    ("callback", "page/*", "the address that one goes on to after signing in, told to who came there"),
]


def as_token(canary, mark):
    """A secret in the form of a token, its checksum right: it is looked up, and is not one."""
    text = f"{mark}_{'a' * 12}_{canary.ljust(43, 'x')}"
    return f"{text}_{zlib.crc32(text.encode()):08x}"


class Knowing(CodeProvider):
    """The provider, whose secrets are known."""

    def __init__(self, folder, canaries):
        self.canaries, self.given = canaries, canaries.make("access token")
        super().__init__(folder)

    def sign(self, claims):
        token = super().sign(claims)
        self.canaries.keep("id token", token.rpartition(".")[2])
        return token

    def post(self, path, form):
        for name in ("code", "code_verifier"):
            if name in form:
                self.canaries.keep("provider's " + name, form[name])
        status, answer = super().post(path, form)
        if "access_token" in answer:
            answer |= {"access_token": self.given, "refresh_token": self.canaries.make("refresh token")}
        return status, answer


class Walk:
    """Asks operations, and keeps what was sent and answered."""

    def __init__(self, site):
        self.site, self.canaries, self.replies = site, Canaries(), []
        self.right, self.wrong = set(), {}  # names; name: statuses
        await_https(site)
        self.tls = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
        self.tls.check_hostname = False

    def exchange(self, place, method, path, body=None, by=None, **headers):
        """(status, answer).  `by`: a person on the unix socket, or None over HTTPS."""
        link = Client(self.site.socket, self.site.client(by).uid).open() if by else \
            http.client.HTTPSConnection("127.0.0.1", PORT, timeout=PATIENCE_S, context=self.tls)
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        link.request(method, path, body, {"Content-Type": "application/json", **{n.replace("_", "-"): v for n, v in headers.items()}})
        reply = link.getresponse()
        kind = reply.headers.get("Content-Type", "")
        data = b"" if kind.startswith("text/event-stream") else reply.read()
        link.close()
        self.replies.append((place, str(reply.headers).encode() + data))
        return reply.status, json.loads(data) if kind.startswith("application/json") else data.decode(errors="replace")

    def ask(self, name, body=None, at="", query="", session=None, by=None, **headers):
        """Rightly: the answer."""
        method, path, *_ = OPERATIONS[name]
        path = re.sub(r"\{\w+\}", str(at), path) + (f"?{query}" if query else "")
        if session:
            headers["Authorization"] = f"Bearer {session}"
        status, answer = self.exchange(f"reply/{name}", method, path, body, by, **headers)
        assert status < 400, f"{name}: {status} {answer}"
        self.right.add(name)
        return answer

    def keep_session(self, answer):
        self.canaries.keep("session", answer["session"][16:59])
        if answer.get("device"):
            self.canaries.keep("device", answer["device"])
        return answer["session"]

    # ---- rightly ----
    def first_admin(self):
        password = self.canaries.make("password")
        code = (self.site.dir / "state/first-admin.code").read_text().strip()
        self.canaries.keep("first-admin code", code)
        session = self.keep_session(self.ask("SIGN_IN_FIRST", {"account": "boss", "code": code, "password": password}))
        return self.add_app(session), password

    def add_app(self, session):
        secret = self.ask("TOTP_BEGIN", session=session)["secret"]
        self.canaries.keep("app secret", secret)
        self.canaries.keep("app secret", base64.b32decode(secret + "=" * (-len(secret) % 8)))
        codes = self.ask("TOTP_CONFIRM", {"code": totp(secret)}, session=session)["recovery"]
        for code in codes:
            self.canaries.keep("recovery code", code)
            self.canaries.keep("recovery code", code.replace("-", ""))
        return session, secret, codes

    def people(self):
        """Accounts, sessions and tokens, as their owners and an administrator use them."""
        (boss, secret, codes), _ = self.first_admin()
        self.ask("PROVE", {"code": totp(secret, 1)}, session=boss)
        enrol = self.ask("ACCOUNT_ENROL", {"principal": "alice"}, session=boss)["code"]
        self.canaries.keep("enrol code", enrol)
        password = self.canaries.make("password")
        self.ask("ACCOUNT_PASSWORD", {"account": "alice", "enrol": enrol, "password": password})
        alice, _, hers = self.add_app(self.keep_session(self.ask("SIGN_IN", {"account": "alice", "password": password})))
        self.exchange("reply/SIGN_IN", "POST", "/v1/sign-in", {"account": "alice", "password": self.canaries.make("password"), "code": hers[0]})
        alice = self.keep_session(self.ask("SIGN_IN", {"account": "alice", "password": password, "code": hers[1]}))
        for name in ("ACCOUNT_GET", "SESSION_LIST", "PASSKEY_BEGIN"):
            self.ask(name, session=alice)
        for code in self.ask("RECOVERY_MAKE", session=alice)["recovery"]:
            self.canaries.keep("recovery code", code)
        self.ask("BREAK_GLASS", {"reason": "nobody answers"}, session=alice)
        self.tokens(alice)
        self.command_line(alice)
        self.ask("ACCOUNT_LIST", session=boss)
        self.ask("SIGN_OUT", session=alice)
        self.ask("ACCOUNT_RESET", at="alice", session=boss)
        self.boss = boss

    def tokens(self, session):
        token = self.ask("TOKEN_CREATE", {"note": "nightly"}, session=session, Idempotency_Key=self.canaries.make("idempotency key"))["token"]
        self.canaries.keep("token", token[16:59])
        self.ask("WHOAMI", session=token)
        listed = self.ask("TOKEN_LIST", session=session)["items"]
        self.ask("TOKEN_REVOKE", at=listed[0]["id"], session=session)

    def command_line(self, session):
        verifier = self.canaries.make("verifier") + "x" * 20
        code = self.ask("SIGN_IN_GRANT", {"challenge": s256(verifier), "host": "here"}, session=session)["code"]
        self.canaries.keep("grant", code)
        other = self.ask("SIGN_IN_CODE", {"code": code, "verifier": verifier})
        other = self.keep_session(other)
        mine = [s["id"] for s in self.ask("SESSION_LIST", session=other)["items"] if s["this"]]
        self.ask("SESSION_END", at=mine[0], session=session)

    def issuer(self, provider):
        begun = self.ask("SIGN_IN_ISSUER", {"issuer": "corp"})
        fields = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(begun["address"]).query))
        back = provider.authorize(fields).partition("?")[2]
        self.keep_session(self.ask("SIGN_IN_RETURN", {"query": back}, at=begun["id"]))
        begun = self.ask("SIGN_IN_DEVICE", {"issuer": "corp"})
        provider.answers = [{"sub": "ada", "amr": ["pwd", "otp"]}]
        time.sleep(1.1)
        self.keep_session(self.ask("SIGN_IN_POLL", at=begun["id"]))
        token = provider.sign({"sub": "ada", "jti": "1", "events": {"http://schemas.openid.net/event/backchannel-logout": {}}})
        self.ask("SIGN_IN_LOGOUT", {"logout_token": token}, at="corp")

    def jobs(self):
        spec = {"tenant": "acme/vision/batch", "sku": "small", "args": ["sleep", "600"], "env": ["KEY=" + self.canaries.make("env")]}
        self.job = self.ask("JOB_SUBMIT", spec, by="alice", Idempotency_Key=self.canaries.make("idempotency key"))["id"]
        held = self.ask("JOB_SUBMIT", {**spec, "hold": True}, by="alice")["id"]
        self.ask("JOB_RELEASE", at=held, by="alice")
        self.ask("JOB_CANCEL", at=held, by="alice")
        self.site.await_state(self.job, "running")
        for name in ("JOB_GET", "JOB_WHY", "JOB_LOGS", "JOB_LOG_LINES", "JOB_VERIFY"):
            self.ask(name, at=self.job, by="alice")
        self.streams()
        self.ask("NODE_VERIFY", by="erin")
        self.ask("WHATIF", {"submit": spec}, by="alice")
        self.ask("POLICY_TEST", {"jobs": [spec]}, by="erin")

    def streams(self):
        for name, body in (("JOB_EXEC", {"args": ["true", self.canaries.make("command")]}), ("JOB_ATTACH", {}), ("JOB_FORWARD", {})):
            job = self.job
            if name == "JOB_FORWARD":
                job = self.ask("JOB_SUBMIT", {"tenant": "acme/vision/batch", "sku": "small", "args": ["sleep", "600"], "kind": "service"}, by="alice")["id"]
                self.site.await_state(job, "running")
            ticket = self.ask(name, body, at=job, by="alice")["ticket"]
            self.canaries.keep("ticket", ticket)
            self.ask("STREAM_OPEN", at=ticket, by="alice", Connection="Upgrade", Upgrade="bulkhead-stream")

    def holds(self):
        gpu = self.site.client().get("/v1/gpus")["items"][0]["uuid"]
        for name in ("CORDON", "DRAIN", "UNCORDON"):
            self.ask(name, {"target": gpu, "reason": "a try"}, by="erin")

    def reads(self):
        for name in ("JOB_LIST", "JOB_WATCH", "GPU_LIST", "NODE_LIST", "TENANT_LIST", "SKU_LIST", "DATASET_LIST", "RECEIPT_LIST", "USAGE", "FORECAST",
                     "SITE_GET", "RECORD_LIST", "CHECKPOINT_LIST", "LOG_SHOW", "DEFRAG_SHOW", "LAYOUT_LIST", "KEY_LIST", "STATUS", "METRICS"):
            self.ask(name, by="erin")
        gpu = self.site.client().get("/v1/gpus")["items"][0]
        self.ask("GPU_GET", at=gpu["uuid"], by="erin")
        self.ask("NODE_GET", at=gpu["node"], by="erin")
        self.ask("SERIES", query="object=site", by="erin")
        self.ask("TENANT_GET", at=self.site.client().get("/v1/tenants")["items"][0]["name"], by="erin")
        revision = self.ask("SITE_REVISIONS", by="erin")["present"]
        self.ask("SITE_REVISION", at=revision, by="erin")
        self.ask("SITE_DIFF", query=f"from={revision}", by="erin")
        layout = {"layouts": [{"gpu": "all", "partitions": []}]}
        self.ask("LAYOUT_DIFF", layout, by="erin")
        self.ask("LAYOUT_APPLY", layout, by="erin")
        self.ask("LAYOUT_ROLLBACK", by="erin")
        self.ask("RECORD_LIST", query="raw=true&limit=10000", by="erin")
        for name in ("LOG_CHECKPOINT", "LOG_MINIMUM", "SIGN_IN_WAYS", "SIGN_IN_CHALLENGE", "HEALTH", "OPENAPI"):
            self.ask(name)
        self.site.until(lambda: int(self.ask("LOG_CHECKPOINT").splitlines()[1]) > 3, what="a checkpoint")
        size = int(self.ask("LOG_CHECKPOINT").splitlines()[1])
        self.ask("RECORD_GET", at=2, by="erin")
        self.ask("RECORD_PROOF", at=2, by="erin")
        self.ask("CONSISTENCY", query=f"old=2&new={size}", by="erin")
        tile = "000" if size >= 256 else f"000.p/{size}"
        self.ask("LOG_ENTRIES", at=tile, by="erin")
        for rows in ("names", "jobs", "texts"):
            self.ask("LOG_ROWS", at=rows, query=f"size={size}", by="erin")
        self.ask("LOG_TILE", at=f"0/{tile}")
        self.ask("AUDIT_PRUNE", {"checkpoint": self.ask("LOG_CHECKPOINT")}, query="dry_run=true", by="erin")

    def keys(self):
        self.site.run("true", tenant="acme/vision/train")  # a month with a key
        self.ask("KEY_ROTATE", by="erin")
        self.ask("KEY_SHRED", {"tenant": "acme/vision/train", "month": time.strftime("%Y-%m", time.gmtime()), "reason": "asked"}, by="erin")

    # ---- wrongly ----
    def body(self, name, times=1):
        """What the operation takes, with a canary in each secret."""
        make = lambda kind: self.canaries.make(kind) * times
        body = {field: make(kind) if field != "env" else ["KEY=" + make(kind)] for field, kind in FIELDS.get(name, {}).items()}
        if name in ("JOB_SUBMIT", "WHATIF", "POLICY_TEST"):
            spec = {"tenant": "acme/vision/batch", "sku": "none", "args": ["true"], **body}
            return {"JOB_SUBMIT": spec, "WHATIF": {"submit": spec}, "POLICY_TEST": {"jobs": [spec]}}[name]
        more = {"SIGN_IN": {"account": "alice"}, "PROVE": {"account": "alice"}, "SIGN_IN_FIRST": {"account": "eve"},
                "ACCOUNT_PASSWORD": {"account": "alice"}, "KEY_SHRED": {"tenant": "acme", "month": "2026-01", "reason": "x"}}
        return {**body, **more.get(name, {})} or {"x": make("stray")}

    def refuse(self, name, body=None, at=None, query="", **more):
        """Once wrongly; without `at` with canaries for what the path names."""
        method, path, *_ = OPERATIONS[name]
        path = re.sub(r"\{\w+\}", lambda _: at or self.canaries.make("path"), path)
        status, _ = self.exchange(f"wrong/{name}", method, path + query, body, **more)
        self.wrong.setdefault(name, []).append(status)

    def strangely(self, name):
        """As a stranger, with every header, and as somebody without the right."""
        make, body = self.canaries.make, lambda: self.body(name) if name in FIELDS else None
        for mark in ("bs", "bh", "no"):
            cookies = "; ".join(f"__Host-bulkhead{end}={as_token(make('session'), 'bs')}" for end in ("", "-form", "-device", "-login"))
            self.refuse(name, body(), Authorization=f"Bearer {as_token(make('session'), mark)}", Cookie=cookies, Idempotency_Key=make("idempotency key"))
        self.refuse(name, body(), Authorization="Basic " + base64.b64encode(make("password").encode()).decode())
        self.refuse(name, body(), by="bob", Idempotency_Key=make("idempotency key"))
        self.refuse(name, body(), by="bob", Idempotency_Key=make("idempotency key") + "x" * 200)

    def wrongly(self, name):
        """By who may: cut off, too long, of another kind, not what was given; one fault at a time."""
        _, path, _, query = OPERATIONS[name]
        for who in ({"by": "erin"}, {"Authorization": f"Bearer {self.boss}"}):
            for parameter in query or ["x"]:
                self.refuse(name, query=f"?{parameter}={self.canaries.make('query')}", **who)
            self.refuse(name, json.dumps(self.body(name))[:-2], **who)
            self.refuse(name, self.body(name, 900), **who)
            if name in FIELDS:
                self.refuse(name, self.body(name), **who)
            elif "{" in path:
                self.refuse(name, **who)
            for field in FIELDS.get(name, {}):
                self.refuse(name, self.body(name) | {field: {"x": self.canaries.make("stray")}}, **who)

    def further(self, provider):
        """Wrong in the last thing only, where all before it is right."""
        make, boss = self.canaries.make, {"Authorization": f"Bearer {self.boss}"}
        self.ask("TOTP_BEGIN", session=self.boss)
        self.refuse("TOTP_CONFIRM", {"code": make("code")}, **boss)
        passkey = lambda name: self.body(name) | {"challenge": self.ask(name.replace("PASSKEY_ADD", "PASSKEY_BEGIN").replace("SIGN_IN", "SIGN_IN_CHALLENGE"),
                                                                        session=self.boss)["challenge"]}
        self.refuse("PASSKEY_ADD", passkey("PASSKEY_ADD"), **boss)
        self.refuse("SIGN_IN", passkey("SIGN_IN"))
        grant = self.ask("SIGN_IN_GRANT", {"challenge": s256("y" * 43)}, session=self.boss)["code"]
        self.refuse("SIGN_IN_CODE", {"code": grant, "verifier": make("verifier")})
        self.refuse("ACCOUNT_PASSWORD", {"old": make("password"), "password": make("password")}, **boss)
        for state in (False, True):
            begun = self.ask("SIGN_IN_ISSUER", {"issuer": "corp"})
            known = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(begun["address"]).query))["state"]
            self.refuse("SIGN_IN_RETURN", {"query": f"code={make('callback')}&state={known if state else make('callback')}"}, at=begun["id"])
        for answer in (make("provider's error"), {"sub": "ada", "aud": make("audience")}, 500):
            begun = self.ask("SIGN_IN_DEVICE", {"issuer": "corp"})
            provider.answers = [answer]
            time.sleep(1.1)
            self.refuse("SIGN_IN_POLL", at=begun["id"])
        event = {"http://schemas.openid.net/event/backchannel-logout": {}}
        for token in (make("logout token"), provider.sign({"sub": "ada", "jti": make("logout token"), "aud": "another", "events": event}),
                      provider.sign({"sub": "ada", "nonce": make("logout token"), "jti": "2", "events": event})):
            self.refuse("SIGN_IN_LOGOUT", {"logout_token": token}, at="corp")

    def pages(self):
        """Forms and cookies of the pages, from no user."""
        for method, path in re.findall(r'(?m)^BH_PAGE\((\w+), *"([^"]*)"', (ROOT / "tables/pages.tbl").read_text()):
            make = self.canaries.make
            fields = {n: make("password") for n in ("password", "repeated", "old", "code", "token")}
            form = urllib.parse.urlencode({"account": "alice", **fields})
            self.exchange(f"page{path}", method, f"{path}?code={make('callback')}&state={make('callback')}",
                          form if method == "POST" else None, Origin=ADDRESS, Cookie=f"__Host-bulkhead={make('session')}; "
                          f"__Host-bulkhead-form={make('session')}", Content_Type="application/x-www-form-urlencoded")


# ---- searching ----

def places(site, replies):
    """(place, bytes) of all that was written, answered, or can be seen of our processes."""
    for name in ("daemon.log", "node.log"):
        yield f"log/{name}", (site.dir / name).read_bytes()
    for folder in ("state", "node", "run", "logs", "secrets", "export"):
        for path in sorted(p for p in (site.dir / folder).rglob("*") if p.is_file() and not p.is_symlink()):
            try:
                yield str(path.relative_to(site.dir)), path.read_bytes()
            except FileNotFoundError:  # gone meanwhile, as -wal may be
                pass
    for pid in ours(site):
        for name in ("cmdline", "environ"):
            yield f"{name}/{program(pid)}", pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    yield from replies


def ours(site):
    """Our processes, also those below the daemon and the node that name the site nowhere."""
    found = list(dict.fromkeys([site.daemon.pid, site.node.pid, *site.processes()]))
    for pid in found:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
                found += [child for child in map(int, (task / "children").read_text().split()) if child not in found]
    return [pid for pid in found if program(pid).startswith("bulkhead")]


def program(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except FileNotFoundError:
        return ""  # it has ended


def leaks(canaries, where):
    """{what is where no row of MAY_BE has it: its text}, and the rows that were of use."""
    bad, used = {}, set()
    for place, data in where:
        for kind, text in canaries.found(data).items():
            rows = [row for row in MAY_BE if row[0] == kind and fnmatch.fnmatch(place, row[1])]
            used |= {row[:2] for row in rows}
            if not rows:
                bad[f"{kind} in {place}"] = text
    return bad, used


def hidden(pid):
    """Whether the process has no core dump and only root can read it."""
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    equal(f"core dumps of {program(pid)}", re.search(r"Max core file size +(\S+) +(\S+)", limits).groups(), ("0", "0"))
    equal(f"{program(pid)} is not dumpable: its memory", os.stat(f"/proc/{pid}/mem").st_uid, 0)


CONF = {"topology": "1x H100-80GB", "site": SITE}


@tap.test(daemon_conf=f"audit_retention = 1s\nsnapshot_every = 100\nhttps_port = {PORT}\nsecrets_dir = /tmp/bulkhead-canary-secrets-{os.getpid()}\n", **CONF)
def everywhere(site):
    "every operation is asked rightly and wrongly with canaries for secrets, and none is where it may not be"
    walk = Walk(site)
    secrets = site.dir / "secrets"
    secrets.mkdir(mode=0o755)
    link = pathlib.Path(f"/tmp/bulkhead-canary-secrets-{os.getpid()}")
    link.symlink_to(secrets)
    (secrets / "corp").write_text(walk.canaries.make("client secret") + "\n")
    try:
        with Knowing(site.dir, walk.canaries) as provider:
            issuer = f"{{name: corp, url: '{provider.url}', client_id: bulkhead, client_secret: corp, loopback: true}}"
            walk.ask("SITE_APPLY", f"sign_in: {{address: '{ADDRESS}', issuers: [{issuer}]}}\n{SITE}", by="erin",
                     **{"Content_Type": "application/yaml"})
            walk.people()
            walk.issuer(provider)
            walk.further(provider)
        walk.jobs()
        walk.holds()
        walk.reads()
        walk.keys()
        for name in OPERATIONS:
            walk.strangely(name)
            walk.wrongly(name)
        walk.pages()
    finally:
        link.unlink()
    equal("rows of the table", len(OPERATIONS), (ROOT / "tables/operations.tbl").read_text().count("\nBH_OPERATION("))
    equal("operations that were not asked rightly", set(OPERATIONS) - walk.right, set(NEVER_RIGHT))
    equal("operations that were not refused", [n for n in OPERATIONS if max(walk.wrong[n]) < 400], [])
    export = site.dir / "export"
    site.cli(None, "audit", "export", str(export), "--vkey", str(site.dir / "state/audit.vkey"), check=0)
    salts = [leaf.get("salt", "") for leaf in site.leaves()]
    equal("records without a salt of their own", len(salts) - len({salt for salt in salts if len(salt) == 32}), 0)
    bad, used = leaks(walk.canaries, places(site, walk.replies))
    equal("leaks", bad, {})
    equal("rows of MAY_BE of no use", [row for row in MAY_BE if row[:2] not in used], [])


@tap.test(daemon_conf=f"https_port = {PORT}", **CONF)
def dumps(site):
    "no process that holds secrets can dump core or be looked into: daemon, signer, fetcher, and the CLI at a prompt"
    holders = {program(pid): pid for pid in ours(site) if program(pid) in ("bulkheadd", "bulkhead-signer", "bulkhead-fetch")}
    equal("processes", sorted(holders), ["bulkhead-fetch", "bulkhead-signer", "bulkheadd"])
    person = Person(site, "zoe", user="alice")
    pid, fd = pty.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(PEOPLE["alice"])
        os.setuid(PEOPLE["alice"])
        os.execve(site.program("bulkhead"), ["bulkhead", "login", "--account", "zoe"], person.env)
    try:
        terminal.await_text(fd, "", 0, "assword")
        for holder in (*holders.values(), pid):
            hidden(holder)
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


@tap.test(**CONF)
def finds(site):
    "the search finds a canary in a log line, a file of the state folder and a reply, in every encoding"
    canaries = Canaries()
    for kind in ("plain", "hex", "base64", "base64url"):
        for before in range(3):
            text = canaries.make("planted")
            raw = b"?" * before + text.encode() + b"\xff\xfe"
            shown = {"plain": text.encode(), "hex": raw.hex().encode(), "base64": base64.b64encode(raw),
                     "base64url": base64.urlsafe_b64encode(raw).rstrip(b"=")}[kind]
            planted = site.dir / "state/planted"
            planted.write_bytes(b"a line with " + shown + b" in it\n")
            with open(site.dir / "daemon.log", "ab") as log:
                log.write(b"bulkheadd: said " + shown + b"\n")
            bad, _ = leaks(canaries, places(site, [("reply/WHOAMI", shown)]))
            equal(f"{kind} behind {before} bytes", set(bad), {f"planted in {place}" for place in ("log/daemon.log", "state/planted", "reply/WHOAMI")})
    planted.unlink()
    held = canaries.keep("held", "0123456789abcdefghij")
    contains("one that was given", str(leaks(canaries, [("x", base64.b64encode(b"??" + held.encode()))])), "held in x")


if __name__ == "__main__":
    tap.main()
