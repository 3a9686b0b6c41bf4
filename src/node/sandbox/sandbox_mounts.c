#include "node/sandbox/sandbox_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/proc.h"
#include "model/spec.h"
#include "node/common/path.h"
#include "node/sandbox/evidence.h"

bh_rc
bh_sandbox_mounts_add(struct sandbox_spec *spec, const char *source, const char *target, bool write,
                      struct bh_err *err)
{
    if (!source || !target || spec->sandbox->mount_count >= SANDBOX_MOUNTS_MAX - BH_DRIVER_COVERS_MAX)
        return sandbox_spec_out_of_space(err);
    spec->mounts[spec->sandbox->mount_count++] = (struct bh_sandbox_mount){ source, target, write };
    return BH_OK;
}

bh_rc
bh_sandbox_mounts_make_place(struct sandbox_spec *spec, char **ret_place, struct bh_err *err)
{
    char *place = bh_arena_printf(spec->arena, "%s/m%u", spec->sandbox->bundle, spec->clone_count);

    if (!place || spec->clone_count == SANDBOX_CLONES_MAX)
        return sandbox_spec_out_of_space(err);
    if (mkdir(place, 0711) != 0 && errno != EEXIST)
        return bh_err_errno(err, "make folder %s", place);
    spec->clone_count++;
    *ret_place = place;
    return BH_OK;
}

bh_rc
bh_sandbox_mounts_add_shared(struct sandbox_spec *spec, const char *source, const char *target,
                             struct bh_err *err)
{
    char empty[BH_NODE_PATH_MAX], below[BH_PROC_PATH_MAX], options[BH_NODE_PATH_MAX + 128];
    BH_AUTO(bh_fd_close) int fd = -1;
    char *place = NULL;
    bh_rc rc;

    if (!bh_evidence_is_needed(spec->start->boundary) || !source)
        return bh_sandbox_mounts_add(spec, source, target, false, err);
    fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOTDIR ? bh_sandbox_mounts_add(spec, source, target, false, err)
                                : bh_err_errno(err, "open %s", source);
    bh_path_format(empty, sizeof empty, "%s/empty", spec->sandbox->bundle);
    bh_proc_fd_path(fd, below);
    bh_path_format(options, sizeof options, "lowerdir=%s:%s", empty, below);
    rc = bh_dir_make(empty, 0755, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sandbox_mounts_make_place(spec, &place, err);
    if (rc != BH_OK)
        return rc;
    if (mount("bulkhead-shared", place, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) != 0) {
        bh_err_errno(err, "mount %s with its own inodes", source);
        rc = bh_err_hint(
            err,
            "its file system cannot be below an overlay: use a different one, or ask for a boundary below "
            "hard");
    }
    if (rc != BH_OK)
        return rc;
    return bh_sandbox_mounts_add(spec, place, target, false, err);
}

/* ---- mounts that the job asks for ---- */

static bool
mounts_is_at_or_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/');
}

/* The target of a mount must not lie in another mount: it would be made, and looked up, among files of
 * another owner. */
static bh_rc
mounts_check_apart(const struct sandbox_spec *spec, const char *target, struct bh_err *err)
{
    for (uint32_t i = 0; i < spec->sandbox->mount_count; i++) {
        const char *other = spec->mounts[i].target;

        if (mounts_is_at_or_below(target, other) || mounts_is_at_or_below(other, target))
            return bh_err_set(err, BH_DENIED, "%.80s and the mount at %.80s overlap", target, other);
    }
    return BH_OK;
}

/* Whether a mount of the job's shows the folder where it is on this machine. */
static bool
mounts_show_cwd(const struct sandbox_spec *spec, const char *cwd)
{
    const struct bh_msg_mount *mounts = spec->start->mounts.items;

    for (uint32_t i = 0; i < spec->start->mounts.count; i++) {
        if (strcmp(mounts[i].source, mounts[i].target) == 0 && mounts_is_at_or_below(cwd, mounts[i].target))
            return true;
    }
    return false;
}

static bool
mounts_may_write(const struct sandbox_spec *spec)
{
    uid_t uid = spec->start->submitter_uid;

    return bh_path_is_person(uid) && uid >= spec->node->conf.write_uid_min;
}

/* The folder by descriptor, and in request->write whether it may be written. */
static bh_rc
mounts_open_asked(const struct sandbox_spec *spec, struct bh_path_request *request, bool may_fall_back,
                  int *ret_fd, struct bh_err *err)
{
    uid_t least = spec->node->conf.write_uid_min;
    bool writes = mounts_may_write(spec);
    bh_rc rc;

    if (request->write && !writes && !may_fall_back) {
        bh_err_set(err, BH_DENIED, "%s: user %u may not mount for writing", request->path, request->uid);
        return bh_err_hint(err, "write_uid_min in node.conf is %u", least);
    }
    if (!writes)
        request->write = false;
    rc = bh_path_open(request, ret_fd, err);
    if (rc == BH_DENIED && request->write && may_fall_back) {
        request->write = false;
        rc = bh_path_open(request, ret_fd, err);
    }
    return rc;
}

/* A mount of the submitter's is resolved as the submitter and copied to a place that only
 * root reaches, so that nothing can be exchanged between the check and the use.  Files
 * of a system user are never written: set-uid programs could be left there. */
static bh_rc
mounts_clone(struct sandbox_spec *spec, const struct bh_msg_mount *wanted, bool may_fall_back,
             struct bh_err *err)
{
    const struct bh_msg_start *start = spec->start;
    struct bh_path_owner owner = { start->submitter_uid,
                                   spec->sandbox->uid_base + spec->sandbox->uid,
                                   start->submitter_gid,
                                   spec->sandbox->uid_base + spec->sandbox->gid,
                                   1,
                                   .same_below = spec->sandbox->uid_base };
    struct bh_path_request request = {
        wanted->source,       "mount_roots",        &spec->node->conf.mount_roots,
        start->submitter_uid, start->submitter_gid, wanted->write
    };
    BH_AUTO(bh_fd_close) int fd = -1;
    char *place = NULL;
    bh_rc rc = mounts_open_asked(spec, &request, may_fall_back, &fd, err);

    if (rc == BH_OK)
        rc = bh_sandbox_mounts_make_place(spec, &place, err);
    if (rc == BH_OK)
        rc = bh_path_clone(fd, place, request.write, mounts_may_write(spec) ? &owner : NULL, err);
    if (rc == BH_UNAVAILABLE && (may_fall_back || !request.write)) {
        request.write = false;
        rc = bh_path_clone(fd, place, false, NULL, err);
    }
    if (rc != BH_OK)
        return rc;
    if (wanted->write && !request.write)
        snprintf(spec->record, 200, "%.120s is read-only for this job", wanted->source);
    return request.write ? bh_sandbox_mounts_add(spec, place, wanted->target, true, err)
                         : bh_sandbox_mounts_add_shared(spec, place, wanted->target, err);
}

bh_rc
bh_sandbox_mounts_put_asked(struct sandbox_spec *spec, struct bh_err *err)
{
    const struct bh_msg_mount *mounts = spec->start->mounts.items;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < spec->start->mounts.count && rc == BH_OK; i++) {
        rc = bh_path_target_check(mounts[i].target, err);
        if (rc == BH_OK)
            rc = mounts_check_apart(spec, mounts[i].target, err);
        if (rc == BH_OK)
            rc = mounts_clone(spec, &mounts[i], false, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "mounts[%u]", i);
    }
    return rc;
}

/* What the image says, where the sandbox does not put something else there. */
static const char *
mounts_usual_cwd(const struct sandbox_spec *spec)
{
    static const char *const covered[] = { "/tmp", "/dev", "/proc", "/sys" };
    const char *cwd = spec->image.cwd;

    for (size_t i = 0; i < BH_COUNT(covered) && cwd; i++)
        if (mounts_is_at_or_below(cwd, covered[i]))
            cwd = NULL;
    return cwd ? cwd : "/tmp";
}

/* One that the submitter has, and not the sandbox. */
static bh_rc
mounts_put_own_cwd(struct sandbox_spec *spec, const char *cwd, struct bh_err *err)
{
    struct bh_msg_mount wanted = { cwd, cwd, true };
    bh_rc rc = bh_path_target_check(cwd, err);

    if (rc != BH_OK || mounts_show_cwd(spec, cwd))
        return rc;
    rc = mounts_check_apart(spec, cwd, err);
    return rc == BH_OK ? mounts_clone(spec, &wanted, true, err) : rc;
}

bh_rc
bh_sandbox_mounts_put_cwd(struct sandbox_spec *spec, struct bh_err *err)
{
    const char *cwd = spec->start->cwd;
    bh_rc rc;

    spec->sandbox->cwd = mounts_usual_cwd(spec);
    if (!cwd || !*cwd)
        return BH_OK;
    if (!bh_cwd_is_own(cwd)) {
        rc = mounts_put_own_cwd(spec, cwd, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "cwd");
    }
    spec->sandbox->cwd = cwd;
    return BH_OK;
}
