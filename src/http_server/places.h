#ifndef BH_HTTP_SERVER_PLACES_H
#define BH_HTTP_SERVER_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/time.h"

/* Which connection gives its place back when there is none for a newcomer.  Pure: http_server/peers.h does
 * it. */

/* What a connection does. */
enum bh_place_state {
    BH_PLACE_WAITING,     /* for the head of a request */
    BH_PLACE_RECEIVING,   /* the head is there, its body is not whole */
    BH_PLACE_CARRIED_OUT, /* never cut */
    BH_PLACE_SENDING,     /* an answer that its client has not taken whole */
    BH_PLACE_STREAM,      /* an answer without end: changes, a log */
    BH_PLACE_INTERACTIVE, /* handed over: exec, attach, forward */
    BH_PLACE_STATES
};

struct bh_place {
    uint64_t peer;   /* which Unix user or address block is at its other end */
    uint64_t holder; /* the owner that it counts for: the same, but on HTTPS the principal, once known */
    bh_ns since;     /* it is in this state; of what is received: its end of waiting */
    enum bh_place_state state;
    bool known; /* not anonymous */
};

struct bh_places_limits {
    uint32_t most; /* places */
    uint32_t most_anonymous;
    uint32_t most_each; /* of a Unix user or an address block */
};

/* An answer that is sent for longer than this has a client that does not take it; an unknown client that has
 * waited so long is not just about to send a request. */
#define BH_PLACES_SLOW_NS (5 * BH_NS_PER_S)
#define BH_PLACES_STALE_NS (2 * BH_NS_PER_S)

enum { BH_PLACES_NONE = -1 };

struct bh_places_choice {
    bool lacking;  /* the newcomer has no place of its own */
    long giver;    /* the index of the one that gives way, or BH_PLACES_NONE */
    uint32_t held; /* how many its holder held */
};

/* What there is. */
struct bh_places {
    const struct bh_place *taken; /* the newcomer's is not among them */
    size_t count;
    uint64_t *scratch; /* room for `count` numbers */
    struct bh_places_limits limits;
    bh_ns now;
};

/* `unlimited`: the newcomer is root, which only the number of all places binds.
 *
 * Unknown clients that have waited for a request for BH_PLACES_STALE_NS give way first; then the holder of
 * the most places.  Of its places the first to go is one that waits for a request, then a stream, a request
 * that is not complete, an interactive stream, an answer that is not taken; of streams the youngest, of
 * others the oldest.  A holder of fewer places than the newcomer would then have never gives way, nor one of
 * as many, except for a place that waits.  A newcomer's own places give way only where they wait.  With too
 * many unknown clients only their places give way, with too many of a user or block only theirs. */
BH_MUST_USE struct bh_places_choice bh_places_choose(const struct bh_places *places,
                                                     const struct bh_place *joining, bool unlimited);

#endif
