#include "node/unpack/pull.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "node/common/path.h"
#include "node/unpack/pull_steps.h"
#include "node/unpack/unpack_sandbox.h"

#define CERTIFICATES "/etc/ssl/certs/ca-certificates.crt"

enum {
    AUTH_MAX = 1 << 20,
    CERTIFICATES_MAX = 4 << 20,
    MANIFEST_BYTES = 3 << 20, /* the manifest and the talk around it */
    BESIDE_BYTES = 4 << 20,   /* talk beside the blobs, and a sixteenth of them */
    BESIDE_SHARE = 16,
    DOCUMENTS_MAX = 2 /* an index, and the manifest that it lists */
};

/* ---- before the cell ---- */

static bh_rc
pull_read_auth(struct bh_pull *pull, struct bh_err *err)
{
    struct stat st;
    bh_rc rc;

    if (!*pull->auth)
        return BH_OK;
    if (stat(pull->auth, &st) != 0)
        return bh_err_errno(err, "registry_auth: inspect %s", pull->auth);
    if (st.st_uid != 0 || (st.st_mode & 077) != 0) {
        bh_err_set(err, BH_DENIED, "registry_auth: %s can be used by users other than root", pull->auth);
        return bh_err_hint(err, "chown root %s; chmod 600 %s", pull->auth, pull->auth);
    }
    rc = bh_file_read(pull->auth, AUTH_MAX, &pull->auth_text, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "registry_auth");
}

/* Without them no certificate is trusted, and skopeo says so. */
static void
pull_read_certificates(struct bh_pull *pull)
{
    struct bh_err ignored;

    if (bh_file_read(CERTIFICATES, CERTIFICATES_MAX, &pull->certificates, &ignored) != BH_OK)
        bh_buf_clear(&pull->certificates);
}

static bool
pull_is_listed(const struct bh_pull *pull, const struct bh_registry *host)
{
    for (uint32_t i = 0; i < pull->host_count; i++)
        if (strcmp(pull->hosts[i].host, host->host) == 0 && pull->hosts[i].port == host->port)
            return true;
    return false;
}

static bh_rc
pull_read_hosts(struct bh_pull *pull, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < pull->entry_count && rc == BH_OK; i++) {
        struct bh_registry host;

        rc = bh_registry_parse(pull->entries[i], true, &host, err);
        if (rc == BH_OK && !pull_is_listed(pull, &host))
            pull->hosts[pull->host_count++] = host;
    }
    return rc;
}

static bh_rc
pull_make_relay(struct bh_pull *pull, struct bh_err *err)
{
    bh_rc rc = pull_read_hosts(pull, err);

    if (rc != BH_OK)
        return rc;
    pull->relay = (struct bh_relay){
        .hosts = pull->hosts,
        .host_count = pull->host_count,
        .deny = pull->deny,
        .deny_count = pull->deny_count,
        .shared =
            mmap(NULL, sizeof *pull->relay.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
        .control = -1,
    };
    return pull->relay.shared == MAP_FAILED ? bh_err_errno(err, "map memory")
                                            : bh_relay_start(&pull->relay, err);
}

bh_rc
bh_pull_begin(struct bh_pull *pull, struct bh_err *err)
{
    bh_rc rc;

    bh_buf_init(&pull->auth_text, AUTH_MAX + 1);
    bh_buf_init(&pull->certificates, CERTIFICATES_MAX + 1);
    rc = pull_read_auth(pull, err);
    if (rc != BH_OK)
        return rc;
    pull_read_certificates(pull);
    return pull_make_relay(pull, err);
}

/* ---- in the cell ---- */

static bh_rc
pull_write_file(const char *path, const struct bh_buf *text, uint32_t owner, struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);

    if (fd < 0 || fchown(fd, owner, owner) != 0)
        return bh_err_errno(err, "create %s", path);
    return text->overflow ? bh_err_set(err, BH_FULL, "%s is too long", path)
                          : bh_fd_write_all(fd, text->bytes, text->length, err);
}

/* The hosts that skopeo can resolve: the listed ones, at the relay's addresses. */
static void
pull_put_hosts(const struct bh_pull *pull, struct bh_buf *out)
{
    for (uint32_t i = 0; i < pull->host_count; i++) {
        char address[16];

        bh_relay_address(&pull->relay, i, address);
        bh_buf_printf(out, "%s %s\n", address, pull->hosts[i].host);
    }
}

static bh_rc
pull_write_etc(struct bh_pull *pull, uint32_t base, struct bh_err *err)
{
    struct bh_buf hosts, order;
    bh_rc rc;

    bh_buf_init(&hosts, 16 << 10);
    bh_buf_init(&order, 64);
    pull_put_hosts(pull, &hosts);
    bh_buf_puts(&order, "hosts: files\n");
    rc = pull_write_file(BH_UNPACK_SANDBOX_ETC "/hosts", &hosts, base, err);
    if (rc == BH_OK)
        rc = pull_write_file(BH_UNPACK_SANDBOX_ETC "/nsswitch.conf", &order, base, err);
    if (rc == BH_OK)
        rc = pull_write_file(BH_PULL_CERTIFICATES, &pull->certificates, base, err);
    if (rc == BH_OK && *pull->auth)
        rc = pull_write_file(BH_PULL_AUTH, &pull->auth_text, base, err);
    bh_buf_fini(&hosts);
    bh_buf_fini(&order);
    return rc;
}

bh_rc
bh_pull_enter(struct bh_pull *pull, uint32_t base, struct bh_err *err)
{
    static const char *const folders[] = { BH_PULL_FOLDER, BH_PULL_FOLDER "/tmp", BH_PULL_FOLDER "/blobs",
                                           BH_PULL_FOLDER "/blobs/sha256" };
    BH_AUTO(bh_fd_close)
    int fd = -1;
    bh_rc rc = BH_OK;

    if (mount("bulkhead-etc", BH_UNPACK_SANDBOX_ETC, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=755,size=6m")
        != 0)
        return bh_err_errno(err, "mount the sandbox's files");
    rc = pull_write_etc(pull, base, err);
    for (size_t i = 0; i < BH_COUNT(folders) && rc == BH_OK; i++)
        if (mkdir(folders[i], 0700) != 0 || lchown(folders[i], base, base) != 0)
            rc = bh_err_errno(err, "make folder %s", folders[i]);
    if (rc != BH_OK)
        return rc;
    fd = open(BH_PULL_FOLDER, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || dup2(fd, BH_UNPACK_SANDBOX_FD) < 0)
        return bh_err_errno(err, "open %s", BH_PULL_FOLDER);
    return bh_relay_listen(&pull->relay, err);
}

void
bh_pull_end(struct bh_pull *pull)
{
    bh_relay_stop(&pull->relay);
    umount2(BH_UNPACK_SANDBOX_ETC, MNT_DETACH);
    bh_buf_fini(&pull->auth_text);
    bh_buf_fini(&pull->certificates);
}

/* ---- watching it ---- */

/* What it wrote; the kernel says so, nothing is opened. */
static uint64_t
pull_written_bytes(void)
{
    DIR *dir = opendir(BH_PULL_FOLDER "/blobs/sha256");
    uint64_t bytes = 0;
    struct stat st;

    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_size;
    if (dir)
        closedir(dir);
    if (fstatat(AT_FDCWD, BH_PULL_FOLDER "/manifest", &st, AT_SYMLINK_NOFOLLOW) == 0)
        bytes += (uint64_t)st.st_size;
    return bytes;
}

static bool
pull_progress(void *self, struct bh_unpack_progress *ret_progress)
{
    struct bh_pull *pull = self;
    struct bh_relay_shared *shared = pull->relay.shared;
    bh_ns moved_at = atomic_load(&shared->moved_at), now = bh_time_monotonic();
    uint64_t received = atomic_load(&shared->received_bytes);

    moved_at = moved_at > pull->begun_at ? moved_at : pull->begun_at;
    *ret_progress = (struct bh_unpack_progress){ .stage = BH_IMAGE_FETCHING };
    if (pull->fetching) {
        ret_progress->total_bytes = pull->most_bytes;
        ret_progress->done_bytes = received < pull->most_bytes ? received : pull->most_bytes;
    }
    if (atomic_load(&shared->over) || pull_written_bytes() > pull->most_bytes + BESIDE_BYTES)
        pull->fault = BH_PULL_TOO_MUCH;
    else if (now > moved_at && now - moved_at > pull->stall_s * BH_NS_PER_S)
        pull->fault = BH_PULL_STALLED;
    else
        return true;
    return false;
}

/* ---- its course ---- */

/* Why it ended, when it was not skopeo that gave up. */
static bh_rc
pull_fault_error(const struct bh_pull *pull, struct bh_err *err)
{
    if (pull->fault == BH_PULL_STALLED) {
        bh_err_set(err, BH_TIMEOUT, "%s sent nothing for %" PRIu64 " seconds", pull->hosts[0].host,
                   pull->stall_s);
        return bh_err_hint(err, "registry_stall_s in node.conf is the limit");
    }
    if (!pull->fetching)
        return bh_err_set(err, BH_FULL, "%s sent a manifest that is too large", pull->hosts[0].host);
    return bh_err_set(err, BH_INVALID, "%s sent more than its manifest lists", pull->hosts[0].host);
}

/* A host that was not reached, in the relay's words: skopeo knows of a broken connection. */
static bool
pull_report_failure(const struct bh_pull *pull, struct bh_err *err)
{
    char last_error[BH_RELAY_ERROR_MAX];

    memcpy(last_error, pull->relay.shared->last_error, sizeof last_error);
    last_error[sizeof last_error - 1] = '\0';
    if (!last_error[0])
        return false;
    bh_err_set(err, BH_UNAVAILABLE, "cannot reach %s", last_error);
    return true;
}

/* skopeo as a step, with what may come meanwhile. */
static bh_rc
pull_run_skopeo(struct bh_pull *pull, struct bh_unpack_runner *runner, int (*step)(void *order),
                struct bh_err *err)
{
    struct bh_relay_shared *shared = pull->relay.shared;
    uint64_t beside = pull->fetching ? BESIDE_BYTES + pull->most_bytes / BESIDE_SHARE : 0;
    bh_rc rc;

    shared->last_error[0] = '\0';
    atomic_store(&shared->received_bytes, 0);
    atomic_store(&shared->limit_bytes, pull->most_bytes + beside);
    pull->begun_at = bh_time_monotonic();
    runner->progress = pull_progress;
    runner->progress_self = pull;
    rc = bh_unpack_run(runner, step, false, err);
    runner->progress = NULL;
    if (rc == BH_OK && !atomic_load(&shared->over))
        return BH_OK;
    if (atomic_load(&shared->over))
        pull->fault = BH_PULL_TOO_MUCH;
    if (pull->fault != BH_PULL_RUNNING)
        return pull_fault_error(pull, err);
    if (rc == BH_FULL || pull_report_failure(pull, err)) /* it was killed, or no host answered */
        return err->rc;
    (void)!bh_unpack_run(runner, bh_pull_step_explain, false, err);
    return err->rc;
}

bh_rc
bh_pull_resolve(struct bh_pull *pull, struct bh_unpack_runner *runner, struct bh_err *err)
{
    struct bh_unpack_shared *shared = runner->order->shared;
    bh_rc rc = BH_OK;

    pull->fetching = false;
    pull->most_bytes = MANIFEST_BYTES;
    for (int i = 0; i < DOCUMENTS_MAX && rc == BH_OK && !shared->resolved; i++) {
        rc = pull_run_skopeo(pull, runner, bh_pull_step_inspect, err);
        if (rc == BH_OK)
            rc = bh_unpack_run(runner, bh_pull_step_read, false, err);
    }
    if (rc != BH_OK)
        return rc;
    if (!shared->resolved)
        return bh_err_set(err, BH_INVALID, "its manifest does not list an image");
    if (shared->total_bytes <= runner->order->bytes_max)
        return BH_OK;
    bh_err_set(err, BH_FULL, "it is larger than a tenant's images may be, %" PRIu64 " MiB",
               shared->total_bytes >> 20);
    return bh_err_hint(err, "images_cap_mib in node.conf is the limit");
}

bh_rc
bh_pull_fetch(struct bh_pull *pull, struct bh_unpack_runner *runner, struct bh_err *err)
{
    bh_rc rc;

    pull->fetching = true;
    pull->most_bytes = runner->order->shared->total_bytes;
    rc = pull_run_skopeo(pull, runner, bh_pull_step_copy, err);
    return rc == BH_OK ? bh_unpack_run(runner, bh_pull_step_store, false, err) : rc;
}
