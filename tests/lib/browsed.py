"""A site that people browse: a real bulkheadd and node with HTTPS, accounts with a session each, and
jobs that run, wait and have ended."""
import base64
import hashlib
import hmac
import http.client
import json
import re
import ssl
import struct
import time

import bulkhead

PASSWORD = "correct horse battery"
LOOP = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2; done"
SITE = re.sub(r"(uid: \d+)}", r"\1, account: true}", (bulkhead.ROOT / "tools/demo-site.yaml").read_text())


def totp(secret, ahead=0):
    """RFC 6238: the code of now, or of some steps ahead."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    mac = hmac.new(key, struct.pack(">Q", int(time.time()) // 30 + ahead), hashlib.sha1).digest()
    at = mac[-1] & 15
    return f"{(struct.unpack('>I', mac[at:at + 4])[0] & 0x7fffffff) % 1000000:06d}"


class BrowsedSite(bulkhead.Site):
    def __init__(self, build, topology="4x H100-80GB", site=SITE, people=("erin", "alice", "carol", "dave"), **more):
        self.port = bulkhead.free_port()
        self.origin = f"https://localhost:{self.port}"
        self.people = people
        self.sessions, self.recovery = {}, {}
        address = f"\nsign_in: {{address: '{self.origin}'}}\n"
        super().__init__(build, topology=topology, site=site + address, daemon_conf=f"https_port = {self.port}", **more)

    def __enter__(self):
        super().__enter__()
        try:
            self.until(lambda: "ready" in (self.dir / "daemon.log").read_text(), what="HTTPS")
            self.enroll_all()
        except BaseException as fault:
            self.__exit__(type(fault), fault, None)
            raise
        return self

    def ask(self, method, path, body=None, session=None):
        """(status, JSON) over HTTPS."""
        trust = ssl.create_default_context(cafile=str(self.dir / "state/tls.crt"))
        trust.check_hostname = False
        connection = http.client.HTTPSConnection("localhost", self.port, context=trust, timeout=30)
        headers = {"Content-Type": "application/json"}
        if session:
            headers["Authorization"] = f"Bearer {session}"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        answer = json.loads(text) if text else {}
        if reply.status >= 400:
            raise bulkhead.Refused(reply.status, answer)
        return answer

    def add_app(self, session):
        secret = self.ask("POST", "/v1/account/totp", {}, session)["secret"]
        return self.ask("PUT", "/v1/account/totp", {"code": totp(secret)}, session)["recovery"]

    def enroll_all(self):
        code = (self.dir / "state/first-admin.code").read_text().strip()
        first = self.ask("POST", "/v1/sign-in/first", {"account": "first", "code": code, "password": PASSWORD})["session"]
        self.ask("POST", "/v1/prove", {"code": self.add_app(first)[0]}, first)
        for name in self.people:
            enroll = self.ask("POST", "/v1/accounts", {"principal": name}, first)["code"]
            self.ask("PUT", "/v1/account/password", {"account": name, "enrol": enroll, "password": PASSWORD})
            session = self.ask("POST", "/v1/sign-in", {"account": name, "password": PASSWORD})["session"]
            self.recovery[name] = self.add_app(session)
            self.sessions[name] = self.sign_in(name)

    def sign_in(self, name):
        """One more session of an account, with the next of its recovery codes."""
        return self.ask("POST", "/v1/sign-in", {"account": name, "password": PASSWORD, "code": self.recovery[name].pop(0)})["session"]

    def fill(self):
        """Jobs in every state that a page shows."""
        alice, bob = self.client("alice"), self.client("bob")
        run = {"args": ["sh", "-c", LOOP], "time_limit": 600}
        jobs = [self.submit(client=alice, **{**run, "tenant": "acme/vision/train", "name": f"train-{i}"}) for i in range(3)]
        jobs.append(self.submit(client=bob, **{**run, "tenant": "acme/speech/asr", "sku": "medium", "name": "transcribe"}))
        jobs += [self.submit(client=alice, **{**run, "tenant": "acme/vision/batch", "sku": "large", "name": f"render-{i}"}) for i in range(4)]
        done = self.submit("true", client=bob, tenant="acme/speech/asr", name="done")
        failed = self.submit("false", client=bob, tenant="acme/speech/asr", name="broken")
        for job in (done, failed):
            self.await_state(job, *bulkhead.ENDED)
        self.await_state(jobs[0], "running")
        return {"running": jobs[0], "pending": jobs[2], "done": done, "failed": failed, "all": jobs}

    def given(self, jobs):
        """What a browser's test has to know."""
        return {"origin": self.origin, "sessions": self.sessions, "jobs": jobs,
                "gpus": [g["uuid"] for g in self.client("erin").get("/v1/gpus")["items"]]}
