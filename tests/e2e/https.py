#!/usr/bin/env python3
"""The HTTPS listener: TLS 1.3 only, API tokens as identity."""
import http.client
import pathlib
import socket
import ssl
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import PATIENCE_S, SLOW, Client, Refused, free_port
from tap import contains, equal

SUBMIT = {"tenant": "acme/vision/batch", "sku": "small", "args": ["true"]}


class Https(Client):
    def __init__(self, site, token=None):
        super().__init__(None)
        self.site, self.token = site, token
        self.context = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
        self.context.check_hostname = False

    def open(self):
        return http.client.HTTPSConnection("127.0.0.1", PORT, timeout=PATIENCE_S, context=self.context)

    def request(self, method, path, body=None, headers=None):
        bearer = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return super().request(method, path, body, {**bearer, **(headers or {})})


PORT = free_port()
CONF = {"daemon_conf": f"https_port = {PORT}"}


def refused(status, call, *args):
    try:
        call(*args)
    except Refused as error:
        equal("status", error.status, status)
        return error.error
    raise AssertionError(f"not refused with {status}")


def new_token(site, person, **request):
    return site.client(person).post("/v1/tokens", request)


@tap.test(**CONF)
def tokens(site):
    "a token is its owner over HTTPS; without one, or with a damaged one, the caller is unknown"
    token = new_token(site, "alice")
    contains("form", token["token"], f"bh_{token['id']}")
    alice = Https(site, token["token"])
    equal("who", alice.get("/v1/whoami")["name"], "alice")
    job = alice.post("/v1/jobs", SUBMIT)["id"]
    site.await_state(job, "completed")
    equal("whose", site.job(job)["user"], "alice")
    refused(403, alice.post, "/v1/jobs", {**SUBMIT, "sku": "large", "priority": "high"})
    equal("open to anybody", Https(site).get("/healthz")["status"], "ok")
    for bad in (None, "bh_", "x" * 40, token["token"][:-1], token["token"][:-1] + ("a" if token["token"][-1] != "a" else "b"),
                token["token"] + "x", token["token"].upper()):
        refused(401, Https(site, bad).get, "/v1/whoami")
    equal("no secret in the store", any(token["token"][20:].encode() in p.read_bytes() for p in (site.dir / "state").glob("bulkhead.db*")), False)


@tap.test(**CONF)
def revoked(site):
    "a revoked token is refused at once, on an open connection too, and so is an expired one"
    token = new_token(site, "alice")
    alice = Https(site, token["token"])
    alice.get("/v1/jobs")
    site.client("alice").request("DELETE", f"/v1/tokens/{token['id']}")
    error = refused(401, alice.get, "/v1/jobs")
    equal("code", error["code"], "unauthenticated")
    short = Https(site, new_token(site, "alice", lifetime=f"{round(5 * SLOW)}s")["token"])
    short.get("/v1/jobs")
    site.until(lambda: short.exchange("GET", "/v1/jobs", headers={"Authorization": f"Bearer {short.token}"})[0] == 401, what="its end")
    refused(401, short.get, "/v1/jobs")
    site.kill(site.daemon)
    site.start_daemon()
    refused(401, alice.get, "/v1/jobs")


@tap.test(**CONF)
def scoped(site):
    "a token does no more than its scopes say, nor makes one that does; others' tokens are not touched"
    reader = Https(site, new_token(site, "alice", scopes="job.view tenant.view token.create")["token"])
    reader.get("/v1/jobs")
    contains("why", str(refused(403, reader.post, "/v1/jobs", SUBMIT)), "scope")
    refused(403, reader.post, "/v1/tokens", {})
    refused(403, reader.post, "/v1/tokens", {"scopes": "job.submit"})
    refused(403, reader.post, "/v1/tokens", {"principal": "erin"})
    bobs = new_token(site, "bob")["id"]
    refused(404, site.client("alice").request, "DELETE", f"/v1/tokens/{bobs}")
    site.client("erin").request("DELETE", f"/v1/tokens/{bobs}")


@tap.test(**CONF)
def tls(site):
    "TLS 1.2 and plain HTTP are refused; the certificate and its key stay over a restart, for the daemon alone"
    context = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
    context.check_hostname = False
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.wrap_socket(socket.create_connection(("127.0.0.1", PORT), PATIENCE_S))
    except ssl.SSLError:
        pass
    else:
        raise AssertionError("TLS 1.2 was accepted")
    plain = http.client.HTTPConnection("127.0.0.1", PORT, timeout=PATIENCE_S)
    try:
        plain.request("GET", "/healthz")
        raise AssertionError(f"plain HTTP was answered: {plain.getresponse().status}")
    except (http.client.HTTPException, OSError):
        pass
    context.maximum_version = ssl.TLSVersion.TLSv1_3
    with context.wrap_socket(socket.create_connection(("127.0.0.1", PORT), PATIENCE_S)) as secure:
        equal("version", secure.version(), "TLSv1.3")
        before = secure.getpeercert(binary_form=True)
    equal("mode of the key", oct((site.dir / "state/tls.key").stat().st_mode & 0o777), "0o600")
    site.kill(site.daemon)
    site.start_daemon()
    with context.wrap_socket(socket.create_connection(("127.0.0.1", PORT), PATIENCE_S)) as secure:
        assert before == secure.getpeercert(binary_form=True), "another certificate"


@tap.test(**CONF)
def cli(site):
    "the CLI speaks HTTPS with a token, and trusts only the given certificate"
    token = new_token(site, "alice")["token"]
    where = ["--server", f"https://127.0.0.1:{PORT}"]
    (site.dir / "token").write_text(token)
    (site.dir / "token").chmod(0o644)
    (site.dir / "crt").write_bytes((site.dir / "state/tls.crt").read_bytes())
    known = [*where, "--ca-file", str(site.dir / "crt"), "--token-file", str(site.dir / "token")]
    done = site.cli("alice", "whoami", *known)
    equal("status", (done.returncode, "alice" in done.stdout), (0, True))
    done = site.cli("alice", "run", *known, "--tenant", "acme/vision/batch", "--sku", "small", "--", "sh", "-c", "echo hello; exit 3")
    equal("run", (done.returncode, done.stdout), (3, "hello\n"))
    assert site.cli("alice", "whoami", *where, "--token-file", str(site.dir / "token")).returncode != 0, "an unknown certificate was trusted"


if __name__ == "__main__":
    tap.main()
