#include "lab/load/synth.h"

#include <stdio.h>

#include "base/attr.h"
#include "base/splitmix.h"
#include "base/time.h"

/* Seconds that 0, 1, ... 20 twentieths of Philly's jobs did not exceed (computed from
 * philly_vc_jobs.csv, rounded); the longest is cut to a fortnight. */
static const uint32_t durations_s[] = {
    17,    250,   890,   1690,  2260,  2780,  3370,   4240,   5550,   7620,    11220,
    16200, 22770, 31960, 44300, 59850, 83370, 116240, 193690, 453450, 1209600,
};
static const struct {
    uint32_t gpus, permille;
} sizes[] = { { 1, 764 }, { 2, 25 }, { 4, 109 }, { 8, 102 } };

static uint64_t
draw_below(uint64_t *state, uint64_t end)
{
    return (uint64_t)((unsigned __int128)bh_splitmix_next(state) * end >> 64);
}

/* The row of `sizes`. */
static uint32_t
draw_size(uint64_t *state)
{
    uint32_t point = (uint32_t)draw_below(state, 1000), at = 0;

    while (point >= sizes[at].permille)
        point -= sizes[at++].permille;
    return at;
}

static uint64_t
draw_duration_ns(uint64_t *state)
{
    uint64_t step = draw_below(state, BH_COUNT(durations_s) - 1);
    uint64_t low_ns = durations_s[step] * BH_NS_PER_S;
    uint64_t high_ns = durations_s[step + 1] * BH_NS_PER_S;

    return low_ns + draw_below(state, high_ns - low_ns);
}

/* The k-th tenant's weight, from 0. */
static uint64_t
weight_of(uint32_t tenant)
{
    return 1000000 / (tenant + 1);
}

static bh_tenant_id
draw_tenant(uint64_t *state, uint32_t tenants)
{
    uint64_t all = 0, point;
    uint32_t at = 0;

    for (uint32_t k = 0; k < tenants; k++)
        all += weight_of(k);
    for (point = draw_below(state, all); point >= weight_of(at); at++)
        point -= weight_of(at);
    return (bh_tenant_id){ at + 1 };
}

void
bh_synth_make(const struct bh_synth *synth, struct bh_load *load)
{
    uint64_t state = synth->seed;
    char name[24];
    uint32_t size;

    bh_load_set_rack(load, synth->nodes, BH_SYNTH_GPUS);
    if (synth->mig)
        bh_load_divide_rack(load);
    for (uint32_t i = 0; i < synth->tenants; i++) {
        snprintf(name, sizeof name, "tenant-%02u", i + 1);
        bh_load_add_tenant(load, name, (bh_tenant_id){ 0 });
    }
    for (uint32_t i = 0; i < synth->jobs; i++) {
        struct bh_simulation_job job = { .sku = { 1 },
                                         .priority = BH_PRIORITY_NORMAL,
                                         .contract = BH_CONTRACT_REQUEUE };

        job.submit_ns = draw_below(&state, 365 * 86400 * BH_NS_PER_S);
        job.work_ns = draw_duration_ns(&state);
        size = draw_size(&state);
        job.count = synth->mig ? 1 : sizes[size].gpus;
        job.sku.v = synth->mig ? 2 + size : 1;
        job.tenant = draw_tenant(&state, synth->tenants);
        bh_load_add(load, &job);
    }
    bh_load_sort(load);
}
