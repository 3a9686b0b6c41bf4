#ifndef BH_ENGINE_PREEMPT_VICTIM_H
#define BH_ENGINE_PREEMPT_VICTIM_H

#include "engine/placement/guarantee.h"
#include "engine/placement/limit.h"

/* Which jobs may be asked to leave so that another can run, and what that costs.  Victims are jobs, with all
 * members that are not done.
 *
 * A job may be asked when all of it starts or runs, its contract is not never, no guarantee protects it, and
 * it has run for the least time it was promised; and when either
 *   - its class is strictly lower (preemption), or
 *   - a guarantee covers the job that the victim does not share, and the victim's side of
 *     the tree uses more than it is guaranteed (reclaim, whatever the classes).
 *
 * Tenants above both do not matter for that: as much leaves there as comes.  So a guarantee of the job's side
 * holds against others within a tenant even when they have used up that tenant's own guarantee.  A tenant's
 * own jobs, beside those below it, have no side of their own: all that they use is borrowed from tenants
 * below that have a guarantee.
 *
 * A guarantee protects a tenant's use, up to the guarantee, against all jobs outside the tenant.
 *
 * The least run time is that of the topmost tenant on the victim's side, below the lowest common ancestor of
 * the two, that says one: what a department promised counts between departments, what a project promised
 * between projects.  Within one tenant its own counts; where none is said, the site's.
 *
 * A suspended job stays on its node.  One that must not be near the asker's on a node is therefore stopped,
 * whatever its contract, and loses its work. */

/* What it costs to have jobs leave, most important first. */
struct bh_cost {
    uint64_t owed;     /* reclaim: what the victim's side uses beyond its guarantees, in parts,
                          the least of the victims'; more is cheaper.  Of a tenant's own jobs
                          what is beyond its guarantee without those of its children: to take
                          from them what lies within only has them take it from others */
    uint32_t priority; /* the highest class among them */
    bh_part_ns lost;   /* their parts times the time that each would lose: none when it is
                          suspended, its grace when it writes a checkpoint, else all since
                          it began */
    uint32_t victims;
    uint64_t began_ns; /* the oldest; later is cheaper */
    uint64_t id;       /* the lowest first lease */
    int64_t growth;    /* of fragmentation where the job goes */
};

enum { BH_SIDES = 64 };

/* One tenant's leases of one SKU on one model, as the asker sees them. */
struct bh_side {
    uint32_t tenant, sku; /* slots; 0: not known yet */
    uint32_t model;
    bool judged; /* these three are known: */
    bool guarded;
    uint64_t owed, first; /* first: of that, what is taken before anything else is */
    uint64_t min_runtime_ns;
};

/* The asking job. */
struct bh_preemptor {
    struct bh_wanted wanted;
    uint32_t job; /* slot */
    uint8_t priority;
    enum bh_cover cover; /* against which jobs guarantees cover it: */
    uint32_t within;     /* only those within this tenant (slot), where it is not 0 */
    bool timeless;       /* costs say nothing of what changes all the time: lost work, and how
                            much is borrowed */
    uint64_t of_age_ns;  /* when the first may leave that is only too young; 0: there is none */
    struct bh_side sides[BH_SIDES];
};

/* An asker for a job (slot) that would use `wanted`. */
void bh_preemptor_init(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t job,
                       const struct bh_wanted *wanted);

/* Whether there is any job that may be preempted; whether this one could preempt any.  Quick. */
bool bh_preemptor_any_victim(const struct bh_engine *engine);
bool bh_preemptor_may(const struct bh_preemptor *preemptor, const struct bh_engine *engine);

/* Whether the job (slot) may be asked, with none gone yet; notes `of_age_ns`. */
bool bh_victim_eligible(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t job);

/* Whether the asker's guarantee holds against the job (slot), with none gone yet: no
 * guarantee protects it, and its side uses more than it is guaranteed. */
bool bh_victim_borrows(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t job);

/* Whether it may be asked with all that are imagined gone. */
bool bh_victim_may_leave(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t job);

/* Whether the job (slot) is suspended, and not stopped, when a job of the tenant (slot) has
 * it leave while it runs. */
bool bh_victim_suspends(const struct bh_engine *engine, uint32_t job, uint32_t for_tenant);

/* The cost of one job (slot), and of all that the search imagines gone. */
struct bh_cost bh_victim_cost(struct bh_preemptor *preemptor, const struct bh_search *search, uint32_t job);
struct bh_cost bh_victims_cost(struct bh_preemptor *preemptor, const struct bh_search *search);

/* What the jobs that may be asked, with none gone yet, could give back of what is counted, or `enough` when
 * it is that much at least; notes `of_age_ns`. */
uint64_t bh_victims_could_free(struct bh_preemptor *preemptor, const struct bh_search *search,
                               const struct bh_filter *filter, uint64_t enough);

/* Whether there is a job that may be asked, with none gone yet; notes `of_age_ns`. */
bool bh_victims_any(struct bh_preemptor *preemptor, const struct bh_search *search);

/* The jobs that may be preempted, one after the other, in no particular order; begin with job 0. */
struct bh_victim_iterator {
    uint32_t within; /* tenant (slot) that they stand below; 0: any */
    uint32_t tenant, job;
};

/* The next, except those that are certainly too young; false when there is none left. */
bool bh_victim_next(struct bh_preemptor *preemptor, const struct bh_search *search,
                    struct bh_victim_iterator *victims_iterator);

bool bh_cost_less(const struct bh_cost *a, const struct bh_cost *b);

#endif
