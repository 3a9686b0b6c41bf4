#include "daemon/refusals.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core.h"

enum { FOLDS = BH_FOLDS_MAX + BH_FOLDS_STRANGE };

/* Credentials that are nobody's (daemon/strangers.h). */
static bool
is_strange(const struct bh_fold *fold)
{
    return fold->dec.rule == BH_RULE_NOT_SHOWN && strcmp(fold->obj.type, "account") != 0;
}

/* Numbers of what whoever asks can make up, or make many of: they tell no kinds of refusal
 * apart.  Whose account or token was tried does. */
static bool
is_of_many(const struct bh_fold *fold)
{
    static const char *const types[] = { "account", "gpu", "job", "node", "token" };

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

/* Its place, or a free one; NULL: there is none. */
static struct bh_fold *
find_among(struct bh_fold *folds, uint32_t count, const struct bh_fold *wanted)
{
    struct bh_fold *free_one = NULL;

    for (uint32_t i = 0; i < count; i++) {
        struct bh_fold *fold = &folds[i];

        if (fold->until_ns && is_same(fold, wanted))
            return fold;
        if (!free_one && !fold->until_ns)
            free_one = fold;
    }
    return free_one;
}

/* Of what strangers tried the last place is for all that finds no other, and of no token. */
static struct bh_fold *
find(struct bh_refusals *refusals, struct bh_fold *wanted)
{
    struct bh_fold *found = NULL;

    if (!is_strange(wanted))
        return find_among(refusals->folds, BH_FOLDS_MAX, wanted);
    if (wanted->obj.id)
        found = find_among(refusals->folds + BH_FOLDS_MAX, BH_FOLDS_STRANGE - 1, wanted);
    if (found)
        return found;
    wanted->obj = (struct bh_record_object){ .id = 0 };
    return &refusals->folds[FOLDS - 1];
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
    fold = find(refusals, &wanted);
    if (!fold)
        return times;
    if (fold->until_ns) {
        if (fold->counted + fold->written == 0) /* what is written may come back */
            fold->object = entry->obj.id;
        else if (fold->object != entry->obj.id)
            fold->object = 0;
        fold->counted += times;
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
    for (uint32_t i = 0; i < FOLDS && rc == BH_OK; i++) {
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
    for (uint32_t i = 0; refusals->touched && i < FOLDS; i++) {
        refusals->folds[i].fresh = false;
        refusals->folds[i].written = 0;
    }
    refusals->touched = false;
}

void
bh_refusals_aborted(struct bh_refusals *refusals)
{
    for (uint32_t i = 0; i < FOLDS; i++) {
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
