/* The kernel of bulkhead-burn, as text that any driver translates for its GPU.
 *
 * burn(ns, loops): with loops it repeats a loop that often, which is work: on a shared GPU it takes longer.
 * Without, it stays until `ns` have passed by the GPU's clock, which also runs while other processes have the
 * GPU.  The simulated driver knows the kernel by its name, and lets it take ns. */
#ifndef BH_SIM_BURN_KERNEL_H
#define BH_SIM_BURN_KERNEL_H

extern const char bh_burn_ptx[];

#endif
