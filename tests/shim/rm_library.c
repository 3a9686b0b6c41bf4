/* A library that speaks to the kernel as the driver's does: by libc's ioctl, through a slot
 * of its own.  Built several ways, and into a driver for tests. */
#include "tests/shim/rm_library.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef BH_RM_LIBRARY_STRAIGHT /* one that does not */
int
bh_rm_call(int fd, unsigned long request, void *argument)
{
    return (int)syscall(SYS_ioctl, fd, request, argument);
}
#else
int
bh_rm_call(int fd, unsigned long request, void *argument)
{
    return ioctl(fd, request, argument);
}
#endif
