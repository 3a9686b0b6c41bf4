#include "cli/jobs/jobspec.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/slice.h"
#include "base/yaml.h"

enum { BODY_MAX = 4 << 20 };

/* A value of an option with something to be said about it. */
struct jobspec_writing {
    struct bh_json_writer *json;
    struct bh_arena *arena;
    struct bh_err *err;
};

/* "." and "data" as absolute paths. */
static bh_rc
jobspec_make_absolute(const struct jobspec_writing *w, const char *path, const char **ret_path)
{
    char here[PATH_MAX];

    *ret_path = path;
    if (*path == '/')
        return BH_OK;
    if (!getcwd(here, sizeof here))
        return bh_err_errno(w->err, "the working directory");
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    *ret_path = strcmp(path, ".") == 0 || !*path ? bh_arena_printf(w->arena, "%s", here)
                                                 : bh_arena_printf(w->arena, "%s/%s", here, path);
    return *ret_path ? BH_OK : bh_err_set(w->err, BH_FULL, "too many paths");
}

/* "NAME=value", or "NAME" with the value of our own environment */
static bh_rc
jobspec_put_env(const struct jobspec_writing *w, const char *text)
{
    const char *value = getenv(text);

    if (!strchr(text, '=') && !value)
        return bh_err_set(w->err, BH_INVALID, "--env: %.80s is not set in this environment; write NAME=VALUE",
                          text);
    if (!strchr(text, '='))
        text = bh_arena_printf(w->arena, "%s=%s", text, value);
    if (!text)
        return bh_err_set(w->err, BH_FULL, "--env: too large");
    if (bh_word_check(text, w->err) != BH_OK)
        return bh_err_wrap(w->err, "--env");
    bh_json_str(w->json, NULL, text);
    return BH_OK;
}

/* "source", "source:target", "source:target:rw"; "dataset=name" in place of a source */
static bh_rc
jobspec_put_mount(const struct jobspec_writing *w, const char *text)
{
    char *source = bh_arena_strdup(w->arena, text), *target, *mode = NULL;
    const char *absolute;
    bool named = strncmp(text, "dataset=", 8) == 0;
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
    rc = jobspec_make_absolute(w, named ? "/" : source, &absolute);
    if (rc != BH_OK)
        return rc;
    bh_json_open(w->json, NULL, '{');
    bh_json_str(w->json, named ? "dataset" : "source", named ? source + 8 : absolute);
    if (target && *target)
        bh_json_str(w->json, "target", target);
    if (mode && strcmp(mode, "rw") == 0)
        bh_json_bool(w->json, "write", true);
    bh_json_close(w->json, '}');
    return BH_OK;
}

static bh_rc
jobspec_put_text_item(const struct jobspec_writing *w, const char *text)
{
    bh_json_str(w->json, NULL, text);
    return BH_OK;
}

/* Options whose items are more than their text. */
static bh_rc
jobspec_put_texts(const struct jobspec_writing *w, enum bh_option_id id, const struct bh_option_value *value)
{
    bh_rc (*put)(const struct jobspec_writing *, const char *) = id == BH_OPT_MOUNT ? jobspec_put_mount
                                                                 : id == BH_OPT_ENV ? jobspec_put_env
                                                                                    : jobspec_put_text_item;
    bh_rc rc = BH_OK;

    bh_json_open(w->json, bh_cli_options[id].key, '[');
    for (uint32_t i = 0; rc == BH_OK && i < value->count; i++)
        rc = put(w, value->texts[i]);
    bh_json_close(w->json, ']');
    return rc;
}

static bh_rc
jobspec_put_option(const struct jobspec_writing *w, enum bh_option_id id, const struct bh_option_value *value)
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
        rc = jobspec_put_texts(w, id, value);
        break;
    case BH_OPT_KIND_TEXT:
    case BH_OPT_KIND_SPAN:
    case BH_OPT_KIND_CHOICE:
        if (id == BH_OPT_CWD)
            rc = jobspec_make_absolute(w, text, &text);
        if (rc == BH_OK)
            bh_json_str(w->json, option->key, text);
        break;
    }
    return rc;
}

/* Whether an option speaks for this key of a job. */
static bool
jobspec_is_given(const struct bh_args *args, const char *key)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++)
        if (args->options[i].given && strcmp(bh_cli_options[i].key, key) == 0)
            return true;
    return args->program && strcmp(key, "args") == 0;
}

static bool
jobspec_any_given(const struct bh_args *args)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++)
        if (args->options[i].given && *bh_cli_options[i].key)
            return true;
    return args->program;
}

static bh_rc
jobspec_put_member(const struct jobspec_writing *w, const struct bh_buf *file, const char *key)
{
    struct bh_slice value = { 0 };
    char *text = NULL;

    if (bh_slice_get((struct bh_slice){ file->bytes, file->length }, key, &value))
        text = bh_arena_strndup(w->arena, value.text, value.length);
    if (!text)
        return bh_err_set(w->err, BH_INVALID, "the job file's key %.80s cannot be read", key);
    bh_json_raw(w->json, key, text);
    return BH_OK;
}

/* Whose job it is when neither an option nor a file says so; NULL: the server knows. */
static const char *
jobspec_default_tenant(const struct bh_args *args)
{
    const char *tenant = getenv("BULKHEAD_TENANT");

    return tenant && *tenant && !args->options[BH_OPT_TENANT].given ? tenant : NULL;
}

/* What the file, now in JSON, says and no option does. */
static bh_rc
jobspec_put_rest(const struct jobspec_writing *w, const struct bh_args *args, const struct bh_buf *file)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_json_parse(file->bytes, file->length, &json, w->err);
    const char *tenant = jobspec_default_tenant(args), *key;
    void *cursor = NULL;
    bh_json_value member;

    if (rc == BH_OK && bh_json_kind(bh_json_root(json)) != BH_JSON_OBJECT)
        rc = bh_err_set(w->err, BH_INVALID, "the job file is not a mapping");
    while (rc == BH_OK && bh_json_next(bh_json_root(json), &cursor, &key, &member))
        if (!jobspec_is_given(args, key))
            rc = jobspec_put_member(w, file, key);
    if (rc != BH_OK)
        return rc;
    if (tenant && !bh_json_get(bh_json_root(json), "tenant"))
        bh_json_str(w->json, "tenant", tenant);
    return BH_OK;
}

/* In a terminal of its own the job sees the kind of this one, unless it sets TERM itself. */
static bh_rc
jobspec_put_env_of_terminal(const struct jobspec_writing *w, const struct bh_args *args)
{
    const struct bh_option_value *env = &args->options[BH_OPT_ENV];
    const char *term = getenv("TERM");
    struct bh_option_value all = *env;
    const char *texts[BH_OPTION_TEXTS_MAX + 1];

    texts[0] = term ? bh_arena_printf(w->arena, "TERM=%.64s", term) : NULL;
    if (!texts[0])
        return env->given ? jobspec_put_texts(w, BH_OPT_ENV, env) : BH_OK;
    for (uint32_t i = 0; i < env->count; i++)
        texts[i + 1] = env->texts[i];
    all.texts = texts;
    all.count = env->count + 1; /* the last of a name counts */
    return jobspec_put_texts(w, BH_OPT_ENV, &all);
}

static bh_rc
jobspec_put_options(const struct jobspec_writing *w, const struct bh_args *args)
{
    bool interactive = args->command == BH_CMD_RUN && args->options[BH_OPT_TTY].given;
    bh_rc rc = BH_OK;

    if (interactive && !args->options[BH_OPT_KIND].given)
        bh_json_str(w->json, bh_cli_options[BH_OPT_KIND].key, "interactive");
    for (uint32_t i = 0; rc == BH_OK && i < BH_OPTIONS; i++)
        if (args->options[i].given && *bh_cli_options[i].key && !(interactive && i == BH_OPT_ENV))
            rc = jobspec_put_option(w, (enum bh_option_id)i, &args->options[i]);
    if (rc != BH_OK)
        return rc;
    if (interactive)
        return jobspec_put_env_of_terminal(w, args);
    return BH_OK;
}

/* What follows "--", or all words of `run`. */
static void
jobspec_put_program(const struct jobspec_writing *w, const struct bh_args *args)
{
    bh_json_open(w->json, "args", '[');
    for (uint32_t i = args->before; i < args->count; i++)
        bh_json_str(w->json, NULL, args->arguments[i]);
    bh_json_close(w->json, ']');
}

/* A job that is described by the command line alone. */
static bh_rc
jobspec_build_program(const struct jobspec_writing *w, const struct bh_args *args)
{
    bh_rc rc;

    bh_json_open(w->json, NULL, '{');
    jobspec_put_program(w, args);
    if (jobspec_default_tenant(args))
        bh_json_str(w->json, "tenant", jobspec_default_tenant(args));
    rc = jobspec_put_options(w, args);
    bh_json_close(w->json, '}');
    return rc;
}

/* A job file with options that change it. */
static bh_rc
jobspec_build_merged(const struct jobspec_writing *w, const struct bh_args *args, struct bh_document *file)
{
    BH_AUTO(bh_buf_fini) struct bh_buf json = { .max = 2 * BH_JSON_BYTES_MAX };
    bh_rc rc = BH_OK;

    if (file->yaml)
        rc = bh_yaml_to_json(file->text.bytes ? file->text.bytes : "", file->text.length, &json, w->err);
    else
        bh_buf_put(&json, file->text.bytes, file->text.length);
    bh_json_open(w->json, NULL, '{');
    if (args->program)
        jobspec_put_program(w, args);
    if (rc == BH_OK)
        rc = jobspec_put_options(w, args);
    if (rc == BH_OK)
        rc = jobspec_put_rest(w, args, &json);
    bh_json_close(w->json, '}');
    return rc;
}

bh_rc
bh_jobspec_file(const struct bh_args *args, const char **ret_file, struct bh_err *err)
{
    const char *command = bh_cli_commands[args->command].name;
    uint32_t files = args->program ? args->before : args->count;

    *ret_file = files ? args->arguments[0] : NULL;
    if (args->program && args->count == args->before) {
        bh_err_set(err, BH_INVALID, "%s: no program after --", command);
        return bh_err_hint(err, "bulkhead %s --sku small -- PROGRAM [ARGUMENT...]", command);
    }
    if (files <= 1)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "%s: expected one job file, or -- and a program", command);
    if (args->program)
        return bh_err_hint(err, "only a job file may come before --; %.60s is an extra word",
                           args->arguments[1]);
    return bh_err_hint(err, "bulkhead %s --sku small -- %.60s ...", command, args->arguments[0]);
}

/* "#!": scripts that are written for other schedulers. */
static bh_rc
jobspec_refuse_script(const char *file, const struct bh_document *text, struct bh_err *err)
{
    if (text->text.length < 2 || memcmp(text->text.bytes, "#!", 2) != 0)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "%s is a script; a job file is YAML or JSON", file);
    return bh_err_hint(
        err,
        "a program comes after --: bulkhead submit --sku small -- sh %.80s; --mount . --cwd . gives it "
        "this folder",
        file);
}

bh_rc
bh_jobspec_explain(const char *file, struct bh_err *err)
{
    if (!file || err->rc != BH_INVALID || strncmp(err->msg, "line ", 5) != 0)
        return err->rc;
    (void)!bh_err_wrap(err, "%s", file);
    if (*err->hint && !strstr(err->msg, "expected keys and values"))
        return err->rc;
    return bh_err_hint(err, "a job file is YAML or JSON; a program comes after --");
}

bh_rc
bh_jobspec_build(const struct bh_args *args, const char *file, struct bh_arena *arena,
                 struct bh_document *ret_document, struct bh_err *err)
{
    struct bh_document built = { 0 }, text = { 0 };
    struct bh_json_writer json = bh_json_begin(&built.text);
    struct jobspec_writing w = { &json, arena, err };
    bh_rc rc;

    *ret_document = built;
    if (file) {
        rc = bh_cli_read_document(file, &text, err);
        if (rc == BH_OK)
            rc = jobspec_refuse_script(file, &text, err);
        if (rc != BH_OK || (!jobspec_any_given(args) && !jobspec_default_tenant(args))) {
            *ret_document = text;
            return rc;
        }
    }
    bh_buf_init(&built.text, BODY_MAX);
    rc = file ? jobspec_build_merged(&w, args, &text) : jobspec_build_program(&w, args);
    bh_buf_fini(&text.text);
    *ret_document = built;
    return rc;
}
