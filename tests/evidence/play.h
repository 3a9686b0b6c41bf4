#ifndef BH_EVIDENCE_PLAY_H
#define BH_EVIDENCE_PLAY_H

#include "engine/step/engine.h"

/* A random history for the engine, made from a seed: what people, nodes and time do.
 *
 * It knows the engine by its effects alone, as a node and a user do, so that what happens
 * next depends on the seed and on what the engine answered, never on how it is built.  It
 * needs the standard library and src/base, src/model and src/engine, no test library: the
 * same history is compiled by several compilers (determinism.py). */

enum {
    BH_PLAY_GPUS = 12,
    BH_PLAY_TENANTS = 9,
    BH_PLAY_JOBS = 60,
    BH_PLAY_WAITING = 2048,
    BH_PLAY_PIECES = 64
};

struct bh_play_job {
    uint64_t job, lease; /* lease 0: none is known to have started */
    bool hold, frozen;
};

struct bh_play {
    uint64_t random, now_ns, seq, next_job;
    uint64_t told;                 /* events that built the site so far */
    uint32_t next_tenant, renewed; /* renewed: a tenant that is to be made anew, + 1 */
    uint32_t tenant_ids[BH_PLAY_TENANTS];
    struct bh_ev_gpu gpus[BH_PLAY_GPUS];
    uint32_t job_count;
    struct bh_play_job jobs[BH_PLAY_JOBS];
    uint64_t partition_count, partitions[BH_PLAY_PIECES]; /* those carved last */
    uint32_t waiting_count;
    struct bh_effect waiting[BH_PLAY_WAITING]; /* not yet answered by a node */
    /* what was seen */
    uint64_t accepted, refused, trail; /* trail: a hash of every answer */
    uint64_t events[BH_EVENT_KINDS], decisions[BH_DECISION_KINDS], effects[BH_EFFECT_KINDS];
};

/* Capacities that no history of this kind exceeds. */
struct bh_engine_caps bh_play_caps(void);

/* Start a history. */
void bh_play_begin(struct bh_play *play, uint64_t seed);

/* What happens next to that engine, which is asked for plans of moves. */
void bh_play_next(struct bh_play *play, const struct bh_engine *engine, struct bh_event *ret_event);

/* Learn what the engine made of it; `step` is read only where rc is BH_OK. */
void bh_play_took(struct bh_play *play, const struct bh_event *event, bh_rc rc, const struct bh_step *step);

/* The name of a kind of event or decision that the history has not shown, or NULL. */
const char *bh_play_missing(const struct bh_play *play);

/* A hash of the engine's digest. */
uint64_t bh_play_digest(const struct bh_engine *engine);

/* A hash of what a step decided and ordered, field by field: padding has no say. */
uint64_t bh_play_answer(bh_rc rc, const struct bh_step *step);

/* An empty engine, and a copy made from the bytes of another, in memory of its own that
 * free() takes; the copy stands in a block of `caps` where that is not NULL.  NULL: the
 * bytes were not adopted. */
struct bh_engine *bh_play_engine(const struct bh_engine_caps *caps);
struct bh_engine *bh_play_copy(const struct bh_engine *engine, const struct bh_engine_caps *caps);

#endif
