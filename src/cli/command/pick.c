#include "cli/command/pick.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/num.h"

enum { PREFIX_MIN = 8, INDEX_MAX = 1000 };

static const char *
pick_text(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

/* ---- GPUs ---- */

struct gpu_word {
    char node[BH_PICK_NAME_MAX]; /* "": any */
    const char *uuid;            /* or the beginning of one; NULL: by number */
    uint32_t index;
};

/* False: no GPU is named so. */
static bool
pick_parse_gpu(const char *word, struct gpu_word *ret_word)
{
    const char *slash = strrchr(word, '/'), *rest = slash ? slash + 1 : word;
    size_t length = slash ? (size_t)(slash - word) : 0;
    struct bh_err ignored;

    *ret_word = (struct gpu_word){ .uuid = NULL };
    if (length >= BH_PICK_NAME_MAX)
        return false;
    memcpy(ret_word->node, word, length);
    if (strncmp(rest, "GPU-", 4) == 0 && strlen(rest) >= PREFIX_MIN) {
        ret_word->uuid = rest;
        return true;
    }
    rest += strncmp(rest, "gpu", 3) == 0 ? 3 : 0;
    return bh_parse_u32(rest, 0, INDEX_MAX, &ret_word->index, &ignored) == BH_OK;
}

static bool
pick_is_meant(bh_json_value gpu, const struct gpu_word *word)
{
    if (*word->node && strcmp(pick_text(gpu, "node"), word->node) != 0)
        return false;
    if (word->uuid)
        return strncmp(pick_text(gpu, "uuid"), word->uuid, strlen(word->uuid)) == 0;
    return bh_json_number(bh_json_get(gpu, "index"), UINT64_MAX) == word->index;
}

/* "no GPU gpu9": and which there are, as far as they fit. */
static bh_rc
pick_refuse_gpu(bh_json_value items, const char *word, struct bh_err *err)
{
    char memory[sizeof err->hint] = "";
    struct bh_nearest nearest = { 0 };
    struct bh_buf hint;
    size_t i = 0, count = bh_json_count(items);

    bh_err_set(err, BH_NOT_FOUND, "no GPU %.80s that you may see", word);
    for (size_t n = 0; n < count; n++)
        bh_nearest_try(&nearest, word, pick_text(bh_json_at(items, n), "uuid"));
    if (nearest.word)
        return bh_err_hint(err, "did you mean %s?", nearest.word);
    bh_buf_init_fixed(&hint, memory, sizeof memory);
    bh_buf_puts(&hint, count ? "by number, NODE/NUMBER or UUID:" : "no node is connected");
    for (; i < count && hint.length + BH_PICK_NAME_MAX / 2 < sizeof memory; i++)
        bh_buf_printf(&hint, "%s %.40s/%" PRIu64, i ? "," : "", pick_text(bh_json_at(items, i), "node"),
                      bh_json_number(bh_json_get(bh_json_at(items, i), "index"), 0));
    if (i < count)
        bh_buf_printf(&hint, " and %zu more", count - i);
    return bh_err_hint(err, "%s", bh_buf_text(&hint) ? bh_buf_text(&hint) : "");
}

bh_rc
bh_pick_gpu(bh_json_value gpus, const char *word, bh_json_value *ret_gpu, struct bh_err *err)
{
    bh_json_value items = bh_json_get(gpus, "items"), found = NULL;
    struct gpu_word meant;
    uint32_t count = 0;

    for (size_t i = 0; i < bh_json_count(items); i++)
        if (strcmp(pick_text(bh_json_at(items, i), "uuid"), word) == 0) {
            *ret_gpu = bh_json_at(items, i);
            return BH_OK;
        }
    if (!pick_parse_gpu(word, &meant))
        return pick_refuse_gpu(items, word, err);
    for (size_t i = 0; i < bh_json_count(items); i++)
        if (pick_is_meant(bh_json_at(items, i), &meant)) {
            found = bh_json_at(items, i);
            count++;
        }
    if (count == 0)
        return pick_refuse_gpu(items, word, err);
    if (count > 1 && meant.uuid)
        return bh_err_set(err, BH_INVALID, "several GPUs begin with %.80s", word);
    if (count > 1) {
        bh_err_set(err, BH_INVALID, "several nodes have a GPU %" PRIu32, meant.index);
        return bh_err_hint(err, "say NODE/%" PRIu32, meant.index);
    }
    *ret_gpu = found;
    return BH_OK;
}

bh_rc
bh_pick_target(const struct bh_cli *cli, char ret_name[BH_PICK_NAME_MAX], struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    const char *target = cli->args->arguments[0];
    bh_rc rc = bh_cli_fetch(cli, "/v1/gpus", &json, err);
    bh_json_value items, gpu;

    if (rc != BH_OK)
        return rc;
    snprintf(ret_name, BH_PICK_NAME_MAX, "%s", target);
    items = bh_json_get(bh_json_root(json), "items");
    for (size_t i = 0; i < bh_json_count(items); i++)
        if (strcmp(pick_text(bh_json_at(items, i), "node"), target) == 0)
            return BH_OK;
    rc = bh_pick_gpu(bh_json_root(json), target, &gpu, err);
    if (rc == BH_OK)
        snprintf(ret_name, BH_PICK_NAME_MAX, "%s", pick_text(gpu, "uuid"));
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* ---- others ---- */

static bool
pick_is_named(bh_json_value object, const char *key, const char *name)
{
    bh_json_value value = bh_json_get(object, key);
    char number[24];

    if (bh_json_kind(value) != BH_JSON_INTEGER)
        return strcmp(bh_json_text(value, ""), name) == 0;
    snprintf(number, sizeof number, "%" PRId64, bh_json_integer(value, 0));
    return strcmp(number, name) == 0;
}

bh_rc
bh_pick_named(bh_json_value items, const struct bh_pick_by *by, const char *word, bh_json_value *ret_object,
              struct bh_err *err)
{
    struct bh_nearest nearest = { 0 };

    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value object = bh_json_at(items, i);

        if (pick_is_named(object, by->key, word) || pick_is_named(object, by->also, word)) {
            *ret_object = object;
            return BH_OK;
        }
        bh_nearest_try(&nearest, word, pick_text(object, by->key));
    }
    bh_err_set(err, BH_NOT_FOUND, "no %s %.80s that you may see", by->kind, word);
    return nearest.word ? bh_err_hint(err, "did you mean %s?", nearest.word) : BH_NOT_FOUND;
}
