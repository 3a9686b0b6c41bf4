#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe/probe.h"

enum { NVIDIA_MAJOR = 195, GPUS = 32, CAPS = 4323, MAJORS = 512, CAPS_MAJOR = 238 };

/* ---- nodes that are there ---- */

static int
devices_try_numbered(const struct bh_targets *targets, const char *form, unsigned first, unsigned last)
{
    int answer = ENOENT;

    for (unsigned i = first; i <= last; i++) {
        char path[80];
        int fault;

        snprintf(path, sizeof path, "%s%u", form, i);
        if (bh_probe_is_lent(targets, path))
            continue;
        fault = bh_probe_open(path, O_RDWR);
        if (fault == 0)
            return 0;
        if (fault != ENOENT)
            answer = fault;
    }
    return answer;
}

BH_TRY(gpu_other, devices_try_numbered(targets, "/dev/nvidia", 0, GPUS - 1))
BH_TRY(instance_other, devices_try_numbered(targets, "/dev/nvidia-caps/nvidia-cap", 3, CAPS))
BH_TRY(mig_config, devices_try_numbered(targets, "/dev/nvidia-caps/nvidia-cap", 0, 2))
BH_TRY(uvm_tools, bh_probe_open("/dev/nvidia-uvm-tools", O_RDWR))
BH_TRY(modeset, bh_probe_open("/dev/nvidia-modeset", O_RDWR))
BH_TRY(imex, devices_try_numbered(targets, "/dev/nvidia-caps-imex-channels/channel", 0, 15))
BH_TRY_OPEN_ANY(render, O_RDWR, "/dev/dri/card0", "/dev/dri/card1", "/dev/dri/renderD128",
                "/dev/dri/renderD129")
BH_TRY(physical_memory, bh_probe_open("/dev/mem", O_RDONLY))
BH_TRY(io_ports, bh_probe_open("/dev/port", O_RDONLY))
BH_TRY(kernel_log, bh_probe_open("/dev/kmsg", O_RDONLY | O_NONBLOCK))
BH_TRY_OPEN_ANY(loop_device, O_RDONLY, "/dev/loop-control", "/dev/loop0")
BH_TRY(fuse, bh_probe_open("/dev/fuse", O_RDWR))
BH_TRY(kvm, bh_probe_open("/dev/kvm", O_RDWR))
BH_TRY(tunnel, bh_probe_open("/dev/net/tun", O_RDWR))
BH_TRY_OPEN_ANY(disk, O_RDONLY, "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/xvda", "/dev/sda1", "/dev/vda1")

/* ---- everything in /dev ---- */

/* What every program may use: null zero full random urandom tty ptmx and terminals. */
static int
devices_is_standard(const struct stat *st)
{
    unsigned major_number = major(st->st_rdev), minor_number = minor(st->st_rdev);

    if (!S_ISCHR(st->st_mode))
        return 0;
    if (major_number == 1)
        return minor_number == 3 || minor_number == 5 || (minor_number >= 7 && minor_number <= 9);
    return (major_number == 5 && (minor_number == 0 || minor_number == 2)) || major_number == 136;
}

static int
devices_try_folder(const struct bh_targets *targets, const char *folder)
{
    DIR *dir = opendir(folder);
    int answer = ENOENT;

    if (!dir)
        return ENOENT;
    for (const struct dirent *entry; answer != 0 && (entry = readdir(dir));) {
        char path[400];
        struct stat st;
        int fault;

        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (lstat(path, &st) != 0 || !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) || devices_is_standard(&st)
            || bh_probe_is_lent(targets, path))
            continue;
        fault = bh_probe_open(path, O_RDONLY | O_NONBLOCK);
        if (fault != ENOENT)
            answer = fault;
    }
    closedir(dir);
    return answer;
}

int
bh_try_unlisted_node(const struct bh_targets *targets)
{
    static const char *const folders[] = { "/dev",     "/dev/nvidia-caps", "/dev/dri", "/dev/input",
                                           "/dev/net", "/dev/mapper",      "/dev/snd", "/dev/vfio" };
    int answer = ENOENT;

    for (size_t i = 0; i < sizeof folders / sizeof *folders && answer != 0; i++) {
        int fault = devices_try_folder(targets, folders[i]);

        if (fault != ENOENT)
            answer = fault;
    }
    return answer;
}

/* ---- nodes of one's own ---- */

static int
devices_try_make(mode_t kind, unsigned major_number, unsigned minor_number)
{
    char path[64];
    int fault;

    snprintf(path, sizeof path, "/tmp/bulkhead-probe-%d-%u", (int)getpid(), major_number);
    fault = bh_probe_result(mknod(path, kind | 0600, makedev(major_number, minor_number)));
    if (fault == 0)
        unlink(path);
    return fault;
}

BH_TRY(make_gpu_node, devices_try_make(S_IFCHR, NVIDIA_MAJOR, 1))
BH_TRY(make_instance_node, devices_try_make(S_IFCHR, CAPS_MAJOR, 12))
BH_TRY(make_memory_node, devices_try_make(S_IFCHR, 1, 1))
BH_TRY(make_disk_node, devices_try_make(S_IFBLK, 8, 0))

int
bh_try_make_any_node(const struct bh_targets *targets)
{
    for (unsigned i = 1; i < MAJORS; i++) {
        int fault = devices_try_make(S_IFCHR, i, i);

        if (fault != EPERM)
            return fault;
    }
    return EPERM;
}

int
bh_try_driver_gpu_list(const struct bh_targets *targets)
{
    DIR *dir = opendir("/proc/driver/nvidia/gpus");
    int answer = ENOENT;

    if (!dir)
        return errno;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            answer = 0;
    closedir(dir);
    return answer;
}
