#include "audit/verify.h"

#include <string.h>

#include "base/num.h"

void
bh_audit_verifier_init(struct bh_audit_verifier *verifier,
                       const struct bh_crypto_ops *crypto, const struct bh_note_key *key)
{
    memset(verifier, 0, sizeof *verifier);
    bh_audit_orders_init(&verifier->orders);
    verifier->crypto = crypto;
    verifier->key = *key;
}

/* Remember that records first .. last are bad; err says why. */
static bh_rc
fault(struct bh_audit_verifier *verifier, uint64_t first, uint64_t last, struct bh_err *err)
{
    verifier->faulty = true;
    verifier->bad_first = first;
    verifier->bad_last = last;
    return err->rc = BH_CONFLICT;
}

static bh_rc
check_hash(const struct bh_audit_verifier *verifier, const uint8_t hash[32],
           const uint8_t *stored_hash, struct bh_err *err)
{
    (void)verifier;
    if (stored_hash && memcmp(hash, stored_hash, 32) != 0)
        return bh_err_set(err, BH_CONFLICT,
                          "its bytes do not have the hash stored beside it");
    return BH_OK;
}

/* What a record must have in common with those before it. */
static bh_rc
check_place(struct bh_audit_verifier *verifier, const struct bh_record *record,
            struct bh_err *err)
{
    if (record->seq != verifier->frontier.size)
        return bh_err_set(err, BH_CONFLICT, "it says it is record %" PRIu64, record->seq);
    if (record->ts_ns < verifier->last_ts_ns)
        return bh_err_set(err, BH_CONFLICT,
                          "its time is before that of the record before it");
    if (record->boot < verifier->last_boot)
        return bh_err_set(err, BH_CONFLICT,
                          "its boot %" PRIu32 " comes after boot %" PRIu32, record->boot,
                          verifier->last_boot);
    return bh_audit_orders_take(&verifier->orders, record, err);
}

static bh_rc
refuse_after_fault(const struct bh_audit_verifier *verifier, struct bh_err *err)
{
    return bh_err_set(err, BH_CONFLICT, "record %" PRIu64 " was bad already",
                      verifier->bad_first);
}

bh_rc
bh_audit_verifier_record(struct bh_audit_verifier *verifier, const char *leaf,
                         size_t length, const uint8_t *stored_hash, struct bh_err *err)
{
    uint64_t number = verifier->frontier.size;
    struct bh_record record;
    uint8_t hash[32];
    bh_rc rc;

    if (verifier->faulty)
        return refuse_after_fault(verifier, err);
    bh_merkle_leaf(verifier->crypto, leaf, length, hash);
    rc = check_hash(verifier, hash, stored_hash, err);
    if (rc == BH_OK)
        rc = bh_record_decode(leaf, length, verifier->scratch, &record, err);
    if (rc == BH_OK)
        rc = check_place(verifier, &record, err);
    if (rc != BH_OK) {
        bh_err_wrap(err, "record %" PRIu64, number);
        return fault(verifier, number, number, err);
    }
    verifier->last_ts_ns = record.ts_ns;
    verifier->last_boot = record.boot;
    bh_merkle_frontier_add(&verifier->frontier, verifier->crypto, hash);
    return BH_OK;
}

/* The root does not fit: the change lies behind the last checkpoint that held. */
static bh_rc
root_differs(struct bh_audit_verifier *verifier, struct bh_err *err)
{
    uint64_t first = verifier->sealed, last = verifier->frontier.size - 1;

    bh_err_set(err, BH_CONFLICT,
               "records %" PRIu64 " to %" PRIu64
               ": one or more of them are not what the checkpoint of %" PRIu64
               " records signed",
               first, last, verifier->frontier.size);
    return fault(verifier, first, last, err);
}

bh_rc
bh_audit_verifier_checkpoint(struct bh_audit_verifier *verifier, const char *note,
                             struct bh_err *err)
{
    uint64_t size = verifier->frontier.size;
    struct bh_checkpoint checkpoint;
    uint8_t root[32];
    bh_rc rc;

    if (verifier->faulty)
        return refuse_after_fault(verifier, err);
    rc = bh_checkpoint_open(verifier->crypto, &verifier->key, note, &checkpoint, err);
    if (rc == BH_OK && checkpoint.size != size)
        rc = bh_err_set(err, BH_CONFLICT, "it covers %" PRIu64 " records", checkpoint.size);
    if (rc != BH_OK) {
        bh_err_wrap(err, "checkpoint of %" PRIu64 " records", size);
        return fault(verifier, verifier->sealed, size ? size - 1 : 0, err);
    }
    bh_merkle_frontier_root(&verifier->frontier, verifier->crypto, root);
    if (memcmp(root, checkpoint.root, sizeof root) != 0)
        return root_differs(verifier, err);
    verifier->sealed = size;
    verifier->checkpoints++;
    return BH_OK;
}

bh_rc
bh_audit_verifier_end(struct bh_audit_verifier *verifier, uint64_t expected,
                      struct bh_err *err)
{
    uint64_t size = verifier->frontier.size;

    if (verifier->faulty)
        return refuse_after_fault(verifier, err);
    bh_audit_orders_close(&verifier->orders);
    if (size >= expected)
        return BH_OK;
    bh_err_set(err, BH_CONFLICT,
               "records %" PRIu64 " to %" PRIu64 " are missing at the end of the journal",
               size, expected - 1);
    return fault(verifier, size, expected - 1, err);
}
