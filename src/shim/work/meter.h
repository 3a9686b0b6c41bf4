/* How much work is on the way to a device for which others wait.
 *
 * No more than a few milliseconds of it are submitted ahead, so that a time slice can end soon.
 * What a kernel or a graph takes is estimated from how long earlier ones took: an event
 * behind every 200 us of estimated work says when that work was done.  Where the time slice's end is
 * known, what goes is what brings its work nearest to that end, and one partition in any case. */
#ifndef BH_SHIM_WORK_METER_H
#define BH_SHIM_WORK_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/process/abi.h"

/* A submission: what it is, where to, and how it got in. */
struct bh_pass {
    CUstream stream;
    uint64_t work;   /* the function or graph; 0: not worth an estimate */
    bool per_thread; /* the NULL stream is the thread's own */
    bool metered, inside;
    unsigned device;
    uint64_t cost_ns, until_ns, look_again_ns;
};

/* At the first join. */
void bh_meter_init(void);

enum bh_meter_verdict {
    BH_ADMIT_NOW,     /* it counts as on the way */
    BH_ADMIT_LATER,   /* ask again after pass->look_again_ns */
    BH_ADMIT_NO_MORE, /* not in this time slice: what is left of it is too short */
};

/* May this go now, in a time slice that ends at pass->until_ns (0: not known)?  A thing that takes longer
 * than the bound goes when nothing else is on the way. */
enum bh_meter_verdict bh_meter_admit(struct bh_pass *pass);

/* It was submitted, or was not (rc). */
void bh_meter_submitted(const struct bh_pass *pass, CUresult rc);

/* Submissions since the beginning, and attempts; when it stays the same nothing came. */
uint64_t bh_meter_count(void);

/* What is on the way takes so much longer that waiting for the device is too early: look again
 * then.  0: it is time to wait. */
uint64_t bh_meter_rest_ns(unsigned device);

/* Everything on the way is done. */
void bh_meter_done(unsigned device);

/* An executable graph is gone or another; a context is about to go. */
void bh_meter_forget_work(uint64_t work);
void bh_meter_forget_context(CUcontext context);

#endif
