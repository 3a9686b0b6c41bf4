"""Kills and hangs of a running site: whatever of its programs is there, at a random moment."""
import collections
import os
import pathlib
import re
import signal
import time

CALL_TIMEOUT_MS, SCRUB_TIMEOUT_MS = 1000, 5000
NODE_CONF = f"call_timeout_ms = {CALL_TIMEOUT_MS}\nscrub_timeout_ms = {SCRUB_TIMEOUT_MS}\n"
HUNT_S = 2  # for a helper that is there for some tenths of a second now and then
RULES_MAX = 40
HANGING = ("nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceDestroy", "nvmlGpuInstanceCreateComputeInstance",
           "nvmlComputeInstanceDestroy", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetComputeRunningProcesses_v3")

# share, what
KILLS = [(30, "daemon"), (20, "node"), (12, "gpu"), (12, "keeper"), (5, "both"), (5, "signer"), (6, "crun"), (4, "init")]
HANGS = [(4, "hang_daemon"), (4, "hang_node"), (4, "hang_gpu"), (3, "hang_keeper"), (3, "hang_signer"), (2, "hang_crun"),
         (4, "hang_driver")]
SCRUBS = [(12, "scrub"), (2, "hang_scrub")]


def parent(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def command(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def groups_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""


class Killer:
    """Strikes one program after another.  `targets` are shares and names of methods; `count` has how often each
    met something, `hit` the leases whose sandbox was struck itself, `blamed` whether a GPU may have been lost."""

    def __init__(self, site, chance, targets):
        self.site, self.chance, self.targets = site, chance, targets
        self.count, self.hit, self.rules = collections.Counter(), set(), []
        self.blamed = False

    def strike(self):
        time.sleep(self.chance.random() * 0.5)
        target = self.chance.choices([t[1] for t in self.targets], [t[0] for t in self.targets])[0]
        if getattr(self, target)() is not None:
            self.count[target] += 1
        else:
            self.count["nothing there"] += 1

    # ---- kills ----
    def daemon(self):
        self.site.kill(self.site.daemon)
        self.site.start_daemon()
        return True

    def node(self):
        self.site.kill(self.site.node)
        time.sleep(self.chance.random() * 0.1)
        self.site.start_node()
        return True

    def both(self):
        self.site.kill(self.site.daemon)
        self.site.kill(self.site.node)
        self.site.start_node()
        self.site.start_daemon()
        return True

    def gpu(self):
        return self.send("bulkhead-gpu", signal.SIGKILL)

    def keeper(self):
        return self.send("bulkhead-keeper", signal.SIGKILL)

    def signer(self):
        return self.send("bulkhead-signer", signal.SIGKILL)

    def crun(self):
        return self.send("crun --root", signal.SIGKILL)

    def init(self):
        return self.send("libexec/init", signal.SIGKILL)

    def scrub(self):
        return self.send("libexec/scrub --uuid", signal.SIGKILL, HUNT_S)

    # ---- hangs ----
    def hang_daemon(self):
        return self.pause(self.site.daemon.pid)

    def hang_node(self):
        return self.pause(self.site.node.pid)

    def hang_keeper(self):
        return self.pause(self.send("bulkhead-keeper", signal.SIGSTOP))

    def hang_signer(self):
        return self.pause(self.send("bulkhead-signer", signal.SIGSTOP))

    def hang_crun(self):
        return self.pause(self.send("crun --root", signal.SIGSTOP))

    def hang_gpu(self):
        """It never goes on: the node has to notice."""
        self.blamed = True
        return self.send("bulkhead-gpu", signal.SIGSTOP)

    def hang_scrub(self):
        return self.send("libexec/scrub --uuid", signal.SIGSTOP, HUNT_S)

    def hang_driver(self):
        """A call of the driver that does not come back, once.  A rule is known by its line's number and text."""
        self.blamed = True
        if len(self.rules) == RULES_MAX:
            self.rules.clear()
        self.rules.append(f"{self.chance.choice(HANGING)} gpu={self.chance.randrange(2)} hang count=1 id={time.time_ns()}")
        self.write_rules(self.rules)
        return True

    def write_rules(self, rules):
        """Driver faults that stand: freed memory is never cleared, and `rules`."""
        path = self.site.sim / "control"
        path.with_suffix(".new").write_text("".join(f"{r}\n" for r in ["gpu=0 leak", "gpu=1 leak", *rules]))
        path.with_suffix(".new").rename(path)

    def pause(self, pid):
        if pid is not None:
            self.signal(pid, signal.SIGSTOP)
            time.sleep(self.chance.random() * 1.5)
            self.signal(pid, signal.SIGCONT)
        return pid

    # ---- the victims ----
    def send(self, words, number, seconds=0.0):
        """A signal for one of the site's processes with these words in its command; its pid, or None."""
        until = time.monotonic() + seconds
        while True:
            alike = [p for p in self.site.processes() if words in command(p)]
            pids = [p for p in alike if parent(p) not in alike]  # a keeper's child is not one yet
            if pids or time.monotonic() > until:
                break
        if not pids:
            return None
        pid = self.chance.choice(pids)
        self.hit |= {int(n) for n in re.findall(r"/bh-(\d+)\b", groups_of(pid) + command(pid))}
        return pid if self.signal(pid, number) else None

    def signal(self, pid, number):
        try:
            os.kill(pid, number)
            return True
        except ProcessLookupError:
            return False
