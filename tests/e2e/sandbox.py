#!/usr/bin/env python3
"""What stands between a job and everything else, tried from inside and from outside."""
import errno
import fcntl
import glob
import os
import pathlib
import re
import socket
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import tap
from tap import contains, equal

WAIT = f"trap 'exit 0' TERM; sleep 600 & wait"


def inside(site, script, **spec):
    """What a job's shell script prints."""
    job, log = site.run("sh", "-c", script, **spec)
    equal("job", (job["state"], job["exit_status"]), ("completed", 0))
    return log


def hold(site, script=":", **spec):
    """A running job that waits; its number, once the script before has ended."""
    job = site.submit("sh", "-c", f"{script}; echo ready; {WAIT}", grace="1s", **spec)
    site.await_state(job, "running")
    site.until(lambda: "ready" in site.log(job), what="output")
    return job


def open_in_group(groups, path):
    """errno of opening a device as a member of the job's control groups, 0 when it opens."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        fault = 0
        try:
            for group in groups:
                pathlib.Path(group, "cgroup.procs").write_text(str(os.getpid()))
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            fault = error.errno
        os.write(write, str(fault).encode())
        os._exit(0)
    os.waitpid(child, 0)
    fault = int(os.read(read, 16))
    os.close(read)
    os.close(write)
    return fault


def device_groups(site):
    """The job's groups that fence devices: in the devices hierarchy, or in the only one."""
    found = [g for g in site.groups() if "/devices/" in g or g.startswith("/sys/fs/cgroup/bulkhead-")]
    holding = [g for g in found if pathlib.Path(g, "cgroup.procs").read_text().strip()]
    assert holding, f"no control group holds the job: {found}"
    return holding[:1]


@tap.test()
def device_fence(site):
    """a lent device node opens (ENXIO: no driver behind it), every other one of the 195 and
    nvidia-caps majors is EPERM"""
    job = hold(site, "for d in /dev/nvidia0 /dev/nvidiactl /dev/nvidia-caps/*; do head -c1 $d; done 2>&1; ls /dev /dev/nvidia-caps")
    seen = site.log(job)
    equal("opened", seen.count("No such device or address"), 4)
    equal("denied", seen.count("not permitted") + seen.count("denied"), 0)
    equal("nodes", re.findall(r"^nvidia\S*", seen, re.M)[:3], ["nvidia-caps", "nvidia0", "nvidiactl"])
    groups = device_groups(site)
    caps = [int(n) for n in re.findall(r"^nvidia-cap(\d+)$", seen, re.M)]
    major = int(re.search(r"(\d+) nvidia-caps", (site.sim / "proc/devices").read_text()).group(1))
    place = site.dir / "nodes"
    place.mkdir()
    for maj, mn, wanted in ([(195, 255, errno.ENXIO)]
                            + [(195, m, errno.ENXIO if m == 0 else errno.EPERM) for m in range(8)]
                            + [(major, c, errno.ENXIO) for c in caps]
                            + [(major, c, errno.EPERM) for c in (1, 2, max(caps) + 1, max(caps) + 200)]
                            + [(1, 1, errno.EPERM), (10, 200, errno.EPERM), (8, 0, errno.EPERM), (1, 3, 0)]):
        node = place / f"{maj}-{mn}"
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(maj, mn))
        got = open_in_group(groups, node)
        equal(f"opening {maj}:{mn}", errno.errorcode.get(got, got), errno.errorcode.get(wanted, wanted))


@tap.test()
def no_others(site):
    "a job sees no process but its own, and none of its own sees it by another's number"
    other = hold(site, client=site.client("bob"), tenant="acme/speech/asr")
    out = inside(site, "ls /proc | grep -c '^[0-9]'; cat /proc/1/cmdline | tr '\\0' ' '; kill -0 -1 2>/dev/null && echo reach; "
                       f"for p in {os.getpid()} {site.daemon.pid} {site.node.pid} 4000000; do kill -0 $p 2>&1; done; true")
    assert int(out.split()[0]) <= 6, out
    equal("unreachable", out.count("No such process"), 4)
    assert "bulkhead-node" not in out and str(other) != "", out


@tap.test()
def own_files_only(site):
    "a job sees neither other tenants' files nor /root, /home, /run or the host's /tmp, and writes only to its own /tmp"
    hold(site, "echo secret > /tmp/secret; echo secret > /dev/shm/secret", client=site.client("bob"), tenant="acme/speech/asr")
    (site.dir / "host-secret").write_text("secret")
    out = inside(site, f"cat {site.dir}/host-secret /tmp/secret /dev/shm/secret 2>&1; ls -A /tmp /dev/shm /root /home 2>&1; "
                       "ls /run; for f in /x /usr/x /etc/x /bin/x /dev/x /proc/sys/kernel/hostname /sys/x; do "
                       "(echo x > $f) 2>/dev/null && echo wrote $f; done; cat /etc/shadow 2>&1; "
                       "echo mine > /tmp/mine && cat /tmp/mine; ls /usr/local/bulkhead/bin")
    assert "wrote" not in out and "root:x:" not in out and "root:*:" not in out, out
    assert not re.search(r"^secret$", out, re.M), out
    contains("private /tmp", out, "mine")
    assert "bulkhead.sock" not in out and "docker" not in out and "dbus" not in out, out


@tap.test()
def no_network(site):
    "a job has no network: only a loopback of its own, and reaches no socket of the host"
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as abstract:
        server.bind(("127.0.0.1", 0))
        server.listen()
        abstract.bind("\0" + site.dir.name)
        abstract.listen()
        port = server.getsockname()[1]
        out = inside(site, f"tail -n +3 /proc/net/dev | cut -d: -f1; bash -c '(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>&1'; "
                           "tail -n +2 /proc/net/route; true")
    equal("interfaces", re.findall(r"^\s*(\w+)$", out, re.M), ["lo"])
    assert "refused" in out or "unreachable" in out, out


@tap.test()
def no_power(site):
    "a job has no capability, gains none, is filtered by seccomp, and is a bare id outside"
    job = hold(site, "cat /proc/self/status; for c in 'unshare -U true' 'mount -t tmpfs x /tmp' 'mknod /tmp/n c 1 3' "
                     "'dmesg' 'chroot /tmp true'; do $c >/dev/null 2>&1 && echo could $c; done; cat /proc/self/uid_map")
    out = site.log(job)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        contains("status", out, f"{name}:\t0000000000000000")
    contains("status", out, "NoNewPrivs:\t1")
    contains("status", out, "Seccomp:\t2")
    assert "could" not in out, re.findall("could.*", out)
    for pid in site.processes():
        text = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
        if f"/{site.dir.name}/" in text and "sleep" in pathlib.Path(f"/proc/{pid}/comm").read_text():
            uid = pathlib.Path(f"/proc/{pid}/status").read_text().split("Uid:")[1].split()[0]
            assert int(uid) >= 1000000, uid
            return
    raise AssertionError("the job's process was not found")


@tap.test()
def lent_mounts(site):
    "a job gets a folder only where the site file lets its tenant, with its submitter's own rights"
    share, other = site.dir / "share", site.dir / "other"
    for place in (share, other):
        place.mkdir()
        (place / "note").write_text("note of " + place.name)
    site.apply(tap.SITE + f"\nmounts:\n  - {{path: {share}, tenant: acme/vision, write: true}}\n"
                          f"  - {{path: {other}, tenant: acme/speech}}\n")
    os.chown(share, 20001, 20001)
    alice = site.client("alice")
    out = inside(site, f"cat {share}/note; echo done > {share}/result", client=alice, mounts=[{"source": str(share), "write": True}])
    contains("read", out, "note of share")
    result = share / "result"
    equal("written", (result.read_text(), result.stat().st_uid), ("done\n", 20001))
    for bad in (other, share / "../other", "/root", "/etc"):
        try:
            site.submit("true", client=alice, mounts=[{"source": str(bad)}])
        except Exception as error:
            assert error.status in (400, 403), error
            assert "mounts" in error.error["message"], error
        else:
            raise AssertionError(f"{bad} was let in")
    (share / "link").symlink_to(other)
    job, log = site.run("cat", f"{share}/link/note", client=alice, mounts=[{"source": f"{share}/link"}])
    equal("a link that leads out", job["state"], "failed")
    assert "note of other" not in log


for _function, _options in tap.tests:
    if _function is lent_mounts:
        _options["node_conf"] = "mount_roots = /tmp"

# Watches folders, locks a file, and says on SIGTERM how many events came since it was ready.
WATCHER = """
import ctypes, fcntl, os, select, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def events(fd):
    size = 0
    while select.select([fd], [], [], 0)[0]:
        size += len(os.read(fd, 65536))
    return size
watch = libc.inotify_init1(0)
for folder in sys.argv[1:]:
    assert libc.inotify_add_watch(watch, folder.encode(), 0x21) >= 0, folder  # accesses, opens
data = os.open(sys.argv[1] + "/data", os.O_RDONLY)
fcntl.flock(data, fcntl.LOCK_EX)
os.read(data, 10)
print("own", events(watch) > 0, flush=True)
def end(*_):
    print("others", events(watch), flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    signal.pause()
"""


@tap.test(topology="2x H100-80GB", node_conf="mount_roots = /tmp")
def own_inodes(site):
    """across a boundary that is hard a job learns nothing by inotify of what the machine's programs and other
    tenants do with files that it sees, too, and its locks delay no other job"""
    shared = site.dir / "shared"
    shared.mkdir(mode=0o755)
    (shared / "data").write_text("x" * 8192)
    site.apply(tap.SITE + f"\nmounts:\n  - {{path: {shared}, tenant: acme}}\n")
    mounts = [{"source": str(shared), "target": "/mnt/shared"}]
    job = site.submit("/usr/bin/python3", "-c", WATCHER, "/mnt/shared", "/usr/bin", "/etc", "/lib/x86_64-linux-gnu",
                      mounts=mounts, client=site.client("alice"), grace="20s")
    site.await_state(job, "running")
    site.until(lambda: "ready" in site.log(job), what="the watch")
    contains("a watch of its own files works", site.log(job), "own True")
    out, log = site.run("cat", "/mnt/shared/data", "/etc/passwd", mounts=mounts, client=site.client("bob"), tenant="acme/speech/asr")
    equal("the other tenant reads", (out["exit_status"], log.count("x") > 8000), (0, True))
    pathlib.Path("/usr/bin/env").read_bytes()
    with (shared / "data").open() as data:
        data.read()
        fcntl.flock(data, fcntl.LOCK_EX | fcntl.LOCK_NB)  # else BlockingIOError
    site.client("alice").post(f"/v1/jobs/{job}/cancel")
    site.until(lambda: "others" in site.log(job), what="its count")
    contains("events", site.log(job), "others 0")


# Watches and locks what every job has, and says on SIGTERM which of it others opened since it was ready.
KEEPER = """
import ctypes, fcntl, os, select, signal, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
names = {}
watch = libc.inotify_init1(0)
for path in sys.argv[1:]:
    names[libc.inotify_add_watch(watch, path.encode(), 0x23)] = path  # accesses, changes, opens
def events():
    found = set()
    while select.select([watch], [], [], 0)[0]:
        data, at = os.read(watch, 65536), 0
        while at < len(data):
            number, _, _, length = struct.unpack_from("iIII", data, at)
            found.add(names[number])
            at += 16 + length
    return found
held = {}
for path in set(names.values()) - {"/dev/tty"}:
    held[path] = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.flock(held[path], fcntl.LOCK_EX | fcntl.LOCK_NB)
print("own", *sorted(events()), flush=True)
def end(*_):
    print("others", *sorted(events()), flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    signal.pause()
"""
# Every one is opened, read, and locked; those who cannot be are named.
USER = """
import fcntl, os, sys
for path in sys.argv[1:]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        if path != "/sys/firmware":
            os.read(fd, 1)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if path != "/dev/tty":
            print("held up:", path, error)
print("done")
"""
EVERY_JOBS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/proc/cmdline",
              "/sys/firmware")


@tap.test(topology="2x H100-80GB")
def own_nodes(site):
    """whatever the boundary, a job learns nothing by inotify of who uses /dev/null and its like, or looks at what is
    masked, and its locks there delay no other job"""
    paths = [path for path in EVERY_JOBS if pathlib.Path(path).exists()]
    job = site.submit("/usr/bin/python3", "-c", KEEPER, *paths, client=site.client("alice"), grace="20s")
    site.await_state(job, "running")
    site.until(lambda: "ready" in site.log(job), what="the watch")
    contains("a watch of its own works", site.log(job), "/dev/urandom /dev/zero")
    out, log = site.run("/usr/bin/python3", "-c", USER, *paths, client=site.client("bob"), tenant="acme/speech/asr")
    equal("the other tenant", (out["exit_status"], log.strip()), (0, "done"))
    done = subprocess.run([sys.executable, "-c", USER, "/dev/null", "/dev/zero", "/dev/urandom"], capture_output=True, text=True)
    equal("the machine", done.stdout.strip(), "done")
    site.client("alice").post(f"/v1/jobs/{job}/cancel")
    site.until(lambda: "others" in site.log(job), what="its count")
    contains("events", site.log(job) + "\n", "others\n")


# What of its own file systems, as statvfs tells, is not as it was at its start.
SPACE = """
import os, time
own = [m.split()[4] for m in open("/proc/self/mountinfo") if " - tmpfs " in m and "/run/bulkhead-sim" not in m]
look = lambda: {m: (s.f_blocks, s.f_bfree, s.f_files, s.f_ffree) for m in own for s in [os.statvfs(m)]}
before = look()
print("ready", len(own), flush=True)
while os.path.exists("/tmp/stay"):
    time.sleep(0.02)
after = look()
print([(m, before[m], after[m]) for m in own if after[m] != before[m] and not m.startswith("/tmp")])
"""


@tap.test(topology="2x H100-80GB")
def own_space(site):
    "how much is free on what a job sees does not change when others start"
    job = site.submit("sh", "-c", f"touch /tmp/stay; exec python3 -c '{SPACE}'", client=site.client("alice"))
    site.until(lambda: "ready" in site.log(job), what="its first look")
    assert "ready 0" not in site.log(job), site.log(job)
    others = [site.submit("sleep", "600", client=site.client("bob"), tenant="acme/speech/asr") for _ in range(2)]
    for other in others:
        site.await_state(other, "running")
    site.let_go(job)
    site.await_state(job, "completed", "failed")
    equal("what changed", site.log(job).splitlines()[-1], "[]")


# Names the paths at which there is something, with how many bytes or entries.
COUNTER = """
import os, sys
for path in sys.argv[1:]:
    try:
        found = len(os.listdir(path)) if os.path.isdir(path) else len(open(path, "rb").read(100))
    except OSError:
        found = 0
    if found:
        print(path, found)
print("counted", len(sys.argv) - 1)
"""


@tap.test()
def quiet_machine(site):
    "what /proc and /sys tell of everybody on the machine is empty in a job, each disk's folder with it"
    table = (pathlib.Path(__file__).resolve().parents[2] / "tables/masked.tbl").read_text()
    paths = {found for row in re.findall(r'^BH_MASKED\("(.*)"\)', table, re.M) for found in glob.glob(row)}
    paths |= {os.path.realpath(path) for path in paths} | {os.path.realpath(path) + "/stat" for path in glob.glob("/sys/block/*")}
    assert len(paths) > 30, paths
    equal("in a job", inside(site, f"python3 -c '{COUNTER}' " + " ".join(sorted(paths))), f"counted {len(paths)}\n")


@tap.test()
def busy_machine(site):
    "what programs need of the machine's /proc and /sys is there in a job"
    kept = ("/proc/meminfo /proc/stat /proc/uptime /proc/cpuinfo /proc/modules /proc/devices /proc/filesystems /proc/version "
            "/sys/devices/system/cpu/online /sys/devices/system/node/online /sys/devices/system/node/node0/meminfo /sys/bus/pci/devices").split()
    kept = [path for path in kept if os.path.exists(path)]
    out = inside(site, f"python3 -c '{COUNTER}' " + " ".join(kept))
    equal("in a job", {line.split()[0] for line in out.splitlines()} - {"counted"}, set(kept))
    contains("what they make of it", inside(site, "nproc; free -m; python3 -c 'import os; print(os.cpu_count(), os.sysconf(\"SC_PHYS_PAGES\") > 0)'"), "Mem:")


# What a job can write to the simulated GPU's memory: whatever there is, beyond its end, and new files.
FLOOD = """
import errno, os
place, said = "/run/bulkhead-sim/vram", []
print("sees", *sorted(os.listdir(place)))
for name in ("x", *map(str, range(100, 200))):
    try:
        os.close(os.open(f"{place}/{name}", os.O_WRONLY | os.O_CREAT))
        said.append(name)
    except OSError as error:
        said += [errno.errorcode[error.errno]] if errno.errorcode[error.errno] not in said else []
print("makes", *said)
for act in (lambda: os.mkdir(f"{place}/d"), lambda: os.unlink(f"{place}/0"), lambda: os.link(f"{place}/0", f"{place}/l")):
    try:
        act()
        print("changes the folder")
    except OSError as error:
        pass
fd, mib = os.open(f"{place}/0", os.O_WRONLY), 0
os.lseek(fd, 0, os.SEEK_END)
try:
    while mib < 4096:
        mib += os.write(fd, bytes(1 << 20)) >> 20
except OSError as error:
    print("ends with", errno.errorcode[error.errno])
print("wrote", mib)
"""
BOUND_MIB = 64  # less than the 1024 of all other tests: the job's own limit of memory is not what ends it


def host_bytes(site):
    """What the simulated driver's folder takes of the machine's disk."""
    own = os.stat(site.sim).st_dev
    files = [found for path, _, names in os.walk(site.sim) for name in names if (found := os.lstat(os.path.join(path, name))).st_dev == own]
    return sum(512 * found.st_blocks for found in files)


@tap.test(topology="1x H100-80GB")
def simulated_memory(site):
    """a job cannot fill the machine's disk through the simulated GPU's memory, nor leave files there; the next has
    room again"""
    subprocess.run(["mount", "-o", f"remount,size={BOUND_MIB}m", site.sim / "vram"], check=True)
    before = host_bytes(site)
    for tenant in ("acme/vision/batch", "acme/speech/asr"):
        job, log = site.run("python3", "-c", FLOOD, tenant=tenant)
        equal("job", (job["state"], log[-300:] if job["state"] != "completed" else ""), ("completed", ""))
        said = dict(line.split(" ", 1) for line in log.splitlines())
        equal("what it may do", (said["sees"], said["makes"], said.get("ends"), said.get("changes")), ("0 work", "EACCES", "with ENOSPC", None))
        assert int(said["wrote"]) > 1, said  # what lies behind the end of the file is cut off meanwhile, too
    assert host_bytes(site) - before < 1 << 20, "the disk holds what jobs wrote"  # the view of a new instance


if __name__ == "__main__":
    tap.main()
