#include "engine/state/lease_time.h"

#include "base/assert.h"
#include "engine/state/slots.h"

static bool
is_running(const struct lease *lease)
{
    return lease->state == LEASE_RUNNING || lease->state == LEASE_SUSPENDING;
}

uint64_t
bh_lease_ran_ns(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);

    BH_ASSERT(lease->since_ns <= engine->core.now_ns);
    return lease->ran_ns + (is_running(lease) ? engine->core.now_ns - lease->since_ns : 0);
}

/* The end of a span of `length_ns`, of which the lease has run a part. */
static uint64_t
end_of_span(const struct lease *lease, uint64_t length_ns)
{
    uint64_t left = length_ns > lease->ran_ns ? length_ns - lease->ran_ns : 0;

    return left > UINT64_MAX - lease->since_ns ? UINT64_MAX : lease->since_ns + left;
}

uint64_t
bh_lease_deadline_ns(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    uint64_t strikes_ns = UINT64_MAX;

    BH_ASSERT(lease->state < LEASE_STATES);
    BH_ASSERT(lease->state == LEASE_NONE || job->id != 0);
    if (lease->state == LEASE_NONE || lease->state == LEASE_STOPPING || lease->state == LEASE_DONE)
        return UINT64_MAX;
    if (job->time_limit_ns && lease->state == LEASE_RUNNING)
        strikes_ns = end_of_span(lease, job->time_limit_ns);
    return job->deadline_ns && job->deadline_ns < strikes_ns ? job->deadline_ns : strikes_ns;
}

uint64_t
bh_lease_ends_ns(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    uint64_t assumed_ns = engine->core.settings.assumed_run_ns, ends_ns;

    BH_ASSERT(assumed_ns > 0);
    BH_ASSERT(lease->since_ns <= engine->core.now_ns);
    if (job->time_limit_ns)
        ends_ns = end_of_span(lease, job->time_limit_ns);
    else
        ends_ns = lease->since_ns + assumed_ns * (1 + (engine->core.now_ns - lease->since_ns) / assumed_ns);
    return job->deadline_ns && job->deadline_ns < ends_ns ? job->deadline_ns : ends_ns;
}
