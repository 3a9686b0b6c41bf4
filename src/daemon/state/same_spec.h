#ifndef BH_DAEMON_STATE_SAME_SPEC_H
#define BH_DAEMON_STATE_SAME_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "model/ids.h"

/* Specifications sealed of late, so that one that the same principal submits again to the same tenant is not
 * sealed and stored again (docs/adr/0063-measured-against-before.md).  The submitter learns nothing by it:
 * only texts of the same submitter are compared.  Bounded; owner thread. */

enum { BH_SAME_SPECS = 256 };

struct bh_same_spec {
    uint64_t key; /* number of the key that sealed it; 0: free */
    uint32_t tenant, principal;
    uint8_t plain[32], sealed[32]; /* SHA-256 of the plaintext, and of the item in the store */
};

struct bh_same_specs {
    struct bh_same_spec items[BH_SAME_SPECS];
};

/* Which principal submits what to which tenant, to be sealed by which key. */
struct bh_same_spec bh_same_spec_of(uint64_t key, bh_tenant_id tenant, bh_principal_id principal,
                                    const uint8_t plain[32]);

/* Whether it was sealed before; `spec->sealed` is filled in then. */
bool bh_same_specs_find(const struct bh_same_specs *specs, struct bh_same_spec *spec);

/* Keep it, sealed; what had its place is forgotten. */
void bh_same_specs_put(struct bh_same_specs *specs, const struct bh_same_spec *spec);

/* The store may lack what was put since the last commit. */
void bh_same_specs_forget(struct bh_same_specs *specs);

#endif
