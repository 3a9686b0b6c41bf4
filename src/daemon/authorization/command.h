#ifndef BH_DAEMON_AUTHORIZATION_COMMAND_H
#define BH_DAEMON_AUTHORIZATION_COMMAND_H

#include "daemon/state/core.h"
#include "daemon/state/entry.h"

/* Shared by the files of single commands: which callers are allowed, and the records of denied ones. */

struct bh_entry bh_command_entry(const struct bh_caller *caller, enum bh_operation op, bh_tenant_id tenant,
                                 struct bh_verdict verdict);
/* Whether the caller may do what it asks: the record says so, whatever comes of it afterwards. */
struct bh_verdict bh_command_authz(struct bh_core *core, const struct bh_command *command, const char *verb,
                                   bh_tenant_id tenant);
/* Whether it holds `verb` besides: that decides nothing by itself. */
struct bh_verdict bh_command_holds(struct bh_core *core, const struct bh_command *command, const char *verb,
                                   bh_tenant_id tenant);
/* Record a denial of the operation's deed, for want of `denial.verb`; returns BH_DENIED with message
 * and hint. */
bh_rc bh_command_deny(struct bh_core *core, const struct bh_command *command, bh_tenant_id tenant,
                      struct bh_denial denial, struct bh_err *err);
/* Record a refusal of the engine and put its reason in words; returns `rc`. */
bh_rc bh_command_refusal(struct bh_core *core, const struct bh_entry *entry, bh_rc rc,
                         const struct bh_reason *reason, struct bh_err *err);

/* Put the engine's reason in words, with what to do next as the hint. */
void bh_command_explain(const struct bh_core *core, bh_rc rc, const struct bh_reason *reason,
                        struct bh_err *err);

/* Record that the command failed as `err` says, which no record has yet: every attempt of a known
 * principal is in the log, also one that failed early.  Returns err->rc. */
BH_MUST_USE bh_rc bh_command_record_failure(struct bh_core *core, const struct bh_command *command,
                                            struct bh_err *err);

/* A request that was turned away, or as many equal ones in a row. */
struct bh_counted_refusal {
    struct bh_refused_request what;
    bh_rc res;
    uint64_t times;
};
BH_MUST_USE bh_rc bh_command_refused(struct bh_core *core, const struct bh_caller *caller,
                                     const struct bh_counted_refusal *what);

#endif
