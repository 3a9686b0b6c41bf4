#include "daemon/state/refusals.h"

#include <stdio.h>
#include <string.h>

#include "daemon/state/entry.h"

/* Wrong credentials (daemon/owner/unauthenticated.h). */
static bool
refusals_is_unauthenticated(const struct bh_refusal_group *group)
{
    return group->dec.rule == BH_RULE_NOT_SHOWN && strcmp(group->obj.type, "account") != 0;
}

/* Numbers that a caller can make up, or that there are many of: they distinguish no kinds of refusal
 * apart.  Whose account or token was tried does. */
static bool
refusals_is_of_many(const struct bh_refusal_group *group)
{
    static const char *const types[] = { "account", "gpu", "job", "node", "tenant", "token" };

    for (size_t i = 0; i < BH_COUNT(types); i++)
        if (strcmp(group->obj.type, types[i]) == 0)
            return group->dec.rule != BH_RULE_NOT_SHOWN;
    return false;
}

static bool
is_refusal(const struct bh_entry *entry, bh_rc res)
{
    bool somebodys = entry->actor.via != BH_VIA_SYSTEM || entry->dec.rule == BH_RULE_NOT_SHOWN;

    return res != BH_OK && entry->phase == BH_PHASE_EVENT && somebodys && !entry->note && !entry->text
           && !entry->order;
}

static struct bh_refusal_group
refusals_group_of(const struct bh_entry *entry, bh_rc res)
{
    struct bh_refusal_group group = {
        .actor = entry->actor, .dec = entry->dec, .obj = entry->obj, .tenant = entry->tenant, .res = res
    };

    if (refusals_is_of_many(&group))
        group.obj.id = 0;
    snprintf(group.verb, sizeof group.verb, "%s", entry->verb ? entry->verb : "");
    return group;
}

static bool
refusals_is_same(const struct bh_refusal_group *a, const struct bh_refusal_group *b)
{
    return a->actor.id == b->actor.id && a->actor.via == b->actor.via && a->actor.uid == b->actor.uid
           && strcmp(a->actor.token, b->actor.token) == 0 && a->dec.allow == b->dec.allow
           && a->dec.rule == b->dec.rule && strcmp(a->obj.type, b->obj.type) == 0 && a->obj.id == b->obj.id
           && strcmp(a->verb, b->verb) == 0 && a->tenant == b->tenant && a->res == b->res;
}

/* A Unix user without a principal, over the socket. */
static bool
refusals_is_unknown(const struct bh_refusal_group *group)
{
    return group->actor.id == 0 && group->actor.via == BH_VIA_PEER && group->res == BH_UNAUTHENTICATED;
}

static bool
refusals_counts_for(const struct bh_refusal_group *group, const struct bh_refusal_group *wanted)
{
    return refusals_is_unknown(wanted) ? group->actor.uid == wanted->actor.uid
                                       : refusals_is_same(group, wanted);
}

/* Its place among so many, or a free one; NULL: there is none. */
static struct bh_refusal_group *
refusals_find(struct bh_refusal_group *groups, uint32_t count, const struct bh_refusal_group *wanted)
{
    struct bh_refusal_group *free_one = NULL;

    for (uint32_t i = 0; i < count; i++) {
        if (groups[i].until_ns && refusals_counts_for(&groups[i], wanted))
            return &groups[i];
        if (!free_one && !groups[i].until_ns)
            free_one = &groups[i];
    }
    return free_one;
}

static void
refusals_name_unknown(struct bh_refusal_group *group)
{
    snprintf(group->verb, sizeof group->verb, "%s", BH_RECORD_CALLER_UNKNOWN);
}

/* Its row; an unknown caller that finds none shares the last one. */
static struct bh_refusal_group *
refusals_group_of_unknown(struct bh_refusal_group *unknown, struct bh_refusal_group *wanted)
{
    struct bh_refusal_group *place = NULL;

    if (wanted->actor.uid != BH_RECORD_UID_SEVERAL)
        place = refusals_find(unknown, BH_REFUSAL_GROUPS_UNKNOWN - 1, wanted);
    if (place)
        return place;
    wanted->actor.uid = BH_RECORD_UID_SEVERAL;
    refusals_name_unknown(wanted);
    return &unknown[BH_REFUSAL_GROUPS_UNKNOWN - 1];
}

/* The last place is for all that finds no other, and of no token. */
static struct bh_refusal_group *
refusals_group_of_unauthenticated(struct bh_refusal_group *unauthenticated, struct bh_refusal_group *wanted)
{
    struct bh_refusal_group *place = NULL;

    if (wanted->obj.id)
        place = refusals_find(unauthenticated, BH_REFUSAL_GROUPS_UNAUTHENTICATED - 1, wanted);
    if (place)
        return place;
    wanted->obj = (struct bh_record_object){ .id = 0 };
    return &unauthenticated[BH_REFUSAL_GROUPS_UNAUTHENTICATED - 1];
}

static struct bh_refusal_group *
refusals_group_for(struct bh_refusals *refusals, struct bh_refusal_group *wanted)
{
    struct bh_refusal_group *unknown = refusals->groups + BH_REFUSAL_GROUPS_MAX;

    if (refusals_is_unknown(wanted))
        return refusals_group_of_unknown(unknown, wanted);
    if (refusals_is_unauthenticated(wanted))
        return refusals_group_of_unauthenticated(unknown + BH_REFUSAL_GROUPS_UNKNOWN, wanted);
    return refusals_find(refusals->groups, BH_REFUSAL_GROUPS_MAX, wanted);
}

static void
refusals_expect_end(struct bh_refusals *refusals, uint64_t until_ns)
{
    if (!refusals->next_ns || until_ns < refusals->next_ns)
        refusals->next_ns = until_ns;
}

uint64_t
bh_refusals_count(struct bh_refusals *refusals, const struct bh_refusal *refusal, uint64_t until_ns)
{
    const struct bh_entry *entry = refusal->entry;
    uint64_t times = refusal->times;
    struct bh_refusal_group wanted, *group;

    if (!is_refusal(entry, refusal->res))
        return times;
    refusals->seen += times;
    wanted = refusals_group_of(entry, refusal->res);
    group = refusals_group_for(refusals, &wanted);
    if (!group)
        return times;
    if (group->until_ns) {
        if (group->counted + group->written == 0) /* what is written may come back */
            group->object = entry->obj.id;
        else if (group->object != entry->obj.id)
            group->object = 0;
        group->counted += times;
        if (refusals_is_unknown(group) && strcmp(group->verb, wanted.verb) != 0)
            refusals_name_unknown(group);
        if (entry->req)
            memcpy(group->req, entry->req, sizeof group->req);
        return 0;
    }
    *group = wanted;
    group->fresh = refusals->touched = true;
    group->counted = times - 1;
    group->object = entry->obj.id;
    group->until_ns = until_ns;
    refusals_expect_end(refusals, group->until_ns);
    return 1;
}

struct bh_refusal_group *
bh_refusals_next_due(struct bh_refusals *refusals, struct bh_refusal_sweep *sweep)
{
    if (sweep->at == 0 && (!refusals->next_ns || sweep->now_ns < refusals->next_ns))
        return NULL;
    if (sweep->at == 0)
        refusals->next_ns = 0;
    while (sweep->at < BH_REFUSAL_GROUPS_ALL) {
        struct bh_refusal_group *group = &refusals->groups[sweep->at++];
        bool due = group->until_ns && group->until_ns <= sweep->now_ns;

        if (due)
            group->until_ns = group->counted ? sweep->until_ns : 0;
        if (group->until_ns)
            refusals_expect_end(refusals, group->until_ns);
        if (due && group->counted)
            return group;
    }
    return NULL;
}

void
bh_refusals_written(struct bh_refusals *refusals, struct bh_refusal_group *group)
{
    refusals->touched = true;
    group->written += group->counted;
    group->counted = 0;
}

void
bh_refusals_committed(struct bh_refusals *refusals)
{
    for (uint32_t i = 0; refusals->touched && i < BH_REFUSAL_GROUPS_ALL; i++) {
        refusals->groups[i].fresh = false;
        refusals->groups[i].written = 0;
    }
    refusals->touched = false;
}

void
bh_refusals_aborted(struct bh_refusals *refusals)
{
    for (uint32_t i = 0; i < BH_REFUSAL_GROUPS_ALL; i++) {
        struct bh_refusal_group *group = &refusals->groups[i];

        if (group->fresh) { /* its first has no record: the next one is */
            *group = (struct bh_refusal_group){ 0 };
            continue;
        }
        group->counted += group->written;
        group->written = 0;
    }
    refusals->touched = false;
    refusals->next_ns = 1; /* look again */
}
