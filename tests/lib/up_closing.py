"""The closing audit of a site that `bulkhead up` made: of the demo (tools/closing-audit), and of the
README's first job."""
import os
import pathlib
import re
import types

import closing
from bulkhead import Site

class Up(Site):
    """What the audit asks of a site, of one that it did not start: `programs` is the folder of `bulkhead`,
    `folder` what `bulkhead up --dir` was given."""

    def __init__(self, programs, folder=None):
        self.bin, self.announced, self.excused = pathlib.Path(programs), [], {}
        # Of what stood before nothing is known: only a name that could be ours is.
        self.namespaces = {name for name in closing.named_namespaces() if not re.search(r"bulkhead|/bh[^/]*$", name)}
        self.dir = pathlib.Path(folder or "/var/lib/bulkhead")
        run, conf = (self.dir / "run", self.dir) if folder else (pathlib.Path("/run/bulkhead"), pathlib.Path("/etc/bulkhead"))
        self.state, self.runs, self.logs = self.dir / "daemon", run / "node", [self.dir / "up.log"]
        self.conf, self.daemon = conf / "node.conf", True  # it served
        self.socket = str(run / "bulkhead.sock")
        self.places = [str(place) for place in (self.dir, run, conf)]
        self.folders = {"state": self.state, **{name: self.dir / name for name in ("node", "logs", "signer")}}
        self.group = re.search(r"^cgroup_parent = /(.*)$", self.conf.read_text(), re.M)[1]

    @property
    def node(self):
        """The process bulkhead-node, or None."""
        pids = [pid for pid in self.processes("bulkhead-node") if str(self.conf) in closing.command_of(pid)]
        return types.SimpleNamespace(pid=min(pids)) if pids else None

    def node_runs(self):
        return self.node is not None

    def is_named_in(self, line, pid):
        """A process that sees these very folders, in whatever mount namespace: another may have a site in the same places."""
        return any(place in line and self.is_seen(place, pid) for place in self.places)

    def is_seen(self, place, pid):
        try:
            return os.path.samefile(place, f"/proc/{pid}/root{place}")
        except OSError:
            return False

    def online(self):
        """While it serves; its jobs are ended first."""
        self.end_jobs()
        return closing.online(self) + ([] if self.node_runs() else ["mounts: there is no bulkhead-node to look at"])

    def offline(self):
        """When it has ended."""
        return closing.offline(self)
