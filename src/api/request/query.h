#ifndef BH_API_REQUEST_QUERY_H
#define BH_API_REQUEST_QUERY_H

#include "base/err.h"
#include "ports/http.h"

/* Query parameters, from tables/parameters.tbl. */

#define BH_QUERY_FLAG(name) bool name
#define BH_QUERY_NUMBER(name) uint64_t name
#define BH_QUERY_CURSOR(name) uint64_t name
#define BH_QUERY_TEXT(name) const char *name

/* Of a request; what is absent is false, 0 or NULL, and so is its `given`. */
struct bh_query {
#define BH_PARAMETER(kind, name, most, doc) BH_QUERY_##kind(name);
#include "tables/parameters.tbl"
#undef BH_PARAMETER
    struct {
#define BH_PARAMETER(kind, name, most, doc) bool name;
#include "tables/parameters.tbl"
#undef BH_PARAMETER
    } given;
};

/* BH_INVALID: a flag that is neither true nor false, or no number; BH_RANGE. */
BH_MUST_USE bh_rc bh_query_read(const struct bh_request *request, struct bh_query *ret_query,
                                struct bh_err *err);

/* Whether `order` asks for what is newest; BH_INVALID: it is neither that nor oldest. */
BH_MUST_USE bh_rc bh_query_read_order(const struct bh_query *query, bool *ret_newest, struct bh_err *err);

struct bh_parameter {
    const char *name, *type, *doc; /* the type as JSON Schema has it */
};

/* The parameter of that name (`length` bytes); NULL: none has it. */
const struct bh_parameter *bh_parameter_find(const char *name, size_t length);

#endif
