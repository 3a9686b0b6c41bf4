#ifndef BH_API_REQUEST_CALL_H
#define BH_API_REQUEST_CALL_H

#include "api/request/options.h"
#include "api/request/query.h"
#include "base/json.h"
#include "policy/explain.h"
#include "ports/http.h"

/* One request on its way through the API: what every resource needs.  Folder-internal,
 * beside the resources' headers. */

struct bh_api {
    struct bh_api_options options;
    struct bh_start_estimates *start_estimates; /* api/starts.h */
    struct bh_whatif_lock *whatif_lock;         /* api/whatif/whatif.h */
    struct bh_log_tree *tree;                   /* api/audit/log_tree.h */
    struct bh_rate_limiter *rates;              /* api/request/rate.h */
    struct bh_stream_gate *streams;             /* api/request/stream_gate.h */
    struct bh_followers *followers;             /* api/request/followers.h */
};

struct bh_call {
    const struct bh_api *api;
    const struct bh_request *request;
    struct bh_reply *reply;
    struct bh_arena *arena;
    const struct bh_operation_row *op;
    struct bh_query query;          /* an unreadable one is refused before its resource */
    const char *id;                 /* the path's {id} or {rest}, or NULL */
    const struct bh_directory *dir; /* NULL: the path leads to no operation */
    struct bh_caller caller;
    struct bh_verdict verdict;
    struct bh_reason reason; /* a refusal's reason with its operands */
    uint32_t status;         /* of a reply that is no error; 0: 200 */
    uint32_t retry_after_s;  /* of a BH_TOO_MANY; 0: unknown */
    bh_job_id job;           /* that it names and there is; 0: none is known */
    /* what a refusal's record says besides, as bh_refused_request has it; the verb only of what-if, which
     * asks about another deed */
    const char *verb, *target;
    bh_tenant_id tenant;
    struct bh_record_object object;
    bool recorded;                  /* the owner has seen it: it is in the journal */
    bool quarantined;               /* it failed an assert before, or others like it did */
    bool probed;                    /* it asked for what it may not see */
    bool identified;                /* the caller is known */
    bool unauthenticated;           /* credentials were sent that are unknown */
    uint64_t unauthenticated_token; /* that has their id, by its number in records; 0: none */
};

/* An operation's body: writes the reply's JSON, or fails and the dispatcher writes the
 * error. */
typedef bh_rc (*bh_resource)(struct bh_call *call, struct bh_err *err);

/* Now, by the API's clock. */
uint64_t bh_call_now(const struct bh_call *call);

/* Decode the body, JSON or YAML by its content type, into the struct that `fields`
 * describes.  Results of bh_json_decode and bh_yaml_to_json. */
BH_MUST_USE bh_rc bh_call_body(struct bh_call *call, const struct bh_fields *fields, void *ret_struct,
                               struct bh_err *err);

/* Ask the owner thread; results of bh_owner_ops.ask. */
BH_MUST_USE bh_rc bh_call_ask(const struct bh_call *call, bh_question question, void *self,
                              struct bh_err *err);

/* Hand a command to the owner; keeps a refusal's reason for the error reply. */
BH_MUST_USE bh_rc bh_call_command(struct bh_call *call, struct bh_command *command,
                                  struct bh_answer *ret_answer, struct bh_err *err);

/* The same of another operation than the call's own: what-if has the owner decide on the change that it
 * is asked about. */
BH_MUST_USE bh_rc bh_call_command_as(struct bh_call *call, enum bh_operation op, struct bh_command *command,
                                     struct bh_answer *ret_answer, struct bh_err *err);

/* Write the reply to a command: what the owner decided, or what it remembered under the idempotency
 * key. */
void bh_call_reply(struct bh_call *call, const struct bh_command *command, const struct bh_answer *answer);

/* As bh_call_command, and write the reply: what the owner decided, or what it remembered under the
 * idempotency key. */
BH_MUST_USE bh_rc bh_call_send(struct bh_call *call, struct bh_command *command, struct bh_err *err);

/* BH_DENIED with the role that would help, and where; `tenant` is the object's, 0 the site's, and
 * stands in the record. */
bh_rc bh_call_deny(struct bh_call *call, struct bh_denial denial, bh_tenant_id tenant, struct bh_err *err);

/* `bytes` of arena memory; BH_FULL is reported through `err`. */
BH_MUST_USE bh_rc bh_call_alloc(const struct bh_call *call, size_t bytes, void *ret_pointer,
                                struct bh_err *err);

#endif
