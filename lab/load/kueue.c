#include "lab/load/kueue.h"

#include <stdio.h>

#include "base/time.h"

enum { QUEUES = 6, QUOTA = 20, BORROWING = 100, NODES = 75, GPUS = 8 };

const struct bh_kueue_class bh_kueue_classes[BH_KUEUE_CLASSES] = {
    { "small", 1, 350, 100, 200, 1, 1, BH_PRIORITY_LOW, 215468 },
    { "medium", 5, 100, 500, 500, 5, 1, BH_PRIORITY_NORMAL, 76768 },
    { "large", 20, 50, 1200, 1000, 5, 4, BH_PRIORITY_HIGH, 6666 },
};

uint32_t
bh_kueue_class_of(const struct bh_simulation_job *job)
{
    for (uint32_t c = 0; c < BH_KUEUE_CLASSES; c++)
        if (bh_kueue_classes[c].priority == job->priority)
            return c;
    return BH_KUEUE_SMALL;
}

static void
add_workloads(const struct bh_kueue *kueue, struct bh_load *load, bh_tenant_id queue,
              const struct bh_kueue_class *class)
{
    bool together = kueue->together && class->units <= GPUS;

    for (uint32_t i = 1; i <= class->count; i++)
        bh_load_add(load,
                    &(struct bh_simulation_job){ .submit_ns = (uint64_t)i * class->interval_ms * BH_NS_PER_MS,
                                                 .work_ns = class->run_ms * BH_NS_PER_MS,
                                                 .tenant = queue,
                                                 .sku = { 1 },
                                                 .count = together ? class->units : class->partitions,
                                                 .gang = together ? 1 : class->members,
                                                 .priority = class->priority,
                                                 .contract = kueue->contract });
}

void
bh_kueue_make(const struct bh_kueue *kueue, struct bh_load *load)
{
    char name[BH_NAME_MAX + 1];

    bh_load_set_rack(load, NODES, GPUS);
    for (uint32_t c = 0; c < BH_KUEUE_COHORTS; c++) {
        bh_tenant_id cohort;

        snprintf(name, sizeof name, "cohort-%u", c);
        cohort = bh_load_add_tenant(load, name, (bh_tenant_id){ 0 })->tenant;
        load->tenants[cohort.v - 1].limit = (uint64_t)QUEUES * QUOTA * BH_GPU_PARTS;
        for (uint32_t q = 0; q < QUEUES; q++) {
            struct bh_ev_tenant *queue;

            snprintf(name, sizeof name, "cq-%u-%u", c, q);
            queue = bh_load_add_tenant(load, name, cohort);
            queue->guarantee = (uint64_t)QUOTA * BH_GPU_PARTS;
            queue->limit = (uint64_t)(QUOTA + BORROWING) * BH_GPU_PARTS;
            for (uint32_t i = 0; i < BH_KUEUE_CLASSES; i++)
                add_workloads(kueue, load, queue->tenant, &bh_kueue_classes[i]);
        }
    }
    bh_load_sort(load);
}
