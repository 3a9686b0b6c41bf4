#include "job_network/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/proc.h"
#include "job_network/link.h"
#include "job_network/netlink.h"

enum { SETTING_PATH = 128 };

static int
open_setting(const char *setting, int flags)
{
    char path[SETTING_PATH];

    snprintf(path, sizeof path, "/proc/sys/net/%s", setting);
    return open(path, flags | O_CLOEXEC);
}

bh_rc
bh_netns_set(const char *setting, const char *value, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open_setting(setting, O_WRONLY);

    if (fd < 0 || write(fd, value, strlen(value)) < 0)
        return bh_err_errno(err, "set net/%s", setting);
    return BH_OK;
}

char
bh_netns_setting(const char *setting)
{
    BH_AUTO(bh_fd_close) int fd = open_setting(setting, O_RDONLY);
    char value = '\0';

    return fd >= 0 && read(fd, &value, 1) == 1 ? value : '\0';
}

void
bh_netns_unmount(const struct bh_network_place *place)
{
    umount2(place->sys, MNT_DETACH | UMOUNT_NOFOLLOW);
    umount2(place->space, MNT_DETACH | UMOUNT_NOFOLLOW);
}

/* In the new namespace.  A kernel without IPv6 has nothing to switch off. */
static bh_rc
netns_set_up(const struct bh_network_place *place, int *ret_links, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int links = -1;
    char own[BH_PROC_PATH_MAX];
    bh_rc rc = bh_netlink_open(NETLINK_ROUTE, &links, err);

    bh_proc_path(BH_PROC_SELF, "ns/net", own);
    if (rc == BH_OK && bh_netns_setting("ipv6/conf/all/disable_ipv6"))
        rc = bh_netns_set("ipv6/conf/all/disable_ipv6", "1", err);
    if (rc == BH_OK && bh_netns_setting("ipv6/conf/default/disable_ipv6"))
        rc = bh_netns_set("ipv6/conf/default/disable_ipv6", "1", err);
    if (rc == BH_OK)
        rc = bh_netns_set("ipv4/ping_group_range", "0 2147483647", err);
    if (rc == BH_OK)
        rc = bh_link_set_up(links, 1, true, err); /* loopback is the first of each namespace */
    if (rc == BH_OK && mount(own, place->space, NULL, MS_BIND, NULL) != 0)
        return bh_err_errno(err, "mount a network namespace on %s", place->space);
    if (rc == BH_OK
        && mount("sysfs", place->sys, "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
        return bh_err_errno(err, "mount /sys on %s", place->sys);
    if (rc == BH_OK)
        *ret_links = bh_fd_steal(&links);
    return rc;
}

bh_rc
bh_netns_make(const struct bh_network_place *place, int home, int *ret_links, struct bh_err *err)
{
    bh_rc rc;

    if (unshare(CLONE_NEWNET) != 0)
        return bh_err_errno(err, "make a network namespace");
    rc = netns_set_up(place, ret_links, err);
    BH_ASSERT(setns(home, CLONE_NEWNET) == 0); /* in another namespace nothing may continue */
    if (rc != BH_OK)
        bh_netns_unmount(place);
    return rc;
}
