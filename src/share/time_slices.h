#ifndef BH_SHARE_TIME_SLICES_H
#define BH_SHARE_TIME_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Which lease may use shared GPUs when: time slices of their time, in proportion to weights.
 *
 * A member is a lease with shares of one GPU or of several.  It holds a time slice on all of them at once or
 * on none, so that work that spans GPUs runs on all or waits on none.  Time slices of two members never meet
 * on a GPU: one ends when all that was submitted in it is done.
 *
 * The length of a time slice is charged by the clock, from its grant to its end, and the next one goes to the
 * one with the least virtual runtime.  So a member that submits long kernels, which cannot be stopped, pays
 * with later time slices; no time slice is lost to one that has nothing to do.  The times are assumed: none
 * was measured on a GPU yet.
 *
 * Multiplexed members, which have a quantum, hand the GPUs to each other whole: a time slice is a quantum on
 * an average, longer for the larger weight, and one that stops for a moment keeps it.  It is OPEN, and
 * CONTENDED for a moment each second, so that one that has nothing to do reports it.  Where one that is not
 * multiplexed wants one of the same GPUs they share its time as all do.
 *
 * Nothing here reads a clock or does I/O: times come in, in nanoseconds that never go back, and after each
 * call bh_time_slices_state says what each member's time slice shall be. */
struct bh_time_slices;

enum { BH_TIME_SLICES_MEMBERS_MAX = 128, BH_TIME_SLICES_WEIGHT_MAX = 4200 };

/* What was submitted before a member was paused is done by then, as a rule: little is
 * submitted ahead while others wait. */
#define BH_TIME_SLICES_PAUSE_NS UINT64_C(50000000)

struct bh_time_slices_options {
    uint64_t round_ns; /* all that want have a time slice in about so long; 0: 40 ms */
    uint64_t stuck_ns; /* a time slice that does not end within it no longer keeps others out, and continues
                        * beside them for as long; 0: 10 s */
    uint64_t rest_ns;  /* a quantum continues while its member is idle for no longer; 0: 1 s */
};

struct bh_time_slices_member {
    uint32_t gpus;       /* bit g: has a share of GPU g */
    uint32_t weight;     /* in parts, 1 to BH_TIME_SLICES_WEIGHT_MAX */
    bool hard;           /* no more than its weight of 4200, also when no other wants */
    bool latency;        /* its time slices come first, as long as its virtual runtime is not ahead */
    uint64_t quantum_ns; /* of a multiplexed one, that is neither hard nor latency; 0: none */
};

enum bh_time_slice {
    BH_TIME_SLICE_NONE,      /* may submit nothing, has nothing on the GPUs */
    BH_TIME_SLICE_OPEN,      /* may submit; no other wants, or it has a quantum */
    BH_TIME_SLICE_CONTENDED, /* may submit; others wait */
    BH_TIME_SLICE_ENDING,    /* may submit nothing; what was submitted is not done yet */
};

/* All times of the options in their default where 0. */
BH_MUST_USE struct bh_time_slices *bh_time_slices_new(const struct bh_time_slices_options *options);
void bh_time_slices_free(struct bh_time_slices *slices);
BH_AUTO_DEFINE(struct bh_time_slices *, bh_time_slices_free)

/* Add a member; it starts at the virtual runtime of those that share its GPUs.
 *   BH_INVALID  no GPU, a weight out of range, or a quantum beside what forbids it
 *   BH_FULL     BH_TIME_SLICES_MEMBERS_MAX are here */
BH_MUST_USE bh_rc bh_time_slices_join(struct bh_time_slices *slices, uint64_t now_ns,
                                      const struct bh_time_slices_member *member, uint32_t *ret_index,
                                      struct bh_err *err);

/* Take one away, whatever it holds: its processes are gone. */
void bh_time_slices_leave(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index);

/* The member has work; it keeps wanting until it is idle. */
void bh_time_slices_want(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index);

/* Nothing of it is left on its GPUs: the end of a time slice that is ENDING, otherwise nothing. */
void bh_time_slices_drained(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index);

/* Nothing of it is left on its GPUs and nothing more comes in this time slice, although it has work: the rest
 * of a CONTENDED time slice is too short for it.  The time slice is over, or continues with another end where
 * no waiting member comes before it. */
void bh_time_slices_finish(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index);

/* It wants no more: its time slice ends, whatever time it had left; a quantum after the rest that it
 * may take. */
void bh_time_slices_idle(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index);

/* Its processes are stopped, or about to be: it has no time slice until it is resumed, and what it
 * wants is kept until then.  A time slice that it has ends, at the latest after BH_TIME_SLICES_PAUSE_NS:
 * no process may be left to report that it is drained.  Either may be called again. */
void bh_time_slices_pause(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index);
void bh_time_slices_resume(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index);

/* It has more than it may, and gets less for it: a tenth of its weight and never more, until that
 * is taken back.  Either may be called again. */
void bh_time_slices_throttle(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index, bool throttled);

/* Time passed.  Call at bh_time_slices_next at the latest. */
void bh_time_slices_tick(struct bh_time_slices *slices, uint64_t now_ns);

/* When something happens by itself; UINT64_MAX: nothing will. */
uint64_t bh_time_slices_next(const struct bh_time_slices *slices);

enum bh_time_slice bh_time_slices_state(const struct bh_time_slices *slices, uint32_t index);

/* When a time slice that is CONTENDED shall end, for its holder to plan for; it changes with each grant.
 * 0: nothing to plan for.  No time slice that is CONTENDED, a quantum, which is long, or one that a
 * latency member may cut short: what is submitted far ahead would keep that one waiting. */
uint64_t bh_time_slices_until_ns(const struct bh_time_slices *slices, uint32_t index);

/* What it was charged so far, of one GPU's time, without the present time slice. */
uint64_t bh_time_slices_used_ns(const struct bh_time_slices *slices, uint32_t index);

/* The same with the present time slice. */
uint64_t bh_time_slices_granted_ns(const struct bh_time_slices *slices, uint64_t now_ns, uint32_t index);

/* Whether its time slice did not end in time, so that others run beside it.  Its state is CONTENDED then,
 * without an end, and for a second after each stuck_ns ENDING, until it is drained or idle. */
bool bh_time_slices_is_stuck(const struct bh_time_slices *slices, uint32_t index);

#endif
