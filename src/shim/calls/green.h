/* Green contexts: parts of a device's processors.  One is charged as a context, and keeps the
 * primary context of its device; memory that is allocated in it is the primary one's. */
#ifndef BH_SHIM_CALLS_GREEN_H
#define BH_SHIM_CALLS_GREEN_H

/* At the first join. */
void bh_greens_init(void);

#endif
