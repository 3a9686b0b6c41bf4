/* The calls that make and map memory objects. */
#ifndef BH_SHIM_CALLS_VMM_H
#define BH_SHIM_CALLS_VMM_H

/* At the first join. */
void bh_object_handles_init(void);

#endif
