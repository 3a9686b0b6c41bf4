/* bulkhead-unpack: one for each start of a job with an image.  It unpacks the image of a
 * layout into the store of the job's tenant, unless it is there.
 *
 * This process is root and reads nothing that a stranger wrote: it makes a cell (cell.h)
 * and runs one step after the other in it, in children that are nobody.  Steps that read
 * the submitter's layout do so with his rights; umoci gets only what the steps before it
 * checked and wrote anew. What is whole is put in its place by one rename.  Whoever ends it
 * ends all of it.
 *
 * Standard output is the report: "DIGEST\n", or "!RC\nmessage\nhint\n". */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "node/cell.h"
#include "node/path.h"
#include "node/unpack_steps.h"
#include "runtime/cgroup.h"

#ifdef __SANITIZE_ADDRESS__
/* The filter of a cell keeps LeakSanitizer from its ptrace. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int
__lsan_is_turned_off(void)
{
    return 1;
}
#endif

enum { FILES_MAX = 1024, PATH_SIZE = 1024, EXIT_USAGE = 2, NICENESS = 10 };

struct options {
    const char *tag, *digest, *store, *tool, *cgroup_mount, *cgroup, *remove, *scratch;
    uint64_t scratch_bytes, base, uid, gid, lease, bytes_max;
};

struct unpack {
    const struct options *options;
    struct bh_unpack_order order;
    int store;
    char folder[32]; /* of the stage, in the store */
};

/* ---- this process ---- */

static bh_rc
confine(const struct options *options, struct bh_err *err)
{
    static const struct rlimit none = { 0, 0 }, few = { FILES_MAX, FILES_MAX };
    struct bh_cgroup_host host;
    bh_rc rc = bh_cgroup_probe(options->cgroup_mount, &host, err);

    if (rc == BH_OK)
        rc = bh_cgroup_enter(&host, options->cgroup, err);
    if (rc != BH_OK)
        return rc;
    umask(022);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() == 1 ||
        setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_NOFILE, &few) != 0)
        return bh_err_errno(err, "set limits");
    errno = 0;
    (void)!nice(NICENESS);
    return BH_OK;
}

static bh_rc
open_store(struct unpack *unpack, struct bh_err *err)
{
    const struct options *options = unpack->options;
    char path[PATH_SIZE];
    int lock;

    unpack->store = open(options->store, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (unpack->store < 0)
        return bh_err_errno(err, "open %s", options->store);
    lock = openat(unpack->store, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) != 0) /* held until the end */
        return bh_err_errno(err, "lock %s", options->store);
    bh_path_format(unpack->folder, sizeof unpack->folder, "tmp-%" PRIu64, options->lease);
    bh_path_format(path, sizeof path, "%s/%s", options->store, unpack->folder);
    bh_path_remove_tree(path);
    if (mkdir(path, 0700) != 0 ||
        lchown(path, (uid_t)options->base, (gid_t)options->base) != 0)
        return bh_err_errno(err, "make folder %s", path);
    return bh_cell_enter(path, options->tool, err);
}

/* ---- steps ---- */

/* What a step told, as far as it may be believed. */
static bh_rc
take_told(const struct bh_unpack_told *told, struct bh_err *err)
{
    struct bh_err said = told->err;

    said.msg[sizeof said.msg - 1] = said.hint[sizeof said.hint - 1] = '\0';
    if (told->rc <= BH_OK || told->rc >= BH_BUG || !said.msg[0])
        return bh_err_set(err, BH_IO, "unpacking failed and nobody said why");
    bh_err_set(err, told->rc, "%s", said.msg);
    return said.hint[0] ? bh_err_hint(err, "%s", said.hint) : told->rc;
}

static bh_rc
run_step(struct unpack *unpack, int (*step)(void *self), bool as_guest, struct bh_err *err)
{
    const struct options *options = unpack->options;
    struct bh_cell_child child = { .base = (uint32_t)options->base,
                                   .guest_uid =
                                       as_guest ? (uint32_t)options->uid : UINT32_MAX,
                                   .guest_gid =
                                       as_guest ? (uint32_t)options->gid : UINT32_MAX,
                                   .run = step,
                                   .self = &unpack->order };
    int status = 0;
    bh_rc rc;

    memset(&unpack->order.told->err, 0, sizeof unpack->order.told->err);
    rc = bh_cell_run(&child, &status, err);
    if (rc != BH_OK || status == 0)
        return rc;
    if (!WIFEXITED(status)) {
        bh_err_set(err, BH_FULL, "unpacking was killed, most likely for want of memory");
        return bh_err_hint(err,
                           "the image may be damaged, or image_memory_mib of node.conf too "
                           "little for it");
    }
    return take_told(unpack->order.told, err);
}

static bh_rc
run_tool(struct unpack *unpack, struct bh_err *err)
{
    struct bh_err ignored;

    if (run_step(unpack, bh_unpack_tool, false, &ignored) == BH_OK)
        return BH_OK;
    (void)!run_step(unpack, bh_unpack_explain, false, err);
    return err->rc;
}

static bh_rc
put_in_place(struct unpack *unpack, struct bh_err *err)
{
    static const char *const leftovers[] = { "in", "tmp" }, *const files[] = { "config",
                                                                               "log" };
    char path[64];

    for (size_t i = 0; i < BH_COUNT(leftovers); i++) {
        bh_path_format(path, sizeof path, BH_CELL_STAGE "/%s", leftovers[i]);
        bh_path_remove_tree(path);
    }
    for (size_t i = 0; i < BH_COUNT(files); i++) {
        bh_path_format(path, sizeof path, BH_CELL_STAGE "/%s", files[i]);
        unlink(path);
    }
    if (syncfs(unpack->store) != 0)
        return bh_err_errno(err, "write the image to the disk");
    if (lchown(BH_CELL_STAGE, 0, 0) != 0 ||
        renameat(unpack->store, unpack->folder, unpack->store,
                 unpack->order.told->manifest.digest) != 0)
        return bh_err_errno(err, "put the image in its place");
    return fsync(unpack->store) == 0 ? BH_OK
                                     : bh_err_errno(err, "put the image in its place");
}

/* Whether it is there; then this is its last use. */
static bool
is_present(const struct unpack *unpack)
{
    char path[128];

    bh_path_format(path, sizeof path, "%s/image.json", unpack->order.told->manifest.digest);
    return utimensat(unpack->store, path, NULL, AT_SYMLINK_NOFOLLOW) == 0;
}

static bh_rc
unpack_image(struct unpack *unpack, struct bh_err *err)
{
    bh_rc rc = run_step(unpack, bh_unpack_resolve, true, err);

    if (rc != BH_OK)
        return rc;
    unpack->order.told->manifest.digest[BH_IMAGE_HEX - 1] = '\0';
    if (strspn(unpack->order.told->manifest.digest, "0123456789abcdef") != BH_IMAGE_HEX - 1)
        return bh_err_set(err, BH_BUG, "a digest that is none");
    if (is_present(unpack))
        return unlinkat(unpack->store, unpack->folder, AT_REMOVEDIR) == 0
                   ? BH_OK
                   : bh_err_errno(err, "remove %s", unpack->folder);
    rc = run_step(unpack, bh_unpack_stage, true, err);
    if (rc == BH_OK)
        rc = run_tool(unpack, err);
    if (rc == BH_OK)
        rc = run_step(unpack, bh_unpack_finish, false, err);
    return rc == BH_OK ? put_in_place(unpack, err) : rc;
}

/* ---- scratch ---- */

/* All of it is taken at once: a disk that fills later does not fail the job in the middle
 * of a write that it has room for. */
static bh_rc
reserve(const struct options *options, struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int fd =
        open(options->scratch, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    off_t bytes = (off_t)options->scratch_bytes;

    if (fd < 0)
        return bh_err_errno(err, "scratch: create %s", options->scratch);
    if (fallocate(fd, 0, 0, bytes) == 0 ||
        (errno == EOPNOTSUPP && ftruncate(fd, bytes) == 0))
        return BH_OK;
    bh_err_errno(err, "scratch: take %" PRIu64 " MiB of the node's disk",
                 options->scratch_bytes >> 20);
    return bh_err_hint(err,
                       "ask for less, or have the administrator make room at scratch_dir");
}

/* Without a journal: nothing of it outlives the job. */
static bh_rc
make_scratch(const struct options *options, struct bh_err *err)
{
    char *const argv[] = {
        (char *)(uintptr_t) "mkfs.ext4",
        (char *)(uintptr_t) "-q",
        (char *)(uintptr_t) "-F",
        (char *)(uintptr_t) "-m0",
        (char *)(uintptr_t) "-O",
        (char *)(uintptr_t) "^has_journal",
        (char *)(uintptr_t) "-E",
        (char *)(uintptr_t) "nodiscard,lazy_itable_init=1,root_owner=0:0",
        (char *)(uintptr_t)options->scratch,
        NULL
    };
    char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *const env[] = { path, NULL };
    int status = -1;
    pid_t pid;
    bh_rc rc = reserve(options, err);

    if (rc != BH_OK)
        return rc;
    if (posix_spawn(&pid, "/usr/sbin/mkfs.ext4", NULL, NULL, argv, env) == 0)
        waitpid(pid, &status, 0);
    return status == 0 ? BH_OK
                       : bh_err_set(err, BH_IO, "scratch: mkfs.ext4 failed on %s",
                                    options->scratch);
}

/* ---- the command line ---- */

static bool
read_number(const char *text, uint64_t *ret_number)
{
    struct bh_err ignored;

    return bh_parse_u64(text, ret_number, &ignored) == BH_OK;
}

static const struct word {
    const char *name;
    size_t offset;
    bool number;
} words[] = {
#define WORD(name, member, number)                                                         \
    {                                                                                      \
        name, offsetof(struct options, member), number                                     \
    }
    WORD("tag", tag, false),
    WORD("digest", digest, false),
    WORD("store", store, false),
    WORD("umoci", tool, false),
    WORD("cgroup-mount", cgroup_mount, false),
    WORD("cgroup", cgroup, false),
    WORD("scratch", scratch, false),
    WORD("remove", remove, false),
    WORD("scratch-bytes", scratch_bytes, true),
    WORD("base", base, true),
    WORD("uid", uid, true),
    WORD("gid", gid, true),
    WORD("lease", lease, true),
    WORD("bytes-max", bytes_max, true),
#undef WORD
};

/* "--name=value" */
static bool
read_word(const char *text, struct options *options)
{
    for (size_t i = 0; i < BH_COUNT(words); i++) {
        size_t length = strlen(words[i].name);
        char *place = (char *)options + words[i].offset;
        const char *value = text + 2 + length + 1;

        if (strncmp(text, "--", 2) != 0 || strncmp(text + 2, words[i].name, length) != 0 ||
            text[2 + length] != '=')
            continue;
        if (words[i].number)
            return read_number(value, (uint64_t *)(void *)place);
        memcpy(place, &value, sizeof value);
        return true;
    }
    return false;
}

static bool
read_options(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++)
        if (!read_word(argv[i], options))
            return false;
    if (options->remove)
        return true;
    if (!options->cgroup_mount || !options->cgroup ||
        (!options->store && !options->scratch))
        return false;
    return !options->store || (options->tool && options->base);
}

/* The caller does not wait for it. */
static int
remove_later(const char *path)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid < 0;
    errno = 0;
    (void)!nice(NICENESS);
    setsid();
    bh_path_remove_tree(path);
    return 0;
}

int
main(int argc, char **argv)
{
    struct options options = { .tag = "", .digest = "" };
    struct unpack unpack = { .options = &options, .store = -1 };
    struct bh_err err = { 0 };
    bh_rc rc;

    if (!read_options(argc, argv, &options)) {
        fputs("bulkhead-unpack is started by bulkhead-node\n", stderr);
        return EXIT_USAGE;
    }
    if (options.remove)
        return remove_later(options.remove);
    unpack.order = (struct bh_unpack_order) {
        .tag = options.tag,
        .digest = options.digest,
        .bytes_max = options.bytes_max,
        .layout = { &bh_crypto_openssl, BH_CELL_FD, BH_CELL_GUEST, BH_CELL_GUEST },
        .told = mmap(NULL, sizeof *unpack.order.told, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0),
    };
    rc = unpack.order.told == MAP_FAILED ? bh_err_errno(&err, "map memory")
                                         : confine(&options, &err);
    if (rc == BH_OK && options.scratch)
        rc = make_scratch(&options, &err);
    if (rc == BH_OK && options.store)
        rc = open_store(&unpack, &err);
    if (rc == BH_OK && options.store)
        rc = unpack_image(&unpack, &err);
    if (rc == BH_OK)
        printf("%s\n", options.store ? unpack.order.told->manifest.digest : "none");
    else
        printf("!%d\n%s\n%s\n", (int)rc, err.msg, err.hint);
    return fflush(stdout) == 0 ? 0 : EXIT_FAILURE;
}
