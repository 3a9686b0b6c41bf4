#include "api/request/query.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "model/job.h"

static bh_rc
query_read_FLAG(const char *text, uint64_t most, bool *ret_flag, struct bh_err *err)
{
    *ret_flag = strcmp(text, "true") == 0;
    if (!*ret_flag && strcmp(text, "false") != 0)
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is neither true nor false", text);
    return BH_OK;
}

static bh_rc
query_read_NUMBER(const char *text, uint64_t most, uint64_t *ret_number, struct bh_err *err)
{
    bh_rc rc = bh_parse_u64(text, ret_number, err);

    if (rc == BH_OK && *ret_number > most)
        return bh_err_set(err, BH_RANGE, "%" PRIu64 " is over %" PRIu64, *ret_number, most);
    return rc;
}

static bh_rc
query_read_TEXT(const char *text, uint64_t most, const char **ret_text, struct bh_err *err)
{
    *ret_text = text;
    return BH_OK;
}

#define query_read_CURSOR query_read_NUMBER

bh_rc
bh_query_read(const struct bh_request *request, struct bh_query *ret_query, struct bh_err *err)
{
    const char *text;

    *ret_query = (struct bh_query){ 0 };
#define BH_PARAMETER(kind, name, most, doc)                                                                  \
    text = request->query(request, #name);                                                                   \
    ret_query->given.name = text != NULL;                                                                    \
    if (text && query_read_##kind(text, most, &ret_query->name, err) != BH_OK)                               \
        return bh_err_wrap(err, #name);
#include "tables/parameters.tbl"
#undef BH_PARAMETER
    return BH_OK;
}

bh_rc
bh_query_read_order(const struct bh_query *query, bool *ret_newest, struct bh_err *err)
{
    bool newest = query->order && strcmp(query->order, "newest") == 0;

    if (query->order && !newest && strcmp(query->order, "oldest") != 0)
        return bh_err_set(err, BH_INVALID, "order: \"%.40s\" is neither oldest nor newest", query->order);
    *ret_newest = newest;
    return BH_OK;
}

#define TYPE_FLAG "boolean"
#define TYPE_NUMBER "integer"
#define TYPE_CURSOR "string"
#define TYPE_TEXT "string"

const struct bh_parameter *
bh_parameter_find(const char *name, size_t length)
{
    static const struct bh_parameter parameters[] = {
#define BH_PARAMETER(kind, name, most, doc) { #name, TYPE_##kind, doc },
#include "tables/parameters.tbl"
#undef BH_PARAMETER
    };

    for (size_t i = 0; i < BH_COUNT(parameters); i++)
        if (strlen(parameters[i].name) == length && memcmp(parameters[i].name, name, length) == 0)
            return &parameters[i];
    return NULL;
}
