#!/usr/bin/env python3
"""Every page of a real site in real browsers: each row of tables/panels.tbl and tables/pages.tbl, so that a new row
is tried by itself.  Speaks TAP.

    pages.py BUILD MODULES [WORD] [--quick | --matrix] [--only BROWSER]     the tests whose name holds WORD

MODULES is the folder that tools/browser-packages filled.  Screenshots lie in BUILD/pages.  As it is, every page is
tried as an admin in Chromium in each width and scheme, what differs between browsers in Firefox too, and lists of
10,000 jobs; with --matrix every page as every role in both browsers; with --quick each page as an admin in Chromium,
wide and light, narrow and dark."""
import argparse
import concurrent.futures
import html
import http.client
import pathlib
import re
import socket
import ssl
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
import browsed  # noqa: E402
import bulkhead  # noqa: E402
import driven  # noqa: E402
import tap  # noqa: E402
from report import Report, skip_all  # noqa: E402

ROLES = {"admin": "erin", "operator": "carol", "developer": "alice", "viewer": "vera", "auditor": "dave", "billing": "bill"}
WIDTHS, SCHEMES = (1280, 320), ("light", "dark")
MARKUP = "<img src=x onerror=window.hacked=1>\"'&</td><script>window.hacked=1</script> "
HOSTILE = MARKUP + "W" * (120 - len(MARKUP))  # the longest name of a job
SITE = browsed.SITE.replace("bindings:\n", """  - {name: vera, uid: 20006, account: true}
  - {name: bill, uid: 20007, account: true}
  - {name: zoe, account: true}
bindings:
  - {role: viewer, principal: vera, tenant: acme}
  - {role: billing, principal: bill, tenant: acme}
  - {role: operator, principal: zoe, tenant: acme}
""", 1)
# What the variable part of a page's path stands for, by the part before it.
SAMPLES = {
    "/jobs/": lambda site, jobs: jobs["running"],
    "/gpus/": lambda site, jobs: site.gpus[0]["uuid"],
    "/nodes/": lambda site, jobs: site.gpus[0]["node"],
    "/tenants/": lambda site, jobs: "acme/vision/train",
    "/records/": lambda site, jobs: 1,
    "/audit/": lambda site, jobs: 1,
    "/history/": lambda site, jobs: 1,
    "/site/diff/": lambda site, jobs: site.client("erin").get("/v1/site/revisions")["items"][-1]["revision"],
}
# GET requests of tables/pages.tbl that are not there in this site, and why.
ASIDE = {
    "/signin/provider": "leads to a provider",
    "/signin/callback": "comes from a provider",
    "/sign-in/command-line": "comes from the program's login",
    "/defrag": "is there while there is a plan of moves",
}
# What is no page: a browser saves it or a script reads it, and streams do not end by themselves.
FILES = ("/audit/proof", "/audit/consistency", "/jobs/{id}/log/file")
STREAMS = ("/live", "/jobs/{id}/log/live")
QUERIES = {"/hold": lambda site: f"?folder=/gpus/&target={site.gpus[0]['uuid']}",
           "/audit/proof": lambda site: "?record=1", "/audit/consistency": lambda site: "?old=1&new=2",
           "/live": lambda site: "?page=/&have="}
# Pages of which browsers make different things: they are opened in Firefox as well.
FIREFOX = ("/", "/jobs/{id}", "/audit/{id}", "/submit", "/gpus/{id}", "/account")
# What any page of a site with ROWS jobs may take; the time is a server's that shares its machine with browsers.
ROWS, PAGE_BYTES, PAGE_S = 10000, 256 << 10, 1
# All that axe finds in a page differently by its colors, and by its width.
LOOKS = {(1280, "dark"): ["color-contrast", "link-in-text-block"], (320, "light"): ["target-size", "scrollable-region-focusable"]}


# ---- what there is to try ----

def rows(table, macro):
    """The arguments of each row of a table; commas within quotes do not part them."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "tables" / table).read_text(), flags=re.S)
    for inner in re.findall(rf"^{macro}\((.*?)\)\s*$", text, re.M | re.S):
        yield [a.strip().strip('"') for a in re.findall(r'(?:"[^"]*"|[^",])+', inner)]


def asked(question, variable):
    """A panel's question as the page puts it where the page has no parameters."""
    path, _, query = question.partition("?")
    pairs = [pair for pair in query.split("&") if pair and "{?" not in pair]
    filled = "&".join(pairs).replace("{id}", urllib.parse.quote(str(variable), safe=""))
    path = path.replace("{id}", urllib.parse.quote(str(variable))).replace("{rest}", urllib.parse.quote(str(variable)))
    return path + ("?" + filled if filled else "")


class Tried:
    """A page with a sample for its variable part, and what is special about that sample."""

    def __init__(self, path, variable=None, questions=(), signed_in=True, sample=""):
        self.row, self.questions, self.signed_in, self.sample = path, questions, signed_in, sample
        self.path = re.sub(r"\{\w+\}", lambda _: urllib.parse.quote(str(variable)), path)
        self.variable = variable

    @property
    def is_of_object(self):
        return "{" in self.row

    @property
    def is_page(self):
        return self.row not in FILES + STREAMS

    @property
    def name(self):
        return f"{self.row} ({self.sample})" if self.sample else self.row

    @property
    def file(self):
        return re.sub(r"\W+", "-", self.name).strip("-") or "overview"


def every_page(site, jobs):
    found = []
    panels = list(rows("panels.tbl", "BH_PANEL"))
    for view, path, *_ in rows("panels.tbl", "BH_VIEW"):
        before = path.partition("{")[0]
        if "{" in path and before not in SAMPLES:
            raise KeyError(f"{path}: tests/web/pages.py has no sample for its variable part")
        variable = SAMPLES[before](site, jobs) if "{" in path else None
        samples = {"": variable}
        if path == "/jobs/{id}":  # one for each form that the page has
            samples |= {sample: jobs[sample] for sample in ("pending", "done", "failed", "hostile") if sample in jobs}
        for sample, variable in samples.items():
            found.append(Tried(path, variable, [asked(p[3], variable) for p in panels if p[0] == view], sample=sample))
    for method, path, access, _ in rows("pages.tbl", "BH_PAGE"):
        if method != "GET" or path in ASIDE:
            continue
        if "{" not in path:
            page = Tried(path, signed_in=access != "OPEN")
        else:
            page = Tried(path, SAMPLES[path.partition("{")[0]](site, jobs), signed_in=access != "OPEN")
        page.path += QUERIES[path](site) if path in QUERIES else ""
        found.append(page)
    return found


# ---- the site ----

class PagesSite(browsed.BrowsedSite):
    """Filled with jobs, two of them with names of the worst kind."""

    def __init__(self, build, **more):
        super().__init__(build, site=SITE, people=tuple(ROLES.values()) + ("bob",), **more)

    def __enter__(self):
        super().__enter__()
        try:
            self.trust = ssl.create_default_context(cafile=str(self.dir / "state/tls.crt"))
            self.gpus = self.client("erin").get("/v1/gpus")["items"]
            self.jobs = self.fill()
            alice = self.client("alice")
            self.jobs["hostile"] = self.submit("sh", "-c", "echo " + MARKUP.replace("'", ""), client=alice, tenant="acme/vision/train",
                                               name=HOSTILE, env=["NAME=" + MARKUP])
            self.answering = every_page(self, self.jobs)
            self.pages = [page for page in self.answering if page.is_page]
        except BaseException as fault:
            self.__exit__(type(fault), fault, None)
            raise
        return self

    @property
    def certificate(self):
        return (self.dir / "state/tls.crt").read_bytes()

    def session(self, role):
        return self.sessions[ROLES.get(role, role)]

    def fetch(self, path, role=None, whole=True, **headers):
        """(status, headers, bytes) as a browser gets it; not `whole`: b"" where it answers 200."""
        connection = http.client.HTTPSConnection("localhost", self.port, context=self.trust, timeout=bulkhead.PATIENCE_S)
        if role:
            headers["Cookie"] = f"__Host-bulkhead={self.session(role)}"
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        body = reply.read() if whole or reply.status != 200 else b""
        connection.close()
        return reply.status, reply.headers, body

    def answers(self, question, role):
        """The API's status for that person."""
        status, _, _ = self.fetch(question, Authorization=f"Bearer {self.session(role)}")
        return status

    def expected(self, page, role):
        """By the rights that the API has: a page of an object needs its first panel, others any."""
        if not page.questions:
            return 200
        asked_first = page.questions[:1] if page.is_of_object else page.questions
        refused = all(self.answers(question, role) in (400, 403, 404) for question in asked_first)
        return 404 if refused else 200


class Stage:
    """What all tests share."""

    def __init__(self, site, modules, build, browser="chromium", schemes=SCHEMES):
        self.site, self.modules, self.name, self.schemes = site, modules, browser, schemes
        self.shots = pathlib.Path(build) / "pages"
        self.shots.mkdir(exist_ok=True)
        self.browser = driven.Driven(modules, browser, trust=site.certificate, scheme=schemes[-1])

    def open(self, role="admin", **more):
        return self.browser.open(self.site.origin, self.site.session(role) if role else None, **more)


# ---- without a browser ----

def rights(stage):
    "each page answers each role as the API answers its questions"
    site = stage.site
    for page in site.answering:
        whole = page.row not in STREAMS
        for role in ROLES:
            status, headers, _ = site.fetch(page.path, role, whole)
            if page.questions or role == "admin":
                tap.equal(f"{page.path} as {role}", status, site.expected(page, role))
            else:  # a form: rights are asked when it is sent, and where it is shown
                tap.contains(f"{page.path} as {role}", (200, 303, 403, 404), status)
        status, headers, _ = site.fetch(page.path)
        tap.equal(f"{page.path} unsigned", status, 303 if page.signed_in else 200)
        if page.signed_in:
            tap.contains(page.path, headers["Location"], "/signin?next=")


def guessed(stage):
    "another tenant's object is the same bytes as one that does not exist"
    site, beside = stage.site, {"/jobs/": "999999", "/tenants/": "acme/nothing"}
    for page in site.answering:
        before = page.row.partition("{")[0]
        if page.is_of_object and before in beside and page.variable not in (site.jobs["done"], site.jobs["failed"]):
            there = site.fetch(page.path, "bob", page.row not in STREAMS)
            nowhere = site.fetch(page.path.replace(str(page.variable), beside[before]), "bob")
            tap.equal(page.path, (there[0], there[2]), (404, nowhere[2]))


def crawled(stage):
    "each link of each page, and of the pages behind, leads to a page"
    site, seen, dead = stage.site, {}, []
    next_ones = [page.path for page in site.pages]
    while next_ones:
        path = next_ones.pop()
        shape = re.sub(r"\d+", "0", path)
        if shape in seen or path.startswith(("/signin/provider", "/again")):
            continue
        status, headers, body = site.fetch(path, "admin")
        seen[shape] = status
        if status not in (200, 303):
            dead.append(f"{status} {path}")
        if status == 200 and headers["Content-Type"].startswith("text/html"):
            for href in re.findall(r'<a [^>]*href="([^"]*)"', body.decode()):
                address = urllib.parse.urljoin(path, href.replace("&amp;", "&")).partition("#")[0]
                if address.startswith("/"):
                    next_ones.append(address)
    assert not dead, "\n".join(dead)


# ---- a page in a browser ----

def judged(tab, found):
    """What is wrong with a page that was just opened, as it stands."""
    trouble, layout, content = tab.call("trouble"), tab.ask("layout"), tab.ask("content")
    for name in ("faults", "refused", "foreign", "moved"):
        found += [f"{name}: {line}" for line in trouble[name]]
    if tab.run("window.hacked ?? null") is not None:
        found.append("a name ran as a script")
    if not content["title"] or not content["headings"]:
        found.append("no title or heading")
    found += [f"axe: {line}" for line in tab.call("axe")]
    found += too_wide(layout)
    return content


def too_wide(layout):
    if layout["wide"] > layout["room"] or layout["cut"]:
        yield f"wider than {layout['room']}: {layout['wide']} {layout['cut']}"


def by_keyboard(tab, found):
    """Each stop is reached by Tab in the order of the document, and is seen to have the focus."""
    tab.run("document.querySelector('#live button:not([aria-pressed=true])')?.click()")  # nothing is replaced meanwhile
    took = tab.call("tab")
    order = [at for at, _ in took["visited"]]
    missed = [took["stops"][at] for at in range(len(took["stops"])) if at not in order]
    jumps = [(a, b) for a, b in zip(order, order[1:]) if b not in (a, (a + 1) % len(took["stops"]))]
    found += [f"never reached by Tab: {stop}" for stop in missed[:5]]
    found += [f"Tab goes from {took['stops'][a]} to {took['stops'][b]}" for a, b in jumps][:3]
    seen = {at for at, is_seen in took["visited"] if is_seen}  # where Tab wraps, the window may just come back
    found += [f"focus is not seen: {took['stops'][at]}" for at in sorted(set(order) - seen)][:3]


def in_each_look(stage, tab, page, found, role="admin"):
    """Both schemes and widths, without loading it again."""
    for scheme in stage.schemes:
        for width in WIDTHS:
            tab.show(width=width, prefers_color_scheme=scheme)
            found += [f"{width} px, {scheme}: {line}" for line in too_wide(tab.ask("layout"))]
            if (width, scheme) in LOOKS:
                found += [f"{width} px, {scheme}: axe: {line}" for line in tab.call("axe", rules=LOOKS[width, scheme])]
            who = "" if role == "admin" else f"-{role}"
            tab.call("shot", file=str(stage.shots / f"{stage.name}-{page.file}{who}-{width}-{scheme}.png"))


def in_print(tab, found):
    tab.show(width=718, medium="print", prefers_color_scheme="light")  # A4 between its margins
    layout = tab.ask("layout")
    if layout["wide"] > layout["room"] or layout["clipped"]:
        found.append(f"in print something is cut off: {layout['wide']} px, {layout['clipped']} {layout['cut']}")
    tab.show(width=1280, medium="")


def without_motion(tab, found):
    tab.show(prefers_reduced_motion="reduce")
    if tab.ask("layout")["moving"]:
        found.append("something moves although the reader asked for less")


def look_at(stage, page, role="admin"):
    """What is wrong with a page in this browser for that role; and what it says."""
    found = []
    with stage.open(role if page.signed_in else None) as tab:
        status = tab.go(page.path)
        tap.equal("status", status, stage.site.expected(page, role))
        if status != 200:
            return found, None
        content = judged(tab, found)
        tap.equal("path", content["path"], page.path)
        without_motion(tab, found)
        by_keyboard(tab, found)
        if stage.name == "chromium":
            in_print(tab, found)
        in_each_look(stage, tab, page, found, role)
        found += [f"{name}: {line}" for name, lines in tab.call("trouble").items()
                  if name in ("faults", "foreign") for line in lines]
    return found, content


def looked_at(stage, page, contents, role="admin"):
    found, content = look_at(stage, page, role)
    if content:
        contents[page.path] = content
    assert not found, "\n".join(dict.fromkeys(found))


def look_at_all(stage, report, role="admin", pages=None):
    contents = {}
    for page in stage.site.pages if pages is None else pages:
        report.attempt(f"{stage.name}: {page.name} as {role}: no error, axe, keyboard, both widths and schemes, print",
                       looked_at, stage, page, contents, role)
    titles = [content["title"] for content in contents.values()]
    report.line(len(set(titles)) == len(titles), f"{stage.name}: titles of pages are different for {role}",
                [title for title in titles if titles.count(title) > 1])
    return contents


def glance(stage, tab, page):
    """A page wide and light, then narrow and dark: what needs no key and no second look."""
    found = []
    tab.show(prefers_color_scheme="light")
    tap.equal("status", tab.go(page.path), stage.site.expected(page, "admin"))
    judged(tab, found)
    tab.show(width=320, prefers_color_scheme="dark")
    found += [f"320 px, dark: axe: {line}" for line in tab.call("axe", rules=sum(LOOKS.values(), []))]
    found += [f"320 px, dark: {line}" for line in too_wide(tab.ask("layout"))]
    assert not found, "\n".join(dict.fromkeys(found))


def plain(stage, contents):
    "without scripts and pictures each page says the same, and its forms can be sent"
    wrong = []
    with driven.Driven(stage.modules, stage.name, trust=stage.site.certificate, plain=True) as browser:
        for page in stage.site.pages:
            with browser.open(stage.site.origin, stage.site.session("admin") if page.signed_in else None) as tab:
                tab.go(page.path)
                content = tab.ask("content")
            tap.equal("path", content["path"], page.path)
            said = contents.get(page.path, content)
            lacks = [heading for heading in said["headings"] if heading not in content["headings"]]
            wrong += [f"{page.path}: no heading {heading}" for heading in lacks]
            wrong += [f"{page.path}: {form['action']} has no button" for form in content["buttons"] if not form["seen"]]
    assert not wrong, "\n".join(wrong)


def signed_in_without_script(stage):
    "without scripts a person signs in, is told that a second factor is missing, and signs out"
    enroll = stage.site.ask("POST", "/v1/accounts", {"principal": "zoe"}, stage.site.session("admin"))["code"]
    stage.site.ask("PUT", "/v1/account/password", {"account": "zoe", "enrol": enroll, "password": browsed.PASSWORD})
    with driven.Driven(stage.modules, stage.name, trust=stage.site.certificate, plain=True) as browser:
        with browser.open(stage.site.origin) as tab:
            tab.go("/jobs")
            tab.call("type", selector="#account", text="zoe")
            tab.call("type", selector="#password", text=browsed.PASSWORD)
            tab.call("follow", selector="form[action='/signin'] button")
            tap.contains("told", tab.ask("content")["text"], "Add a second factor to finish")
            tab.call("follow", selector="form[action='/signout'] button")
            tap.contains("where", tab.ask("content")["text"], "signed out")


def submitted_without_script(stage):
    "without scripts a job is submitted by the form: its file and its command are shown before"
    with driven.Driven(stage.modules, stage.name, trust=stage.site.certificate, plain=True) as browser:
        with browser.open(stage.site.origin, stage.site.session("developer")) as tab:
            tab.go("/submit")
            tab.call("select", selector="#job-tenant", value="acme/vision/batch")
            tab.call("select", selector="#job-sku", value="small")
            tab.call("type", selector="#job-args", text="echo 'a b'")
            tab.call("follow", selector="button[value=preview]")
            preview = tab.ask("content")["text"]
            tap.contains("file", preview, "tenant: acme/vision/batch")
            tap.contains("command", preview, "bulkhead submit --tenant acme/vision/batch --sku small -- echo 'a b'")
            tab.call("follow", selector="button[value=submit]")
            content = tab.ask("content")
            tap.contains("where", content["path"], "?notice=job_submitted")
            stage.site.client("alice").post(f"/v1/jobs/{re.search(r'/jobs/([0-9]+)', content['path'])[1]}/cancel")


# ---- by script ----

INKED = """[...document.querySelectorAll('#series .trend.drawn canvas')].map((c) =>
    c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > 0))"""


def charted(stage):
    "samples are charts that say what the pointer is over, in each width, and a table of the same stands below"
    with stage.open() as tab:
        tab.go(f"/jobs/{stage.site.jobs['running']}")  # it has few steps, all of them with samples but the newest
        tab.until("document.querySelectorAll('#series .trend.drawn canvas').length >= 2")
        for width in WIDTHS:
            tab.show(width=width)
            tab.until(f"[...document.querySelectorAll('#series canvas')].every((c) => c.clientWidth <= {width})")
            inked = tab.run(INKED)
            tap.equal(f"drawn at {width} px", inked, [True] * len(inked))
        note = "document.querySelector('#series .trend .note').textContent"
        rest = tab.run(note)
        said = [tab.call("hover", selector="#series .u-over", across=across) and tab.run(note)
                for across in (0.25, 0.5, 0.75)]
        assert any(" to " in text and " % (" in text for text in said), (rest, said)
        tap.equal("rows of the table", tab.run("document.querySelectorAll('#series details tbody tr').length > 0"), True)


def proved(stage):
    "a record is checked in the browser with the verifier key from elsewhere; with a different key it is not"
    site = stage.site
    key = site.client("dave").get("/v1/log")["keys"].strip()
    for keys, marks in ((key, "good"), ("other.example+" + key.partition("+")[2], "bad")):
        with stage.open() as tab:
            tab.go("/audit/1")
            tab.call("type", selector="#keys", text=keys)
            tab.call("press", selector="#proof-check [data-run]")
            tab.until(f"document.querySelector('#proof-check .steps .{marks}') !== null")
            tab.until("document.querySelector('#proof-check [data-verdict]').textContent !== ''")
            bad = tab.run("document.querySelectorAll('#proof-check .steps .bad').length")
            tap.equal(f"steps refused with {keys}", bad > 0, marks == "bad")
            trouble = tab.call("trouble")
            tap.equal("trouble", (trouble["faults"], trouble["refused"], trouble["foreign"]), ([], [], []))


# ---- live ----

HOLDS = "!!document.querySelector('.cards a[href=\"/jobs/{}\"]')"
BEGAN = "performance.timeOrigin"
FOCUSED = "document.activeElement.outerHTML"


def awaited_live(tab):
    tab.until("document.querySelector('#live [role=status]')?.textContent === 'Live'")


def started(stage, **more):
    site = stage.site
    job = site.submit("sh", "-c", bulkhead.UNTIL_GO, client=site.client("bob"), tenant="acme/speech/asr", time_limit=600, **more)
    site.await_state(job, "running")
    return job


def stopped(stage, job):
    stage.site.let_go(job)
    stage.site.await_state(job, *bulkhead.ENDED)


def changed(stage):
    "a job starts and ends: its GPU's card changes without a reload, and the focus and what is open stay"
    with stage.open() as tab:
        tab.go("/")
        awaited_live(tab)
        began = tab.run(BEGAN)
        tab.run("document.querySelector('#gpus .card:last-child a').focus()")
        focused = tab.run(FOCUSED)
        job = started(stage, name=HOSTILE)
        tab.until(HOLDS.format(job))
        stopped(stage, job)
        tab.until("!" + HOLDS.format(job))
        tap.equal("loaded once", tab.run(BEGAN), began)
        tap.equal("focus", tab.run(FOCUSED), focused)
        tap.equal("a name ran", tab.run("window.hacked ?? null"), None)
        trouble = tab.call("trouble")
        tap.equal("trouble", (trouble["faults"], trouble["refused"], trouble["foreign"]), ([], [], []))


def paused(stage):
    "a paused page stays as it is, and is up to date when it goes on"
    with stage.open() as tab, stage.open() as other:
        for page in (tab, other):
            page.go("/")
            awaited_live(page)
        tab.call("press", selector="#live button")
        tap.equal("says", tab.run("document.querySelector('#live [role=status]').textContent"), "Paused")
        job = started(stage)
        other.until(HOLDS.format(job))
        tap.equal("changed while paused", tab.run(HOLDS.format(job)), False)
        tab.call("press", selector="#live button")
        tab.until(HOLDS.format(job))
        stopped(stage, job)


def ended_session(stage):
    "an open page whose session ends says so, and shows no more"
    site = stage.site
    session, again = site.sessions["vera"], site.sign_in("vera")
    site.sessions["vera"] = again
    with stage.browser.open(site.origin, session) as tab:
        tab.go("/")
        awaited_live(tab)
        site.ask("POST", "/v1/sign-out", {}, session)
        job = started(stage)
        tab.says("Your session has ended")
        stopped(stage, job)


def restarted(stage):
    "a daemon that is restarted under an open page: the page says so, returns by itself and is up to date"
    site = stage.site
    with stage.open() as tab:
        tab.go("/")
        awaited_live(tab)
        began = tab.run(BEGAN)
        site.stop(site.daemon)
        tab.says("Not connected")
        site.start_daemon()
        job = started(stage)
        tab.until(HOLDS.format(job))
        awaited_live(tab)
        tap.equal("loaded once", tab.run(BEGAN), began)
        stopped(stage, job)


def deaf(stage):
    "readers that do not read hold up no page"
    site, deaf_ones = stage.site, []
    for _ in range(20):
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        raw.connect(("localhost", site.port))
        secured = site.trust.wrap_socket(raw, server_hostname="localhost")
        secured.sendall(f"GET /live?page=/&have= HTTP/1.1\r\nHost: localhost\r\nCookie: __Host-bulkhead={site.session('admin')}\r\n\r\n".encode())
        deaf_ones.append(secured)
    with stage.open() as tab:
        tab.go("/")
        awaited_live(tab)
        for _ in range(5):
            job = started(stage)
            tab.until(HOLDS.format(job), 10 * bulkhead.SLOW)
            stopped(stage, job)
            tab.until("!" + HOLDS.format(job), 10 * bulkhead.SLOW)
    for secured in deaf_ones:
        secured.close()


def in_the_readers_zone(stage):
    "times are in the reader's zone, with the exact one on hover"
    with stage.open(zone="Asia/Tokyo") as tab:
        tab.go("/jobs")
        got = tab.run("""(() => { const t = document.querySelector('main time'); return [t.title, t.dateTime, t.textContent,
            new Date(t.dateTime).toLocaleTimeString('en-US', {timeZone: 'Asia/Tokyo'})]; })()""")
        tap.equal("exact", got[0], got[1])
        tap.contains("there", got[2], got[3])


def refused_pages(stage):
    "a page that is not there is a page: a title, a way back, no axe violation"
    for path in ("/nothing-here", "/jobs/999999"):
        with stage.open() as tab:
            tap.equal("status", tab.go(path), 404)
            tap.equal("axe", tab.call("axe"), [])
            content = tab.ask("content")
            assert "/" in content["hrefs"], content["hrefs"]


# ---- 10,000 jobs ----

def in_parallel(site, deed, things):
    """Do it with each thing and a connection of root, which has no limit of rates; by as many as keep a daemon busy."""
    def some(part):
        client = site.client()
        results = [deed(client, thing) for thing in part]
        client.close()
        return results

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return [result for part in pool.map(some, [things[i::4] for i in range(4)]) for result in part]


def bounded(site, path):
    """The page as text; it came in time, and is not too large."""
    began = time.monotonic()
    status, _, body = site.fetch(path, "admin")
    took = time.monotonic() - began
    tap.equal(path, status, 200)
    assert len(body) <= PAGE_BYTES, f"{path}: {len(body)} bytes"
    assert took <= PAGE_S * bulkhead.SLOW, f"{path}: {took:.2f} s"
    return body.decode()


def many(stage):
    "10,000 jobs: each page stays small and comes in time, each job is on one page of the list, browsers show them"
    site = stage.site
    jobs = in_parallel(site, lambda client, i: site.submit("true", client=client, name=f"row-{i}", hold=True), range(ROWS))
    for page in site.pages:
        if page.questions:
            bounded(site, page.path)
    path, rows, total = "/jobs?state=pending", [], site.client().get("/v1/jobs?state=pending&limit=1")["total"]
    while path:
        text = bounded(site, path)
        rows += re.findall(r'<tr>\s*<td><a href="/jobs/(\d+)"', text)
        following = re.search(r'<a href="([^"]*)">Next page<', text)
        path = following and html.unescape(following[1])
    tap.equal("jobs on all pages", (len(rows), len(set(rows))), (total, total))
    with stage.open() as tab:
        for page in site.pages:
            if page.row in ("/", "/jobs", "/tenants/{rest}"):
                glance(stage, tab, page)
    in_parallel(site, lambda client, job: client.post(f"/v1/jobs/{job}/cancel"), jobs)


WITHOUT_BROWSER = [rights, guessed, crawled]
LIVE = [changed, paused, ended_session, restarted, deaf, in_the_readers_zone, refused_pages]


# ---- all ----

BY_SCRIPT = [charted, proved]


def play_soak(stage, report, word):
    def chosen(tests):
        return [test for test in tests if word in test.__name__]

    pages = [page for page in stage.site.pages if stage.name == "chromium" or page.row in FIREFOX]
    contents = look_at_all(stage, report, pages=pages) if word in "looks" else {}
    for test in chosen([plain]):
        report.attempt(f"{stage.name}: plain: {plain.__doc__}", plain, stage, contents)
    if stage.name == "firefox":
        report.play(chosen([submitted_without_script] + BY_SCRIPT), stage)
        return
    for test in chosen(WITHOUT_BROWSER):
        report.play([test], stage, todo=lacking_pages() if test == crawled else "")
    report.play(chosen([signed_in_without_script, submitted_without_script] + BY_SCRIPT + LIVE + [many]), stage)


def play_quick(stage, report, word):
    with stage.open() as signed_in, stage.open(None) as signed_out:
        for page in stage.site.pages:
            if word in page.name:
                report.attempt(f"{stage.name}: {page.name}: no error, no refusal, nothing moves, axe, wide and narrow",
                               glance, stage, signed_in if page.signed_in else signed_out, page)


def lacking_pages():
    """What pages link to before it is there."""
    there = {path.partition("{")[0] for _, path, *_ in rows("panels.tbl", "BH_VIEW")}
    return " ".join(before for before in ("/gpus/", "/nodes/", "/tenants/") if before not in there)


def play_matrix(stage, report, word):
    contents = {}
    for role in ROLES:
        if word in role:
            contents.update(look_at_all(stage, report, role))
    report.attempt(f"{stage.name}: {plain.__doc__}", plain, stage, contents)
    report.play([submitted_without_script] + BY_SCRIPT + LIVE, stage)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build")
    options.add_argument("modules")
    options.add_argument("word", nargs="?", default="")
    options.add_argument("--matrix", action="store_true")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", help="chromium or firefox")
    args = options.parse_args()
    play = play_matrix if args.matrix else play_quick if args.quick else play_soak
    browsers = [("firefox", ["light"]), ("chromium", SCHEMES)]  # the latter ends with 10,000 jobs
    browsers = [("firefox", ["dark"])] + browsers if args.matrix else browsers[1:] if args.quick else browsers
    browsers = [row for row in browsers if args.only in (None, row[0])]
    lack = tap.missing() or driven.missing(args.modules, *[name for name, _ in browsers])
    if lack:
        skip_all(lack)
    report = Report()
    with PagesSite(args.build) as site:
        for name, schemes in browsers:
            stage = Stage(site, args.modules, args.build, name, schemes)
            with stage.browser:
                print(f"# {stage.browser.version}", flush=True)
                play(stage, report, args.word)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
