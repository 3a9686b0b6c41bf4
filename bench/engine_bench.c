/* How long the engine thinks: nanoseconds a submit into a class that cannot be placed
 * now, with 100,000 jobs pending, and a whole cycle of a job (submit, place, carved
 * or not, started, ended) on one server and on a large fleet.
 *
 *   engine_bench [reclaim]   only how long it takes to make room for a guaranteed job where
 *                            50 tenants hold all of 1000 x 8 GPUs, most beyond theirs
 *   engine_bench [uncordon]  only how long it takes from a GPU that is uncordoned to the start
 *                            of the next of as many jobs as there are GPUs */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/clock.h"
#include "engine/read/view.h"
#include "engine/step/engine.h"

struct bench {
    struct bh_engine *engine;
    struct bh_step step;
    uint64_t now_ns, seq, next_job;
};

static uint64_t
clock_ns(void)
{
    return bench_clock(CLOCK_MONOTONIC);
}

static void
send(struct bench *bench, struct bh_event *event)
{
    event->now_ns = ++bench->now_ns;
    event->seq = ++bench->seq;
    if (bh_engine_step(bench->engine, event, &bench->step) == BH_OK)
        return;
    fprintf(stderr, "engine_bench: %s refused: %s\n", bh_event_names[event->kind],
            bh_reason_names[bench->step.verdict.code]);
    exit(1);
}

static void
open_fleet(struct bench *bench, uint32_t nodes, uint32_t gpus_each)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    const struct bh_profile *small = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb");
    struct bh_event event;

    caps.nodes = nodes;
    caps.gpus = nodes * gpus_each;
    caps.jobs = 200000;
    caps.leases = caps.partitions = 16 * caps.gpus + 4096;
    *bench = (struct bench){ .next_job = 1 };
    bench->engine = bh_engine_init(aligned_alloc(16, (bh_engine_size(&caps) + 15) & ~15ul), &caps);
    for (uint32_t sku = 1; sku <= 2; sku++) {
        event = (struct bh_event){ .kind = BH_EV_SKU };
        event.u.sku = (struct bh_ev_sku){ .sku = { sku }, .model_count = 1 };
        event.u.sku.models[0].model = BH_GPU_H100_80GB;
        event.u.sku.models[0].profile = sku == 1 ? small->id.v : BH_PROFILE_WHOLE.v;
        send(bench, &event);
    }
    event = (struct bh_event){ .kind = BH_EV_TENANT };
    event.u.tenant = (struct bh_ev_tenant){ .tenant = { 1 }, .limit = BH_UNLIMITED };
    send(bench, &event);
    for (uint32_t i = 0; i < nodes * gpus_each; i++) {
        event = (struct bh_event){ .kind = BH_EV_NODE, .u.node = { { 1 + i / gpus_each }, true } };
        if (i % gpus_each == 0)
            send(bench, &event);
        event = (struct bh_event){ .kind = BH_EV_GPU };
        event.u.gpu = (struct bh_ev_gpu){ .gpu = { i + 1 },
                                          .node = { 1 + i / gpus_each },
                                          .model = BH_GPU_H100_80GB,
                                          .managed = true,
                                          .mig_capable = true };
        send(bench, &event);
    }
}

static void
submit_for(struct bench *bench, uint32_t tenant, uint32_t sku, uint32_t count)
{
    struct bh_event event = { .kind = BH_EV_SUBMIT };

    event.u.submit = (struct bh_ev_submit){ .job = { bench->next_job++ },
                                            .tenant = { tenant },
                                            .sku = { sku },
                                            .count = count,
                                            .priority = BH_PRIORITY_NORMAL };
    send(bench, &event);
}

static void
submit(struct bench *bench, uint32_t sku)
{
    submit_for(bench, 1, sku, 1);
}

/* Answer what the last step ordered, until the node is idle. */
static bh_lease_id
settle(struct bench *bench)
{
    bh_lease_id started = { 0 };

    for (bool more = true; more;) {
        struct bh_event event = { .kind = BH_EV_TICK };

        for (uint32_t i = 0; i < bench->step.effect_count; i++) {
            const struct bh_effect *effect = &bench->step.effects[i];

            if (effect->kind == BH_FX_CARVE) {
                event.kind = BH_EV_CARVED;
                event.u.partition.partition = effect->partition.partition;
            } else if (effect->kind == BH_FX_START) {
                event.kind = BH_EV_STARTED;
                event.u.lease.lease = started = effect->lease;
            }
        }
        more = event.kind != BH_EV_TICK;
        if (more)
            send(bench, &event);
    }
    return started;
}

static void
end(struct bench *bench, bh_lease_id lease)
{
    struct bh_event event = { .kind = BH_EV_ENDED };

    event.u.ended = (struct bh_ev_ended){ .lease = lease, .cause = BH_END_EXITED };
    send(bench, &event);
}

static void
report_rate(const char *what, uint64_t began_ns, uint32_t count)
{
    printf("%-58s %9.0f ns\n", what, (double)(clock_ns() - began_ns) / count);
}

static void
bench_blocked_submits(void)
{
    struct bench bench;
    uint64_t began_ns;

    open_fleet(&bench, 1, 8);
    for (uint32_t i = 0; i < 8; i++) {
        submit(&bench, 2);
        settle(&bench);
    }
    for (uint32_t i = 0; i < 100000; i++)
        submit(&bench, 2);
    began_ns = clock_ns();
    for (uint32_t i = 0; i < 50000; i++)
        submit(&bench, 2);
    report_rate("submit into a blocked class, 100,000 pending", began_ns, 50000);
    free(bench.engine);
}

/* `busy` jobs of a SKU (1 small, 2 a whole GPU) run on and on; one more comes and goes. */
static void
bench_cycles(const char *what, uint32_t sku, uint32_t nodes, uint32_t busy, uint32_t count)
{
    struct bench bench;
    uint64_t began_ns;

    open_fleet(&bench, nodes, 8);
    for (uint32_t i = 0; i < busy; i++) {
        submit(&bench, sku);
        settle(&bench);
    }
    began_ns = clock_ns();
    for (uint32_t i = 0; i < count; i++) {
        submit(&bench, sku);
        end(&bench, settle(&bench));
    }
    report_rate(what, began_ns, count);
    free(bench.engine);
}

/* Full: each end lets the next of the queue in. */
static void
bench_queue(void)
{
    struct bench bench;
    bh_lease_id leases[56];
    uint64_t began_ns;

    open_fleet(&bench, 1, 8);
    for (uint32_t i = 0; i < 56; i++) {
        submit(&bench, 1);
        leases[i] = settle(&bench);
    }
    for (uint32_t i = 0; i < 100000; i++)
        submit(&bench, 1);
    began_ns = clock_ns();
    for (uint32_t i = 0; i < 50000; i++) {
        end(&bench, leases[i % 56]);
        leases[i % 56] = settle(&bench);
    }
    report_rate("end and start of the next, 8 GPUs full, 100,000 pending", began_ns, 50000);
    free(bench.engine);
}

static void
report_gpu(struct bench *bench, uint32_t gpu, bool cordoned)
{
    struct bh_event event = { .kind = BH_EV_GPU };

    event.u.gpu = (struct bh_ev_gpu){ .gpu = { gpu },
                                      .node = { 1 + (gpu - 1) / 8 },
                                      .model = BH_GPU_H100_80GB,
                                      .managed = true,
                                      .mig_capable = true,
                                      .cordoned = cordoned };
    send(bench, &event);
}

/* All wait before a cordoned fleet, which is uncordoned GPU by GPU. */
static void
bench_uncordon(uint32_t nodes)
{
    uint64_t began_ns, cpu_began_ns;
    struct bench bench;

    open_fleet(&bench, nodes, 8);
    for (uint32_t gpu = 1; gpu <= nodes * 8; gpu++)
        report_gpu(&bench, gpu, true);
    for (uint32_t i = 0; i < nodes * 8; i++)
        submit(&bench, 2);
    began_ns = clock_ns();
    cpu_began_ns = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t gpu = 1; gpu <= nodes * 8; gpu++) {
        report_gpu(&bench, gpu, false);
        settle(&bench);
    }
    printf("a GPU is uncordoned and the next of %" PRIu32 " starts, %" PRIu32 " x 8 GPUs: %" PRIu64
           " ns, processor %" PRIu64 " ns\n",
           nodes * 8, nodes, (clock_ns() - began_ns) / (nodes * 8),
           (bench_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_began_ns) / (nodes * 8));
    free(bench.engine);
}

/* Tenants 2 .. 51 are guaranteed 160 GPUs each; 2 and 3 use none, so the others borrow. */
static void
open_lent_fleet(struct bench *bench)
{
    open_fleet(bench, 1000, 8);
    for (uint32_t tenant = 2; tenant < 52; tenant++) {
        struct bh_event event = { .kind = BH_EV_TENANT };

        event.u.tenant = (struct bh_ev_tenant){ .tenant = { tenant },
                                                .parent = { 1 },
                                                .kind = BH_TENANT_DEPARTMENT,
                                                .limit = BH_UNLIMITED,
                                                .guarantee = 160 * BH_GPU_PARTS };
        send(bench, &event);
    }
    for (uint32_t i = 0; i < 8000; i++) {
        submit_for(bench, 4 + i % 48, 2, 1);
        settle(bench);
    }
}

/* The whole step: the submission, the search that finds nothing free, the claim and those
 * that leave.  Beside the wall's, the processor's time: it minds no other load. */
static void
bench_reclaim(uint32_t count, uint32_t times)
{
    uint64_t longest_ns = 0, sum_ns = 0, cpu_ns = 0;
    uint32_t claims = 0, victims = 0;
    struct bench bench;

    open_lent_fleet(&bench);
    for (uint32_t i = 0; i < times; i++) {
        uint64_t began_ns = clock_ns(), cpu_began_ns = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
        uint64_t took_ns;

        submit_for(&bench, 2 + i % 2, 2, count);
        took_ns = clock_ns() - began_ns;
        cpu_ns += bench_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_began_ns;
        sum_ns += took_ns;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
        for (uint32_t k = 0; k < bench.step.decision_count; k++) {
            claims += bench.step.decisions[k].kind == BH_DO_CLAIM;
            victims += bench.step.decisions[k].kind == BH_DO_STOP;
        }
    }
    printf("reclaim room for a job of %" PRIu32 " on 1000 x 8 GPUs, all held: %" PRIu64
           " us (longest %" PRIu64 "), processor %" PRIu64 " us; %" PRIu32 " claims, %" PRIu32 " leave\n",
           count, sum_ns / times / 1000, longest_ns / 1000, cpu_ns / times / 1000, claims, victims);
    free(bench.engine);
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "reclaim") == 0) {
        bench_reclaim(1, 16);
        bench_reclaim(8, 16);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "uncordon") == 0) {
        bench_uncordon(100);
        bench_uncordon(1000);
        return 0;
    }
    bench_blocked_submits();
    bench_cycles("submit, place, run, end on 8 GPUs, empty", 1, 1, 0, 50000);
    bench_cycles("submit, place, run, end on 8 GPUs, half full", 1, 1, 28, 50000);
    bench_queue();
    bench_cycles("submit, place, run, end on 1000 x 8 GPUs, empty", 1, 1000, 0, 500);
    bench_cycles("submit, place, run, end on 1000 x 8 GPUs, 4000 jobs", 1, 1000, 4000, 500);
    bench_cycles("the same with whole GPUs, empty", 2, 1000, 0, 20000);
    bench_cycles("the same with whole GPUs, 4000 jobs", 2, 1000, 4000, 20000);
    return 0;
}
