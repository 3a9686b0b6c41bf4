#include "api/audit/record_filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/audit/record_words.h"
#include "api/request/moment.h"
#include "audit/job_status.h"
#include "base/num.h"

enum { TEXT_LEAST = 4 };

/* ---- what is asked for ---- */

static bool
record_filter_may_see_site(const struct bh_call *call)
{
    return bh_authz_check(call->dir, &call->caller.subject, "record.view", (bh_tenant_id){ 0 }).allow;
}

/* A name that no principal has finds nothing, like a name whose records the caller may not see, so that the
 * answer does not show which names exist.  A caller that may see the whole site learns that the name is
 * mistyped. */
static bh_rc
filter_read_actor(const struct bh_call *call, struct bh_record_filter *filter, struct bh_err *err)
{
    const char *text = call->query.actor;
    const struct bh_dir_principal *principal;

    if (!text)
        return BH_OK;
    filter->has_actor = true;
    principal = bh_directory_principal_named(call->dir, text);
    if (principal)
        filter->actor = principal->id.v;
    if (principal || bh_parse_u64(text, &filter->actor, err) == BH_OK)
        return BH_OK;
    filter->actor = UINT64_MAX;
    if (!record_filter_may_see_site(call))
        return BH_OK;
    return bh_err_set(err, BH_NOT_FOUND, "actor: no principal %.60s", text);
}

struct filter_node {
    const char *name;
    uint64_t *ret_id;
};

static bool
filter_match_node(void *self, const struct bh_name_row *row)
{
    struct filter_node *node = self;
    bool same = row->kind == BH_NAME_NODE && !row->gone && strcmp(row->name, node->name) == 0;

    if (same)
        *node->ret_id = row->id;
    return !same;
}

/* UINT64_MAX: there is none. */
static bh_rc
filter_read_node(const struct bh_call *call, const char *name, uint64_t *ret_id, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct filter_node node = { name, ret_id };

    *ret_id = UINT64_MAX;
    return store->ops->list_names(store->self, filter_match_node, &node, err);
}

/* A number, a dataset's name or a GPU's UUID.  A name that there is none of finds nothing, as that of one
 * that the caller may not know of does. */
static bool
filter_read_id(const struct bh_call *call, const char *type, const char *text, uint64_t *ret_id)
{
    const struct bh_dir_dataset *dataset;
    const struct bh_dir_gpu *gpu;
    struct bh_err unused;

    if (bh_parse_u64(text, ret_id, &unused) == BH_OK)
        return true;
    if (strcmp(type, "gpu") == 0) {
        gpu = bh_directory_gpu_uuid(call->dir, text);
        *ret_id = gpu ? gpu->id.v : UINT64_MAX;
        return true;
    }
    if (strcmp(type, "dataset") != 0)
        return false;
    dataset = bh_directory_dataset_named(call->dir, text);
    *ret_id = dataset ? dataset->id.v : UINT64_MAX;
    return true;
}

static bool
filter_read_tenant(void *self, const struct bh_job_row *row)
{
    bh_tenant_id *tenant = self;

    tenant->v = row->tenant_id;
    return false;
}

/* Whether it is for a job whose records the caller may see: of one that changed other tenants' jobs as well
 * it learns no more than that it changed this one. */
static bool
filter_sees_job(const struct bh_call *call, const struct bh_record_filter *filter)
{
    const struct bh_store *store = &call->api->options.store;
    bh_tenant_id tenant = { 0 };
    struct bh_err unused;

    return strcmp(filter->object_type, "job") == 0
           && store->ops->get_job(store->self, filter->object, filter_read_tenant, &tenant, &unused) == BH_OK
           && tenant.v != 0 && bh_authz_check(call->dir, &call->caller.subject, "record.view", tenant).allow;
}

/* "job", or "job/7". */
static bh_rc
filter_read_object(const struct bh_call *call, struct bh_record_filter *filter, struct bh_err *err)
{
    const char *text = call->query.object, *slash = text ? strchr(text, '/') : NULL;
    bh_rc rc;

    if (!text)
        return BH_OK;
    filter->object_type = slash ? bh_arena_strndup(call->arena, text, (size_t)(slash - text)) : text;
    filter->has_object = slash;
    if (!filter->object_type)
        return bh_err_set(err, BH_FULL, "the answer is too large");
    rc = bh_record_words_check_object(filter->object_type, err);
    if (rc != BH_OK)
        return rc;
    if (slash && strcmp(filter->object_type, "node") == 0
        && bh_parse_u64(slash + 1, &filter->object, err) != BH_OK)
        rc = filter_read_node(call, slash + 1, &filter->object, err);
    else if (slash && !filter_read_id(call, filter->object_type, slash + 1, &filter->object))
        rc = bh_err_set(err, BH_INVALID, "object: \"%.60s\" is not a type, or a type and a number", text);
    if (rc != BH_OK || !slash)
        return rc;
    snprintf(filter->digits, sizeof filter->digits, "%" PRIu64, filter->object);
    filter->sees_object = filter_sees_job(call, filter);
    return BH_OK;
}

static bh_rc
filter_read_decision(const struct bh_call *call, struct bh_record_filter *filter, struct bh_err *err)
{
    const char *text = call->query.decision;

    filter->has_decision = text;
    filter->allow = text && strcmp(text, "allow") == 0;
    if (!text || filter->allow || strcmp(text, "deny") == 0)
        return BH_OK;
    return bh_err_set(err, BH_INVALID, "decision: \"%.40s\" is neither allow nor deny", text);
}

bh_rc
bh_record_filter_read(const struct bh_call *call, struct bh_record_filter *ret_filter, struct bh_err *err)
{
    struct bh_record_filter filter = { .verb = call->query.verb,
                                       .text = call->query.text,
                                       .until_ns = UINT64_MAX };
    bh_rc rc = filter.verb ? bh_record_words_check_verb(filter.verb, err) : BH_OK;

    if (rc != BH_OK)
        return rc;
    rc = bh_moment_read(call, "since", call->query.since, &filter.since_ns, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_moment_read(call, "until", call->query.until, &filter.until_ns, err);
    if (rc != BH_OK)
        return rc;
    rc = filter_read_actor(call, &filter, err);
    if (rc != BH_OK)
        return rc;
    rc = filter_read_object(call, &filter, err);
    if (rc != BH_OK)
        return rc;
    rc = filter_read_decision(call, &filter, err);
    if (rc != BH_OK)
        return rc;
    if (filter.text && strlen(filter.text) < TEXT_LEAST)
        return bh_err_set(err, BH_INVALID, "text: at least %d characters of an id are needed", TEXT_LEAST);
    filter.any = filter.verb || filter.text || filter.object_type || filter.has_actor || filter.has_decision
                 || filter.since_ns || filter.until_ns != UINT64_MAX || call->query.tenant;
    *ret_filter = filter;
    return BH_OK;
}

/* ---- whether a record is it ---- */

static uint64_t
record_filter_number_in(struct bh_slice object, const char *key)
{
    struct bh_slice value;
    uint64_t number = 0;

    return bh_slice_get(object, key, &value) && bh_slice_u64(value, &number) ? number : 0;
}

static bool
filter_text_is(struct bh_slice object, const char *key, const char *want)
{
    struct bh_slice value;
    char text[200];

    return bh_slice_get(object, key, &value) && bh_slice_str(value, text, sizeof text)
           && strcmp(text, want) == 0;
}

static bool
filter_text_begins(struct bh_slice object, const char *key, const char *want)
{
    struct bh_slice value;
    char text[200];

    return bh_slice_get(object, key, &value) && bh_slice_str(value, text, sizeof text)
           && strncmp(text, want, strlen(want)) == 0;
}

/* Whether the record says what became of the job: what ended it may have been about another object, such as
 * its node, its tenant's quota or a job that preempted it. */
static bool
filter_changes_job(uint64_t job, struct bh_slice leaf)
{
    struct bh_job_status status;
    struct bh_slice list;
    size_t cursor = 0;

    if (!bh_slice_get(leaf, "jobs", &list))
        return false;
    while (bh_job_status_next(list, &cursor, &status))
        if (status.job == job)
            return true;
    return false;
}

static bool
filter_names_object(const struct bh_record_filter *filter, struct bh_slice leaf)
{
    struct bh_slice object;

    return bh_slice_get(leaf, "obj", &object) && filter_text_is(object, "type", filter->object_type)
           && (!filter->has_object || record_filter_number_in(object, "id") == filter->object);
}

static bool
filter_is_object(const struct bh_record_filter *filter, struct bh_slice leaf, bool whole)
{
    if (!filter->object_type || filter_names_object(filter, leaf))
        return true;
    return (whole || filter->sees_object) && filter->has_object && strcmp(filter->object_type, "job") == 0
           && filter_changes_job(filter->object, leaf);
}

static bool
filter_is_actor(const struct bh_record_filter *filter, struct bh_slice leaf)
{
    struct bh_slice actor;

    return !filter->has_actor
           || (bh_slice_get(leaf, "actor", &actor) && record_filter_number_in(actor, "id") == filter->actor);
}

bool
bh_record_filter_is_refusal(struct bh_slice leaf)
{
    return filter_text_is(leaf, "res", "denied") || filter_text_is(leaf, "res", "unauthenticated");
}

/* What was denied is a refusal whatever its decision says: a denial for want of any rule has none in
 * its record, and records of before may say that a rule allowed what was refused for another reason. */
static bool
filter_is_decision(const struct bh_record_filter *filter, struct bh_slice leaf)
{
    struct bh_slice decision, allow;
    bool told = bh_slice_get(leaf, "dec", &decision) && bh_slice_get(decision, "allow", &allow);
    bool refused = bh_record_filter_is_refusal(leaf);
    bool allowed = told && allow.length == 4 && !refused;

    if (!filter->has_decision)
        return true;
    return filter->allow ? allowed : refused || (told && !allowed);
}

static bool
record_filter_has_text(const struct bh_record_filter *filter, struct bh_slice leaf)
{
    struct bh_slice actor;

    return !filter->text || filter_text_begins(leaf, "req", filter->text)
           || filter_text_begins(leaf, "text", filter->text)
           || (bh_slice_get(leaf, "actor", &actor) && filter_text_begins(actor, "token", filter->text));
}

bool
bh_record_filter_may_have(const struct bh_record_filter *filter, struct bh_slice leaf)
{
    return !filter->has_object || memmem(leaf.text, leaf.length, filter->digits, strlen(filter->digits));
}

bool
bh_record_filter_has(const struct bh_record_filter *filter, struct bh_slice leaf, bool whole)
{
    uint64_t ts_ns;

    if (!filter->any)
        return true;
    ts_ns = record_filter_number_in(leaf, "ts");
    return ts_ns >= filter->since_ns && ts_ns < filter->until_ns
           && (!filter->verb || filter_text_is(leaf, "verb", filter->verb))
           && filter_is_object(filter, leaf, whole) && filter_is_actor(filter, leaf)
           && filter_is_decision(filter, leaf) && record_filter_has_text(filter, leaf);
}
