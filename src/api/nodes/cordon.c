#include "api/nodes/cordon.h"

enum { TARGET_MAX = 119, REASON_MAX = 400 };

#define TARGET                                                                                               \
    BH_F(struct bh_cordon_request, target, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = TARGET_MAX,     \
         .doc = "a node's name, or a GPU's UUID or its beginning")
#define REASON                                                                                               \
    BH_F(struct bh_cordon_request, reason, BH_FIELD_TEXT, .max = REASON_MAX, .doc = "why, for the record")

static const struct bh_field cordon_fields[] = { REASON, TARGET };
static const struct bh_field uncordon_fields[] = {
    BH_F(struct bh_cordon_request, clear_fault, BH_FIELD_BOOL,
         .doc = "end a quarantine or any other state of health: the GPU is tested and watched, "
                "then gets work"),
    REASON,
    TARGET,
};
static const struct bh_field drain_fields[] = {
    BH_F(struct bh_cordon_request, now, BH_FIELD_BOOL,
         .doc = "what runs ends or is queued again, by its contract"),
    REASON,
    TARGET,
};

const struct bh_fields bh_cordon_request_fields =
    BH_FIELDS("cordon", struct bh_cordon_request, cordon_fields);
const struct bh_fields bh_uncordon_request_fields =
    BH_FIELDS("uncordon", struct bh_cordon_request, uncordon_fields);
const struct bh_fields bh_drain_request_fields = BH_FIELDS("drain", struct bh_cordon_request, drain_fields);

/* NULL: of another operation. */
static const struct bh_fields *
fields_of(const struct bh_call *call)
{
    switch ((int)call->op->id) {
    case BH_OP_CORDON:
        return &bh_cordon_request_fields;
    case BH_OP_UNCORDON:
        return &bh_uncordon_request_fields;
    case BH_OP_DRAIN:
        return &bh_drain_request_fields;
    default:
        return NULL;
    }
}

const char *
bh_cordon_target(struct bh_call *call)
{
    const struct bh_fields *fields = fields_of(call);
    struct bh_cordon_request request = { 0 };
    struct bh_err ignored;

    return fields && bh_call_body(call, fields, &request, &ignored) == BH_OK ? request.target : NULL;
}

bh_rc
bh_cordon_post(struct bh_call *call, struct bh_err *err)
{
    struct bh_cordon_request request = { 0 };
    struct bh_command command = { .cordon = &request };
    bh_rc rc = bh_call_body(call, fields_of(call), &request, err);

    return rc == BH_OK ? bh_call_send(call, &command, err) : rc;
}
