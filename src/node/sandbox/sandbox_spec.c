#include "node/sandbox/sandbox_spec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/proc.h"
#include "bulkhead/share_socket.h"
#include "model/image.h"
#include "node/common/image_record.h"
#include "node/common/path.h"
#include "node/common/uid_ranges.h"
#include "node/core/driver.h"
#include "node/core/limits.h"
#include "node/core/scratch.h"
#include "node/placement/devices.h"
#include "node/placement/share_slot.h"
#include "node/sandbox/network.h"
#include "node/sandbox/sandbox_mounts.h"
#include "node/sandbox/sandbox_spec_internal.h"
#include "node/sandbox/store.h"
#include "node/share/share_lease.h"
#include "runtime/oci.h"

enum { DEVICES_MAX = 2 + 3 * BH_WIRE_PARTITIONS_MAX, ENV_MAX = 2200 };

/* ---- the root ---- */

static bh_rc
spec_put_host_root(struct sandbox_spec *spec, struct bh_err *err)
{
    uint32_t count;
    const struct bh_sandbox_mount *parts = bh_rootfs_mounts(spec->node->rootfs, &count);
    bh_rc rc = bh_rootfs_make_root(spec->node->rootfs, spec->sandbox->rootfs, err);

    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = bh_sandbox_mounts_add_shared(spec, parts[i].source, parts[i].target, err);
    return rc;
}

/* In an image these must be real folders: a link there would lead the runtime astray. */
static bh_rc
spec_check_image(int image, const char *path, struct bh_err *err)
{
    static const char *const names[] = { "dev", "proc", "sys", "tmp", "usr" };

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        struct stat st;

        if (fstatat(image, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
            return bh_err_set(err, BH_DENIED, "/%s of the image %s is not a folder", names[i], path);
    }
    return BH_OK;
}

/* A folder of the node, as the submitter sees it. */
static bh_rc
spec_open_folder_image(const struct sandbox_spec *spec, const char *path, int *ret_fd, struct bh_err *err)
{
    struct bh_path_request request = { path,
                                       "image_roots",
                                       &spec->node->conf.image_roots,
                                       spec->start->submitter_uid,
                                       spec->start->submitter_gid,
                                       false };

    return bh_path_open(&request, ret_fd, err);
}

/* An image of the tenant's store.  Its files have the job's own ids where the file system can map them;
 * otherwise they belong to the user nobody, and files that only their owner may read stay closed. */
static bh_rc
spec_open_stored_image(struct sandbox_spec *spec, int *ret_fd, struct bh_err *err)
{
    const struct bh_conf *conf = &spec->node->conf;
    uint32_t from = bh_uid_range_first(conf, bh_uid_range_of_images(conf)), to = spec->sandbox->uid_base;
    struct bh_path_owner owner = { from, to, from, to, BH_OCI_ID_RANGE };
    char folder[BH_NODE_PATH_MAX], path[BH_NODE_PATH_MAX + 16];
    BH_AUTO(bh_fd_close) int fd = -1;
    char *place = NULL;
    bh_rc rc = bh_store_folder(spec->node, spec->job->record.lease, folder, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_sandbox_mounts_make_place(spec, &place, err);
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

/* The job's user, command and working directory, as far as its image says. */
static bh_rc
spec_read_image(struct sandbox_spec *spec, struct bh_err *err)
{
    char folder[BH_NODE_PATH_MAX], path[BH_NODE_PATH_MAX + 16];
    bh_rc rc;

    spec->sandbox->uid = BH_OCI_JOB_UID;
    spec->sandbox->gid = BH_OCI_JOB_GID;
    if (!spec->start->image || !bh_image_is_packed(spec->start->image))
        return BH_OK;
    rc = bh_store_folder(spec->node, spec->job->record.lease, folder, err);
    if (rc != BH_OK)
        return rc;
    bh_path_format(path, sizeof path, "%s/image.json", folder);
    rc = bh_image_record_read(path, spec->arena, &spec->image, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "image");
    spec->sandbox->uid = spec->image.uid;
    spec->sandbox->gid = spec->image.gid;
    return BH_OK;
}

/* The image with, above it, the places that this job mounts on: both read-only. */
static bh_rc
spec_put_image_root(struct sandbox_spec *spec, const char *image, struct bh_err *err)
{
    static const char *const places[] = { "/proc",          "/sys",          "/dev",           "/tmp",
                                          BH_ROOTFS_DRIVER, BH_ROOTFS_TOOLS, BH_ROOTFS_LIBEXEC };
    char layer[BH_NODE_PATH_MAX], below[BH_PROC_PATH_MAX], options[BH_NODE_PATH_MAX + 128];
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = strncmp(image, "dir:", 4) == 0 ? spec_open_folder_image(spec, image + 4, &fd, err)
                                              : spec_open_stored_image(spec, &fd, err);

    if (rc != BH_OK)
        return rc;
    rc = spec_check_image(fd, image, err);
    if (rc != BH_OK)
        return rc;
    bh_path_format(layer, sizeof layer, "%s/layer", spec->sandbox->bundle);
    rc = bh_dir_make(layer, 0755, err);
    for (size_t i = 0; i < BH_COUNT(places) && rc == BH_OK; i++)
        rc = bh_path_make_below(layer, places[i], err);
    for (uint32_t i = 0; i < spec->sandbox->mount_count && rc == BH_OK; i++)
        rc = bh_path_make_below(layer, spec->mounts[i].target, err);
    if (rc == BH_OK && spec->network)
        rc = bh_networks_make_places(layer, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_dir_make(spec->sandbox->rootfs, 0755, err);
    if (rc != BH_OK)
        return rc;
    bh_proc_fd_path(fd, below);
    bh_path_format(options, sizeof options, "lowerdir=%s:%s", layer, below);
    if (mount("bulkhead-image", spec->sandbox->rootfs, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options)
        != 0)
        return bh_err_errno(err, "mount the image %s", image);
    return BH_OK;
}

static bh_rc
spec_put_root(struct sandbox_spec *spec, struct bh_err *err)
{
    const char *image = spec->start->image;
    bh_rc rc;

    if (!image || !*image || strcmp(image, "host") == 0)
        return spec_put_host_root(spec, err);
    if (!bh_image_is_own(image))
        return bh_err_set(err, BH_INVALID, "image %.60s: expected host, dir:PATH or oci:PATH:TAG", image);
    rc = spec_put_image_root(spec, image, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "image");
}

/* ---- scratch ---- */

static bh_rc
spec_put_scratch(struct sandbox_spec *spec, struct bh_err *err)
{
    uint32_t owner = spec->sandbox->uid_base + spec->sandbox->uid;
    char *place = NULL;
    bh_rc rc;

    if (spec->start->scratch_bytes == 0)
        return BH_OK;
    rc = bh_sandbox_mounts_make_place(spec, &place, err);
    if (rc == BH_OK)
        rc = bh_scratch_mount(spec->node, spec->start->lease, place, owner, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "scratch");
    return bh_sandbox_mounts_add(spec, place, BH_SCRATCH_TARGET, true, err);
}

/* ---- devices and what comes with them ---- */

/* One mount of the driver's, copied like a job's own: its folder may be root's alone. */
static bh_rc
spec_add_driver_mount(struct sandbox_spec *spec, const char *text, const struct bh_node_partition *partition,
                      struct bh_err *err)
{
    const char *colon = strchr(text, ':');
    const char *source = colon ? bh_devices_fill(spec->arena, text, (size_t)(colon - text), partition) : NULL;
    char *target = colon ? bh_devices_fill(spec->arena, colon + 1, strlen(colon + 1), partition) : NULL;
    BH_AUTO(bh_fd_close) int fd = -1;
    char *place = NULL, *options = target ? strchr(target, ':') : NULL;
    bool write = options && strcmp(options, ":rw") == 0;
    bh_rc rc;

    if (!colon || (options && !write))
        return bh_err_set(err, BH_INVALID, "job_driver_mount %s: expected SOURCE:TARGET[:rw]", text);
    if (write)
        *options = '\0';
    if (!source || !target)
        return sandbox_spec_out_of_space(err);
    fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return bh_err_errno(err, "open %s of job_driver_mount", source);
    rc = bh_sandbox_mounts_make_place(spec, &place, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_path_clone(fd, place, write, NULL, err);
    if (rc != BH_OK)
        return rc;
    return bh_sandbox_mounts_add(spec, place, target, write, err);
}

static bh_rc
spec_add_driver_mounts(struct sandbox_spec *spec, const struct bh_node_partition *partition,
                       struct bh_err *err)
{
    const struct bh_param_list *templates = &spec->node->conf.job_driver_mount;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < templates->count && rc == BH_OK; i++)
        rc = spec_add_driver_mount(spec, templates->items[i], partition, err);
    return rc;
}

static bh_rc
sandbox_spec_put_partitions(struct sandbox_spec *spec, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    spec->sandbox->device_count = bh_devices_of(spec->node, &spec->job->record, spec->devices);
    for (uint32_t i = 0; i < spec->job->record.lent_count && rc == BH_OK; i++)
        rc = spec_add_driver_mounts(spec, &spec->job->record.lent[i], err);
    return rc;
}

/* ---- what the job runs ---- */

static bh_rc
spec_add_env(struct sandbox_spec *spec, const char *text, struct bh_err *err)
{
    struct bh_texts *env = &spec->sandbox->env;

    if (!text || env->count == ENV_MAX)
        return sandbox_spec_out_of_space(err);
    env->items[env->count++] = text;
    return BH_OK;
}

/* An image's folders of programs and libraries come behind those that Bulkhead adds. */
static bh_rc
spec_add_image_env(struct sandbox_spec *spec, const char *text, struct bh_err *err)
{
    static const char *const joined[][2] = { { "PATH=", BH_ROOTFS_TOOLS },
                                             { "LD_LIBRARY_PATH=", BH_ROOTFS_DRIVER } };

    if (strncmp(text, "BULKHEAD_", 9) == 0)
        return BH_OK;
    for (size_t i = 0; i < BH_COUNT(joined); i++) {
        size_t name = strlen(joined[i][0]);

        if (strncmp(text, joined[i][0], name) == 0)
            text = bh_arena_printf(spec->arena, "%s%s:%s", joined[i][0], joined[i][1], text + name);
    }
    return spec_add_env(spec, text, err);
}

/* The usual, the image's, the user's, Bulkhead's: of those that stand twice the last counts. */
static bh_rc
spec_put_env(struct sandbox_spec *spec, struct bh_err *err)
{
    const struct bh_msg_start *start = spec->start;
    struct bh_arena *arena = spec->arena;
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
        "HOME=/tmp",
        "LANG=C.UTF-8",
        "TERM=dumb",
        "NVIDIA_VISIBLE_DEVICES=void",
        bh_node_share_is(spec->job) ? "LD_LIBRARY_PATH=" BH_ROOTFS_DRIVER ":" BH_SHARE_DRIVER_DIR
                                    : "LD_LIBRARY_PATH=" BH_ROOTFS_DRIVER,
    };
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(usual) && rc == BH_OK; i++)
        rc = spec_add_env(spec, usual[i], err);
    if (rc == BH_OK && start->scratch_bytes > 0)
        rc = spec_add_env(spec, "TMPDIR=" BH_SCRATCH_TARGET, err);
    for (uint32_t i = 0; i < spec->image.env.count && rc == BH_OK; i++)
        rc = spec_add_image_env(spec, spec->image.env.items[i], err);
    for (uint32_t i = 0; i < start->env.count && rc == BH_OK; i++) {
        const char *text = start->env.items[i], *equals = strchr(text, '=');

        if (!equals || equals == text)
            return bh_err_set(err, BH_INVALID, "env[%u]: expected NAME=value", i);
        if (strncmp(text, "BULKHEAD_", 9) == 0)
            return bh_err_set(err, BH_INVALID, "env[%u]: BULKHEAD_* is Bulkhead's own", i);
        rc = spec_add_env(spec, text, err);
    }
    for (size_t i = 0; i < BH_COUNT(own) && rc == BH_OK; i++)
        rc = spec_add_env(spec, own[i], err);
    return rc;
}

/* Of variables that stand twice, the last counts: remove the earlier ones. */
static void
spec_drop_overridden(struct bh_texts *env)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < env->count; i++) {
        size_t name = strcspn(env->items[i], "=") + 1;
        bool again = false;

        for (uint32_t j = i + 1; j < env->count && !again; j++)
            again = strncmp(env->items[j], env->items[i], name) == 0;
        if (!again)
            env->items[left++] = env->items[i];
    }
    env->count = left;
}

static bh_rc
spec_put_args(struct sandbox_spec *spec, struct bh_err *err)
{
    const struct bh_texts *wanted = spec->start->args.count ? &spec->start->args : &spec->image.command;
    struct bh_texts *args = &spec->sandbox->args;

    if (wanted->count == 0) {
        bh_err_set(err, BH_INVALID, "args: no command to run");
        return bh_err_hint(err, "the image has neither Entrypoint nor Cmd: give a command");
    }
    args->items = bh_arena_alloc(spec->arena, (wanted->count + 3) * sizeof *args->items);
    if (!args->items)
        return sandbox_spec_out_of_space(err);
    args->items[args->count++] = BH_ROOTFS_LIBEXEC "/init";
    if (spec->start->stdio == BH_STDIO_TERMINAL)
        args->items[args->count++] = "--tty";
    args->items[args->count++] = "--";
    for (uint32_t i = 0; i < wanted->count; i++)
        args->items[args->count++] = wanted->items[i];
    return BH_OK;
}

/* ---- all of it ---- */

static bh_rc
sandbox_spec_put_names(struct sandbox_spec *spec, struct bh_err *err)
{
    struct bh_sandbox *sandbox = spec->sandbox;
    char id[32], bundle[BH_NODE_PATH_MAX];

    bh_node_job_id(spec->job->record.lease, id);
    bh_node_job_bundle(spec->node, spec->job->record.lease, bundle);
    sandbox->id = bh_arena_strdup(spec->arena, id);
    sandbox->bundle = bh_arena_strdup(spec->arena, bundle);
    sandbox->rootfs = bh_arena_printf(spec->arena, "%s/root", bundle);
    sandbox->cgroup = bh_arena_printf(spec->arena, "%s/%s", spec->node->conf.cgroup_parent, id);
    sandbox->hostname = bh_arena_printf(spec->arena, "job-%" PRIu64, spec->start->job);
    sandbox->uid_base = spec->node->conf.uid_base + BH_OCI_ID_RANGE * spec->job->record.slot;
    sandbox->mounts = spec->mounts = bh_arena_alloc(spec->arena, SANDBOX_MOUNTS_MAX * sizeof *spec->mounts);
    sandbox->devices = spec->devices = bh_arena_alloc(spec->arena, DEVICES_MAX * sizeof *spec->devices);
    sandbox->env.items = bh_arena_alloc(spec->arena, ENV_MAX * sizeof *sandbox->env.items);
    if (!sandbox->id || !sandbox->bundle || !sandbox->rootfs || !sandbox->cgroup || !sandbox->hostname
        || !spec->mounts || !spec->devices || !sandbox->env.items)
        return sandbox_spec_out_of_space(err);
    /* A file system of its own: on a shared one, the free space (statvfs) would show each job when others
     * start. */
    return bh_path_mount_tmpfs("bulkhead-box", bundle, 0711, err);
}

static bh_rc
spec_make_places(struct sandbox_spec *spec, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < spec->sandbox->mount_count && rc == BH_OK; i++)
        rc = bh_path_make_below(spec->sandbox->rootfs, spec->mounts[i].target, err);
    return rc;
}

/* A namespace of its own that can be reached, and what is read to find others. */
static bh_rc
spec_put_network(struct sandbox_spec *spec, struct bh_err *err)
{
    const struct bh_networks_request request = { spec->start, spec->network, spec->job,
                                                 spec->sandbox->bundle };
    struct bh_networks_files files;
    bh_rc rc;

    if (!spec->network)
        return BH_OK;
    rc = bh_networks_attach(spec->node, &request, &files, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "network");
    spec->sandbox->network = bh_arena_printf(spec->arena, "%s/space", spec->sandbox->bundle);
    spec->sandbox->sys = bh_arena_printf(spec->arena, "%s/sys", spec->sandbox->bundle);
    for (uint32_t i = 0; i < files.count && rc == BH_OK; i++)
        rc = bh_sandbox_mounts_add(
            spec, bh_arena_printf(spec->arena, "%s/%s", spec->sandbox->bundle, files.names[i]),
            bh_arena_printf(spec->arena, "/etc/%s", files.names[i]), false, err);
    return spec->sandbox->network && spec->sandbox->sys ? rc : sandbox_spec_out_of_space(err);
}

/* An image lacks Bulkhead's folders below /usr/local; the host's has them. */
static bh_rc
spec_put_own_folders(struct sandbox_spec *spec, struct bh_err *err)
{
    const struct bh_conf *conf = &spec->node->conf;
    bh_rc rc = bh_sandbox_mounts_add_shared(
        spec, bh_arena_printf(spec->arena, "%s/host/local/bulkhead/libexec", spec->node->sandboxes),
        BH_ROOTFS_LIBEXEC, err);

    if (rc != BH_OK)
        return rc;
    if (*conf->driver_lib_dir && !bh_node_share_is(spec->job))
        rc = bh_sandbox_mounts_add_shared(spec, conf->driver_lib_dir, BH_ROOTFS_DRIVER, err);
    if (rc != BH_OK)
        return rc;
    if (*conf->tools_dir)
        return bh_sandbox_mounts_add_shared(spec, conf->tools_dir, BH_ROOTFS_TOOLS, err);
    return BH_OK;
}

/* The shim in the driver's place, the door, and the driver behind it. */
static bh_rc
spec_put_share(struct sandbox_spec *spec, struct bh_err *err)
{
    const struct bh_conf *conf = &spec->node->conf;
    char socket_dir[BH_NODE_PATH_MAX];
    uint32_t count = 0;
    bh_rc rc;

    if (!bh_node_share_is(spec->job))
        return BH_OK;
    bh_node_share_socket_dir(spec->node, spec->job->record.lease, socket_dir);
    rc = bh_sandbox_mounts_add(spec, bh_arena_printf(spec->arena, "%s", socket_dir), BH_NODE_SHARE_SOCKET_DIR,
                               false, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sandbox_mounts_add_shared(spec, conf->driver_lib_dir, BH_SHARE_DRIVER_DIR, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sandbox_mounts_add_shared(spec, bh_driver_shim(spec->node), BH_ROOTFS_DRIVER, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_image_is_own(spec->start->image)) {
        rc = bh_driver_cover(spec->node, spec->arena, &spec->mounts[spec->sandbox->mount_count], &count, err);
        spec->sandbox->mount_count += count;
    }
    return rc;
}

/* What it is made of, in this order; an image's root is put behind all that is mounted in it. */
enum { HOST = 1, IMAGE = 2, BOTH = HOST | IMAGE };
static const struct {
    int with;
    bh_rc (*put)(struct sandbox_spec *, struct bh_err *);
} steps[] = {
    { BOTH, sandbox_spec_put_names },
    { BOTH, spec_read_image },
    { HOST, spec_put_root },
    { BOTH, sandbox_spec_put_partitions },
    { BOTH, spec_put_scratch },
    { BOTH, bh_sandbox_mounts_put_asked },
    { BOTH, bh_sandbox_mounts_put_cwd },
    { BOTH, spec_put_share },
    { IMAGE, spec_put_root },
    { IMAGE, spec_put_own_folders },
    { HOST, spec_make_places },
    { BOTH, spec_put_args },
    { BOTH, spec_put_env },
    { BOTH, spec_put_network },
};

bh_rc
bh_sandbox_spec_build(const struct bh_sandbox_spec_request *request, struct bh_sandbox *ret_sandbox,
                      char ret_remark[200], struct bh_err *err)
{
    const struct bh_msg_start *start = request->start;
    struct sandbox_spec spec = { .node = request->node,
                                 .start = start,
                                 .job = request->job,
                                 .network = bh_networks_wanted(request->start),
                                 .arena = request->arena,
                                 .sandbox = ret_sandbox,
                                 .record = ret_remark };
    bool image = bh_image_is_own(start->image);
    bh_rc rc;

    memset(ret_sandbox, 0, sizeof *ret_sandbox);
    ret_remark[0] = '\0';
    rc = bh_limits_check(&spec.node->conf, start, err);
    if (rc == BH_OK)
        rc = bh_limits_io(&spec.node->conf, ret_sandbox, err);
    for (size_t i = 0; i < BH_COUNT(steps) && rc == BH_OK; i++)
        if (steps[i].with & (image ? IMAGE : HOST))
            rc = steps[i].put(&spec, err);
    if (rc != BH_OK)
        return rc;
    spec_drop_overridden(&ret_sandbox->env);
    bh_limits_put(&spec.node->conf, start, ret_sandbox);
    return BH_OK;
}

void
bh_sandbox_spec_remove(const struct bh_node *node, uint64_t lease)
{
    char bundle[BH_NODE_PATH_MAX], path[BH_NODE_PATH_MAX + 16];

    bh_node_job_bundle(node, lease, bundle);
    for (uint32_t i = 0; i < SANDBOX_CLONES_MAX; i++) {
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
