#include "base/assert.h"
#include "policy/explain_internal.h"

/* What is before and after the GPU in the sentence; what to do, before and after it, or
 * NULL behind it: it is not named. */
static const struct {
    const char *before, *after, *next, *then;
} words[BH_REASONS] = {
    [BH_REASON_IN_REPAIR] = { "",
                              " could hold it, but is being emptied, reset, tested or watched after a fault",
                              "wait: it comes back by itself when it is healthy; `bulkhead gpu` shows its "
                              "progress",
                              NULL },
    [BH_REASON_UNCLEAN] = { "memory of ",
                            ", which could hold it, was another tenant's and could not be scrubbed: it is "
                            "not used",
                            "wait: the scrub is retried, six times in all; after that an admin sets and "
                            "removes `cordoned` in the site file for ",
                            "" },
    [BH_REASON_CORDONED] = { "", " could hold it, but is cordoned by an operator",
                             "an operator can release it with `bulkhead uncordon ", "`" },
    [BH_REASON_CORDONED_NODE] = { "the node of ",
                                  ", which could hold it, is cordoned by an "
                                  "operator",
                                  "an operator can release it with `bulkhead uncordon NODE`; `bulkhead get "
                                  "nodes` names the node",
                                  NULL },
    [BH_REASON_CORDONED_SITE] = { "", " could hold it, but is cordoned in the site file",
                                  "an admin can remove its `cordoned` from the site file", NULL },
    [BH_REASON_UNCHECKED] = { "jobs failed to start on the node of ",
                              ", which could hold it: the node gets no work until it passes a check",
                              "wait: the check is repeated by itself; an operator can skip it with "
                              "`bulkhead uncordon NODE`; `bulkhead get nodes` names the node",
                              NULL },
    [BH_REASON_QUARANTINED] = { "", " could hold it, but is in quarantine after faults",
                                "an operator can have it tested and used again with `bulkhead uncordon ",
                                " --clear-fault`" },
    [BH_REASON_FENCED] = { "",
                           " could hold it, but is fenced: it does not answer, or its isolation is not "
                           "verified",
                           "it comes back when it answers, or when `bulkhead verify` passes; `bulkhead "
                           "gpu` shows which of the two is missing",
                           NULL },
    [BH_REASON_NEEDS_REBOOT] = { "the node of ",
                                 ", which could hold it, must be rebooted after a "
                                 "fault",
                                 "an operator can drain and reboot the node; `bulkhead get nodes` names it",
                                 NULL },
};

void
bh_explain_away(const struct phrase *p)
{
    BH_ASSERT(words[p->reason->code].after);
    bh_buf_puts(p->out, words[p->reason->code].before);
    bh_explain_gpu(p);
    bh_buf_puts(p->out, words[p->reason->code].after);
}

void
bh_explain_next_away(const struct phrase *p)
{
    BH_ASSERT(words[p->reason->code].next);
    bh_buf_puts(p->out, words[p->reason->code].next);
    if (!words[p->reason->code].then)
        return;
    bh_explain_gpu(p);
    bh_buf_puts(p->out, words[p->reason->code].then);
}
