/* What the driver's library asked the kernel for: a second count of this process's video memory, made below
 * all calls of CUDA, for comparing alone.
 *
 * It passes every call on unchanged and books the calls that succeeded; it refuses, changes and delays
 * nothing, and nothing in the shim is decided by it. */
#ifndef BH_SHIM_DRIVER_RM_LEDGER_H
#define BH_SHIM_DRIVER_RM_LEDGER_H

#include <stdint.h>

/* The driver's library was opened (dlopen's handle), and is not called yet: stand in its way
 * to the kernel.  Again for the same library changes nothing. */
void bh_rm_ledger_watch(void *library);

/* What stands there.  As ioctl(2), and errno is that of the call. */
int bh_rm_ledger_ioctl(int fd, unsigned long request, void *argument);

/* Book a call that returned 0.  `before`: bh_rm_objects_now() when it was made.  `argument`
 * and what it leads to are as the kernel left them: as large as `request` and the kind of
 * object say, since it read and wrote them. */
void bh_rm_ledger_note(unsigned long request, const void *argument, uint64_t before);

/* Write into the lease's page what there is; nothing before a join.  Any thread. */
void bh_rm_ledger_publish(void);

#endif
