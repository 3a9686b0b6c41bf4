#include "node/unpack/unpack_steps.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/process.h"
#include "image/layer.h"
#include "image/users.h"
#include "model/path.h"
#include "node/common/image_record.h"
#include "node/common/path.h"
#include "node/unpack/unpack_sandbox.h"

#define STAGE BH_UNPACK_SANDBOX_STAGE
#define LAYOUT STAGE "/in"
#define TAG "x"

enum { FILES_MOST = 2000000, LOG_TAIL = 400 };

static int
unpack_fail(struct bh_unpack_order *order, bh_rc rc)
{
    order->shared->rc = rc;
    return rc != BH_OK;
}

/* ---- finding the manifest ---- */

static bh_rc
steps_find_manifest(struct bh_unpack_order *order, struct bh_buf *text, struct bh_err *err)
{
    struct bh_image_blob *blob = &order->shared->manifest;
    bh_rc rc = bh_oci_layout_index(&order->layout, text, err);

    if (rc == BH_OK)
        rc = bh_image_find(text, order->tag, order->digest, blob, err);
    if (rc != BH_OK || blob->media != BH_MEDIA_INDEX)
        return rc;
    bh_buf_clear(text);
    rc = bh_oci_layout_document(&order->layout, blob, text, err);
    return rc == BH_OK ? bh_image_find_platform(text, blob, err) : rc;
}

int
bh_unpack_resolve(void *self)
{
    struct bh_unpack_order *order = self;
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init(&text, BH_IMAGE_DOCUMENT_MAX);
    rc = steps_find_manifest(order, &text, &order->shared->err);
    bh_buf_fini(&text);
    return unpack_fail(order, rc);
}

/* ---- staging ---- */

struct staging {
    struct bh_unpack_order *order;
    struct bh_arena *arena;
    struct bh_image_manifest manifest;
    struct bh_image_config config;
    struct bh_tar_budget budget;
};

static bh_rc
steps_read_documents(struct staging *staging, struct bh_buf *text, struct bh_err *err)
{
    const struct bh_oci_layout *layout = &staging->order->layout;
    bh_rc rc = bh_oci_layout_document(layout, &staging->order->shared->manifest, text, err);

    if (rc == BH_OK)
        rc = bh_image_read_manifest(text, &staging->manifest, err);
    bh_buf_clear(text);
    if (rc != BH_OK)
        return rc;
    rc = bh_oci_layout_document(layout, &staging->manifest.config, text, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_image_read_config(text, staging->arena, &staging->config, err);
    if (rc != BH_OK)
        return rc;
    if (staging->config.diff_id_count != staging->manifest.layer_count)
        return bh_err_set(err, BH_INVALID, "its configuration has %u layers and its manifest %u",
                          staging->config.diff_id_count, staging->manifest.layer_count);
    return BH_OK;
}

static bh_rc
unpack_steps_write_file(const char *path, const void *bytes, size_t length, struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd < 0 ? bh_err_errno(err, "create %s", path) : bh_fd_write_all(fd, bytes, length, err);
}

/* Write a document that Bulkhead made as a blob. */
static bh_rc
steps_write_blob(const struct staging *staging, const struct bh_buf *text, struct bh_image_blob *ret_blob,
                 struct bh_err *err)
{
    uint8_t digest[32];
    char path[128];

    staging->order->layout.crypto->sha256(text->bytes, text->length, NULL, 0, digest);
    for (int i = 0; i < 32; i++)
        snprintf(ret_blob->digest + 2 * i, 3, "%02x", digest[i]);
    ret_blob->bytes = text->length;
    bh_path_format(path, sizeof path, LAYOUT "/blobs/sha256/%s", ret_blob->digest);
    return text->overflow ? bh_err_set(err, BH_FULL, "its documents are too long")
                          : unpack_steps_write_file(path, text->bytes, text->length, err);
}

static bh_rc
steps_write_documents(struct staging *staging, struct bh_err *err)
{
    static const char version[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
    struct bh_image_blob manifest = { .media = BH_MEDIA_MANIFEST };
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init(&text, BH_IMAGE_DOCUMENT_MAX);
    bh_image_put_config(&text, &staging->config);
    rc = steps_write_blob(staging, &text, &staging->manifest.config, err);
    bh_buf_clear(&text);
    bh_image_put_manifest(&text, &staging->manifest);
    if (rc == BH_OK)
        rc = steps_write_blob(staging, &text, &manifest, err);
    bh_buf_clear(&text);
    bh_image_put_index(&text, &manifest, TAG);
    if (rc == BH_OK)
        rc = unpack_steps_write_file(LAYOUT "/index.json", text.bytes, text.length, err);
    if (rc == BH_OK)
        rc = unpack_steps_write_file(LAYOUT "/oci-layout", version, strlen(version), err);
    bh_buf_fini(&text);
    return rc;
}

/* The same layer may be there twice. */
static bh_rc
steps_stage_layer(struct staging *staging, uint32_t at, struct bh_err *err)
{
    struct bh_image_blob *layer = &staging->manifest.layers[at];
    const char *diff_id = staging->config.diff_ids[at];
    struct bh_layer_request request = { .crypto = staging->order->layout.crypto,
                                        .blob = layer,
                                        .diff_id = diff_id,
                                        .budget = &staging->budget,
                                        .read_bytes = &staging->order->shared->read_bytes };
    BH_AUTO(bh_fd_close)
    int from = -1;
    BH_AUTO(bh_fd_close)
    int to = -1;
    uint64_t bytes = 0;
    char path[128];
    bh_rc rc = bh_oci_layout_open(&staging->order->layout, layer, &from, err);

    bh_path_format(path, sizeof path, LAYOUT "/blobs/sha256/%s", diff_id);
    if (rc == BH_OK)
        rc = bh_file_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600, &to, err);
    request.from_fd = from;
    request.to_fd = to;
    if (rc == BH_OK)
        rc = bh_layer_unpack(&request, &bytes, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "layer %u", at + 1);
    *layer = (struct bh_image_blob){ .media = BH_MEDIA_TAR, .bytes = bytes };
    memcpy(layer->digest, diff_id, sizeof layer->digest);
    return BH_OK;
}

static bh_rc
steps_stage_all(struct staging *staging, struct bh_err *err)
{
    static const char *const folders[] = { LAYOUT, LAYOUT "/blobs", LAYOUT "/blobs/sha256", STAGE "/tmp" };
    struct bh_buf text;
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(folders) && rc == BH_OK; i++)
        if (mkdir(folders[i], 0700) != 0)
            rc = bh_err_errno(err, "make folder %s", folders[i]);
    bh_buf_init(&text, BH_IMAGE_DOCUMENT_MAX);
    if (rc == BH_OK)
        rc = steps_read_documents(staging, &text, err);
    if (rc == BH_OK)
        rc = unpack_steps_write_file(STAGE "/config", text.bytes, text.length, err);
    bh_buf_fini(&text);
    staging->order->shared->total_bytes = 0;
    for (uint32_t i = 0; i < staging->manifest.layer_count; i++)
        staging->order->shared->total_bytes += staging->manifest.layers[i].bytes;
    for (uint32_t i = 0; i < staging->manifest.layer_count && rc == BH_OK; i++)
        rc = steps_stage_layer(staging, i, err);
    return rc == BH_OK ? steps_write_documents(staging, err) : rc;
}

int
bh_unpack_stage(void *self)
{
    static struct staging staging;
    struct bh_unpack_order *order = self;
    bh_rc rc;

    staging.order = order;
    staging.arena = bh_arena_new(4 << 20);
    staging.budget = (struct bh_tar_budget){ order->bytes_max, FILES_MOST };
    rc = steps_stage_all(&staging, &order->shared->err);
    order->shared->bytes = order->bytes_max - staging.budget.bytes;
    bh_arena_free(staging.arena);
    return unpack_fail(order, rc);
}

/* ---- umoci ---- */

int
bh_unpack_tool(void *self)
{
    static const char *const argv[] = { "umoci",        "raw",           "unpack", "--image",
                                        LAYOUT ":" TAG, STAGE "/rootfs", NULL };
    static const char *const env[] = { "PATH=/usr/bin:/bin", "HOME=" STAGE "/tmp", "TMPDIR=" STAGE "/tmp",
                                       NULL };
    int log = open(STAGE "/log", O_RDWR | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600);
    struct bh_process_options options = {
        .program = BH_UNPACK_SANDBOX_TOOL,
        .argv = argv,
        .envp = env,
        .fds = { { STDIN_FILENO, log }, { STDOUT_FILENO, log }, { STDERR_FILENO, log } },
        .fd_count = 3,
    };

    (void)!bh_process_become(&options);
    return EXIT_FAILURE;
}

/* Its last line, without the sign before it. */
int
bh_unpack_explain(void *self)
{
    struct bh_unpack_order *order = self;
    BH_AUTO(bh_fd_close)
    int fd = open(STAGE "/log", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char tail[LOG_TAIL + 1], *line;
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    ssize_t n = size > 0 ? pread(fd, tail, LOG_TAIL, size > LOG_TAIL ? size - LOG_TAIL : 0) : 0;

    while (n > 0 && (tail[n - 1] == '\n' || tail[n - 1] == ' '))
        n--;
    tail[n > 0 ? n : 0] = '\0';
    line = strrchr(tail, '\n');
    line = line ? line + 1 : tail;
    while (*line && ((unsigned char)*line >= 0x80 || *line == ' '))
        line++;
    if (strstr(line, "no space left"))
        return unpack_fail(order, bh_err_set(&order->shared->err, BH_FULL, "no space left on the disk"));
    return unpack_fail(order, bh_err_set(&order->shared->err, BH_INVALID, "umoci: %.150s",
                                         *line ? line : "it does not run"));
}

/* ---- image.json ---- */

static bool
steps_is_folder(int root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    BH_AUTO(bh_fd_close)
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);

    return fd >= 0;
}

static bh_rc
unpack_steps_join(struct bh_arena *arena, const struct bh_texts *first, const struct bh_texts *second,
                  struct bh_texts *ret_texts, struct bh_err *err)
{
    const char **items = bh_arena_alloc(arena, (first->count + second->count + 1) * sizeof *items);
    uint32_t count = 0;

    if (!items)
        return bh_err_set(err, BH_FULL, "its command is too long");
    for (uint32_t i = 0; i < first->count; i++)
        items[count++] = first->items[i];
    for (uint32_t i = 0; i < second->count; i++)
        items[count++] = second->items[i];
    *ret_texts = (struct bh_texts){ items, count };
    return BH_OK;
}

/* Variables that are none, and Bulkhead's own, are left out. */
static void
steps_filter_env(struct bh_texts *env)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < env->count; i++) {
        const char *text = env->items[i];

        if (*text != '=' && strchr(text, '=') && strncmp(text, "BULKHEAD_", 9) != 0)
            env->items[kept++] = text;
    }
    env->count = kept;
}

static bh_rc
steps_write_record(struct bh_arena *arena, struct bh_unpack_order *order, struct bh_buf *text,
                   struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int root = open(STAGE "/rootfs", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct bh_image_record record = { .bytes = order->shared->bytes };
    struct bh_image_config *config = bh_arena_alloc(arena, sizeof *config);
    struct bh_user user;
    bh_rc rc = bh_file_read(STAGE "/config", BH_IMAGE_DOCUMENT_MAX - 1, text, err);

    if (root < 0 || !config)
        return bh_err_errno(err, "open the image's root");
    if (rc != BH_OK)
        return rc;
    rc = bh_image_read_config(text, arena, config, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_user_find(root, config->user, &user, err);
    if (rc != BH_OK)
        return rc;
    rc = unpack_steps_join(arena, &config->entrypoint, &config->cmd, &record.command, err);
    if (rc != BH_OK)
        return rc;
    record.env = config->env;
    steps_filter_env(&record.env);
    record.uid = user.uid;
    record.gid = user.gid;
    if (config->working_dir[0] && !bh_file_path_fault(config->working_dir)
        && steps_is_folder(root, config->working_dir))
        record.cwd = config->working_dir;
    bh_buf_clear(text);
    bh_json_encode(text, &bh_image_record_fields, &record);
    return text->overflow ? bh_err_set(err, BH_FULL, "its configuration is too long")
                          : unpack_steps_write_file(STAGE "/image.json", text->bytes, text->length, err);
}

int
bh_unpack_finish(void *self)
{
    struct bh_unpack_order *order = self;
    struct bh_arena *arena = bh_arena_new(8 << 20);
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init(&text, BH_IMAGE_DOCUMENT_MAX);
    rc = steps_write_record(arena, order, &text, &order->shared->err);
    bh_buf_fini(&text);
    bh_arena_free(arena);
    return unpack_fail(order, rc);
}
