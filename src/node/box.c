#include "node/box.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "bulkhead/share_door.h"
#include "model/image.h"
#include "model/spec.h"
#include "node/driver.h"
#include "node/evidence.h"
#include "node/image_note.h"
#include "node/limits.h"
#include "node/network.h"
#include "node/devices.h"
#include "node/path.h"
#include "node/scratch.h"
#include "node/share_lease.h"
#include "node/share_slot.h"
#include "node/store.h"
#include "node/unpack.h"
#include "runtime/oci.h"

enum { MOUNTS_MAX = 200 + BH_DRIVER_COVERS_MAX, DEVICES_MAX = 2 + 3 * BH_WIRE_PIECES_MAX, ENV_MAX = 2200, CLONES_MAX = 200 };

struct box {
    struct bh_node *node;
    const struct bh_msg_start *start;
    const struct bh_msg_network *network;
    const struct bh_job *job;
    struct bh_arena *arena;
    struct bh_sandbox *sandbox;
    struct bh_sandbox_mount *mounts;
    struct bh_sandbox_device *devices;
    uint32_t clone_count;
    struct bh_image_note image;  /* of an image of the store; else nothing */
    char *note;
};

static bh_rc
out_of_room(struct bh_err *err)
{
    return bh_err_set(err, BH_FULL, "the order is too long");
}

static bh_rc
add_mount(struct box *box, const char *source, const char *target, bool write,
          struct bh_err *err)
{
    if (!source || !target || box->sandbox->mount_count >= MOUNTS_MAX - BH_DRIVER_COVERS_MAX)
        return out_of_room(err);
    box->mounts[box->sandbox->mount_count++] = (struct bh_sandbox_mount){ source, target, write };
    return BH_OK;
}

/* A new folder of the bundle that a mount can be put on. */
static bh_rc
make_place(struct box *box, char **ret_place, struct bh_err *err)
{
    char *place = bh_arena_printf(box->arena, "%s/m%u", box->sandbox->bundle, box->clone_count);

    if (!place || box->clone_count == CLONES_MAX)
        return out_of_room(err);
    if (mkdir(place, 0711) != 0 && errno != EEXIST)
        return bh_err_errno(err, "make folder %s", place);
    box->clone_count++;
    *ret_place = place;
    return BH_OK;
}

/* A folder that others see, too, read-only: across a boundary that is hard or stronger through an
 * overlay of the job's own, so that its inodes are nobody else's: what is watched or locked there
 * is this job's alone (docs/adr/0058).  A file system that cannot stand below an overlay is
 * refused: the boundary would not hold. */
static bh_rc
add_shared(struct box *box, const char *source, const char *target, struct bh_err *err)
{
    char empty[BH_NODE_PATH_MAX], below[64], options[BH_NODE_PATH_MAX + 128];
    BH_AUTO(bh_fd_close) int fd = -1;
    char *place = NULL;
    bh_rc rc;

    if (!bh_evidence_is_needed(box->start->boundary) || !source)
        return add_mount(box, source, target, false, err);
    fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOTDIR ? add_mount(box, source, target, false, err)
                                : bh_err_errno(err, "open %s", source);
    bh_path_format(empty, sizeof empty, "%s/empty", box->sandbox->bundle);
    bh_path_format(below, sizeof below, "/proc/self/fd/%d", fd);
    bh_path_format(options, sizeof options, "lowerdir=%s:%s", empty, below);
    rc = bh_dir_make(empty, 0755, err);
    if (rc == BH_OK)
        rc = make_place(box, &place, err);
    if (rc == BH_OK
        && mount("bulkhead-shared", place, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) != 0) {
        bh_err_errno(err, "show %s with inodes of its own", source);
        rc = bh_err_hint(err, "its file system cannot stand below an overlay: put it on another, or "
                              "ask for a boundary below hard");
    }
    return rc == BH_OK ? add_mount(box, place, target, false, err) : rc;
}

/* ---- mounts that the job asks for ---- */

static bool
is_at_or_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/');
}

/* The place of a mount must not lie in another one: it would be made, and looked up, among
 * somebody else's files. */
static bh_rc
check_apart(const struct box *box, const char *target, struct bh_err *err)
{
    for (uint32_t i = 0; i < box->sandbox->mount_count; i++) {
        const char *other = box->mounts[i].target;

        if (is_at_or_below(target, other) || is_at_or_below(other, target))
            return bh_err_set(err, BH_DENIED, "%.80s and the mount at %.80s lie in one another",
                              target, other);
    }
    return BH_OK;
}

/* Whether a mount of the job's shows the folder where it is on this machine. */
static bool
is_shown(const struct box *box, const char *cwd)
{
    const struct bh_msg_mount *mounts = box->start->mounts.items;

    for (uint32_t i = 0; i < box->start->mounts.count; i++) {
        if (strcmp(mounts[i].source, mounts[i].target) == 0
            && is_at_or_below(cwd, mounts[i].target))
            return true;
    }
    return false;
}

static bool
may_write(const struct box *box)
{
    uid_t uid = box->start->submitter_uid;

    return bh_path_is_person(uid) && uid >= box->node->conf.write_uid_min;
}

/* The folder by descriptor, and in request->write whether it may be written. */
static bh_rc
open_asked(const struct box *box, struct bh_path_request *request, bool may_fall_back,
           int *ret_fd, struct bh_err *err)
{
    uid_t least = box->node->conf.write_uid_min;
    bool writes = may_write(box);
    bh_rc rc;

    if (request->write && !writes && !may_fall_back) {
        bh_err_set(err, BH_DENIED, "%s: user %u may not mount for writing", request->path,
                   request->uid);
        return bh_err_hint(err, "write_uid_min of node.conf is %u", least);
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

/* A mount of the submitter's is resolved with his eyes and copied to a place that only
 * root reaches, so that nothing can be exchanged between the check and the use.  Files
 * of a system user are never written: set-uid programs could be left there. */
static bh_rc
clone_mount(struct box *box, const struct bh_msg_mount *wanted, bool may_fall_back,
            struct bh_err *err)
{
    const struct bh_msg_start *start = box->start;
    struct bh_path_owner owner = { start->submitter_uid, box->sandbox->uid_base + box->sandbox->uid,
                                   start->submitter_gid, box->sandbox->uid_base + box->sandbox->gid, 1,
                                   .same_below = box->sandbox->uid_base };
    struct bh_path_request request = { wanted->source, "mount_roots",
                                       &box->node->conf.mount_roots, start->submitter_uid,
                                       start->submitter_gid, wanted->write };
    BH_AUTO(bh_fd_close) int fd = -1;
    char *place = NULL;
    bh_rc rc = open_asked(box, &request, may_fall_back, &fd, err);

    if (rc == BH_OK)
        rc = make_place(box, &place, err);
    if (rc == BH_OK)
        rc = bh_path_clone(fd, place, request.write, may_write(box) ? &owner : NULL, err);
    if (rc == BH_UNAVAILABLE && (may_fall_back || !request.write)) {
        request.write = false;
        rc = bh_path_clone(fd, place, false, NULL, err);
    }
    if (rc == BH_OK && wanted->write && !request.write)
        snprintf(box->note, 200, "%.120s is read-only for this job", wanted->source);
    if (rc != BH_OK)
        return rc;
    return request.write ? add_mount(box, place, wanted->target, true, err)
                         : add_shared(box, place, wanted->target, err);
}

static bh_rc
put_asked_mounts(struct box *box, struct bh_err *err)
{
    const struct bh_msg_mount *mounts = box->start->mounts.items;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < box->start->mounts.count && rc == BH_OK; i++) {
        rc = bh_path_target_check(mounts[i].target, err);
        if (rc == BH_OK)
            rc = check_apart(box, mounts[i].target, err);
        if (rc == BH_OK)
            rc = clone_mount(box, &mounts[i], false, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "mounts[%u]", i);
    }
    return rc;
}

/* What the image says, where the sandbox does not put something else there. */
static const char *
usual_cwd(const struct box *box)
{
    static const char *const covered[] = { "/tmp", "/dev", "/proc", "/sys" };
    const char *cwd = box->image.cwd;

    for (size_t i = 0; i < BH_COUNT(covered) && cwd; i++)
        if (is_at_or_below(cwd, covered[i]))
            cwd = NULL;
    return cwd ? cwd : "/tmp";
}

static bh_rc
put_cwd(struct box *box, struct bh_err *err)
{
    const char *cwd = box->start->cwd;
    struct bh_msg_mount wanted = { cwd, cwd, true };
    bh_rc rc;

    box->sandbox->cwd = usual_cwd(box);
    if (!cwd || !*cwd)
        return BH_OK;
    rc = bh_cwd_is_own(cwd) ? BH_OK : bh_path_target_check(cwd, err);
    if (rc == BH_OK && !bh_cwd_is_own(cwd) && !is_shown(box, cwd)) {
        rc = check_apart(box, cwd, err);
        if (rc == BH_OK)
            rc = clone_mount(box, &wanted, true, err);
    }
    if (rc != BH_OK)
        return bh_err_wrap(err, "cwd");
    box->sandbox->cwd = cwd;
    return BH_OK;
}

/* ---- the root ---- */

static bh_rc
put_host_root(struct box *box, struct bh_err *err)
{
    uint32_t count;
    const struct bh_sandbox_mount *parts = bh_rootfs_mounts(box->node->rootfs, &count);
    bh_rc rc = bh_rootfs_make_root(box->node->rootfs, box->sandbox->rootfs, err);

    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = add_shared(box, parts[i].source, parts[i].target, err);
    return rc;
}

/* In an image these must be real folders: a link there would lead the runtime astray. */
static bh_rc
check_image(int image, const char *path, struct bh_err *err)
{
    static const char *const names[] = { "dev", "proc", "sys", "tmp", "usr" };

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        struct stat st;

        if (fstatat(image, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
            return bh_err_set(err, BH_DENIED, "/%s of the image %s is no folder", names[i], path);
    }
    return BH_OK;
}

/* A folder of the node, as the submitter sees it. */
static bh_rc
open_folder_image(const struct box *box, const char *path, int *ret_fd, struct bh_err *err)
{
    struct bh_path_request request = { path, "image_roots", &box->node->conf.image_roots,
                                       box->start->submitter_uid, box->start->submitter_gid,
                                       false };

    return bh_path_open(&request, ret_fd, err);
}

/* An image of the tenant's store, its files shown with the job's own ids where the file system
 * can do that; else they belong to nobody, and what only their owner may read stays closed. */
static bh_rc
open_kept_image(struct box *box, int *ret_fd, struct bh_err *err)
{
    uint32_t from = bh_unpack_ids(&box->node->conf), to = box->sandbox->uid_base;
    struct bh_path_owner owner = { from, to, from, to, BH_OCI_ID_RANGE };
    char folder[BH_NODE_PATH_MAX], path[BH_NODE_PATH_MAX + 16];
    BH_AUTO(bh_fd_close) int fd = -1;
    char *place = NULL;
    bh_rc rc = bh_store_folder(box->node, box->job->note.lease, folder, err);

    if (rc == BH_OK)
        rc = make_place(box, &place, err);
    if (rc != BH_OK)
        return rc;
    bh_path_format(path, sizeof path, "%s/rootfs", folder);
    fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return bh_err_errno(err, "open %s", path);
    rc = bh_path_clone(fd, place, false, &owner, err);
    if (rc == BH_UNAVAILABLE)
        rc = bh_path_clone(fd, place, false, NULL, err);
    if (rc != BH_OK)
        return rc;
    *ret_fd = open(place, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd < 0 ? bh_err_errno(err, "open %s", place) : BH_OK;
}

/* Who the job is, what it runs and where, as far as its image says. */
static bh_rc
read_image(struct box *box, struct bh_err *err)
{
    char folder[BH_NODE_PATH_MAX], path[BH_NODE_PATH_MAX + 16];
    bh_rc rc;

    box->sandbox->uid = BH_OCI_JOB_UID;
    box->sandbox->gid = BH_OCI_JOB_GID;
    if (!bh_unpack_has_image(box->start))
        return BH_OK;
    rc = bh_store_folder(box->node, box->job->note.lease, folder, err);
    if (rc != BH_OK)
        return rc;
    bh_path_format(path, sizeof path, "%s/image.json", folder);
    rc = bh_image_note_read(path, box->arena, &box->image, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "image");
    box->sandbox->uid = box->image.uid;
    box->sandbox->gid = box->image.gid;
    return BH_OK;
}

/* The image with, above it, the places that this job mounts on: both read-only. */
static bh_rc
put_image_root(struct box *box, const char *image, struct bh_err *err)
{
    static const char *const places[] = { "/proc", "/sys", "/dev", "/tmp", BH_ROOTFS_DRIVER,
                                          BH_ROOTFS_TOOLS, BH_ROOTFS_LIBEXEC };
    char layer[BH_NODE_PATH_MAX], below[64], options[BH_NODE_PATH_MAX + 128];
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = strncmp(image, "dir:", 4) == 0 ? open_folder_image(box, image + 4, &fd, err)
                                              : open_kept_image(box, &fd, err);

    bh_path_format(layer, sizeof layer, "%s/layer", box->sandbox->bundle);
    bh_path_format(below, sizeof below, "/proc/self/fd/%d", fd);
    if (rc == BH_OK)
        rc = check_image(fd, image, err);
    if (rc == BH_OK)
        rc = bh_dir_make(layer, 0755, err);
    for (size_t i = 0; i < BH_COUNT(places) && rc == BH_OK; i++)
        rc = bh_path_make_below(layer, places[i], err);
    for (uint32_t i = 0; i < box->sandbox->mount_count && rc == BH_OK; i++)
        rc = bh_path_make_below(layer, box->mounts[i].target, err);
    if (rc == BH_OK && box->network)
        rc = bh_networks_make_places(layer, err);
    if (rc == BH_OK)
        rc = bh_dir_make(box->sandbox->rootfs, 0755, err);
    bh_path_format(options, sizeof options, "lowerdir=%s:%s", layer, below);
    if (rc == BH_OK
        && mount("bulkhead-image", box->sandbox->rootfs, "overlay",
                 MS_RDONLY | MS_NOSUID | MS_NODEV, options) != 0)
        rc = bh_err_errno(err, "mount the image %s", image);
    return rc;
}

static bh_rc
put_root(struct box *box, struct bh_err *err)
{
    const char *image = box->start->image;
    bh_rc rc;

    if (!image || !*image || strcmp(image, "host") == 0)
        return put_host_root(box, err);
    if (!bh_image_is_own(image))
        return bh_err_set(err, BH_INVALID, "image %.60s: expected host, dir:PATH or oci:PATH:TAG",
                          image);
    rc = put_image_root(box, image, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "image");
}

/* ---- scratch ---- */

static bh_rc
put_scratch(struct box *box, struct bh_err *err)
{
    uint32_t owner = box->sandbox->uid_base + box->sandbox->uid;
    char *place = NULL;
    bh_rc rc;

    if (box->start->scratch_bytes == 0)
        return BH_OK;
    rc = make_place(box, &place, err);
    if (rc == BH_OK)
        rc = bh_scratch_mount(box->node, box->start->lease, place, owner, err);
    if (rc == BH_OK)
        rc = add_mount(box, place, BH_SCRATCH_TARGET, true, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "scratch");
}

/* ---- devices and what comes with them ---- */

/* One mount of the driver's, copied like a job's own: its folder may be root's alone. */
static bh_rc
add_driver_mount(struct box *box, const char *text, const struct bh_note_piece *piece,
                 struct bh_err *err)
{
    const char *colon = strchr(text, ':');
    const char *source = colon ? bh_devices_fill(box->arena, text, (size_t)(colon - text), piece) : NULL;
    char *target = colon ? bh_devices_fill(box->arena, colon + 1, strlen(colon + 1), piece) : NULL;
    BH_AUTO(bh_fd_close) int fd = -1;
    char *place = NULL, *options = target ? strchr(target, ':') : NULL;
    bool write = options && strcmp(options, ":rw") == 0;
    bh_rc rc;

    if (!colon || (options && !write))
        return bh_err_set(err, BH_INVALID, "job_driver_mount %s: expected SOURCE:TARGET[:rw]",
                          text);
    if (write)
        *options = '\0';
    if (!source || !target)
        return out_of_room(err);
    fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return bh_err_errno(err, "open %s of job_driver_mount", source);
    rc = make_place(box, &place, err);
    if (rc == BH_OK)
        rc = bh_path_clone(fd, place, write, NULL, err);
    return rc == BH_OK ? add_mount(box, place, target, write, err) : rc;
}

static bh_rc
add_driver_mounts(struct box *box, const struct bh_note_piece *piece, struct bh_err *err)
{
    const struct bh_param_list *templates = &box->node->conf.job_driver_mount;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < templates->count && rc == BH_OK; i++)
        rc = add_driver_mount(box, templates->items[i], piece, err);
    return rc;
}

static bh_rc
put_pieces(struct box *box, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    box->sandbox->device_count = bh_devices_of(box->node, &box->job->note, box->devices);
    for (uint32_t i = 0; i < box->job->note.lent_count && rc == BH_OK; i++)
        rc = add_driver_mounts(box, &box->job->note.lent[i], err);
    return rc;
}

/* ---- what the job runs ---- */

static bh_rc
add_env(struct box *box, const char *text, struct bh_err *err)
{
    struct bh_texts *env = &box->sandbox->env;

    if (!text || env->count == ENV_MAX)
        return out_of_room(err);
    env->items[env->count++] = text;
    return BH_OK;
}

/* An image's folders of programs and libraries come behind those that Bulkhead adds. */
static bh_rc
add_image_env(struct box *box, const char *text, struct bh_err *err)
{
    static const char *const joined[][2] = { { "PATH=", BH_ROOTFS_TOOLS },
                                             { "LD_LIBRARY_PATH=", BH_ROOTFS_DRIVER } };

    if (strncmp(text, "BULKHEAD_", 9) == 0)
        return BH_OK;
    for (size_t i = 0; i < BH_COUNT(joined); i++) {
        size_t name = strlen(joined[i][0]);

        if (strncmp(text, joined[i][0], name) == 0)
            text = bh_arena_printf(box->arena, "%s%s:%s", joined[i][0], joined[i][1], text + name);
    }
    return add_env(box, text, err);
}

/* The usual, the image's, the user's, Bulkhead's: of those that stand twice the last counts. */
static bh_rc
put_env(struct box *box, struct bh_err *err)
{
    const struct bh_msg_start *start = box->start;
    struct bh_arena *arena = box->arena;
    const char *own[] = {
        bh_arena_printf(arena, "BULKHEAD_JOB=%" PRIu64, start->job),
        bh_arena_printf(arena, "BULKHEAD_TENANT=%s", start->tenant),
        bh_arena_printf(arena, "BULKHEAD_USER=%s", start->user),
        bh_arena_printf(arena, "BULKHEAD_SKU=%s", start->sku),
        bh_arena_printf(arena, "BULKHEAD_GANG_SIZE=%" PRIu32, start->gang ? start->gang : 1),
        bh_arena_printf(arena, "BULKHEAD_GANG_RANK=%" PRIu32, start->member),
    };
    const char *usual[] = {
        ("PATH=" BH_ROOTFS_TOOLS ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
        "HOME=/tmp", "LANG=C.UTF-8", "TERM=dumb", "NVIDIA_VISIBLE_DEVICES=void",
        bh_node_share_is(box->job) ? "LD_LIBRARY_PATH=" BH_ROOTFS_DRIVER ":" BH_SHARE_DRIVER_DIR
                                    : "LD_LIBRARY_PATH=" BH_ROOTFS_DRIVER,
    };
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(usual) && rc == BH_OK; i++)
        rc = add_env(box, usual[i], err);
    if (rc == BH_OK && start->scratch_bytes > 0)
        rc = add_env(box, "TMPDIR=" BH_SCRATCH_TARGET, err);
    for (uint32_t i = 0; i < box->image.env.count && rc == BH_OK; i++)
        rc = add_image_env(box, box->image.env.items[i], err);
    for (uint32_t i = 0; i < start->env.count && rc == BH_OK; i++) {
        const char *text = start->env.items[i], *equals = strchr(text, '=');

        if (!equals || equals == text)
            return bh_err_set(err, BH_INVALID, "env[%u]: expected NAME=value", i);
        if (strncmp(text, "BULKHEAD_", 9) == 0)
            return bh_err_set(err, BH_INVALID, "env[%u]: BULKHEAD_* is Bulkhead's own", i);
        rc = add_env(box, text, err);
    }
    for (size_t i = 0; i < BH_COUNT(own) && rc == BH_OK; i++)
        rc = add_env(box, own[i], err);
    return rc;
}

/* Of variables that stand twice, the last counts: remove the earlier ones. */
static void
drop_overridden(struct bh_texts *env)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < env->count; i++) {
        size_t name = strcspn(env->items[i], "=") + 1;
        bool again = false;

        for (uint32_t j = i + 1; j < env->count && !again; j++)
            again = strncmp(env->items[j], env->items[i], name) == 0;
        if (!again)
            env->items[kept++] = env->items[i];
    }
    env->count = kept;
}

static bh_rc
put_args(struct box *box, struct bh_err *err)
{
    const struct bh_texts *wanted = box->start->args.count ? &box->start->args
                                                           : &box->image.command;
    struct bh_texts *args = &box->sandbox->args;

    if (wanted->count == 0) {
        bh_err_set(err, BH_INVALID, "args: no command to run");
        return bh_err_hint(err, "the image has neither Entrypoint nor Cmd: say what to run");
    }
    args->items = bh_arena_alloc(box->arena, (wanted->count + 3) * sizeof *args->items);
    if (!args->items)
        return out_of_room(err);
    args->items[args->count++] = BH_ROOTFS_LIBEXEC "/init";
    if (box->start->stdio == BH_STDIO_TERMINAL)
        args->items[args->count++] = "--tty";
    args->items[args->count++] = "--";
    for (uint32_t i = 0; i < wanted->count; i++)
        args->items[args->count++] = wanted->items[i];
    return BH_OK;
}

/* ---- all of it ---- */

static bh_rc
put_names(struct box *box, struct bh_err *err)
{
    struct bh_sandbox *sandbox = box->sandbox;
    char id[32], bundle[BH_NODE_PATH_MAX];

    bh_node_job_id(box->job->note.lease, id);
    bh_node_job_bundle(box->node, box->job->note.lease, bundle);
    sandbox->id = bh_arena_strdup(box->arena, id);
    sandbox->bundle = bh_arena_strdup(box->arena, bundle);
    sandbox->rootfs = bh_arena_printf(box->arena, "%s/root", bundle);
    sandbox->cgroup = bh_arena_printf(box->arena, "%s/%s", box->node->conf.cgroup_parent, id);
    sandbox->hostname = bh_arena_printf(box->arena, "job-%" PRIu64, box->start->job);
    sandbox->uid_base = box->node->conf.uid_base + BH_OCI_ID_RANGE * box->job->note.slot;
    sandbox->mounts = box->mounts = bh_arena_alloc(box->arena, MOUNTS_MAX * sizeof *box->mounts);
    sandbox->devices = box->devices
        = bh_arena_alloc(box->arena, DEVICES_MAX * sizeof *box->devices);
    sandbox->env.items = bh_arena_alloc(box->arena, ENV_MAX * sizeof *sandbox->env.items);
    if (!sandbox->id || !sandbox->bundle || !sandbox->rootfs || !sandbox->cgroup
        || !sandbox->hostname || !box->mounts || !box->devices || !sandbox->env.items)
        return out_of_room(err);
    /* A file system of its own: how much is free on one that jobs share tells each of them when
     * others start (statvfs). */
    return bh_path_mount_tmpfs("bulkhead-box", bundle, 0711, err);
}

static bh_rc
make_places(const struct box *box, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < box->sandbox->mount_count && rc == BH_OK; i++)
        rc = bh_path_make_below(box->sandbox->rootfs, box->mounts[i].target, err);
    return rc;
}

/* A namespace of its own that can be reached, and what is read to find others. */
static bh_rc
put_network(struct box *box, struct bh_err *err)
{
    const struct bh_networks_request request = { box->start, box->network, box->job,
                                                 box->sandbox->bundle };
    struct bh_networks_files files;
    bh_rc rc = bh_networks_attach(box->node, &request, &files, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "network");
    box->sandbox->network = bh_arena_printf(box->arena, "%s/space", box->sandbox->bundle);
    box->sandbox->sys = bh_arena_printf(box->arena, "%s/sys", box->sandbox->bundle);
    for (uint32_t i = 0; i < files.count && rc == BH_OK; i++)
        rc = add_mount(box, bh_arena_printf(box->arena, "%s/%s", box->sandbox->bundle,
                                            files.names[i]),
                       bh_arena_printf(box->arena, "/etc/%s", files.names[i]), false, err);
    return box->sandbox->network && box->sandbox->sys ? rc : out_of_room(err);
}

/* An image lacks Bulkhead's folders below /usr/local; the host's has them. */
static bh_rc
put_own_folders(struct box *box, struct bh_err *err)
{
    const struct bh_conf *conf = &box->node->conf;
    bh_rc rc = add_shared(box, bh_arena_printf(box->arena, "%s/host/local/bulkhead/libexec",
                                               box->node->boxes),
                          BH_ROOTFS_LIBEXEC, err);

    if (rc == BH_OK && *conf->driver_lib_dir && !bh_node_share_is(box->job))
        rc = add_shared(box, conf->driver_lib_dir, BH_ROOTFS_DRIVER, err);
    if (rc == BH_OK && *conf->tools_dir)
        rc = add_shared(box, conf->tools_dir, BH_ROOTFS_TOOLS, err);
    return rc;
}

/* The shim in the driver's place, the door, and the driver behind it. */
static bh_rc
put_share(struct box *box, struct bh_err *err)
{
    const struct bh_conf *conf = &box->node->conf;
    char door[BH_NODE_PATH_MAX];
    uint32_t count = 0;
    bh_rc rc;

    if (!bh_node_share_is(box->job))
        return BH_OK;
    bh_node_share_door(box->node, box->job->note.lease, door);
    rc = add_mount(box, bh_arena_printf(box->arena, "%s", door), BH_NODE_SHARE_DOOR, false, err);
    if (rc == BH_OK)
        rc = add_shared(box, conf->driver_lib_dir, BH_SHARE_DRIVER_DIR, err);
    if (rc == BH_OK)
        rc = add_shared(box, bh_node_share_shim(box->node), BH_ROOTFS_DRIVER, err);
    if (rc == BH_OK && !bh_image_is_own(box->start->image)) {
        rc = bh_driver_cover(box->node, box->arena, &box->mounts[box->sandbox->mount_count], &count, err);
        box->sandbox->mount_count += count;
    }
    return rc;
}

bh_rc
bh_box_build(const struct bh_box_request *request, struct bh_sandbox *ret_sandbox,
             char ret_note[200], struct bh_err *err)
{
    const struct bh_msg_start *start = request->start;
    struct box box = { .node = request->node, .start = start, .job = request->job,
                       .network = bh_networks_wanted(request->start),
                       .arena = request->arena, .sandbox = ret_sandbox, .note = ret_note };
    bool image = bh_image_is_own(start->image);
    bh_rc rc;

    memset(ret_sandbox, 0, sizeof *ret_sandbox);
    ret_note[0] = '\0';
    rc = bh_limits_check(&box.node->conf, start, err);
    if (rc == BH_OK)
        rc = put_names(&box, err);
    if (rc == BH_OK)
        rc = bh_limits_io(&box.node->conf, ret_sandbox, err);
    if (rc == BH_OK)
        rc = read_image(&box, err);
    if (rc == BH_OK && !image)
        rc = put_root(&box, err);
    if (rc == BH_OK)
        rc = put_pieces(&box, err);
    if (rc == BH_OK)
        rc = put_scratch(&box, err);
    if (rc == BH_OK)
        rc = put_asked_mounts(&box, err);
    if (rc == BH_OK)
        rc = put_cwd(&box, err);
    if (rc == BH_OK)
        rc = put_share(&box, err);
    if (rc == BH_OK && image)
        rc = put_root(&box, err);
    if (rc == BH_OK && image)
        rc = put_own_folders(&box, err);
    if (rc == BH_OK && !image)
        rc = make_places(&box, err);
    if (rc == BH_OK)
        rc = put_args(&box, err);
    if (rc == BH_OK)
        rc = put_env(&box, err);
    if (rc == BH_OK && box.network)
        rc = put_network(&box, err);
    drop_overridden(&ret_sandbox->env);
    bh_limits_put(&box.node->conf, start, ret_sandbox);
    return rc;
}

void
bh_box_remove(const struct bh_node *node, uint64_t lease)
{
    char bundle[BH_NODE_PATH_MAX], path[BH_NODE_PATH_MAX + 16];

    bh_node_job_bundle(node, lease, bundle);
    for (uint32_t i = 0; i < CLONES_MAX; i++) {
        bh_path_format(path, sizeof path, "%s/m%u", bundle, i);
        if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno == ENOENT)
            break;
    }
    bh_networks_unmount(bundle);
    bh_path_format(path, sizeof path, "%s/root", bundle);
    umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
    umount2(bundle, MNT_DETACH | UMOUNT_NOFOLLOW);
    bh_path_remove_tree(bundle);
    bh_scratch_remove(node, lease);
}
