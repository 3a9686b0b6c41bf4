#!/usr/bin/env python3
"""Debian's Prometheus scrapes a running site, and every question of the boards is asked: those that are shipped, and
those of others that people have, where a folder beside the repository has them."""
import contextlib
import http.client
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/metrics")]
import boards
import tap
from bulkhead import PATIENCE_S, free_port
from report import Skip, note
from tap import contains, equal

OTHERS = ROOT.parent / "shared/data/boards"
PORT = free_port()
CONF = {"daemon_conf": f"https_port = {PORT}", "node_conf": "health_interval_ms = 200"}
# promtool's complaints about the vendor's own names; any other is ours.
VENDORS = (r"DCGM_\w+ label names should be written in 'snake_case' not 'camelCase'",
           r"DCGM_FI_DEV_PCIE_REPLAY_COUNTER metric name should not include type 'counter'",
           r'DCGM_\w+ counter metrics should have "_total" suffix')
TARGETS = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - &https
    job_name: bulkhead
    scheme: https
    tls_config: {{ca_file: {state}/tls.crt, insecure_skip_verify: true}}
    authorization: {{credentials: {token}}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
  - <<: *https
    job_name: bulkhead-devices
    static_configs: [{{targets: ["{node}", "nobody"]}}]
    relabel_configs:
      - {{source_labels: [__address__], target_label: __param_node}}
      - {{source_labels: [__address__], target_label: instance}}
      - {{target_label: __address__, replacement: "127.0.0.1:{port}"}}
"""


class Prometheus:
    """with Prometheus(site) as seen: it scrapes the site each second, and then each node."""

    def __init__(self, site):
        self.site, self.port = site, free_port()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="prometheus-", dir=site.dir))

    def __enter__(self):
        token = self.site.client("erin").post("/v1/tokens", {"scopes": "metrics.view"})["token"]
        node = self.site.client("erin").get("/v1/nodes")["items"][0]["name"]
        text = TARGETS.format(rules=ROOT / "packaging/prometheus/bulkhead-rules.yml", state=self.site.dir / "state", token=token, port=PORT, node=node)
        (self.folder / "prometheus.yml").write_text(text)
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                                         f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"], stdout=self.log, stderr=self.log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def said(self):
        return (self.folder / "log").read_text()

    def get(self, path, **parameters):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request("GET", f"{path}?{urllib.parse.urlencode(parameters)}")
            reply = json.loads(connection.getresponse().read())
        assert reply["status"] == "success", (parameters, reply)
        return reply["data"]

    def ask(self, expression):
        """[(labels, value)] of now."""
        data = self.get("/api/v1/query", query=expression)
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(row["metric"], float(row["value"][1])) for row in data["result"]]

    def has(self, expression):
        return any(math.isfinite(value) for _, value in self.ask(expression))

    def values(self, label, selector):
        return self.get(f"/api/v1/label/{label}/values", **({"match[]": selector} if selector else {}))

    def is_ready(self):
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port)) as connection:
            connection.request("GET", "/-/ready")
            return connection.getresponse().status == 200
        return False

    def await_scrapes(self):
        """Until rates have what they need of each target that is there."""
        self.site.until(self.is_ready, what="Prometheus")
        self.site.until(lambda: len([1 for _, n in self.ask('count_over_time(up[1m]) and up == 1') if n >= 4]) == 2, what="scrapes of both")


def board_of(name):
    path = OTHERS / f"{name}.json"
    if not path.exists():
        raise Skip(f"no {path}")
    return boards.read(path)


def panels_with_data(seen, board):
    """{title: whether it has data}"""
    values = boards.variables(board, seen.values)
    return {title: any(seen.has(boards.fill(text, values)) for text in asked) for title, asked in boards.panels(board)}


def await_panels(seen, board):
    """How many panels there are, once each has data."""
    values = boards.variables(board, seen.values)
    for title, asked in boards.panels(board):
        questions = [boards.fill(text, values) for text in asked]
        seen.site.until(lambda: any(map(seen.has, questions)), what=f"data in the panel {title}: {questions}")
    return len(boards.panels(board))


def run_jobs(site, whole=True):
    """Two jobs in instances, one on a whole GPU, one that waits; (in instances, on the GPU)."""
    small = [site.submit("sleep", "600", tenant="acme/vision/batch", client=site.client("alice")) for _ in range(2)]
    large = [site.submit("sleep", "600", tenant="acme/vision/train", sku="large", client=site.client("alice"))] if whole else []
    for job in small + large:
        site.await_state(job, "running")
    site.submit("sleep", "600", tenant="acme/vision/batch", sku="small", client=site.client("alice"))
    return small, large


def needs_prometheus():
    if not shutil.which("prometheus"):
        raise Skip("prometheus is not installed")


@tap.test(topology="3x H100-80GB", **CONF)
def every_panel(site):
    "every panel of the boards that are shipped has data; of board 12239 8 of 8; no scrape is refused or doubled"
    needs_prometheus()
    small, large = run_jobs(site)
    subprocess.run([site.program("bulkhead-simctl"), "--state", str(site.sim), "xid", "2", "31"], check=True, stdout=subprocess.DEVNULL)
    with Prometheus(site) as seen:
        seen.await_scrapes()
        for path in sorted((ROOT / "packaging/grafana").glob("*.json")):
            note(f"{path.name}: {await_panels(seen, boards.read(path))} panels, all with data")
        held = {(labels["tenant"], labels["job_id"], labels.get("GPU_I_PROFILE")) for labels, _ in seen.ask('DCGM_FI_DEV_FB_USED{job="bulkhead",job_id!=""}')}
        equal("who holds what", held, {("acme/vision/batch", str(job), "1g.10gb") for job in small} | {("acme/vision/train", str(job), None) for job in large})
        equal("a node that is not there", seen.ask('up{instance="nobody"}')[0][1], 0)
        equal("refused or doubled", [line for line in seen.said().splitlines() if "nobody" not in line], [])
        for name in ("12239", "14574"):
            if not (OTHERS / f"{name}.json").exists():
                note(f"{name}: not here")
                continue
            found = panels_with_data(seen, board_of(name))
            note(f"{name}: {sum(found.values())} of {len(found)} panels with data")
            if name == "12239":
                equal("without data", [title for title, has in found.items() if not has], [])
                equal("panels", len(found), 8)


@tap.test(topology="1x H100-80GB", **CONF)
def divided(site):
    "board 12239 has data in 8 of 8 panels on a site where all GPUs are divided: each instance has one series, whoever holds it"
    needs_prometheus()
    board = board_of("12239")
    small, _ = run_jobs(site, whole=False)
    with Prometheus(site) as seen:
        seen.await_scrapes()
        equal("panels, all with data", await_panels(seen, board), 8)
        values = boards.variables(board, seen.values)
        for title, asked in boards.panels(board):
            rows = seen.ask(boards.fill(asked[0], {**values, "instance": f"127.0.0.1:{PORT}"}))
            instances = [(labels["GPU_I_ID"], labels["GPU_I_PROFILE"]) for labels, _ in rows if "GPU_I_ID" in labels]
            if title in ("GPU Utilization", "GPU Framebuffer Mem Used", "Tensor Core Utilization"):
                equal(f"{title}: series", (len(rows), len(set(instances)) >= len(small)), (len(instances), True))
                equal(f"{title}: each once", len(instances), len(set(instances)))


@tap.test(topology="2x H100-80GB", **CONF)
def default_families(site):
    "all 25 families that the DCGM exporter collects by default are there, and promtool finds nothing but the vendor's names"
    run_jobs(site)
    site.until(lambda: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" in site.cli("erin", "metrics").stdout, what="a second sample")
    text = site.cli("erin", "metrics", check=0).stdout
    counters = OTHERS / "default-counters.csv"
    if counters.exists():
        wanted = re.findall(r"^(DCGM_\w+) *, *(?:gauge|counter),", counters.read_text(), re.M)
        equal("of default-counters.csv", len(wanted), 25)
        equal("families that are missing", [name for name in wanted if f"# TYPE {name} " not in text], [])
    contains("the label counter", text, 'DCGM_FI_DRIVER_VERSION="')
    if not shutil.which("promtool"):
        raise Skip("promtool is not installed")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    equal("complaints", [line for line in (done.stdout + done.stderr).splitlines() if not any(re.fullmatch(known, line) for known in VENDORS)], [])


@tap.test(topology="1x H100-80GB", daemon_conf="metrics_host_label = Hostname")
def host_label(site):
    "the label of the node is spelled as bulkheadd.conf says"
    text = site.until(lambda: (lambda said: "DCGM_FI_DEV_SM_CLOCK" in said and said)(site.cli("erin", "metrics").stdout), what="a sample")
    assert 'Hostname="' in text and 'hostname="' not in text, text[:2000]


tap.main()
