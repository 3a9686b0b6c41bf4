"""The tables of the house's law: layers, libraries, limits, banned words.

To change a rule, change a row here and say why in the commit.
"""
import re

# Which rooms a room may include, besides itself: the folders of src/, and sim and lab beside it.
_CORE = {"base", "model"}
_DECIDE = {"policy", "audit"}
_PORTS = {"ports", "wire"}
_ADAPTERS = {"store", "device", "runtime", "http_server", "job_network", "identity", "crypto", "fetch", "signer",
             "image", "share", "checkpoint"}
_SEALS = {"keys"}                # stands on ports alone, so the API may use it
_MAIN = _CORE | _DECIDE | {"engine", "api", "accounts", "web"} | _PORTS | _ADAPTERS | _SEALS
MAY_INCLUDE = {
    "base": set(),
    "model": {"base"},
    **{pure: _CORE for pure in ("engine", "policy", "audit")},
    **{port: _CORE | _DECIDE for port in _PORTS},
    **{adapter: _CORE | _DECIDE | _PORTS for adapter in _ADAPTERS},
    "keys": _CORE | _DECIDE | _PORTS,
    "accounts": _CORE | _DECIDE | {"engine", "api", "identity"} | _PORTS | _SEALS,
    "api": _CORE | _DECIDE | {"engine"} | _PORTS | _SEALS,
    "web": _CORE | _DECIDE | _PORTS | {"api", "identity"},
    **{main: _MAIN for main in ("daemon", "node", "cli", "replay", "kube")},
    "shim": set(),
    "probe": set(),                  # stands in any image's root: libc alone
    "sim": set(),                    # loaded into tenants' processes: libc, tables, the vendor's ABI
    "lab": _CORE | {"engine", "audit", "api", "crypto"},
}
MAINS = {"daemon", "node", "cli", "replay", "kube", "sim", "lab"}

# Floors of a room, from the lowest: a file includes its own floor and those below.  What stands in none
# is on top.
FLOORS = {
    "api": ["documents", "state", "request", "accounts", "nodes", "audit", "site", "jobs", "whatif", "metrics"],
    "cli": ["options", "output", "client", "command", "login", "site", "jobs", "audit", "doctor", "up", "verifier"],
    "engine": ["state", "pack", "account", "gpu", "placement", "queue", "preempt", "read",
               "step", "forecast"],
    "sim": ["machine", "nvml", "cuda", "null", "burn", "smi", "tools"],
    "shim": ["process", "driver", "work", "charge", "time_slice", "calls", "nvml"],
    "node": ["common", "init", "keeper", "stream", "scrub", "unpack", "gpu", "core", "placement", "share",
             "sandbox", "job", "verify", "partition", "orders", "session"],
    "lab": ["common", "forecast", "load", "mig", "openb"],
    "daemon": ["journal", "names", "state", "batch", "authorization", "changes", "site", "nodes", "streams",
               "owner", "series"],
}

# Sets of files that call each other: an ADR says why, any other is a finding.
CIRCLES = []

PURE = {"model", "engine", "policy", "audit"}
UNIT_TESTED = {"base"} | PURE

# Single headers that a folder may include although its row above says no.
ALSO = {
    "audit": {"ports/crypto.h"},     # hashes and signatures come in through the port
    "policy": {"engine/state/reason.h"},   # what it explains; values only
    "signer": {"crypto/openssl.h"},  # the key's file
    "shim": {"base/num.h", "base/assert.h", "cuda.h"},
}
# Quoted names that are no layer: generated and installed headers, X-macro tables.
NO_LAYER = re.compile(r"(tables/\w+\.tbl|bulkhead/\w+\.h)$")

PURE_SYSTEM = {"stdbool.h", "stddef.h", "stdint.h", "string.h", "inttypes.h", "limits.h", "stdalign.h"}

# Outside headers, and the paths (as prefixes) that adapt them.
LIBRARIES = [
    (r"jansson\.h", ["src/base/json"]),
    (r"zlib\.h", ["lab/openb/", "src/image/layer"]),
    (r"sqlite3\.h", ["src/store/", "src/daemon/batch/core_test.c", "src/daemon/batch/missing_rows_test.c", "src/cli/verifier/verify_rows_test.c"]),
    (r"libpq-fe\.h", ["src/store/"]),
    (r"(microhttpd\.h|gnutls/.*)", ["src/http_server/"]),
    (r"openssl/.*", ["src/crypto/", "src/cli/login/pkce", "src/identity/signature", "src/identity/totp", "src/identity/secret",
                     "src/identity/webauthn_key", "src/identity/assertion", "src/fetch/server_test", "src/identity/fixture_test", "src/identity/authenticator_test"]),
    (r"fido(/\w+)?\.h", ["src/identity/webauthn_key"]),
    (r"qrencode\.h", ["src/web/qr"]),
    (r"argon2\.h", ["src/identity/password"]),
    (r"curl/.*", ["src/fetch/", "src/cli/"]),
    (r"yaml\.h", ["src/base/yaml", "src/api/"]),
    (r"bulkhead/nvml_\w+\.h", ["src/device/", "sim/", "src/shim/", "include/bulkhead/"]),
    (r"cmocka\.h", ["src/base/test.h"]),
]
SYSTEM = set("""
assert ctype errno fcntl fenv float fnmatch getopt glob grp inttypes iso646 libgen limits link
locale malloc math mntent netdb poll pthread pwd sched semaphore setjmp signal spawn stdalign
stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings syslog termios
threads time ucontext uchar unistd wchar wctype dirent dlfcn elf endian err execinfo byteswap
utime wordexp getopt paths shadow ftw regex search iconv langinfo pty utmp utmpx ifaddrs
""".split())
SYSTEM_FOLDER = re.compile(r"(sys|linux|net|netinet|arpa|asm|asm-generic|rpc|bits)/")

FUNCTION_LINES = 70
FILE_LINES = 800
HEADER_LINES = 250
PARAMETERS = 5
NESTING = 3
NOUN_LINES = 150                 # a file below is read at a glance
README_LINES = 30
ARCHITECTURE_LINES = 300
ADR_LINES = 60

# What makes a process or a program of one, and the numbers of such system calls.
STARTS = ("fork", "_Fork", "vfork", "clone", "clone3", "posix_spawn", "posix_spawnp", "execve", "execveat", "fexecve",
          "execv", "execvp", "execvpe", "execl", "execle", "execlp",
          "SYS_fork", "SYS_vfork", "SYS_clone", "SYS_clone3", "SYS_execve", "SYS_execveat")

# Locks between threads: base/lock knows who holds one, and in which order.
LOCKS = (*(f"pthread_mutex_{verb}" for verb in ("init", "destroy", "lock", "trylock", "timedlock", "clocklock", "unlock")),
         *(f"pthread_cond_{verb}" for verb in ("init", "destroy", "wait", "timedwait", "clockwait", "signal", "broadcast")),
         *(f"pthread_{kind}_init" for kind in ("rwlock", "spin")))

# Calls that are refused, and what to write instead.
BANNED_CALLS = {
    **{name: "bounded buffers: struct bh_buf, snprintf or memcpy with a length" for name in
       ("strcpy", "strcat", "strncpy", "strncat", "sprintf", "vsprintf", "gets")},
    **{name: "the _r form, with the caller's storage" for name in
       ("gmtime", "localtime", "ctime", "asctime", "strtok")},
    **{name: "the strict parsers of base/num.h" for name in ("atoi", "atol", "atoll", "atof")},
    **{name: "base/process.h" for name in ("system", "popen", *STARTS)},
    **{name: "a seed passed in" for name in ("rand", "random", "srand", "srandom")},
    **{name: "a fixed bound or an arena" for name in ("alloca",)},
    **{name: "base/vec.h" for name in ("realloc", "reallocarray")},
    **{name: "returned errors" for name in ("setjmp", "longjmp", "sigsetjmp", "siglongjmp")},
    **{name: "base/lock.h" for name in LOCKS},
    "time": "base/time.h",
}
# (call, path pattern): the places where a banned call is at home.
BANNED_HOMES = [
    ("time", re.compile(r"src/base/time\.c$")),
    ("srand", re.compile(r"tests/|.*_test\.c$")),
    *((start, re.compile(r"src/base/process\.c$|(tests|bench|sim)/|.*_test\.[ch]$")) for start in STARTS),
    *((grow, re.compile(r"src/base/|(tests|sim)/|.*_test\.[ch]$")) for grow in ("realloc", "reallocarray")),
    *((lock, re.compile(r"src/base/lock\.c$|(tests|bench|sim)/|.*_test\.[ch]$")) for lock in LOCKS),
    # A part of a program in a process of its own: it starts none (docs/adr/0078-one-way-to-start-a-program.md).
    ("fork", re.compile(r"src/node/(\w+/)*(relay|handover|unpack_main)\.c$|src/cli/(\w+/)*(driver_probe|up)\.c$")),
    # The same, in namespaces of its own.
    ("SYS_clone", re.compile(r"src/node/(\w+/)*(path|unpack_sandbox)\.c$")),
    # Within a job, on libc alone: its process 1, and what tries the walls.
    *((start, re.compile(r"src/node/(\w+/)*init_(main|stream)\.c$")) for start in ("fork", "execvp")),
    *((start, re.compile(r"src/probe/\w+\.c$")) for start in ("fork", "SYS_clone", "SYS_clone3")),
    # Filters of system calls name their numbers.
    *((start, re.compile(r"src/(\w+/)*filter\.c$")) for start in STARTS if start.startswith("SYS_")),
]
# Who names files of /proc by themselves, and why; everybody else asks base/proc.h.
PROC_HOMES = [
    (re.compile(r"src/base/proc\.c$"), "its home"),
    (re.compile(r"sim/|src/(probe|shim)/|src/node/init/"), "on libc alone, within tenants' processes"),
    (re.compile(r"src/runtime/(oci|sandbox_files)\.c$"), "what a sandbox shows and hides"),
    (re.compile(r"src/node/sandbox/isolation_checks\.c$"), "the same, held against what stands there"),
    (re.compile(r"src/(job_network/netns|cli/doctor/doctor_checks)\.c$"), "settings of the kernel, of no process"),
]
# An open that may wait is base/fd.h's bh_file_open() or bh_file_read(): a FIFO in a file's place hangs no program.
# Flags with which open() does not wait for the other end of one, or finds none.
OPENS_AT_ONCE = {"O_NONBLOCK", "O_DIRECTORY", "O_PATH", "O_EXCL"}
OPENS = ("open", "openat", "open64", "creat", "fopen", "freopen")
# Who opens otherwise, and why.
OPEN_HOMES = [
    (re.compile(r"src/base/fd\.c$"), "its home"),
    (re.compile(r"src/probe/|src/node/init/"), "on libc alone"),
    (re.compile(r"src/(runtime/(cgroup|readback)|job_network/(netns|kernel)|checkpoint/sandbox|share/pages|"
                r"node/(common/path|core/claim|placement/open_files|unpack/unpack_sandbox))\.c$"),
     "files that the kernel makes: control groups, namespaces, processes, settings"),
    (re.compile(r"src/(base/process|cli/command/prompt|cli/up/up|job_network/filter|node/core/scratch|"
                r"node/unpack/relay)\.c$"), "a device, by its name"),
    (re.compile(r"src/cli/(audit/audit|options/gendocs_main)\.c$"), "what a person names on the command line"),
]
BANNED_NAME = re.compile(r"tmp2\w*|.*[a-z]_1")
# Verbs that do not say what a function does.
BANNED_FUNCTION = re.compile(r"(do|handle)_\w+")
# What base must not know: it could be anybody's library.
PRODUCT_WORDS = {"tenant", "lease", "gpu", "gpus", "sku", "mig", "bulkheadd", "partition"}

EXPORTED = {
    "sim": re.compile(r"bh_|sim_|nvml|cu|main$"),    # sim_ is hidden from the linker
    "shim": re.compile(r"bh_|nvml|cu|dlsym$|main$"),
}
# Functions whose parameters the vendor chose.
VENDOR = re.compile(r"(nvml|cu)[A-Z]\w*")
# Names of two libraries: the vendor's ABI has them, or the one text of trampolines for both.
NAMED_BY_OTHERS = re.compile(r"(nvml|cu)[A-Z]|CU|sim_|dlsym$|bh_driver_(find|has)$")
EXPORTED_ELSEWHERE = re.compile(r"bh_|main$|LLVMFuzzer")

# Words that comments, tables and docs do not use, as they begin a sentence and within one (words.py), and
# phrases with them that are right: the Unix user is called so.
WORDS = ["[Nn]obody", "[Ww]hoever", "[Ww]homever", "[Ww]hom", "[Tt]old", "[Oo]urs"]
WORDS_FREE = ["users? nobody"]
