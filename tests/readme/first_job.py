#!/usr/bin/env python3
"""README.md and docs/quickstart.md are tests: each command of a page's console blocks runs as it is
written, in order, and prints what the page shows below it.

usage: first_job.py BUILD [PAGE].  Prints TAP.  Of README.md the section "A first job" is played.

The programs are installed by DESTDIR from BUILD and stand over /usr/local in a mount namespace of the
test's own, where /etc/bulkhead, /run/bulkhead and /var/lib/bulkhead are empty; so nothing of the
machine's is touched, and the commands need no word changed.  UUIDs, process
ids, revisions, spans of time, how many records there are, the machine's name and the width of columns are not
compared; a line "..." stands for any lines."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
from bulkhead import PATIENCE_S, sanitizer_of  # noqa: E402
from up_closing import Up  # noqa: E402
from report import Report, skip_all  # noqa: E402

OWN = ["/etc/bulkhead", "/run/bulkhead", "/var/lib/bulkhead"]
MARK = "==first-job-status=="


def commands(page):
    """[(command, the lines that the page shows below it)] of the page's console blocks."""
    section = (ROOT / page).read_text()
    if page == "README.md":
        section = re.search(r"^## A first job\n(.*?)^## ", section, re.M | re.S)[1]
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", section, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("# "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def comparable(line):
    line = line.replace(os.uname().nodename, "gpu1")
    line = re.sub(r"\b(GPU|MIG)-[0-9a-f-]{8,36}", r"\1-X", line)
    line = re.sub(r"(kill|revision) [0-9]+", r"\1 0", line)
    line = re.sub(r"[0-9]+ (records|signed checkpoints)", r"0 \1", line)
    line = re.sub(r"\b[0-9]+s\b", "0s", line)
    return " ".join(line.split())


def matches(shown, said):
    """Whether the lines that were said are those shown, "..." being any."""
    pattern = "".join("(?:.*\n)*" if line == "..." else re.escape(comparable(line)) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(comparable(line) + "\n" for line in said)) is not None


class Shell:
    """One bash for all commands, as a person has; output and errors together, as they are seen."""

    def __init__(self):
        self.process = subprocess.Popen(["bash", "--norc"], cwd=ROOT, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, command):
        """(lines, status)"""
        self.process.stdin.write(f"{command}\nstatus=$?; echo; echo {MARK}$status\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                return lines[:-1] if lines and not lines[-1] else lines, int(line[len(MARK):])
            lines.append(line.rstrip("\n"))
        return lines, None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def enter_private_root(build):
    """Go on in a mount namespace with what `make install` would install, and folders of our own."""
    stage = tempfile.mkdtemp(prefix="bulkhead-readme-")
    env = dict(os.environ, DESTDIR=stage, BH_README_STAGE=stage)
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], check=True, env=env,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    mounts = [f"mount -t overlay overlay -o lowerdir={stage}/usr/local:/usr/local /usr/local"]
    mounts += [f"mkdir -p {place} && mount -t tmpfs -o mode=755 tmpfs {place}" for place in OWN]
    script = " && ".join(mounts) + ' && exec "$@"'
    os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh",
                           sys.executable, *sys.argv], env)


def left_running():
    """Processes that came from the private root."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if "bulkhead" in os.readlink(f"/proc/{entry}/exe") and int(entry) != os.getpid() \
                    and os.stat(f"/proc/{entry}/ns/mnt").st_ino == os.stat("/proc/self/ns/mnt").st_ino:
                found.append(int(entry))
        except OSError:
            continue
    return found


def end(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    deadline = time.monotonic() + PATIENCE_S
    while left_running() and time.monotonic() < deadline:
        time.sleep(0.05)
    return left_running()


def play(page):
    rows, supervisor = commands(page), []
    report, shell = Report(len(rows) + 2), Shell()
    for command, shown in rows:
        if command == "make install":  # it is: by enter_private_root
            report.line(True, command)
            continue
        said, status = shell.run(command)
        supervisor += [int(pid) for pid in re.findall(r"kill (\d+) ends it", "\n".join(said))]
        report.line(status == 0 and matches(shown, said), command,
                    [f"status {status}; {page} shows:", *(f"  {line}" for line in shown),
                     "and it said:", *(f"  {line}" for line in said)])
    site = Up("/usr/local/bin")
    found = site.online()
    left = end(supervisor)
    shell.close()
    found += site.offline()
    report.line(supervisor and not left, f"it ends as it said, and nothing is left: {left}")
    report.line(not found, "the closing audit holds", found)
    return report.close()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    lack = [tool for tool in ("crun", "unshare", "meson") if not shutil.which(tool)]
    if os.geteuid() != 0 or lack:
        skip_all(f"not root, or no {' '.join(lack)}")
    if sanitizer_of(pathlib.Path(sys.argv[1]) / "src/cli/bulkhead"):
        skip_all("what a job prints is compared, and its programs are built with a sanitizer")
    stage = os.environ.get("BH_README_STAGE")
    if not stage:
        enter_private_root(sys.argv[1])
    try:
        return play(sys.argv[2] if len(sys.argv) == 3 else "README.md")
    finally:
        subprocess.run(["umount", "-l", "/usr/local"], check=False)
        shutil.rmtree(stage, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
