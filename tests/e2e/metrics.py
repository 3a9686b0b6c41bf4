#!/usr/bin/env python3
"""GET /metrics on a running site: what a scraper reads, who sees what, and what outlives a restart."""
import http.client
import pathlib
import re
import ssl
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/metrics")]
import exposition
import tap
from bulkhead import PATIENCE_S, free_port
from tap import contains, equal

OPEN = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
BATCH = 'tenant="acme/vision/batch"'


PORT = free_port()


def scrape(site, person):
    """{(name, labels): value}, as a scraper without and with OpenMetrics gets them."""
    shown = {}
    for accept in ("", OPEN):
        status, head, text = site.client(person).exchange("GET", "/metrics", headers={"Accept": accept})
        equal("status", status, 200)
        contains("type", head["Content-Type"], "application/openmetrics-text; version=1.0.0" if accept else "text/plain; version=0.0.4")
        shown[accept] = exposition.read(text, bool(accept))[1]
    equal("series", *(lasting(series) for series in shown.values()))
    return shown[OPEN]


def lasting(series):
    """Those that do not come with a sample of the node between two scrapes."""
    return {key for key in series if not key[0].startswith(("DCGM_", "bulkhead_job_", "bulkhead_queue_oldest", "bulkhead_audit_checkpoint"))}


def tenants(series):
    return {value for _, labels in series for name, value in labels if name == "tenant"}


@tap.test(topology="2x H100-80GB")
def numbers(site):
    "a job shows in its tenant's numbers while it runs, all parts are somewhere, and the CLI prints the same names"
    site.submit("sleep", "600", tenant="acme/vision/batch", client=site.client("alice"))
    site.await_state(1, "running")
    site.until(lambda: any(name == "bulkhead_job_memory_bytes" for name, _ in scrape(site, "erin")), what="a sample")
    series = scrape(site, "erin")
    batch = ("tenant", "acme/vision/batch")
    equal("running", series["bulkhead_jobs", (("state", "running"), batch)], 1)
    equal("leases", series["bulkhead_leases", (("grade", "C"), batch)], 1)
    equal("parts", series["bulkhead_tenant_parts", (("dimension", "compute"), batch)], 600)
    for dimension in ("compute", "memory"):
        of = [v for (name, labels), v in series.items() if name == "bulkhead_parts" and ("dimension", dimension) in labels]
        equal(f"{dimension} of two GPUs", sum(of), 8400)
    assert series["bulkhead_commit_seconds_count", ()] > 0, series
    assert series["bulkhead_scrubs_total", (("method", "recreate"), ("result", "unsampled"))] > 0, series
    equal("FB_TOTAL", {v for (name, _), v in series.items() if name == "DCGM_FI_DEV_FB_TOTAL"}, {81559})
    printed = site.cli("erin", "metrics", check=0).stdout
    equal("the CLI's", lasting(exposition.read(printed)[1]), lasting(series))
    page = (ROOT / "docs/metrics.md").read_text()
    equal("not on the page", [name for name in re.findall(r"^# TYPE (\S+)", printed, re.M) if f"| `{name}` |" not in page], [])
    site.cli("alice", "cancel", "1", check=0)
    site.await_state(1, "cancelled")
    equal("gone with the job", [key for key in scrape(site, "erin") if ("job_id", "1") in key[1]], [])


@tap.test(topology="1x H100-80GB", daemon_conf=f"https_port = {PORT}")
def who(site):
    "one sees one's tenants' series alone; a scraper's token does that and nothing else"
    site.submit("sleep", "600", tenant="acme/vision/batch")
    site.await_state(1, "running")
    equal("alice", tenants(scrape(site, "alice")), {"acme/vision/train", "acme/vision/batch"})
    equal("bob", tenants(scrape(site, "bob")), {"acme/speech/asr"})
    equal("bob's devices", [name for name, labels in scrape(site, "bob") if ("tenant", "acme/speech/asr") not in labels], [])
    equal("alice's devices", {labels for name, labels in scrape(site, "alice") if name.startswith("DCGM") and ("job_id", "1") not in labels}, set())
    token = site.client("erin").post("/v1/tokens", {"principal": "alice", "scopes": "metrics.view"})["token"]
    context = ssl.create_default_context(cafile=str(site.dir / "state/tls.crt"))
    context.check_hostname = False
    for path, secret, status in (("/metrics", token, 200), ("/v1/jobs", token, 403), ("/metrics", "bh_x", 401)):
        https = http.client.HTTPSConnection("127.0.0.1", PORT, timeout=PATIENCE_S, context=context)
        https.request("GET", path, headers={"Authorization": f"Bearer {secret}"})
        reply = https.getresponse()
        text = reply.read().decode()
        equal(path, reply.status, status)
        if status == 200:
            equal("by the token", tenants(exposition.read(text)[1]), {"acme/vision/train", "acme/vision/batch"})
        https.close()
    other = site.client("erin").post("/v1/tokens", {"scopes": "job.view"})["token"]
    status, _, text = site.client("erin").exchange("GET", "/metrics", headers={"Authorization": f"Bearer {other}"})
    equal("another scope", status, 403)
    contains("and what is missing", text, "metrics.view")


def mapping(site):
    """{file: [job]} of the folder that a dcgm-exporter reads."""
    folder = site.dir / "mapping"
    return {file.name: [int(line) for line in file.read_text().split()] for file in folder.iterdir() if not file.name.endswith(".new")}


@tap.test(topology="2x H100-80GB")
def job_mapping(site):
    "files for an exporter beside the node name the jobs on each GPU and instance, and go when they are free"
    small = site.submit("sleep", "600", tenant="acme/vision/batch", client=site.client("alice"))
    large = site.submit("sleep", "600", tenant="acme/vision/train", sku="large", client=site.client("alice"))
    for job in (small, large):
        site.await_state(job, "running")
    gpus = {gpu["index"]: gpu for gpu in site.client("erin").get("/v1/gpus")["items"]}
    on = {part["job"]: index for index, gpu in gpus.items() for part in gpu["partitions"] if part.get("job")}
    text = site.until(lambda: (lambda said: f'job_id="{small}"' in said and "GPU_I_ID" in said and said)(site.cli("erin", "metrics").stdout), what="a sample")
    gi = re.search(rf'^DCGM_FI_DEV_FB_USED{{gpu="{on[small]}",.*GPU_I_ID="(\d+)".*job_id="{small}"', text, re.M).group(1)
    wanted = {f"{on[small]}.{gi}": [small], str(on[large]): [large]}
    site.until(lambda: mapping(site) == wanted, what=f"{wanted}")
    (site.dir / "mapping/3.9").write_text("99\n")  # of before a crash
    for job in (small, large):
        site.cli("alice", "cancel", str(job), check=0)
    site.until(lambda: not mapping(site), what="an empty folder")


@tap.test(topology="1x H100-80GB")
def xids(site):
    "an XID is counted by its number within the window"
    simctl = [site.program("bulkhead-simctl"), "--state", str(site.sim)]
    for _ in range(2):
        subprocess.run([*simctl, "xid", "0", "13"], check=True, stdout=subprocess.DEVNULL)
    found = site.until(lambda: [(dict(labels), value) for (name, labels), value in scrape(site, "erin").items()
                                if name == "DCGM_EXP_XID_ERRORS_COUNT" and value == 2], what="a count of two")
    equal("labels", [(labels["gpu"], labels["xid"], labels["window_size_in_ms"]) for labels, _ in found], [("0", "13", "300000")])


tap.main()
