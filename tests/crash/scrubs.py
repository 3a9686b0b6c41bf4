"""Memory of GPUs that passes between tenants while programs are killed: what jobs find in it, and whether the
journal has a receipt wherever one is due."""
import hashlib
import json
import shutil

import tap
from bulkhead import python_beside

# The smallest board that has instances: whole, it is filled in a third of the time of an H100.
SITE = tap.SITE.replace("H100-80GB", "A30-24GB").replace("1g.10gb", "1g.6gb").replace("3g.40gb", "2g.12gb")
TOPOLOGY = "2x A30-24GB"
UNITS = {"1g.6gb": 1, "2g.12gb": 2, "whole": 4}  # of memory

# Look at the first 64 bytes of each page of 256 MiB, and leave one's own name there.  The driver clears
# nothing, so that what an own earlier job left is found, and another tenant's would be.
TOUCH = """
import ctypes as c, os
l = c.CDLL('libcuda.so.1')
x, p, size = c.c_void_p(), c.c_uint64(), 256 << 20
for rc in (l.cuInit(0), l.cuDevicePrimaryCtxRetain(c.byref(x), 0), l.cuCtxSetCurrent(x), l.cuMemAlloc_v2(c.byref(p), c.c_size_t(size))):
    assert rc == 0, rc
b, own, found = c.create_string_buffer(64), os.environ['BULKHEAD_TENANT'].encode(), set()
for at in range(0, size, 2 << 20):
    assert l.cuMemcpyDtoH_v2(b, c.c_uint64(p.value + at), c.c_size_t(64)) == 0
    if any(b.raw):
        found.add(b.value.decode(errors='replace'))
    assert l.cuMemcpyHtoD_v2(c.c_uint64(p.value + at), own, c.c_size_t(len(own))) == 0
print('found', sorted(found))
"""


def prepare(site):
    """The simulated libcuda.so.1 where node and jobs look for it."""
    shutil.copy(site.bin / "libcuda.so.1", site.dir / "lib")


def script(site, run):
    """What a job runs to look at its memory and write its tenant's name there."""
    python = " ".join(python_beside(site.bin / "libcuda.so.1"))
    return f'r={run}; echo start $r; {python} -c "{TOUCH}" && echo end $r'


def receipts(site):
    client, after, found = site.client("dave"), 0, []
    while True:
        page = client.get(f"/v1/receipts?limit=10000&after={after}")
        found += page["items"]
        if "next" not in page:
            return found
        after = page["next"]


def check(site, jobs, found):
    """Findings of all that was said above; returns how many receipts there are, and how many looks."""
    kept, leaves = receipts(site), site.leaves()
    check_receipts(kept, leaves, found)
    check_memory(kept, found)
    check_said(site, kept, found)
    earlier = {receipt["record"] for receipt in kept if receipt["method"] == "earlier"}  # which scrubbed nothing
    check_order([leaf for leaf in leaves if leaf["seq"] not in earlier], widths(kept, leaves), found)
    return len(kept), check_looks(site, jobs, found)


def check_receipts(kept, leaves, found):
    """Each receipt has its record with its digest, and each record its receipt."""
    records = {r["seq"]: r for r in leaves if r["verb"] == "node.scrubbed"}
    for receipt in kept:
        text = json.dumps(receipt["receipt"], separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(text.encode()).hexdigest()
        record = records.pop(receipt["record"], None)
        found.check("a receipt has its digest", digest == receipt["digest"], receipt["id"])
        found.check("a receipt has its record", record is not None and record["text"] == digest
                    and (record["res"] == "ok") == (receipt["result"] == "clean"), receipt["id"], record)
    found.check("a record of a scrub has its receipt", not records, list(records))


def check_memory(kept, found):
    """No memory is bad here, so no receipt says so: a scrub whose helper or node was killed is repeated."""
    for receipt in kept:
        found.check("no receipt of bad memory", receipt["result"] != "failed", receipt["id"], receipt.get("why"))


def check_said(site, kept, found):
    """The node says each scrub that it ended in its log, too: none of a piece is without a receipt."""
    said = []
    for line in (site.dir / "node.log").read_text(errors="replace").splitlines():
        if " partition=" in line and ("memory scrubbed before" in line or "memory is not clean" in line or "a scrub did not end" in line):
            said.append(int(line.split(" partition=")[1].split()[0]))
    found.check("the node says its scrubs", said)
    for piece in set(said):
        have = len([r for r in kept if r["piece"] == piece])
        found.check("every scrub has its receipt", said.count(piece) <= have, f"piece {piece}: {said.count(piece)} scrubs, {have} receipts")


def placements(leaf):
    """Decisions that give a lease pieces; a reservation is of none yet."""
    return [d for d in leaf.get("do") or [] if "lease" in d and d.get("pieces")]


def placed(leaf):
    return [piece for decision in placements(leaf) for piece in decision["pieces"]]


def widths(kept, leaves):
    """Units of each profile by its number in the journal: receipts have the names."""
    names = {receipt["piece"]: receipt["profile"] for receipt in kept}
    return {piece["profile"]: UNITS[names[piece["partition"]]] for leaf in leaves for piece in placed(leaf)
            if piece["partition"] in names}


def check_order(leaves, width_of, found):
    """By the journal alone: no lease begins, or goes on, on memory that another tenant's lease had since the last
    receipt of a clean scrub."""
    tenants, leases, places, holder = {}, {}, {}, {}
    for leaf in leaves:
        event = leaf.get("ev") or {}
        if "submit" in event:
            tenants[event["submit"]["job"]] = event["submit"]["tenant"]
        if leaf["verb"] == "node.scrubbed" and leaf["res"] == "ok":
            holder.update({unit: None for unit in places.get(leaf["obj"]["id"], ())})
        for piece in placed(leaf):
            first = piece.get("start", 0)
            places[piece["partition"]] = [(piece["gpu"], unit) for unit in range(first, first + width_of[piece["profile"]])]
        for decision in placements(leaf):
            owner = tenants.get(decision.get("job"), leases.get(decision["lease"], (None,))[0])
            leases[decision["lease"]] = (owner, [p["partition"] for p in decision["pieces"]])
        for word in ("started", "resumed"):
            if word in event and event[word].get("outcome", "ok") == "ok":
                tenant, pieces = leases[event[word]["lease"]]
                for unit in (u for p in pieces for u in places[p]):
                    found.check("a scrub before another tenant", holder.get(unit) in (None, tenant),
                                f"record {leaf['seq']}: {unit} was {holder.get(unit)}'s, now {tenant}'s")
                    holder[unit] = tenant


def check_looks(site, jobs, found):
    """What jobs found in their memory is their own tenant's or nothing."""
    looks = 0
    for job in jobs.values():
        if not job["name"].startswith("looking"):
            continue
        for line in site.log(job["id"]).splitlines():
            if line.startswith("found "):
                looks += 1
                found.check("nothing of another tenant's", line in ("found []", f"found ['{job['tenant']}']"), job["id"], line)
    return looks
