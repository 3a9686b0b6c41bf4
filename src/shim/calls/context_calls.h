/* The calls that make contexts and end them. */
#ifndef BH_SHIM_CALLS_CONTEXT_CALLS_H
#define BH_SHIM_CALLS_CONTEXT_CALLS_H

/* At the first join. */
void bh_context_calls_init(void);

#endif
