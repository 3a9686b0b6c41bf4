#ifndef BH_DAEMON_JOURNAL_SIGNING_H
#define BH_DAEMON_JOURNAL_SIGNING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "daemon/journal/config.h"
#include "signer/message.h"

/* The way to the signer, which holds the audit log's key in a process of its own
 * (src/signer).  Owner thread only. */

struct bh_signing_ops {
    /* Whether there is a connection; tries to make one when that is due. */
    bool (*connected)(void *self);
    /* Send a question; false when the connection broke, or there is none. */
    bool (*ask)(void *self, const struct bh_signer_request *question);
    /* The next answer, waiting for `wait_ns` at most.
     *   BH_NOT_FOUND    there is none yet
     *   BH_UNAVAILABLE  the connection broke */
    bh_rc (*receive)(void *self, uint64_t wait_ns, struct bh_signer_reply *ret_answer, struct bh_err *err);
    /* It no longer answers: break the connection. */
    void (*drop)(void *self);
    /* For poll(): readable when there is an answer; -1 without a connection. */
    int (*fd)(const void *self);
};

struct bh_signing {
    const struct bh_signing_ops *ops;
    void *self;
};

/* A child of the daemon, started over a socket pair and again when it died, after longer and
 * longer pauses of 30 seconds at most; or, with signer_socket set, a different program's child at
 * that socket.  `folder` holds the child's key; both texts stay the caller's. */
struct bh_signing_process;
BH_MUST_USE struct bh_signing_process *bh_signing_process_new(const struct bh_daemon_config *config);
struct bh_signing bh_signing_process_port(struct bh_signing_process *process);

/* At the start: whether that child listens, waiting `most_ns` for it.  It is started
 * beside the daemon, after a crash of its own perhaps, and the daemon waits for it.  True for its own
 * child, which is there as soon as it is started. */
bool bh_signing_process_await(struct bh_signing_process *process, uint64_t most_ns);
void bh_signing_process_free(struct bh_signing_process *process); /* ends the child */

#endif
