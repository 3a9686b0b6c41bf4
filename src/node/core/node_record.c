#include "node/core/node_record.h"

#include "base/json.h"

static const char *const kind_names[BH_NODE_RECORD_KINDS] = {
    [BH_NODE_RECORD_ORDER] = "order",
    [BH_NODE_RECORD_OUTCOME] = "outcome",
    [BH_NODE_RECORD_PARTITION] = "piece",
    [BH_NODE_RECORD_GONE] = "gone",
    [BH_NODE_RECORD_LEASE] = "lease",
    [BH_NODE_RECORD_FORGET_ORDER] = "forget_order",
    [BH_NODE_RECORD_FORGET_LEASE] = "forget_lease",
    [BH_NODE_RECORD_STOPPING] = "asked",
    [BH_NODE_RECORD_SUSPENDED] = "suspended",
    [BH_NODE_RECORD_RESUMED] = "resumed",
    [BH_NODE_RECORD_OWNER] = "mark",
    [BH_NODE_RECORD_RECEIPT] = "receipt",
    [BH_NODE_RECORD_FORGET_RECEIPT] = "forget_receipt",
    [BH_NODE_RECORD_CHECKPOINTED] = "aside",
    [BH_NODE_RECORD_RESTORED] = "back",
    [BH_NODE_RECORD_REACHED] = "reached",
};

static const struct bh_field partition_rows[] = {
    BH_F(struct bh_node_partition, cap_bytes, BH_FIELD_U64),
    BH_F(struct bh_node_partition, ci, BH_FIELD_U32),
    BH_F(struct bh_node_partition, ci_minor, BH_FIELD_U32),
    BH_F(struct bh_node_partition, cleared_for, BH_FIELD_U32),
    BH_F(struct bh_node_partition, context_bytes, BH_FIELD_U64),
    BH_F(struct bh_node_partition, gi, BH_FIELD_U32),
    BH_F(struct bh_node_partition, gi_minor, BH_FIELD_U32),
    BH_F(struct bh_node_partition, gpu, BH_FIELD_STR),
    BH_F(struct bh_node_partition, memory_mib, BH_FIELD_U32),
    BH_F(struct bh_node_partition, minor, BH_FIELD_U32),
    BH_F(struct bh_node_partition, partition, BH_FIELD_U64),
    BH_F(struct bh_node_partition, profile, BH_FIELD_STR),
    BH_F(struct bh_node_partition, share_flags, BH_FIELD_U32),
    BH_F(struct bh_node_partition, share_weight, BH_FIELD_U32),
    BH_F(struct bh_node_partition, start, BH_FIELD_U32),
    BH_F(struct bh_node_partition, units, BH_FIELD_U32),
    BH_F(struct bh_node_partition, uuid, BH_FIELD_STR),
};
static const struct bh_fields partition_fields =
    BH_FIELDS("note_piece", struct bh_node_partition, partition_rows);

static const struct bh_field owner_rows[] = {
    BH_F(struct bh_msg_receipt_from, job, BH_FIELD_U64),
    BH_F(struct bh_msg_receipt_from, tenant, BH_FIELD_U32),
};
static const struct bh_fields owner_fields = BH_FIELDS("note_owner", struct bh_msg_receipt_from, owner_rows);

static const struct bh_field gap_rows[] = {
    BH_F_ARRAY(struct bh_ownership_gap, from, from_count, owner_fields, BH_RECEIPT_FROM_MAX),
    BH_F(struct bh_ownership_gap, profile, BH_FIELD_STR),
    BH_F(struct bh_ownership_gap, start, BH_FIELD_U32),
};
static const struct bh_fields gap_fields = BH_FIELDS("note_gap", struct bh_ownership_gap, gap_rows);

static const struct bh_field record_rows[] = {
    BH_F(struct bh_node_record, at_ns, BH_FIELD_NS),
    BH_F(struct bh_node_record, begun, BH_FIELD_BOOL),
    BH_F(struct bh_node_record, beside, BH_FIELD_BOOL),
    BH_F(struct bh_node_record, boot, BH_FIELD_STR),
    BH_F(struct bh_node_record, boundary, BH_FIELD_U32),
    BH_F(struct bh_node_record, changes, BH_FIELD_U64),
    BH_F(struct bh_node_record, clean, BH_FIELD_BOOL),
    BH_F_AS(struct bh_node_record, generation, "course", BH_FIELD_U64),
    BH_F(struct bh_node_record, failed, BH_FIELD_BOOL),
    BH_F(struct bh_node_record, gap, BH_FIELD_STRUCT, .of = &gap_fields),
    BH_F(struct bh_node_record, job, BH_FIELD_U64),
    BH_F_ENUM(struct bh_node_record, kind, kind_names, .flags = BH_FIELD_REQUIRED | BH_FIELD_ALWAYS),
    BH_F(struct bh_node_record, lease, BH_FIELD_U64),
    BH_F_ARRAY(struct bh_node_record, lent, lent_count, partition_fields, BH_WIRE_PARTITIONS_MAX),
    BH_F(struct bh_node_record, message, BH_FIELD_U32),
    BH_F(struct bh_node_record, order, BH_FIELD_U64),
    BH_F(struct bh_node_record, outcome, BH_FIELD_U32),
    BH_F(struct bh_node_record, party, BH_FIELD_STR),
    BH_F_ARRAY(struct bh_node_record, pids, pid_count, bh_checkpoint_pid_fields, BH_CHECKPOINT_PIDS_MAX),
    BH_F_AS(struct bh_node_record, partition, "piece", BH_FIELD_STRUCT, .of = &partition_fields),
    BH_F(struct bh_node_record, rc, BH_FIELD_U32),
    BH_F(struct bh_node_record, receipt, BH_FIELD_STRUCT, .of = &bh_receipt_fields),
    BH_F(struct bh_node_record, slot, BH_FIELD_U32),
    BH_F(struct bh_node_record, tenant, BH_FIELD_U32),
    BH_F(struct bh_node_record, why, BH_FIELD_STR),
};
static const struct bh_fields node_record_fields = BH_FIELDS("note", struct bh_node_record, record_rows);

bh_rc
bh_node_record_append(struct bh_order_journal *journal, const struct bh_node_record *record,
                      struct bh_err *err)
{
    char memory[BH_JOURNAL_FRAME_MAX];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_json_encode(&text, &node_record_fields, record);
    if (text.overflow)
        return bh_err_set(err, BH_FULL, "journal note is too long");
    return bh_order_journal_append(journal, text.bytes, text.length, err);
}

bh_rc
bh_node_record_decode(const char *payload, size_t length, struct bh_node_record *ret_record,
                      struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);

    return bh_json_decode(payload, length, &node_record_fields, ret_record, arena, err);
}
