#!/usr/bin/env python3
"""Nothing that a server says reaches the terminal unseen: control characters, what turns the order
of writing, what hides.  A server whose every text has one of each; in JSON and YAML they come
escaped, and are read back the same.  TAP on standard output.

usage: shown_test.py BULKHEAD
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from login_test import Server

HIDDEN = "\u001b[31m\u202e\ufe0f\u3164\ue000\U000e0041\u009b\u0085"
BAD = f"x{HIDDEN}y"
UNSEEN = [c for c in HIDDEN if c not in "[31m"]

GPU = {"gpu": BAD, "index": 0, "model": BAD, "node": BAD, "uuid": BAD, "state": BAD, "partitions": [], "unmanaged_why": BAD,
       "unmanaged_fix": BAD}
JOB = {"job": 1, "id": 1, "tenant": BAD, "name": BAD, "state": BAD, "sentence": BAD, "next": BAD, "reason": BAD, "gpu": BAD,
       "assumption": BAD}
SITE = {"changes": [BAD], "change_count": 1, "removes": [BAD], "warnings": [BAD]}
ROUTES = {
    "GET /v1/layouts": {"items": [{"node": BAD, "gpu": BAD, "model": BAD, "index": 0, "name": BAD, "layout": BAD}]},
    "GET /v1/defrag": {"mode": BAD, "sentence": BAD, "now_ns": "1", "assumption": BAD, "plan": {
        "token": BAD, "moves": [{"job": 1, "tenant": BAD, "from": [{"profile": BAD, "gpu": BAD}], "to": [{"profile": BAD, "gpu": BAD}]}],
        "empties": BAD}},
    "GET /v1/site/diff?from=1": SITE,
    "GET /v1/site": {"tenants": [{"name": BAD}], BAD: BAD},
    "GET /v1/site/revisions": {"items": [{"revision": 1, "by": BAD, "principal": BAD, "applied_ns": "1", "changes": 1}]},
    "GET /v1/nodes": {"items": [{"node": BAD, "name": BAD, "driver": BAD, "state": BAD, "version": BAD, "gpus": [GPU]}]},
    "GET /v1/gpus": {"items": [GPU, {**GPU, "node": "n"}]},
    "POST /v1/whatif": {"site": SITE, "job": JOB, "changes": [{**JOB, "kind": BAD, "for": BAD}], "assumption": BAD, "complete": True,
                        "changes_of_other_tenants": {BAD: 1}},
    "POST /v1/layouts/diff": {"items": [{**GPU, "create": [BAD], "destroy": [BAD], "keep": [BAD], "waits": [{"partition": BAD, "job": 1}]}]},
    "POST /v1/cordon": {"target": BAD},
    "POST /v1/uncordon": {"target": BAD},
    "POST /v1/verify?node=n": {"asked": 1, "verdicts": [{"node": BAD, "checks": [{"result": BAD, "name": BAD, "answer": BAD}]}]},
    "GET /v1/jobs/1/why": JOB,
    "GET /v1/jobs/1": JOB,
}
COMMANDS = ["defrag", "site diff 1", "site history", "site show", "get nodes", "get gpus", "whatif cancel 1", "why 1",
            "describe job 1", "layout get", "layout diff FILE", "node", "cordon n", "uncordon n", "verify n"]
FAILING = {"verify n"}  # its exit status is the verdict


def main():
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(f"{folder}/socket")
        server.routes = ROUTES
        layout = pathlib.Path(folder, "layout.json")
        layout.write_text('{"gpus": []}')
        for command in COMMANDS:
            for how in ("table", "wide", "json", "yaml"):
                done = subprocess.run([sys.argv[1], "--socket", f"{folder}/socket", *command.replace("FILE", str(layout)).split(" "), "-o", how], capture_output=True,
                                      timeout=60)
                said = (done.stdout + done.stderr).decode()
                seen = sorted({f"U+{ord(c):04X}" for c in said if c in UNSEEN})
                good = not seen and done.stdout
                good = good and (done.returncode == 0 or command in FAILING)
                if how == "json" and done.returncode == 0 and done.stdout:
                    good = good and BAD in str_of(json.loads(done.stdout))
                count += 1
                print(f"{'ok' if good else 'not ok'} {count} - {command} -o {how}: status {done.returncode}")
                if not good:
                    print(f"# {seen}\n# {said!r}"[:1500])
    print(f"1..{count}")


def str_of(value):
    """All texts of a document, one behind the other."""
    if isinstance(value, dict):
        return "".join(str(key) + str_of(member) for key, member in value.items())
    return "".join(map(str_of, value)) if isinstance(value, list) else str(value)


main()
