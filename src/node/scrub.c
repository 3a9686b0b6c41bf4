#include "node/scrub.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/utf8.h"
#include "node/path.h"
#include "node/scrub_run.h"
#include "node/share_slot.h"

enum { TRIES_MAX = 2, LEAST_PERCENT = 80 };

/* ---- what the driver itself does ---- */

static const char *const switches[] = { "RMDisableScrubOnFree", "RMDisableFastScrubber",
                                        "RMDisableAsyncSysmemScrub" };

/* Whether a line of registry words, "A=1;B=0x2", sets that one to other than 0. */
static bool
is_set(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = text; (at = strstr(at, name)); at += length) {
        if (at[length] == '=' && strtoul(at + length + 1, NULL, 0) != 0)
            return true;
    }
    return false;
}

enum bh_driver_scrub
bh_scrub_driver(const struct bh_node *node)
{
    char path[BH_NODE_PATH_MAX];
    enum bh_driver_scrub found = BH_DRIVER_SCRUB_UNKNOWN;
    struct bh_err ignored;
    struct bh_buf text;

    bh_path_format(path, sizeof path, "%s/driver/nvidia/params", node->conf.proc_root);
    bh_buf_init(&text, 64 << 10);
    if (bh_file_read(path, (64 << 10) - 1, &text, &ignored) == BH_OK && text.length > 0) {
        found = BH_DRIVER_SCRUB_ON;
        for (size_t i = 0; i < BH_COUNT(switches); i++) {
            if (is_set(bh_buf_text(&text), switches[i]))
                found = BH_DRIVER_SCRUB_OFF;
        }
    }
    bh_buf_fini(&text);
    return found;
}

bh_rc
bh_scrub_driver_check(const struct bh_node *node, struct bh_err *err)
{
    if (node->conf.driver_scrub_off || bh_scrub_driver(node) != BH_DRIVER_SCRUB_OFF)
        return BH_OK;
    bh_err_set(err, BH_DENIED, "the driver's own clearing of freed memory is switched off");
    return bh_err_hint(err,
                       "take RMDisableScrubOnFree and its kin out of NVreg_RegistryDwords, "
                       "or set driver_scrub_off = 1 in node.conf");
}

/* ---- is it due? ---- */

bool
bh_scrub_is_due(const struct bh_node *node, const struct bh_scrub_wish *wish)
{
    const struct bh_note_piece *piece = bh_state_piece(&node->state, wish->partition);

    return piece && !bh_mark_allows(&node->state.marks, piece, wish->tenant);
}

bh_rc
bh_scrub_check(const struct bh_node *node, const struct bh_note *lease, struct bh_err *err)
{
    for (uint32_t i = 0; i < lease->lent_count; i++) {
        if (bh_share_slot_is(&lease->lent[i]) ? lease->lent[i].cleared_for != lease->tenant
                                         : !bh_mark_allows(&node->state.marks, &lease->lent[i],
                                                           lease->tenant))
            return bh_err_set(err, BH_CONFLICT,
                              "memory of piece %" PRIu64
                              " was another tenant's and has no receipt",
                              lease->lent[i].partition);
    }
    return BH_OK;
}

/* ---- doing it ---- */

/* Where the library is not, nothing can be filled: then the instance that was made anew,
 * and the driver's own scrubbing, have to do, if node.conf lets them. */
static bh_rc
accept_unsampled(const struct bh_node *node, struct bh_msg_receipt *receipt,
                 const char *why, struct bh_err *err)
{
    bool whole = strcmp(receipt->profile, "whole") == 0;

    receipt->method = whole ? BH_SCRUB_NONE : BH_SCRUB_RECREATE;
    receipt->result = BH_SCRUB_FAILED;
    snprintf(receipt->why, sizeof receipt->why, "%.199s", why);
    if (node->conf.scrub_required)
        return bh_err_set(err, BH_UNAVAILABLE,
                          "not sampled, and scrub_required is set: %.120s", why);
    if (receipt->driver == BH_DRIVER_SCRUB_OFF)
        return bh_err_set(err, BH_UNAVAILABLE,
                          "not sampled, and the driver does not clear memory: %.120s", why);
    receipt->result = BH_SCRUB_UNSAMPLED;
    return BH_OK;
}

/* What the helper says is held against what the piece is. */
static bh_rc
judge(const struct bh_note_piece *piece, const struct bh_scrub_report *report,
      struct bh_msg_receipt *receipt, struct bh_err *err)
{
    uint64_t least = ((uint64_t)piece->memory_mib << 20) / 100 * LEAST_PERCENT;

    receipt->method = BH_SCRUB_FILL;
    receipt->bytes = report->bytes;
    receipt->samples = report->samples;
    receipt->residue = report->residue;
    receipt->unfilled = report->unfilled;
    if (report->end == BH_SCRUB_END_REFUSED)
        return bh_err_set(err, BH_IO, "%s", report->why);
    if (report->end == BH_SCRUB_END_UNFILLED || report->unfilled > 0)
        return bh_err_set(err, BH_IO,
                          "%" PRIu64 " of %" PRIu64 " samples do not read back as "
                          "they were filled",
                          report->unfilled, report->samples);
    if (strcmp(report->uuid, piece->uuid) != 0)
        return bh_err_set(err, BH_IO, "the helper filled %s and not %s", report->uuid,
                          piece->uuid);
    if (report->bytes < least || report->samples == 0)
        return bh_err_set(err, BH_IO, "the helper filled %" PRIu64 " bytes only",
                          report->bytes);
    receipt->result = BH_SCRUB_CLEAN;
    return BH_OK;
}

static bh_rc
fill(struct bh_node *node, const struct bh_note_piece *piece,
     struct bh_msg_receipt *receipt, struct bh_err *err)
{
    struct bh_scrub_report report;
    char why[200];
    bh_rc rc = BH_OK;

    receipt->beside = bh_share_slot_is(piece)
                      && bh_share_slot_others(node, piece->gpu, piece->partition) > 0;
    if (receipt->beside)
        return accept_unsampled(node, receipt, "others share the GPU: contexts were destroyed, and "
                                               "the driver clears what it gives out", err);
    if (!bh_scrub_has_helper(node, why, sizeof why))
        return accept_unsampled(node, receipt, why, err);
    for (receipt->tries = 1; receipt->tries <= TRIES_MAX; receipt->tries++) {
        receipt->result = BH_SCRUB_FAILED;
        rc = bh_scrub_run(node, piece, &report, err);
        if (rc == BH_OK && report.end == BH_SCRUB_END_NO_LIBRARY)
            return accept_unsampled(node, receipt, report.why, err);
        if (rc == BH_OK)
            rc = judge(piece, &report, receipt, err);
        if (rc == BH_OK || rc == BH_TIMEOUT || receipt->tries == TRIES_MAX)
            break;
    }
    receipt->method = BH_SCRUB_FILL;
    if (rc != BH_OK)
        snprintf(receipt->why, sizeof receipt->why, "%.199s", err->msg);
    bh_utf8_scrub(receipt->why);
    return rc;
}

static void
begin_receipt(const struct bh_node *node, const struct bh_scrub_wish *wish,
              const struct bh_note_piece *piece, struct bh_msg_receipt *receipt)
{
    *receipt = (struct bh_msg_receipt){
        .order = wish->order,
        .partition = wish->partition,
        .tenant = wish->tenant,
        .job = wish->job,
        .start = piece->start,
        .begun_ns = bh_time_now(),
        .driver = bh_scrub_driver(node),
        .result = BH_SCRUB_FAILED,
        .memory_bytes = (uint64_t)piece->memory_mib << 20,
    };
    snprintf(receipt->gpu, sizeof receipt->gpu, "%s", piece->gpu);
    snprintf(receipt->uuid, sizeof receipt->uuid, "%s", piece->uuid);
    snprintf(receipt->profile, sizeof receipt->profile, "%s", piece->profile);
    bh_mark_list(&node->state.marks, piece, receipt);
}

static void
log_receipt(const struct bh_msg_receipt *receipt)
{
    if (receipt->result == BH_SCRUB_FAILED)
        bh_log(SCRUB_FAILED, BH_STR("gpu", receipt->gpu),
               BH_U64("piece", receipt->partition), BH_STR("why", receipt->why));
    else
        bh_log(SCRUBBED, BH_STR("gpu", receipt->gpu), BH_U64("piece", receipt->partition),
               BH_STR("method", bh_scrub_method_names[receipt->method]),
               BH_U64("bytes", receipt->bytes), BH_U64("residue", receipt->residue));
}

static bh_rc
scrub(struct bh_node *node, const struct bh_scrub_wish *wish, struct bh_err *err)
{
    const struct bh_note_piece *piece = bh_state_piece(&node->state, wish->partition);
    struct bh_note note = { .kind = BH_NOTE_RECEIPT };
    struct bh_err refused;
    bh_rc rc, noted;

    BH_ASSERT(piece);
    note.piece = *piece;
    begin_receipt(node, wish, &note.piece, &note.receipt);
    rc = fill(node, &note.piece, &note.receipt, err);
    note.receipt.ended_ns = bh_time_now();
    noted = bh_state_note(&node->state, &note, &refused);
    log_receipt(&note.receipt);
    if (noted == BH_OK)
        bh_node_send(node, BH_MSG_RECEIPT, &note.receipt);
    if (rc == BH_OK && noted != BH_OK)
        *err = refused;
    if (rc != BH_OK || noted != BH_OK)
        return bh_err_wrap(err, "scrub of piece %" PRIu64 " on GPU %s", wish->partition,
                           note.piece.gpu);
    return BH_OK;
}

bh_rc
bh_scrub_before(struct bh_node *node, const struct bh_scrub_wish *wish, struct bh_err *err)
{
    return bh_scrub_is_due(node, wish) ? scrub(node, wish, err) : BH_OK;
}

bh_rc
bh_scrub_settle(struct bh_node *node, const struct bh_note *lease, uint64_t order,
                struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < lease->lent_count && rc == BH_OK; i++) {
        struct bh_scrub_wish wish = { order, lease->lent[i].partition, lease->tenant,
                                      lease->job };

        if (!bh_share_slot_is(&lease->lent[i])
            && bh_mark_is_unknown(&node->state.marks, &lease->lent[i], lease->tenant))
            rc = bh_scrub_before(node, &wish, err);
    }
    return rc == BH_OK ? bh_scrub_check(node, lease, err) : rc;
}

bh_rc
bh_scrub_again(struct bh_node *node, const struct bh_scrub_wish *wish, bool *ret_unclean,
               struct bh_err *err)
{
    const struct bh_note_piece *piece = bh_state_piece(&node->state, wish->partition);
    bh_rc rc = BH_OK;

    if (piece && bh_mark_failed(&node->state.marks, piece)
        && (!bh_share_slot_is(piece) || bh_share_slot_others(node, piece->gpu, piece->partition) == 0))
        rc = scrub(node, wish, err);
    *ret_unclean = rc != BH_OK;
    return rc;
}

/* ---- telling the daemon ---- */

void
bh_scrub_repeat(struct bh_node *node)
{
    for (uint32_t i = 0; i < node->state.receipt_count; i++)
        bh_node_send(node, BH_MSG_RECEIPT, &node->state.receipts[i]);
}

void
bh_scrub_acknowledge(struct bh_node *node, uint64_t order)
{
    struct bh_note note = { .kind = BH_NOTE_FORGET_RECEIPT, .order = order };
    struct bh_err err;

    if (bh_state_note(&node->state, &note, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("order", order), BH_ERRLOG(&err));
}
