#include "node/note.h"

#include "base/json.h"

static const char *const kind_names[BH_NOTE_KINDS] = {
    [BH_NOTE_ORDER] = "order",
    [BH_NOTE_OUTCOME] = "outcome",
    [BH_NOTE_PIECE] = "piece",
    [BH_NOTE_GONE] = "gone",
    [BH_NOTE_LEASE] = "lease",
    [BH_NOTE_FORGET_ORDER] = "forget_order",
    [BH_NOTE_FORGET_LEASE] = "forget_lease",
    [BH_NOTE_ASKED] = "asked",
    [BH_NOTE_SUSPENDED] = "suspended",
    [BH_NOTE_RESUMED] = "resumed",
    [BH_NOTE_MARK] = "mark",
    [BH_NOTE_RECEIPT] = "receipt",
    [BH_NOTE_FORGET_RECEIPT] = "forget_receipt",
    [BH_NOTE_ASIDE] = "aside",
    [BH_NOTE_BACK] = "back",
    [BH_NOTE_REACHED] = "reached",
};

static const struct bh_field piece_rows[] = {
    BH_F(struct bh_note_piece, cap_bytes, BH_FIELD_U64),
    BH_F(struct bh_note_piece, ci, BH_FIELD_U32),
    BH_F(struct bh_note_piece, ci_minor, BH_FIELD_U32),
    BH_F(struct bh_note_piece, cleared_for, BH_FIELD_U32),
    BH_F(struct bh_note_piece, context_bytes, BH_FIELD_U64),
    BH_F(struct bh_note_piece, gi, BH_FIELD_U32),
    BH_F(struct bh_note_piece, gi_minor, BH_FIELD_U32),
    BH_F(struct bh_note_piece, gpu, BH_FIELD_STR),
    BH_F(struct bh_note_piece, memory_mib, BH_FIELD_U32),
    BH_F(struct bh_note_piece, minor, BH_FIELD_U32),
    BH_F(struct bh_note_piece, partition, BH_FIELD_U64),
    BH_F(struct bh_note_piece, profile, BH_FIELD_STR),
    BH_F(struct bh_note_piece, share_flags, BH_FIELD_U32),
    BH_F(struct bh_note_piece, share_weight, BH_FIELD_U32),
    BH_F(struct bh_note_piece, start, BH_FIELD_U32),
    BH_F(struct bh_note_piece, units, BH_FIELD_U32),
    BH_F(struct bh_note_piece, uuid, BH_FIELD_STR),
};
static const struct bh_fields piece_fields
    = BH_FIELDS("note_piece", struct bh_note_piece, piece_rows);

static const struct bh_field owner_rows[] = {
    BH_F(struct bh_msg_receipt_from, job, BH_FIELD_U64),
    BH_F(struct bh_msg_receipt_from, tenant, BH_FIELD_U32),
};
static const struct bh_fields owner_fields
    = BH_FIELDS("note_owner", struct bh_msg_receipt_from, owner_rows);

static const struct bh_field gap_rows[] = {
    BH_F_ARRAY(struct bh_note_gap, from, from_count, owner_fields, BH_RECEIPT_FROM_MAX),
    BH_F(struct bh_note_gap, profile, BH_FIELD_STR),
    BH_F(struct bh_note_gap, start, BH_FIELD_U32),
};
static const struct bh_fields gap_fields = BH_FIELDS("note_gap", struct bh_note_gap, gap_rows);

static const struct bh_field note_rows[] = {
    BH_F(struct bh_note, at_ns, BH_FIELD_NS),
    BH_F(struct bh_note, begun, BH_FIELD_BOOL),
    BH_F(struct bh_note, beside, BH_FIELD_BOOL),
    BH_F(struct bh_note, boot, BH_FIELD_STR),
    BH_F(struct bh_note, boundary, BH_FIELD_U32),
    BH_F(struct bh_note, changes, BH_FIELD_U64),
    BH_F(struct bh_note, clean, BH_FIELD_BOOL),
    BH_F(struct bh_note, course, BH_FIELD_U64),
    BH_F(struct bh_note, failed, BH_FIELD_BOOL),
    BH_F(struct bh_note, gap, BH_FIELD_STRUCT, .of = &gap_fields),
    BH_F(struct bh_note, job, BH_FIELD_U64),
    BH_F_ENUM(struct bh_note, kind, kind_names, .flags = BH_FIELD_REQUIRED | BH_FIELD_ALWAYS),
    BH_F(struct bh_note, lease, BH_FIELD_U64),
    BH_F_ARRAY(struct bh_note, lent, lent_count, piece_fields, BH_WIRE_PIECES_MAX),
    BH_F(struct bh_note, message, BH_FIELD_U32),
    BH_F(struct bh_note, order, BH_FIELD_U64),
    BH_F(struct bh_note, outcome, BH_FIELD_U32),
    BH_F(struct bh_note, party, BH_FIELD_STR),
    BH_F_ARRAY(struct bh_note, pids, pid_count, bh_checkpoint_pid_fields, BH_CHECKPOINT_PIDS_MAX),
    BH_F(struct bh_note, piece, BH_FIELD_STRUCT, .of = &piece_fields),
    BH_F(struct bh_note, rc, BH_FIELD_U32),
    BH_F(struct bh_note, receipt, BH_FIELD_STRUCT, .of = &bh_receipt_fields),
    BH_F(struct bh_note, slot, BH_FIELD_U32),
    BH_F(struct bh_note, tenant, BH_FIELD_U32),
    BH_F(struct bh_note, why, BH_FIELD_STR),
};
const struct bh_fields bh_note_fields = BH_FIELDS("note", struct bh_note, note_rows);

bh_rc
bh_note_append(struct bh_journal *journal, const struct bh_note *note, struct bh_err *err)
{
    char memory[BH_JOURNAL_FRAME_MAX];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_json_encode(&text, &bh_note_fields, note);
    if (text.overflow)
        return bh_err_set(err, BH_FULL, "journal note is too long");
    return bh_journal_append(journal, text.bytes, text.length, err);
}

bh_rc
bh_note_decode(const char *payload, size_t length, struct bh_note *ret_note, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);

    return bh_json_decode(payload, length, &bh_note_fields, ret_note, arena, err);
}
