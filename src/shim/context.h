/* Contexts of this process: which device each has, and what it was charged. */
#ifndef BH_SHIM_CONTEXT_H
#define BH_SHIM_CONTEXT_H

#include <stdbool.h>

#include "shim/abi.h"

/* Where calls of a thread go: index of the device in the pages, number of the context. */
struct bh_where {
    unsigned device, context;
};

/* At the first join. */
void bh_contexts_init(void);

/* The calling thread's current context.  INVALID_CONTEXT without one; OUT_OF_MEMORY when
 * its device is not of this lease. */
CUresult bh_context_here(struct bh_where *ret_where);

/* Call `visit` with every context of a device, until it says false. */
void bh_contexts_visit(unsigned device, bool (*visit)(CUcontext context, void *self),
                       void *self);

#endif
