#ifndef BH_NODE_CORE_NUMA_H
#define BH_NODE_CORE_NUMA_H

#include <stdint.h>

/* The NUMA node of a GPU, from the kernel: `devices` is the folder of PCI devices
 * (BH_NUMA_DEVICES), `pci` the bus id as the driver writes it, "00000000:3B:00.0".  The
 * number + 1, at most 255; 0 where the kernel does not say. */
#define BH_NUMA_DEVICES "/sys/bus/pci/devices"
uint32_t bh_numa_of(const char *devices, const char *pci);

#endif
