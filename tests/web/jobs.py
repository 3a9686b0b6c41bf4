#!/usr/bin/env python3
"""A tenant's day on the pages of a real bulkheadd, without script: submit by the form, watch it run, read its
output, cancel it; and what the pages say to those who guess another's job.  Speaks TAP.

    jobs.py BUILD

The tests follow one another."""
import html
import http.client
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import urllib.parse
from html.parser import HTMLParser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browsed  # noqa: E402
import bulkhead  # noqa: E402
import closing  # noqa: E402
import tap  # noqa: E402
from report import Report, skip_all  # noqa: E402
from tap import equal  # noqa: E402

HOSTILE = "</td><script>alert('1')</script>\"&"
LOOP = "i=0; while :; do i=$((i+1)); echo \"line $i it's\"; sleep 0.1; done"
tests = []


def test(function):
    tests.append(function)
    return function


def contains(text, part):
    tap.contains("the page", text, part)


class Forms(HTMLParser):
    """The forms of a page with what their fields hold, as a browser would send them."""

    def __init__(self, text):
        super().__init__()
        self.forms, self.area, self.select = [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        at = dict(attributes)
        if tag == "form":
            self.forms.append({"action": at["action"], "method": at["method"], "fields": {}})
        if not self.forms:
            return
        fields = self.forms[-1]["fields"]
        if tag == "input" and at.get("type") == "checkbox":
            if "checked" in at:
                fields[at["name"]] = at["value"]
        elif tag == "input":
            fields[at["name"]] = at.get("value", "")
        elif tag == "textarea":
            self.area = at["name"]
            fields[self.area] = ""
        elif tag == "select":
            self.select = at["name"]
        elif tag == "option" and ("selected" in at or self.select not in fields):
            fields[self.select] = at["value"]

    def handle_endtag(self, tag):
        if tag == "textarea":
            fields = self.forms[-1]["fields"]
            fields[self.area] = fields[self.area].removeprefix("\n")
            self.area = None

    def handle_data(self, text):
        if self.area:
            self.forms[-1]["fields"][self.area] += text

    def to(self, action):
        return next(f for f in self.forms if f["action"] == action)["fields"]


class Visitor:
    """A person with a browser that runs no script."""

    def __init__(self, site, name):
        self.site, self.session = site, site.sessions[name]
        self.text, self.status = "", 0

    def open(self, method, path, body=None, **headers):
        trust = ssl.create_default_context(cafile=str(self.site.dir / "state/tls.crt"))
        trust.check_hostname = False
        connection = http.client.HTTPSConnection("localhost", self.site.port, context=trust, timeout=30)
        headers = {"Cookie": f"__Host-bulkhead={self.session}", **headers}
        connection.request(method, path, body, headers)
        return connection, connection.getresponse()

    def ask(self, method, path, body=None, **headers):
        connection, reply = self.open(method, path, body, **headers)
        self.status, self.location, self.headers = reply.status, reply.headers["Location"], reply.headers
        self.text = reply.read().decode()
        connection.close()
        return self.text

    def go(self, path):
        return self.ask("GET", path)

    def post(self, action, fields):
        return self.ask("POST", action, urllib.parse.urlencode(fields),
                        Origin=self.site.origin, **{"Content-Type": "application/x-www-form-urlencoded"})

    def submit(self, action, **more):
        """The page's form to that action, with changes; None takes a field away."""
        fields = {**Forms(self.text).to(action), **more}
        return self.post(action, {k: v for k, v in fields.items() if v is not None})

    def sources(self):
        return [html.unescape(text) for text in re.findall(r'<pre class="source">(.*?)</pre>', self.text, re.S)]

    def said(self):
        return html.unescape(re.sub(r"<[^>]*>", "", self.text))


class Day:
    def __init__(self, build):
        self.site = browsed.BrowsedSite(pathlib.Path(build), topology="2x H100-80GB", people=("erin", "alice", "bob", "dave"))

    def __enter__(self):
        self.site.__enter__()
        self.alice, self.bob, self.dave = (Visitor(self.site, name) for name in ("alice", "bob", "dave"))
        return self

    def __exit__(self, *why):
        for job in self.site.client().get("/v1/jobs?active=true")["items"]:
            try:
                self.site.client().post(f"/v1/jobs/{job['id']}/cancel?now=true")
            except bulkhead.Refused:
                pass
        self.site.__exit__(*why)

    def spec(self, job):
        return self.site.client().get(f"/v1/jobs/{job}")["spec"]


@test
def choices(day):
    "the form offers the tenants that one may submit to, and the sizes with what they are"
    page = day.alice.go("/submit")
    tenants = re.search(r'<select id="job-tenant".*?</select>', page, re.S).group()
    equal("hers", re.findall(r'value="([^"]+)"', tenants), ["acme/vision/batch", "acme/vision/train"])
    contains(page, "small: grade C, 1g.10gb of H100-80GB (1/7 GPU)")
    day.dave.go("/submit")
    assert "acme/" not in re.search(r'<select id="job-tenant".*?</select>', day.dave.text, re.S).group()


@test
def preview(day):
    "the preview has the job file, a command line that submits the same job, and when it would start"
    alice = day.alice
    alice.go("/submit")
    day.fields = {"tenant": "acme/vision/batch", "sku": "small", "args": "sh -c " + bulkhead_quote(LOOP) + "\n''  'a  b'",
                  "name": HOSTILE, "env": "A=b c\nEMPTY=\n", "labels": "team=v", "time_limit": "600", "on_preempt": "never"}
    alice.submit("/submit", do="preview", **day.fields)
    equal("status", alice.status, 200)
    contains(alice.text, "It would start at once")
    yaml, command = alice.sources()
    contains(yaml, "tenant: acme/vision/batch\n")
    equal("nothing submitted", day.site.client().get("/v1/jobs")["total"], 0)
    done = subprocess.run(["sh", "-c", f'bulkhead() {{ "$PROGRAM" "$@"; }}; {command}'], capture_output=True, text=True,
                          user=bulkhead.PEOPLE["alice"], group=bulkhead.PEOPLE["alice"], extra_groups=[], cwd="/",
                          env={"PATH": os.environ["PATH"], "PROGRAM": day.site.program("bulkhead"), "BULKHEAD_SOCKET": day.site.socket})
    equal("the command line", (done.returncode, done.stderr), (0, ""))
    day.by_command = int(done.stdout)
    (day.site.dir / "job.yaml").write_text(yaml)
    day.by_file = int(subprocess.run([day.site.program("bulkhead"), "submit", str(day.site.dir / "job.yaml")], capture_output=True,
                                     text=True, env={"BULKHEAD_SOCKET": day.site.socket}).stdout)


def bulkhead_quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


@test
def submit(day):
    "the form submits that very job, once however often it is sent"
    alice = day.alice
    fields = Forms(alice.text).to("/submit")
    alice.post("/submit", {**fields, "do": "submit"})
    equal("status", alice.status, 303)
    path, notice = alice.location.split("?")
    equal("notice", notice, "notice=job_submitted")
    day.job = int(path.rsplit("/", 1)[1])
    alice.post("/submit", {**fields, "do": "submit"})
    equal("sent twice", alice.location, f"/jobs/{day.job}?notice=job_submitted")
    want = {"tenant": "acme/vision/batch", "sku": "small", "args": ["sh", "-c", LOOP, "", "a  b"], "name": HOSTILE,
            "env": ["A=b c", "EMPTY="], "labels": ["team=v"], "time_limit": "600", "on_preempt": "never"}
    equal("the job", day.spec(day.job), want)
    equal("by the command line", day.spec(day.by_command), want)
    equal("by the file", day.spec(day.by_file), want)
    for job in (day.by_command, day.by_file):
        day.site.client().post(f"/v1/jobs/{job}/cancel?now=true")


@test
def watch(day):
    "its page shows its life, placement, isolation and output, and no markup of its name"
    day.site.await_state(day.job, "running")
    day.site.until(lambda: "line 3" in day.site.log(day.job), what="output")
    page = day.alice.go(f"/jobs/{day.job}?notice=job_submitted")
    contains(page, "The job was submitted.")
    assert HOSTILE not in page and html.escape(HOSTILE, quote=True).replace("&#x27;", "&#39;") in page
    for words in ("running since", "line 2 it's", "C, MIG instance", "Does not stop", "GPU-hours", "1g.10gb"):
        contains(day.alice.said(), words)
    use = day.site.job(day.job)["use"]
    equal("of a GPU", (use["parts"], use["partitions"]), ({"compute": 600, "gpus": "1/7", "memory": 525}, 1))
    assert 0 < int(use["held_ns"]) < 600 * 10**9, use
    forms = {f["action"] for f in Forms(page).forms}
    assert f"/jobs/{day.job}/verify" in forms and f"/jobs/{day.job}/release" not in forms, forms
    contains(page, f'href="/jobs/{day.job}/cancel"')


@test
def steps(day):
    "its records have every step of its life"
    contains(day.alice.go(f"/jobs/{day.job}"), f'href="/jobs/{day.job}/records"')
    day.alice.go(f"/jobs/{day.job}/records")
    for words in ("job.submit", "node.started", "running"):
        contains(day.alice.said(), words)


@test
def output(day):
    "its output is followed as it is written, read page by page, and taken as a file"
    connection, reply = day.alice.open("GET", f"/jobs/{day.job}/log/live?member=0&offset=0")
    equal("live", (reply.status, reply.headers["Content-Type"]), (200, "text/event-stream"))
    seen = b""
    while b"line 5" not in seen:
        seen += reply.read1()
    contains(seen.decode(), "event: log\nid: ")
    connection.close()
    day.alice.go(f"/jobs/{day.job}/log/file?member=0")
    equal("file", day.alice.headers["Content-Disposition"], f'attachment; filename="job-{day.job}.log"')
    assert day.alice.text.startswith("line 1 it's\nline 2 it's\n"), day.alice.text[:80]
    day.alice.go(f"/jobs/{day.job}?end=12")
    contains(day.alice.said(), "line 1 it's")
    assert "line 2" not in day.alice.said()


@test
def verify(day):
    "the isolation checks are made when they are asked for, and shown"
    day.alice.go(f"/jobs/{day.job}")
    day.alice.submit(f"/jobs/{day.job}/verify")
    equal("status", day.alice.status, 200)
    for words in ("pass", "namespaces", "from outside"):
        contains(day.alice.said(), words)


@test
def guess(day):
    "a tenant that guesses another's job gets the same bytes as for none"
    for path in ("", "/cancel", "/log/file", "/log/live", "?json=job", "?panel=log"):
        theirs = day.bob.go(f"/jobs/{day.job}{path}").replace(f"job {day.job} ", "job 999999 ")
        theirs = theirs.replace(f"/jobs/{day.job}?", "/jobs/999999?")  # what was asked for
        status, none = day.bob.status, day.bob.go(f"/jobs/999999{path}")
        equal(path, (status, theirs), (day.bob.status, none))
        assert status == 404 or path == "?panel=log", status  # a panel with parameters says what is wrong with them
    day.bob.go("/submit")
    token = Forms(day.bob.text).to("/submit")["csrf"]
    for action in ("cancel", "release", "verify"):
        theirs = day.bob.post(f"/jobs/{day.job}/{action}", {"csrf": token})
        none = day.bob.post(f"/jobs/999999/{action}", {"csrf": token})
        equal(action, (day.bob.status, theirs), (404, none))
    assert HOSTILE[:9] not in html.unescape(day.bob.go(f"/submit?like={day.job}").split("<main>")[1].split('job-name')[1][:200])
    equal("it runs on", day.site.job(day.job)["state"], "running")


@test
def look(day):
    "who may look at a job and no more is offered no more"
    page = day.dave.go(f"/jobs/{day.job}")
    equal("status", day.dave.status, 200)
    assert f"/jobs/{day.job}/cancel" not in page and 'id="log"' not in page and "Submit another" not in page
    day.dave.go(f"/jobs/{day.job}/log/file")
    equal("its output", day.dave.status, 404)
    day.dave.go(f"/jobs/{day.job}/cancel")
    equal("its end", day.dave.location, f"/jobs/{day.job}?notice=job_changed")


@test
def cancel(day):
    "cancelling asks again, says what happens, and comes back with what came of it"
    alice = day.alice
    alice.go(f"/jobs/{day.job}/cancel")
    contains(alice.said(), f"Job {day.job} of acme/vision/batch ends")
    equal("a link changes nothing", day.site.job(day.job)["state"], "running")
    alice.submit(f"/jobs/{day.job}/cancel")
    equal("then", (alice.status, alice.location), (303, f"/jobs/{day.job}?notice=job_cancelled"))
    contains(alice.go(alice.location), "The job is being cancelled.")
    day.site.await_state(day.job, "cancelled")
    page = alice.go(f"/jobs/{day.job}")
    assert f"/jobs/{day.job}/cancel" not in page
    token = Forms(page).forms[-1]["fields"]["csrf"]
    alice.post(f"/jobs/{day.job}/cancel", {"csrf": token})
    equal("again", alice.location, f"/jobs/{day.job}?notice=job_changed")


@test
def again(day):
    "another like it, held and released"
    alice = day.alice
    alice.go(f"/submit?like={day.job}")
    equal("as it was", {k: v for k, v in Forms(alice.text).to("/submit").items() if k in day.fields},
          {**day.fields, "args": "sh -c " + bulkhead_quote(LOOP) + " '' 'a  b'", "env": "A=b c\nEMPTY="})
    alice.submit("/submit", do="submit", hold="true")
    job = int(re.match(r"/jobs/(\d+)", alice.location).group(1))
    contains(alice.go(f"/jobs/{job}"), "held by its submitter until it is released")
    alice.submit(f"/jobs/{job}/release")
    equal("released", alice.location, f"/jobs/{job}?notice=job_released")
    day.site.await_state(job, "running")


@test
def refused(day):
    "a refusal stands beside its field with what to do, and what was typed stays"
    alice = day.alice
    alice.go("/submit")
    alice.submit("/submit", do="submit", tenant="acme/vision/batch", sku="small", args="true", mounts="/etc:/x")
    equal("status", alice.status, 403)
    field = re.search(r'id="about-mounts">(.*?)</p>', alice.text, re.S).group(1)
    contains(html.unescape(field), "mounts[0]: acme/vision/batch may not mount /etc")
    equal("what was typed", Forms(alice.text).to("/submit")["mounts"], "/etc:/x")
    alice.submit("/submit", do="preview", tenant="acme/vision/batch", sku="", args="true", mounts="")
    contains(re.search(r'id="about-sku">(.*?)</p>', alice.text, re.S).group(1), "sku")


@test
def lists(day):
    "the list says why a job waits and what next, and is cut down by a form"
    site, alice = day.site, day.alice
    waits = [site.submit("sh", "-c", LOOP, client=site.client("alice"), tenant="acme/vision/train") for _ in range(3)][-1]
    site.until(lambda: site.job(waits)["reason"] == "quota_sku", what="the limit")
    for path in ("/jobs?active=true", "/"):
        alice.go(path)
        contains(alice.said(), "acme/vision/train is at its limit of 2 small: 2 in use, this job needs 1 more")
    alice.go("/jobs")
    fields = Forms(alice.text).to("/jobs")
    equal("fields", set(fields), {"state", "tenant"})
    alice.go("/jobs?state=cancelled&tenant=")
    contains(alice.text, f'href="/jobs/{day.job}"')
    assert f'href="/jobs/{waits}"' not in alice.text
    contains(alice.go("/jobs?state=nonsense"), "is no state of a job")
    alice.go("/jobs?tenant=acme/vision/train")
    assert f'href="/jobs/{waits}"' in alice.text and f'href="/jobs/{day.job}"' not in alice.text


def main():
    lack = tap.missing() or ("" if shutil.which("openssl") else "openssl is not installed")
    if lack:
        skip_all(lack)
    audit, report = [], Report(len(tests) + 1)
    with closing.kept(audit), Day(sys.argv[1]) as day:
        report.play(tests, day, stop=True)
    report.line(not audit, "the closing audit holds", audit)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
