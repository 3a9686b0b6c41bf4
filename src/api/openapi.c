#include "api/openapi.h"

#include <string.h>

#include "api/accounts/accounts.h"
#include "api/accounts/tokens.h"
#include "api/audit/keys.h"
#include "api/audit/log.h"
#include "api/documents/replies.h"
#include "api/jobs/streams.h"
#include "api/nodes/cordon.h"
#include "api/nodes/layouts.h"
#include "api/whatif/defrag.h"
#include "api/whatif/policy.h"
#include "api/whatif/whatif.h"
#include "base/assert.h"

/* The description of each operation's body, and of its reply; 0 bytes: none. */
static const struct bh_fields NONE;
static const struct bh_fields *const bodies[BH_OPERATIONS] = {
#define BH_OPERATION(id, method, path, verb, scope, kind, request, query, handler, runner, reply, summary)   \
    [BH_OP_##id] = &(request),
#include "tables/operations.tbl"
#undef BH_OPERATION
};

struct reply {
    const char *status, *type;
    const struct bh_fields *of, *also; /* NULL: it is no JSON, and has no second kind of events */
};

#define OF(name) &bh_reply_##name##_fields
#define REPLY(code, content, fields, other_fields)                                                           \
    {                                                                                                        \
        .status = code, .type = content, .of = fields, .also = other_fields                                  \
    }
#define JSON(name) REPLY("200", "application/json", OF(name), NULL)
#define MADE(name) REPLY("201", "application/json", OF(name), NULL)
#define FIELDS(name) REPLY("200", "application/json", &(name), NULL)
#define EVENTS(name) REPLY("200", "text/event-stream", OF(name), NULL)
#define OUTPUT(name, other) REPLY("200", "text/event-stream", OF(name), OF(other))
#define TEXT REPLY("200", "text/plain; charset=utf-8", NULL, NULL)
#define METRICS REPLY("200", "text/plain; version=0.0.4; charset=utf-8", NULL, NULL)
#define BINARY REPLY("200", "application/octet-stream", NULL, NULL)
#define LINES REPLY("200", "application/x-ndjson", NULL, NULL)
#define DOCUMENT REPLY("200", "application/json", NULL, NULL)
#define UPGRADE REPLY("101", "application/octet-stream", NULL, NULL)

static const struct reply replies[BH_OPERATIONS] = {
#define BH_OPERATION(id, method, path, verb, scope, kind, request, query, handler, runner, reply, summary)   \
    [BH_OP_##id] = reply,
#include "tables/operations.tbl"
#undef BH_OPERATION
};

const struct bh_fields *
bh_openapi_body_of(enum bh_operation op)
{
    return bodies[op]->size ? bodies[op] : NULL;
}

const struct bh_fields *
bh_openapi_reply_of(enum bh_operation op)
{
    return replies[op].of;
}

/* ---- schemas ---- */

/* Descriptions that others refer to, collected as they are met. */
enum { SCHEMAS_MAX = 256 };

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
openapi_put_text(struct bh_json_writer *w, uint64_t most, const char *pattern)
{
    if (most != UINT32_MAX)
        bh_json_u64(w, "maxLength", most);
    if (pattern)
        bh_json_str(w, "pattern", pattern);
}

/* The types that a value may have: an integer over 2^53 is a string of digits in JSON. */
static void
openapi_put_types(struct bh_json_writer *w, const struct bh_field *field)
{
    static const char *const types[][3] = {
        [BH_FIELD_BOOL] = { "boolean" },
        [BH_FIELD_U32] = { "integer" },
        [BH_FIELD_I32] = { "integer" },
        [BH_FIELD_I64] = { "integer" },
        [BH_FIELD_U64] = { "integer", "string" },
        [BH_FIELD_NS] = { "string" },
        [BH_FIELD_ENUM] = { "string" },
        [BH_FIELD_STR] = { "string" },
        [BH_FIELD_TEXT] = { "string" },
        [BH_FIELD_HEX] = { "string" },
        [BH_FIELD_SLICE] = { "string" },
        [BH_FIELD_JSON] = { "object" },
        [BH_FIELD_AMOUNT] = { "integer", "string", "null" },
        [BH_FIELD_JSONS] = { "array" },
        [BH_FIELD_U64S] = { "array" },
        [BH_FIELD_TEXTS] = { "array" },
        [BH_FIELD_ARRAY] = { "array" },
        [BH_FIELD_LIST] = { "array" },
        [BH_FIELD_ROWS] = { "array" },
        [BH_FIELD_LINES] = { "array" },
    };
    const char *const *names = types[field->kind];
    const uint32_t null = BH_FIELD_NULLABLE | BH_FIELD_REQUIRED;
    const char *more = field->kind == BH_FIELD_TEXT && field->flags & BH_FIELD_NUMBERS ? "integer"
                       : (field->flags & null) == null                                 ? "null"
                                                                                       : NULL;

    if (!names[1] && !more) {
        bh_json_str(w, "type", names[0]);
        return;
    }
    bh_json_open(w, "type", '[');
    for (uint32_t i = 0; i < 3 && names[i]; i++)
        bh_json_str(w, NULL, names[i]);
    if (more)
        bh_json_str(w, NULL, more);
    bh_json_close(w, ']');
}

static void
openapi_put_range(struct bh_json_writer *w, int64_t least, uint64_t most)
{
    bh_json_i64(w, "minimum", least);
    bh_json_u64(w, "maximum", most);
}

static const char *
openapi_item_type(enum bh_field_kind kind)
{
    return kind == BH_FIELD_U64S ? "integer" : kind == BH_FIELD_JSONS ? "object" : "string";
}

static void
openapi_put_items(struct bh_json_writer *w, const struct bh_field *field)
{
    if (field->max != UINT32_MAX)
        bh_json_u64(w, "maxItems", field->max ? field->max : BH_FIELD_ITEMS_MAX);
    bh_json_open(w, "items", '{');
    if (field->of)
        openapi_put_ref(w, field->of->name);
    else
        bh_json_str(w, "type", openapi_item_type(field->kind));
    bh_json_close(w, '}');
}

static void
openapi_put_names(struct bh_json_writer *w, const struct bh_field *field)
{
    bh_json_open(w, "enum", '[');
    for (uint32_t i = 0; i < field->name_count; i++)
        if (field->names[i])
            bh_json_str(w, NULL, field->names[i]);
    bh_json_close(w, ']');
}

static void
openapi_put_limits(struct bh_json_writer *w, const struct bh_field *field)
{
    switch (field->kind) {
    case BH_FIELD_U32:
        openapi_put_range(w, field->flags & BH_FIELD_POSITIVE ? 1 : 0, field->max ? field->max : UINT32_MAX);
        return;
    case BH_FIELD_I32:
        openapi_put_range(w, INT32_MIN, INT32_MAX);
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
        openapi_put_text(w, field->max ? field->max : BH_FIELD_TEXT_MAX, NULL);
        return;
    case BH_FIELD_HEX:
        openapi_put_text(w, 2 * field->size, "^[0-9a-f]*$");
        return;
    case BH_FIELD_JSONS:
    case BH_FIELD_U64S:
    case BH_FIELD_LINES:
    case BH_FIELD_TEXTS:
    case BH_FIELD_ARRAY:
    case BH_FIELD_LIST:
    case BH_FIELD_ROWS:
        openapi_put_items(w, field);
        return;
    case BH_FIELD_BOOL:
    case BH_FIELD_I64:
    case BH_FIELD_STRUCT:
    case BH_FIELD_POINTER:
    case BH_FIELD_SLICE:
    case BH_FIELD_JSON:
    case BH_FIELD_AMOUNT:
        return;
    }
}

static void
openapi_put_property(struct bh_json_writer *w, const struct bh_field *field)
{
    bh_json_open(w, field->name, '{');
    if (field->kind == BH_FIELD_STRUCT || field->kind == BH_FIELD_POINTER
        || (field->kind == BH_FIELD_JSON && field->of))
        openapi_put_ref(w, field->of->name);
    else
        openapi_put_types(w, field);
    openapi_put_limits(w, field);
    if (field->doc)
        bh_json_str(w, "description", field->doc);
    if (field->flags & BH_FIELD_DEPRECATED)
        bh_json_bool(w, "deprecated", true);
    bh_json_close(w, '}');
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
    for (uint32_t i = 0; i < fields->count; i++)
        openapi_put_property(w, &fields->fields[i]);
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static void
openapi_put_components(struct bh_json_writer *w)
{
    struct schemas schemas = { .count = 0 };

    openapi_collect(&schemas, &bh_reply_error_fields);
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_fields *all[] = { bh_openapi_body_of((enum bh_operation)op), replies[op].of,
                                          replies[op].also };

        for (size_t i = 0; i < BH_COUNT(all); i++)
            if (all[i])
                openapi_collect(&schemas, all[i]);
    }
    bh_json_open(w, "components", '{');
    bh_json_open(w, "schemas", '{');
    for (uint32_t i = 0; i < schemas.count; i++)
        openapi_put_schema(w, schemas.items[i]);
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
openapi_put_parameter(struct bh_json_writer *w, const char *where, const struct bh_parameter *parameter)
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
    static const struct bh_parameter id = { "id", "string", "which one" };
    static const struct bh_parameter key = { "Idempotency-Key", "string",
                                             "repeats with the same key and body get the first "
                                             "answer again; a dry run takes no key and ignores it" };
    static const struct bh_parameter rest = { "rest", "string", "the rest of the path, slashes and all" };

    bh_json_open(w, "parameters", '[');
    if (strstr(op->path, "{id}"))
        openapi_put_parameter(w, "path", &id);
    if (strstr(op->path, "{rest}"))
        openapi_put_parameter(w, "path", &rest);
    if (op->kind == BH_OPERATION_MUTATE)
        openapi_put_parameter(w, "header", &key);
    for (const char *at = op->query; *at;) {
        size_t length = strcspn(at, " ");
        const struct bh_parameter *found = bh_parameter_find(at, length);

        BH_ASSERT(found); /* a parameter without a meaning is a fault of this program */
        openapi_put_parameter(w, "query", found);
        at += length + (at[length] == ' ');
    }
    bh_json_close(w, ']');
}

static void
openapi_put_content(struct bh_json_writer *w, const char *type, const struct bh_fields *of,
                    const struct bh_fields *also)
{
    const struct bh_fields *either[] = { of, also };

    bh_json_open(w, type, '{');
    bh_json_open(w, "schema", '{');
    if (also) {
        bh_json_open(w, "oneOf", '[');
        for (size_t i = 0; i < BH_COUNT(either); i++) {
            bh_json_open(w, NULL, '{');
            openapi_put_ref(w, either[i]->name);
            bh_json_close(w, '}');
        }
        bh_json_close(w, ']');
    } else if (of) {
        openapi_put_ref(w, of->name);
    } else {
        bh_json_str(w, "type", strcmp(type, "application/json") == 0 ? "object" : "string");
    }
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static void
openapi_put_body(struct bh_json_writer *w, const struct bh_operation_row *op)
{
    const struct bh_fields *body = bh_openapi_body_of(op->id);

    if (!body)
        return;
    bh_json_open(w, "requestBody", '{');
    bh_json_bool(w, "required", op->id != BH_OP_TOKEN_CREATE);
    bh_json_open(w, "content", '{');
    openapi_put_content(w, "application/json", body, NULL);
    openapi_put_content(w, "application/yaml", body, NULL);
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static void
openapi_put_response(struct bh_json_writer *w, const char *doc, const struct reply *reply)
{
    bh_json_open(w, reply->status, '{');
    bh_json_str(w, "description", doc);
    bh_json_open(w, "content", '{');
    openapi_put_content(w, reply->type, reply->of, reply->also);
    if (reply->also) /* output as it is, or as events */
        openapi_put_content(w, "text/plain; charset=utf-8", NULL, NULL);
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

static void
openapi_put_responses(struct bh_json_writer *w, const struct bh_operation_row *op)
{
    static const struct reply error = { "default", "application/json", OF(error), NULL };
    struct reply reply = replies[op->id];

    bh_json_open(w, "responses", '{');
    openapi_put_response(w, op->summary, &reply);
    reply.status = "200";
    if (strcmp(replies[op->id].status, "201") == 0) /* repeated, tried only, or not done yet */
        openapi_put_response(w, op->summary, &reply);
    openapi_put_response(w, "an error", &error);
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
        [BH_SCOPE_NOBODY] = "open to all",
        [BH_SCOPE_SELF] = "held anywhere",
        [BH_SCOPE_OWN] = "held by all on what is their own",
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
