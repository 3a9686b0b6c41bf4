#!/usr/bin/env python3
"""What the machine and its people do to the system: a state that is put back, and no CPU time."""
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from tap import equal


def put_back(site, backup):
    """As docs/install.md says: with the daemon stopped, the folder as it was."""
    site.stop(site.daemon)
    shutil.rmtree(site.dir / "state")
    subprocess.run(["cp", "-a", str(backup), str(site.dir / "state")], check=True)


@tap.test()
def restored(site):
    "after a backup is put back, a number that is given out again shows nothing of who had it before"
    equal("before", site.run("echo", "before")[1], "before\n")
    site.stop(site.daemon)
    backup = site.dir / "backup"
    subprocess.run(["cp", "-a", str(site.dir / "state"), str(backup)], check=True)
    for restart in range(2):  # the daemon may start again before the backup is put back, or not
        site.start_daemon()
        site.await_gpus()
        alice, bob = site.client("alice"), site.client("bob")
        lost = [site.submit("sh", "-c", "echo of alice; exec sleep 600", client=alice, sku=sku) for sku in ("small", "medium")]
        lost.append(site.submit("echo", "of alice", client=alice))
        for job in lost[:2]:
            site.await_state(job, "running")
            site.until(lambda: site.log(job), what="output")
        site.await_state(lost[2], "completed")
        put_back(site, backup)
        if restart:
            site.start_daemon()
            site.stop(site.daemon)
        site.start_daemon()
        site.await_gpus()
        held = site.submit("true", client=bob, tenant="acme/speech/asr", hold=True)
        equal("the number again", held, lost[0])
        equal("what has not begun", site.log(held), "")
        again = [site.submit("sh", "-c", "echo of bob; sleep 1", client=bob, tenant="acme/speech/asr") for _ in lost[1:]]
        equal("the numbers again", again, lost[1:])
        for job in again:
            done = site.await_state(job, "completed", "failed")
            equal(f"job {job}", (done["state"], site.log(job)), ("completed", "of bob\n"))
        equal("from before", site.log(1), "before\n")
        equal("processes of the lost ones", [p for p in site.processes("sleep") if p], [])
        site.stop(site.daemon)
        put_back(site, backup)
    site.start_daemon()


if __name__ == "__main__":
    tap.main()
