#ifndef BH_CLI_JOBS_INTERACT_H
#define BH_CLI_JOBS_INTERACT_H

#include "cli/client/duplex.h"

/* Our standard streams and a stream's frames, until one side is done. */
struct bh_interact {
    struct bh_duplex *duplex;
    bool input;  /* pass standard input on */
    bool detach; /* Ctrl-P Ctrl-Q leaves; signals end this program instead of being sent */
    /* out */
    int status;    /* EXIT's */
    bool ready;    /* it had begun */
    bool detached; /* by keys, or by a signal */
};

/* BH_OK: it ended by EXIT, or was left.  The server's ERROR is the result, BH_UNAVAILABLE a
 * connection that broke.  The terminal is as before on return. */
BH_MUST_USE bh_rc bh_interact(struct bh_interact *interact, struct bh_err *err);

#endif
