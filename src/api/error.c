#include "api/error.h"

#include <inttypes.h>
#include <string.h>

#include "api/openapi.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "api/request/why.h"
#include "base/time.h"

static const char default_next[] = "correct the request; /openapi.json describes it";

/* ---- what to do, for errors that bring no hint of their own ---- */

/* The field that a message begins with: "mounts[0].target: ...", "mounts[0]: target: ...",
 * "tenants[0] acme: limit: ...". */
static const struct bh_field *
error_field_named(const struct bh_fields *fields, const char *message)
{
    size_t length = strcspn(message, ".[: ");
    const struct bh_field *field = bh_fields_find(fields, message, length), *inner = NULL;
    const char *rest = message + length;

    if (!field)
        return NULL;
    if (*rest == '[')
        rest += strcspn(rest, "]") + (strchr(rest, ']') != NULL);
    if (*rest == ' ' && strstr(rest, ": ")) /* the entry's name */
        rest = strstr(rest, ": ");
    if (field->of && *rest == '.')
        inner = error_field_named(field->of, rest + 1);
    else if (field->of && strncmp(rest, ": ", 2) == 0)
        inner = error_field_named(field->of, rest + 2);
    if (inner)
        return inner;
    return *rest == ':' ? field : NULL;
}

/* What the field or the query parameter that the message begins with takes, in the call's arena;
 * NULL: it names none. */
static const char *
error_next_of_field(const struct bh_call *call, const char *message)
{
    const struct bh_fields *body = call->op ? bh_openapi_body_of(call->op->id) : NULL;
    const struct bh_field *field = body ? error_field_named(body, message) : NULL;
    size_t length = strcspn(message, ": ");
    char text[sizeof((struct bh_err *)0)->hint];
    const struct bh_parameter *parameter;

    if (field && field->doc) {
        bh_field_describe(field, text, sizeof text);
        return bh_arena_strdup(call->arena, text);
    }
    parameter = message[length] == ':' ? bh_parameter_find(message, length) : NULL;
    return parameter && call->op && bh_operation_has_parameter(call->op, parameter->name)
               ? bh_arena_printf(call->arena, "%s: %s", parameter->name, parameter->doc)
               : NULL;
}

/* What to do, by the kind of the error. */
static const char *
error_next_of_kind(const struct bh_err *err)
{
    if (bh_rc_retryable(err->rc))
        return "try again in a moment";
    switch (err->rc) {
    case BH_NOT_FOUND:
        return "list what there is, or ask who may see it";
    case BH_CONFLICT:
        return "read the object's present state first";
    case BH_QUOTA:
        return "ask for less, or have an admin raise the limit";
    case BH_UNCERTAIN:
        return "read the state before trying again";
    case BH_BUG:
        return "please report it with the daemon's log";
    case BH_OK:
    case BH_INVALID:
    case BH_UNAUTHENTICATED:
    case BH_DENIED:
    case BH_FULL:
    case BH_TOO_MANY:
    case BH_RANGE:
    case BH_TIMEOUT:
    case BH_UNAVAILABLE:
    case BH_IO:
        break;
    }
    return default_next;
}

static const char *
error_next_of(const struct bh_call *call, const struct bh_err *err)
{
    const char *next = NULL;

    if (err->hint[0])
        return err->hint;
    if (err->rc == BH_INVALID || err->rc == BH_RANGE)
        next = error_next_of_field(call, err->msg);
    return next ? next : error_next_of_kind(err);
}

/* Operands are a help: where they cannot be made the error goes out without. */
static void
write_error(struct bh_call *call, bh_rc rc, const char *message, const char *next)
{
    struct bh_reply_error_body error = {
        .code = rc, .message = message, .next = next, .reason = call->reason.code
    };
    struct bh_reply_operands operands;
    struct bh_explain how;
    struct bh_err unused;

    if (call->reason.code != BH_REASON_NONE && call->dir
        && bh_visible_explain(call, &how, &unused) == BH_OK) {
        operands = bh_why_operands(&how, &call->reason);
        error.operands = &operands;
    }
    bh_buf_clear(&call->reply->body);
    call->reply->content_type = "application/json";
    BH_REPLY_WITH(call, error, .error = error);
}

/* A caller that is known and has to authenticate again reads so as RFC 9470 has it. */
static const char *
error_challenge_of(const struct bh_call *call)
{
    static const char plain[] = "Bearer realm=\"bulkhead\"";
    const struct bh_dir_step_up *asked =
        call->identified ? bh_directory_step_up(call->dir, call->op->verb) : NULL;
    const char *text;

    if (!asked && call->identified && strcmp(call->op->verb, "account.change") == 0)
        return "Bearer realm=\"bulkhead\", error=\"insufficient_user_authentication\", "
               "max_age=\"600\""; /* src/accounts: changing an account needs a recent sign-in */
    if (!asked)
        return plain;
    text = bh_arena_printf(call->arena,
                           "%s, error=\"insufficient_user_authentication\", "
                           "acr_values=\"%s\", max_age=\"%" PRIu64 "\"",
                           plain, bh_level_names[asked->level], asked->within_ns / BH_NS_PER_S);
    return text ? text : plain;
}

static void
error_put_retry_after(struct bh_call *call)
{
    const char *seconds = bh_arena_printf(call->arena, "%" PRIu32, call->retry_after_s);

    if (seconds)
        bh_reply_header(call->reply, "Retry-After", seconds);
}

void
bh_error_write(struct bh_call *call, const struct bh_err *err)
{
    call->reply->status = (uint32_t)bh_rc_http(err->rc);
    if (err->rc == BH_UNAUTHENTICATED)
        bh_reply_header(call->reply, "WWW-Authenticate", error_challenge_of(call));
    if (call->retry_after_s)
        error_put_retry_after(call);
    write_error(call, err->rc, err->msg, error_next_of(call, err));
}

void
bh_error_write_method(struct bh_call *call, const char *allowed)
{
    struct bh_err err;

    bh_err_set(&err, BH_INVALID, "%s is not possible on %.100s", bh_method_names[call->request->method],
               call->request->path);
    bh_err_hint(&err, "allowed: %s", allowed);
    call->reply->status = 405;
    bh_reply_header(call->reply, "Allow", allowed);
    write_error(call, BH_INVALID, err.msg, err.hint);
}
