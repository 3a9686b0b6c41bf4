#include "daemon/state/same_spec.h"

#include <stddef.h>
#include <string.h>

struct bh_same_spec
bh_same_spec_of(uint64_t key, bh_tenant_id tenant, bh_principal_id principal, const uint8_t plain[32])
{
    struct bh_same_spec spec = { .key = key, .tenant = tenant.v, .principal = principal.v };

    memcpy(spec.plain, plain, sizeof spec.plain);
    return spec;
}

bool
bh_same_specs_find(const struct bh_same_specs *specs, struct bh_same_spec *spec)
{
    const struct bh_same_spec *found = &specs->items[spec->plain[0] % BH_SAME_SPECS];

    if (spec->key == 0 || memcmp(found, spec, offsetof(struct bh_same_spec, sealed)) != 0)
        return false;
    memcpy(spec->sealed, found->sealed, sizeof spec->sealed);
    return true;
}

void
bh_same_specs_put(struct bh_same_specs *specs, const struct bh_same_spec *spec)
{
    specs->items[spec->plain[0] % BH_SAME_SPECS] = *spec;
}

void
bh_same_specs_forget(struct bh_same_specs *specs)
{
    memset(specs, 0, sizeof *specs);
}
