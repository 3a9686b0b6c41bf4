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
bh_cost_print(FILE *out, const struct bh_course *course)
{
    uint64_t engine_ns = course->wall_step_ns + course->wall_encode_ns;

    fprintf(out, "engine   %" PRIu64 " steps, %" PRIu64 " decisions, ", course->steps, course->decisions);
    print_ms(out, "", course->wall_step_ns);
    print_ms(out, " deciding, ", course->wall_encode_ns);
    fprintf(out, " encoding %" PRIu64 " bytes; %" PRIu64 " steps/s\n", course->record_bytes,
            per_second(course->steps, engine_ns));
    fprintf(out,
            "         a step takes %" PRIu64 " ns (p50), %" PRIu64 " (p99), %" PRIu64 " (p99.9), %" PRIu64
            " at most; block %zu KiB, grown %u times; ",
            bh_course_step_quantile_ns(course, 500), bh_course_step_quantile_ns(course, 990),
            bh_course_step_quantile_ns(course, 999), course->wall_slowest_ns, course->block_bytes / 1024,
            course->grown);
    print_ms(out, "driver ", course->wall_total_ns - engine_ns);
    print_ms(out, "; all ", course->wall_total_ns);
    print_ms(out, ", of the processor ", course->wall_cpu_ns);
    fputc('\n', out);
}

void
bh_cost_put(struct bh_json_writer *writer, const struct bh_course *course)
{
    bh_json_u64(writer, "block_bytes", course->block_bytes);
    bh_json_u64(writer, "decisions", course->decisions);
    bh_json_u64(writer, "grown", course->grown);
    bh_json_u64(writer, "late_answers", course->late);
    bh_json_u64(writer, "record_bytes", course->record_bytes);
    bh_json_u64(writer, "steps", course->steps);
    bh_json_u64(writer, "wall_cpu_ns", course->wall_cpu_ns);
    bh_json_u64(writer, "wall_encode_ns", course->wall_encode_ns);
    bh_json_u64(writer, "wall_step_ns", course->wall_step_ns);
    bh_json_u64(writer, "wall_step_p50_ns", bh_course_step_quantile_ns(course, 500));
    bh_json_u64(writer, "wall_step_p99_ns", bh_course_step_quantile_ns(course, 990));
    bh_json_u64(writer, "wall_step_slowest_ns", course->wall_slowest_ns);
    bh_json_u64(writer, "wall_total_ns", course->wall_total_ns);
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
