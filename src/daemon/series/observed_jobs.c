#include "daemon/series/observed_jobs.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/vec.h"
#include "engine/step/engine.h"

/* The owner thread does other things between so many leases. */
enum { LEASES_AT_ONCE = 512, LEASES_MAX = 1 << 20, BP_A_PERCENT = 100, MIB_BITS = 20 };
#define NO_RATE UINT64_MAX

/* A lease's sample, and what the engine says of it. */
struct sampled_lease {
    uint64_t job; /* first: it is what they are sorted by; 0: the engine does not know it */
    uint64_t lease, cpu_milli, memory_mib, gpu_memory_mib, power_mw;
    uint32_t tenant, busy_percent;
    bool powered; /* its GPUs are its alone, and their power is known */
};

struct job_leases {
    struct sampled_lease *items;
    uint32_t count, capacity, asked;
    const struct bh_facts *facts;
    const struct bh_directory *dir;
};

/* ---- samples ---- */

static int
observed_compare_number(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* Thousandths of a core since the lease's last sample; NO_RATE: it is its first, or a repetition. */
static uint64_t
observed_cpu_milli(const struct bh_seen_leases *seen, const struct bh_seen_lease *now)
{
    const struct bh_seen_lease *before = seen->count ? bsearch(&now->lease, seen->items, seen->count,
                                                               sizeof *seen->items, observed_compare_number)
                                                     : NULL;

    if (!before || before->at_ns >= now->at_ns || before->cpu_ns > now->cpu_ns)
        return NO_RATE;
    return (uint64_t)((unsigned __int128)(now->cpu_ns - before->cpu_ns) * 1000
                      / (now->at_ns - before->at_ns));
}

static void
observed_add_sample(struct job_leases *leases, const struct bh_seen_leases *seen, struct bh_seen_leases *next,
                    bh_json_value sample, uint64_t at_ns)
{
    const struct bh_seen_lease now = { bh_json_number(bh_json_get(sample, "lease"), 0),
                                       bh_json_number(bh_json_get(sample, "cpu_ns"), 0), at_ns };

    if (!bh_vec_reserve(&leases->items, &leases->capacity, (size_t)leases->count + 1, LEASES_MAX)
        || !bh_vec_reserve(&next->items, &next->capacity, (size_t)next->count + 1, LEASES_MAX))
        return;
    next->items[next->count++] = now;
    leases->items[leases->count++] = (struct sampled_lease){
        .lease = now.lease,
        .cpu_milli = observed_cpu_milli(seen, &now),
        .memory_mib = bh_json_number(bh_json_get(sample, "memory_bytes"), 0) >> MIB_BITS,
        .gpu_memory_mib = bh_json_number(bh_json_get(sample, "gpu_memory_mib"), 0),
        .busy_percent = (uint32_t)bh_json_number(bh_json_get(sample, "gpu_utilisation"), 0),
    };
}

static void
observed_read_samples(struct job_leases *leases, const bool *fresh, struct bh_seen_leases *seen)
{
    struct bh_seen_leases next = { .count = 0 };

    for (uint32_t node = 0; node < leases->facts->node_count; node++) {
        bh_json_value report = bh_json_get(leases->facts->nodes[node].root, "samples");
        bh_json_value samples = bh_json_get(report, "samples");
        uint64_t at_ns = bh_json_number(bh_json_get(report, "at_ns"), 0);

        for (size_t i = 0; fresh[node] && i < bh_json_count(samples); i++)
            observed_add_sample(leases, seen, &next, bh_json_at(samples, i), at_ns);
    }
    if (next.count > 0)
        qsort(next.items, next.count, sizeof *next.items, observed_compare_number);
    free(seen->items);
    *seen = next;
}

/* ---- whose they are ---- */

static bool
observed_is_whole(const struct bh_job_view *view)
{
    for (uint32_t i = 0; i < view->partition_count; i++)
        if (view->partitions[i].profile != BH_PROFILE_WHOLE.v)
            return false;
    return view->partition_count > 0;
}

/* The power of boards that the lease has to itself; of a partition it is not known. */
static void
observed_fill_power(const struct job_leases *leases, const struct bh_job_view *view,
                    struct sampled_lease *ret)
{
    ret->powered = observed_is_whole(view);
    for (uint32_t i = 0; ret->powered && i < view->partition_count; i++) {
        const struct bh_dir_gpu *gpu = bh_directory_gpu(leases->dir, view->partitions[i].gpu);
        const struct bh_gpu_facts_of *facts = gpu ? bh_facts_gpu(leases->facts, gpu->uuid) : NULL;
        uint64_t power = facts ? bh_json_number(bh_json_get(bh_facts_reading(facts), "power_mw"), 0) : 0;

        ret->powered = power > 0;
        ret->power_mw += power;
    }
}

static void
observed_ask_leases(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct job_leases *leases = self;

    for (uint32_t n = 0; n < LEASES_AT_ONCE && leases->asked < leases->count; n++, leases->asked++) {
        struct sampled_lease *lease = &leases->items[leases->asked];
        struct bh_job_view view;

        if (!bh_view_lease(engine, (bh_lease_id){ lease->lease }, &view))
            continue;
        lease->job = view.job.v;
        lease->tenant = view.tenant.v;
        observed_fill_power(leases, &view, lease);
    }
}

/* ---- by job ---- */

/* The leases of one job, from `first` on; how many there are. */
static uint32_t
observed_put_job(const struct sampled_lease *first, uint32_t most, struct bh_observation *observation)
{
    const struct bh_series_object job = { BH_SERIES_KIND_JOB,
                                          bh_arena_printf(observation->arena, "%" PRIu64, first->job),
                                          first->tenant };
    uint64_t cpu = 0, memory = 0, gpu_memory = 0, power = 0, percent = 0;
    bool rated = true, powered = true, busy = true;
    uint32_t count = 0;

    for (; count < most && first[count].job == first->job; count++) {
        const struct sampled_lease *lease = &first[count];

        rated = rated && lease->cpu_milli != NO_RATE;
        powered = powered && lease->powered;
        busy = busy && lease->busy_percent <= 100;
        cpu += lease->cpu_milli;
        memory += lease->memory_mib;
        gpu_memory += lease->gpu_memory_mib;
        power += lease->power_mw;
        percent += lease->busy_percent;
    }
    bh_observation_put(observation, &job, BH_SERIES_JOB_MEMORY, memory);
    bh_observation_put(observation, &job, BH_SERIES_JOB_GPU_MEMORY, gpu_memory);
    if (busy)
        bh_observation_put(observation, &job, BH_SERIES_JOB_BUSY, percent * BP_A_PERCENT / count);
    if (rated)
        bh_observation_put(observation, &job, BH_SERIES_JOB_CPU, cpu);
    if (powered)
        bh_observation_put(observation, &job, BH_SERIES_JOB_POWER, power);
    return count;
}

static void
observed_put_all(struct job_leases *leases, struct bh_observation *observation)
{
    uint32_t at = 0;

    if (leases->count > 0)
        qsort(leases->items, leases->count, sizeof *leases->items, observed_compare_number);
    while (at < leases->count && leases->items[at].job == 0)
        at++;
    while (at < leases->count)
        at += observed_put_job(&leases->items[at], leases->count - at, observation);
}

bh_rc
bh_observed_jobs_put(const struct bh_observed_reports *reports, struct bh_seen_leases *seen,
                     struct bh_observation *observation, struct bh_err *err)
{
    const struct bh_owner *owner = reports->owner;
    struct job_leases leases = { .facts = reports->facts, .dir = owner->ops->directory_get(owner->self) };
    bh_rc rc = BH_OK;

    observed_read_samples(&leases, reports->fresh, seen);
    while (rc == BH_OK && leases.asked < leases.count)
        rc = owner->ops->ask(owner->self, observed_ask_leases, &leases, err);
    if (rc == BH_OK)
        observed_put_all(&leases, observation);
    owner->ops->directory_put(owner->self, leases.dir);
    free(leases.items);
    return rc;
}
