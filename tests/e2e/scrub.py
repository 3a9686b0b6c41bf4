#!/usr/bin/env python3
"""What one tenant leaves in a GPU's memory, another never reads: docs/scrub.md."""
import hashlib
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from bulkhead import has_thread_sanitizer, python_beside
from tap import contains, equal

FULL = tap.SITE.replace("principals:", """  - name: full
    grade: C
    models: [{model: H100-80GB, profile: 7g.80gb}]
    cpu: "1"
    memory: 256Mi

principals:""", 1)
SHARES = tap.SITE.replace("managed: true}", "managed: true, shared: true}").replace("""skus:
""", """skus:
  - name: quarter
    grade: F
    models: [{model: H100-80GB, share: 25%, memory: 18Gi, rounding: up}]
    cpu: "0.1"
    memory: 256Mi
""", 1)
CANARY = "WEIGHTS-OF-ALICE"
A, B = "acme/vision/batch", "acme/speech/asr"

# Take 4 GiB; count the pages that hold something; leave the canary in each 64th.
TOUCH = """
import ctypes as c
l = c.CDLL("libcuda.so.1")
x, p, size = c.c_void_p(), c.c_uint64(), 4 << 30
for rc in (l.cuInit(0), l.cuDevicePrimaryCtxRetain(c.byref(x), 0), l.cuCtxSetCurrent(x), l.cuMemAlloc_v2(c.byref(p), c.c_size_t(size))):
    assert rc == 0, rc
b, found = c.create_string_buffer(64), set()
for at in range(0, size, 2 << 20):
    assert l.cuMemcpyDtoH_v2(b, c.c_uint64(p.value + at), c.c_size_t(64)) == 0
    if any(b.raw):
        found.add(b.value.decode())
    if at % (128 << 20) == 0:
        assert l.cuMemcpyHtoD_v2(c.c_uint64(p.value + at), WORD, c.c_size_t(len(WORD))) == 0
print("found", sorted(found))
"""


# Take all memory there is; count the pages that hold the canary; leave WORD in each page.
TAKE_ALL = """
import ctypes as c
l = c.CDLL("libcuda.so.1")
x, b, taken = c.c_void_p(), c.create_string_buffer(64), []
for rc in (l.cuInit(0), l.cuDevicePrimaryCtxRetain(c.byref(x), 0), l.cuCtxSetCurrent(x)):
    assert rc == 0, rc
for size in (1 << 30, 64 << 20, 2 << 20):
    p = c.c_uint64()
    while l.cuMemAlloc_v2(c.byref(p), c.c_size_t(size)) == 0:
        taken += range(p.value, p.value + size, 2 << 20)
found = 0
for at in taken:
    assert l.cuMemcpyDtoH_v2(b, c.c_uint64(at), c.c_size_t(64)) == 0
    found += b.raw.startswith(CANARY)
    assert not WORD or l.cuMemcpyHtoD_v2(c.c_uint64(at), WORD, c.c_size_t(len(WORD))) == 0
print(len(taken) >> 9, "GiB,", found, "pages of the canary")
"""


def with_cuda(site, rules="gpu=0 leak\n"):
    if has_thread_sanitizer(site.bin / "libcuda.so.1"):
        raise tap.Skip("a scrub's helper does not run with ThreadSanitizer")
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")
    (site.sim / "control").write_text(rules)


def touch(site, tenant, sku, word):
    python = python_beside(site.dir / "lib/libcuda.so.1")
    job, log = site.run(*python, "-c", TOUCH.replace("WORD", repr(word.encode())), tenant=tenant, sku=sku)
    equal("job", (job["state"], log[-200:] if job["state"] != "completed" else ""), ("completed", ""))
    return job["id"], log.strip()


def take_all(site, word, **spec):
    """Submit that."""
    python = python_beside(site.dir / "lib/libcuda.so.1")
    return site.submit(*python, "-c", TAKE_ALL.replace("CANARY", repr(CANARY.encode())).replace("WORD", repr(word.encode())), **spec)


def said_by(site, job):
    ended = site.await_state(job, "completed", "failed", "evicted", "cancelled")
    equal("job", (ended["state"], site.log(job)[-200:] if ended["state"] != "completed" else ""), ("completed", ""))
    return site.log(job).strip()


def receipts(site, who, *what):
    return json.loads(site.cli(who, "receipts", *map(str, what), "-o", "json", check=0).stdout)["items"]


def passes(site, sku):
    """A job of alice's tenant leaves the canary where bob's job comes next; returns both."""
    with_cuda(site)
    first, said = touch(site, A, sku, CANARY)
    equal("the first", said, "found []")
    again, said = touch(site, A, sku, CANARY)
    equal("its own tenant's next, on a driver that clears nothing", said, f"found ['{CANARY}']")
    other, said = touch(site, B, sku, "BOB")
    equal("another tenant's", said, "found []")
    return again, other


@tap.test(topology="1x H100-80GB", site=FULL)
def instance(site):
    """what a job left in an instance's memory is found and cleared before another tenant's job has it,
    and the receipt is shown to both, each with what it may see"""
    left, got = passes(site, "full")
    before, = receipts(site, "bob", got)
    equal("bob's", (before["method"], before["result"], before["driver_scrub"]), ("fill", "clean", "on"))
    equal("what was found", before["residue"], 32)
    equal("whose it was", before["from"], [{"tenant": "other tenants"}])
    equal("its owner", (before["tenant"], before["job"]), (B, got))
    assert before["samples"] > 39000 and before["bytes"] == before["samples"] << 21, before
    after = receipts(site, "alice", left)[-1]
    equal("alice's", (after["id"], after["digest"]), (before["id"], before["digest"]))
    equal("who has it now", (after["tenant"], "job" in after), ("another tenant", False))
    assert CANARY not in json.dumps(after)
    told = site.cli("dave", "describe", str(got), check=0).stdout
    equal("as its GPU and once in the receipt, also for who sees the whole site", told.count(before["gpu"]), 2)
    told = site.cli("bob", "describe", str(got), check=0).stdout
    for part in ("clean", before["digest"], "fill"):
        contains("described", told, part)
    contains("listed", site.cli("dave", "receipts", check=0).stdout, "fill")
    gpu = receipts(site, "dave")[0]["gpu"]
    equal("by the beginning of a GPU's name", receipts(site, "dave", gpu[:12]), receipts(site, "dave", gpu))
    equal("no such GPU", site.cli("dave", "receipts", "GPU-00000000").returncode, 3)


@tap.test(topology="1x H100-80GB")
def whole(site):
    """the same for whole GPUs; the record has the receipt's digest and is proved to be in the log"""
    left, got = passes(site, "large")
    shown, = receipts(site, "dave", got)
    equal("whose it was", shown["from"], [{"job": left, "tenant": A}])
    digest = hashlib.sha256(json.dumps(shown["receipt"], separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
    equal("digest", shown["digest"], digest)
    leaf = site.leaves(shown["record"] - 1)[0]
    equal("record", (leaf["seq"], leaf["verb"], leaf["text"], leaf["res"]), (shown["record"], "node.scrubbed", digest, "ok"))
    place = str(shown["receipt"]["gpu"])
    equal("by GPU", [r["id"] for r in receipts(site, "dave", place)][-1], shown["id"])
    proof = site.until(lambda: site.cli("dave", "audit", "prove", str(shown["record"])).stdout, what="a checkpoint")
    contains("proof", proof, f"index {shown['record']}")


def all_at_once(site, count, sku):
    """That many jobs of alice's tenant, of which each has memory while the others have."""
    jobs = [site.submit("sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait", tenant=A, sku=sku) for _ in range(count)]
    for job in jobs:
        site.await_state(job, "running")
    for job in jobs:
        site.client().post(f"/v1/jobs/{job}/cancel")
    for job in jobs:
        site.await_state(job, "cancelled", "completed")
    return jobs


def scrubs(site, jobs):
    return [[(r["method"], r["result"]) for r in receipts(site, "alice", job) if r.get("job") == job] for job in jobs]


CLEAN, NONE = [("fill", "clean")], []
SEVEN = SHARES.replace('cpu: "0.5"', 'cpu: "0.1"').replace('cpu: "1"', 'cpu: "0.5"')


@tap.test(topology="1x H100-80GB", site=SEVEN)
def gaps(site):
    """what the scrubs of small pieces leave out is scrubbed before a larger piece is made of them, for the same
    tenant, too, and its receipt names who had it before; pieces as they were before are not scrubbed again"""
    with_cuda(site)
    left = take_all(site, CANARY, tenant=B, sku="large")
    contains("the first", said_by(site, left), " 0 pages")
    equal("seven small ones", scrubs(site, all_at_once(site, 7, "small")), [CLEAN] * 7)
    equal("and again", scrubs(site, all_at_once(site, 7, "small")), [NONE] * 7)
    large = [take_all(site, "", tenant=A, sku="medium") for _ in range(2)]
    equal("larger ones", [said_by(site, job).split(",")[1] for job in large], [" 0 pages of the canary"] * 2)
    equal("their receipts", scrubs(site, large), [CLEAN] * 2)
    for job in large:
        own, = [r for r in receipts(site, "dave", job) if r["job"] == job]
        assert {"job": left, "tenant": B} in own["from"] and any(f.get("tenant") == A for f in own["from"]), own["from"]
    again = take_all(site, "", tenant=A, sku="medium")
    contains("another", said_by(site, again), " 0 pages")
    equal("of the same shape", scrubs(site, [again]), [NONE])
    whole = take_all(site, "", tenant=A, sku="large")
    contains("the whole GPU, its mode switched", said_by(site, whole), " 0 pages")
    equal("its receipt", scrubs(site, [whole]), [CLEAN])
    own, = [r for r in receipts(site, "dave", whole) if r["job"] == whole]
    assert any(f.get("tenant") == B for f in own["from"]), own["from"]
    def again(sku):
        return scrubs(site, [site.run("true", tenant=A, sku=sku)[0]["id"]])[0]
    equal("a share has the memory of the whole GPU", again("quarter"), NONE)
    equal("small again, and a share of that", [again("small"), again("small"), again("quarter")], [CLEAN, NONE, CLEAN])


@tap.test(topology="1x H100-80GB")
def record_of_work(site):
    """what a job writes into the files of the simulated driver's own state is not there for another tenant's"""
    with_cuda(site)
    def at(tenant, script):
        job, log = site.run("sh", "-c", f"cd /run/bulkhead-sim/vram; {script}", tenant=tenant, sku="large")
        equal("job", (job["state"], log if job["state"] != "completed" else ""), ("completed", ""))
        return log.strip()
    at(A, f"for f in work 0 3; do printf {CANARY} | dd of=$f bs=1 seek=1000000 conv=notrunc 2>/dev/null || exit 1; done")
    equal("found", at(B, f"for f in work 0 3; do head -c 2000000 $f | grep -c {CANARY}; done; true"), "0\n0\n0")


def cleaned_for_one_that_is_cancelled(site):
    """A job of bob's for which alice's memory is scrubbed, and that is cancelled meanwhile."""
    def count(words):
        return (site.dir / "node.log").read_text().count(words)

    for _ in range(5):
        touch(site, A, "large", CANARY)
        destroyed, scrubbed = count("instance destroyed"), count("memory scrubbed before")
        job = site.submit("sleep", "60", tenant=B, sku="large")
        site.until(lambda: count("instance destroyed") > destroyed, what="the end of alice's piece")
        site.client().post(f"/v1/jobs/{job}/cancel")
        site.await_state(job, "cancelled")
        site.until(lambda: count("memory scrubbed before") > scrubbed, what="the scrub")
        if f"job={job}\n" not in (site.dir / "node.log").read_text():
            return job
    raise tap.Skip("the job begins too soon to be cancelled before")


@tap.test(topology="1x H100-80GB")
def cancelled(site):
    """a job on memory that was scrubbed for another tenant's, which never began, shows a receipt of its own,
    and the scrub that this refers to"""
    with_cuda(site)
    never = cleaned_for_one_that_is_cancelled(site)
    scrub = [r for r in receipts(site, "dave", never) if r["job"] == never][-1]
    equal("the scrub", (scrub["method"], scrub["result"], scrub["tenant"]), ("fill", "clean", B))
    got, said = touch(site, A, "large", CANARY)
    equal("what it finds", said, "found []")
    shown = receipts(site, "alice", got)
    own, = [r for r in shown if r.get("job") == got]
    equal("its own", (own["method"], own["result"], own["by"], own["tenant"]), ("earlier", "clean", [{"id": scrub["id"]}], A))
    other, = [r for r in shown if r["id"] == scrub["id"]]
    equal("the scrub, as it is shown", (other["digest"], other["tenant"], "job" in other), (scrub["digest"], "another tenant", False))
    described = site.cli("alice", "describe", str(got), check=0).stdout
    contains("described", described, scrub["digest"])
    contains("described", described, own["digest"])
    equal("without names", B in described, False)


@tap.test(topology="1x H100-80GB", site=FULL, node_conf="scrub_timeout_ms = 20000")
def unclean(site):
    """memory that does not take the fill is lent to no job: the job waits, the GPU shows it, the log reports it;
    without libcuda.so.1 the receipt says that nothing was sampled"""
    site.announce("memory is not clean")
    job, _ = site.run("true", tenant=A, sku="full")
    said = receipts(site, "alice", job["id"])[0]
    equal("without the library", (said["method"], said["result"], said["samples"]), ("recreate", "unsampled", 0))
    contains("why", said["why"], "no libcuda.so.1")
    with_cuda(site, "gpu=0 stuck\n")
    waiting = site.submit("true", tenant=B, sku="full")
    site.until(lambda: [p for g in site.client().get("/v1/gpus")["items"] for p in g["partitions"] if p["state"] == "quarantined"],
               what="a quarantined piece")
    failed = receipts(site, "dave")[-1]
    equal("receipt", (failed["result"], failed["unfilled"], failed["tries"]), ("failed", 1, 2))
    leaf = site.leaves(failed["record"] - 1)[0]
    equal("record", (leaf["verb"], leaf["res"]), ("node.scrubbed", "io"))
    equal("job", site.job(waiting)["state"], "pending")
    why = site.cli("bob", "why", str(waiting), check=0).stdout
    contains("why", why, "could not be scrubbed")
    contains("its GPU", why, site.client().get("/v1/gpus")["items"][0]["uuid"])


def results(site, job):
    return [(r["result"], [f["tenant"] for f in r["from"]]) for r in receipts(site, "dave", job) if r["job"] == job]


@tap.test(topology="1x H100-80GB", site=SHARES)
def share(site):
    """a share's memory passes on scrubbed: whole when no job runs, whichever job had the slot; in part beside others"""
    with_cuda(site)
    first, said = touch(site, A, "quarter", CANARY)
    equal("the first", said, "found []")
    other, said = touch(site, B, "quarter", "BOB")
    equal("of a department that is kept apart", said, "found []")
    equal("its receipt, beside an idle slot", results(site, other), [("clean", [A])])
    again, said = touch(site, A, "quarter", CANARY)
    equal("the first tenant, in the slot that it had", said, "found []")
    equal("its receipt", results(site, again), [("clean", [B])])
    running = site.submit("sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait", tenant=A, sku="quarter")
    site.await_state(running, "running")
    beside, said = touch(site, "acme/vision/train", "quarter", "TRAIN")
    equal("beside one of its department", said, "found []")
    shown, = [r for r in receipts(site, "dave", beside) if r["job"] == beside]
    equal("its receipt", (shown["result"], shown["method"]), ("partial", "fill"))
    contains("what it covers", shown["why"], " leases that share the GPU used the rest")
    equal("how many", (shown["neighbors"], "neighbors" in receipts(site, "alice", beside)[0]), (1, False))
    assert 50 << 30 < shown["bytes"] < 62 << 30, shown["bytes"]
    waiting = site.submit("true", tenant=B, sku="quarter")
    site.until(lambda: site.job(waiting)["reason"] == "boundary", what="the wait for an empty GPU")
    site.client().post(f"/v1/jobs/{running}/cancel")
    site.await_state(waiting, "completed")
    equal("whole", results(site, waiting)[0][0], "clean")
    log = (site.dir / "node.log").read_text()
    contains("the log", log, "memory scrubbed in part before another tenant gets it")
    equal("nothing is claimed that was not done", "not scrubbed" in log, False)


tap.main()
