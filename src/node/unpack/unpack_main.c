/* bulkhead-unpack: one for each start of a job with an image.  It unpacks the image of a layout into the
 * store of the job's tenant, unless it is there.
 *
 * This process is root and reads nothing that a tenant or registry wrote: it makes a cell (unpack_sandbox.h)
 * and runs one step after the other in it, in children that run as the user nobody.  Steps that read the
 * submitter's layout have the submitter's rights; umoci gets only what the steps before it checked and wrote
 * anew.  A complete image gets its name by one rename.  To end this process ends all of its steps.
 *
 * Standard output is the report: "DIGEST\n", or "!RC\nmessage\nhint\n". */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
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

#include "base/disk_space.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/process.h"
#include "model/image.h"
#include "node/common/path.h"
#include "node/unpack/pull.h"
#include "node/unpack/unpack_run.h"
#include "node/unpack/unpack_sandbox.h"
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

struct unpack_options {
    const char *tag, *digest, *store, *tool, *cgroup_mount, *cgroup, *remove, *scratch;
    uint64_t scratch_bytes, base, uid, gid, lease, bytes_max;
    struct bh_pull pull; /* `source` NULL: the image is a layout */
};

struct unpack {
    struct unpack_options *options;
    struct bh_unpack_order order;
    struct bh_unpack_runner runner;
    int store, lock;
    char folder[32]; /* of the stage, in the store */
};

/* ---- this process ---- */

static bh_rc
unpack_confine(const struct unpack_options *options, struct bh_err *err)
{
    static const struct rlimit none = { 0, 0 }, few = { FILES_MAX, FILES_MAX };
    struct bh_cgroup_host host;
    bh_rc rc = bh_cgroup_probe(options->cgroup_mount, &host, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_cgroup_enter(&host, options->cgroup, err);
    if (rc != BH_OK)
        return rc;
    umask(022);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() == 1 || setrlimit(RLIMIT_CORE, &none) != 0
        || setrlimit(RLIMIT_NOFILE, &few) != 0)
        return bh_err_errno(err, "set limits");
    errno = 0;
    (void)!nice(NICENESS);
    return BH_OK;
}

static bh_rc
unpack_open_store(struct unpack *unpack, struct bh_err *err)
{
    const struct unpack_options *options = unpack->options;
    char path[PATH_SIZE];

    unpack->store = open(options->store, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (unpack->store < 0)
        return bh_err_errno(err, "open %s", options->store);
    unpack->lock =
        openat(unpack->store, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (unpack->lock < 0)
        return bh_err_errno(err, "open the lock of %s", options->store);
    bh_path_format(unpack->folder, sizeof unpack->folder, "tmp-%" PRIu64, options->lease);
    bh_path_format(path, sizeof path, "%s/%s", options->store, unpack->folder);
    bh_path_remove_tree(path);
    if (mkdir(path, 0700) != 0 || lchown(path, (uid_t)options->base, (gid_t)options->base) != 0)
        return bh_err_errno(err, "make folder %s", path);
    return BH_OK;
}

static bh_rc
unpack_enter_sandbox(struct unpack *unpack, struct bh_err *err)
{
    const struct unpack_options *options = unpack->options;
    char path[PATH_SIZE];

    bh_path_format(path, sizeof path, "%s/%s", options->store, unpack->folder);
    return bh_unpack_sandbox_enter(&(struct bh_unpack_sandbox){ path, options->tool, options->pull.program },
                                   err);
}

/* One image of a tenant is fetched and unpacked at a time, so that several members of a gang
 * have it once.  Held until the end. */
static bh_rc
unpack_lock_store(const struct unpack *unpack, struct bh_err *err)
{
    return flock(unpack->lock, LOCK_EX) == 0 ? BH_OK : bh_err_errno(err, "lock the tenant's images");
}

/* ---- steps ---- */

static bool
unpack_stage_progress(void *self, struct bh_unpack_progress *ret_progress)
{
    struct bh_unpack_shared *shared = self;

    *ret_progress = (struct bh_unpack_progress){ BH_IMAGE_CHECKING, shared->read_bytes, shared->total_bytes };
    return true;
}

static bool
unpack_tool_progress(void *self, struct bh_unpack_progress *ret_progress)
{
    *ret_progress = (struct bh_unpack_progress){ .stage = BH_IMAGE_UNPACKING };
    return true;
}

/* One whose progress is said. */
static bh_rc
unpack_run_long(struct unpack *unpack, int (*step)(void *self), struct bh_err *err)
{
    bool stage = step == bh_unpack_stage;
    bh_rc rc;

    unpack->runner.progress = stage ? unpack_stage_progress : unpack_tool_progress;
    unpack->runner.progress_self = unpack->order.shared;
    rc = bh_unpack_run(&unpack->runner, step, stage && !unpack->order.pull, err);
    unpack->runner.progress = NULL;
    return rc;
}

static bh_rc
unpack_run_tool(struct unpack *unpack, struct bh_err *err)
{
    struct bh_err ignored;

    if (unpack_run_long(unpack, bh_unpack_tool, &ignored) == BH_OK)
        return BH_OK;
    (void)!bh_unpack_run(&unpack->runner, bh_unpack_explain, false, err);
    return err->rc;
}

static bh_rc
unpack_put_in_place(struct unpack *unpack, struct bh_err *err)
{
    static const char *const leftovers[] = { "in", "tmp" }, *const files[] = { "config", "log" };
    char path[64];

    for (size_t i = 0; i < BH_COUNT(leftovers); i++) {
        bh_path_format(path, sizeof path, BH_UNPACK_SANDBOX_STAGE "/%s", leftovers[i]);
        bh_path_remove_tree(path);
    }
    for (size_t i = 0; i < BH_COUNT(files); i++) {
        bh_path_format(path, sizeof path, BH_UNPACK_SANDBOX_STAGE "/%s", files[i]);
        unlink(path);
    }
    if (syncfs(unpack->store) != 0)
        return bh_err_errno(err, "write the image to the disk");
    if (lchown(BH_UNPACK_SANDBOX_STAGE, 0, 0) != 0
        || renameat(unpack->store, unpack->folder, unpack->store, unpack->order.shared->manifest.digest) != 0)
        return bh_err_errno(err, "move the image into place");
    return fsync(unpack->store) == 0 ? BH_OK : bh_err_errno(err, "move the image into place");
}

/* Whether it is there; then this is its last use. */
static bool
unpack_is_present(const struct unpack *unpack, const char *digest)
{
    char path[128];

    bh_path_format(path, sizeof path, "%.64s/image.json", digest);
    return utimensat(unpack->store, path, NULL, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A digest that a child reported becomes a name. */
static bh_rc
unpack_check_digest(const struct unpack *unpack, struct bh_err *err)
{
    char *digest = unpack->order.shared->manifest.digest;

    digest[BH_IMAGE_HEX - 1] = '\0';
    return bh_image_is_digest(digest) ? BH_OK : bh_err_set(err, BH_BUG, "an invalid digest");
}

/* Which image it is, by its manifest's digest. */
static bh_rc
unpack_program_resolve(struct unpack *unpack, struct bh_err *err)
{
    struct bh_pull *pull = &unpack->options->pull;
    bh_rc rc = BH_OK;

    if (pull->source)
        rc = bh_pull_begin(pull, err);
    if (rc != BH_OK)
        return rc;
    rc = unpack_enter_sandbox(unpack, err);
    if (rc != BH_OK)
        return rc;
    if (pull->source)
        rc = bh_pull_enter(pull, unpack->runner.base, err);
    if (rc != BH_OK)
        return rc;
    rc = pull->source ? bh_pull_resolve(pull, &unpack->runner, err)
                      : bh_unpack_run(&unpack->runner, bh_unpack_resolve, true, err);
    if (rc != BH_OK)
        return rc;
    return unpack_check_digest(unpack, err);
}

/* The digest was asked for, so that no registry need say which image it is. */
static bool
unpack_program_has_digest(struct unpack *unpack)
{
    const struct unpack_options *options = unpack->options;
    char *digest = unpack->order.shared->manifest.digest;

    if (!options->pull.source || !bh_image_is_digest(options->digest)
        || !unpack_is_present(unpack, options->digest))
        return false;
    memcpy(digest, options->digest, BH_IMAGE_HEX);
    return true;
}

static bh_rc
unpack_program_fetch(struct unpack *unpack, struct bh_err *err)
{
    bh_rc rc = bh_pull_fetch(&unpack->options->pull, &unpack->runner, err);

    bh_pull_end(&unpack->options->pull);
    return rc;
}

static void
unpack_remove_pulled(void)
{
    bh_path_remove_tree(BH_PULL_FOLDER);
}

static bh_rc
unpack_new(struct unpack *unpack, struct bh_err *err)
{
    bh_rc rc = unpack->order.pull ? unpack_program_fetch(unpack, err) : BH_OK;

    if (rc != BH_OK)
        return rc;
    rc = unpack_run_long(unpack, bh_unpack_stage, err);
    if (rc != BH_OK)
        return rc;
    if (unpack->order.pull)
        unpack_remove_pulled();
    rc = unpack_run_tool(unpack, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_unpack_run(&unpack->runner, bh_unpack_finish, false, err);
    if (rc != BH_OK)
        return rc;
    return unpack_put_in_place(unpack, err);
}

static bh_rc
unpack_drop_stage(const struct unpack *unpack, struct bh_err *err)
{
    if (unpack->order.pull)
        unpack_remove_pulled();
    return unlinkat(unpack->store, unpack->folder, AT_REMOVEDIR) == 0
               ? BH_OK
               : bh_err_errno(err, "remove %s", unpack->folder);
}

static bh_rc
unpack_image(struct unpack *unpack, struct bh_err *err)
{
    const char *digest = unpack->order.shared->manifest.digest;
    bh_rc rc;

    if (unpack_program_has_digest(unpack))
        return unpack_drop_stage(unpack, err);
    rc = unpack_program_resolve(unpack, err);
    if (rc != BH_OK)
        return rc;
    if (unpack_is_present(unpack, digest))
        return unpack_drop_stage(unpack, err);
    rc = unpack_lock_store(unpack, err);
    if (rc != BH_OK)
        return rc;
    return unpack_is_present(unpack, digest) ? unpack_drop_stage(unpack, err) : unpack_new(unpack, err);
}

/* ---- scratch ---- */

/* All of it is taken at once: a disk that fills later does not fail the job in the middle
 * of a write that it has room for. */
static bh_rc
unpack_program_reserve(const struct unpack_options *options, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    off_t bytes = (off_t)options->scratch_bytes;
    bh_rc rc = bh_file_open(options->scratch, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600, &fd, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "scratch");
    if (!bh_disk_leaves_space(fd, options->scratch_bytes)) {
        bh_err_set(err, BH_QUOTA, "scratch: %" PRIu64 " MiB would fill the node's disk",
                   options->scratch_bytes >> 20);
        return bh_err_hint(err, "it is retried when a job on the node has ended; ask for less, or have the "
                                "administrator make room at scratch_dir");
    }
    if (fallocate(fd, 0, 0, bytes) == 0 || (errno == EOPNOTSUPP && ftruncate(fd, bytes) == 0))
        return BH_OK;
    bh_err_errno(err, "scratch: allocate %" PRIu64 " MiB of the node's disk", options->scratch_bytes >> 20);
    if (err->sys == ENOSPC) /* others took it meanwhile */
        err->rc = BH_QUOTA;
    return bh_err_hint(err, "ask for less, or have the administrator make room at scratch_dir");
}

/* Without a journal: nothing of it outlives the job. */
static bh_rc
unpack_make_scratch(const struct unpack_options *options, struct bh_err *err)
{
    const char *const argv[] = { "mkfs.ext4",
                                 "-q",
                                 "-F",
                                 "-m0",
                                 "-O",
                                 "^has_journal",
                                 "-E",
                                 "nodiscard,lazy_itable_init=1,root_owner=0:0",
                                 options->scratch,
                                 NULL };
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    struct bh_process_options program = { .program = "/usr/sbin/mkfs.ext4",
                                          .argv = argv,
                                          .envp = env,
                                          .fds = { { STDERR_FILENO, STDERR_FILENO } },
                                          .fd_count = 1 };
    pid_t pid;
    bh_rc rc = unpack_program_reserve(options, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_process_start(&program, &pid, NULL, err);
    if (rc != BH_OK)
        return rc;
    if (bh_process_wait(pid) != 0)
        return bh_err_set(err, BH_IO, "scratch: mkfs.ext4 failed on %s", options->scratch);
    return BH_OK;
}

/* ---- the command line ---- */

static bool
unpack_program_read_number(const char *text, uint64_t *ret_number)
{
    struct bh_err ignored;

    return bh_parse_u64(text, ret_number, &ignored) == BH_OK;
}

enum unpack_kind { WORD_TEXT, WORD_NUMBER, WORD_LIST };

static const struct word {
    const char *name;
    size_t offset, count_offset; /* of a list: where it counts */
    enum unpack_kind kind;
    uint32_t most;
} words[] = {
#define WORD(name, member, kind)                                                                             \
    {                                                                                                        \
        name, offsetof(struct unpack_options, member), 0, kind, 0                                            \
    }
#define WORDS(name, member, counter, most)                                                                   \
    {                                                                                                        \
        name, offsetof(struct unpack_options, member), offsetof(struct unpack_options, counter), WORD_LIST,  \
            most                                                                                             \
    }
    WORD("tag", tag, WORD_TEXT),
    WORD("digest", digest, WORD_TEXT),
    WORD("store", store, WORD_TEXT),
    WORD("umoci", tool, WORD_TEXT),
    WORD("cgroup-mount", cgroup_mount, WORD_TEXT),
    WORD("cgroup", cgroup, WORD_TEXT),
    WORD("scratch", scratch, WORD_TEXT),
    WORD("remove", remove, WORD_TEXT),
    WORD("source", pull.source, WORD_TEXT),
    WORD("skopeo", pull.program, WORD_TEXT),
    WORD("auth", pull.auth, WORD_TEXT),
    WORD("scratch-bytes", scratch_bytes, WORD_NUMBER),
    WORD("base", base, WORD_NUMBER),
    WORD("uid", uid, WORD_NUMBER),
    WORD("gid", gid, WORD_NUMBER),
    WORD("lease", lease, WORD_NUMBER),
    WORD("bytes-max", bytes_max, WORD_NUMBER),
    WORD("stall", pull.stall_s, WORD_NUMBER),
    WORDS("host", pull.entries, pull.entry_count, BH_RELAY_HOSTS_MAX),
    WORDS("deny", pull.deny, pull.deny_count, BH_RELAY_DENY_MAX),
#undef WORDS
#undef WORD
};

static bool
unpack_program_read_word_of(const struct word *word, const char *value, struct unpack_options *options)
{
    char *place = (char *)options + word->offset;
    uint32_t *count = (uint32_t *)(void *)((char *)options + word->count_offset);

    if (word->kind == WORD_NUMBER)
        return unpack_program_read_number(value, (uint64_t *)(void *)place);
    if (word->kind == WORD_LIST && *count == word->most)
        return false;
    if (word->kind == WORD_LIST)
        place += (*count)++ * sizeof value;
    memcpy(place, &value, sizeof value);
    return true;
}

/* "--name=value" */
static bool
unpack_read_word(const char *text, struct unpack_options *options)
{
    for (size_t i = 0; i < BH_COUNT(words); i++) {
        size_t length = strlen(words[i].name);

        if (strncmp(text, "--", 2) == 0 && strncmp(text + 2, words[i].name, length) == 0
            && text[2 + length] == '=')
            return unpack_program_read_word_of(&words[i], text + 2 + length + 1, options);
    }
    return false;
}

static bool
unpack_read_options(int argc, char **argv, struct unpack_options *options)
{
    const struct bh_pull *pull = &options->pull;

    for (int i = 1; i < argc; i++)
        if (!unpack_read_word(argv[i], options))
            return false;
    if (options->remove)
        return true;
    if (!options->cgroup_mount || !options->cgroup || (!options->store && !options->scratch))
        return false;
    if (pull->source && (!pull->program || pull->entry_count == 0 || pull->stall_s == 0))
        return false;
    return !options->store || (options->tool && options->base);
}

/* The caller does not wait for it. */
static int
unpack_remove_later(const char *path)
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

/* The descriptor that a cell's children inherit is a layout, or becomes one: nothing else may
 * come to stand there. */
static bh_rc
unpack_take_places(struct unpack *unpack, struct bh_err *err)
{
    const struct unpack_options *options = unpack->options;
    uid_t reader = options->pull.source ? 0 : BH_UNPACK_SANDBOX_SUBMITTER; /* as the cell numbers it */
    void *shared =
        mmap(NULL, sizeof *unpack->order.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return bh_err_errno(err, "map memory");
    if (options->pull.source && dup2(STDIN_FILENO, BH_UNPACK_SANDBOX_FD) < 0)
        return bh_err_errno(err, "take a descriptor");
    unpack->order = (struct bh_unpack_order){
        .pull = options->pull.source ? &options->pull : NULL,
        .tag = options->tag,
        .digest = options->digest,
        .bytes_max = options->bytes_max,
        .layout = { &bh_crypto_openssl, BH_UNPACK_SANDBOX_FD, reader, reader },
        .shared = shared,
    };
    unpack->runner = (struct bh_unpack_runner){ .base = (uint32_t)options->base,
                                                .uid = (uint32_t)options->uid,
                                                .gid = (uint32_t)options->gid,
                                                .order = &unpack->order };
    return BH_OK;
}

int
main(int argc, char **argv)
{
    static struct unpack_options options = { .tag = "", .digest = "", .pull.auth = "" };
    struct unpack unpack = { .options = &options, .store = -1 };
    struct bh_err err = { 0 };
    bh_rc rc;

    if (!unpack_read_options(argc, argv, &options)) {
        fputs("bulkhead-unpack is started by bulkhead-node\n", stderr);
        return EXIT_USAGE;
    }
    if (options.remove)
        return unpack_remove_later(options.remove);
    signal(SIGPIPE, SIG_IGN); /* a node that is gone is no reason to leave a stage behind */
    rc = unpack_take_places(&unpack, &err);
    if (rc == BH_OK)
        rc = unpack_confine(&options, &err);
    if (rc == BH_OK && options.scratch)
        rc = unpack_make_scratch(&options, &err);
    if (rc == BH_OK && options.store)
        rc = unpack_open_store(&unpack, &err);
    if (rc == BH_OK && options.store)
        rc = unpack_image(&unpack, &err);
    if (rc == BH_OK)
        printf("%s\n", options.store ? unpack.order.shared->manifest.digest : "none");
    else
        printf("!%d\n%s\n%s\n", (int)rc, err.msg, err.hint);
    return fflush(stdout) == 0 ? 0 : EXIT_FAILURE;
}
