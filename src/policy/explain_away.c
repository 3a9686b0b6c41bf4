#include "base/assert.h"
#include "policy/explain_internal.h"

/* What stands before and behind the GPU in the sentence; what to do, before and behind it, or
 * NULL behind it: it is not named. */
static const struct {
    const char *before, *after, *next, *then;
} words[BH_REASONS] = {
    [BH_REASON_IN_REPAIR] = { "",
                              " could hold it and is being emptied, reset, tested or watched "
                              "after a fault",
                              "wait: it comes back by itself when it is well; `bulkhead gpu` shows "
                              "how far it is",
                              NULL },
    [BH_REASON_UNCLEAN] = { "memory of ",
                            ", which could hold it, was another tenant's and could "
                            "not be scrubbed: it is not lent",
                            "wait: it is scrubbed again by itself, six times in all; after that an "
                            "admin sets and takes off `cordoned` in the site file for ",
                            "" },
    [BH_REASON_CORDONED] = { "", " could hold it and is cordoned by an operator",
                             "an operator can release it with `bulkhead uncordon ", "`" },
    [BH_REASON_CORDONED_NODE] = { "the node of ",
                                  ", which could hold it, is cordoned by an "
                                  "operator",
                                  "an operator can release it with `bulkhead uncordon NODE`, which "
                                  "`bulkhead get nodes` names",
                                  NULL },
    [BH_REASON_CORDONED_SITE] = { "", " could hold it and is cordoned in the site file",
                                  "an admin can take `cordoned` off it in the site file", NULL },
    [BH_REASON_UNCHECKED] = { "jobs failed to start on the node of ",
                              ", which could hold it: it gets "
                              "no work until it passed a check",
                              "wait: the check is made by itself, again and again; an operator can "
                              "skip it with `bulkhead uncordon NODE`, which `bulkhead get nodes` "
                              "names",
                              NULL },
    [BH_REASON_QUARANTINED] = { "", " could hold it and is in quarantine after faults",
                                "an operator can have it tested and given back with `bulkhead "
                                "uncordon ",
                                " --clear-fault`" },
    [BH_REASON_FENCED] = { "",
                           " could hold it and is fenced: it does not answer, or its isolation "
                           "is not verified",
                           "it comes back when it answers, or when all isolation checks of `bulkhead verify` pass; `bulkhead gpu` shows which it is",
                           NULL },
    [BH_REASON_NEEDS_REBOOT] = { "the node of ",
                                 ", which could hold it, must be rebooted after a "
                                 "fault",
                                 "an operator can drain and reboot it; `bulkhead get nodes` names "
                                 "it",
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
