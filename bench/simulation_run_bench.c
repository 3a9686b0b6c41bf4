/* What a fleet costs in memory, and whether the engine stays as fast and as large over
 * millions of steps.
 *
 *   simulation_run_bench [JOBS]    steps of the long run are about 5 for each job (2,050,000) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "lab/load/synth.h"

static size_t
size_with(uint32_t gpus, uint32_t pieces_each, uint32_t jobs)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;

    caps.nodes += gpus / 8;
    caps.gpus += gpus;
    caps.leases += gpus * pieces_each;
    caps.partitions += gpus * pieces_each;
    caps.jobs += jobs;
    return bh_engine_size(&caps);
}

static void
report_memory(const char *what, size_t bytes, uint32_t count, uint32_t target)
{
    printf("%-58s %9zu bytes (target %u)\n", what, bytes / count, target);
}

static void
bench_memory(void)
{
    const uint32_t gpus = 8000, jobs = 100000;
    size_t least = size_with(0, 0, 0);

    report_memory("a GPU of 8,000, itself and its node", size_with(gpus, 0, 0) - least, gpus, 1024);
    report_memory("a GPU of 8,000 with one lease and piece", size_with(gpus, 1, 0) - least, gpus, 1024);
    report_memory("a GPU of 8,000 with seven leases and pieces", size_with(gpus, 7, 0) - least, gpus, 1024);
    report_memory("a pending job of 100,000", size_with(0, 0, jobs) - least, jobs, 400);
}

/* A site of 64 GPUs under load 0.6 in a block that never grows. */
static uint64_t
run(uint32_t jobs)
{
    const struct bh_synth synth = { .nodes = 8, .jobs = jobs, .tenants = 8, .seed = 1 };
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_simulation_plan plan;
    struct bh_simulation_run run;
    struct bh_load load = { 0 };
    struct bh_err err;
    uint64_t per_s;

    caps.jobs = 65536;
    bh_synth_make(&synth, &load);
    if (bh_load_scale(&load, 600, &err) != BH_OK)
        exit(1);
    plan = bh_load_plan(&load);
    plan.caps = &caps;
    plan.window_ns = UINT64_C(30) * 86400 * 1000000000;
    if (bh_simulation_run_play(&plan, &run, &err) != BH_OK) {
        fprintf(stderr, "simulation_bench: %s\n", err.msg);
        exit(1);
    }
    per_s = run.steps * 1000000000 / run.wall_cpu_ns;
    printf("%10" PRIu64 " steps, %8u jobs: %8" PRIu64 " steps/s of the processor, block %zu "
           "bytes, grown %u times\n",
           run.steps, run.ended, per_s, run.block_bytes, run.grown);
    bh_simulation_run_fini(&run);
    bh_load_fini(&load);
    return per_s;
}

int
main(int argc, char **argv)
{
    uint32_t jobs = 2050000;
    struct bh_err err;
    uint64_t few, many;

    if (argc > 2 || (argc == 2 && bh_parse_u32(argv[1], 10000, 10000000, &jobs, &err) != BH_OK)) {
        fputs("usage: simulation_bench [JOBS]\n", stderr);
        return 2;
    }
    bench_memory();
    few = run(jobs / 10);
    many = run(jobs);
    printf("%-58s %9.2f\n", "speed over the long run / over a tenth of it", (double)many / (double)few);
    return 0;
}
