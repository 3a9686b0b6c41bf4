/* How a program begins, and how it finds calls. */
#ifndef BH_SHIM_CALLS_ENTRY_H
#define BH_SHIM_CALLS_ENTRY_H

/* At the first join: nothing is known of this process yet. */
void bh_entry_init(void);

#endif
