#ifndef BH_REPLAY_WORLD_H
#define BH_REPLAY_WORLD_H

#include "engine/read/view.h"
#include "replay/node_model.h"

/* One engine, its history and the hardware it rules: what the owner thread is in the
 * daemon, with a clock that the scenario moves.
 *
 * After every step all invariants are checked: bh_engine_check, leases as far apart as
 * their tenants want, a ledger that adds up to the time that the GPUs physically had, jobs
 * whose reported state is their state, and that a refused event changed nothing.  A broken one
 * is BH_BUG, and the message says which. */
struct bh_world;

/* An empty engine whose daemon is up, and no nodes; free(NULL) is fine. */
struct bh_world *bh_world_new(void);
void bh_world_free(struct bh_world *world);
BH_AUTO_DEFINE(struct bh_world *, bh_world_free)

/* The engine (until the next step) and the hardware. */
const struct bh_engine *bh_world_engine(const struct bh_world *world);
struct bh_node_model *bh_world_node_model(struct bh_world *world);
uint64_t bh_world_now_ns(const struct bh_world *world);

/* Send an event; `now_ns` and `seq` are filled in here.  BH_BUG for broken invariants,
 * BH_UNAVAILABLE while the daemon is down, else what the engine says:
 * `ret_why` is the reason of a refusal. */
BH_MUST_USE bh_rc bh_world_send(struct bh_world *world, struct bh_event *event, struct bh_reason *ret_why,
                                struct bh_err *err);

/* Let time pass: answers arrive and time limits strike when they are due.  With a span
 * of 0 only what is due now happens.
 *   BH_BUG    broken invariants, or it does not come to rest
 *   BH_RANGE  the clock would run too far */
BH_MUST_USE bh_rc bh_world_advance(struct bh_world *world, uint64_t span_ns, struct bh_err *err);

/* A lease's processes end by themselves, whether the daemon is there or not. */
BH_MUST_USE bh_rc bh_world_exit(struct bh_world *world, const struct bh_ev_ended *end, struct bh_err *err);

/* The daemon dies with all it has in memory; comes back by replay, receives what the
 * nodes have to report and sends again what is not answered.
 *   BH_CONFLICT  it runs already
 *   BH_BUG       replay leads to a different state, or an invariant is broken */
void bh_world_stop_daemon(struct bh_world *world);
BH_MUST_USE bh_rc bh_world_start_daemon(struct bh_world *world, struct bh_err *err);

/* What jobs may take of a node's cores and memory, from when it is greeted next; 0: not
 * limited, as it is at first. */
void bh_world_set_host(struct bh_world *world, bh_node_id node, uint32_t cpu_milli, uint32_t memory_mib);

/* A node is out of reach; is there again, with or without a reboot. */
BH_MUST_USE bh_rc bh_world_lose_node(struct bh_world *world, bh_node_id node, struct bh_err *err);
BH_MUST_USE bh_rc bh_world_greet_node(struct bh_world *world, bh_node_id node, struct bh_err *err);

/* What was reported of a job last: also after it has left the engine. */
struct bh_reported_job {
    bh_lease_id lease; /* the last one that its first member had; the others follow */
    uint32_t gang;     /* members */
    enum bh_job_state state;
    enum bh_end_cause cause;
    int32_t exit_status;
};
bool bh_world_reported(const struct bh_world *world, bh_job_id job, struct bh_reported_job *ret_job);

/* Replay the whole history into an empty engine and compare; and the same for a copy
 * in a bigger block. */
BH_MUST_USE bh_rc bh_world_check_replay(struct bh_world *world, struct bh_err *err);

#endif
