/* The kernel of bulkhead-burn, as text that any driver translates for its GPU.
 *
 * burn(ns, loops): with loops it goes round so often, which is work: a GPU that is shared
 * takes longer for it.  Without, it stays until `ns` have passed by the GPU's clock, which
 * goes on while others have the GPU.  The simulated driver knows it by its name, and lets
 * it take ns. */
#ifndef BH_SIM_BURN_KERNEL_H
#define BH_SIM_BURN_KERNEL_H

extern const char bh_burn_ptx[];

#endif
