#!/usr/bin/env python3
"""The closing audit of a site that `bulkhead up` made is audited: one on which nothing is wrong, and one
for each thing that may be; and a site in the standard folders, of which only the folders are made.

    up_closing_test.py BUILD [WORD]

Prints TAP.  In a mount namespace of its own, where /etc/bulkhead, /run/bulkhead and /var/lib/bulkhead are empty."""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import closing
import tap
from report import Report, skip_all
import up
import up_closing
from closing_test import in_node, verdict

STANDARD = ("/etc/bulkhead", "/run/bulkhead", "/var/lib/bulkhead")
EXAMPLE = up.ROOT / "packaging/examples/site.yaml"


# ---- what is planted: what it returns undoes it ----

def file(folder):
    def plant(site):
        (site.dir / folder / "forgotten").touch()
    return plant


def mount(place):
    """As the node would leave it, were it not in a namespace of its own."""
    def plant(site):
        where = pathlib.Path(place(site))
        where.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", where], check=True)
        return lambda: subprocess.run(["umount", where], check=True)
    return plant


def mount_of_node(site):
    in_node(site, 'mkdir "$1"; mount -t tmpfs tmpfs "$1"', site.runs / "boxes/bh-4242")


def loop(site):
    place = site.runs / "loop"
    place.write_bytes(bytes(1 << 20))
    device = subprocess.run(["losetup", "--find", "--show", place], capture_output=True, text=True, check=True).stdout.strip()
    return lambda: subprocess.run(["losetup", "--detach", device], check=True)


def process(*own_namespace):
    """Also one that has a mount namespace of its own, as the node and its keepers have."""
    def plant(site):
        place = site.runs / "planted"
        place.touch()
        planted = subprocess.Popen([*own_namespace, "tail", "-f", place], stdout=subprocess.DEVNULL)
        while pathlib.Path(f"/proc/{planted.pid}/comm").read_text() != "tail\n":  # a program that begins has no words yet
            time.sleep(0.01)

        def undo():
            planted.kill()
            planted.wait()
        return undo
    return plant


def group(site):
    top = pathlib.Path("/sys/fs/cgroup")
    place = (top if (top / "cgroup.controllers").exists() else top / "memory") / site.group / "bh-4242"
    place.mkdir(parents=True)

    def undo():
        place.rmdir()
        place.parent.rmdir()
    return undo


def line(site):
    with open(site.logs[0], "a") as log:
        log.write("node   | 2026-01-01T00:00:00Z error bulkhead-node: planted\n")


def no_store(site):
    for path in site.state.glob("bulkhead.db*"):
        path.unlink()


def no_records(site):
    with sqlite3.connect(site.state / "bulkhead.db") as store:
        store.execute("DELETE FROM records")
    store.close()


# what is wrong, how the audit says so, how it is planted: while it serves (True), or when it has ended
ROWS = [
    ("nothing", (), True, lambda site: None),
    ("a mount in the node's namespace", ("left: mount ",), True, mount_of_node),
    ("a file of the daemon", ("left: file ",), False, file("daemon")),
    ("a file of the node", ("left: file ",), False, file("node")),
    ("a file of the signer", ("left: file ",), False, file("signer")),
    ("a folder that is elsewhere", ("left: nothing is known of ",), False, lambda site: shutil.move(site.dir / "logs", site.dir / "elsewhere")),
    ("a store that is gone", ("log: there is no store in ",), False, no_store),
    ("a store without records", ("log: the store has no record", "log: {"), False, no_records),
    ("a mount", ("left: mount ",), False, mount(lambda site: site.runs / "planted")),
    ("a loop device", ("left: loop device ",), False, loop),
    ("a process", ("left: process ",), False, process()),
    ("a process in a mount namespace", ("left: process ",), False, process("unshare", "--mount")),
    ("a control group", ("left: control group ",), False, group),
    ("a line at level error", ("logged: ",), False, line),
]
# what is wrong in the standard folders, where there is no store
STANDARD_ROWS = [
    ("nothing", (), lambda site: None),
    ("a mount of the node", ("left: mount /run/bulkhead/node/boxes",), mount(lambda site: "/run/bulkhead/node/boxes")),
    ("a loop device", ("left: loop device ",), loop),
    ("a process in a mount namespace", ("left: process ",), process("unshare", "--mount")),
    ("a file of the daemon", ("left: file /var/lib/bulkhead/daemon/forgotten",), file("daemon")),
]


# ---- what is found ----

def found_on(tree, number, serves, plant):
    tree.home = tree.dir / f"site{number}"
    tree.start("--sim", "1x H100-80GB")
    try:
        tree.bulkhead("apply", "-f", str(EXAMPLE), check=0)
        tree.bulkhead("run", "--tenant", "acme/speech/asr", "--sku", "small", "--", "true", check=0)
        site = up_closing.Up(pathlib.Path(tree.program).parent, tree.home)
        if serves:
            plant(site)
        found = site.online()
    finally:
        tree.end()
    undo = None if serves else plant(site)
    found += site.offline()
    if callable(undo):
        undo()
    return found


def found_in_standard_folders(tree, plant):
    """Of a site that ended, whose store is gone."""
    for place in STANDARD:
        for path in pathlib.Path(place).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in ("daemon", "node", "logs", "signer"):
        pathlib.Path("/var/lib/bulkhead", name).mkdir()
    pathlib.Path("/run/bulkhead/node").mkdir()
    pathlib.Path("/var/lib/bulkhead/up.log").touch()
    pathlib.Path("/etc/bulkhead/node.conf").write_text(f"cgroup_parent = /bulkhead-closing-{os.getpid()}\n")
    site = up_closing.Up(pathlib.Path(tree.program).parent)
    undo = plant(site)
    found = site.offline()
    if callable(undo):
        undo()
    return found


def enter_namespace():
    """Go on with standard folders that are empty."""
    mounts = [f"mkdir -p {place} && mount -t tmpfs -o mode=755 tmpfs {place}" for place in STANDARD]
    os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", "sh", "-c", " && ".join(mounts) + ' && exec "$@"', "sh",
                           sys.executable, *sys.argv], dict(os.environ, BH_OWN_FOLDERS="1"))


def main():
    lack = tap.missing()
    if lack:
        skip_all(lack)
    if "BH_OWN_FOLDERS" not in os.environ:
        enter_namespace()
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    rows, standard = [row for row in ROWS if word in row[0]], [row for row in STANDARD_ROWS if word in row[0]]
    report, tree = Report(len(rows) + len(standard)), up.Up(sys.argv[1])
    for number, (what, wanted, serves, plant) in enumerate(rows, 1):
        up_closing.Up.hurry_s = 2 if wanted else None  # what is planted does not go
        wrong = verdict(found_on(tree, number, serves, plant), wanted)
        report.line(not wrong, f"bulkhead up: {what}", wrong)
    for what, wanted, plant in standard:
        wrong = verdict(found_in_standard_folders(tree, plant), ("log: there is no store in ", *wanted))
        report.line(not wrong, f"in the standard folders: {what}", wrong)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
