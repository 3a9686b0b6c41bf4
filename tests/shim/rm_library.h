#ifndef BH_SHIM_RM_LIBRARY_H
#define BH_SHIM_RM_LIBRARY_H

/* ioctl(2), as this library calls it. */
__attribute__((visibility("default"))) int bh_rm_call(int fd, unsigned long request, void *argument);

#endif
