#include "identity/fault.h"

#include "base/assert.h"

static const struct {
    const char *name;
    bh_rc rc;
    const char *sentence;
} faults[BH_FAULTS] = {
#define BH_FAULT(code, name, rc, sentence) { name, BH_##rc, sentence },
#include "tables/identity_faults.tbl"
#undef BH_FAULT
};

const char *
bh_fault_name(enum bh_identity_fault fault)
{
    BH_ASSERT(fault < BH_FAULTS);
    return faults[fault].name;
}

bh_rc
bh_fault_err(enum bh_identity_fault fault, struct bh_err *err)
{
    BH_ASSERT(fault < BH_FAULTS);
    if (fault == BH_FAULT_NONE)
        return BH_OK;
    return bh_err_set(err, faults[fault].rc, "%s", faults[fault].sentence);
}
