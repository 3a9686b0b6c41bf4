#include "node/conf.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"

enum kind { TEXT, TEXTS, COUNT };

struct param {
    const char *name;
    enum kind kind;
    const char *unit;
    uint32_t min, max;
    size_t offset;
    const char *text;   /* default of a TEXT */
    uint32_t count;     /* default of a COUNT */
    const char *sentence;
};

#define DEFAULT_TEXT(fallback) .text = fallback
#define DEFAULT_TEXTS(fallback) .text = fallback
#define DEFAULT_COUNT(fallback) .count = fallback

static const struct param params[] = {
#define BH_NODE_PARAM(name_, kind_, unit_, min_, max_, fallback, sentence_)              \
    { .name = #name_, .kind = kind_, .unit = unit_, .min = min_, .max = max_,            \
      .offset = offsetof(struct bh_conf, name_), DEFAULT_##kind_(fallback),              \
      .sentence = sentence_ },
#include "tables/node_params.tbl"
#undef BH_NODE_PARAM
};

struct reader {
    const char *file;
    uint32_t line;
    struct bh_arena *arena;
    struct bh_conf *conf;
    bool seen[BH_COUNT(params)];
};

static void *
place_of(struct bh_conf *conf, const struct param *param)
{
    return (char *)conf + param->offset;
}

static const struct param *
find_param(const char *name)
{
    for (size_t i = 0; i < BH_COUNT(params); i++) {
        if (strcmp(params[i].name, name) == 0)
            return &params[i];
    }
    return NULL;
}

static void
set_defaults(struct bh_conf *conf)
{
    memset(conf, 0, sizeof *conf);
    for (size_t i = 0; i < BH_COUNT(params); i++) {
        if (params[i].kind == TEXT)
            *(const char **)place_of(conf, &params[i]) = params[i].text;
        if (params[i].kind == COUNT)
            *(uint32_t *)place_of(conf, &params[i]) = params[i].count;
    }
}

static bh_rc
add_text(struct bh_arena *arena, struct bh_texts *texts, const char *value, struct bh_err *err)
{
    if (!texts->items)
        texts->items = bh_arena_alloc(arena, BH_CONF_TEXTS_MAX * sizeof *texts->items);
    if (!texts->items || texts->count == BH_CONF_TEXTS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d lines of one key", BH_CONF_TEXTS_MAX);
    texts->items[texts->count++] = value;
    return BH_OK;
}

static bh_rc
set_param(struct reader *reader, const struct param *param, const char *value,
          struct bh_err *err)
{
    bool *seen = &reader->seen[param - params];
    char *kept = bh_arena_strdup(reader->arena, value);

    if (!kept)
        return bh_err_set(err, BH_FULL, "the file is too long");
    if (param->kind == TEXTS)
        return add_text(reader->arena, place_of(reader->conf, param), kept, err);
    if (*seen)
        return bh_err_set(err, BH_INVALID, "%s stands twice", param->name);
    *seen = true;
    if (param->kind == COUNT) {
        bh_rc rc = bh_parse_u32(value, param->min, param->max,
                                place_of(reader->conf, param), err);

        return rc == BH_OK ? rc : bh_err_wrap(err, "%s", param->name);
    }
    if (strlen(value) > BH_CONF_PATH_MAX)
        return bh_err_set(err, BH_RANGE, "%s is longer than %d bytes", param->name,
                          BH_CONF_PATH_MAX);
    if (strcmp(param->unit, "path") == 0 && *value && value[0] != '/' && strchr(value, '/'))
        return bh_err_set(err, BH_INVALID, "%s must be an absolute path", param->name);
    *(const char **)place_of(reader->conf, param) = kept;
    return BH_OK;
}

static char *
trim(char *text)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

static bh_rc
read_line(struct reader *reader, char *line, struct bh_err *err)
{
    char *text = trim(line), *equals;
    const struct param *param;

    if (!*text || *text == '#')
        return BH_OK;
    for (const char *at = text; *at; at++) {
        if (iscntrl((unsigned char)*at) && *at != '\t')
            return bh_err_set(err, BH_INVALID, "control character");
    }
    equals = strchr(text, '=');
    if (!equals)
        return bh_err_set(err, BH_INVALID, "expected `key = value`");
    *equals = '\0';
    param = find_param(trim(text));
    if (!param) {
        bh_err_set(err, BH_INVALID, "unknown key %.60s", trim(text));
        return bh_err_hint(err, "bulkhead-node --help-config lists the keys");
    }
    return set_param(reader, param, trim(equals + 1), err);
}

bh_rc
bh_conf_parse(const char *file, const char *text, struct bh_arena *arena,
              struct bh_conf *ret_conf, struct bh_err *err)
{
    struct bh_conf conf;
    struct reader reader = { .file = file, .arena = arena, .conf = &conf };
    char *copy = bh_arena_strdup(arena, text);
    bh_rc rc = BH_OK;

    set_defaults(&conf);
    if (!copy)
        return bh_err_set(err, BH_FULL, "%s is too long", file);
    for (char *line = copy, *next; line && rc == BH_OK; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        reader.line++;
        rc = read_line(&reader, line, err);
    }
    if (rc != BH_OK)
        return bh_err_wrap(err, "%s:%u", file, reader.line);
    *ret_conf = conf;
    return BH_OK;
}

static bh_rc
check_owner(const char *path, struct bh_err *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return bh_err_errno(err, "look at %s", path);
    if (geteuid() != 0 || (st.st_uid == 0 && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0))
        return BH_OK;
    bh_err_set(err, BH_DENIED, "%s can be written by others than root", path);
    return bh_err_hint(err, "chown root %s; chmod go-w %s", path, path);
}

bh_rc
bh_conf_read(const char *path, struct bh_arena *arena, struct bh_conf *ret_conf,
             struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc = check_owner(path, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init(&text, BH_CONF_BYTES_MAX + 1);
    rc = bh_file_read(path, BH_CONF_BYTES_MAX, &text, err);
    if (rc == BH_OK && text.length > 0 && memchr(text.bytes, '\0', text.length))
        rc = bh_err_set(err, BH_INVALID, "%s holds a NUL byte", path);
    if (rc == BH_OK)
        rc = bh_conf_parse(path, text.length > 0 ? bh_buf_text(&text) : "", arena, ret_conf,
                           err);
    bh_buf_fini(&text);
    return rc;
}

void
bh_conf_help(void)
{
    static const char *const kinds[] = { "text", "text, repeatable", "number" };

    puts("# Parameters of node.conf: `key = value` lines; # begins a comment line.\n");
    for (size_t i = 0; i < BH_COUNT(params); i++) {
        printf("# %s\n# %s (%s)", params[i].sentence, kinds[params[i].kind], params[i].unit);
        if (params[i].kind == COUNT)
            printf(", %u to %u\n%s = %u\n\n", params[i].min, params[i].max, params[i].name,
                   params[i].count);
        else
            printf("\n%s%s = %s\n\n", params[i].kind == TEXTS ? "# " : "", params[i].name,
                   params[i].text);
    }
}

bool
bh_conf_gpu_allowed(const struct bh_conf *conf, const char *uuid)
{
    for (uint32_t i = 0; i < conf->gpus.count; i++) {
        if (strcmp(conf->gpus.items[i], "all") == 0 || strcmp(conf->gpus.items[i], uuid) == 0)
            return true;
    }
    return false;
}
