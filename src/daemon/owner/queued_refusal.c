#include "daemon/owner/queued_refusal.h"

#include <stdio.h>
#include <string.h>

bool
bh_queued_refusal_is(const struct bh_queued_refusal *refusal, const struct bh_caller *caller,
                     const struct bh_counted_refusal *what)
{
    const struct bh_refused_request *last = &refusal->what.what, *next = &what->what;

    return last->op == next->op && refusal->what.res == what->res
           && strcmp(last->verb ? last->verb : "", next->verb ? next->verb : "") == 0
           && bh_same(last->tenant, next->tenant) && strcmp(last->object.type, next->object.type) == 0
           && last->verdict.rule == next->verdict.rule && last->verdict.allow == next->verdict.allow
           && bh_same(last->job, next->job) && last->object.id == next->object.id
           && strcmp(refusal->target, next->target ? next->target : "") == 0
           && refusal->caller.via == caller->via && refusal->caller.uid == caller->uid
           && refusal->caller.subject.uid == caller->subject.uid
           && refusal->caller.subject.principal.v == caller->subject.principal.v
           && strcmp(refusal->token, caller->token ? caller->token : "") == 0;
}

void
bh_queued_refusal_set(struct bh_queued_refusal *refusal, const struct bh_caller *caller,
                      const struct bh_counted_refusal *what)
{
    *refusal = (struct bh_queued_refusal){ .caller = *caller, .what = *what };
    refusal->caller.subject.gids = NULL;
    refusal->caller.name = refusal->caller.idempotency_key = NULL;
    refusal->what.what.target = NULL;
    if (what->what.target)
        snprintf(refusal->target, sizeof refusal->target, "%s", what->what.target);
    if (caller->token)
        memcpy(refusal->token, caller->token, strnlen(caller->token, sizeof refusal->token - 1));
}

void
bh_queued_refusal_point(struct bh_queued_refusal *refusal)
{
    refusal->caller.token = refusal->token[0] ? refusal->token : NULL;
    refusal->what.what.target = refusal->target[0] ? refusal->target : NULL;
}
