#!/usr/bin/env python3
"""bulkhead-unpack on images of registries, good ones and such as misbehave: what is refused is
said in one line and leaves nothing.

Usage: registry_test.py PROGRAM [WORD]"""
import base64
import gzip
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import oci
from oci import entry, layer
from registry import Registry
from report import Report, skip_all

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
WORD = sys.argv[2] if len(sys.argv) > 2 else ""
BASE = 3600000000 + 65536 * (os.getpid() % 1000)
GROUPS = "/sys/fs/cgroup"
GROUP = sys.argv[4] if WORD == "--inside" else f"bh-registry-test-{os.getpid()}"
HELLO = entry("hello", "hello\n", mode=0o644)
DOCKER = "application/vnd.docker."


class Bench:
    """A registry with a layout, a store, and the program."""

    def __init__(self, base, registry=None):
        self.base = pathlib.Path(base)
        self.base.mkdir(exist_ok=True)
        self.layout = oci.Layout(self.base / "layout")
        self.digest = self.layout.add("x", layer(HELLO))
        self.blob = json.loads((self.layout.path / "blobs/sha256" / self.digest).read_bytes())["layers"][0]["digest"][7:]
        self.registry = registry or Registry(self.layout)
        self.registry.layout = self.layout
        self.store = self.base / "store"
        self.store.mkdir(mode=0o700)
        self.progress = []

    def words(self, tag="x", digest="", cap=64 << 20, hosts=None, stall=20, source=None, auth="", deny=(), umoci=None):
        hosts = hosts or [f"http:{self.registry.host}"]
        return [PROGRAM, f"--store={self.store}", f"--umoci={umoci or shutil.which('umoci')}", f"--skopeo={shutil.which('skopeo')}",
                f"--source={source or self.registry.host + '/' + self.registry.name}", f"--tag={tag}", f"--digest={digest}",
                f"--cgroup-mount={GROUPS}", f"--cgroup=/{GROUP}", f"--base={BASE}", "--lease=7", f"--bytes-max={cap}",
                f"--stall={stall}", f"--auth={auth}", "--uid=20001", "--gid=20001",
                *[f"--host={h}" for h in hosts], *[f"--deny={d}" for d in deny]]

    def unpack(self, **how):
        """The report, less what it says meanwhile."""
        done = subprocess.run(self.words(**how), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=60)
        lines = done.stdout.split("\n")
        self.progress = [line for line in lines if line.startswith("+")]
        return "\n".join(line for line in lines if not line.startswith("+"))

    def kept(self):
        return sorted(p.name for p in self.store.iterdir() if p.name != "lock")

    def root(self, said):
        digest = said.strip()
        assert len(digest) == 64, said
        return self.store / digest / "rootfs"


def processes():
    """Those of the test's control groups."""
    return {pid for group in groups() for pid in pathlib.Path(group, "cgroup.procs").read_text().split()}


def await_until(holds):
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.005)
    raise AssertionError("it did not come")


ROWS, GOOD = [], []


def refused(name, said, **how):
    def register(function):
        ROWS.append((name, function, said, how))
        return function
    return register


def harmless(function):
    GOOD.append(function)
    return function


@harmless
def by_tag_and_by_digest(b):
    "an image is fetched by tag; by its digest the registry is not asked again"
    root = b.root(b.unpack())
    assert root.parent.name == b.digest and (root / "hello").read_text() == "hello\n"
    inode = (root / "hello").stat().st_ino
    assert b.registry.blobs(), b.registry.asked
    b.registry.asked.clear()
    assert b.root(b.unpack()) == root
    assert not b.registry.blobs() and b.registry.asked, b.registry.asked
    b.registry.asked.clear()
    assert b.root(b.unpack(digest=b.digest)) == root and not b.registry.asked, b.registry.asked
    assert (root / "hello").stat().st_ino == inode and b.kept() == [b.digest]


@harmless
def dockers_own_format(b):
    "an image in Docker's words keeps the digest that its registry knows it by"
    digest = b.layout.add("d", layer(HELLO, entry("other", "o")), manifest=lambda m: {
        **m, "mediaType": DOCKER + "distribution.manifest.v2+json",
        "config": {**m["config"], "mediaType": DOCKER + "container.image.v1+json"},
        "layers": [{**part, "mediaType": DOCKER + "image.rootfs.diff.tar.gzip"} for part in m["layers"]]})
    assert b.root(b.unpack(tag="d")).parent.name == digest
    assert b.unpack(digest=digest).strip() == digest


@harmless
def several_architectures(b):
    "of an index this machine's image is taken, and it is kept by its own digest"
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    mine = {**b.layout.manifests[0], "platform": {"os": "linux", "architecture": machine}}
    other = {**mine, "digest": "sha256:" + "2" * 64, "platform": {"os": "linux", "architecture": "s390x"}}
    index = b.layout.blob({"schemaVersion": 2, "mediaType": oci.INDEX, "manifests": [other, mine]}, oci.INDEX)
    b.layout.manifests.append({**index, "annotations": {"org.opencontainers.image.ref.name": "many"}})
    assert b.root(b.unpack(tag="many")).parent.name == b.digest
    assert b.unpack(digest=index["digest"][7:]).strip() == b.digest


@harmless
def two_tenants(b):
    "two stores fetch for themselves, and have no file in common"
    first = b.root(b.unpack())
    b.registry.asked.clear()
    b.store = b.base / "other"
    b.store.mkdir(mode=0o700)
    second = b.root(b.unpack())
    assert b.registry.blobs() and (first / "hello").stat().st_ino != (second / "hello").stat().st_ino


@harmless
def credentials(b):
    "the operator's credentials open a registry that asks for them, and stay with it"
    b.registry.basic = base64.b64encode(b"bulkhead:secret").decode()
    auth = b.base / "auth.json"
    auth.write_text(json.dumps({"auths": {b.registry.host: {"auth": b.registry.basic}}}))
    auth.chmod(0o600)
    said = b.unpack()
    assert said.startswith("!") and "the registry needs different credentials" in said and "registry_auth" in said, said
    auth.chmod(0o640)
    assert "can be used by users other than root" in b.unpack(auth=auth)
    auth.chmod(0o600)
    spy = b.base / "umoci"
    spy.write_text("#!/bin/sh\nmkdir /stage/rootfs\ncat /etc/auth.json > /stage/rootfs/seen\nls /etc >> /stage/rootfs/seen\n")
    spy.chmod(0o755)
    root = b.root(b.unpack(auth=auth, umoci=spy))
    assert (root / "seen").read_text() == "", "umoci can read what skopeo was given"
    found = subprocess.run(["grep", "-rl", b.registry.basic, str(root.parents[1])], capture_output=True, text=True).stdout
    assert not found, found


@harmless
def sent_on(b):
    "a registry may send to a host that is listed"
    other = Registry(b.layout)
    try:
        b.registry.redirect[b.blob] = f"http://{other.host}/v2/{other.name}/blobs/sha256:{b.blob}"
        b.root(b.unpack(hosts=[f"http:{b.registry.host}", f"http:{other.host}"]))
        assert other.blobs() == [b.blob], other.asked
    finally:
        other.stop()


@harmless
def progress(b):
    "what it does is said while it lasts, at most once a second"
    b.layout.add("big", layer(entry("noise", os.urandom(6 << 20))))
    b.registry.slow = 0.025
    begun = time.monotonic()
    b.root(b.unpack(tag="big"))
    lasted = time.monotonic() - begun
    stages = [line.split()[0] for line in b.progress]
    done = [int(line.split()[1]) for line in b.progress if line.startswith("+1 ")]
    total = {line.split()[2] for line in b.progress if line.startswith("+1 ") and line.split()[2] != "0"}
    assert "+1" in stages and done == sorted(done) and done[-1] > 1 << 20, b.progress
    assert len(b.progress) <= lasted + 1 and len(total) == 1 and 6 << 20 < int(total.pop()) < 7 << 20, (lasted, b.progress)


@harmless
def ended_from_outside(b):
    "its end ends skopeo and the relay, too"
    b.registry.stall = "*"
    child = subprocess.Popen(b.words(stall=60), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    await_until(b.registry.blobs)
    assert len(processes()) >= 3, processes()
    child.kill()
    child.wait()
    await_until(lambda: not processes())


@refused("no such tag", "the registry has no such image", tag="none")
def no_tag(b):
    pass


@refused("no such digest", "the registry has no such image", digest="1" * 64)
def no_digest(b):
    pass


@refused("a blob with another content", "a blob has a different digest than in its manifest")
def wrong(b):
    b.registry.wrong = b.blob


@refused("a registry that goes silent", "sent nothing for 1 seconds", stall=1)
def stalls(b):
    b.registry.stall = b.blob


@refused("a blob without end", "sent more than its manifest lists")
def endless(b):
    b.registry.endless = b.blob


@refused("a manifest without end", "sent a manifest that is too large")
def endless_manifest(b):
    b.registry.manifest = lambda reference: (oci.MANIFEST, b" " * (12 << 20))


@refused("an image that is larger than a tenant may have", "it is larger than a tenant's images may be, 2 MiB", cap=1 << 20)
def large(b):
    b.layout.manifests.clear()
    b.layout.add("x", layer(entry("noise", os.urandom(2 << 20))))


@refused("a bomb", "unpacked it is larger than a tenant's images may be", cap=8 << 20)
def bomb(b):
    b.layout.manifests.clear()
    b.layout.add("x", b"", diff_ids=["sha256:" + "0" * 64], manifest=lambda m: {
        **m, "layers": [b.layout.blob(gzip.compress(b"\0" * (64 << 20), 1), oci.GZIP)]})


@refused("a manifest of another digest than was asked for", "digest")
def exchanged(b):
    other = b.layout.add("y", layer(entry("evil", "e")))
    path = b.layout.path / "blobs/sha256"
    (path / b.digest).write_bytes((path / other).read_bytes())


exchanged.how = {"pinned": True}


@refused("a document that is an index and a manifest at once", "it lists layers and manifests at once")
def confused(b):
    b.layout.manifests.clear()
    b.layout.add("x", layer(HELLO), manifest=lambda m: {**m, "manifests": []})


@refused("a redirection to a host that is not listed", "registry_hosts in node.conf lists the allowed hosts")
def elsewhere(b):
    b.registry.redirect[b.blob] = "http://elsewhere.invalid/blob"


@refused("a redirection to another port of this machine", "registry_hosts in node.conf lists the allowed hosts")
def inward(b):
    b.victim = Registry(b.layout)
    b.registry.redirect[b.blob] = f"http://{b.victim.host}/v2/{b.victim.name}/blobs/sha256:{b.blob}"


@refused("a redirection to the metadata of a cloud", "registry_hosts in node.conf lists the allowed hosts")
def metadata(b):
    b.registry.redirect[b.blob] = "http://169.254.169.254/latest/meta-data/"


@refused("a redirection to a file", "unsupported protocol scheme")
def scheme(b):
    b.registry.redirect[b.blob] = "file:///etc/passwd"


@refused("a registry that is not there", "cannot reach 127.0.0.1: Connection refused")
def gone(b):
    b.registry.stop()


@refused("a listed name that leads to this machine", "cannot reach localhost: its address is not allowed",
         hosts=["localhost:5000"], source="localhost:5000/vision/torch")
def loopback(b):
    pass


# ---- TLS and addresses, in a network of the test's own ----

ADDRESS, NAME = "10.9.8.7", "registry.test"


@harmless
def tls(b):
    "a registry's certificate is verified, and its name leads to no address that is denied"
    for tool in ("unshare", "ip", "openssl"):
        assert shutil.which(tool), f"{tool} is missing"
    script = f'ip link set lo up && ip addr add {ADDRESS}/32 dev lo && exec "$@"'
    done = subprocess.run(["unshare", "--net", "--mount", "sh", "-c", script, "sh", sys.executable, __file__, PROGRAM, "--inside", str(b.base), GROUP],
                          capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr


def put_over(path, text, base):
    made = base / path.replace("/", "-")
    made.write_text(text)
    subprocess.run(["mount", "--bind", made, path], check=True)


def inside(base):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key, certificate = base / "key", base / "certificate"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={NAME}",
                    "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context.load_cert_chain(certificate, key)
    put_over("/etc/hosts", f"127.0.0.1 localhost\n{ADDRESS} {NAME} other.test\n169.254.169.254 metadata.test\n", base)
    b = Bench(base / "inside", Registry(None, at=ADDRESS, tls=context))
    at = f"{NAME}:{b.registry.port}"

    def said(want, host=at, **how):
        got = b.unpack(hosts=[host], source=f"{host}/vision/torch", **how)
        assert want in got, f"{got!r} does not say {want!r}"
    said("certificate")
    put_over("/etc/ssl/certs/ca-certificates.crt", certificate.read_text(), base)
    said("other.test: its address is not allowed", host=f"other.test:{b.registry.port}", deny=["10.0.0.0/8"])
    said("metadata.test: its address is not allowed", host="metadata.test:80")
    said("certificate", host=f"other.test:{b.registry.port}")
    assert not b.registry.asked, b.registry.asked
    said(b.digest)


def run_row(function, said, how):
    with tempfile.TemporaryDirectory(prefix="bh-registry-") as base:
        os.chmod(base, 0o755)
        b = Bench(base)
        function(b)
        if getattr(function, "how", {}).get("pinned"):
            how = {**how, "digest": b.digest}
        got = b.unpack(**how)
        b.registry.stop() if function is not gone else None
        assert got.startswith("!") and said in got, f"{got!r} does not say {said!r}"
        assert not [k for k in b.kept() if not k.startswith("tmp-")], b.kept()
        if hasattr(b, "victim"):
            b.victim.stop()
            assert not b.victim.asked, b.victim.asked


def run_good(function):
    with tempfile.TemporaryDirectory(prefix="bh-registry-") as base:
        os.chmod(base, 0o755)
        b = Bench(base)
        try:
            function(b)
        finally:
            b.registry.stop()


def groups():
    if os.path.exists(f"{GROUPS}/cgroup.controllers"):
        return [f"{GROUPS}/{GROUP}"]
    return [f"{GROUPS}/{name}/{GROUP}" for name in os.listdir(GROUPS)
            if os.path.exists(f"{GROUPS}/{name}/cgroup.procs") and not os.path.islink(f"{GROUPS}/{name}")]


def main():
    for missing, lacks in (("not root", os.geteuid() != 0), ("umoci is not installed", not shutil.which("umoci")),
                           ("skopeo is not installed", not shutil.which("skopeo")),
                           ("/sys/fs/cgroup is not writable", not os.access(GROUPS, os.W_OK))):
        if lacks:
            skip_all(missing)
    tests = [(name, lambda f=f, s=s, h=h: run_row(f, s, h)) for name, f, s, h in ROWS]
    tests += [(f.__doc__, lambda f=f: run_good(f)) for f in GOOD]
    tests = [t for t in tests if WORD in t[0]]
    for group in groups():
        os.makedirs(group, exist_ok=True)
    report = Report(len(tests))
    for name, test in tests:
        report.attempt(name, test)
    for group in groups():
        os.rmdir(group)
    return report.close()


if __name__ == "__main__":
    sys.exit(inside(pathlib.Path(sys.argv[3])) if WORD == "--inside" else main())
