#include "node/share_slot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "model/share.h"
#include "node/job.h"
#include "node/piece.h"
#include "node/scrub.h"

/* Above all numbers of GPU instances, below BH_WHOLE_GPU. */
#define SHARE_GI UINT32_C(0xffffff00)

bool
bh_share_slot_is(const struct bh_note_piece *piece)
{
    return strchr(piece->profile, ':') != NULL;
}

bool
bh_share_slot_is_instance(const struct bh_note_piece *piece)
{
    return piece->gi < SHARE_GI;
}

uint32_t
bh_share_slot_gi(uint32_t slot)
{
    BH_ASSERT(slot < BH_GPU_SHARES_MAX);
    return SHARE_GI + slot;
}

uint32_t
bh_share_slot_others(const struct bh_node *node, const char *gpu, uint64_t but)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < node->state.piece_count; i++)
        count += node->state.pieces[i].partition != but && bh_share_slot_is(&node->state.pieces[i])
                 && strcmp(node->state.pieces[i].gpu, gpu) == 0;
    return count;
}

static bh_rc
check_size(const struct bh_node *node, const struct bh_note_piece *wanted, struct bh_err *err)
{
    const struct bh_device_gpu *gpu = bh_piece_gpu(node, wanted->gpu);

    if (wanted->start >= BH_GPU_SHARES_MAX)
        return bh_err_set(err, BH_RANGE, "a GPU has %d slots for shares, not %u",
                          BH_GPU_SHARES_MAX, wanted->start + 1);
    if (wanted->cap_bytes == 0 || wanted->cap_bytes % BH_SHARE_GRANULE_BYTES
        || wanted->share_weight == 0 || wanted->share_weight > BH_GPU_PARTS)
        return bh_err_set(err, BH_INVALID, "share %s has no whole cap or no weight",
                          wanted->profile);
    if (gpu && (wanted->cap_bytes >> 20) > gpu->memory_mib)
        return bh_err_set(err, BH_RANGE, "GPU %s has %u MiB, not %" PRIu64, wanted->gpu,
                          gpu->memory_mib, wanted->cap_bytes >> 20);
    return BH_OK;
}

bh_rc
bh_share_slot_check(const struct bh_node *node, const struct bh_note_piece *wanted, uint32_t tenant,
               struct bh_err *err)
{
    struct bh_note_piece place = *wanted;
    bh_rc rc = check_size(node, wanted, err);

    if (rc == BH_OK && bh_state_piece_at(&node->state, wanted->gpu, bh_share_slot_gi(wanted->start)))
        return bh_err_set(err, BH_CONFLICT, "slot %u of GPU %s is taken", wanted->start,
                          wanted->gpu);
    place.units = bh_piece_units(node, wanted);
    if (rc != BH_OK || bh_share_slot_others(node, wanted->gpu, wanted->partition) == 0
        || bh_mark_allows(&node->state.marks, &place, tenant))
        return rc;
    if (node->conf.scrub_required)
        return bh_err_set(err, BH_UNAVAILABLE,
                          "memory of GPU %s cannot be sampled while others share it, and "
                          "scrub_required is set", wanted->gpu);
    if (bh_scrub_driver(node) == BH_DRIVER_SCRUB_OFF)
        return bh_err_set(err, BH_UNAVAILABLE,
                          "memory of GPU %s cannot be sampled while others share it, and the "
                          "driver does not clear it", wanted->gpu);
    return BH_OK;
}

bh_rc
bh_share_slot_clear(struct bh_node *node, uint64_t partition, uint32_t tenant, struct bh_err *err)
{
    const struct bh_note_piece *piece = bh_state_piece(&node->state, partition);
    struct bh_note note = { .kind = BH_NOTE_PIECE };

    BH_ASSERT(piece);
    if (!bh_share_slot_is(piece) || piece->cleared_for == tenant)
        return BH_OK;
    note.piece = *piece;
    note.piece.cleared_for = tenant;
    return bh_state_note(&node->state, &note, err);
}

/* ---- what is open ---- */

static struct bh_share_grant *
find(const struct bh_node *node, uint64_t lease, uint64_t partition)
{
    for (uint32_t i = 0; i < node->shares.count; i++)
        if (node->shares.open[i].lease == lease && node->shares.open[i].partition == partition)
            return &node->shares.open[i];
    return NULL;
}

bh_rc
bh_share_slot_open(struct bh_node *node, const struct bh_share_grant *grant, struct bh_err *err)
{
    struct bh_share_slots *shares = &node->shares;

    if (find(node, grant->lease, grant->partition))
        return BH_OK;
    if (!shares->open)
        shares->open = calloc(BH_SHARES_MAX, sizeof *shares->open);
    if (!shares->open || shares->count == BH_SHARES_MAX)
        return bh_err_set(err, BH_FULL, "the node has %u shares open already", shares->count);
    shares->open[shares->count++] = *grant;
    bh_log(SHARE_OPENED, BH_STR("gpu", grant->gpu), BH_U64("lease", grant->lease),
           BH_U64("cap_bytes", grant->cap_bytes), BH_U64("weight", grant->weight));
    return BH_OK;
}

void
bh_share_slot_close(struct bh_node *node, uint64_t lease, uint64_t partition)
{
    struct bh_share_grant *grant = find(node, lease, partition);

    if (!grant)
        return;
    bh_log(SHARE_CLOSED, BH_STR("gpu", grant->gpu), BH_U64("lease", lease));
    *grant = node->shares.open[--node->shares.count];
}

static bool
holds(const struct bh_node *node, uint64_t lease, uint64_t partition)
{
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        for (uint32_t k = 0; job->note.lease == lease && k < job->note.lent_count; k++)
            if (job->note.lent[k].partition == partition)
                return !job->ended && !bh_job_is_suspended(job);
    }
    return false;
}

static bh_rc
open_lent(struct bh_node *node, const struct bh_note *lease, const struct bh_note_piece *lent,
          struct bh_err *err)
{
    struct bh_share_grant grant = {
        .lease = lease->lease, .partition = lent->partition, .cap_bytes = lent->cap_bytes,
        .context_bytes = lent->context_bytes, .weight = lent->share_weight,
        .flags = lent->share_flags,
    };

    memcpy(grant.gpu, lent->gpu, sizeof grant.gpu);
    return bh_share_slot_open(node, &grant, err);
}

bh_rc
bh_share_slot_sync(struct bh_node *node, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = node->shares.count; i-- > 0;) {
        const struct bh_share_grant *grant = &node->shares.open[i];

        if (!holds(node, grant->lease, grant->partition))
            bh_share_slot_close(node, grant->lease, grant->partition);
    }
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        for (uint32_t k = 0; k < job->note.lent_count && !job->ended; k++)
            if (bh_share_slot_is(&job->note.lent[k]) && !bh_job_is_suspended(job) && rc == BH_OK)
                rc = open_lent(node, &job->note, &job->note.lent[k], err);
    }
    return rc;
}

void
bh_share_slot_free(struct bh_node *node)
{
    free(node->shares.open);
    node->shares = (struct bh_share_slots){ 0 };
}
