#include "base/params.h"

#include <string.h>

#include "base/assert.h"
#include "base/num.h"

static const struct bh_param *
params_find(const struct bh_params *params, const char *name, size_t length)
{
    for (uint32_t i = 0; i < params->count; i++)
        if (strlen(params->rows[i].name) == length && memcmp(params->rows[i].name, name, length) == 0)
            return &params->rows[i];
    return NULL;
}

static bh_rc
params_check_range(const struct bh_param *param, uint64_t value, struct bh_err *err)
{
    uint64_t most = param->kind == BH_PARAM_U32 ? UINT32_MAX : UINT64_MAX;

    if (param->high)
        most = param->high;
    if (value < param->low || value > most)
        return bh_err_set(err, BH_RANGE, "%s: %" PRIu64 " is not between %" PRIu64 " and %" PRIu64,
                          param->name, value, param->low, most);
    return BH_OK;
}

static bh_rc
params_set_number(const struct bh_param *param, const char *value, void *target, struct bh_err *err)
{
    uint64_t number = 0;
    bh_rc rc;

    if (param->kind == BH_PARAM_SPAN)
        rc = bh_parse_span(value, &number, err);
    else if (param->kind == BH_PARAM_BYTES)
        rc = bh_parse_bytes(value, &number, err);
    else
        rc = bh_parse_u64(value, &number, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "%s", param->name);
    rc = params_check_range(param, number, err);
    if (rc != BH_OK)
        return rc;
    if (param->kind == BH_PARAM_U32)
        *(uint32_t *)target = (uint32_t)number;
    else
        *(uint64_t *)target = number;
    return BH_OK;
}

static bh_rc
params_set_bool(const struct bh_param *param, const char *value, bool *target, struct bh_err *err)
{
    if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return bh_err_set(err, BH_INVALID, "%s: \"%.40s\" is neither true nor false", param->name, value);
    *target = value[0] == 't';
    return BH_OK;
}

static bh_rc
params_add_item(const struct bh_param *param, const char *value, struct bh_param_list *list,
                struct bh_err *err)
{
    if (list->count == BH_PARAM_LIST_MAX)
        return bh_err_set(err, BH_FULL, "%s: more than %d entries", param->name, BH_PARAM_LIST_MAX);
    list->items[list->count++] = value;
    return BH_OK;
}

static bh_rc
params_set_value(const struct bh_param *param, const char *value, void *config, struct bh_arena *arena,
                 struct bh_err *err)
{
    void *target = (char *)config + param->offset;
    const char *copy;

    if (param->kind == BH_PARAM_BOOL)
        return params_set_bool(param, value, target, err);
    if (param->kind != BH_PARAM_TEXT && param->kind != BH_PARAM_LIST)
        return params_set_number(param, value, target, err);
    copy = bh_arena_strdup(arena, value);
    if (!copy)
        return bh_err_set(err, BH_FULL, "%s: the configuration is too large", param->name);
    if (param->kind == BH_PARAM_LIST)
        return params_add_item(param, copy, target, err);
    *(const char **)target = copy;
    return BH_OK;
}

/* `text` without blanks at either end, cut in place. */
static char *
params_trim(char *text)
{
    size_t length;

    text += strspn(text, " \t");
    length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]))
        text[--length] = '\0';
    return text;
}

bh_rc
bh_params_set(const struct bh_params *params, const char *assignment, void *config, struct bh_arena *arena,
              struct bh_err *err)
{
    char line[4096];
    char *equals, *name;
    const struct bh_param *param;

    if (strlen(assignment) >= sizeof line)
        return bh_err_set(err, BH_RANGE, "line is longer than %zu bytes", sizeof line - 1);
    memcpy(line, assignment, strlen(assignment) + 1);
    equals = strchr(line, '=');
    if (!equals)
        return bh_err_set(err, BH_INVALID, "expected `key = value`, not \"%.60s\"", line);
    *equals = '\0';
    name = params_trim(line);
    param = params_find(params, name, strlen(name));
    if (!param)
        return bh_err_set(err, BH_INVALID, "unknown key \"%.60s\"", name);
    return params_set_value(param, params_trim(equals + 1), config, arena, err);
}

static void
params_clear_value(const struct bh_param *param, void *config)
{
    static const size_t sizes[] = {
        [BH_PARAM_TEXT] = sizeof(char *),   [BH_PARAM_U32] = sizeof(uint32_t),
        [BH_PARAM_SPAN] = sizeof(uint64_t), [BH_PARAM_BYTES] = sizeof(uint64_t),
        [BH_PARAM_BOOL] = sizeof(bool),     [BH_PARAM_LIST] = sizeof(struct bh_param_list),
    };

    memset((char *)config + param->offset, 0, sizes[param->kind]);
}

static bh_rc
params_set_defaults(const struct bh_params *params, void *config, struct bh_arena *arena, struct bh_err *err)
{
    for (uint32_t i = 0; i < params->count; i++) {
        bh_rc rc = BH_OK;

        params_clear_value(&params->rows[i], config);
        if (params->rows[i].standard)
            rc = params_set_value(&params->rows[i], params->rows[i].standard, config, arena, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "default");
    }
    return BH_OK;
}

/* A key in the file stands instead of its default; twice only a list may be set. */
static bh_rc
params_note_key(const struct bh_params *params, const char *line, uint64_t *given, void *config,
                struct bh_err *err)
{
    const struct bh_param *param = params_find(params, line, strcspn(line, " \t="));
    uint64_t bit;

    if (!param)
        return BH_OK; /* bh_params_set says so */
    given += (param - params->rows) / 64;
    bit = UINT64_C(1) << (param - params->rows) % 64;
    if (param->kind != BH_PARAM_LIST && (*given & bit))
        return bh_err_set(err, BH_INVALID, "%s is set twice", param->name);
    if (param->kind == BH_PARAM_LIST && !(*given & bit))
        params_clear_value(param, config);
    *given |= bit;
    return BH_OK;
}

bh_rc
bh_params_parse(const struct bh_params *params, const char *text, void *ret_config, struct bh_arena *arena,
                struct bh_err *err)
{
    uint64_t given[4] = { 0 };
    bh_rc rc = params_set_defaults(params, ret_config, arena, err);

    BH_ASSERT(params->count <= 64 * BH_COUNT(given));
    if (rc != BH_OK)
        return rc;
    for (uint32_t number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");
        char *line = bh_arena_strndup(arena, text, length);

        if (!line)
            return bh_err_set(err, BH_FULL, "line %" PRIu32 ": the file is too large", number);
        text += length + (text[length] == '\n');
        line = params_trim(line);
        if (!*line || *line == '#')
            continue;
        rc = params_note_key(params, line, given, ret_config, err);
        if (rc == BH_OK)
            rc = bh_params_set(params, line, ret_config, arena, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "line %" PRIu32, number);
    }
    return BH_OK;
}

void
bh_params_help(const struct bh_params *params, struct bh_buf *out)
{
    for (uint32_t i = 0; i < params->count; i++) {
        const struct bh_param *param = &params->rows[i];

        bh_buf_printf(out, "%s = %s\n    %s\n", param->name, param->standard ? param->standard : "",
                      param->doc);
    }
}
