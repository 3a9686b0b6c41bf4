#!/usr/bin/env python3
"""bulkhead-unpack on images that no tool would make: each is refused with one line that names
the cause, and leaves nothing; or does no harm.

Usage: unpack_test.py PROGRAM [WORD]"""
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from report import Report, skip_all
import oci
from oci import entry, folder, layer

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
WORD = sys.argv[2] if len(sys.argv) > 2 else ""
BASE, USER = 3500000000, 20001
GROUPS = "/sys/fs/cgroup"
GROUP = f"bh-unpack-test-{os.getpid()}"
RC = {"denied": 3, "not_found": 4, "conflict": 5, "full": 6, "invalid": 1}
HELLO = entry("hello", "hello\n", mode=0o644)


class Bench:
    """A place with a layout and a store, and the program."""

    def __init__(self, base):
        self.base = pathlib.Path(base)
        self.layout = oci.Layout(self.base / "layout", owner=USER)
        self.store = self.base / "store"
        self.store.mkdir(mode=0o700)
        self.secret = self.base / "secret"
        self.secret.write_text("root's alone\n")
        self.secret.chmod(0o600)

    def unpack(self, tag="x", digest="", cap=64 << 20, uid=USER):
        fd = os.open(self.layout.path, os.O_PATH)

        def place():
            os.dup2(fd, 3)      # main keeps it taken, so that nothing else is there
        argv = [PROGRAM, f"--store={self.store}", f"--umoci={shutil.which('umoci')}", f"--tag={tag}",
                f"--digest={digest}", f"--cgroup-mount={GROUPS}", f"--cgroup=/{GROUP}", f"--base={BASE}",
                "--lease=7", f"--bytes-max={cap}", f"--uid={uid}", f"--gid={uid}"]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, close_fds=False, preexec_fn=place, timeout=60)
        os.close(fd)
        return "".join(line for line in done.stdout.splitlines(True) if line[0] != "+")  # how far it is: where it takes a while

    def kept(self):
        return sorted(p.name for p in self.store.iterdir() if p.name != "lock")


# ---- rows: name, how the layout is made, what is said ----

ROWS = []


def refused(name, said, **how):
    def register(function):
        ROWS.append((name, function, said, how))
        return function
    return register


def simple(name, said, *entries, config=None, **how):
    ROWS.append((name, lambda b: b.layout.add("x", layer(HELLO, *entries), config=config), said, how))


simple("a character device", "\"dev/nvidia0\" is a device", entry("dev/nvidia0", type=tarfile.CHRTYPE, devmajor=195, devminor=0))
simple("a block device", "\"sda\" is a device", entry("sda", type=tarfile.BLKTYPE, devmajor=8, devminor=0))
simple("a name that leads upward", "\"../../etc/cron.d/x\" leads upward", entry("../../etc/cron.d/x", "x"))
simple("a name that leads upward within", "\"a/../../x\" leads upward", entry("a/../../x", "x"))
simple("an absurd owner", "\"x\" belongs to user 4294967295", entry("x", "", uid=4294967295))
simple("an absurd group", "\"x\" belongs to group 65536", entry("x", "", gid=65536))
simple("an absurd user", "user 4294967295 is not within a job's range", config={"User": "4294967295"})
simple("a user beyond 2^31", "user 2147483648 is not within a job's range", config={"User": "2147483648"})
simple("a negative user", "user \"-1\" is not in", config={"User": "-1"})
simple("a user with blanks", "is neither a number nor a name", config={"User": "a b"})
simple("an unknown name", "its user \"app\" is not in the image's /etc/passwd", config={"User": "app"})
simple("a passwd that leads to the machine's", "its user \"daemon\" is not in the image's /etc/passwd",
       folder("etc"), entry("etc/passwd", type=tarfile.SYMTYPE, link="/../../../../etc/passwd"), config={"User": "daemon"})
simple("very deep folders", "is over 128 folders deep", folder("d/" * 200))
simple("a hard link to nothing", "umoci:", entry("l", type=tarfile.LNKTYPE, link="/etc/shadow"))
simple("more than a tenant may have", "larger than a tenant's images may be", entry("big", b"\0" * (2 << 20)), cap=1 << 20)


@refused("a bomb", "larger than a tenant's images may be", cap=8 << 20)
def bomb(b):
    b.layout.add("x", b"", diff_ids=["sha256:" + "0" * 64], manifest=lambda m: {
        **m, "layers": [b.layout.blob(gzip.compress(b"\0" * (256 << 20), 1), oci.GZIP)]})


@refused("a blob with another content", "its digest is sha256:")
def exchanged(b):
    b.layout.add("x", layer(HELLO), zipped=False)
    for path in (b.layout.path / "blobs/sha256").iterdir():
        path.write_bytes(path.read_bytes().replace(b"hello\n", b"evil!\n"))


@refused("a manifest with another content", "has another digest")
def exchanged_manifest(b):
    digest = b.layout.add("x", layer(HELLO))
    path = b.layout.path / "blobs/sha256" / digest
    path.write_bytes(path.read_bytes().replace(b"gzip", b"GZIP"))


@refused("another diff id", "the configuration says another")
def diff_id(b):
    b.layout.add("x", layer(HELLO), diff_ids=["sha256:" + "1" * 64])


@refused("a blob that is missing", "is not in the layout")
def missing(b):
    b.layout.add("x", layer(HELLO))
    for path in (b.layout.path / "blobs/sha256").iterdir():
        if path.read_bytes()[:2] == b"\x1f\x8b":
            path.unlink()


@refused("a blob that is a link to root's file", "is a symbolic link")
def linked(b):
    digest = b.layout.add("x", layer(HELLO))
    path = b.layout.path / "blobs/sha256" / digest
    path.unlink()
    path.symlink_to(b.secret)


@refused("an index that is a pipe", "is no file")
def pipe(b):
    b.layout.add("x", layer(HELLO))
    (b.layout.path / "index.json").unlink()
    os.mkfifo(b.layout.path / "index.json")


@refused("a layer that only root may read", "Permission denied")
def closed(b):
    b.layout.add("x", layer(HELLO))
    for path in (b.layout.path / "blobs/sha256").iterdir():
        os.chown(path, 0, 0)
        path.chmod(0o600)


@refused("a layout that is somebody else's", "Permission denied", uid=20002)
def others(b):
    b.layout.add("x", layer(HELLO))
    (b.layout.path / "index.json").chmod(0o600)


@refused("a layer from elsewhere", "layers[0]: is to be fetched from elsewhere")
def foreign(b):
    b.layout.add("x", layer(HELLO), manifest=lambda m: {**m, "layers": [{**m["layers"][0], "urls": ["http://x"]}]})


@refused("a layer of another kind", "is no layer that can be unpacked")
def zstd(b):
    b.layout.add("x", layer(HELLO), manifest=lambda m: {
        **m, "layers": [{**m["layers"][0], "mediaType": oci.TAR + "+zstd"}]})


@refused("fewer layers than diff ids", "its configuration has 2 layers and its manifest 1")
def uneven(b):
    b.layout.add("x", layer(HELLO), layer(HELLO), manifest=lambda m: {**m, "layers": m["layers"][:1]})


@refused("a layer that is no archive", "it is no tar archive, or damaged")
def noise(b):
    b.layout.add("x", b"x" * 2048)


@refused("an archive that is cut off", "it is cut off")
def cut(b):
    b.layout.add("x", layer(entry("a", b"x" * 4096))[:1024])


@refused("a sparse file", "of a kind that no image has ('S')")
def sparse(b):
    b.layout.add("x", layer(entry("s", type=b"S")))


@refused("a size that is absurd", "is missing or absurd")
def size(b):
    b.layout.add("x", layer(HELLO), manifest=lambda m: {**m, "layers": [{**m["layers"][0], "size": -1}]})


@refused("no such tag", "the layout has no image nope", tag="nope")
def tag(b):
    b.layout.add("x", layer(HELLO))


@refused("no such digest", "the layout has no image sha256:11111", digest="1" * 64)
def digest_missing(b):
    b.layout.add("x", layer(HELLO))


@refused("no layout at all", "it is no OCI layout")
def nothing(b):
    pass


@refused("an index of brackets", "index.json:")
def brackets(b):
    b.layout.path.joinpath("index.json").write_text("[" * 100000)


# ---- what does no harm ----

GOOD = []


def harmless(function):
    GOOD.append(function)
    return function


def root_of(b, said):
    digest = said.strip()
    assert len(digest) == 64, said
    return b.store / digest / "rootfs"


@harmless
def a_good_one(b):
    "an image is unpacked, with its owners in the store's range, and a second time nothing is done"
    b.layout.add("x", layer(HELLO, entry("mine", "m", uid=1000, gid=50, mode=0o4755)))
    root = root_of(b, b.unpack())
    assert (root / "hello").read_text() == "hello\n"
    st = (root / "mine").stat()
    assert (st.st_uid, st.st_gid) == (BASE + 1000, BASE + 50), st
    inode = (root / "hello").stat().st_ino
    assert root_of(b, b.unpack()) == root and (root / "hello").stat().st_ino == inode
    assert b.kept() == [root.parent.name], b.kept()


@harmless
def links_stay_inside(b):
    "entries behind links that lead out of the image land inside it"
    out = b.base / "outside"
    out.mkdir()
    out.chmod(0o777)
    b.layout.add("x", layer(entry("way", type=tarfile.SYMTYPE, link=str(out)), entry("way/planted", "x")),
                 layer(entry("up", type=tarfile.SYMTYPE, link="../" * 20 + str(out)), entry("up/planted", "x"),
                       entry("hard", type=tarfile.LNKTYPE, link="/way/planted")))
    b.unpack()
    assert not list(out.iterdir()), list(out.iterdir())


@harmless
def whiteouts_stay_inside(b):
    "a whiteout removes what a layer below had, and nothing of the machine's"
    out = b.base / "outside"
    out.mkdir()
    out.chmod(0o777)
    (out / "victim").write_text("alive")
    (out / "victim").chmod(0o666)
    b.layout.add("x", layer(folder("d"), entry("d/gone", "x"), entry("d/stays", "x"),
                            entry("way", type=tarfile.SYMTYPE, link=str(out))),
                 layer(entry("d/.wh.gone"), entry("way/.wh.victim"), entry("way/.wh..wh..opq")))
    said = b.unpack()
    assert (out / "victim").read_text() == "alive"
    if not said.startswith("!"):
        assert [p.name for p in (root_of(b, said) / "d").iterdir()] == ["stays"]


@harmless
def labels_are_not_obeyed(b):
    "labels, annotations, hooks and volumes of the configuration have no effect"
    evil = {"org.opencontainers.image.title": "; touch /tmp/x", "run.oci.handler": "krun"}
    b.layout.add("x", layer(HELLO), config={"Labels": evil, "Volumes": {"/etc": {}}, "Env": ["LD_PRELOAD=/evil.so", "=x", "BULKHEAD_JOB=9"],
                                            "StopSignal": "9", "User": "7:8"},
                 manifest=lambda m: {**m, "annotations": evil})
    note = (root_of(b, b.unpack()).parent / "image.json").read_text()
    assert note == '{"bytes":10240,"env":["LD_PRELOAD=/evil.so"],"gid":8,"uid":7}', note


@harmless
def setuid_and_capabilities(b):
    "a set-user-id program of root belongs to no user of this machine"
    b.layout.add("x", layer(entry("su", "x", mode=0o6755)))
    st = (root_of(b, b.unpack()) / "su").stat()
    assert st.st_uid == BASE and st.st_gid == BASE, st


@harmless
def two_tenants(b):
    "the same image in two stores has no file in common"
    b.layout.add("x", layer(HELLO))
    first = root_of(b, b.unpack())
    b.store = b.base / "other"
    b.store.mkdir(mode=0o700)
    second = root_of(b, b.unpack())
    assert (first / "hello").stat().st_ino != (second / "hello").stat().st_ino


@harmless
def several_architectures(b):
    "of an image for several machines this machine's is taken"
    b.layout.add("a", layer(HELLO))
    mine = {**b.layout.manifests[0], "platform": {"os": "linux", "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]}}
    other = {**mine, "digest": "sha256:" + "2" * 64, "platform": {"os": "linux", "architecture": "s390x"}}
    index = b.layout.blob({"schemaVersion": 2, "manifests": [other, mine]}, oci.INDEX)
    b.layout.manifests = [{**index, "annotations": {"org.opencontainers.image.ref.name": "x"}}]
    b.layout.write()
    assert (root_of(b, b.unpack()) / "hello").exists()


@harmless
def a_full_disk(b):
    "a full disk is said so, and nothing stays"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", b.store], check=True)
    try:
        b.layout.add("x", layer(entry("big", b"\0" * (4 << 20))))
        said = b.unpack()
        assert said.startswith("!") and "No space left" in said, said
    finally:
        subprocess.run(["umount", b.store], check=True)


@harmless
def a_disk_that_fills_while_umoci_works(b):
    "a disk that umoci fills is said so, too"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "none", b.store], check=True)
    try:
        b.layout.add("x", layer(entry("big", os.urandom(4 << 20))))
        said = b.unpack()
        assert said.startswith("!") and "no space left" in said, said
    finally:
        subprocess.run(["umount", b.store], check=True)


def run_row(function, said, how):
    with tempfile.TemporaryDirectory(prefix="bh-unpack-") as base:
        os.chmod(base, 0o755)
        b = Bench(base)
        function(b)
        if b.layout.owner and not b.layout.manifests:
            b.layout.path.chmod(0o755)
        got = b.unpack(**how)
        assert got.startswith("!") and said in got.split("\n")[1], f"{got!r} does not say {said!r}"
        assert not [k for k in b.kept() if not k.startswith("tmp-")], b.kept()
        assert b.secret.read_text() == "root's alone\n"


def run_good(function):
    with tempfile.TemporaryDirectory(prefix="bh-unpack-") as base:
        os.chmod(base, 0o755)
        function(Bench(base))


def groups():
    if os.path.exists(f"{GROUPS}/cgroup.controllers"):
        return [f"{GROUPS}/{GROUP}"]
    return [f"{GROUPS}/{name}/{GROUP}" for name in os.listdir(GROUPS)
            if os.path.exists(f"{GROUPS}/{name}/cgroup.procs") and not os.path.islink(f"{GROUPS}/{name}")]


def main():
    for missing, lacks in (("not root", os.geteuid() != 0), ("umoci is not installed", not shutil.which("umoci")),
                           ("/sys/fs/cgroup is not writable", not os.access(GROUPS, os.W_OK))):
        if lacks:
            skip_all(missing)
    tests = [(name, lambda f=f, s=s, h=h: run_row(f, s, h)) for name, f, s, h in ROWS]
    tests += [(f.__doc__, lambda f=f: run_good(f)) for f in GOOD]
    tests = [t for t in tests if WORD in t[0]]
    os.dup2(os.open("/dev/null", os.O_RDONLY), 3)
    for group in groups():
        os.makedirs(group, exist_ok=True)
    report = Report(len(tests))
    for name, test in tests:
        report.attempt(name, test)
    for group in groups():
        os.rmdir(group)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
