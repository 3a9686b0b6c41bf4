#include "cli/jobspec.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/slice.h"

/* A value of an option with something to be said about it. */
struct writing {
    struct bh_json_writer *json;
    struct bh_arena *arena;
    struct bh_err *err;
};

/* "." and "data" as absolute paths. */
static bh_rc
make_absolute(const struct writing *w, const char *path, const char **ret_path)
{
    char here[PATH_MAX];

    *ret_path = path;
    if (*path == '/')
        return BH_OK;
    if (!getcwd(here, sizeof here))
        return bh_err_errno(w->err, "the working directory");
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    *ret_path = strcmp(path, ".") == 0 || !*path
        ? bh_arena_printf(w->arena, "%s", here)
        : bh_arena_printf(w->arena, "%s/%s", here, path);
    return *ret_path ? BH_OK : bh_err_set(w->err, BH_FULL, "too many paths");
}

/* "NAME=value", or "NAME" with the value of our own environment */
static bh_rc
put_env(const struct writing *w, const char *text)
{
    const char *value = getenv(text);

    if (!strchr(text, '=') && !value)
        return bh_err_set(w->err, BH_INVALID, "--env: %.80s is not set here; write NAME=VALUE", text);
    if (!strchr(text, '='))
        text = bh_arena_printf(w->arena, "%s=%s", text, value);
    if (!text)
        return bh_err_set(w->err, BH_FULL, "--env: too large");
    bh_json_str(w->json, NULL, text);
    return BH_OK;
}

/* "source", "source:target", "source:target:rw" */
static bh_rc
put_mount(const struct writing *w, const char *text)
{
    char *source = bh_arena_strdup(w->arena, text), *target, *mode = NULL;
    const char *absolute;
    bh_rc rc;

    if (!source)
        return bh_err_set(w->err, BH_FULL, "--mount: too large");
    target = strchr(source, ':');
    if (target) {
        *target++ = '\0';
        mode = strchr(target, ':');
    }
    if (mode)
        *mode++ = '\0';
    if (mode && strcmp(mode, "rw") != 0 && strcmp(mode, "ro") != 0)
        return bh_err_set(w->err, BH_INVALID, "--mount: \"%.40s\" is neither rw nor ro", mode);
    rc = make_absolute(w, source, &absolute);
    if (rc != BH_OK)
        return rc;
    bh_json_open(w->json, NULL, '{');
    bh_json_str(w->json, "source", absolute);
    if (target && *target)
        bh_json_str(w->json, "target", target);
    if (mode && strcmp(mode, "rw") == 0)
        bh_json_bool(w->json, "write", true);
    bh_json_close(w->json, '}');
    return BH_OK;
}

static bh_rc
put_text_item(const struct writing *w, const char *text)
{
    bh_json_str(w->json, NULL, text);
    return BH_OK;
}

/* Options whose items are more than their text. */
static bh_rc
put_texts(const struct writing *w, enum bh_option_id id, const struct bh_option_value *value)
{
    bh_rc (*put)(const struct writing *, const char *) =
        id == BH_OPT_MOUNT ? put_mount : id == BH_OPT_ENV ? put_env : put_text_item;
    bh_rc rc = BH_OK;

    bh_json_open(w->json, bh_cli_options[id].key, '[');
    for (uint32_t i = 0; rc == BH_OK && i < value->count; i++)
        rc = put(w, value->texts[i]);
    bh_json_close(w->json, ']');
    return rc;
}

static bh_rc
put_option(const struct writing *w, enum bh_option_id id, const struct bh_option_value *value)
{
    const struct bh_option *option = &bh_cli_options[id];
    const char *text = value->text;
    bh_rc rc = BH_OK;

    switch (option->kind) {
    case BH_OPT_KIND_FLAG:
        bh_json_bool(w->json, option->key, true);
        break;
    case BH_OPT_KIND_NUMBER:
        bh_json_u64(w->json, option->key, value->number);
        break;
    case BH_OPT_KIND_TEXTS:
        rc = put_texts(w, id, value);
        break;
    case BH_OPT_KIND_TEXT:
    case BH_OPT_KIND_SPAN:
    case BH_OPT_KIND_CHOICE:
        if (id == BH_OPT_CWD)
            rc = make_absolute(w, text, &text);
        if (rc == BH_OK)
            bh_json_str(w->json, option->key, text);
        break;
    }
    return rc;
}

/* Whether an option speaks for this key of a job. */
static bool
is_given(const struct bh_args *args, const char *key)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++)
        if (args->options[i].given && strcmp(bh_cli_options[i].key, key) == 0)
            return true;
    return false;
}

static bool
any_given(const struct bh_args *args)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++)
        if (args->options[i].given && *bh_cli_options[i].key)
            return true;
    return false;
}

/* What the file says and no option does. */
static bh_rc
put_rest(const struct writing *w, const struct bh_args *args, const struct bh_buf *file)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_json_parse(file->bytes, file->length, &json, w->err);
    void *cursor = NULL;
    const char *key;
    bh_json_value member;

    if (rc == BH_OK && bh_json_kind(bh_json_root(json)) != BH_JSON_OBJECT)
        rc = bh_err_set(w->err, BH_INVALID, "the job file holds no mapping");
    while (rc == BH_OK && bh_json_next(bh_json_root(json), &cursor, &key, &member)) {
        struct bh_slice value = { 0 };
        char *text;

        if (is_given(args, key))
            continue;
        bh_slice_get((struct bh_slice){ file->bytes, file->length }, key, &value);
        text = value.text ? bh_arena_strndup(w->arena, value.text, value.length) : NULL;
        if (!text)
            return bh_err_set(w->err, BH_INVALID, "the job file's key %.80s is unreadable", key);
        bh_json_raw(w->json, key, text);
    }
    return rc;
}

static bh_rc
put_job(const struct writing *w, const struct bh_args *args, const struct bh_buf *file)
{
    bh_rc rc = BH_OK;

    bh_json_open(w->json, NULL, '{');
    if (!file) {
        bh_json_open(w->json, "args", '[');
        for (uint32_t i = 0; i < args->count; i++)
            bh_json_str(w->json, NULL, args->arguments[i]);
        bh_json_close(w->json, ']');
    }
    for (uint32_t i = 0; rc == BH_OK && i < BH_OPTIONS; i++)
        if (args->options[i].given && *bh_cli_options[i].key)
            rc = put_option(w, (enum bh_option_id)i, &args->options[i]);
    if (rc == BH_OK && file)
        rc = put_rest(w, args, file);
    bh_json_close(w->json, '}');
    return rc;
}

bh_rc
bh_jobspec_build(const struct bh_args *args, const char *file, struct bh_arena *arena,
                 struct bh_buf *out, struct bh_err *err)
{
    struct bh_json_writer json = bh_json_begin(out);
    struct writing w = { &json, arena, err };
    struct bh_buf text;
    bh_rc rc;

    if (!file)
        return put_job(&w, args, NULL);
    bh_buf_init(&text, 2 * BH_JSON_BYTES_MAX);
    rc = bh_cli_read_document(file, &text, err);
    if (rc == BH_OK && !any_given(args))
        bh_buf_put(out, text.bytes, text.length);
    else if (rc == BH_OK)
        rc = put_job(&w, args, &text);
    bh_buf_fini(&text);
    return rc;
}
