#include "device/holders.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/time.h"
#include "base/utf8.h"

enum {
    CAPS_FIRST = 3,
    CAPS_A_GPU = 135, /* minors of the capabilities of a GPU's instances */
    MAPS_BYTES_MAX = 1 << 20,
    MODULES_BYTES_MAX = 256 << 10
};

/* A machine may have very many processes, and the driver's child has a deadline. */
#define SCAN_TIMEOUT (2 * BH_NS_PER_S)

static const struct {
    const char *comm, *fix;
} known[] = {
#define BH_GPU_HOLDER(comm, fix) { comm, fix },
#include "tables/gpu_holders.tbl"
#undef BH_GPU_HOLDER
};

/* ---- which process holds what ---- */

/* Whether a path is the GPU's node, or a capability of one of its instances. */
static bool
holders_is_of_gpu(const char *path, uint32_t minor)
{
    static const char node[] = "/dev/nvidia", cap[] = "/dev/nvidia-caps/nvidia-cap";
    struct bh_err unused;
    uint32_t number;

    if (strncmp(path, node, sizeof node - 1) != 0)
        return false;
    if (minor == BH_HOLDERS_ANY)
        return true;
    if (strncmp(path, cap, sizeof cap - 1) == 0)
        return bh_parse_u32(path + sizeof cap - 1, 0, UINT32_MAX, &number, &unused) == BH_OK
               && number >= CAPS_FIRST && (number - CAPS_FIRST) / CAPS_A_GPU == minor;
    return bh_parse_u32(path + sizeof node - 1, 0, UINT32_MAX, &number, &unused) == BH_OK && number == minor;
}

static bool
holders_has_open(const char *proc_root, const char *pid, uint32_t minor)
{
    char path[512], target[256];
    const struct dirent *entry;
    bool found = false;
    DIR *dir;

    snprintf(path, sizeof path, "%s/%s/fd", proc_root, pid);
    dir = opendir(path);
    if (!dir)
        return false;
    while (!found && (entry = readdir(dir))) {
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);

        target[length > 0 ? length : 0] = '\0';
        found = holders_is_of_gpu(target, minor);
    }
    closedir(dir);
    return found;
}

/* The descriptor may be closed and the memory still mapped: the file stands at a line's end. */
static bool
holders_has_mapped(const char *proc_root, const char *pid, uint32_t minor)
{
    char path[512];
    struct bh_buf maps;
    struct bh_err unused;
    bool found = false;
    char *line, *rest;

    snprintf(path, sizeof path, "%s/%s/maps", proc_root, pid);
    bh_buf_init(&maps, MAPS_BYTES_MAX);
    if (bh_file_read(path, MAPS_BYTES_MAX - 1, &maps, &unused) == BH_OK && bh_buf_text(&maps))
        for (line = strtok_r(maps.bytes, "\n", &rest); line && !found; line = strtok_r(NULL, "\n", &rest)) {
            const char *file = strchr(line, '/');

            found = file && holders_is_of_gpu(file, minor);
        }
    bh_buf_fini(&maps);
    return found;
}

/* ---- what they are called ---- */

static void
holders_read_name(const char *proc_root, uint32_t pid, char ret_name[64])
{
    char path[512];
    struct bh_buf name;
    struct bh_err unused;

    ret_name[0] = '\0';
    snprintf(path, sizeof path, "%s/%u/comm", proc_root, pid);
    bh_buf_init_fixed(&name, ret_name, 64);
    if (bh_file_read(path, 63, &name, &unused) != BH_OK || !bh_buf_text(&name))
        ret_name[0] = '\0';
    ret_name[strcspn(ret_name, "\n")] = '\0';
    bh_utf8_scrub(ret_name);
}

/* Another gpu child of the node, which holds GPUs for the node itself. */
static bool
holders_is_sibling(const char *proc_root, uint32_t pid, const char *name)
{
    char path[512], memory[512], *end;
    struct bh_buf stat;
    struct bh_err unused;
    int parent;

    if (strcmp(name, "bulkhead-gpu") != 0)
        return false;
    snprintf(path, sizeof path, "%s/%u/stat", proc_root, pid);
    bh_buf_init_fixed(&stat, memory, sizeof memory);
    if (bh_file_read(path, sizeof memory - 1, &stat, &unused) != BH_OK || !bh_buf_text(&stat))
        return false;
    end = strrchr(memory, ')');
    return end && sscanf(end, ") %*c %d", &parent) == 1 && parent == (int)getppid();
}

static void
put_holder(struct bh_buf *out, const char *name, uint32_t pid)
{
    if (name[0])
        bh_buf_printf(out, "%s ", name);
    bh_buf_printf(out, "%" PRIu32 ": ", pid);
    for (size_t i = 0; i < BH_COUNT(known); i++)
        if (strcmp(known[i].comm, name) == 0) {
            bh_buf_puts(out, known[i].fix);
            return;
        }
    bh_buf_printf(out, "kill %" PRIu32, pid);
}

void
bh_holders_put_one(struct bh_buf *out, const char *proc_root, uint32_t pid)
{
    char name[64];

    holders_read_name(proc_root, pid, name);
    put_holder(out, name, pid);
}

uint32_t
bh_holders_put(struct bh_buf *out, const char *proc_root, uint32_t minor, uint32_t most)
{
    const struct dirent *entry;
    struct bh_err err;
    uint32_t found = 0;
    bh_ns until = bh_time_monotonic() + SCAN_TIMEOUT;
    DIR *dir = opendir(proc_root);

    while (dir && (entry = readdir(dir)) && bh_time_monotonic() < until) {
        char name[64];
        uint64_t pid;

        if (bh_parse_u64(entry->d_name, &pid, &err) != BH_OK || pid == (uint64_t)getpid()
            || (!holders_has_open(proc_root, entry->d_name, minor)
                && !holders_has_mapped(proc_root, entry->d_name, minor)))
            continue;
        holders_read_name(proc_root, (uint32_t)pid, name);
        if (holders_is_sibling(proc_root, (uint32_t)pid, name))
            continue;
        if (found < most) {
            bh_buf_puts(out, found ? "; " : "");
            put_holder(out, name, (uint32_t)pid);
        }
        found++;
    }
    if (found > most)
        bh_buf_puts(out, "; ...");
    if (dir)
        closedir(dir);
    return found;
}

bool
bh_holders_has_drm(const char *proc_root)
{
    char path[512];
    struct bh_buf modules;
    struct bh_err unused;
    bool found;

    snprintf(path, sizeof path, "%s/modules", proc_root);
    bh_buf_init(&modules, MODULES_BYTES_MAX);
    found = bh_file_read(path, MODULES_BYTES_MAX - 1, &modules, &unused) == BH_OK && bh_buf_text(&modules)
            && (strncmp(modules.bytes, "nvidia_drm ", 11) == 0 || strstr(modules.bytes, "\nnvidia_drm "));
    bh_buf_fini(&modules);
    return found;
}
