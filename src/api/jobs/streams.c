#include "api/jobs/streams.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/jobs/jobs.h"
#include "api/jobs/members.h"
#include "api/request/auth.h"
#include "api/request/reply.h"
#include "base/assert.h"

#define PROTOCOL "bulkhead-stream"

enum {
    ARGS_MAX = 1000,
    ARG_BYTES_MAX = 32 << 10,
    SIDE_MAX = 10000,
    ARGS_BYTES_MAX = 48 << 10,
    CALLER_ARENA_MAX = 256 << 10
};

static const struct bh_field exec_fields[] = {
    BH_F(struct bh_stream_request, args, BH_FIELD_TEXTS, .flags = BH_FIELD_REQUIRED, .max = ARGS_MAX,
         .doc = "the program and its arguments, looked for inside the job"),
    BH_F(struct bh_stream_request, columns, BH_FIELD_U32, .max = SIDE_MAX, .doc = "of the terminal at first"),
    BH_F(struct bh_stream_request, input, BH_FIELD_BOOL, .doc = "it gets input; else an empty one"),
    BH_F(struct bh_stream_request, member, BH_FIELD_U32, .max = BH_JOB_GANG_MAX,
         .doc = "of a gang, counted from 0"),
    BH_F(struct bh_stream_request, rows, BH_FIELD_U32, .max = SIDE_MAX, .doc = "of the terminal at first"),
    BH_F(struct bh_stream_request, tty, BH_FIELD_BOOL, .doc = "in a terminal of its own"),
};
const struct bh_fields bh_exec_request_fields =
    BH_FIELDS("exec_request", struct bh_stream_request, exec_fields);

static const struct bh_field attach_fields[] = {
    BH_F(struct bh_stream_request, columns, BH_FIELD_U32, .max = SIDE_MAX, .doc = "of the terminal at first"),
    BH_F(struct bh_stream_request, input, BH_FIELD_BOOL,
         .doc = "to write to the job, too, unless another stream does"),
    BH_F(struct bh_stream_request, member, BH_FIELD_U32, .max = BH_JOB_GANG_MAX,
         .doc = "of a gang, counted from 0"),
    BH_F(struct bh_stream_request, rows, BH_FIELD_U32, .max = SIDE_MAX, .doc = "of the terminal at first"),
};
const struct bh_fields bh_attach_request_fields =
    BH_FIELDS("attach_request", struct bh_stream_request, attach_fields);

static const struct bh_field forward_fields[] = {
    BH_F(struct bh_stream_request, member, BH_FIELD_U32, .max = BH_JOB_GANG_MAX,
         .doc = "of a gang, counted from 0"),
};
const struct bh_fields bh_forward_request_fields =
    BH_FIELDS("forward_request", struct bh_stream_request, forward_fields);

/* ---- asking ---- */

static bh_rc
streams_read_request(struct bh_call *call, struct bh_stream_request *request, struct bh_err *err)
{
    const struct bh_fields *fields = call->op->id == BH_OP_JOB_EXEC     ? &bh_exec_request_fields
                                     : call->op->id == BH_OP_JOB_ATTACH ? &bh_attach_request_fields
                                                                        : &bh_forward_request_fields;
    size_t bytes = 0;
    bh_rc rc = bh_call_body(call, fields, request, err);

    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < request->args.count; i++)
        bytes += strlen(request->args.items[i]) + 1;
    if (call->op->id == BH_OP_JOB_EXEC && (request->args.count == 0 || !request->args.items[0][0]))
        return bh_err_set(err, BH_INVALID, "args: no command to run");
    if (bytes > ARGS_BYTES_MAX)
        return bh_err_set(err, BH_RANGE, "args: a command has at most %d bytes", ARGS_BYTES_MAX);
    if (call->caller.idempotency_key)
        return bh_err_set(err, BH_INVALID, "Idempotency-Key: a stream is not repeated");
    return BH_OK;
}

static bh_rc
find_streams(const struct bh_call *call, const struct bh_streams_port **ret_streams, struct bh_err *err)
{
    *ret_streams = &call->api->options.streams;
    if (!(*ret_streams)->ops)
        return bh_err_set(err, BH_UNAVAILABLE, "no interactive streams here");
    return BH_OK;
}

/* The owner decides and records; only then there is something to open. */
bh_rc
bh_streams_ask(struct bh_call *call, struct bh_err *err)
{
    const struct bh_streams_port *streams = NULL;
    struct bh_stream_request request = { 0 };
    struct bh_command command = { .stream = &request };
    struct bh_stream_opening opening = { .op = call->op->id, .request = &request };
    char ticket[BH_STREAM_TICKET_TEXT + 1];
    struct bh_answer answer;
    struct bh_job_row row;
    bh_rc rc = bh_jobs_find(call, &row, err);

    if (rc != BH_OK)
        return rc;
    rc = streams_read_request(call, &request, err);
    if (rc != BH_OK)
        return rc;
    rc = find_streams(call, &streams, err);
    if (rc != BH_OK)
        return rc;
    opening.job = command.job = (bh_job_id){ row.job };
    opening.principal = call->caller.subject.principal;
    rc = streams->ops->check_quota(streams->self, opening.job, opening.principal, err);
    if (rc == BH_OK)
        rc = bh_call_command(call, &command, &answer, err);
    if (rc == BH_CONFLICT && bh_jobs_ended(row.state)) /* the engine forgets such jobs */
        return bh_members_refuse_ended(row.job, row.state, err);
    if (rc != BH_OK)
        return rc;
    opening.grant = &answer.stream;
    rc = streams->ops->admit(streams->self, &opening, ticket, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, stream_ticket, .expires_ns = bh_call_now(call) + BH_STREAM_TICKET_NS, .job = row.job,
                  .record = answer.stream.seq, .ticket = ticket);
    call->status = 201;
    return BH_OK;
}

/* ---- opening ---- */

/* The caller of a stream: the request is gone once the stream runs, so all that identifies the caller is
 * copied, to check again. */
struct permit {
    struct bh_call call;
    struct bh_request request;
    struct bh_transport transport;
    struct bh_arena *kept, *scratch;
    uint32_t principal;
};

static const char *
streams_no_query(const struct bh_request *request, const char *name)
{
    return NULL;
}

/* The same person, known in the same way, and with the same permission: a session that ended, a
 * token that was revoked, a principal or a role that was removed end what they opened.  That the
 * person did not authenticate again just now is no reason: they did when it began. */
static bool
streams_permit_still(void *self, const char *verb, bh_tenant_id tenant)
{
    struct permit *permit = self;
    const struct bh_owner *owner = &permit->call.api->options.owner;
    const struct bh_subject *subject = &permit->call.caller.subject;
    struct bh_verdict verdict = { false, 0 };
    struct bh_err ignored;

    bh_arena_reset(permit->scratch);
    permit->call.dir = owner->ops->directory_get(owner->self);
    if (bh_auth_identify(&permit->call, &ignored) == BH_OK && subject->principal.v == permit->principal)
        verdict = bh_authz_check(permit->call.dir, subject, verb, tenant);
    owner->ops->directory_put(owner->self, permit->call.dir);
    permit->call.dir = NULL;
    return verdict.allow || verdict.rule == BH_RULE_STEP_UP;
}

static void
streams_permit_end(void *self)
{
    struct permit *permit = self;

    bh_arena_free(permit->kept);
    bh_arena_free(permit->scratch);
    free(permit);
}

static const char *
streams_store(struct permit *permit, const char *text)
{
    return text ? bh_arena_strdup(permit->kept, text) : NULL;
}

static struct permit *
streams_permit_new(const struct bh_call *call)
{
    struct permit *permit = calloc(1, sizeof *permit);

    BH_ASSERT(permit);
    permit->kept = bh_arena_new(CALLER_ARENA_MAX);
    permit->scratch = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    permit->transport = *call->request->transport;
    permit->request = (struct bh_request){
        .method = BH_GET,
        .path = "/v1/streams",
        .body = "",
        .authorization = streams_store(permit, call->request->authorization),
        .cookie = streams_store(permit, call->request->cookie),
        .host = streams_store(permit, call->request->host),
        .origin = streams_store(permit, call->request->origin),
        .fetch_site = streams_store(permit, call->request->fetch_site),
        .transport = &permit->transport,
        .arena = permit->scratch,
        .query = streams_no_query,
    };
    permit->call = (struct bh_call){
        .api = call->api, .request = &permit->request, .arena = permit->scratch, .op = call->op
    };
    permit->principal = call->caller.subject.principal.v;
    return permit;
}

bh_rc
bh_streams_open(struct bh_call *call, struct bh_err *err)
{
    const struct bh_streams_port *streams = NULL;
    struct bh_stream_claim claim = { .ticket = call->id,
                                     .principal = call->caller.subject.principal,
                                     .permit = { streams_permit_still, streams_permit_end, NULL } };
    const char *wants = call->request->upgrade;
    bh_rc rc;

    if (!wants || strcasecmp(wants, PROTOCOL) != 0) {
        bh_err_set(err, BH_INVALID, "a stream is opened by Upgrade: " PROTOCOL);
        return bh_err_hint(err, "bulkhead exec, attach and port-forward do so");
    }
    rc = find_streams(call, &streams, err);
    if (rc != BH_OK)
        return rc;
    claim.port = (uint32_t)call->query.port;
    claim.permit.self = streams_permit_new(call);
    rc = streams->ops->open(streams->self, &claim, &call->reply->upgrade, err);
    if (rc != BH_OK)
        streams_permit_end(claim.permit.self);
    call->reply->upgrade.protocol = PROTOCOL;
    return rc;
}
