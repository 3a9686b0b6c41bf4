#include "share/message.h"

static const struct bh_field gpu_fields[] = {
    BH_F(struct bh_share_gpu, cap_bytes, BH_FIELD_U64),
    BH_F(struct bh_share_gpu, context_bytes, BH_FIELD_U64),
    BH_F(struct bh_share_gpu, gpu, BH_FIELD_U32),
    BH_F(struct bh_share_gpu, memory_bytes, BH_FIELD_U64),
    BH_F(struct bh_share_gpu, uuid, BH_FIELD_STR),
};
static const struct bh_fields gpu = BH_FIELDS("gpu", struct bh_share_gpu, gpu_fields);

static const struct bh_field open_fields[] = {
    BH_F(struct bh_share_open, folder, BH_FIELD_STR),
    BH_F_ARRAY(struct bh_share_open, gpus, gpu_count, gpu, BH_SHARE_DEVICES_MAX),
    BH_F(struct bh_share_open, hard, BH_FIELD_BOOL),
    BH_F(struct bh_share_open, latency, BH_FIELD_BOOL),
    BH_F(struct bh_share_open, lease, BH_FIELD_U64),
    BH_F(struct bh_share_open, managed, BH_FIELD_U32),
    BH_F(struct bh_share_open, paused, BH_FIELD_BOOL),
    BH_F(struct bh_share_open, quantum_ns, BH_FIELD_U64),
    BH_F(struct bh_share_open, throttled, BH_FIELD_BOOL),
    BH_F(struct bh_share_open, weight, BH_FIELD_U32),
};

static const struct bh_field close_fields[] = {
    BH_F(struct bh_share_close, lease, BH_FIELD_U64),
};

static const struct bh_field overhead_fields[] = {
    BH_F(struct bh_share_overhead, bytes, BH_FIELD_U64),
    BH_F(struct bh_share_overhead, device, BH_FIELD_U32),
    BH_F(struct bh_share_overhead, lease, BH_FIELD_U64),
};

static const struct bh_field allow_fields[] = {
    BH_F(struct bh_share_allow, lease, BH_FIELD_U64),
    BH_F(struct bh_share_allow, paused, BH_FIELD_BOOL),
    BH_F(struct bh_share_allow, throttled, BH_FIELD_BOOL),
};

static const struct bh_field holder_fields[] = {
    BH_F(struct bh_share_holder, lease, BH_FIELD_U64),
    BH_F(struct bh_share_holder, pid, BH_FIELD_U32),
};

static const struct bh_field outcome_fields[] = {
    BH_F(struct bh_share_outcome, lease, BH_FIELD_U64),
    BH_F(struct bh_share_outcome, msg, BH_FIELD_STR),
    BH_F(struct bh_share_outcome, rc, BH_FIELD_U32),
};

static const struct bh_field lease_fields[] = {
    BH_F(struct bh_share_lease_state, at_ns, BH_FIELD_U64),
    BH_F(struct bh_share_lease_state, driver_mib, BH_FIELD_HEX),
    BH_F(struct bh_share_lease_state, gpu_ns, BH_FIELD_U64),
    BH_F_AS(struct bh_share_lease_state, granted_ns, "had_ns", BH_FIELD_U64),
    BH_F(struct bh_share_lease_state, lease, BH_FIELD_U64),
    BH_F(struct bh_share_lease_state, outdated, BH_FIELD_BOOL),
    BH_F(struct bh_share_lease_state, permille, BH_FIELD_U32),
    BH_F(struct bh_share_lease_state, processes, BH_FIELD_U32),
    BH_F(struct bh_share_lease_state, seen_kind, BH_FIELD_U32),
    BH_F(struct bh_share_lease_state, seen_mib, BH_FIELD_HEX),
    BH_F(struct bh_share_lease_state, stuck, BH_FIELD_BOOL),
    BH_F_AS(struct bh_share_lease_state, slice, "turn", BH_FIELD_U32),
    BH_F(struct bh_share_lease_state, used_bytes, BH_FIELD_HEX),
    BH_F(struct bh_share_lease_state, weight, BH_FIELD_U32),
};
static const struct bh_fields lease = BH_FIELDS("lease", struct bh_share_lease_state, lease_fields);

static const struct bh_field state_fields[] = {
    BH_F(struct bh_share_state, leases, BH_FIELD_LIST, .of = &lease, .max = 1024),
};

static const struct bh_field notice_fields[] = {
    BH_F(struct bh_share_notice, kind, BH_FIELD_U32),
    BH_F(struct bh_share_notice, lease, BH_FIELD_U64),
    BH_F(struct bh_share_notice, pid, BH_FIELD_U32),
};

static const struct bh_fields open_message = BH_FIELDS("open", struct bh_share_open, open_fields);
static const struct bh_fields close_message = BH_FIELDS("close", struct bh_share_close, close_fields);
static const struct bh_fields overhead_message =
    BH_FIELDS("overhead", struct bh_share_overhead, overhead_fields);
static const struct bh_fields allow_message = BH_FIELDS("allow", struct bh_share_allow, allow_fields);
static const struct bh_fields holder_message = BH_FIELDS("holder", struct bh_share_holder, holder_fields);
static const struct bh_fields outcome_message = BH_FIELDS("outcome", struct bh_share_outcome, outcome_fields);
static const struct bh_fields state_message = BH_FIELDS("state", struct bh_share_state, state_fields);
static const struct bh_fields notice_message = BH_FIELDS("notice", struct bh_share_notice, notice_fields);

const struct bh_fields *
bh_share_message_fields(uint32_t number)
{
    switch (number) {
    case BH_SHARE_MSG_OPEN:
        return &open_message;
    case BH_SHARE_MSG_CLOSE:
        return &close_message;
    case BH_SHARE_MSG_OVERHEAD:
        return &overhead_message;
    case BH_SHARE_MSG_ALLOW:
        return &allow_message;
    case BH_SHARE_MSG_HOLDER:
        return &holder_message;
    case BH_SHARE_MSG_OUTCOME:
        return &outcome_message;
    case BH_SHARE_MSG_STATE:
        return &state_message;
    case BH_SHARE_MSG_NOTICE:
        return &notice_message;
    default:
        return NULL;
    }
}
