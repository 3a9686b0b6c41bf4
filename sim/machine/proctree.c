#include "sim/machine/proctree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/machine/files.h"
#include "sim/machine/geometry.h"
#include "sim/machine/identity.h"
#include "sim/machine/partition.h"

#define GI_IDS 15 /* the formula of 3 + 135 M + 9 G + 1 + C has room for these */
#define MINORS_BYTES (256 * 1024)

static bool
proctree_put_text(const char *path, mode_t mode, const char *text)
{
    char folder[SIM_PATH_MAX];

    if (!sim_path(folder, "%s", path))
        return false;
    *strrchr(folder, '/') = '\0';
    return sim_make_folders(folder, 0755) && sim_put_file(path, mode, text, strlen(text));
}

static bool
proctree_put_capability(const char *path, uint32_t minor, mode_t mode)
{
    char text[128];

    snprintf(text, sizeof(text), "DeviceFileMinor: %u\nDeviceFileMode: %u\nDeviceFileModify: 1\n", minor,
             (unsigned)mode);
    return proctree_put_text(path, mode, text);
}

/* The file of an instance that there is. */
static bool
proctree_need_capability(const char *folder, uint32_t minor)
{
    char path[SIM_PATH_MAX];

    if (!sim_path(path, "%s/access", folder))
        return false;
    return access(path, F_OK) == 0 || proctree_put_capability(path, minor, 0444);
}

/* Remove the folders of instances that there are not: "gi" or "ci", and a number that is not among
 * the wanted ones.  What stands there is listed: to try each name that might takes far longer. */
static bool
proctree_remove_others(const char *path, const char *kind, uint32_t wanted)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    char place[SIM_PATH_MAX];
    bool removed = true;

    if (folder == NULL)
        return errno == ENOENT;
    while ((entry = readdir(folder)) != NULL) {
        unsigned long id;
        char *end;

        if (strncmp(entry->d_name, kind, 2) != 0)
            continue;
        id = strtoul(entry->d_name + 2, &end, 10);
        if (*end == '\0' && id < 32 && (wanted >> id & 1) != 0)
            continue;
        removed = sim_path(place, "%s/%s", path, entry->d_name) && sim_remove_tree(place) && removed;
    }
    closedir(folder);
    return removed;
}

static bool
proctree_sync_gi(const char *folder, const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    bool synced = proctree_need_capability(folder, sim_cap_minor(gpu->minor, gi->id, SIM_NO_ID));
    char path[SIM_PATH_MAX];
    uint32_t wanted = 0;

    for (uint32_t ci = 0; ci < SIM_CIS_MAX; ci++) {
        if (sim_ci_find(gi, ci) == NULL)
            continue;
        wanted |= 1u << ci;
        synced = sim_path(path, "%s/ci%u", folder, ci)
                 && proctree_need_capability(path, sim_cap_minor(gpu->minor, gi->id, ci)) && synced;
    }
    return proctree_remove_others(folder, "ci", wanted) && synced;
}

static bool
proctree_sync_gpu(const char *folder, const struct sim_gpu *gpu)
{
    char path[SIM_PATH_MAX];
    bool synced = true;
    uint32_t wanted = 0;

    for (uint32_t id = 0; gpu->mig_current != 0 && id < GI_IDS; id++) {
        const struct sim_gi *gi = sim_gi_find(gpu, id);

        if (gi == NULL)
            continue;
        wanted |= 1u << id;
        synced = sim_path(path, "%s/gi%u", folder, id) && proctree_sync_gi(path, gpu, gi) && synced;
    }
    return proctree_remove_others(folder, "gi", wanted) && synced;
}

static bool
proctree_put_mig_minors(const char *dir)
{
    char path[SIM_PATH_MAX];
    char *text = malloc(MINORS_BYTES);
    bool written = false;
    size_t used;

    if (text == NULL)
        return false;
    used = (size_t)snprintf(text, MINORS_BYTES, "config 1\nmonitor 2\n");
    for (uint32_t slot = 0; slot < SIM_GPUS_MAX * GI_IDS * (SIM_CIS_MAX + 1); slot++) {
        uint32_t gpu = slot / (GI_IDS * (SIM_CIS_MAX + 1));
        uint32_t gi = slot / (SIM_CIS_MAX + 1) % GI_IDS, ci = slot % (SIM_CIS_MAX + 1);
        char name[16] = "";

        if (ci > 0)
            snprintf(name, sizeof(name), "/ci%u", ci - 1);
        used += (size_t)snprintf(text + used, MINORS_BYTES - used, "gpu%u/gi%u%s/access %u\n", gpu, gi, name,
                                 sim_cap_minor(gpu, gi, ci > 0 ? ci - 1 : SIM_NO_ID));
    }
    if (sim_path(path, "%s/proc/driver/nvidia-caps/mig-minors", dir))
        written = proctree_put_text(path, 0444, text);
    free(text);
    return written;
}

static bool
proctree_put_gpu(const char *dir, const struct sim_gpu *gpu)
{
    char path[SIM_PATH_MAX], text[512], uuid[64];

    sim_uuid_format("GPU", &gpu->uuid, uuid, sizeof(uuid));
    snprintf(text, sizeof(text),
             "Model: \t\t %s\nIRQ:   \t\t %u\nGPU UUID: \t %s\nVideo BIOS: \t 96.00.74.00.01\n"
             "Bus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
             "Bus Location: \t 0000:%02x:00.0\nDevice Minor: \t %u\nGPU Excluded:\t No\n",
             sim_model_at(gpu->model)->product, 100 + gpu->index, uuid, gpu->bus, gpu->minor);
    return sim_path(path, "%s/proc/driver/nvidia/gpus/0000:%02x:00.0/information", dir, gpu->bus)
           && proctree_put_text(path, 0444, text);
}

static const char params[] = "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\n"
                             "DeviceFileMode: 438\nCoherentGPUMemoryMode: \"\"\n"
                             "RegistryDwords: \"\"\nRegistryDwordsPerDevice: \"\"\nRmMsg: \"\"\n"
                             "GpuBlacklist: \"\"\nTemporaryFilePath: \"\"\nExcludedGpus: \"\"\n";

static bool
proctree_put_driver_files(const char *dir, const struct sim_system *system)
{
    char path[SIM_PATH_MAX], text[256];

    snprintf(text, sizeof(text),
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  bulkhead-sim\n"
             "GCC version:  none (simulated)\n",
             system->driver);
    if (!sim_path(path, "%s/proc/driver/nvidia/version", dir) || !proctree_put_text(path, 0444, text))
        return false;
    if (!sim_path(path, "%s/proc/driver/nvidia/params", dir) || !proctree_put_text(path, 0444, params))
        return false;
    snprintf(text, sizeof(text),
             "Character devices:\n195 nvidia\n195 nvidiactl\n%3u nvidia-caps\n\nBlock "
             "devices:\n",
             system->caps_major);
    return sim_path(path, "%s/proc/devices", dir) && proctree_put_text(path, 0444, text);
}

static bool
proctree_put_fixed_files(const char *dir, const struct sim_state *state)
{
    char path[SIM_PATH_MAX];
    bool written = proctree_put_driver_files(dir, &state->system) && proctree_put_mig_minors(dir);

    for (uint32_t i = 0; i < state->system.gpus; i++)
        written = proctree_put_gpu(dir, &state->gpu[i]) && written;
    written = sim_path(path, "%s/proc/driver/nvidia/capabilities/mig/config", dir)
              && proctree_put_capability(path, 1, 0400) && written;
    return sim_path(path, "%s/proc/driver/nvidia/capabilities/mig/monitor", dir)
           && proctree_put_capability(path, 2, 0444) && written;
}

bool
sim_proctree_publish(const char *dir, const struct sim_state *state, bool anew)
{
    char path[SIM_PATH_MAX];
    bool written = !anew || proctree_put_fixed_files(dir, state);

    for (uint32_t i = 0; i < state->system.gpus; i++)
        written = sim_path(path, "%s/proc/driver/nvidia/capabilities/gpu%u/mig", dir, state->gpu[i].minor)
                  && proctree_sync_gpu(path, &state->gpu[i]) && written;
    return written;
}
