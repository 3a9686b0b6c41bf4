#include "api/state/submission.h"

#include "base/num.h"

static uint32_t
cores_of(const struct bh_job_numbers *numbers, const struct bh_dir_sku *sku)
{
    struct bh_err err;
    uint64_t milli;

    if (numbers->cpu_milli || !sku->cpu || bh_parse_parts(sku->cpu, 1000, &milli, &err) != BH_OK
        || milli > UINT32_MAX / BH_JOB_COUNT_MAX)
        return numbers->cpu_milli;
    return (uint32_t)milli * numbers->count;
}

/* In MiB, rounded up. */
static uint32_t
memory_of(const struct bh_job_numbers *numbers, const struct bh_dir_sku *sku)
{
    uint64_t bytes = numbers->memory_bytes, mib;
    struct bh_err err;

    if (bytes == 0 && sku->memory
        && (bh_parse_bytes(sku->memory, &bytes, &err) != BH_OK || !bh_mul_u64(bytes, numbers->count, &bytes)))
        bytes = 0; /* the node's default */
    mib = (bytes >> 20) + ((bytes & 0xfffff) != 0);
    return mib < UINT32_MAX ? (uint32_t)mib : UINT32_MAX;
}

void
bh_submission_fill(const struct bh_job_spec *spec, const struct bh_job_numbers *numbers,
                   const struct bh_dir_sku *sku, uint64_t now_ns, struct bh_ev_submit *ret_submit)
{
    ret_submit->sku = sku->id;
    ret_submit->count = numbers->count;
    ret_submit->gang = numbers->gang > 1 ? numbers->gang : 0;
    ret_submit->cpu_milli = cores_of(numbers, sku);
    ret_submit->memory_mib = memory_of(numbers, sku);
    ret_submit->kind = spec->kind;
    ret_submit->priority = spec->priority ? spec->priority : BH_PRIORITY_NORMAL;
    ret_submit->contract = spec->on_preempt;
    ret_submit->time_limit_ns = numbers->time_limit_ns;
    ret_submit->grace_ns = numbers->grace_ns;
    ret_submit->hold = spec->hold;
    ret_submit->checkpoint_signal = numbers->checkpoint_signal;
    ret_submit->deadline_ns = numbers->deadline_ns + (numbers->deadline_after ? now_ns : 0);
}
