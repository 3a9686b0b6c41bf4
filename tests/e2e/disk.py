#!/usr/bin/env python3
"""A full disk: reads are served, changes are refused by name, nothing acknowledged is lost."""
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import DAEMON_UID, Refused
from tap import contains, equal

STATE_MIB = 8


def onto_small_disk(site):
    state, kept = site.dir / "state", site.dir / "kept"
    site.stop(site.daemon)
    state.rename(kept)
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={STATE_MIB}m,mode=700,uid={DAEMON_UID},gid={DAEMON_UID}",
                    "tmpfs", str(state)], check=True)
    subprocess.run(["cp", "-a", f"{kept}/.", str(state)], check=True)
    shutil.rmtree(kept)
    site.start_daemon()


def fill(site, hold):
    accepted = []
    for _ in range(50000):
        try:
            accepted.append(site.submit("true", hold=hold))
        except Refused as refused:
            return accepted, refused
    raise AssertionError("the disk did not get full")


@tap.test(topology="1x H100-80GB")
def full(site):
    "a full disk refuses changes with 507 and serves reads; with room again all goes on and nothing is lost"
    site.announce("disk full", "No space left on device")
    onto_small_disk(site)
    state = str(site.dir / "state")
    try:
        accepted, refused = fill(site, True)
        equal("status", refused.status, 507)
        equal("code", refused.code, "full")
        equal("reads", len(site.client().get("/v1/jobs?limit=5")["items"]), 5)
        replays = (site.dir / "daemon.log").read_text().count("journal replayed")
        begun, refusals = time.monotonic(), 0
        while time.monotonic() < begun + 3:
            # What the daemon removes (a snapshot that did not fit) may make room for one more:
            # then it is durable like any other, and must be there afterwards.
            try:
                accepted.append(site.submit("true", hold=True))
            except Refused as again:
                equal("again", again.status, 507)
                refusals += 1
            site.client().get("/v1/gpus")
        assert refusals > 10, f"{refusals} refusals in 3 s on a full disk"
        tried = (site.dir / "daemon.log").read_text().count("journal replayed") - replays
        assert tried <= 4, f"the state was rebuilt {tried} times in 3 s"
        subprocess.run(["mount", "-o", "remount,size=64m", state], check=True)
        time.sleep(1.2)
        accepted.append(site.submit("true", hold=True))
        site.daemon.kill()
        site.daemon.wait()
        site.start_daemon()
        present, after = set(), 0
        while items := site.client().get(f"/v1/jobs?after={after}&limit=1000")["items"]:
            present |= {item["id"] for item in items}
            after = items[-1]["id"]
        equal("lost", sorted(set(accepted) - present), [])
        equal("never acknowledged", sorted(present - set(accepted)), [])
        contains("log", (site.dir / "daemon.log").read_text(), "disk full")
    finally:
        site.stop(site.daemon)
        subprocess.run(["umount", "-l", state], check=False)


if __name__ == "__main__":
    tap.main()
