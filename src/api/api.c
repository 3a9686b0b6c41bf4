#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/accounts/accounts.h"
#include "api/accounts/tokens.h"
#include "api/accounts/whoami.h"
#include "api/audit/checkpoints.h"
#include "api/audit/keys.h"
#include "api/audit/log.h"
#include "api/audit/log_rows.h"
#include "api/audit/log_tree.h"
#include "api/audit/receipts.h"
#include "api/audit/records.h"
#include "api/audit/refused_request.h"
#include "api/error.h"
#include "api/jobs/jobs.h"
#include "api/jobs/log_lines.h"
#include "api/jobs/start_estimates.h"
#include "api/jobs/stream.h"
#include "api/jobs/streams.h"
#include "api/jobs/verify.h"
#include "api/metrics/metrics.h"
#include "api/metrics/series.h"
#include "api/nodes/cordon.h"
#include "api/nodes/gpus.h"
#include "api/nodes/layouts.h"
#include "api/nodes/nodes.h"
#include "api/openapi.h"
#include "api/request/auth.h"
#include "api/request/followers.h"
#include "api/request/rate.h"
#include "api/request/stream_gate.h"
#include "api/site/datasets.h"
#include "api/site/site.h"
#include "api/site/skus.h"
#include "api/site/status.h"
#include "api/site/tenants.h"
#include "api/site/usage.h"
#include "api/whatif/defrag.h"
#include "api/whatif/forecasts.h"
#include "api/whatif/policy.h"
#include "api/whatif/whatif.h"
#include "base/assert.h"

static const bh_resource resources[BH_OPERATIONS] = {
#define BH_OPERATION(id, method, path, verb, scope, kind, request, query, handler, runner, reply, summary)   \
    [BH_OP_##id] = handler,
#include "tables/operations.tbl"
#undef BH_OPERATION
};

struct bh_api *
bh_api_new(const struct bh_api_options *options)
{
    struct bh_api *api = calloc(1, sizeof *api);

    BH_ASSERT(api);
    for (int op = 0; op < BH_OPERATIONS; op++)
        BH_ASSERT(resources[op]
                  && (resources[op] == bh_accounts_resource)
                         == bh_operation_of_accounts((enum bh_operation)op));
    api->options = *options;
    api->start_estimates = bh_start_estimates_new(&options->owner);
    api->whatif_lock = bh_whatif_lock_new();
    api->rates = bh_rate_limiter_new(options->rates);
    api->streams = bh_stream_gate_new(options->streams_max, options->crowded);
    api->followers = bh_followers_new(&options->owner);
    api->tree = bh_log_tree_new(&options->store, options->crypto);
    return api;
}

void
bh_api_free(struct bh_api *api)
{
    if (!api)
        return;
    bh_followers_free(api->followers);
    bh_start_estimates_free(api->start_estimates);
    bh_whatif_lock_free(api->whatif_lock);
    bh_log_tree_free(api->tree);
    bh_rate_limiter_free(api->rates);
    bh_stream_gate_free(api->streams);
    free(api);
}

/* ---- finding the operation ---- */

/* The methods that exist on `path`, "GET, POST"; "" when there is no such path. */
static const char *
api_methods_of(struct bh_arena *arena, const char *path)
{
    const char *allowed = "";

    for (int op = 0; op < BH_OPERATIONS && allowed; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);
        struct bh_path_match match;

        if (bh_path_matches(row->path, path, &match))
            allowed = bh_arena_printf(arena, "%s%s%s", allowed, allowed[0] ? ", " : "",
                                      bh_method_names[row->method]);
    }
    return allowed ? allowed : "";
}

static bool
api_route(struct bh_call *call)
{
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);
        struct bh_path_match match;

        if (row->method != call->request->method || !bh_path_matches(row->path, call->request->path, &match))
            continue;
        call->op = row;
        call->id = match.id ? bh_arena_strndup(call->arena, match.id, match.id_length) : NULL;
        return true;
    }
    return false;
}

static void
api_refuse_route(struct bh_call *call)
{
    const char *allowed = api_methods_of(call->arena, call->request->path);
    struct bh_err err;

    if (allowed[0]) {
        bh_error_write_method(call, allowed);
        return;
    }
    bh_err_set(&err, BH_NOT_FOUND, "no such path: %.120s", call->request->path);
    bh_err_hint(&err, "/openapi.json lists the operations");
    bh_error_write(call, &err);
}

/* ---- checking it ---- */

struct query_check {
    const struct bh_call *call;
    struct bh_err *err;
    bh_rc rc;
};

static bool
api_plain_text(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

struct name_count {
    const char *name;
    uint32_t count;
};

static void
api_count_name(void *self, const char *name, const char *value)
{
    struct name_count *tally = self;

    tally->count += strcmp(tally->name, name) == 0;
}

static bool
api_given_twice(const struct bh_call *call, const char *name)
{
    struct name_count tally = { name, 0 };

    call->request->each_query(call->request, api_count_name, &tally);
    return tally.count > 1;
}

static void
api_check_parameter(void *self, const char *name, const char *value)
{
    struct query_check *check = self;
    const struct bh_operation_row *op = check->call->op;

    if (check->rc != BH_OK)
        return;
    if (!bh_operation_has_parameter(op, name)) {
        check->rc = bh_err_set(check->err, BH_INVALID, "unknown query parameter \"%.60s\"", name);
        bh_err_hint(check->err,
                    op->query[0] ? "this operation takes: %s" : "this operation takes no parameters%s",
                    op->query);
    } else if (!api_plain_text(value)) {
        check->rc = bh_err_set(check->err, BH_INVALID, "%s: has a control character", name);
    } else if (api_given_twice(check->call, name)) {
        check->rc = bh_err_set(check->err, BH_INVALID, "query parameter %s is given twice", name);
        bh_err_hint(check->err, "give it once");
    }
}

static bh_rc
api_check_query(struct bh_call *call, struct bh_err *err)
{
    struct query_check check = { call, err, BH_OK };

    call->request->each_query(call->request, api_check_parameter, &check);
    return check.rc;
}

/* A body where none belongs would be ignored, and its sender deceived. */
static bh_rc
api_check_no_body(struct bh_call *call, struct bh_err *err)
{
    const char *body = call->request->body;

    body += strspn(body, " \t\r\n");
    if (call->op->has_body || *body == '\0' || strcmp(body, "{}") == 0)
        return BH_OK;
    return bh_err_set(err, BH_INVALID, "this operation takes no body");
}

/* A dry run leaves nothing to answer a repetition with: its key is passed over, and free for the request in
 * earnest. */
static bh_rc
api_check_key(struct bh_call *call, struct bh_err *err)
{
    const char *key = call->request->idempotency_key;

    if (!key || call->op->kind != BH_OPERATION_MUTATE || call->op->scope == BH_SCOPE_NOBODY
        || call->query.dry_run)
        return BH_OK;
    if (key[0] == '\0' || strlen(key) > 128 || !api_plain_text(key)) {
        bh_err_set(err, BH_INVALID, "Idempotency-Key: not 1 to 128 printable characters");
        return bh_err_hint(err, "a UUID is a good key");
    }
    call->caller.idempotency_key = key;
    return BH_OK;
}

/* What the query asks, by name, in the order of the table. */
static void
api_digest_query(const struct bh_call *call, struct bh_sha256 *hash)
{
    const struct bh_crypto_ops *crypto = call->api->options.crypto;
    char name[32];

    for (const char *at = call->op->query; sscanf(at, "%31s", name) == 1;) {
        const char *value = call->request->query(call->request, name);

        if (value) {
            crypto->sha256_put(hash, name, strlen(name) + 1);
            crypto->sha256_put(hash, value, strlen(value) + 1);
        }
        at = strstr(at, name) + strlen(name);
    }
}

/* What a key stands for: the same request has the same digest. */
static void
api_digest_request(struct bh_call *call)
{
    const struct bh_crypto_ops *crypto = call->api->options.crypto;
    struct bh_sha256 hash;

    if (!call->caller.idempotency_key)
        return;
    crypto->sha256_begin(&hash);
    crypto->sha256_put(&hash, call->op->name, strlen(call->op->name) + 1);
    crypto->sha256_put(&hash, call->request->path, strlen(call->request->path) + 1);
    api_digest_query(call, &hash);
    crypto->sha256_put(&hash, "", 1);
    crypto->sha256_put(&hash, call->request->body, call->request->body_length);
    crypto->sha256_finish(&hash, call->caller.request.bytes);
}

/* Reads are decided here; so are commands on the caller's own and on the site, which the owner
 * decides again.  Operations on a tenant or a job are decided where it is known. */
static bh_rc
api_authorise(struct bh_call *call, struct bh_err *err)
{
    const struct bh_subject *subject = &call->caller.subject;
    enum bh_reach reach = BH_REACH_OBJECT;
    const char *verb = call->op->verb;

    switch (call->op->scope) {
    case BH_SCOPE_SELF:
    case BH_SCOPE_VISIBLE:
        call->verdict = bh_authz_check_anywhere(call->dir, subject, verb);
        reach = BH_REACH_ANYWHERE;
        break;
    case BH_SCOPE_OWN:
        call->verdict = bh_authz_own(call->dir, subject, verb);
        reach = BH_REACH_OWN;
        break;
    case BH_SCOPE_SITE:
        call->verdict = bh_authz_check(call->dir, subject, verb, (bh_tenant_id){ 0 });
        break;
    case BH_SCOPE_NOBODY:
    case BH_SCOPE_TENANT:
    case BH_SCOPE_JOB:
    case BH_SCOPES:
        return BH_OK;
    }
    if (call->verdict.allow)
        return BH_OK;
    return bh_call_deny(call, (struct bh_denial){ verb, call->verdict, reach }, (bh_tenant_id){ 0 }, err);
}

/* ---- answering ---- */

/* Identify the caller and check its rate: a caller without valid credentials draws from the bucket of unknown
 * callers. */
static bh_rc
api_identify(struct bh_call *call, struct bh_err *err)
{
    struct bh_err limit;
    bh_rc rc = BH_OK;

    if (call->op->scope != BH_SCOPE_NOBODY) {
        rc = bh_auth_identify(call, err);
        call->identified = rc == BH_OK;
    }
    if (bh_rate_limiter_check(call, &limit) != BH_OK) {
        *err = limit;
        return err->rc;
    }
    return call->identified ? bh_auth_number(call, err) : rc;
}

/* What failed an assert before is not tried again. */
static bh_rc
api_check_quarantine(struct bh_call *call, struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;
    struct bh_work *work = bh_work_get();
    bh_rc rc;

    work->operation = call->op->name;
    work->principal = call->caller.subject.principal.v;
    work->uid = call->caller.via == BH_VIA_PEER ? call->caller.subject.uid : 0;
    rc = owner->ops->admit(owner->self, work, err);
    call->quarantined = rc != BH_OK;
    return rc;
}

static bh_rc
api_serve(struct bh_call *call, struct bh_err *err)
{
    static bh_rc (*const checks[])(struct bh_call *, struct bh_err *) = {
        api_identify, api_check_quarantine, api_check_query, api_check_no_body, api_check_key, api_authorise,
    };
    struct bh_err unread; /* of a query whose caller may ask: whose may not is denied */
    bh_rc rc, read = bh_query_read(call->request, &call->query, &unread);

    for (size_t i = 0; i < BH_COUNT(checks); i++) {
        rc = checks[i](call, err);
        if (rc != BH_OK)
            return rc;
    }
    if (read != BH_OK) {
        *err = unread;
        return read;
    }
    api_digest_request(call);
    call->reply->status = 200;
    rc = resources[call->op->id](call, err);
    if (rc != BH_OK)
        return rc;
    if (call->reply->body.overflow)
        return bh_err_set(err, BH_FULL, "the answer is too large");
    return BH_OK;
}

/* Attempts that fail before the owner sees them leave a record too, where it is known
 * whose they are: changes, denials, and looks at what does not exist for the caller. */
static void
api_record_refusal(struct bh_call *call, const struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;
    bool worth = call->op->kind == BH_OPERATION_MUTATE || err->rc == BH_DENIED
                 || err->rc == BH_UNAUTHENTICATED || call->probed || call->quarantined;

    if (call->unauthenticated) /* also where too many came: they were compared all the same */
        owner->ops->unauthenticated(owner->self, call->unauthenticated_token);
    if (worth && !call->recorded && call->caller.via) {
        const struct bh_refused_request attempt = bh_refused_request_of(call);

        owner->ops->refused(owner->self, &call->caller, &attempt, err);
    }
}

/* Whose connection it is. */
static void
api_say_who(const struct bh_call *call)
{
    struct bh_reply *reply = call->reply;

    reply->known = true;
    reply->principal = call->caller.subject.principal.v;
    snprintf(reply->who, sizeof reply->who, "%s", call->caller.name ? call->caller.name : "");
}

void
bh_api_handle(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    const struct bh_api *api = self;
    const struct bh_owner *owner = &api->options.owner;
    struct bh_call call = { .api = api, .request = request, .reply = reply, .arena = request->arena };
    struct bh_err err = { 0 };
    bh_rc rc;

    reply->content_type = "application/json";
    if (!api_route(&call)) {
        api_refuse_route(&call);
        return;
    }
    call.dir = owner->ops->directory_get(owner->self);
    rc = api_serve(&call, &err);
    if (call.identified)
        api_say_who(&call);
    if (rc == BH_OK) {
        if (call.status)
            reply->status = call.status;
    } else {
        api_record_refusal(&call, &err);
        bh_error_write(&call, &err);
    }
    owner->ops->directory_put(owner->self, call.dir);
}
