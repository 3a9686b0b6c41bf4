#ifndef BH_DAEMON_STATE_REFUSALS_H
#define BH_DAEMON_STATE_REFUSALS_H

#include "audit/record.h"
#include "base/err.h"

/* Refusals that repeat are counted instead of written one by one.
 *
 * The first is a record at once.  Equal ones (actor, verb, object's type, tenant, rule, result) that follow
 * within the window are counted.  At its end one record is written for all of them, with their number in
 * "count", and the object's id where all were about the same object.  So each refusal is in the log, alone or
 * counted, except those that a crash takes from an open window.  The table is bounded: a refusal that finds
 * no row in it is a record of its own.
 *
 * Unknown callers have rows of their own, so that they displace no known caller, and a last row for all of
 * them that find no other: there only the first is a record of its own.  Each Unix user without a principal
 * is one kind, whatever it asks for, because a user may have many ids.  Wrong credentials
 * (daemon/owner/unauthenticated.h) are one kind for each token that they name. */
struct bh_entry;

enum {
    BH_REFUSAL_GROUPS_MAX = 512,            /* of known callers */
    BH_REFUSAL_GROUPS_UNKNOWN = 17,         /* of Unix users without a principal, with the last */
    BH_REFUSAL_GROUPS_UNAUTHENTICATED = 64, /* of wrong credentials, with the last */
    BH_REFUSAL_GROUPS_ALL =
        BH_REFUSAL_GROUPS_MAX + BH_REFUSAL_GROUPS_UNKNOWN + BH_REFUSAL_GROUPS_UNAUTHENTICATED
};

/* One kind of refusal. */
struct bh_refusal_group {
    struct bh_record_actor actor;
    struct bh_record_decision dec;
    struct bh_record_object obj;
    char verb[40];
    uint32_t tenant;
    bh_rc res;
    uint8_t req[16];   /* of the last that was counted */
    uint64_t until_ns; /* end of the window; 0: free */
    uint64_t counted;  /* and not written yet */
    uint64_t object;   /* that all of those were about; 0: about several, or none */
    uint64_t written;  /* in the open batch */
    bool fresh;        /* its first is a record of the open batch */
};

struct bh_refusals {
    struct bh_refusal_group groups[BH_REFUSAL_GROUPS_ALL]; /* in that order */
    uint64_t next_ns;                                      /* the first end of a window; 0: none */
    bool touched;                                          /* in the open batch */
    uint64_t seen;                                         /* refusals so far, recorded or counted */
};

/* As many equal ones. */
struct bh_refusal {
    const struct bh_entry *entry;
    bh_rc res;
    uint64_t times;
};

/* How many of the equal notes a record must stand for now: 0 when all were counted, all when the
 * note is no such refusal or found no place.  `until_ns`: the end of a window that begins now. */
uint64_t bh_refusals_count(struct bh_refusals *refusals, const struct bh_refusal *refusal, uint64_t until_ns);

/* A walk over the windows that are over by `now_ns` (UINT64_MAX: all), at the first with `at` 0. */
struct bh_refusal_sweep {
    uint64_t now_ns, until_ns; /* the latter: of the windows that follow */
    uint32_t at;
};

/* The next group with some that were counted and are to be written; NULL: there is none. */
struct bh_refusal_group *bh_refusals_next_due(struct bh_refusals *refusals, struct bh_refusal_sweep *sweep);

/* A record of the open batch stands for those of the group. */
void bh_refusals_written(struct bh_refusals *refusals, struct bh_refusal_group *group);

/* The open batch was committed, or thrown away. */
void bh_refusals_committed(struct bh_refusals *refusals);
void bh_refusals_aborted(struct bh_refusals *refusals);

#endif
