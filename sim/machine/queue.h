/* A context's way to the simulated GPU at work (sim/machine/task.h): the shared record, its
 * lock, sleeping until something has ended, and a thread that carries out what belongs to
 * the host.
 *
 * Works are numbered by context, from 1.  A process that dies leaves by dying: each context
 * holds a lock on its slot's byte of the file, and the next look drops the work of
 * those that hold none. */
#ifndef BH_SIM_MACHINE_QUEUE_H
#define BH_SIM_MACHINE_QUEUE_H

#include <stddef.h>

#include "sim/machine/task.h"

#define SIM_TASK_FILE "work"

struct sim_queue;

/* A work with what this process has to do for it. */
struct sim_order {
    struct sim_task work;
    /* HOST: carried out when it is due, on the queue's thread, one after another. */
    void (*act)(void *self);
    /* HOST, instead of `act`: asked again and again; true: it has ended. */
    bool (*poll)(void *self);
    /* Called once with the work's number, before it can run; as `ended`. */
    void (*begun)(void *self, uint64_t number);
    /* Called once when it is noticed that the work ended; must call nothing of this header.
     * Not called after sim_queue_close. */
    void (*ended)(void *self, uint64_t ended_ns);
    void *self;
};

/* Make the record of an instance in its folder, without work, in the place of one that is there.
 * False: errno. */
bool sim_queue_publish(const char *folder);

/* Let contexts of an instance have time slices of this length; UINT64_MAX: until they have
 * nothing left.  False: errno. */
bool sim_queue_set_slice(const char *folder, uint64_t slice_ns);

/* The next record has the usual length again; until then the one that was set, which stands beside
 * the folder, where no job can write.  False: errno. */
bool sim_queue_forget_slice(const char *folder);

/* Open the record in `folder` for a new context of the process that has this slot of the
 * ledger of memory.  NULL: errno; EBUSY: too many. */
struct sim_queue *sim_queue_open(const char *folder, uint32_t user);

/* What has not ended is dropped, and reported as ended now. */
void sim_queue_close(struct sim_queue *queue);

/* True in a child that a fork made: the queue is its parent's. */
bool sim_queue_is_foreign(const struct sim_queue *queue);

/* Append a work; waits while there is no room.  Its number. */
uint64_t sim_queue_submit(struct sim_queue *queue, const struct sim_order *order);

/* Has it ended, by now?  Then *ret_ended_ns is when, if `ended` was not called before. */
bool sim_queue_ended(struct sim_queue *queue, uint64_t number, uint64_t *ret_ended_ns);

/* Sleep until it has; until all has that was submitted. */
void sim_queue_wait(struct sim_queue *queue, uint64_t number);
void sim_queue_drain(struct sim_queue *queue);

/* Works that have not ended. */
uint64_t sim_queue_depth(struct sim_queue *queue);

/* Run under the lock: for changes of what `ended` reads. */
void sim_queue_lock(struct sim_queue *queue);
void sim_queue_unlock(struct sim_queue *queue);

/* Does a context that holds slot `slot` of the opened record live? */
bool sim_queue_is_alive(int fd, uint32_t slot);

/* The clock of all this, in ns. */
uint64_t sim_queue_now(void);

#endif
