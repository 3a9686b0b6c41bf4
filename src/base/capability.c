#include "base/capability.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool
is_kept(const int *kept, size_t count, int capability)
{
    for (size_t i = 0; i < count; i++)
        if (kept[i] == capability)
            return true;
    return false;
}

/* The kernel may know more than these headers: it says where its list ends. */
bh_rc
bh_capability_bound(const int *kept, size_t count, struct bh_err *err)
{
    for (int capability = 0;; capability++) {
        int has = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);

        if (has < 0)
            return BH_OK;
        if (has == 1 && !is_kept(kept, count, capability) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
            return bh_err_errno(err, "give up capability %d", capability);
    }
}

bh_rc
bh_capability_keep(const int *kept, size_t count, struct bh_err *err)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct left[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

    for (size_t i = 0; i < count; i++) {
        left[kept[i] / 32].permitted |= 1u << kept[i] % 32;
        left[kept[i] / 32].effective |= 1u << kept[i] % 32;
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, left) == 0 ? BH_OK : bh_err_errno(err, "give up capabilities");
}
