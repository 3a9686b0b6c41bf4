#include "model/driver.h"
#include "policy/explain_internal.h"

void
bh_explain_driver(const struct phrase *p)
{
    bh_buf_printf(
        p->out,
        "its partition could only be carved while a job of another tenant runs on the GPU, and the GPU's "
        "driver lacks the fix for %s",
        bh_driver_fix_cve(BH_DRIVER_REPARTITION));
}

void
bh_explain_next_driver(const struct phrase *p)
{
    bh_buf_puts(p->out, "install a driver with the fix (");
    bh_driver_put_fixed(p->out, BH_DRIVER_REPARTITION);
    bh_buf_puts(
        p->out,
        "); until then it starts when those jobs have ended, or on a warm partition (`bulkhead layout`)");
}
