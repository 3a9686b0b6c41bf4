#include "policy/operations.h"

#include <string.h>

#include "base/assert.h"

const char *const bh_method_names[BH_METHODS] = {
    [BH_GET] = "GET",
    [BH_POST] = "POST",
    [BH_PUT] = "PUT",
    [BH_DELETE] = "DELETE",
};

/* Whether a description of the body is named: compared as text, so that the table may
 * name descriptions of layers above. */
#define IS_NONE(request) (sizeof(request) == sizeof "NONE" && (request)[0] == 'N')

static const struct bh_operation_row rows[BH_OPERATIONS] = {
#define BH_OPERATION(op, http_method, route, permission, whose, what, request, params, handler, runner,      \
                     reply, text)                                                                            \
    [BH_OP_##op] = { .id = BH_OP_##op,                                                                       \
                     .name = #op,                                                                            \
                     .method = BH_##http_method,                                                             \
                     .path = route,                                                                          \
                     .verb = permission,                                                                     \
                     .scope = BH_SCOPE_##whose,                                                              \
                     .kind = BH_OPERATION_##what,                                                            \
                     .query = params,                                                                        \
                     .summary = text,                                                                        \
                     .has_body = !IS_NONE(#request) },
#include "tables/operations.tbl"
#undef BH_OPERATION
};

/* An operation without a permission does not compile: only those that name no subject, and whoami, are
 * open. */
#define BH_OPERATION(op, http_method, route, permission, whose, what, request, params, handler, runner,      \
                     reply, text)                                                                            \
    _Static_assert(sizeof(permission) > 1 || BH_SCOPE_##whose == BH_SCOPE_NOBODY                             \
                       || BH_OP_##op == BH_OP_WHOAMI,                                                        \
                   #op " names no verb");
#include "tables/operations.tbl"
#undef BH_OPERATION

const struct bh_operation_row *
bh_operation_get(enum bh_operation op)
{
    BH_ASSERT((unsigned)op < BH_OPERATIONS);
    return &rows[op];
}

const char *
bh_operation_recorded_verb(enum bh_operation op)
{
    static const char *const recorded_verbs[BH_OPERATIONS] = {
#define BH_RECORDED_VERB(operation, verb) [BH_OP_##operation] = verb,
#include "tables/recorded_verbs.tbl"
#undef BH_RECORDED_VERB
    };
    const struct bh_operation_row *row = bh_operation_get(op);

    if (recorded_verbs[op])
        return recorded_verbs[op];
    return row->verb[0] ? row->verb : row->name;
}

bool
bh_words_contain(const char *words, const char *word)
{
    size_t length = strlen(word);

    if (length == 0)
        return false;
    while (*words) {
        const char *end = strchr(words, ' ');
        size_t found = end ? (size_t)(end - words) : strlen(words);

        if (found == length && memcmp(words, word, length) == 0)
            return true;
        words += found + (end != NULL);
    }
    return false;
}

bool
bh_operation_of_accounts(enum bh_operation op)
{
    return op >= BH_OP_SIGN_IN_WAYS && op <= BH_OP_ACCOUNT_RESET;
}

bool
bh_operation_has_parameter(const struct bh_operation_row *op, const char *parameter)
{
    return bh_words_contain(op->query, parameter);
}

/* The pattern ends with {rest}, which matches all that follows. */
static bool
rest_matches(const char *pattern, const char *open, const char *path, struct bh_path_match *ret_match)
{
    size_t before = (size_t)(open - pattern);

    if (strncmp(pattern, path, before) != 0 || path[before] == '\0')
        return false;
    *ret_match = (struct bh_path_match){ path + before, strlen(path + before) };
    return true;
}

bool
bh_path_matches(const char *pattern, const char *path, struct bh_path_match *ret_match)
{
    static const char parameter[] = "{id}";
    const char *open = strstr(pattern, parameter), *tail = strstr(pattern, "{rest}");
    size_t before = open ? (size_t)(open - pattern) : 0;
    const char *id, *rest;

    if (tail)
        return rest_matches(pattern, tail, path, ret_match);
    if (!open) {
        *ret_match = (struct bh_path_match){ 0 };
        return strcmp(pattern, path) == 0;
    }
    if (strncmp(pattern, path, before) != 0)
        return false;
    id = path + before;
    rest = strchr(id, '/');
    if (!rest)
        rest = id + strlen(id);
    if (rest == id || strcmp(rest, open + sizeof parameter - 1) != 0)
        return false;
    *ret_match = (struct bh_path_match){ id, (size_t)(rest - id) };
    return true;
}
