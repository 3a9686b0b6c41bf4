#include "api/openapi.h"

#include <string.h>

#include "api/accounts/accounts.h"
#include "api/accounts/tokens.h"
#include "api/audit/keys.h"
#include "api/audit/log.h"
#include "api/jobs/streams.h"
#include "api/nodes/cordon.h"
#include "api/nodes/layouts.h"
#include "api/openapi_replies.h"
#include "api/whatif/defrag.h"
#include "api/whatif/policy.h"
#include "api/whatif/whatif.h"
#include "base/assert.h"

/* The description of each operation's body, from the table's `request` column. */
#define BODY_NONE NULL
#define BODY_bh_job_spec_fields &bh_job_spec_fields
#define BODY_bh_site_fields &bh_site_fields
#define BODY_bh_exec_request_fields &bh_exec_request_fields
#define BODY_bh_attach_request_fields &bh_attach_request_fields
#define BODY_bh_forward_request_fields &bh_forward_request_fields
#define BODY_bh_token_request_fields &bh_token_request_fields
#define BODY_bh_whatif_request_fields &bh_whatif_request_fields
#define BODY_bh_policy_test_request_fields &bh_policy_test_request_fields
#define BODY_bh_prune_request_fields &bh_prune_request_fields
#define BODY_bh_shred_request_fields &bh_shred_request_fields
#define BODY_bh_layout_fields &bh_layout_fields
#define BODY_bh_defrag_request_fields &bh_defrag_request_fields
#define BODY_bh_cordon_request_fields &bh_cordon_request_fields
#define BODY_bh_uncordon_request_fields &bh_uncordon_request_fields
#define BODY_bh_drain_request_fields &bh_drain_request_fields
#define BODY_bh_sign_in_request_fields &bh_sign_in_request_fields
#define BODY_bh_sign_in_device_request_fields &bh_sign_in_device_request_fields
#define BODY_bh_sign_in_issuer_request_fields &bh_sign_in_issuer_request_fields
#define BODY_bh_sign_in_return_request_fields &bh_sign_in_return_request_fields
#define BODY_bh_sign_in_logout_request_fields &bh_sign_in_logout_request_fields
#define BODY_bh_sign_in_grant_request_fields &bh_sign_in_grant_request_fields
#define BODY_bh_sign_in_code_request_fields &bh_sign_in_code_request_fields
#define BODY_bh_sign_in_first_request_fields &bh_sign_in_first_request_fields
#define BODY_bh_password_request_fields &bh_password_request_fields
#define BODY_bh_code_request_fields &bh_code_request_fields
#define BODY_bh_passkey_request_fields &bh_passkey_request_fields
#define BODY_bh_reason_request_fields &bh_reason_request_fields
#define BODY_bh_account_request_fields &bh_account_request_fields

static const struct bh_fields *const bodies[BH_OPERATIONS] = {
#define BH_OPERATION(id, method, path, verb, scope, kind, request, query, summary)                           \
    [BH_OP_##id] = BODY_##request,
#include "tables/operations.tbl"
#undef BH_OPERATION
};

/* What query parameters mean, wherever they stand. */
static const struct parameter {
    const char *name, *type, *doc;
    /* clang-format off */
} parameters[] = {
    { "active", "boolean", "only jobs that have not ended" },
    { "actor", "string", "only of this principal, by name or number" },
    { "after", "string", "the cursor `next` of the page before" },
    { "decision", "string", "only what was decided so: allow or deny" },
    { "dry_run", "boolean", "decide and answer, change nothing" },
    { "follow", "boolean", "go on with server-sent events until the job has ended" },
    { "job", "integer", "only this job" },
    { "from", "integer", "the revision to begin with" },
    { "gpu", "string", "only of the GPU with this UUID" },
    { "job", "integer", "only what this job had, or left" },
    { "limit", "integer", "most items on a page: 100 when absent, at most 10000" },
    { "member", "integer", "of a gang that member's, counted from 0; the first when absent" },
    { "mine", "boolean", "only the caller's own" },
    { "new", "integer", "records of the later checkpoint" },
    { "object", "string", "only about this object: a type, as job, or with its number, as job/7" },
    { "node", "string", "this node by its name; all when absent" },
    { "offset", "integer", "begin at this byte" },
    { "port", "integer", "of a forward: a connection to this port of the job's loopback" },
    { "old", "integer", "records of the earlier checkpoint" },
    { "now", "boolean", "without its grace: it is killed at once, also where it is stopping already" },
    { "prune", "boolean", "also remove what has usage, jobs, tokens or accounts" },
    { "raw", "boolean", "leaves as they are hashed; a hash where the caller may not see them" },
    { "revision", "integer", "refuse with 409 unless this is the revision in force" },
    { "since", "string", "not before this moment, as 2026-11-20T09:27:00Z, or a span ago, as 2h" },
    { "size", "integer", "the first so many records of the log" },
    { "start", "boolean", "with when waiting jobs are expected to start" },
    { "state", "string", "only jobs in this state" },
    { "tenant", "string", "only this tenant and what is below it" },
    { "text", "string", "only with an id (request, token, digest of a text) that begins so; at least 4 characters" },
    { "to", "integer", "the revision to end with" },
    { "until", "string", "before this moment, or a span ago" },
    { "verb", "string", "only this verb" },
};
/* clang-format on */

static const struct parameter *
openapi_find_parameter(const char *name, size_t length)
{
    for (size_t i = 0; i < BH_COUNT(parameters); i++)
        if (strlen(parameters[i].name) == length && memcmp(parameters[i].name, name, length) == 0)
            return &parameters[i];
    return NULL;
}

const char *
bh_openapi_parameter_doc(const char *name, size_t length)
{
    const struct parameter *found = openapi_find_parameter(name, length);

    return found ? found->doc : NULL;
}

const struct bh_fields *
bh_openapi_body_of(enum bh_operation op)
{
    return bodies[op];
}

/* ---- schemas ---- */

/* Descriptions that others refer to, collected as they are met. */
enum { SCHEMAS_MAX = 64 };

struct schemas {
    const struct bh_fields *items[SCHEMAS_MAX];
    uint32_t count;
};

static void
openapi_collect(struct schemas *schemas, const struct bh_fields *fields)
{
    for (uint32_t i = 0; i < schemas->count; i++)
        if (schemas->items[i] == fields)
            return;
    BH_ASSERT(schemas->count < SCHEMAS_MAX);
    schemas->items[schemas->count++] = fields;
    for (uint32_t i = 0; i < fields->count; i++)
        if (fields->fields[i].of)
            openapi_collect(schemas, fields->fields[i].of);
}

static void
openapi_put_ref(struct bh_json_writer *w, const char *name)
{
    char text[100];
    struct bh_buf ref;

    bh_buf_init_fixed(&ref, text, sizeof text);
    bh_buf_printf(&ref, "#/components/schemas/%s", name);
    bh_json_str(w, "$ref", bh_buf_text(&ref));
}

static void
openapi_put_names(struct bh_json_writer *w, const struct bh_field *field)
{
    bh_json_str(w, "type", "string");
    bh_json_open(w, "enum", '[');
    for (uint32_t i = 0; i < field->name_count; i++)
        if (field->names[i])
            bh_json_str(w, NULL, field->names[i]);
    bh_json_close(w, ']');
}

static void
openapi_put_list(struct bh_json_writer *w, const struct bh_field *field)
{
    bh_json_str(w, "type", "array");
    bh_json_u64(w, "maxItems", field->max ? field->max : BH_FIELD_ITEMS_MAX);
    bh_json_open(w, "items", '{');
    if (field->of)
        openapi_put_ref(w, field->of->name);
    else
        bh_json_str(w, "type", "string");
    bh_json_close(w, '}');
}

static void
openapi_put_text(struct bh_json_writer *w, uint64_t most, const char *pattern)
{
    bh_json_str(w, "type", "string");
    bh_json_u64(w, "maxLength", most);
    if (pattern)
        bh_json_str(w, "pattern", pattern);
}

/* An amount: text, or an integer where it is whole. */
static void
openapi_put_amount(struct bh_json_writer *w, const struct bh_field *field)
{
    bh_json_open(w, "type", '[');
    bh_json_str(w, NULL, "string");
    bh_json_str(w, NULL, "integer");
    bh_json_close(w, ']');
    bh_json_u64(w, "maxLength", field->max);
}

static void
openapi_put_integer(struct bh_json_writer *w, int64_t least, uint64_t most)
{
    bh_json_str(w, "type", "integer");
    bh_json_i64(w, "minimum", least);
    bh_json_u64(w, "maximum", most);
}

/* What a field takes; an integer over 2^53 is a string of digits in JSON. */
static void
openapi_put_type(struct bh_json_writer *w, const struct bh_field *field)
{
    switch (field->kind) {
    case BH_FIELD_BOOL:
        bh_json_str(w, "type", "boolean");
        return;
    case BH_FIELD_U32:
        openapi_put_integer(w, field->flags & BH_FIELD_POSITIVE ? 1 : 0,
                            field->max ? field->max : UINT32_MAX);
        return;
    case BH_FIELD_I32:
        openapi_put_integer(w, INT32_MIN, INT32_MAX);
        return;
    case BH_FIELD_U64:
    case BH_FIELD_NS:
        openapi_put_text(w, 20, "^(0|[1-9][0-9]*)$");
        return;
    case BH_FIELD_ENUM:
        openapi_put_names(w, field);
        return;
    case BH_FIELD_STR:
        openapi_put_text(w, field->size - 1, NULL);
        return;
    case BH_FIELD_TEXT:
        if (field->flags & BH_FIELD_NUMBERS) {
            openapi_put_amount(w, field);
            return;
        }
        openapi_put_text(w, field->max ? field->max : BH_FIELD_TEXT_MAX, NULL);
        return;
    case BH_FIELD_HEX:
        openapi_put_text(w, 2 * field->size, "^[0-9a-f]*$");
        return;
    case BH_FIELD_STRUCT:
        openapi_put_ref(w, field->of->name);
        return;
    case BH_FIELD_TEXTS:
    case BH_FIELD_ARRAY:
    case BH_FIELD_LIST:
        openapi_put_list(w, field);
        return;
    }
}

static void
openapi_put_required(struct bh_json_writer *w, const struct bh_fields *fields)
{
    bh_json_open(w, "required", '[');
    for (uint32_t i = 0; i < fields->count; i++)
        if (fields->fields[i].flags & BH_FIELD_REQUIRED)
            bh_json_str(w, NULL, fields->fields[i].name);
    bh_json_close(w, ']');
}

static void
openapi_put_schema(struct bh_json_writer *w, const struct bh_fields *fields)
{
    bh_json_open(w, fields->name, '{');
    bh_json_str(w, "type", "object");
    bh_json_bool(w, "additionalProperties", false);
    openapi_put_required(w, fields);
    bh_json_open(w, "properties", '{');
    for (uint32_t i = 0; i < fields->count; i++) {
        bh_json_open(w, fields->fields[i].name, '{');
        openapi_put_type(w, &fields->fields[i]);
        if (fields->fields[i].doc)
            bh_json_str(w, "description", fields->fields[i].doc);
        bh_json_close(w, '}');
    }
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static void
openapi_put_text_property(struct bh_json_writer *w, const char *name, const char *doc)
{
    bh_json_open(w, name, '{');
    bh_json_str(w, "type", "string");
    bh_json_str(w, "description", doc);
    bh_json_close(w, '}');
}

/* Codes with what they mean, from tables/errors.tbl. */
static void
openapi_put_error_code(struct bh_json_writer *w)
{
    bh_json_open(w, "code", '{');
    bh_json_str(w, "type", "string");
    bh_json_open(w, "enum", '[');
    for (int rc = BH_INVALID; rc <= BH_BUG; rc++)
        bh_json_str(w, NULL, bh_rc_name((bh_rc)rc));
    bh_json_close(w, ']');
    bh_json_close(w, '}');
}

static void
openapi_put_reason(struct bh_json_writer *w)
{
    bh_json_open(w, "reason", '{');
    bh_json_str(w, "type", "string");
    bh_json_str(w, "description", "the engine's reason; \"none\" where it has no part in it");
    bh_json_open(w, "enum", '[');
    for (int code = 0; code < BH_REASONS; code++)
        bh_json_str(w, NULL, bh_reason_names[code]);
    bh_json_close(w, ']');
    bh_json_close(w, '}');
}

static void
openapi_put_error_schema(struct bh_json_writer *w)
{
    static const char *const required[] = { "code", "message", "next", "reason" };

    bh_json_open(w, "error", '{');
    bh_json_str(w, "type", "object");
    bh_json_open(w, "required", '[');
    bh_json_str(w, NULL, "error");
    bh_json_close(w, ']');
    bh_json_open(w, "properties", '{');
    bh_json_open(w, "error", '{');
    bh_json_str(w, "type", "object");
    bh_json_open(w, "required", '[');
    for (size_t i = 0; i < BH_COUNT(required); i++)
        bh_json_str(w, NULL, required[i]);
    bh_json_close(w, ']');
    bh_json_open(w, "properties", '{');
    openapi_put_error_code(w);
    openapi_put_text_property(w, "message", "what is wrong, naming the object and the cause");
    openapi_put_text_property(w, "next", "what can be done about it");
    bh_json_open(w, "operands", '{');
    bh_json_str(w, "type", "object");
    bh_json_str(w, "description", "the reason's numbers and names");
    bh_json_close(w, '}');
    openapi_put_reason(w);
    bh_json_close(w, '}');
    bh_json_close(w, '}');
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static void
openapi_put_components(struct bh_json_writer *w)
{
    struct schemas schemas = { .count = 0 };

    for (int op = 0; op < BH_OPERATIONS; op++)
        if (bodies[op])
            openapi_collect(&schemas, bodies[op]);
    bh_json_open(w, "components", '{');
    bh_json_open(w, "schemas", '{');
    openapi_put_error_schema(w);
    for (uint32_t i = 0; i < schemas.count; i++)
        openapi_put_schema(w, schemas.items[i]);
    bh_openapi_put_replies(w);
    bh_json_close(w, '}');
    bh_json_open(w, "securitySchemes", '{');
    bh_json_open(w, "token", '{');
    bh_json_str(w, "type", "http");
    bh_json_str(w, "scheme", "bearer");
    bh_json_str(w, "description",
                "an API token; not needed on the unix socket, where the "
                "peer's user is the identity");
    bh_json_close(w, '}');
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

/* ---- operations ---- */

static void
openapi_put_parameter(struct bh_json_writer *w, const char *where, const struct parameter *parameter)
{
    bh_json_open(w, NULL, '{');
    bh_json_str(w, "name", parameter->name);
    bh_json_str(w, "in", where);
    bh_json_str(w, "description", parameter->doc);
    bh_json_bool(w, "required", strcmp(where, "path") == 0);
    bh_json_open(w, "schema", '{');
    bh_json_str(w, "type", parameter->type);
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static void
openapi_put_parameters(struct bh_json_writer *w, const struct bh_operation_row *op)
{
    static const struct parameter id = { "id", "string", "which one" };
    static const struct parameter key = { "Idempotency-Key", "string",
                                          "repeats with the same key and body get the first "
                                          "answer again" };
    static const struct parameter rest = { "rest", "string", "the rest of the path, slashes and all" };

    bh_json_open(w, "parameters", '[');
    if (strstr(op->path, "{id}"))
        openapi_put_parameter(w, "path", &id);
    if (strstr(op->path, "{rest}"))
        openapi_put_parameter(w, "path", &rest);
    if (op->kind == BH_OPERATION_MUTATE)
        openapi_put_parameter(w, "header", &key);
    for (const char *at = op->query; *at;) {
        size_t length = strcspn(at, " ");
        const struct parameter *found = openapi_find_parameter(at, length);

        BH_ASSERT(found); /* a parameter without a meaning is our omission */
        openapi_put_parameter(w, "query", found);
        at += length + (at[length] == ' ');
    }
    bh_json_close(w, ']');
}

static void
openapi_put_content(struct bh_json_writer *w, const char *type, const char *ref)
{
    bh_json_open(w, type, '{');
    bh_json_open(w, "schema", '{');
    if (ref)
        openapi_put_ref(w, ref);
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static void
openapi_put_body(struct bh_json_writer *w, const struct bh_operation_row *op)
{
    const struct bh_fields *body = bodies[op->id];

    if (!body)
        return;
    bh_json_open(w, "requestBody", '{');
    bh_json_bool(w, "required", op->id != BH_OP_TOKEN_CREATE);
    bh_json_open(w, "content", '{');
    openapi_put_content(w, "application/json", body->name);
    openapi_put_content(w, "application/yaml", body->name);
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static void
openapi_put_response(struct bh_json_writer *w, const char *status, const char *doc, const char *type,
                     const char *schema)
{
    bh_json_open(w, status, '{');
    bh_json_str(w, "description", doc);
    bh_json_open(w, "content", '{');
    openapi_put_content(w, type, schema);
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static const char *
openapi_type_of(const struct bh_operation_row *op)
{
    if (op->id == BH_OP_LOG_TILE || op->id == BH_OP_LOG_ENTRIES)
        return "application/octet-stream";
    if (op->id == BH_OP_LOG_ROWS)
        return "application/x-ndjson";
    if (op->id == BH_OP_METRICS)
        return "text/plain; version=0.0.4; charset=utf-8";
    if (op->id == BH_OP_LOG_CHECKPOINT || op->id == BH_OP_LOG_MINIMUM)
        return "text/plain; charset=utf-8";
    return op->kind == BH_OPERATION_STREAM ? "text/event-stream" : "application/json";
}

static void
openapi_put_responses(struct bh_json_writer *w, const struct bh_operation_row *op)
{
    bool makes = op->id == BH_OP_JOB_SUBMIT || op->id == BH_OP_TOKEN_CREATE || op->id == BH_OP_JOB_EXEC
                 || op->id == BH_OP_JOB_ATTACH || op->id == BH_OP_JOB_FORWARD;

    bh_json_open(w, "responses", '{');
    if (op->id == BH_OP_STREAM_OPEN)
        openapi_put_response(w, "101", op->summary, "application/octet-stream", NULL);
    else
        openapi_put_response(w, makes ? "201" : "200", op->summary, openapi_type_of(op),
                             bh_openapi_reply_of(op->id));
    openapi_put_response(w, "default", "an error", "application/json", "error");
    bh_json_close(w, '}');
}

static void
openapi_put_security(struct bh_json_writer *w, const struct bh_operation_row *op)
{
    bh_json_open(w, "security", '[');
    if (op->scope != BH_SCOPE_NOBODY) {
        bh_json_open(w, NULL, '{');
        bh_json_open(w, "token", '[');
        bh_json_close(w, ']');
        bh_json_close(w, '}');
    }
    bh_json_close(w, ']');
}

/* "JOB_SUBMIT" is jobSubmit to generated clients. */
static void
openapi_put_operation_id(struct bh_json_writer *w, const char *name)
{
    char text[40];
    size_t length = 0;
    bool up = false;

    for (; *name && length + 1 < sizeof text; name++) {
        if (*name != '_')
            text[length++] = up ? *name : (char)(*name | 0x20);
        up = *name == '_';
    }
    text[length] = '\0';
    bh_json_str(w, "operationId", text);
}

static void
openapi_put_permission(struct bh_json_writer *w, const struct bh_operation_row *op)
{
    static const char *const scopes[BH_SCOPES] = {
        [BH_SCOPE_NOBODY] = "open to anybody",
        [BH_SCOPE_SELF] = "held anywhere",
        [BH_SCOPE_OWN] = "held by everybody on what is his own",
        [BH_SCOPE_SITE] = "on the whole site",
        [BH_SCOPE_TENANT] = "on the tenant named in the request",
        [BH_SCOPE_JOB] = "on the job's tenant",
        [BH_SCOPE_VISIBLE] = "shows tenants where it is held",
    };
    char text[240];
    struct bh_buf doc;

    bh_buf_init_fixed(&doc, text, sizeof text);
    if (op->verb[0])
        bh_buf_printf(&doc, "Needs %s (%s).", op->verb, scopes[op->scope]);
    if (op->id == BH_OP_JOB_SUBMIT)
        bh_buf_puts(&doc, " Priority high and urgent need priority.high there too.");
    if (op->id == BH_OP_JOB_CANCEL)
        bh_buf_puts(&doc, " Jobs of others need job.cancel.any.");
    if (op->id == BH_OP_JOB_EXEC || op->id == BH_OP_JOB_ATTACH || op->id == BH_OP_JOB_FORWARD)
        bh_buf_puts(&doc, " Jobs of others need job.exec.any.");
    if (op->id == BH_OP_WHATIF)
        bh_buf_puts(&doc, " What is asked about needs what doing it would: job.submit, "
                          "job.cancel, site.view for drain, site.apply for quota and site.");
    if (doc.length)
        bh_json_str(w, "description", bh_buf_text(&doc));
}

static void
openapi_put_operation(struct bh_json_writer *w, const struct bh_operation_row *op)
{
    static const char *const members[BH_METHODS] = {
        [BH_GET] = "get",
        [BH_POST] = "post",
        [BH_PUT] = "put",
        [BH_DELETE] = "delete",
    };

    bh_json_open(w, members[op->method], '{');
    openapi_put_operation_id(w, op->name);
    bh_json_str(w, "summary", op->summary);
    openapi_put_permission(w, op);
    openapi_put_parameters(w, op);
    openapi_put_body(w, op);
    openapi_put_responses(w, op);
    openapi_put_security(w, op);
    bh_json_close(w, '}');
}

/* Whether an operation before `at` has the same path: it is written already. */
static bool
openapi_path_is_written(int at)
{
    const char *path = bh_operation_get((enum bh_operation)at)->path;

    for (int op = 0; op < at; op++)
        if (strcmp(bh_operation_get((enum bh_operation)op)->path, path) == 0)
            return true;
    return false;
}

static void
openapi_put_path(struct bh_json_writer *w, int at)
{
    const char *path = bh_operation_get((enum bh_operation)at)->path;

    bh_json_open(w, path, '{');
    for (int op = at; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);

        if (strcmp(row->path, path) == 0)
            openapi_put_operation(w, row);
    }
    bh_json_close(w, '}');
}

static void
openapi_put_document(struct bh_buf *out)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "openapi", "3.1.0");
    bh_json_open(&w, "info", '{');
    bh_json_str(&w, "title", "Bulkhead");
    bh_json_str(&w, "version", "1");
    bh_json_str(&w, "description", "Shares GPUs between tenants who do not trust each other.");
    bh_json_close(&w, '}');
    bh_json_open(&w, "paths", '{');
    for (int op = 0; op < BH_OPERATIONS; op++)
        if (!openapi_path_is_written(op))
            openapi_put_path(&w, op);
    bh_json_close(&w, '}');
    openapi_put_components(&w);
    bh_json_close(&w, '}');
}

const char *
bh_api_openapi(struct bh_arena *arena)
{
    struct bh_buf out;
    const char *copy = NULL;

    bh_buf_init(&out, BH_JSON_BYTES_MAX);
    openapi_put_document(&out);
    if (bh_buf_text(&out))
        copy = bh_arena_strdup(arena, bh_buf_text(&out));
    bh_buf_fini(&out);
    return copy;
}

bh_rc
bh_openapi_show(struct bh_call *call, struct bh_err *err)
{
    openapi_put_document(&call->reply->body);
    return BH_OK;
}
