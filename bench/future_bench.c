/* How long a forecast takes with 10,000 jobs waiting: the copy that the owner's thread
 * makes, and the future that is played on it, on small and large fleets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/clock.h"
#include "engine/forecast/whatif.h"
#include "engine/read/view.h"

enum { PENDING = 10000, TENANTS = 50, SKUS = 3 };

struct bench {
    struct bh_engine *engine;
    struct bh_step step;
    uint64_t seq, next_job;
};

static struct bh_future future;

static void
send(struct bench *bench, struct bh_event event)
{
    event.now_ns = 1000;
    event.seq = ++bench->seq;
    if (bh_engine_step(bench->engine, &event, &bench->step) == BH_OK)
        return;
    fprintf(stderr, "future_bench: %s refused: %s\n", bh_event_names[event.kind],
            bh_reason_names[bench->step.verdict.code]);
    exit(1);
}

static void
add_sku(struct bench *bench, uint32_t id, const char *profile)
{
    struct bh_event event = { .kind = BH_EV_SKU };

    event.u.sku = (struct bh_ev_sku){ .sku = { id }, .model_count = 1 };
    event.u.sku.models[0].model = BH_GPU_H100_80GB;
    event.u.sku.models[0].profile =
        profile ? bh_profile_find(BH_GPU_H100_80GB, profile)->id.v : BH_PROFILE_WHOLE.v;
    send(bench, event);
}

static void
open_fleet(struct bench *bench, uint32_t nodes, uint32_t gpus_each)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;

    caps.nodes = nodes;
    caps.gpus = nodes * gpus_each;
    caps.jobs = 32768;
    caps.leases = caps.partitions = 16 * caps.gpus + 4096;
    *bench = (struct bench){ .next_job = 1 };
    bench->engine = bh_engine_init(aligned_alloc(16, (bh_engine_size(&caps) + 15) & ~15ul), &caps);
    add_sku(bench, 1, "1g.10gb");
    add_sku(bench, 2, "3g.40gb");
    add_sku(bench, 3, NULL);
    for (uint32_t i = 1; i <= TENANTS; i++)
        send(bench, (struct bh_event){ .kind = BH_EV_TENANT,
                                       .u.tenant = { .tenant = { i },
                                                     .kind = BH_TENANT_ORGANIZATION,
                                                     .boundary = BH_BOUNDARY_NONE,
                                                     .limit = BH_UNLIMITED } });
    for (uint32_t i = 0; i < nodes * gpus_each; i++) {
        if (i % gpus_each == 0)
            send(bench, (struct bh_event){ .kind = BH_EV_NODE, .u.node = { { i / gpus_each + 1 }, true } });
        send(bench, (struct bh_event){ .kind = BH_EV_GPU,
                                       .u.gpu = { .gpu = { i + 1 },
                                                  .node = { i / gpus_each + 1 },
                                                  .model = BH_GPU_H100_80GB,
                                                  .managed = true,
                                                  .mig_capable = true } });
    }
}

/* Submit until so many wait. */
static void
fill(struct bench *bench, uint32_t pending)
{
    uint32_t waiting = 0;

    while (waiting < pending) {
        uint64_t job = bench->next_job++;
        struct bh_event event = { .kind = BH_EV_SUBMIT };
        struct bh_job_view view;

        event.u.submit = (struct bh_ev_submit){
            .job = { job },
            .tenant = { (uint32_t)(job % TENANTS) + 1 },
            .sku = { (uint32_t)(job % SKUS) + 1 },
            .count = 1,
            .priority = (enum bh_priority)(1 + job % 3),
            .time_limit_ns = (job * 7919 % 24 + 1) * 3600000000000u,
        };
        send(bench, event);
        waiting += bh_view_job(bench->engine, (bh_job_id){ job }, &view) && view.state == BH_JOB_PENDING;
    }
}

static void
measure(uint32_t nodes, uint32_t gpus_each)
{
    struct bench bench;
    struct bh_engine_caps caps;
    struct bh_job_forecasts outlooks = { 0 };
    enum bh_future_end end;
    uint64_t begun, copied, played, compared;
    size_t bytes;
    void *copy;

    open_fleet(&bench, nodes, gpus_each);
    fill(&bench, PENDING);
    caps = bh_engine_caps(bench.engine);
    bytes = bh_engine_size(&caps);
    copy = aligned_alloc(64, (bytes + 63) & ~63ul);
    begun = bench_clock(CLOCK_MONOTONIC);
    memcpy(copy, bench.engine, bytes); /* its pages are touched for the first time */
    copied = bench_clock(CLOCK_MONOTONIC);
    outlooks.max = bh_job_forecasts_needed(bench.engine) + 16;
    outlooks.rows = calloc(outlooks.max, sizeof *outlooks.rows);
    if (bh_job_forecasts_begin(&outlooks, bench.engine) != BH_OK)
        exit(1);
    bh_future_begin(
        &future, bh_engine_adopt(copy, bytes),
        &(struct bh_future_options){ .now_ns = 1000, .notify = bh_job_forecasts_notify, .self = &outlooks });
    end = bh_future_run(&future, UINT32_MAX);
    played = bench_clock(CLOCK_MONOTONIC);
    bh_job_forecasts_close(&outlooks, &future, end);
    bh_whatif_compare(&outlooks, &outlooks, 0, NULL, 0);
    compared = bench_clock(CLOCK_MONOTONIC);
    printf("%5u GPUs, %u waiting: block %.1f MB, copied in %.2f ms, played in %.0f ms "
           "(%lu steps, end %d), compared in %.2f ms\n",
           nodes * gpus_each, (unsigned)PENDING, (double)bytes / 1e6, (double)(copied - begun) / 1e6,
           (double)(played - copied) / 1e6, (unsigned long)future.steps, (int)end,
           (double)(compared - played) / 1e6);
    free(copy);
    free(outlooks.rows);
    free(bench.engine);
}

int
main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    measure(1, 8);
    measure(16, 8);
    measure(128, 8);
    return 0;
}
