#!/usr/bin/env python3
"""Bad input on every door: a status as tabled, one line that names the field, nothing
changed, and the attempt in the audit log where a principal is known."""
import http.client
import json
import pathlib
import random
import re
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import PATIENCE_S, DAEMON_UID, PEOPLE, Client, Refused, _be
from tap import contains, equal

OK = {"tenant": "acme/vision/batch", "sku": "small", "args": ["true"]}
JSON, YAML = "application/json", "application/yaml"


def job(**more):
    return json.dumps({**OK, **more})


def tenant(text):
    return tap.SITE.replace("  - {name: acme/vision/batch, kind: project}\n", f"  - {{name: acme/vision/batch, kind: project, {text}}}\n")


# name, body, status, code, what the message says
JOBS = [
    ("unknown key", job(gpus=1), 400, "invalid", "gpus"),
    ("unknown key inside", job(mounts=[{"source": "/a", "mode": "rw"}]), 400, "invalid", "mode"),
    ("wrong type", job(count="two"), 400, "invalid", "count"),
    ("wrong type of a list", job(args="true"), 400, "invalid", "args"),
    ("wrong type inside a list", job(args=["echo", 1]), 400, "invalid", "args"),
    ("null", job(sku=None), 400, "invalid", "sku"),
    ("missing", json.dumps({"tenant": "acme/vision/batch", "sku": "small"}), 400, "invalid", "args"),
    ("duplicate key", job()[:-1] + ', "sku": "large"}', 400, "invalid", "sku"),
    ("not an object", "[1]", 400, "invalid", ""),
    ("not JSON", "{", 400, "invalid", ""),
    ("trailing junk", job() + "x", 400, "invalid", ""),
    ("empty", "", 400, "invalid", "body"),
    ("not UTF-8", b'{"sku": "\xff\xfe"}', 400, "invalid", ""),
    ("NUL byte", job(name="a\0b"), 400, "invalid", ""),
    ("deep JSON", "[" * 2000 + "]" * 2000, 400, "invalid", "nested"),
    ("deep JSON in a field", '{"args":' + "[" * 500 + "]" * 500 + "}", 400, "invalid", "nested"),
    ("huge number", job()[:-1] + ', "count": 1e400}', 400, "out_of_range", "1e400"),
    ("negative", job()[:-1] + ', "count": -1}', 400, None, "count"),
    ("overflowing", job(count=4294967296), 400, None, "count"),
    ("too many", job(count=17), 400, None, "count"),
    ("fraction of a piece", job()[:-1] + ', "count": 0.5}', 400, "invalid", "count"),
    ("negative memory", job(memory="-8Gi"), 400, "invalid", "memory"),
    ("overflowing memory", job(memory="99999999999999Gi"), 400, "out_of_range", "memory"),
    ("fraction that does not divide", job(cpu="0.33333"), 400, None, "cpu"),
    ("junk behind an amount", job(memory="8Gix"), 400, "invalid", "memory"),
    ("time without end", job(time_limit="99999d"), 400, "out_of_range", "time_limit"),
    ("negative time", job(time_limit="-1h"), 400, "invalid", "time_limit"),
    ("unknown choice", job(priority="highest"), 400, "invalid", "priority"),
    ("unknown SKU", job(sku="tiny"), 404, "not_found", "sku"),
    ("unknown tenant", job(tenant="acme/nobody"), 404, "not_found", "tenant"),
    ("another's tenant", job(tenant="acme/speech/asr"), 404, "not_found", "tenant"),
    ("control character", job(name="a\nb"), 400, "invalid", "name"),
    ("escape character", job(name="\x1b[2J"), 400, "invalid", "name"),
    ("long name", job(name="n" * 500), 400, None, "name"),
    ("path for a SKU", job(sku="../small"), 400, "invalid", "sku"),
    ("path that escapes", job(cwd="/work/../root"), 400, "invalid", "cwd"),
    ("relative path", job(cwd="root"), 400, "invalid", "cwd"),
    ("image that escapes", job(image="dir:/images/../etc"), 400, "invalid", "image"),
    ("unknown image", job(image="ftp://x"), 400, "invalid", "image"),
    ("mount that escapes", job(mounts=[{"source": "/a/../../root"}]), 400, "invalid", "source"),
    ("mount of the machine", job(mounts=[{"source": "/root"}]), 403, "denied", "mounts"),
    ("another tenant's mount", job(mounts=[{"source": "/srv/speech"}]), 403, "denied", "mounts"),
    ("writing where reading is let", job(mounts=[{"source": "/srv/vision", "write": True}]), 403, "denied", "mounts"),
    ("variable without a name", job(env=["=x"]), 400, "invalid", "env"),
    ("variable of another kind", job(env=["LD PRELOAD=x"]), 400, "invalid", "env"),
    ("no command", job(args=[]), 400, "invalid", "args"),
    ("empty command", job(args=[""]), 400, "invalid", "args"),
    ("too many words", job(args=["x"] * 5000), 400, None, "args"),
    ("more than the quota ever", job(tenant="acme/vision/train", count=3), 422, "over_quota", ""),
]

SITES = [
    ("YAML alias", "tenants: []\nskus: *a\n", 400, "invalid", "alias"),
    ("YAML anchor", "tenants: &a []\n", 400, "invalid", "anchor"),
    ("deep YAML", "tenants: " + "[" * 300 + "]" * 300, 400, None, "nested"),
    ("YAML tag", "tenants: !!python/object:os.system []\n", 400, "invalid", "tag"),
    ("duplicate key", "tenants: []\ntenants: []\n", 400, "invalid", "tenants"),
    ("two documents", "tenants: []\n---\ntenants: []\n", 400, "invalid", "document"),
    ("unknown key", "tenant: []\n", 400, "invalid", "tenant"),
    ("unknown boundary", tenant("boundary: brick"), 400, "invalid", "boundary"),
    ("negative limit", tenant('limit: "-1"'), 400, None, "limit"),
    ("overflowing limit", tenant('limit: "99999999999999999999"'), 400, None, "limit"),
    ("fraction that does not divide", tenant('limit: "0.33333"'), 400, None, "limit"),
    ("tenant without a parent", tap.SITE.replace("acme/vision/batch, kind", "acme/none/batch, kind"), 400, None, "acme/none"),
    ("tenant twice", tap.SITE.replace("{name: acme/vision/batch, kind", "{name: acme/vision, kind"), 400, None, "acme/vision"),
    ("binding of nobody", tap.SITE.replace("principal: bob, tenant", "principal: bert, tenant"), 400, None, "bert"),
    ("unknown role", tap.SITE.replace("role: auditor", "role: emperor"), 400, None, "role"),
    ("unknown model", tap.SITE.replace("H100-80GB, profile: whole", "H999-80GB, profile: whole"), 400, None, "H999"),
    ("unknown profile", tap.SITE.replace("profile: 3g.40gb", "profile: 5g.50gb"), 400, None, "5g.50gb"),
    ("uid twice", tap.SITE.replace("name: bob, uid: 20002", "name: bob, uid: 20001"), 400, None, "bob"),
    ("name with a path", tap.SITE.replace("name: bob, uid", "name: ../bob, uid"), 400, None, "bob"),
    ("relative mount", tap.SITE + "\nmounts: [{path: srv, tenant: acme}]\n", 400, None, "mounts"),
    ("mount that escapes", tap.SITE + "\nmounts: [{path: /srv/../root, tenant: acme}]\n", 400, None, "mounts"),
    ("guarantees over the parent's", tenant('guarantee: "7"').replace('limit: "8"}', 'limit: "8", guarantee: "1"}'), 400, None, "guarantee"),
]

# name, person, method, path, status, part; reads that fail change nothing and are no record
READS = [
    ("no such path", "alice", "GET", "/v1/nothing", 404, "path"),
    ("path that climbs", "alice", "GET", "/v1/jobs/../../etc/passwd", 404, ""),
    ("wrong method", "alice", "DELETE", "/v1/jobs", 405, ""),
    ("unknown method", "alice", "BREW", "/v1/jobs", (400, 405, 501), ""),
    ("unknown parameter", "alice", "GET", "/v1/jobs?colour=red", 400, "colour"),
    ("parameter twice", "alice", "GET", "/v1/jobs?limit=1&limit=2", 400, "limit"),
    ("no number", "alice", "GET", "/v1/jobs?limit=ten", 400, "limit"),
    ("negative number", "alice", "GET", "/v1/jobs?limit=-1", 400, "limit"),
    ("overflowing number", "alice", "GET", "/v1/jobs?after=99999999999999999999", 400, "after"),
    ("unknown state", "alice", "GET", "/v1/jobs?state=asleep", 400, "state"),
    ("no job's number", "alice", "GET", "/v1/jobs/x", 400, "job"),
    ("job of nobody", "alice", "GET", "/v1/jobs/18446744073709551615", 404, "job"),
]


class Door:
    """Counts what one request changes."""

    def __init__(self, site):
        self.site, self.root = site, site.client()

    def state(self):
        jobs = self.root.get("/v1/jobs?limit=1")["total"]
        return jobs, self.root.get("/v1/site"), [t["name"] for t in self.root.get("/v1/tenants")["items"]]

    def count(self):
        return self.root.get("/v1/status")["records"]

    def refused(self, name, person, method, path, body, kind, status, code, part):
        before, records = self.state(), self.count()
        got, _, text = self.site.client(person).exchange(method, path, body, {"Content-Type": kind} if kind else None)
        wanted = status if isinstance(status, tuple) else (status,)
        assert got in wanted, f"{name}: status {got}, not {wanted}: {text[:300]}"
        error = json.loads(text)["error"]
        assert code is None or error["code"] == code, f"{name}: code {error}"
        assert error["message"] and "\n" not in error["message"] and error["next"], f"{name}: {error}"
        assert part in error["message"], f"{name}: {part!r} is not in {error['message']!r}"
        assert all(ord(c) >= 32 for c in error["message"] + error["next"]), f"{name}: control character in {error}"
        equal(f"{name}: state", self.state(), before)
        return records, error

    def counted(self, person, records):
        """How many refusals the records since then stand for, and with which results."""
        fresh = [r for r in self.site.records(records - 1) if r.get("actor", {}).get("name") == person]
        return sum(r.get("count", 1) for r in fresh), {r["result"] for r in fresh}

    def all(self, person, method, path, kind, cases):
        faults, results, records = [], set(), self.count()
        for name, body, status, code, part in cases:
            assert body != tap.SITE, name
            try:
                results.add(self.refused(name, person, method, path, body, kind, status, code, part)[1]["code"])
            except AssertionError as fault:
                faults.append(str(fault)[:400])
        assert not faults, "\n".join(faults)
        self.site.until(lambda: self.counted(person, records)[0] >= len(cases), what="a record, alone or counted, of each")
        equal("records", self.counted(person, records), (len(cases), results))


def with_mounts(site):
    site.apply(tap.SITE + "\nmounts:\n  - {path: /srv/speech, tenant: acme/speech}\n  - {path: /srv/vision, tenant: acme/vision}\n")


@tap.test(daemon_conf="refusal_window = 1s")
def submissions(site):
    "a bad submission: every case is refused as tabled, changes nothing and is in the log, alone or counted"
    with_mounts(site)
    door = Door(site)
    door.all("alice", "POST", "/v1/jobs", JSON, JOBS)


@tap.test(daemon_conf="refusal_window = 1s")
def site_files(site):
    "a bad site file is refused whole: every case changes nothing and is in the log, alone or counted"
    door = Door(site)
    door.all("erin", "PUT", "/v1/site", YAML, SITES)


@tap.test()
def wholly_or_not(site):
    "a site file is applied wholly or not at all, also when its last entry cannot be"
    held = site.submit("true", client=site.client("alice"), hold=True)
    door = Door(site)
    text = tap.SITE.replace("  - {name: acme/vision/batch, kind: project}\n", "") \
        .replace("  - {role: developer, principal: alice, tenant: acme/vision/batch}\n", "") \
        .replace("{name: bob, uid: 20002}", "{name: bob, uid: 20099}")
    try:
        site.apply(text, site.client("erin"), "?prune=true")
    except Refused as error:
        equal("status", error.status, 409)
        equal("state", door.state()[0], 1)
        assert "acme/vision/batch" in [t["name"] for t in site.client().get("/v1/tenants")["items"]]
        equal("bob", site.client("bob").get("/v1/whoami")["name"], "bob")
        equal("job", site.job(held)["state"], "pending")
    else:  # a tenant with jobs may go, and takes them with it
        equal("job", (site.job(held)["state"], site.job(held)["cause"]), ("cancelled", "tenant_removed"))
    site.run("true", tenant="acme/vision/train")  # a step in which what has ended is forgotten
    site.apply(tap.SITE + "\n", site.client("erin"))
    dry = site.client("erin").request("PUT", "/v1/site?dry_run=true", tap.SITE.replace("limit: 2}", "limit: 5}"), {"Content-Type": YAML})
    assert dry["dry_run"] and any("train" in c for c in dry["changes"]), dry
    equal("unchanged", any("5" in c for c in site.apply(tap.SITE, site.client("erin"))["changes"]), False)


@tap.test()
def removed_and_back(site):
    "a tenant that is removed with its jobs can be declared again at once"
    site.submit("true", client=site.client("alice"), hold=True)
    without = "\n".join(line for line in tap.SITE.splitlines() if "vision/batch" not in line)
    site.apply(without, site.client("erin"), "?prune=true")
    site.apply(tap.SITE, site.client("erin"))
    equal("work goes on", site.run("true", client=site.client("alice"))[0]["state"], "completed")


@tap.test()
def requests(site):
    "bad paths, methods, parameters and headers are refused as tabled"
    door = Door(site)
    for name, person, method, path, status, part in READS:
        door.refused(name, person, method, path, None, None, status, None, part)
    door.refused("unknown content type", "alice", "POST", "/v1/jobs", job(), "text/html", 400, "invalid", "text/html")
    huge = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5000000\r\n\r\n"
    contains("huge body", speak(site.socket, huge + b" " * 5000000, 20001, 3)[0].decode(), "HTTP/1.1 413 ")
    door.refused("body where none belongs", "alice", "POST", "/v1/jobs/1/cancel", job(), JSON, 400, "invalid", "body")
    for key in ("", "k" * 200, "a\tb"):
        try:
            site.client("alice").request("POST", "/v1/jobs", OK, {"Idempotency-Key": key})
        except Refused as error:
            equal("key", error.status, 400)
        else:
            raise AssertionError(f"key {key!r} was taken")
    equal("jobs", door.state()[0], 0)


@tap.test()
def strangers(site):
    "requests of unknown users are refused, with one record for each user: they cannot fill the log"
    before = site.record_count()
    uids = (20999, 65534, 1000001)
    for uid in uids:
        stranger = Client(site.socket, uid)
        for body in (job(), "{", "x" * 1000):
            status, _, text = stranger.exchange("POST", "/v1/jobs", body)
            equal("status", status, 401)
            equal("code", json.loads(text)["error"]["code"], "unauthenticated")
    time.sleep(0.2)
    equal("records", site.record_count(), before + len(uids))


def speak(path, data, uid=0, wait=0.3):
    """Send bytes as they are; what came back until the peer hung up or `wait` was over."""
    with socket.socket(socket.AF_UNIX) as sock:
        _be(uid) if uid else None
        try:
            sock.connect(path)
        finally:
            _be(0) if uid else None
        sock.settimeout(wait)
        got = b""
        try:
            sock.sendall(data)
        except OSError:
            pass  # it was answered before it was read
        try:
            while chunk := sock.recv(65536):
                got += chunk
            return got, True
        except TimeoutError:
            return got, False
        except (ConnectionError, BrokenPipeError):
            return got, True


@tap.test()
def raw_http(site):
    "half requests, junk and smuggling on the API's socket affect no other client"
    for name, data in (("half a line", b"GET /v1/jo"), ("half a body", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n{"),
                       ("junk", random.Random(2).randbytes(3000)), ("no version", b"GET /\r\n\r\n"), ("NULs", b"\0" * 4096),
                       ("endless header", b"GET / HTTP/1.1\r\nX: " + b"y" * 200000),
                       ("two lengths", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"),
                       ("negative length", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"),
                       ("huge length", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n")):
        got, _ = speak(site.socket, data, 20001)
        assert not got.startswith(b"HTTP/1.1 2"), (name, got[:100])
    equal("jobs", site.client().get("/v1/jobs")["total"], 0)
    holders = [socket.socket(socket.AF_UNIX) for _ in range(50)]
    for holder in holders:
        holder.connect(site.socket)
        holder.sendall(b"GET /healthz HT")
    equal("another is served", site.client().get("/healthz")["status"], "ok")
    for holder in holders:
        holder.close()


WIRE_VERSION = int(re.search(r"BH_WIRE_VERSION = (\d+)", (pathlib.Path(__file__).parents[2] / "src/wire/message.h").read_text())[1])


def frame(number, payload, version=WIRE_VERSION, length=None):
    return struct.pack("<IHH", (4 + len(payload)) if length is None else length, number, version) + payload


@tap.test()
def node_frames(site):
    "junk frames on the node's socket: from another uid never heard, from the daemon's refused, jobs run on"
    running = site.submit("sh", "-c", "echo ready; sleep 600", grace="1s")
    site.await_state(running, "running")
    path = str(site.dir / "node.sock")
    for uid in (20001, 65534):
        try:
            equal("answer to another uid", speak(path, frame(1, b""), uid, PATIENCE_S), (b"", True))
        except PermissionError:
            pass
    hello = struct.pack("<QI", 1, 1) + b"x" + struct.pack("<I", WIRE_VERSION)
    for name, data in (("junk", b"\xff" * 4 + random.Random(1).randbytes(4092)), ("half a frame", frame(1, hello)[:-3]), ("unknown message", frame(1, hello) + frame(99, b"")),
                       ("huge frame", frame(1, b"", length=0xffffffff)), ("empty frame", frame(1, b"", length=0)),
                       ("another version", frame(1, hello, version=77)), ("another version within", frame(1, hello[:-4] + struct.pack("<I", 77))), ("short payload", frame(1, hello) + frame(2, b"\1")),
                       ("long payload", frame(1, hello + b"more")), ("order before hello", frame(7, b"\0" * 24)),
                       ("a message of the node's", frame(1, hello) + frame(34, b"\0" * 60)),
                       ("text that overruns", frame(1, struct.pack("<QI", 1, 0xfffffff0) + b"x"))):
        _, closed = speak(path, data, DAEMON_UID, wait=0.3 if name == "half a frame" else PATIENCE_S)
        assert closed or name == "half a frame", f"{name}: the connection stays open"
        equal(f"node after {name}", site.node.poll(), None)
    site.until(lambda: site.client().get("/v1/status")["node"]["connected"], what="the daemon's connection")
    equal("job", (site.job(running)["state"], site.job(running)["restarts"]), ("running", 0))
    equal("work goes on", site.run("true")[0]["state"], "completed")


@tap.test()
def cli(site):
    "the CLI refuses bad usage with status 2, passes on refusals with the tabled status, one line each"
    for args, status in ((["submit"], 2), (["no-such-command"], 2), (["ps", "--colour"], 2), (["describe"], 2),
                         (["describe", "x"], 3), (["describe", "99"], 5),
                         (["submit", "a", "b", "--", "true"], 3), (["submit", "--sku", "small", "--"], 2), (["submit", "x.yaml", "--sku", "small", "--"], 3),
                         (["submit", "--tenant", "acme/vision/batch", "--sku", "tiny", "--", "true"], 5),
                         (["submit", "--tenant", "acme/vision/batch", "--sku", "small", "--memory", "-1", "--", "true"], 3),
                         (["submit", "--tenant", "acme/vision/train", "--sku", "small", "--count", "3", "--", "true"], 6),
                         (["submit", "--tenant", "acme/vision/batch", "--sku", "small", "-n", "0", "--", "true"], 3),
                         (["submit", "--tenant", "acme/vision/batch", "--sku", "small", "--name", "x" * 300, "--", "true"], 3),
                         (["submit", "--tenant", "acme/vision/batch", "--sku", "small", "-e", "A=" + "x" * 100000, "--", "true"], None),
                         (["apply", "-f", "/nonexistent"], None), (["apply", "-f", "/etc/hostname"], None)):
        done = site.cli("alice", *args)
        assert done.returncode != 0 and done.stderr, (args, done)
        assert status is None or done.returncode == status, f"{args}: status {done.returncode}, not {status}: {done.stderr}"
        assert len(done.stderr.splitlines()) <= 3, (args, done.stderr)
    contains("a GPU is no job", site.cli("alice", "describe", "gpu3", check=3).stderr, "bulkhead describe gpu gpu0")
    equal("jobs", site.client().get("/v1/jobs")["total"], 0)
    script = site.dir / "script.sh"
    script.write_text("echo never\n")
    plain = site.cli("alice", "submit", str(script), check=3)
    contains("whose line it is", plain.stderr, f"{script}: line 1")
    contains("where a program stands", plain.stderr, "a program comes after --")
    script.write_text("#!/bin/sh\n# what\necho never\n")
    contains("a script", site.cli("alice", "submit", str(script), check=3).stderr, "is a script; a job file is YAML or JSON")
    empty = site.dir / "empty.yaml"
    empty.touch()
    for args in (("apply", "-f"), ("submit",)):
        contains("an empty file", site.cli(None, *args, str(empty), check=3).stderr, f"{empty}: it is empty")
    with script.open() as given:
        done = site.cli("alice", "submit", "--hold", "--tenant", "acme/vision/batch", "--sku", "small", "--", "sh", stdin=given, check=0)
    contains("a file as input", done.stderr, "a submitted job cannot read this command's input")
    job = site.dir / "job.yaml"
    job.write_text("sku: small\nname: of-the-file\nargs: [never]\n")
    made = site.cli("alice", "submit", str(job), "--hold", "--tenant", "acme/vision/batch", "--", "echo", "hi", check=0).stdout
    made = site.client().get(f"/v1/jobs/{int(made)}")
    equal("a file, and a program behind --", (made["spec"]["args"], made["name"]), (["echo", "hi"], "of-the-file"))
    down = site.dir / "down.sock"
    equal("no daemon", site.cli("alice", "ps", "--socket", str(down)).returncode, 8)
    home = site.dir / "roots-home"
    home.mkdir(mode=0o700)
    done = subprocess.run([site.program("bulkhead"), "ps"], user=PEOPLE["alice"], group=PEOPLE["alice"], extra_groups=[], cwd="/", text=True,
                          env={"BULKHEAD_SOCKET": site.socket, "HOME": str(home)}, capture_output=True)
    equal("HOME is somebody else's, as setpriv and su leave it", (done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    tap.main()
