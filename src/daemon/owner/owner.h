#ifndef BH_DAEMON_OWNER_OWNER_H
#define BH_DAEMON_OWNER_OWNER_H

#include "daemon/state/core.h"

/* The one thread that owns engine, journal and store writer.
 *
 * It takes what is queued (commands, questions, messages of the node, the passing of
 * time; at most batch_max, never waiting for more), makes one durable transaction of
 * it, and only then answers and sends effects. */
struct bh_owner_thread;

/* Starts the thread over an open core, which it owns until bh_owner_stop. */
BH_MUST_USE bh_rc bh_owner_start(struct bh_core *core, struct bh_owner_thread **ret_owner,
                                 struct bh_err *err);

/* Begin to stop: the batch in hand finishes, what waits behind it or comes later gets
 * BH_UNAVAILABLE, watchers wake.  The port stays usable until bh_owner_stop. */
void bh_owner_halt(struct bh_owner_thread *owner);

/* Halt, wait for the thread to end, write a snapshot and free everything. */
void bh_owner_stop(struct bh_owner_thread *owner);

/* What the API uses. */
struct bh_owner bh_owner_port(struct bh_owner_thread *owner);

/* Whether the thread ended by itself because the state could not be kept, and why. */
bool bh_owner_failed(const struct bh_owner_thread *owner, struct bh_err *ret_why);

#endif
