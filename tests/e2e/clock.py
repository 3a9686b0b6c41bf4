#!/usr/bin/env python3
"""The wall clock of the programs steps, by a library that is loaded before: never the machine's."""
import mmap
import pathlib
import re
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import UNTIL_GO, sanitizer_of
from tap import contains, equal

HOUR_MS = 3600 * 1000
STEPPED = re.compile(r'the wall clock stepped.* by="([-+]\d+) ms" ahead="([-+]\d+) ms"')


class SteppedClock:
    """The wall clock of a site's programs, which begin anew with it."""

    def __init__(self, site):
        if sanitizer_of(site.program("bulkheadd")):
            raise tap.Skip("a sanitizer must be loaded first")
        path = site.dir / "ahead"
        path.write_bytes(bytes(8))
        path.chmod(0o644)
        with open(path, "r+b") as file:
            self.ahead = mmap.mmap(file.fileno(), 8)
        site.env = {"LD_PRELOAD": str(pathlib.Path(sys.argv[1]).resolve() / "tests/lib/libstep_clock.so"),
                    "BULKHEAD_TEST_CLOCK": str(path)}
        site.stop(site.daemon)
        site.stop(site.node)
        site.start_node()
        site.start_daemon()
        site.await_gpus()

    def set(self, ahead_ms):
        self.ahead[:] = struct.pack("q", ahead_ms * 10**6)


def ahead_of(site):
    return site.client().get("/v1/status")["clock_ahead_ms"]


def steps_in_log(site):
    return [tuple(map(int, found)) for found in STEPPED.findall((site.dir / "daemon.log").read_text())]


def doctor_says(site):
    shown = site.cli(None, "doctor").stdout
    return next(line for line in shown.splitlines() if "clock" in line)


def await_turn(site):
    """The daemon looks at the clocks about once a second, and notes when: two notes after now have a whole look between."""
    for _ in range(2):
        before = (site.state / "heard").read_bytes()
        site.until(lambda: (site.state / "heard").read_bytes() != before, what="a look at the clocks")


def is_near(what, got, wanted, by):
    assert abs(got - wanted) <= by, f"{what}: {got} is not {wanted}, by {by} at most"


@tap.test()
def stepped(site):
    "a step of the wall clock is a line in the log, in status and in doctor's advice; neither a job's time nor the records' follow it"
    clock = SteppedClock(site)
    job = site.submit("sh", "-c", UNTIL_GO, time_limit="1h")
    site.await_state(job, "running")
    is_near("ahead before", ahead_of(site), 0, 1000)
    assert "engine time" not in doctor_says(site), doctor_says(site)
    began, before = time.monotonic(), int(site.records()[-1]["ts_ns"])

    clock.set(2 * HOUR_MS)
    (by, ahead), *_ = site.until(lambda: steps_in_log(site), what="the line of the step")
    is_near("the step", by, 2 * HOUR_MS, 500)
    is_near("ahead since", ahead, 2 * HOUR_MS, 1500)
    passed_ms = (time.monotonic() - began) * 1000
    is_near("status", ahead_of(site), 2 * HOUR_MS, 1500 + passed_ms / 100)
    is_near("bulkhead status", int(re.search(r"clock_ahead_ms\W+(\d+)", site.cli(None, "status", "-o", "json", check=0).stdout)[1]),
            2 * HOUR_MS, 1500 + passed_ms / 50)
    contains("doctor", re.sub(r"7(1\d\d|200) s", "2 h", doctor_says(site)), "engine time is 2 h behind the wall clock")
    short = site.run("true")[0]
    equal("a job of then", short["state"], "completed")
    equal("the limit of an hour is not reached", site.job(job)["state"], "running")
    is_near("records", (int(site.records()[-1]["ts_ns"]) - before) / 10**6, 0, 2000 + (time.monotonic() - began) * 1010)

    clock.set(-2 * HOUR_MS)
    await_turn(site)
    contains("doctor", re.sub(r"7(1\d\d|200) s", "2 h", doctor_says(site)), "engine time is 2 h ahead of the wall clock")
    clock.set(0)
    await_turn(site)
    is_near("ahead at the end", ahead_of(site), 0, 1000 + (time.monotonic() - began) * 10)
    assert "engine time" not in doctor_says(site), doctor_says(site)
    most = 1 + int((time.monotonic() - began) / 10)
    assert len(steps_in_log(site)) <= most, f"more than one line in 10 s: {steps_in_log(site)}"
    site.let_go(job)
    equal("its end", site.await_state(job, "completed")["cause"], "exited")


if __name__ == "__main__":
    tap.main()
