/* Arrays and mipmapped arrays: charged for what the driver says that they need, in whole units,
 * since it is not known where they lie. */
#ifndef BH_SHIM_CALLS_ARRAY_H
#define BH_SHIM_CALLS_ARRAY_H

/* At the first join. */
void bh_arrays_init(void);

/* A context is gone, and its arrays with it. */
void bh_arrays_drop(unsigned context);

#endif
