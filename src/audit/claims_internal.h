#ifndef BH_AUDIT_CLAIMS_INTERNAL_H
#define BH_AUDIT_CLAIMS_INTERNAL_H

#include "audit/binding.h"
#include "audit/claims.h"
#include "audit/job_status.h"

/* Shared by the parts of claims alone. */

/* What is known by a key of 32 bytes; every claim begins so. */
struct claim {
    uint8_t key[32];
    uint64_t record;             /* that says it */
    bool seen;                   /* a row of it was given */
};

struct name_claim {
    struct claim claim;
    uint8_t commitment[BH_BINDING_BYTES];
    bool bound, erased;
    uint64_t erased_by;
    const char *name;            /* as a row had it that fits; NULL: none did yet */
};

struct job_claim {
    struct claim claim;
    bool submitted;              /* the record of it is there; else it was pruned */
    bool stated;                 /* `state` is known: since records of version 3 */
    uint32_t tenant, principal, sku, count;
    uint64_t submitted_ns, started_ns, stated_by;
    uint8_t spec[32];
    struct bh_job_status state;
};

struct text_claim {
    struct claim claim;
    uint32_t tenant;
};

/* A tenant whose keys were destroyed, the last time by `claim.record`. */
struct shred_claim {
    struct claim claim;
};

/* Open addressing; a slot is empty or points to what begins with a struct claim. */
struct claim_table {
    void **slots;
    size_t room, count;          /* room: 0, or a power of two */
};

enum { BH_CLAIMS_TOLD_MAX = 20, BH_CLAIMS_TOLD_BYTES = 8192 };

struct bh_claims {
    struct bh_arena *arena;
    const struct bh_crypto_ops *crypto;
    struct claim_table names, jobs, texts, shreds;
    uint64_t size, last_ts_ns;   /* records so far, and the time of the last */
    uint64_t pruned_to;          /* records below it are hashes alone */
    uint64_t first_job;          /* the lowest that a record submitted; UINT64_MAX: none */
    uint64_t bindings;
    struct bh_claims_result result;
    char differing_text[BH_CLAIMS_TOLD_BYTES], erased_text[BH_CLAIMS_TOLD_BYTES];
    struct bh_buf differing, erased;
};

/* A key from up to three numbers. */
void bh_claim_key(uint8_t ret_key[32], uint64_t first, uint64_t second);

/* The claim of that key, or NULL. */
void *bh_claim_find(const struct claim_table *table, const uint8_t key[32]);

/* The same, or a new one of `size` zeroed bytes; NULL: the arena has no room. */
void *bh_claim_add(struct bh_claims *claims, struct claim_table *table, const uint8_t key[32],
                   size_t size);

#endif
