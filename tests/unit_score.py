#!/usr/bin/env python3
"""What systemd finds open in the node's unit is what docs/install.md says, each with its reason: unit_score.py"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from bulkhead import unit_refuses
from report import Report, skip_all

ROOT = pathlib.Path(__file__).resolve().parents[1]
REACHING = {"ptrace", "pidfd_getfd", "process_vm_readv", "process_vm_writev"}
MOST = 6.0  # weights differ a little from one systemd to the next


def analyze():
    """(score, names of what is open) of the unit as it would be installed."""
    unit = (ROOT / "packaging/systemd/bulkhead-node.service.in").read_text()
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place, "bulkhead-node.service")
        path.write_text(unit.replace("@sbindir@", "/usr/sbin").replace("@sysconfdir@", "/etc"))
        said = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", path], capture_output=True, text=True)
    return float(re.search(r"exposure level for \S+ ([0-9.]+)", said.stdout)[1]), re.findall(r"^✗ (\S+)", said.stdout, re.M)


def unreachable():
    """Calls that reach into another process, which the checkpoint helper's room leaves open and the unit does not."""
    table = (ROOT / "tables/checkpoint_syscalls.tbl").read_text()
    return REACHING & unit_refuses() - set(re.findall(r"^BH_CHECKPOINT_SYSCALL\((\w+)\)", table, re.M))


def main():
    if not shutil.which("systemd-analyze"):
        skip_all("no systemd-analyze")
    version = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    page = (ROOT / "docs/install.md").read_text()
    told = {name.replace("\\|", "|") for name in re.findall(r"`([^`]+)`", page[page.index("| open | because |"):])}
    said, (score, found) = float(re.search(r"bulkhead-node` says ([0-9.]+)", page)[1]), analyze()
    checks = (("a score below " + str(MOST), score < MOST, score), ("the page's score", version != "252" or score == said, score),
              ("what is open has its reason in the page", version != "252" or set(found) <= told, sorted(set(found) - told)),
              ("what bulkhead-checkpoint may ask its unit does not refuse", not unreachable(), sorted(unreachable())))
    return Report(len(checks)).rows((f"{name}: {what}", good) for name, good, what in checks).close()


if __name__ == "__main__":
    raise SystemExit(main())
