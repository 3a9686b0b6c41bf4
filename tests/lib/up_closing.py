"""The closing audit of a site that `bulkhead up` made: of the demo (tools/closing-audit), and of the
README's first job."""
import os
import pathlib
import re

import closing
from bulkhead import Site

MOUNTS = "/proc/{}/ns/mnt"


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
        self.socket = str(run / "bulkhead.sock")
        self.places = [str(place) for place in (self.dir, run, conf)]
        self.group = re.search(r"^cgroup_parent = /(.*)$", (conf / "node.conf").read_text(), re.M)[1]

    def node_runs(self):
        return True

    def is_named_in(self, line, pid):
        """In this mount namespace: another may have a site in the same places."""
        return any(place in line for place in self.places) and os.readlink(MOUNTS.format(pid)) == os.readlink(MOUNTS.format("self"))

    def online(self):
        """While it serves; its jobs are ended first."""
        self.end_jobs()
        return closing.online(self)

    def offline(self):
        """When it has ended."""
        return closing.offline(self)
