#!/usr/bin/env python3
"""No user stops the API for others: connections, requests, jobs, tokens, refusals, isolation checks, the disk."""
import http.client
import json
import os
import pathlib
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
import tap
from bulkhead import PATIENCE_S, Client, Refused, UnixConnection, free_port
from tap import contains, equal

HELD = {"tenant": "acme/vision/batch", "sku": "small", "args": ["true"], "hold": True}
STRANGERS = (20501, 20502)
CONNECTIONS_MAX, STREAMS_MAX = 512, 64


PORT = free_port()
HTTPS = {"daemon_conf": f"https_port = {PORT}"}


def statuses(client, method, path, body, times):
    """How often which status came."""
    counts = {}
    for _ in range(times):
        status = client.exchange(method, path, body)[0]
        counts[status] = counts.get(status, 0) + 1
    return counts


def records(site):
    """All of them, as an auditor sees them."""
    found, after = [], ""
    while True:
        page = site.client("dave").get(f"/v1/records?limit=1000{after}")
        found += page["items"]
        if "next" not in page:
            return found
        after = f"&after={page['next']}"


def raise_files_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))


# ---- too much of everything ----

@tap.test()
def flood(site):
    "a developer's flood makes few tokens, jobs and records, others are served, and each refusal is counted"
    alice = site.client("alice")
    tokens = statuses(alice, "POST", "/v1/tokens", {}, 300)
    equal("tokens made", tokens.get(201, 0), 32)
    jobs = statuses(alice, "POST", "/v1/jobs", HELD, 1500)
    assert 429 in jobs and jobs.get(201, 0) <= 1000, f"{jobs}"
    denied = statuses(alice, "POST", "/v1/cordon", {"target": "n1"}, 2000)
    assert set(denied) <= {403, 429}, f"{denied}"
    equal("bob is served", site.client("bob").exchange("GET", "/v1/jobs?limit=1")[0], 200)
    equal("root is served", site.client().exchange("POST", "/v1/tokens", {"principal": "bob"})[0], 201)
    refused = sum(count for counts in (tokens, jobs, denied) for status, count in counts.items() if status >= 400)
    site.stop(site.daemon)  # what was counted is written when it stops
    site.start_daemon()
    mine = [r for r in records(site) if r.get("actor", {}).get("name") == "alice" and r["result"] != "ok"]
    equal("each refusal is in the log", sum(r.get("count", 1) for r in mine), refused)
    assert len(mine) <= 40, f"{len(mine)} records of {refused} refusals"
    assert max(r.get("count", 1) for r in mine) > 100
    site.cli("dave", "audit", "verify")


@tap.test()
def unknown(site):
    "a user who is no principal is on record by uid, also as one of many; the log stays small, and whole to both verifiers"
    first, many = 20300, range(20301, 20361)
    for path in ("/v1/jobs", "/v1/jobs", "/v1/nodes"):
        equal("turned away", Client(site.socket, first).exchange("GET", path)[0], 401)
    for uid in many:
        equal("turned away", Client(site.socket, uid).exchange("POST", "/v1/jobs", HELD)[0], 401)
    site.stop(site.daemon)
    site.start_daemon()
    found = [r for r in records(site) if r["result"] == "unauthenticated"]
    equal("each is in the log", sum(r.get("count", 1) for r in found), 3 + len(many))
    equal("by uid", [(r["actor"]["uid"], r["verb"], r.get("count", 1)) for r in found if r["actor"]["uid"] == first],
          [(first, "job.view", 1), (first, "caller.unknown", 2)])
    assert len(found) < 25, f"{len(found)} records"
    said = site.cli("dave", "audit", "search", "--decision", "deny", "--verb", "job.submit", "-o", "wide", check=0).stdout
    contains("to an auditor", said, str(many[0]))
    key = ("--vkey", str(site.dir / "state/audit.vkey"))
    site.cli(None, "audit", "export", str(site.dir / "log"), *key, check=0)
    subprocess.run([sys.executable, ROOT / "tools/verify_audit.py", site.dir / "log", *key], check=True, stdout=subprocess.DEVNULL)


LONG = {**HELD, "args": ["true", *["x" * 30000] * 30]}
UNIT, RATE, BURST = 4096, 50, 500  # docs/limits.md: a change counts once for each 4 KiB


def stored(site):
    return sum(f.stat().st_size for f in (site.dir / "state").glob("bulkhead.db*"))


@tap.test()
def long(site):
    "who submits long jobs draws by their length, and the store grows no faster than that"
    alice, begun, before = site.client("alice"), time.monotonic(), stored(site)
    jobs = statuses(alice, "POST", "/v1/jobs", LONG, 100)
    allowed = (BURST + RATE * (time.monotonic() - begun) + 220) * UNIT
    assert set(jobs) == {201, 429}, f"{jobs}"
    assert jobs[201] * 900000 <= allowed, f"{jobs[201]} were taken"
    assert stored(site) - before < 3 * allowed + (4 << 20), f"{stored(site) - before} bytes more"
    status, head, _ = alice.exchange("POST", "/v1/jobs", LONG)
    equal("status", status, 429)
    assert 1 <= int(head["Retry-After"]) <= 6, head["Retry-After"]  # 220 at 50 a second
    equal("bob is served", site.client("bob").exchange("GET", "/v1/jobs?limit=1")[0], 200)


@tap.test(daemon_conf="tenant_texts_max = 2Mi\njobs_waiting_max = 0")
def hoard(site):
    "a tenant's jobs keep so much text and no more, cancelled ones too; another tenant submits and cancels meanwhile"
    alice, bob, heard = site.client("alice"), site.client("bob"), []
    bobs = {"tenant": "acme/speech/asr", "sku": "small", "args": ["true"], "hold": True}
    for number in range(200):
        status, _, text = alice.exchange("POST", "/v1/jobs", {**HELD, "args": ["true", "x" * 30000], "name": f"n{number}"})
        if status != 201:
            break
        heard.append(alice.exchange("POST", f"/v1/jobs/{json.loads(text)['id']}/cancel")[0])
        heard.append(bob.exchange("POST", f"/v1/jobs/{bob.post('/v1/jobs', bobs)['id']}/cancel")[0])
    equal("alice is refused", status, 422)
    contains("by name", text, "acme/vision/batch keeps")
    contains("what frees it", text, "key shred")
    assert 40 <= number <= 60, f"{number} of 40 KiB in 2 MiB"
    equal("what was cancelled", set(heard), {200})
    equal("her other tenant", alice.exchange("POST", "/v1/jobs", {**HELD, "tenant": "acme/vision/train"})[0], 201)


@tap.test(daemon_conf="rate_changes = 1")
def patience(site):
    "429 says when to come again, and the command line does"
    alice = site.client("alice")
    for _ in range(600):
        status, head, text = alice.exchange("POST", "/v1/jobs", HELD)
        if status == 429:
            break
        equal("status", status, 201)
    equal("status in the end", status, 429)
    equal("Retry-After", head["Retry-After"], "1")
    equal("code", json.loads(text)["error"]["code"], "too_many")
    contains("bulkhead waits", site.cli("alice", "token", "create", "-o", "json").stdout, "bh_")


@tap.test(daemon_conf="disk_reserve = 1048576Gi")
def reserve(site):
    "with little left on the disk administrators change what they want, others nothing"
    try:
        site.client("alice").post("/v1/jobs", HELD)
        raise AssertionError("not refused")
    except Refused as refused:
        equal("status", refused.status, 507)
        contains("by name", refused.error["message"], "kept for administrators")
    equal("reads", site.client("alice").exchange("GET", "/v1/jobs")[0], 200)
    equal("an administrator", site.client("erin").exchange("POST", "/v1/tokens", {})[0], 201)
    contains("log", (site.dir / "daemon.log").read_text(), "disk nearly full")


# ---- connections ----

def open_idle(site, uid):
    connection = UnixConnection(site.socket, uid=uid)
    connection.connect()  # at once: there is room for more than all of these to wait (base/fd.h)
    return connection


@tap.test(**HTTPS)
def connections(site):
    "600 idle connections of two strangers keep neither root nor who asks at once out, on both sockets"
    raise_files_limit()
    for again in (True, True, False):  # a machine may be busy at another's request
        idle = [open_idle(site, STRANGERS[n % 2]) for n in range(600)]
        begun = time.monotonic()
        equal("root", site.client().exchange("GET", "/v1/status")[0], 200)
        equal("alice", site.client("alice").exchange("GET", "/v1/status")[0], 200)
        took = time.monotonic() - begun
        if took < 10:  # who says nothing is let go after 15 s
            break
        assert again, f"they had to wait {took:.1f} s"
        for connection in idle:
            connection.close()
    far = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(600)]
    context = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
    context.check_hostname = False
    near = http.client.HTTPSConnection("127.0.0.1", PORT, timeout=PATIENCE_S, context=context)
    near.request("GET", "/healthz")
    equal("far away", near.getresponse().status, 200)
    for connection in (*idle, *far, near):
        connection.close()


@tap.test()
def heads(site):
    "an unknown client that sends no request is disconnected"
    begun = time.monotonic()
    stranger = open_idle(site, STRANGERS[0])
    stranger.sock.settimeout(PATIENCE_S)
    stranger.sock.sendall(b"GET / HTTP/1.1\r\n")
    equal("the end", stranger.sock.recv(1), b"")
    assert time.monotonic() - begun > 10, f"after {time.monotonic() - begun:.1f} s"
    stranger.close()


# ---- streams ----

def watch(connection, token=None):
    """Opens a stream of changes: the answer's status, None where there was none."""
    try:
        connection.request("GET", "/v1/watch", headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        if answer.status == 200:
            connection.close = answer.close  # it has the socket: a stream is the last answer of its connection
        else:
            answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return None


def far_from(site, source):
    context = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
    context.check_hostname = False
    return http.client.HTTPSConnection("127.0.0.1", PORT, timeout=PATIENCE_S, context=context, source_address=(source, 0))


def crowd(site):
    """600 streams that alice asks for with one token from three addresses."""
    raise_files_limit()
    token = site.client("alice").post("/v1/tokens", {})["token"]
    far = [far_from(site, f"127.0.0.{2 + n % 3}") for n in range(600)]
    return far, [watch(connection, token) for connection in far]


def served(site, bob, tenant="acme/speech/asr"):
    """What another one wants at once."""
    begun = time.monotonic()
    job = bob.post("/v1/jobs", {"tenant": tenant, "sku": "small", "args": ["true"], "hold": True})["id"]
    equal("listed", bob.exchange("GET", "/v1/jobs?limit=1")[0], 200)
    equal("cancelled", bob.exchange("POST", f"/v1/jobs/{job}/cancel")[0], 200)
    equal("a stranger", site.client().exchange("GET", "/healthz")[0], 200)
    took = time.monotonic() - begun
    assert took < 5, f"it took {took:.1f} s"


def served_from_afar(site, token):
    begun = time.monotonic()
    for source in ("127.0.0.1", "127.0.0.2"):  # hers, too
        near = far_from(site, source)
        near.request("GET", "/v1/jobs?limit=1", headers={"Authorization": f"Bearer {token}"})
        equal(f"from {source}", near.getresponse().status, 200)
        near.close()
    took = time.monotonic() - begun
    assert took < 5, f"it took {took:.1f} s"


@tap.test(**HTTPS)
def watch_afar(site):
    "one person with one token has 64 of 600 streams from three addresses, and others are served at once"
    bob = site.client("bob").post("/v1/tokens", {})["token"]
    far, statuses = crowd(site)
    served_from_afar(site, bob)
    equal("streams", (statuses.count(200), statuses.count(429)), (STREAMS_MAX, 600 - STREAMS_MAX))
    contains("log", (site.dir / "daemon.log").read_text(), "alice")
    for connection in far:
        connection.close()


@tap.test(daemon_conf=f"https_port = {PORT}\nstreams_max = 0")
def watch_afar_without_bound(site):
    "without a bound of streams she gives the youngest back, one for each who comes"
    bob = site.client("bob").post("/v1/tokens", {})["token"]
    far, _ = crowd(site)
    served_from_afar(site, bob)
    contains("log", (site.dir / "daemon.log").read_text(), "alice")
    for connection in far:
        connection.close()


HALF = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"


def half(connection, token):
    """Makes the connection that of somebody known, then sends part of a request."""
    try:
        connection.request("GET", "/v1/whoami", headers={"Authorization": f"Bearer {token}"})
        connection.getresponse().read()
        connection.sock.sendall(HALF)
    except (OSError, http.client.HTTPException, AttributeError):
        connection.close()


@tap.test(**HTTPS)
def halves(site):
    "600 requests that a known user never finishes keep no other user out"
    raise_files_limit()
    alice, bob = (site.client(name).post("/v1/tokens", {})["token"] for name in ("alice", "bob"))
    far = [far_from(site, f"127.0.0.{2 + n % 3}") for n in range(600)]
    for connection in far:
        half(connection, alice)
    served_from_afar(site, bob)
    for connection in far:
        connection.close()


@tap.test(daemon_conf=f"https_port = {PORT}\nstreams_max = 0")
def come_again(site):
    "who comes again for each stream that is taken back, from eight threads, does not keep others out"
    bob, over, lost = site.client("bob").post("/v1/tokens", {})["token"], threading.Event(), []
    far, _ = crowd(site)
    token = site.client("alice").post("/v1/tokens", {})["token"]

    def again():
        mine = []
        while not over.is_set():
            mine.append(far_from(site, "127.0.0.2"))
            lost.append(watch(mine[-1], token))
        for connection in mine:
            connection.close()

    threads = [threading.Thread(target=again) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            served_from_afar(site, bob)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert len(lost) > 20, f"{len(lost)} came again"
    for connection in far:
        connection.close()


def two(site):
    """300 streams each that a developer and a viewer ask for on the unix socket."""
    raise_files_limit()
    near = [site.client(("alice", "dave")[n % 2]).open() for n in range(600)]
    return near, [watch(connection) for connection in near]


@tap.test()
def watch_near(site):
    "two people who ask for 300 streams each on the unix socket stop neither a third one's jobs nor the operator"
    near, statuses = two(site)
    served(site, site.client("bob"))
    equal("the operator", site.client("erin").exchange("POST", "/v1/tokens", {})[0], 201)
    equal("streams", (statuses.count(200), set(statuses)), (2 * STREAMS_MAX, {200, 429}))
    for connection in near:
        connection.close()
    served(site, site.client("alice"), "acme/vision/batch")
    time.sleep(2)  # docs/limits.md says 0.2 s
    again = [site.client("alice").open() for _ in range(STREAMS_MAX)]
    equal("and as many again", {watch(connection) for connection in again}, {200})


@tap.test(daemon_conf="streams_max = 0")
def watch_near_without_bound(site):
    "without a bound of streams each has half of the places, is informed, and gives some back; closed ones are free at once"
    near, statuses = two(site)
    equal("streams", (statuses.count(200), set(statuses)), (CONNECTIONS_MAX, {200, 429}))
    served(site, site.client("bob"))
    taken = [line for line in (site.dir / "daemon.log").read_text().splitlines() if "were closed or refused" in line]
    assert taken and ("alice" in taken[0] or "dave" in taken[0]), f"{taken}"
    for connection in near:
        connection.close()
    served(site, site.client("alice"), "acme/vision/batch")


# ---- lax HTTP ----

BEHIND = b"\r\n\r\nGET /behind HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LAX = [
    ("two hosts", b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y" + BEHIND),
    ("bare LF", b"GET /healthz HTTP/1.1\r\nHost: x\nX: y" + BEHIND),
    ("bare LF behind the request line", b"GET /healthz HTTP/1.1\nHost: x" + BEHIND),
    ("bare LFs at the end", b"GET /healthz HTTP/1.1\r\nHost: x\n\nGET /behind HTTP/1.1\r\nHost: x" + BEHIND),
    ("NUL in the target", b"GET /healthz\0/x HTTP/1.1\r\nHost: x" + BEHIND),
    ("NUL in the method", b"GET\0X /healthz HTTP/1.1\r\nHost: x" + BEHIND),
    ("NUL in a value", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\0b" + BEHIND),
    ("NUL in a name", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX\0Y: a" + BEHIND),
    ("space before the colon", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX : a" + BEHIND),
    ("a line that goes on", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\r\n b" + BEHIND),
    ("a length and chunks", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0" + BEHIND),
    ("no host", b"GET /healthz HTTP/1.1\r\nX: y" + BEHIND),
    ("another coding", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked" + BEHIND),
]
# The library answers some of these by itself, before it asks us, and 0.9.75 with its head twice.
OWN = [
    ("a length below nothing", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1" + BEHIND),
    ("a length beyond all", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999" + BEHIND),
    ("a length of all bits", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615" + BEHIND),
    ("an empty length", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length:" + BEHIND),
    ("more than a body may have", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999" + BEHIND),
    ("chunks", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;x\nx\n0" + BEHIND),
    ("more cookies than memory", b"GET /healthz HTTP/1.1\r\nHost: x\r\nCookie: " + 20000 * b"a" + BEHIND),
]
GOOD = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Y: z\r\nConnection: close\r\n\r\n"


def answer(connection, data):
    connection.settimeout(PATIENCE_S)
    heard = b""
    try:
        connection.sendall(data)
        while part := connection.recv(65536):
            heard += part
    except OSError:  # it was cut, in whatever way
        pass
    connection.close()
    return heard


def dial_unix(site):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(site.socket)
    return connection


def dial_tls(site):
    context = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
    context.check_hostname = False
    return context.wrap_socket(socket.create_connection(("127.0.0.1", PORT)), server_hostname="x")


@tap.test(**HTTPS)
def lax(site):
    "what two readers of a connection could read in two ways is refused on both sockets, and nothing behind it is answered"
    for kind, dial in (("unix", dial_unix), ("TLS", dial_tls)):
        contains(f"{kind}: a good one", answer(dial(site), GOOD).decode(), " 200 ")
        for name, data in LAX:
            heard = answer(dial(site), data)
            equal(f"{kind}: {name}: answers", heard.count(b"HTTP/1.1 "), heard.startswith(b"HTTP/1.1 400"))
        for name, data in OWN:
            heard = answer(dial(site), data)
            assert heard.startswith(b"HTTP/1.1 4") and b'"not_found"' not in heard, f"{kind}: {name}: {heard}"


# ---- tries of walls ----

@tap.test(topology="2x H100-80GB")
def verify(site):
    "120 developers' wishes to try the walls are few tries, and an administrator's is answered beside them"
    jobs = [site.submit("sleep", "600", client=site.client("alice")) for _ in range(2)]
    for job in jobs:
        site.await_state(job, "running")
    heard = []

    def wish(number):
        heard.append(site.client("alice").exchange("POST", f"/v1/jobs/{jobs[number % 2]}/verify")[0])

    threads = [threading.Thread(target=wish, args=(number,)) for number in range(120)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    tries = lambda: len([r for r in records(site) if r["verb"] == "isolation.verdict"])
    before = tries()
    verdict = site.client("erin").post(f"/v1/jobs/{jobs[0]}/verify")
    waited_for = tries() - before
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    equal("the administrator's", len(verdict["verdicts"]), verdict["asked"])
    assert waited_for <= 6, f"after {waited_for} tries"  # four are under way at most, his, and one that just began
    assert set(heard) <= {200, 429} and 200 in heard and 429 in heard, f"{heard}"
    assert tries() <= 20 + 2 * took + 1, f"{tries()} tries in {took:.1f} s"  # rate_expensive, and the administrator's


if __name__ == "__main__":
    tap.main()
