#ifndef BH_DAEMON_OWNER_QUEUED_REFUSAL_H
#define BH_DAEMON_OWNER_QUEUED_REFUSAL_H

#include "api/request/owner.h"
#include "daemon/authorization/command.h"

/* A refusal that the API decided and the owner thread records: copied, since its worker does not wait. */
struct bh_queued_refusal {
    struct bh_caller caller;
    char token[16], target[120];
    struct bh_counted_refusal what;
};

void bh_queued_refusal_set(struct bh_queued_refusal *refusal, const struct bh_caller *caller,
                           const struct bh_counted_refusal *what);

/* Whether one more is equal to it, so that both can be counted as one. */
bool bh_queued_refusal_is(const struct bh_queued_refusal *refusal, const struct bh_caller *caller,
                          const struct bh_counted_refusal *what);

/* It was moved: its pointers to its own texts are set, for bh_command_refused. */
void bh_queued_refusal_point(struct bh_queued_refusal *refusal);

#endif
