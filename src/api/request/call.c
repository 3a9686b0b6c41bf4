#include "api/request/call.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/request/answer.h"
#include "base/num.h"
#include "base/time.h"
#include "base/yaml.h"

uint64_t
bh_call_now(const struct bh_call *call)
{
    return call->api->options.now ? call->api->options.now() : bh_time_now();
}

/* ---- the body ---- */

static bool
call_content_is(const char *type, const char *name)
{
    size_t length = strlen(name);

    return strncasecmp(type, name, length) == 0 && strchr("; \t", type[length]);
}

/* JSON unless it is called something else. */
static bh_rc
call_read_type(const struct bh_call *call, bool *ret_yaml, struct bh_err *err)
{
    const char *type = call->request->content_type;

    *ret_yaml = type
                && (call_content_is(type, "application/yaml") || call_content_is(type, "application/x-yaml")
                    || call_content_is(type, "text/yaml"));
    if (!type || *ret_yaml || call_content_is(type, "application/json"))
        return BH_OK;
    bh_err_set(err, BH_INVALID, "content type %.60s is not understood", type);
    return bh_err_hint(err, "send application/json or application/yaml");
}

static bh_rc
call_decode_yaml(struct bh_call *call, const struct bh_fields *fields, void *ret_struct, struct bh_err *err)
{
    struct bh_buf json;
    bh_rc rc;

    bh_buf_init(&json, BH_JSON_BYTES_MAX);
    rc = bh_yaml_to_json(call->request->body, call->request->body_length, &json, err);
    if (rc == BH_OK)
        rc = bh_json_decode(json.bytes, json.length, fields, ret_struct, call->arena, err);
    bh_buf_fini(&json);
    return rc;
}

bh_rc
bh_call_body(struct bh_call *call, const struct bh_fields *fields, void *ret_struct, struct bh_err *err)
{
    const struct bh_request *request = call->request;
    bool yaml;
    bh_rc rc = call_read_type(call, &yaml, err);

    if (rc != BH_OK)
        return rc;
    if (request->body_length == 0) {
        bh_err_set(err, BH_INVALID, "the request has no body");
        return bh_err_hint(err, "send a %s as JSON or YAML; see /openapi.json", fields->name);
    }
    if (yaml)
        return call_decode_yaml(call, fields, ret_struct, err);
    return bh_json_decode(request->body, request->body_length, fields, ret_struct, call->arena, err);
}

/* ---- the owner ---- */

bh_rc
bh_call_ask(const struct bh_call *call, bh_question question, void *self, struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;

    return owner->ops->ask(owner->self, question, self, err);
}

bh_rc
bh_call_command_as(struct bh_call *call, enum bh_operation op, struct bh_command *command,
                   struct bh_answer *ret_answer, struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;
    bh_rc rc;

    command->op = op;
    command->caller = call->caller;
    command->tenant = call->tenant;
    *ret_answer = (struct bh_answer){ 0 };
    rc = owner->ops->command(owner->self, command, call->arena, ret_answer, err);
    call->recorded = rc != BH_OK || !command->dry_run;
    call->reason = ret_answer->reason;
    return rc;
}

bh_rc
bh_call_command(struct bh_call *call, struct bh_command *command, struct bh_answer *ret_answer,
                struct bh_err *err)
{
    return bh_call_command_as(call, call->op->id, command, ret_answer, err);
}

void
bh_call_reply(struct bh_call *call, const struct bh_command *command, const struct bh_answer *answer)
{
    if (answer->replayed) {
        bh_buf_puts(&call->reply->body, answer->replayed);
        call->status = answer->replayed_status;
        return;
    }
    bh_answer_encode(&call->reply->body, command, answer, false);
    call->status = bh_answer_status(command);
}

bh_rc
bh_call_send(struct bh_call *call, struct bh_command *command, struct bh_err *err)
{
    struct bh_answer answer;
    bh_rc rc = bh_call_command(call, command, &answer, err);

    if (rc == BH_OK)
        bh_call_reply(call, command, &answer);
    return rc;
}

bh_rc
bh_call_deny(struct bh_call *call, struct bh_denial denial, bh_tenant_id tenant, struct bh_err *err)
{
    const struct bh_dir_tenant *where = bh_directory_tenant(call->dir, tenant);

    call->verdict = denial.verdict;
    call->tenant = tenant;
    return bh_authz_explain(&denial, call->caller.name, &call->caller.subject, where ? where->path : NULL,
                            err);
}

bh_rc
bh_call_alloc(const struct bh_call *call, size_t bytes, void *ret_pointer, struct bh_err *err)
{
    void *memory = bh_arena_alloc(call->arena, bytes ? bytes : 1);

    if (!memory)
        return bh_err_set(err, BH_FULL, "the answer is too large");
    memcpy(ret_pointer, &memory, sizeof memory);
    return BH_OK;
}
