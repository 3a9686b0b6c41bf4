#include "audit/verify.h"

#include <string.h>

#include "base/num.h"

void
bh_audit_verifier_init(struct bh_audit_verifier *verifier, const struct bh_crypto_ops *crypto,
                       const struct bh_note_key *key)
{
    memset(verifier, 0, sizeof *verifier);
    bh_audit_orders_init(&verifier->orders);
    verifier->crypto = crypto;
    verifier->key = *key;
}

/* Remember that records first .. last are bad; err says why. */
static bh_rc
verify_fault(struct bh_audit_verifier *verifier, uint64_t first, uint64_t last, struct bh_err *err)
{
    verifier->faulty = true;
    verifier->bad_first = first;
    verifier->bad_last = last;
    return err->rc = BH_CONFLICT;
}

static bh_rc
verify_check_hash(const struct bh_audit_verifier *verifier, const uint8_t hash[32],
                  const uint8_t *stored_hash, struct bh_err *err)
{
    if (stored_hash && memcmp(hash, stored_hash, 32) != 0)
        return bh_err_set(err, BH_CONFLICT, "its bytes do not have the hash stored beside it");
    return BH_OK;
}

/* What a record must have in common with those before it. */
static bh_rc
verify_check_position(struct bh_audit_verifier *verifier, const struct bh_record *record, struct bh_err *err)
{
    if (record->seq != verifier->frontier.size)
        return bh_err_set(err, BH_CONFLICT, "it says it is record %" PRIu64, record->seq);
    if (record->ts_ns < verifier->last_ts_ns)
        return bh_err_set(err, BH_CONFLICT, "its time is before that of the record before it");
    if (record->boot < verifier->last_boot)
        return bh_err_set(err, BH_CONFLICT, "its boot %" PRIu32 " comes after boot %" PRIu32, record->boot,
                          verifier->last_boot);
    if (record->version < verifier->last_version)
        return bh_err_set(err, BH_CONFLICT, "its version %" PRIu32 " comes after version %" PRIu32,
                          record->version, verifier->last_version);
    return bh_audit_orders_read(&verifier->orders, record, err);
}

/* A record that says how far the log was pruned. */
static bh_rc
verify_read_minimum(struct bh_audit_verifier *verifier, const struct bh_record *record, struct bh_err *err)
{
    if (!record->verb || strcmp(record->verb, BH_RECORD_PRUNE) != 0 || !record->dec.allow
        || strcmp(record->obj.type, BH_RECORD_LOG) != 0)
        return BH_OK;
    if (record->obj.id > record->seq)
        return bh_err_set(err, BH_CONFLICT, "it prunes record %" PRIu64 ", which came later",
                          record->obj.id - 1);
    if (record->obj.id > verifier->pruned_to)
        verifier->pruned_to = record->obj.id;
    return BH_OK;
}

static bh_rc
verify_refuse_after_fault(const struct bh_audit_verifier *verifier, struct bh_err *err)
{
    return bh_err_set(err, BH_CONFLICT, "record %" PRIu64 " was bad already", verifier->bad_first);
}

/* Kept checkpoints of the records so far. */
static bh_rc
verify_check_trusted(struct bh_audit_verifier *verifier, struct bh_err *err)
{
    const struct bh_merkle_frontier *tree = &verifier->frontier;
    uint8_t root[32];

    for (uint32_t i = 0; i < verifier->kept.count; i++) {
        const struct bh_checkpoint *kept = &verifier->kept.checkpoints[i];

        if (kept->size != tree->size)
            continue;
        bh_merkle_frontier_root(tree, verifier->crypto, root);
        if (memcmp(root, kept->root, sizeof root) == 0)
            continue;
        bh_err_set(err, BH_CONFLICT,
                   "the first %" PRIu64 " records are not those that a kept checkpoint was signed over",
                   kept->size);
        return verify_fault(verifier, 0, kept->size ? kept->size - 1 : 0, err);
    }
    return BH_OK;
}

/* Another leaf, with what was kept of the tree before the first and behind each. */
static bh_rc
verify_add(struct bh_audit_verifier *verifier, const uint8_t hash[32], struct bh_err *err)
{
    bh_rc rc = verifier->frontier.size == 0 ? verify_check_trusted(verifier, err) : BH_OK;

    if (rc != BH_OK)
        return rc;
    bh_merkle_frontier_add(&verifier->frontier, verifier->crypto, hash);
    return verify_check_trusted(verifier, err);
}

static bh_rc
verify_read_record(struct bh_audit_verifier *verifier, const char *leaf, size_t length,
                   struct bh_record *ret_record, struct bh_err *err)
{
    bh_rc rc = bh_record_decode(leaf, length, verifier->scratch, ret_record, err);

    if (rc != BH_OK)
        return rc;
    rc = verify_check_position(verifier, ret_record, err);
    if (rc != BH_OK)
        return rc;
    rc = verify_read_minimum(verifier, ret_record, err);
    if (rc != BH_OK)
        return rc;
    return verifier->claims ? bh_claims_read(verifier->claims, ret_record, err) : BH_OK;
}

bh_rc
bh_audit_verifier_record(struct bh_audit_verifier *verifier, const char *leaf, size_t length,
                         const uint8_t *stored_hash, struct bh_err *err)
{
    uint64_t number = verifier->frontier.size;
    struct bh_record record;
    uint8_t hash[32];
    bh_rc rc;

    if (verifier->faulty)
        return verify_refuse_after_fault(verifier, err);
    bh_merkle_leaf(verifier->crypto, leaf, length, hash);
    rc = verify_check_hash(verifier, hash, stored_hash, err);
    if (rc == BH_OK)
        rc = verify_read_record(verifier, leaf, length, &record, err);
    if (rc == BH_FULL)
        return rc;
    if (rc != BH_OK) {
        bh_err_wrap(err, "record %" PRIu64, number);
        return verify_fault(verifier, number, number, err);
    }
    verifier->last_ts_ns = record.ts_ns;
    verifier->last_boot = record.boot;
    verifier->last_version = record.version;
    return verify_add(verifier, hash, err);
}

bh_rc
bh_audit_verifier_hash(struct bh_audit_verifier *verifier, const uint8_t hash[32], struct bh_err *err)
{
    if (verifier->faulty)
        return verify_refuse_after_fault(verifier, err);
    bh_audit_orders_skip(&verifier->orders, verifier->frontier.size);
    if (verifier->claims)
        bh_claims_skip(verifier->claims, verifier->frontier.size);
    verifier->hashes_to = verifier->frontier.size + 1;
    return verify_add(verifier, hash, err);
}

bool
bh_audit_verifier_lacks(const struct bh_audit_verifier *verifier)
{
    return verifier->hashes_to > verifier->pruned_to;
}

/* The root does not fit: the change lies behind the last checkpoint that held. */
static bh_rc
verify_root_differs(struct bh_audit_verifier *verifier, struct bh_err *err)
{
    uint64_t first = verifier->sealed, last = verifier->frontier.size - 1;

    bh_err_set(err, BH_CONFLICT,
               "records %" PRIu64 " to %" PRIu64
               ": one or more of them are not what the checkpoint of %" PRIu64 " records signed",
               first, last, verifier->frontier.size);
    return verify_fault(verifier, first, last, err);
}

bh_rc
bh_audit_verifier_checkpoint(struct bh_audit_verifier *verifier, const char *note, struct bh_err *err)
{
    uint64_t size = verifier->frontier.size;
    struct bh_checkpoint checkpoint;
    uint8_t root[32];
    bh_rc rc;

    if (verifier->faulty)
        return verify_refuse_after_fault(verifier, err);
    rc = bh_checkpoint_open(verifier->crypto, &verifier->key, note, &checkpoint, err);
    if (rc == BH_OK && checkpoint.size != size)
        rc = bh_err_set(err, BH_CONFLICT, "it covers %" PRIu64 " records", checkpoint.size);
    if (rc != BH_OK) {
        bh_err_wrap(err, "checkpoint of %" PRIu64 " records", size);
        return verify_fault(verifier, verifier->sealed, size ? size - 1 : 0, err);
    }
    bh_merkle_frontier_root(&verifier->frontier, verifier->crypto, root);
    if (memcmp(root, checkpoint.root, sizeof root) != 0)
        return verify_root_differs(verifier, err);
    verifier->sealed = size;
    verifier->checkpoints++;
    return BH_OK;
}

bh_rc
bh_audit_verifier_reaches(struct bh_audit_verifier *verifier, uint64_t size, struct bh_err *err)
{
    for (uint32_t i = 0; i < verifier->kept.count; i++) {
        uint64_t wanted = verifier->kept.checkpoints[i].size;

        if (wanted <= size)
            continue;
        bh_err_set(err, BH_CONFLICT,
                   "records %" PRIu64 " to %" PRIu64 " are missing: a kept checkpoint was signed over them",
                   size, wanted - 1);
        return verify_fault(verifier, size, wanted - 1, err);
    }
    return BH_OK;
}

bh_rc
bh_audit_verifier_end(struct bh_audit_verifier *verifier, uint64_t expected, struct bh_err *err)
{
    uint64_t size = verifier->frontier.size;

    if (verifier->faulty)
        return verify_refuse_after_fault(verifier, err);
    bh_audit_orders_close(&verifier->orders);
    if (bh_audit_verifier_lacks(verifier)) {
        bh_err_set(err, BH_CONFLICT,
                   "the bytes of records up to %" PRIu64
                   " are gone, and the log does not say that they were pruned",
                   verifier->hashes_to - 1);
        return verify_fault(verifier, verifier->pruned_to, verifier->hashes_to - 1, err);
    }
    if (size >= expected)
        return bh_audit_verifier_reaches(verifier, size, err);
    bh_err_set(err, BH_CONFLICT, "records %" PRIu64 " to %" PRIu64 " are missing at the end of the journal",
               size, expected - 1);
    return verify_fault(verifier, size, expected - 1, err);
}
