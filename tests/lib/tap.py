"""Tests of the whole system as TAP: each is a function whose docstring is the sentence it
proves; it gets a Site of its own.

    @tap.test(topology="1x H100-80GB")
    def frozen(site):
        "a suspended job writes nothing"

Options are Site's, and todo="..." for what is known not to work yet."""
import functools
import os
import pathlib
import shutil
import signal
import sys

from bulkhead import Site, has_thread_sanitizer, lacks_unit_filter
from report import Report, Skip, skip_all

SITE = (pathlib.Path(__file__).parent / "site.yaml").read_text()
tests = []


def test(**options):
    def register(function):
        tests.append((function, {"site": SITE, **options}))
        return function
    return register


def missing():
    """What this machine lacks to run sandboxes, or ""."""
    if os.geteuid() != 0:
        return "not root"
    if not shutil.which("crun"):
        return "crun is not installed"
    if not os.access("/sys/fs/cgroup", os.W_OK):
        return "/sys/fs/cgroup is not writable"
    return ""


def needs_smi_in_jobs(library):
    """Skip where bulkhead-smi and the simulated driver are built with ThreadSanitizer: its map of memory does not
    fit into a job."""
    if has_thread_sanitizer(library):
        raise Skip("bulkhead-smi does not run in a job with ThreadSanitizer")


def in_own_network():
    """Go on in a network namespace of the test's own, whose loopback leads everywhere: no
    interface and no rule of packets of ours is the machine's."""
    if os.environ.get("BH_OWN_NETWORK") or missing():
        return
    if not shutil.which("nft") or not shutil.which("unshare") or not shutil.which("ip"):
        skip_all("nft, ip or unshare is missing")
    script = 'ip link set lo up; ip route add default dev lo; exec "$@"'
    os.environ["BH_OWN_NETWORK"] = "1"
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, *sys.argv])


def in_own_numbers():
    """Go on in a PID namespace of the test's own, whose process numbers it may begin anew, and which ends with
    all that is in it.  A shell is process 1 there: it takes in orphans."""
    if os.environ.get("BH_OWN_NUMBERS") or missing():
        return
    if not shutil.which("unshare"):
        skip_all("unshare is missing")
    os.environ["BH_OWN_NUMBERS"] = "1"
    os.execvp("unshare", ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit $?', "sh",
                          sys.executable, *sys.argv])


def in_own_mounts():
    """Go on in a mount namespace of the test's own: no other process sees what it mounts, which goes with it."""
    if os.environ.get("BH_OWN_MOUNTS") or missing():
        return
    if not shutil.which("unshare"):
        skip_all("unshare is missing")
    os.environ["BH_OWN_MOUNTS"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def equal(what, got, wanted):
    assert got == wanted, f"{what}: {got!r} is not {wanted!r}"


def contains(what, text, part):
    assert part in text, f"{what}: {part!r} is not in {text!r}"


def in_a_site_of_its_own(build, function, options):
    @functools.wraps(function)
    def run():
        with Site(build, **{name: value for name, value in options.items() if name != "todo"}) as site:
            function(site)
    return run


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} BUILD [WORD]")
    build, word = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    chosen = [t for t in tests if word in t[0].__name__]
    lack = missing()
    if lack:
        skip_all(lack)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a Site is ended on the way out
    report = Report(len(chosen))
    if lacks_unit_filter():
        print(f"# nodes run without their unit's call filter: {lacks_unit_filter()}")
    for function, options in chosen:
        report.play([in_a_site_of_its_own(build, function, options)], todo=options.get("todo", ""))
    sys.exit(report.close())
