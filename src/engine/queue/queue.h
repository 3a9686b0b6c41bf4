#ifndef BH_ENGINE_QUEUE_QUEUE_H
#define BH_ENGINE_QUEUE_QUEUE_H

#include "engine/state/state_internal.h"

/* Pending jobs, grouped in classes of equal needs, and their order. */

/* Queue a pending job by its sequence; makes the class where needed.  At the end (the usual case) and at the
 * front (requeued) this costs nothing. */
void bh_queue_add(struct bh_engine *engine, uint32_t job);

/* Take a job out of its class; an empty class is freed. */
void bh_queue_remove(struct bh_engine *engine, uint32_t job);

/* A candidate for room: the head of a class, or a suspended gang, by its first lease. */
struct bh_queue_entry {
    uint32_t class, lease; /* slots; one is 0 */
    uint8_t cover;         /* enum bh_cover of engine/placement/guarantee.h */
    bool deferred;         /* it could not be helped before, and nothing has changed for it */
    uint8_t priority;
    uint32_t tenant; /* slot */
    uint64_t sequence, id;
};

/* Whether `a` comes before `b`: first the one that guarantees cover against more jobs, then the higher
 * priority, then the one whose tenant comes first (engine/account/usage.h), then the earlier, then the lower
 * id.  The order changes with wakes only: it is computed as of the last one. */
bool bh_queue_before(const struct bh_engine *engine, const struct bh_queue_entry *a,
                     const struct bh_queue_entry *b);

/* The next of all candidates that are not held, the first first; false when there is none
 * left.  Begin with bh_queue_rewind: nothing may change between but that they are deferred. */
void bh_queue_rewind(struct bh_engine *engine);
bool bh_queue_next(struct bh_engine *engine, struct bh_queue_entry *ret_entry);

/* It could not be helped: look again only after a wake, or from `until_ns` on. */
void bh_queue_defer(struct bh_engine *engine, const struct bh_queue_entry *entry, uint64_t until_ns);

/* It could not be helped because a limit holds it back, and will not before there are news
 * below the tenant (slot), or `until_ns`: until then it is no candidate. */
void bh_queue_block(struct bh_engine *engine, uint32_t class, uint32_t within, uint64_t until_ns);

/* Whether the class is no candidate for that reason. */
bool bh_queue_is_blocked(const struct bh_engine *engine, uint32_t class);

/* The candidate that a waiting job (slot) belongs to: its class's, or its suspended lease. */
void bh_queue_entry_of_job(const struct bh_engine *engine, uint32_t job, struct bh_queue_entry *ret_entry);

/* The job (slot) that room is looked for: the class's first that has no claim, or 0; the
 * suspended lease's, or 0 when it has one. */
uint32_t bh_queue_job(struct bh_engine *engine, const struct bh_queue_entry *entry);

/* The candidate that a class's head is. */
void bh_queue_entry_of_class(const struct bh_engine *engine, uint32_t class,
                             struct bh_queue_entry *ret_entry);

#endif
