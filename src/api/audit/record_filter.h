#ifndef BH_API_AUDIT_RECORD_FILTER_H
#define BH_API_AUDIT_RECORD_FILTER_H

#include "api/request/call.h"
#include "base/slice.h"

/* Which records a search is for; what is not asked for matches. */
struct bh_record_filter {
    const char *verb;            /* NULL: any */
    const char *object_type;     /* NULL: any */
    uint64_t object;             /* with has_object */
    char digits[24];             /* of `object`, with has_object: its records have them */
    uint64_t actor;              /* with has_actor */
    const char *text;            /* beginning of an id; NULL: any */
    uint64_t since_ns, until_ns; /* from, and before */
    bool has_object, has_actor, has_decision, allow;
    bool sees_object; /* a job, which the caller may see: also where a record changed others beside it */
    bool any;         /* something is asked for */
};

/* Read the query, but for its tenant: bh_visible_read sees to that.
 *   BH_INVALID    malformed
 *   BH_NOT_FOUND  no such principal */
BH_MUST_USE bh_rc bh_record_filter_read(const struct bh_call *call, struct bh_record_filter *ret_filter,
                                        struct bh_err *err);

/* Whether the leaf's result is that something was denied. */
bool bh_record_filter_is_refusal(struct bh_slice leaf);

/* False where it is not, for many that a search looks at: without parsing. */
bool bh_record_filter_may_have(const struct bh_record_filter *filter, struct bh_slice leaf);

/* Whether the record with that leaf is asked for; `whole`: the caller sees all of it, what became of jobs
 * by it included. */
bool bh_record_filter_has(const struct bh_record_filter *filter, struct bh_slice leaf, bool whole);

#endif
