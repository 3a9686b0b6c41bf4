#include "daemon/refusals.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core.h"

/* Credentials that are nobody's (daemon/unproven.h). */
static bool
is_unproven(const struct bh_fold *fold)
{
    return fold->dec.rule == BH_RULE_NOT_SHOWN && strcmp(fold->obj.type, "account") != 0;
}

/* Numbers of what whoever asks can make up, or what there are many of: they tell no kinds of refusal
 * apart.  Whose account or token was tried does. */
static bool
is_of_many(const struct bh_fold *fold)
{
    static const char *const types[] = { "account", "gpu", "job", "node", "tenant", "token" };

    for (size_t i = 0; i < BH_COUNT(types); i++)
        if (strcmp(fold->obj.type, types[i]) == 0)
            return fold->dec.rule != BH_RULE_NOT_SHOWN;
    return false;
}

static bool
is_refusal(const struct bh_entry *entry, bh_rc res)
{
    bool somebodys = entry->actor.via != BH_VIA_SYSTEM || entry->dec.rule == BH_RULE_NOT_SHOWN;

    return res != BH_OK && entry->phase == BH_PHASE_EVENT && somebodys && !entry->note && !entry->text && !entry->order;
}

static struct bh_fold
fold_of(const struct bh_entry *entry, bh_rc res)
{
    struct bh_fold fold = { .actor = entry->actor, .dec = entry->dec, .obj = entry->obj,
                            .tenant = entry->tenant, .res = res };

    if (is_of_many(&fold))
        fold.obj.id = 0;
    snprintf(fold.verb, sizeof fold.verb, "%s", entry->verb ? entry->verb : "");
    return fold;
}

static bool
is_same(const struct bh_fold *a, const struct bh_fold *b)
{
    return a->actor.id == b->actor.id && a->actor.via == b->actor.via
           && a->actor.uid == b->actor.uid && strcmp(a->actor.token, b->actor.token) == 0
           && a->dec.allow == b->dec.allow && a->dec.rule == b->dec.rule
           && strcmp(a->obj.type, b->obj.type) == 0 && a->obj.id == b->obj.id
           && strcmp(a->verb, b->verb) == 0 && a->tenant == b->tenant && a->res == b->res;
}

/* Nobody, who came over the socket. */
static bool
is_stranger(const struct bh_fold *fold)
{
    return fold->actor.id == 0 && fold->actor.via == BH_VIA_PEER && fold->res == BH_UNAUTHENTICATED;
}

static bool
counts_for(const struct bh_fold *fold, const struct bh_fold *wanted)
{
    return is_stranger(wanted) ? fold->actor.uid == wanted->actor.uid : is_same(fold, wanted);
}

/* Its place among so many, or a free one; NULL: there is none. */
static struct bh_fold *
find(struct bh_fold *folds, uint32_t count, const struct bh_fold *wanted)
{
    struct bh_fold *free_one = NULL;

    for (uint32_t i = 0; i < count; i++) {
        if (folds[i].until_ns && counts_for(&folds[i], wanted))
            return &folds[i];
        if (!free_one && !folds[i].until_ns)
            free_one = &folds[i];
    }
    return free_one;
}

static void
call_stranger(struct bh_fold *fold)
{
    snprintf(fold->verb, sizeof fold->verb, "%s", BH_RECORD_CALLER_UNKNOWN);
}

/* Its place; a stranger whom none is left for becomes one of several. */
static struct bh_fold *
place_of_stranger(struct bh_fold *strangers, struct bh_fold *wanted)
{
    struct bh_fold *place = NULL;

    if (wanted->actor.uid != BH_RECORD_UID_SEVERAL)
        place = find(strangers, BH_FOLDS_STRANGERS - 1, wanted);
    if (place)
        return place;
    wanted->actor.uid = BH_RECORD_UID_SEVERAL;
    call_stranger(wanted);
    return &strangers[BH_FOLDS_STRANGERS - 1];
}

/* The last place is for all that finds no other, and of no token. */
static struct bh_fold *
place_of_unproven(struct bh_fold *unproven, struct bh_fold *wanted)
{
    struct bh_fold *place = NULL;

    if (wanted->obj.id)
        place = find(unproven, BH_FOLDS_UNPROVEN - 1, wanted);
    if (place)
        return place;
    wanted->obj = (struct bh_record_object){ .id = 0 };
    return &unproven[BH_FOLDS_UNPROVEN - 1];
}

static struct bh_fold *
place_of(struct bh_refusals *refusals, struct bh_fold *wanted)
{
    struct bh_fold *strangers = refusals->folds + BH_FOLDS_MAX;

    if (is_stranger(wanted))
        return place_of_stranger(strangers, wanted);
    if (is_unproven(wanted))
        return place_of_unproven(strangers + BH_FOLDS_STRANGERS, wanted);
    return find(refusals->folds, BH_FOLDS_MAX, wanted);
}

static void
expect_end(struct bh_refusals *refusals, uint64_t until_ns)
{
    if (!refusals->next_ns || until_ns < refusals->next_ns)
        refusals->next_ns = until_ns;
}

uint64_t
bh_refusals_take(struct bh_core *core, const struct bh_entry *entry, bh_rc res, uint64_t times)
{
    struct bh_refusals *refusals = &core->refusals;
    struct bh_fold wanted, *fold;

    if (!is_refusal(entry, res))
        return times;
    refusals->seen += times;
    wanted = fold_of(entry, res);
    fold = place_of(refusals, &wanted);
    if (!fold)
        return times;
    if (fold->until_ns) {
        if (fold->counted + fold->written == 0) /* what is written may come back */
            fold->object = entry->obj.id;
        else if (fold->object != entry->obj.id)
            fold->object = 0;
        fold->counted += times;
        if (is_stranger(fold) && strcmp(fold->verb, wanted.verb) != 0)
            call_stranger(fold);
        if (entry->req)
            memcpy(fold->req, entry->req, sizeof fold->req);
        return 0;
    }
    *fold = wanted;
    fold->fresh = refusals->touched = true;
    fold->counted = times - 1;
    fold->object = entry->obj.id;
    fold->until_ns = bh_core_now(core) + core->config->refusal_window;
    expect_end(refusals, fold->until_ns);
    return 1;
}

static bh_rc
write_fold(struct bh_core *core, struct bh_fold *fold, struct bh_err *err)
{
    struct bh_entry entry = { .actor = fold->actor, .dec = fold->dec, .obj = fold->obj,
                              .phase = BH_PHASE_EVENT, .tenant = fold->tenant,
                              .req = fold->req, .verb = fold->verb };
    bh_rc rc;

    if (entry.obj.type[0] && fold->object)
        entry.obj.id = fold->object;
    rc = bh_core_note_counted(core, &entry, fold->res, fold->counted, err);

    if (rc != BH_OK)
        return rc;
    core->refusals.touched = true;
    fold->written += fold->counted;
    fold->counted = 0;
    return BH_OK;
}

bh_rc
bh_refusals_write(struct bh_core *core, bool all, struct bh_err *err)
{
    struct bh_refusals *refusals = &core->refusals;
    uint64_t now_ns = bh_core_now(core);
    bh_rc rc = BH_OK;

    if (!refusals->next_ns || (!all && now_ns < refusals->next_ns))
        return BH_OK;
    refusals->next_ns = 0;
    for (uint32_t i = 0; i < BH_FOLDS_ALL && rc == BH_OK; i++) {
        struct bh_fold *fold = &refusals->folds[i];

        if (!fold->until_ns)
            continue;
        if (all || fold->until_ns <= now_ns) {
            fold->until_ns = fold->counted ? now_ns + core->config->refusal_window : 0;
            if (fold->counted)
                rc = write_fold(core, fold, err);
        }
        if (fold->until_ns)
            expect_end(refusals, fold->until_ns);
    }
    return rc;
}

void
bh_refusals_committed(struct bh_refusals *refusals)
{
    for (uint32_t i = 0; refusals->touched && i < BH_FOLDS_ALL; i++) {
        refusals->folds[i].fresh = false;
        refusals->folds[i].written = 0;
    }
    refusals->touched = false;
}

void
bh_refusals_aborted(struct bh_refusals *refusals)
{
    for (uint32_t i = 0; i < BH_FOLDS_ALL; i++) {
        struct bh_fold *fold = &refusals->folds[i];

        if (fold->fresh) { /* nobody has its first: the next one is */
            *fold = (struct bh_fold){ 0 };
            continue;
        }
        fold->counted += fold->written;
        fold->written = 0;
    }
    refusals->touched = false;
    refusals->next_ns = 1; /* look again */
}
