#ifndef BH_NODE_SESSION_PLANTED_FIXTURE_TEST_H
#define BH_NODE_SESSION_PLANTED_FIXTURE_TEST_H

#include "node/core/node.h"
#include "node/orders/order_internal.h"

/* A node in this process, in the midst of work, on a driver and a runtime that only write down what they are
 * asked.  Its clock stands still but where the test moves it, so two of them say and do the same, to the
 * byte. Tests only: what does not work ends the program. */

enum { PLANTED_TRACE_MAX = 1 << 20 };

/* Leases of it, by what they are at. */
enum planted_lease {
    LEASE_RUNS = 41, /* on an instance */
    LEASE_SHARES,
    LEASE_SHARES_TOO,
    LEASE_SUSPENDED, /* on a whole GPU */
    LEASE_ENDED,
    LEASE_STOPS,
    LEASE_STARTS,    /* its process 1 is waited for */
    LEASES_END = 200 /* and those that orders start, by the order */
};

/* What it said, noted and asked for, in memory that outlives its process. */
struct planted_trace {
    uint32_t length;
    char text[PLANTED_TRACE_MAX];
};

struct planted_node {
    struct bh_node node;
    struct bh_orders *orders;
};

/* Bring it up, in a folder that is empty; writes to the trace from the end on. */
struct planted_node *bh_planted_new(const char *folder, struct planted_trace *trace);

/* Orders and events, one after the other: all that a node does in its life. */
void bh_planted_play(struct planted_node *planted);

#endif
