/* How long the engine thinks: nanoseconds a submit into a class that cannot be placed
 * now, with 100,000 jobs pending, and a whole cycle of a job (submit, place, carved
 * or not, started, ended) on one server and on a large fleet. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/view.h"

struct bench {
    struct bh_engine *engine;
    struct bh_step step;
    uint64_t now_ns, seq, next_job;
};

static uint64_t
clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
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
        event.u.gpu = (struct bh_ev_gpu){ .gpu = { i + 1 }, .node = { 1 + i / gpus_each },
                                          .model = BH_GPU_H100_80GB, .managed = true,
                                          .mig_capable = true };
        send(bench, &event);
    }
}

static void
submit(struct bench *bench, uint32_t sku)
{
    struct bh_event event = { .kind = BH_EV_SUBMIT };

    event.u.submit = (struct bh_ev_submit){ .job = { bench->next_job++ }, .tenant = { 1 },
                                            .sku = { sku }, .count = 1,
                                            .priority = BH_PRIORITY_NORMAL };
    send(bench, &event);
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
                event.u.piece.partition = effect->piece.partition;
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
tell(const char *what, uint64_t began_ns, uint32_t count)
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
    tell("submit into a blocked class, 100,000 pending", began_ns, 50000);
    free(bench.engine);
}

/* `busy` small jobs run on and on; one more comes and goes. */
static void
bench_cycles(const char *what, uint32_t nodes, uint32_t busy, uint32_t count)
{
    struct bench bench;
    uint64_t began_ns;

    open_fleet(&bench, nodes, 8);
    for (uint32_t i = 0; i < busy; i++) {
        submit(&bench, 1);
        settle(&bench);
    }
    began_ns = clock_ns();
    for (uint32_t i = 0; i < count; i++) {
        submit(&bench, 1);
        end(&bench, settle(&bench));
    }
    tell(what, began_ns, count);
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
    tell("end and start of the next, 8 GPUs full, 100,000 pending", began_ns, 50000);
    free(bench.engine);
}

int
main(void)
{
    bench_blocked_submits();
    bench_cycles("submit, place, run, end on 8 GPUs, empty", 1, 0, 50000);
    bench_cycles("submit, place, run, end on 8 GPUs, half full", 1, 28, 50000);
    bench_queue();
    bench_cycles("submit, place, run, end on 1000 x 8 GPUs, empty", 1000, 0, 500);
    bench_cycles("submit, place, run, end on 1000 x 8 GPUs, 4000 jobs", 1000, 4000, 500);
    return 0;
}
