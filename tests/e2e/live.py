#!/usr/bin/env python3
"""Pages that stay up to date, over HTTPS: many readers, and readers that stop, go, and lose their session or role."""
import http.client
import json
import os
import pathlib
import re
import resource
import socket
import ssl
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import disk
import tap
from browsed import BrowsedSite
from bulkhead import PATIENCE_S
from report import Report
from tap import equal

READERS = 200


class Reader:
    """An open page: GET /live over TLS; `path` a stream that is none of a page."""

    def __init__(self, site, session, source="127.0.0.1", page="/", have="", path=None):
        context = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
        self.tls = context.wrap_socket(socket.create_connection(("127.0.0.1", site.port), PATIENCE_S, (source, 0)), server_hostname="localhost")
        self.text = ""
        self.tls.sendall(f"GET {path or f'/live?page={page}&have={have}'} HTTP/1.1\r\nHost: localhost:{site.port}\r\nCookie: __Host-bulkhead={session}\r\n\r\n".encode())

    def receive(self, until):
        """What came, once `until` is in it."""
        while until not in self.text:
            more = self.tls.recv(65536).decode()
            assert more, f"ended before {until!r}: {self.text[-300:]!r}"
            self.text += more
        return self.text

    def sections(self):
        """(id, HTML) of each section that came."""
        return [(s["id"], s["html"]) for s in map(json.loads, re.findall(r"event: panel\ndata: (.*)", self.text))]

    def has(self):
        """What a page says that it has, when it returns."""
        return ",".join(f"{i}:{v}" for i, page in self.sections() for v in re.findall(r'<data value="(\w+)"', page))

    def receive_rest(self):
        """What is there already."""
        self.tls.setblocking(False)
        try:
            while more := self.tls.recv(65536).decode():
                self.text += more
        except ssl.SSLWantReadError:
            pass
        return self.text

    def await_end(self):
        while more := self.tls.recv(65536).decode():
            self.text += more
        return self.text

    def close(self):
        self.tls.close()


def threads(site):
    return len(list(pathlib.Path(f"/proc/{site.daemon.pid}/task").iterdir()))


def sockets(site):
    """Of the daemon; the store may open its file once more for readers at the same time, and keeps that."""
    found = 0
    for fd in pathlib.Path(f"/proc/{site.daemon.pid}/fd").iterdir():
        try:
            found += os.readlink(fd).startswith("socket:")
        except FileNotFoundError:
            pass
    return found


def open_readers(site, person="alice"):
    return [Reader(site, site.sessions[person], f"127.0.0.{2 + i % 3}") for i in range(READERS)]


def submitted(site):
    """A job that stays in the queue: pages follow what is, and may never show one that ended meanwhile."""
    return site.submit("true", client=site.client("alice"), tenant="acme/vision/batch", name="seen", hold=True)


def many(site):
    "200 open pages have no threads of their own, and each is sent the section that changed"
    idle = threads(site)
    readers = open_readers(site)
    for reader in readers:
        reader.receive("event: panel")
    site.until(lambda: threads(site) <= idle, what=f"{idle} threads, as before")
    job = submitted(site)
    for reader in readers:
        reader.receive(f"/jobs/{job}")
    for reader in readers:
        reader.close()


def stopped(site):
    "a reader that takes nothing holds nobody up, and is sent the newest when it reads on"
    stopper, other = (Reader(site, site.sessions["alice"]) for _ in range(2))
    for _ in range(10):
        job = submitted(site)
        other.receive(f"/jobs/{job}")
    stopper.receive(f"/jobs/{job}")
    stopper.close()
    other.close()


def gone(site):
    "readers that go are let go at once, with every socket"
    before = sockets(site)
    readers = open_readers(site)
    for reader in readers:
        reader.receive("event: panel")
    begun = time.monotonic()
    for reader in readers:
        reader.close()
    site.until(lambda: sockets(site) <= before, what=f"{before} sockets, as before")
    assert time.monotonic() - begun < PATIENCE_S


def half_closed(site):
    "a connection whose client has ended its half is ended"
    reader = Reader(site, site.sessions["alice"])
    reader.receive("event: panel")
    socket.socket.shutdown(reader.tls, socket.SHUT_WR)  # TCP's half alone, without a word of TLS
    reader.await_end()
    reader.close()


def over(site):
    "a page whose session ends is told so, and ends, also where nothing changed on it"
    reader = Reader(site, site.sessions["dave"], page="/jobs")
    reader.receive("event: panel")
    site.ask("POST", "/v1/sign-out", session=site.sessions["dave"])
    assert reader.await_end().endswith("event: over\ndata: {}\n\n\r\n0\r\n\r\n"), reader.text[-200:]
    reader.close()


def out(site):
    "an account that is removed, and a session that is ended from elsewhere, end their pages"
    for person, end in (("alice", lambda: site.client().request("DELETE", "/v1/accounts/alice")), ("erin", lambda: sign_out(site, "erin"))):
        readers = [Reader(site, site.sessions[person], page=page) for page in ("/jobs", "/nodes", "/keys")]
        for reader in readers:
            reader.receive("event: live")
        end()
        for reader in readers:
            reader.receive("event: over")
            reader.await_end()
            reader.close()


def sign_out(site, person):
    """All sessions of an account but one end from that one."""
    other = site.sign_in(person)
    for session in site.ask("GET", "/v1/sessions", session=other)["items"]:
        if not session["this"]:
            site.ask("DELETE", f"/v1/sessions/{session['id']}", session=other)
    site.sessions[person] = other


def revoked(site):
    "a role that is taken away empties the sections that it showed, and ends logs; with it they are back"
    job = site.submit("sh", "-c", "while :; do date; sleep 0.1; done", client=site.client("alice"), tenant="acme/vision/train", time_limit=600)
    site.await_state(job, "running")
    page = Reader(site, site.sessions["alice"], page=f"/jobs/{job}")
    log = Reader(site, site.sessions["alice"], path=f"/jobs/{job}/log/live?member=0&offset=0")
    page.receive('"id":"use"')
    log.receive("event: log")
    whole = site.client().get("/v1/site")
    site.apply(json.dumps({**whole, "bindings": [b for b in whole["bindings"] if b["principal"] != "alice"]}))
    log.receive("event: denied")
    log.await_end()
    page.receive('{"html":"","id":"job"}')
    page.text = ""
    site.apply(json.dumps(whole))
    page.receive("<h2>Job")
    page.close()
    log.close()
    site.client().post(f"/v1/jobs/{job}/cancel?now=true")


def foreign(site):
    "a page of a job of others is told what one of no job is: nothing"
    job = submitted(site)
    bob = site.sessions["bob"]
    own = Reader(site, bob, page="/jobs")
    own.receive("event: panel")
    theirs, none = (Reader(site, bob, page=f"/jobs/{number}") for number in (job, 999999))
    for reader in (theirs, none):
        reader.receive("event: live")
    site.client("alice").post(f"/v1/jobs/{job}/cancel?now=true")
    seen = site.submit("true", client=site.client("bob"), tenant="acme/speech/asr", name="seen", hold=True)
    own.receive(f"/jobs/{seen}")  # the page that was opened first is rendered last
    for reader in (theirs, none):
        reader.receive_rest()
    equal("the same", theirs.text.split("\r\n\r\n")[1], none.text.split("\r\n\r\n")[1])
    equal("nothing", theirs.sections(), [])
    for reader in (theirs, none, own):
        reader.close()


def returned(site):
    "a page that returns to a daemon that was started again is sent what has changed, and nothing else"
    before = Reader(site, site.sessions["carol"], page="/tenants")
    before.receive("event: panel")
    before.close()
    site.stop(site.daemon)
    site.start_daemon()
    site.until(lambda: (site.dir / "daemon.log").read_text().count("ready") > 1, what="HTTPS")
    after = Reader(site, site.sessions["carol"], page="/tenants", have=before.has())
    fresh = Reader(site, site.sessions["carol"], page="/tenants")
    fresh.receive("event: panel")
    submitted(site)
    after.receive("event: panel")
    equal("once", len(after.sections()), 1)
    for reader in (after, fresh):
        reader.close()


def visit(site, person, method, path, **fields):
    """(status, where it leads, the page) of a person's browser."""
    trust = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
    connection = http.client.HTTPSConnection("localhost", site.port, context=trust, timeout=PATIENCE_S)
    connection.request(method, path, urllib.parse.urlencode(fields) or None, {
        "Cookie": f"__Host-bulkhead={site.sessions[person]}", "Origin": site.origin, "Content-Type": "application/x-www-form-urlencoded"})
    reply = connection.getresponse()
    page = reply.read().decode()
    connection.close()
    return reply.status, reply.headers["Location"], page


def reaches(site):
    try:
        return visit(site, "carol", "GET", "/account")[0] == 200
    except OSError:
        return False


def full(site):
    "with a store that takes no more pages show what there is, and forms are refused with a page or a notice"
    for words in ("disk full", "No space left on device"):
        site.announce(words)
    with disk.on_small_disk(site, 8, "state"):
        site.until(lambda: reaches(site), what="HTTPS")
        jobs, _ = disk.fill(site, True)
        for path in ("/", "/jobs", f"/jobs/{jobs[0]}", "/tenants", "/account"):
            equal(path, visit(site, "carol", "GET", path)[0], 200)
        page = visit(site, "carol", "GET", f"/jobs/{jobs[0]}/cancel")[2]
        token = re.search(r'name="csrf" value="([^"]*)"', page).group(1)
        equal("a notice", visit(site, "carol", "POST", f"/jobs/{jobs[0]}/cancel", csrf=token)[:2], (303, f"/jobs/{jobs[0]}?notice=full"))
        reader = Reader(site, site.sessions["carol"])
        reader.receive("event: panel")
        reader.close()


def ending(site):
    "a daemon that stops ends open pages at once, whole"
    reader = Reader(site, site.sessions["carol"])
    reader.receive("event: panel")
    site.daemon.terminate()
    assert reader.await_end().endswith("\r\n0\r\n\r\n"), reader.text[-200:]
    reader.close()
    equal("status", site.daemon.wait(PATIENCE_S), 0)
    site.start_daemon()


def main():
    lack = tap.missing()
    if lack:
        tap.skip_all(lack)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with BrowsedSite(sys.argv[1], people=("erin", "alice", "bob", "carol", "dave")) as site:
        report = Report().play((many, stopped, gone, half_closed, over, revoked, foreign, returned, out, full, ending), site)
    sys.exit(report.close())


if __name__ == "__main__":
    main()
