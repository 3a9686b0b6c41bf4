#include "runtime/readback.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "runtime/device_filter.h"

enum { PATH_SIZE = 512, LIST_SIZE = 8192, PROGRAMS_MAX = 8, DEVICES_MAX = 16 + BH_DEVICE_RULES_MAX };

/* ---- limits ---- */

static bh_rc
readback_read_text(const char *path, char *text, size_t size, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (n < 0)
        return bh_err_errno(err, "read %s", path);
    text[n] = '\0';
    return BH_OK;
}

/* Version 1 writes a number beyond all memory for "none", version 2 the word "max". */
static bh_rc
readback_read_limit(const char *path, uint64_t *ret_value, struct bh_err *err)
{
    char text[64];
    bh_rc rc = readback_read_text(path, text, sizeof text, err);

    if (rc != BH_OK)
        return rc;
    *ret_value = strncmp(text, "max", 3) == 0 ? UINT64_MAX : strtoull(text, NULL, 10);
    if (*ret_value >= UINT64_C(1) << 62)
        *ret_value = UINT64_MAX;
    return BH_OK;
}

bh_rc
bh_readback_limits(const struct bh_cgroup_host *host, const char *path, struct bh_limits *ret_limits,
                   struct bh_err *err)
{
    char name[PATH_SIZE];
    bh_rc rc;

    snprintf(name, sizeof name, "%s%s%s/%s", host->mount, host->unified ? "" : "/memory", path,
             host->unified ? "memory.max" : "memory.limit_in_bytes");
    rc = readback_read_limit(name, &ret_limits->memory_bytes, err);
    snprintf(name, sizeof name, "%s%s%s/pids.max", host->mount, host->unified ? "" : "/pids", path);
    return rc == BH_OK ? readback_read_limit(name, &ret_limits->pids, err) : rc;
}

/* ---- devices ---- */

static uint32_t
readback_all_devices(const struct bh_sandbox_device *devices, uint32_t count,
                     struct bh_sandbox_device ret_all[DEVICES_MAX])
{
    uint32_t standard;
    const struct bh_sandbox_device *first = bh_cgroup_standard_devices(&standard);

    memcpy(ret_all, first, standard * sizeof *first);
    if (count > DEVICES_MAX - standard)
        count = DEVICES_MAX - standard;
    memcpy(ret_all + standard, devices, count * sizeof *devices);
    return standard + count;
}

static bool
readback_is_ruled(const struct bh_sandbox_device *all, uint32_t count, const char *line)
{
    for (uint32_t i = 0; i < count; i++) {
        char minor[16] = "*", rule[64];

        if (all[i].minor != BH_DEVICE_ANY_MINOR)
            snprintf(minor, sizeof minor, "%u", all[i].minor);
        snprintf(rule, sizeof rule, "c %u:%s %s", all[i].major, minor, all[i].write ? "rw" : "r");
        if (strcmp(rule, line) == 0)
            return true;
    }
    return false;
}

static bh_rc
readback_check_list(const char *folder, const struct bh_sandbox_device *all, uint32_t count,
                    struct bh_err *err)
{
    char path[PATH_SIZE], text[LIST_SIZE], *rest = NULL;
    uint32_t lines = 0;
    bh_rc rc;

    snprintf(path, sizeof path, "%.480s/devices.list", folder);
    rc = readback_read_text(path, text, sizeof text, err);
    for (char *line = rc == BH_OK ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest), lines++) {
        if (!readback_is_ruled(all, count, line))
            return bh_err_set(err, BH_CONFLICT, "not ordered: %.40s", line);
    }
    if (rc != BH_OK)
        return rc;
    if (lines != count)
        return bh_err_set(err, BH_CONFLICT, "%u rules for %u devices", lines, count);
    return BH_OK;
}

/* The digest that the kernel has of a program. */
static bh_rc
readback_read_tag(int program, uint8_t ret_tag[BPF_TAG_SIZE], struct bh_err *err)
{
    struct bpf_prog_info about = { 0 };
    union bpf_attr attr = { 0 };

    attr.info.bpf_fd = (uint32_t)program;
    attr.info.info_len = sizeof about;
    attr.info.info = (uint64_t)(uintptr_t)&about;
    if (program < 0 || syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof attr) != 0)
        return bh_err_errno(err, "look at a device filter");
    memcpy(ret_tag, about.tag, sizeof about.tag);
    return BH_OK;
}

static bh_rc
readback_read_attached(const char *folder, uint8_t ret_tag[BPF_TAG_SIZE], struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int group = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    BH_AUTO(bh_fd_close) int program = -1;
    uint32_t ids[PROGRAMS_MAX] = { 0 };
    union bpf_attr attr = { 0 };

    attr.query.target_fd = (uint32_t)group;
    attr.query.attach_type = BPF_CGROUP_DEVICE;
    attr.query.prog_ids = (uint64_t)(uintptr_t)ids;
    attr.query.prog_cnt = PROGRAMS_MAX;
    if (group < 0 || syscall(SYS_bpf, BPF_PROG_QUERY, &attr, sizeof attr) != 0)
        return bh_err_errno(err, "look for the device filter of %s", folder);
    if (attr.query.prog_cnt != 1)
        return bh_err_set(err, BH_CONFLICT, "%u device filters", attr.query.prog_cnt);
    attr = (union bpf_attr){ 0 };
    attr.prog_id = ids[0];
    program = (int)syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &attr, sizeof attr);
    return readback_read_tag(program, ret_tag, err);
}

static bh_rc
readback_check_program(const char *folder, const struct bh_sandbox_device *all, uint32_t count,
                       struct bh_err *err)
{
    uint8_t is[BPF_TAG_SIZE], wanted[BPF_TAG_SIZE];
    BH_AUTO(bh_fd_close) int program = -1;
    bh_rc rc = readback_read_attached(folder, is, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_device_filter_load(all, count, &program, err);
    if (rc != BH_OK)
        return rc;
    rc = readback_read_tag(program, wanted, err);
    if (rc != BH_OK)
        return rc;
    if (memcmp(is, wanted, sizeof is) != 0)
        return bh_err_set(err, BH_CONFLICT, "another device filter than was ordered");
    return BH_OK;
}

bh_rc
bh_readback_devices(const struct bh_cgroup_host *host, const char *path,
                    const struct bh_sandbox_device *devices, uint32_t count, struct bh_err *err)
{
    struct bh_sandbox_device all[DEVICES_MAX];
    uint32_t most = readback_all_devices(devices, count, all);
    char folder[PATH_SIZE];

    snprintf(folder, sizeof folder, "%s%s%s", host->mount, host->unified ? "" : "/devices", path);
    return (host->unified ? readback_check_program : readback_check_list)(folder, all, most, err);
}
