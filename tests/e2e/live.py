#!/usr/bin/env python3
"""Pages that stay up to date, over HTTPS: many readers, and readers that stop, go, and lose their session."""
import pathlib
import resource
import socket
import ssl
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from browsed import BrowsedSite
from bulkhead import PATIENCE_S
from report import Report
from tap import equal

READERS = 200


class Reader:
    """An open page: GET /live over TLS."""

    def __init__(self, site, session, source="127.0.0.1", page="/"):
        context = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
        self.tls = context.wrap_socket(socket.create_connection(("127.0.0.1", site.port), PATIENCE_S, (source, 0)), server_hostname="localhost")
        self.text = ""
        self.tls.sendall(f"GET /live?page={page}&have= HTTP/1.1\r\nHost: localhost:{site.port}\r\nCookie: __Host-bulkhead={session}\r\n\r\n".encode())

    def receive(self, until):
        """What came, once `until` is in it."""
        while until not in self.text:
            more = self.tls.recv(65536).decode()
            assert more, f"ended before {until!r}: {self.text[-300:]!r}"
            self.text += more
        return self.text

    def await_end(self):
        while more := self.tls.recv(65536).decode():
            self.text += more
        return self.text

    def close(self):
        self.tls.close()


def threads(site):
    return len(list(pathlib.Path(f"/proc/{site.daemon.pid}/task").iterdir()))


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
    "readers that go are let go at once, with every descriptor"
    folder = pathlib.Path(f"/proc/{site.daemon.pid}/fd")
    before = len(list(folder.iterdir()))
    readers = open_readers(site)
    for reader in readers:
        reader.receive("event: panel")
    begun = time.monotonic()
    for reader in readers:
        reader.close()
    site.until(lambda: len(list(folder.iterdir())) <= before, what=f"{before} descriptors, as before")
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


def ending(site):
    "a daemon that stops ends open pages at once, whole"
    reader = Reader(site, site.sessions["alice"])
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
    with BrowsedSite(sys.argv[1]) as site:
        report = Report().play((many, stopped, gone, half_closed, over, ending), site)
    sys.exit(report.close())


if __name__ == "__main__":
    main()
