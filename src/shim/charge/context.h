/* Contexts of this process: which device each has, and what it was charged. */
#ifndef BH_SHIM_CHARGE_CONTEXT_H
#define BH_SHIM_CHARGE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/process/abi.h"

/* Where calls of a thread go: index of the device in the pages, number of the context. */
struct bh_where {
    unsigned device, context;
};

enum { BH_CONTEXT_LIMITS = 3 }; /* by enum CUlimit: stack, FIFO, heap */

/* At the first join. */
void bh_contexts_init(void);

/* The calling thread's current context.  INVALID_CONTEXT without one; OUT_OF_MEMORY when
 * its device is not of this lease. */
CUresult bh_context_here(struct bh_where *ret_where);

/* The device of a stream that a thread names there. */
unsigned bh_context_device_of(const struct bh_where *where, CUstream stream);

/* Code that a context has more: all of it shares units there.  OUT_OF_MEMORY. */
CUresult bh_context_load(unsigned context, unsigned device, uint64_t grains);
void bh_context_unload(unsigned context, unsigned device, uint64_t grains);

/* One that is being made: reserved, with a number.  NOT_INITIALIZED, INVALID_DEVICE,
 * OUT_OF_MEMORY: nothing is.  It is given up when the driver does not make it. */
CUresult bh_context_begin(CUdevice device, unsigned *ret_number);
void bh_context_give_up(unsigned number);

/* It was made: known from now on under its handle; the number under which it is.  One that was
 * seen before it was made here keeps its number. */
unsigned bh_context_know(unsigned number, CUcontext context);

/* Number of a context that is known; 0 for others.  And its handle. */
unsigned bh_context_number(CUcontext context);
CUcontext bh_context_handle(unsigned number);

/* Out of the table before the driver ends it: its handle may be another's at once.  0: it is not
 * known.  Back into it when the driver did not end it. */
unsigned bh_context_take(CUcontext context);
void bh_context_put_back(unsigned number, CUcontext context);

/* References of one that is no primary one.  release: whether it was the last. */
void bh_context_retain(unsigned number);
bool bh_context_release(unsigned number);

/* The driver ended it: forget what stands for it, then give back what it was charged itself. */
void bh_context_forget(unsigned number);
void bh_context_end(unsigned number);

/* Units that one of its limits takes; those that it took before. */
uint32_t bh_context_set_limit(unsigned number, unsigned limit, uint32_t units);

/* Let the handle of a green context stand for its device's primary context, whose memory it
 * uses, until it is taken away. */
CUresult bh_context_alias(CUcontext green, CUcontext primary);
void bh_context_unalias(CUcontext green);

/* Call `visit` with every context of a device, until it says false. */
void bh_contexts_visit(unsigned device, bool (*visit)(CUcontext context, void *self), void *self);

#endif
