#!/usr/bin/env python3
"""OCI images on a running site, as a user has them."""
import atexit
import os
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
import oci
import tap
from registry import Registry
from tap import contains, equal

TRAIN, BATCH, ASR = "acme/vision/train", "acme/vision/batch", "acme/speech/asr"
NODE = {"topology": "1x H100-80GB", "node_conf": "image_roots = /tmp\nimages_cap_mib = 64"}
REGISTRY = Registry(None)   # its port stands in node.conf
ASIDE = pathlib.Path(tempfile.mkdtemp(prefix="bulkhead-images-"))
atexit.register(shutil.rmtree, ASIDE, ignore_errors=True)
ASIDE.chmod(0o755)
HELD_UP = {**NODE, "node_conf": f"{NODE['node_conf']}\numoci = {ASIDE}/umoci"}
# An umoci that has unpacked all and does not end as long as a file stands in its folder.
(ASIDE / "umoci").write_text(f"""#!/bin/sh
{shutil.which("umoci")} "$@"
status=$?
: > "$TMPDIR/held"
while [ -e "$TMPDIR/held" ]; do sleep 0.02; done
exit $status
""")
(ASIDE / "umoci").chmod(0o755)
LISTED = f"registries = http:{REGISTRY.host}/vision\n"


def images(site, owner=20001, needs=True):
    """A layout of alice's with one image, `good`; its digest."""
    if needs and not shutil.which("umoci"):
        raise tap.Skip("umoci is not installed")
    made = oci.Layout(site.dir / "layout", owner=owner)
    base = oci.layer(*oci.programs("sh", "cat", "ls", "id", "env", "sleep"), oci.folder("etc"), oci.folder("app"),
                     oci.entry("etc/passwd", "root:x:0:0::/:/bin/sh\napp:x:1234:2345::/:/bin/sh\n", mode=0o644),
                     oci.entry("app/mine", "of the app\n", uid=1234, mode=0o400))
    digest = made.add("good", base, config={"User": "app", "Env": ["GREETING=hello", "PATH=/bin", "BULKHEAD_JOB=7"],
                                            "Cmd": ["/bin/sh", "-c", "id -u; id -g; echo $GREETING; cat mine"], "WorkingDir": "/app",
                                            "Labels": {"run.oci.hooks": f"touch {site.dir}/obeyed"}})
    return made, digest


def needs_loop():
    if not os.path.exists("/dev/loop-control"):
        raise tap.Skip("there are no loop devices")


def run(site, image, *script, person="alice", tenant=BATCH, check=0):
    words = ("--", "sh", "-c", *script) if script else ()
    return site.cli(person, "run", "--tenant", tenant, "--sku", "small", "--image", image, *words, check=check)


@tap.test(**NODE)
def runs(site):
    "an image runs its own command as its own user in its own folder; labels are not obeyed"
    layout, digest = images(site)
    said = run(site, f"oci:{layout.path}:good").stdout
    contains("says what it does", said, "bulkhead: unpacking image oci:")
    contains("what it ran", said, "1234\n2345\nhello\nof the app\n")
    said = run(site, f"oci:{layout.path}@sha256:{digest}", "env; echo x > /x || echo read-only; ls -ld /app /dev/null; cat /etc/shadow; true").stdout
    contains("root", said, "read-only")
    contains("tools come first", said, "PATH=/usr/local/bulkhead/bin:/bin")
    assert "BULKHEAD_JOB=7" not in said and "root:" not in said, said
    assert not (site.dir / "obeyed").exists()


@tap.test(**NODE)
def apart(site):
    "two tenants with the same image share no file; what is unpacked is there the next time"
    layout, digest = images(site)
    for tenant, person in ((BATCH, "alice"), (TRAIN, "alice")):
        run(site, f"oci:{layout.path}:good", "true", person=person, tenant=tenant)
    stores = sorted(p for p in site.dir.glob(f"**/images/*/{digest}/rootfs/bin/sh"))
    equal("stores", [p.parents[3].name for p in stores], ["acme%vision%batch", "acme%vision%train"])
    inodes = [p.stat().st_ino for p in stores]
    assert inodes[0] != inodes[1], inodes
    run(site, f"oci:{layout.path}:good", "true")
    equal("the same file", stores[0].stat().st_ino, inodes[0])


@tap.test(**NODE)
def refused(site):
    "an image that may not be is refused in one line of the job's output, and nothing stays"
    layout, digest = images(site)
    layout.add("device", oci.layer(oci.entry("dev/x", type=oci.tarfile.CHRTYPE, devmajor=195)))
    layout.add("shell-less", oci.layer(oci.folder("etc")))
    layout.add("devlink", oci.layer(oci.entry("dev", type=oci.tarfile.SYMTYPE, link="/tmp")))
    rows = ((f"oci:{layout.path}:device", '"dev/x" is a device; build the image without device nodes'),
            (f"oci:{layout.path}:none", "the layout has no image none; its tags: good, device"),
            (f"oci:{layout.path}@sha256:{'1' * 64}", "the layout has no image sha256:111"),
            (f"oci:{site.dir}/nowhere:x", "No such file"),
            (f"oci:{layout.path}:devlink", "/dev of the image"),
            (f"oci:{layout.path}:shell-less", "args: no command to run; the image has neither Entrypoint nor Cmd"))
    for image, wanted in rows:
        job, log = site.run("true", client=site.client("alice"), image=image) if "shell" not in image else (None, run(site, image, check=None).stdout)
        contains(image, log, wanted)
        assert log.count("cannot start") == 1, log
    contains("elsewhere", run(site, "oci:/etc/passwd:x", "true", check=4).stderr, "image_roots")
    site.until(lambda: not list(site.dir.glob("**/images/*/tmp-*")), what="nothing half made")
    contains("somebody else", run(site, f"oci:{layout.path}:good", "true", person="bob", tenant=ASR).stdout, "unpacking image")
    os.chmod(layout.path, 0o700)
    contains("closed", run(site, f"oci:{layout.path}:good", "true", person="bob", tenant=ASR, check=None).stdout, "Permission denied")


@tap.test(topology="1x H100-80GB", node_conf="image_roots = /tmp\numoci = /nonexistent/umoci")
def without_umoci(site):
    "without umoci an image is refused with what to install"
    layout, digest = images(site, needs=False)
    contains("said", run(site, f"oci:{layout.path}:good", "true", check=3).stderr, "has no umoci, and images need it: install umoci")


@tap.test(topology="1x H100-80GB", node_conf=LISTED + "images_cap_mib = 64")
def registry(site):
    "an image of a registry is fetched, says how far it is, and its digest is shown and recorded"
    if not shutil.which("skopeo"):
        raise tap.Skip("skopeo is not installed")
    REGISTRY.layout, digest = images(site, owner=None)
    said = run(site, REGISTRY.image("good")).stdout
    contains("says what it does", said, "bulkhead: fetching image docker://")
    contains("what it ran", said, "1234\n2345\nhello\nof the app\n")
    job = max(item["id"] for item in site.client("alice").request("GET", "/v1/jobs")["items"])
    contains("shown", site.cli("alice", "describe", str(job), check=0).stdout, f"sha256:{digest}")
    equal("recorded", [(r["obj"]["id"], r["text"]) for r in site.leaves() if r["verb"] == "job.image"], [(job, digest)])
    contains("another", run(site, "docker://nvcr.io/nvidia/pytorch:1", "true", check=3).stderr, "fetches nothing from nvcr.io (registries)")
    REGISTRY.asked.clear()
    run(site, REGISTRY.image(digest=digest), "true")
    equal("nobody is asked for what is there", REGISTRY.asked, [])
    contains("no such tag", run(site, REGISTRY.image("none"), "true", check=None).stdout, "the registry has no such image")
    other = f"docker://{REGISTRY.host}/other/torch:good"
    contains("no such prefix", run(site, other, "true", check=None).stdout,
             "covers other/torch; registries in node.conf lists".replace("other/torch", f"{REGISTRY.host}/other/torch"))
    slow = REGISTRY.layout.add("slow", oci.layer(oci.entry("noise", os.urandom(9 << 20))))
    REGISTRY.stall, REGISTRY.asked[:] = "*", []
    job = site.submit("true", client=site.client("alice"), tenant=BATCH, image=REGISTRY.image(digest=slow))
    why = lambda: site.cli("alice", "why", str(job), check=0).stdout
    site.until(lambda: "image: fetching 4 of 10 MiB" in why())
    contains("described", site.cli("alice", "describe", str(job), check=0).stdout, "fetching 4 of 10 MiB")
    site.cli("alice", "cancel", str(job))
    site.until(lambda: site.client("alice").request("GET", f"/v1/jobs/{job}")["state"] == "cancelled")
    site.until(lambda: not list(site.dir.glob("**/images/*/tmp-*")))
    REGISTRY.let_go.set()


@tap.test(topology="1x H100-80GB", node_conf=LISTED + "skopeo = /nonexistent/skopeo")
def without_skopeo(site):
    "without skopeo an image of a registry is refused with what to install"
    contains("said", run(site, REGISTRY.image("good"), "true", check=3).stderr,
             "has no skopeo, and images of registries need it: install skopeo, or set skopeo in node.conf")
    refused = site.cli("alice", "run", "--tenant", BATCH, "--sku", "small", "--image", "docker://debian/x:12", "--", "true", check=3)
    contains("no registry", refused.stderr, "names no registry")


def held_up(site):
    """The file that holds up the image that is being unpacked."""
    return site.until(lambda: list(site.dir.glob("**/images/*/tmp-*/tmp/held")), what="the unpacking")[0]


@tap.test(**HELD_UP)
def stopped(site):
    "a job that is cancelled while its image is unpacked ends, and nothing of it stays"
    layout, digest = images(site)
    layout.add("some", oci.layer(*[oci.entry(f"f{i}", b"x" * 2000) for i in range(20)]))
    job = site.client("alice").request("POST", "/v1/jobs", {"args": ["true"], "sku": "small", "tenant": BATCH, "image": f"oci:{layout.path}:some"})
    held_up(site)
    site.cli("alice", "cancel", str(job["id"]))
    site.until(lambda: site.client("alice").request("GET", f"/v1/jobs/{job['id']}")["state"] == "cancelled")
    site.until(lambda: not list(site.dir.glob("**/images/*/tmp-*")) and not list(site.dir.glob("**/images/*/gone-*")))


def go_on(held):
    """Let an unpacking go on that was begun after the file got words in it; False: there is none yet."""
    try:
        if held.read_text():
            return False
        held.unlink()
        return True
    except OSError:
        return False


@tap.test(**HELD_UP)
def killed(site):
    "kill -9 of the node while it unpacks: the next one clears what was half made, and the job runs"
    layout, digest = images(site)
    layout.add("some", oci.layer(*oci.programs("sh"), *[oci.entry(f"f{i}", b"x" * 2000) for i in range(20)]))
    job = site.submit("sh", "-c", "echo well", client=site.client("alice"), image=f"oci:{layout.path}:some")
    half = held_up(site)
    assert list(half.parents[1].glob("rootfs/f1")), "it is not half made"
    half.write_text("of the first")
    site.kill(site.node)
    site.start_node()
    site.until(lambda: go_on(half), what="another unpacking")
    site.await_state(job, "completed")
    contains("it ran", site.log(job), "well")
    site.until(lambda: not list(site.dir.glob("**/images/*/tmp-*")) and not list(site.dir.glob("**/images/*/gone-*")))


@tap.test(topology="1x H100-80GB", node_conf="scratch_max_mib = 64")
def scratch(site):
    "scratch is a job's own, holds what was asked for and no more, and goes with the job"
    needs_loop()
    said = site.cli("alice", "run", "--tenant", BATCH, "--sku", "small", "--scratch", "32Mi", "--", "sh", "-c",
                    "echo $TMPDIR; stat -c %a /scratch; head -c 20M /dev/zero > /scratch/a && echo room; "
                    "head -c 20M /dev/zero 2>/dev/null > /scratch/b || echo full; mknod /scratch/n c 1 3 2>&1 || echo no node", check=0).stdout
    contains("where", said, "/scratch\n755\nroom\n")
    contains("how much", said, "full\nmknod: /scratch/n: Operation not permitted\nno node\n")
    site.until(lambda: not list(site.dir.glob("**/scratch/*.img")))
    refused = site.cli("alice", "run", "--tenant", BATCH, "--sku", "small", "--scratch", "1Gi", "--", "true").stdout
    contains("too much", refused, "scratch: 1024 MiB are more than 64; the administrator can raise scratch_max_mib")
    job = site.submit("sleep", "600", client=site.client("alice"), tenant=BATCH, sku="small", scratch="16Mi")
    site.await_state(job, "running")
    equal("files", len(list(site.dir.glob("**/scratch/*.img"))), 1)
    site.node.kill()
    site.node.wait()
    site.start_node()
    site.cli("alice", "cancel", str(job))
    site.until(lambda: not list(site.dir.glob("**/scratch/*.img")))


@tap.test(topology="1x H100-80GB", node_conf="scratch_max_mib = 64\nio_mib_s = 4")
def io_limit(site):
    "a job reads and writes no faster than io_mib_s"
    needs_loop()
    said = site.cli("alice", "run", "--tenant", BATCH, "--sku", "small", "--scratch", "32Mi", "--", "python3", "-c",
                    "import os, mmap, time; b = mmap.mmap(-1, 1 << 20); f = os.open('/scratch/x', os.O_CREAT | os.O_WRONLY | os.O_DIRECT); "
                    "t = time.monotonic(); [os.write(f, b) for i in range(6)]; print('took', time.monotonic() - t)", check=0).stdout
    seconds = float(said.split("took")[1])
    assert seconds > 0.8, said


tap.main()
