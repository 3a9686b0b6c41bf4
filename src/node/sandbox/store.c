#include "node/sandbox/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "model/image.h"
#include "model/path.h"
#include "node/common/helper.h"
#include "node/common/image_record.h"
#include "node/common/path.h"

enum { IMAGES_MAX = 4096, RECORD_MAX = 512, NAME_BYTES = 160 };

/* ---- paths ---- */

static void
store_images_folder(const struct bh_node *node, char ret_path[BH_NODE_PATH_MAX])
{
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%s/images", node->conf.state_dir);
}

/* '%' is in no tenant's name. */
static bh_rc
store_tenant_folder(const struct bh_node *node, const char *tenant, char ret_path[BH_NODE_PATH_MAX],
                    struct bh_err *err)
{
    char name[NAME_BYTES];

    if (!bh_tenant_path_valid(tenant))
        return bh_err_set(err, BH_INVALID, "\"%.60s\" is not a tenant", tenant);
    snprintf(name, sizeof name, "%s", tenant);
    for (char *at = name; *at; at++)
        if (*at == '/')
            *at = '%';
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%s/images/%s", node->conf.state_dir, name);
    return BH_OK;
}

bh_rc
bh_store_open(const struct bh_node *node, const char *tenant, char ret_path[BH_NODE_PATH_MAX],
              struct bh_err *err)
{
    bh_rc rc = store_tenant_folder(node, tenant, ret_path, err);

    return rc == BH_OK ? bh_dir_make(ret_path, 0700, err) : rc;
}

/* ---- removing ---- */

/* Out of sight at once, off the disk later. */
static void
store_remove_later(struct bh_node *node, const char *folder, const char *name)
{
    char from[BH_NODE_PATH_MAX + 300], gone[BH_NODE_PATH_MAX + 300];
    struct bh_helper helper = { .count = 0 };
    struct bh_err err;
    pid_t pid;

    bh_path_format(from, sizeof from, "%s/%s", folder, name);
    bh_path_format(gone, sizeof gone, "%s/gone-%s", folder, name);
    if (strncmp(name, "gone-", 5) == 0)
        bh_path_format(gone, sizeof gone, "%s", from);
    else if (rename(from, gone) != 0)
        return;
    bh_helper_word(&helper, "%s/bulkhead-unpack", node->libexec);
    bh_helper_word(&helper, "--remove=%s", gone);
    if (bh_helper_start(&helper, -1, -1, &pid, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "remove an image"), BH_ERRLOG(&err));
    else
        waitpid(pid, NULL, 0); /* it has gone to the background */
}

static bool
store_is_leftover(const char *name)
{
    return strncmp(name, "tmp-", 4) == 0 || strncmp(name, "gone-", 5) == 0;
}

static void
store_sweep_tenant(struct bh_node *node, const char *folder)
{
    DIR *dir = opendir(folder);

    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (store_is_leftover(entry->d_name))
            store_remove_later(node, folder, entry->d_name);
    closedir(dir);
}

bh_rc
bh_store_sweep(struct bh_node *node, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX], tenant[BH_NODE_PATH_MAX + 300];
    bh_rc rc;
    DIR *dir;

    store_images_folder(node, path);
    rc = bh_dir_make(path, 0700, err);
    dir = rc == BH_OK ? opendir(path) : NULL;
    if (!dir)
        return rc;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        bh_path_format(tenant, sizeof tenant, "%s/%s", path, entry->d_name);
        store_sweep_tenant(node, tenant);
    }
    closedir(dir);
    return BH_OK;
}

void
bh_store_clear(struct bh_node *node, const char *tenant, uint64_t lease)
{
    char folder[BH_NODE_PATH_MAX], name[32];
    struct bh_err ignored;

    bh_path_format(name, sizeof name, "tmp-%" PRIu64, lease);
    if (store_tenant_folder(node, tenant, folder, &ignored) == BH_OK)
        store_remove_later(node, folder, name);
}

/* ---- use ---- */

static void
store_record_path(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX])
{
    char folder[BH_NODE_PATH_MAX - 16];

    bh_path_format(folder, sizeof folder, "%s/jobs/%" PRIu64, node->conf.state_dir, lease);
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%s/image", folder);
}

bh_rc
bh_store_use(struct bh_node *node, uint64_t lease, const char *tenant, const char *digest, struct bh_err *err)
{
    char folder[BH_NODE_PATH_MAX], path[BH_NODE_PATH_MAX], text[BH_NODE_PATH_MAX + 80];
    bh_rc rc = store_tenant_folder(node, tenant, folder, err);

    if (rc != BH_OK)
        return rc;
    bh_node_job_folder(node, lease, path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return bh_err_errno(err, "make folder %s", path);
    bh_path_format(text, sizeof text, "%s/%s", folder, digest);
    store_record_path(node, lease, path);
    return bh_file_replace(path, text, strlen(text), 0600, err);
}

bh_rc
bh_store_folder(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX],
                struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];
    struct bh_buf text;
    bh_rc rc;

    store_record_path(node, lease, path);
    bh_buf_init_fixed(&text, ret_path, BH_NODE_PATH_MAX);
    rc = bh_file_read(path, BH_NODE_PATH_MAX - 1, &text, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_buf_text(&text))
        return bh_err_set(err, BH_FULL, "%s is too long", path);
    return BH_OK;
}

/* ---- the cap ---- */

struct stored {
    char digest[BH_IMAGE_DIGEST_CHARS + 1];
    struct timespec used;
    uint64_t bytes;
};

static int
store_by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct stored *)a)->used;
    const struct timespec *y = &((const struct stored *)b)->used;

    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool
store_read_stored(const char *folder, const char *digest, struct stored *ret_stored)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(8 << 20);
    char path[BH_NODE_PATH_MAX + 100];
    struct bh_image_record record;
    struct bh_err ignored;
    struct stat st;

    bh_path_format(path, sizeof path, "%s/%s/image.json", folder, digest);
    if (stat(path, &st) != 0 || bh_image_record_read(path, arena, &record, &ignored) != BH_OK)
        return false;
    *ret_stored = (struct stored){ .used = st.st_mtim, .bytes = record.bytes };
    memcpy(ret_stored->digest, digest, sizeof ret_stored->digest);
    return true;
}

static uint32_t
store_list_stored(const char *folder, struct stored *stored)
{
    DIR *dir = opendir(folder);
    uint32_t count = 0;

    for (const struct dirent *entry; dir && count < IMAGES_MAX && (entry = readdir(dir));)
        if (bh_image_is_digest(entry->d_name))
            count += store_read_stored(folder, entry->d_name, &stored[count]);
    if (dir)
        closedir(dir);
    qsort(stored, count, sizeof *stored, store_by_use);
    return count;
}

static bool
store_is_used(const struct bh_node *node, const char *folder, const char *digest)
{
    char wanted[BH_NODE_PATH_MAX + 80], path[BH_NODE_PATH_MAX];
    struct bh_err ignored;

    bh_path_format(wanted, sizeof wanted, "%s/%s", folder, digest);
    for (uint32_t i = 0; i < node->state.job_count; i++)
        if (!node->state.jobs[i].ended
            && bh_store_folder(node, node->state.jobs[i].record.lease, path, &ignored) == BH_OK
            && strcmp(path, wanted) == 0)
            return true;
    return false;
}

void
bh_store_trim(struct bh_node *node, const char *tenant)
{
    uint64_t cap = (uint64_t)node->conf.images_cap_mib << 20, bytes = 0;
    struct stored *stored = calloc(IMAGES_MAX, sizeof *stored);
    char folder[BH_NODE_PATH_MAX];
    struct bh_err ignored;
    uint32_t count = 0;

    if (stored && store_tenant_folder(node, tenant, folder, &ignored) == BH_OK)
        count = store_list_stored(folder, stored);
    for (uint32_t i = 0; i < count; i++)
        bytes += stored[i].bytes;
    for (uint32_t i = 0; i < count && bytes > cap; i++) {
        if (store_is_used(node, folder, stored[i].digest))
            continue;
        bh_log(IMAGE_REMOVED, BH_STR("tenant", tenant), BH_STR("digest", stored[i].digest));
        store_remove_later(node, folder, stored[i].digest);
        bytes -= stored[i].bytes;
    }
    free(stored);
}
