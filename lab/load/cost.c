#include "lab/load/cost.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/time.h"

static uint64_t
per_second(uint64_t count, uint64_t span_ns)
{
    return span_ns ? (uint64_t)((unsigned __int128)count * BH_NS_PER_S / span_ns) : 0;
}

static void
print_ms(FILE *out, const char *what, uint64_t ns)
{
    fprintf(out, "%s%" PRIu64 ".%03" PRIu64 " s", what, ns / BH_NS_PER_S, ns / BH_NS_PER_MS % 1000);
}

void
bh_cost_print(FILE *out, const struct bh_simulation_run *run)
{
    uint64_t engine_ns = run->wall_step_ns + run->wall_encode_ns;

    fprintf(out, "engine   %" PRIu64 " steps, %" PRIu64 " decisions, ", run->steps, run->decisions);
    print_ms(out, "", run->wall_step_ns);
    print_ms(out, " deciding, ", run->wall_encode_ns);
    fprintf(out, " encoding %" PRIu64 " bytes; %" PRIu64 " steps/s\n", run->record_bytes,
            per_second(run->steps, engine_ns));
    fprintf(out,
            "         a step takes %" PRIu64 " ns (p50), %" PRIu64 " (p99), %" PRIu64 " (p99.9), %" PRIu64
            " at most; block %zu KiB, grown %u times; ",
            bh_simulation_run_step_quantile_ns(run, 500), bh_simulation_run_step_quantile_ns(run, 990),
            bh_simulation_run_step_quantile_ns(run, 999), run->wall_slowest_ns, run->block_bytes / 1024,
            run->grown);
    print_ms(out, "driver ", run->wall_total_ns - engine_ns);
    print_ms(out, "; all ", run->wall_total_ns);
    print_ms(out, ", of the processor ", run->wall_cpu_ns);
    fputc('\n', out);
}

void
bh_cost_put(struct bh_json_writer *writer, const struct bh_simulation_run *run)
{
    bh_json_u64(writer, "block_bytes", run->block_bytes);
    bh_json_u64(writer, "decisions", run->decisions);
    bh_json_u64(writer, "grown", run->grown);
    bh_json_u64(writer, "late_answers", run->late);
    bh_json_u64(writer, "record_bytes", run->record_bytes);
    bh_json_u64(writer, "steps", run->steps);
    bh_json_u64(writer, "wall_cpu_ns", run->wall_cpu_ns);
    bh_json_u64(writer, "wall_encode_ns", run->wall_encode_ns);
    bh_json_u64(writer, "wall_step_ns", run->wall_step_ns);
    bh_json_u64(writer, "wall_step_p50_ns", bh_simulation_run_step_quantile_ns(run, 500));
    bh_json_u64(writer, "wall_step_p99_ns", bh_simulation_run_step_quantile_ns(run, 990));
    bh_json_u64(writer, "wall_step_slowest_ns", run->wall_slowest_ns);
    bh_json_u64(writer, "wall_total_ns", run->wall_total_ns);
}

void
bh_cost_progress(void *self, uint32_t ended)
{
    const struct bh_cost_progress *progress = self;

    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r%s: %u of %u jobs%s", progress->what, ended, progress->jobs,
            ended == progress->jobs ? "\n" : "");
}
