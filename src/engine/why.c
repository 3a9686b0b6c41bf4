#include "engine/why.h"

#include "engine/slots.h"

void
bh_engine_why(const struct bh_engine *engine, bh_job_id job, uint64_t now_ns,
              struct bh_reason *ret_reason)
{
    *ret_reason = (struct bh_reason){ .code = job_find(engine, job.v) ? BH_REASON_NO_CAPACITY : BH_REASON_UNKNOWN_JOB, .job = job };
}
