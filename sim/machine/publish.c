#include "sim/machine/publish.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/machine/contexts.h"
#include "sim/machine/files.h"
#include "sim/machine/geometry.h"
#include "sim/machine/partition.h"
#include "sim/machine/proctree.h"
#include "sim/machine/vram.h"

uint64_t
sim_memory_bytes(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    uint64_t mib = gi == NULL ? sim_model_at(gpu->model)->memory_mib : sim_gi_profile(gpu, gi)->memory_mib;

    return mib << 20;
}

/* Which instance the folder `name` ("0-7", "0-w") stands for.  False when no
 * such instance exists. */
static bool
publish_find_wanted(const struct sim_state *state, const char *name, const struct sim_gpu **ret_gpu,
                    const struct sim_gi **ret_gi)
{
    char *end = NULL;
    unsigned long minor = strtoul(name, &end, 10);

    if (end == name || *end != '-' || minor >= state->system.gpus)
        return false;
    *ret_gpu = &state->gpu[minor];
    *ret_gi = NULL;
    if (strcmp(end, "-w") == 0)
        return (*ret_gpu)->mig_current == 0;
    *ret_gi = sim_gi_find(*ret_gpu, (uint32_t)strtoul(end + 1, NULL, 10));
    return (*ret_gpu)->mig_current != 0 && *ret_gi != NULL;
}

/* Folders of places where nothing stands are emptied. */
static bool
publish_remove_unwanted(const char *views, const struct sim_state *state)
{
    DIR *folder = opendir(views);
    const struct dirent *entry;
    const struct sim_gpu *gpu;
    const struct sim_gi *gi;
    char path[SIM_PATH_MAX];
    bool removed = true;

    if (folder == NULL)
        return false;
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.' || publish_find_wanted(state, entry->d_name, &gpu, &gi))
            continue;
        removed = sim_path(path, "%s/%s", views, entry->d_name) && sim_empty_folder(path) && removed;
    }
    closedir(folder);
    return removed;
}

static void
publish_fill_view(struct sim_view *view, const struct sim_state *state, const struct sim_gpu *gpu,
                  const struct sim_gi *gi)
{
    memset(view, 0, sizeof(*view));
    view->magic = SIM_VIEW_MAGIC;
    view->layout = SIM_LAYOUT;
    view->system = state->system;
    view->system.gpus = 1;
    view->system.nonce = view->system.seed = 0; /* they would show the UUIDs of other tenants */
    view->gpu = *gpu;
    memset(view->gpu.gi, 0, sizeof(view->gpu.gi));
    if (gi != NULL)
        view->gpu.gi[0] = *gi;
}

static bool
publish_read_view(const char *path, struct sim_view *ret_view)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got;

    if (fd < 0)
        return false;
    got = read(fd, ret_view, sizeof(*ret_view));
    close(fd);
    return got == (ssize_t)sizeof(*ret_view);
}

static uint64_t
publish_view_birth(const struct sim_view *view)
{
    return view->gpu.mig_current != 0 ? view->gpu.gi[0].birth : view->gpu.birth;
}

/* Births begin anew in each state file. */
static bool
publish_is_same_instance(const struct sim_view *a, const struct sim_view *b)
{
    return a->system.created_ns == b->system.created_ns && publish_view_birth(a) == publish_view_birth(b);
}

/* What an earlier instance with the same ids left is replaced, with its memory file: a
 * mapping of the old one must not count for the new one.  The folder itself stays, so
 * that the bind mount of a job that was suspended meanwhile shows what stands there now. */
static bool
publish_view(const char *dir, const struct sim_state *state, const struct sim_gpu *gpu,
             const struct sim_gi *gi)
{
    struct sim_view wanted, present;
    char folder[SIM_PATH_MAX], path[SIM_PATH_MAX], memory[SIM_PATH_MAX], name[16] = "w";
    bool exists;

    if (gi != NULL)
        snprintf(name, sizeof(name), "%u", gi->id);
    if (!sim_path(folder, "%s/view/%u-%s", dir, gpu->minor, name) || !sim_path(path, "%s/view", folder)
        || !sim_path(memory, "%s/memory", folder))
        return false;
    publish_fill_view(&wanted, state, gpu, gi);
    exists = publish_read_view(path, &present);
    if (exists && memcmp(&wanted, &present, sizeof(wanted)) == 0)
        return true;
    if (!exists || !publish_is_same_instance(&present, &wanted))
        if (!sim_empty_folder(folder) || !sim_make_folders(folder, 0755)
            || !sim_put_sparse(memory, 0444, (off_t)sim_memory_bytes(gpu, gi))
            || !sim_vram_publish(dir, gpu, gi))
            return false;
    return sim_put_file(path, 0444, &wanted, sizeof(wanted));
}

bool
sim_publish_renew(const char *dir, const struct sim_gpu *gpu)
{
    char memory[SIM_PATH_MAX];
    bool renewed;
    int fd;

    if (gpu->mig_current != 0 || !sim_path(memory, "%s/view/%u-w/memory", dir, gpu->minor))
        return false;
    fd = sim_contexts_hold(memory);
    if (fd < 0)
        return false;
    renewed = sim_vram_renew(dir, gpu);
    close(fd);
    return renewed;
}

static bool
publish_gpu(const char *dir, const struct sim_state *state, const struct sim_gpu *gpu)
{
    bool published = true;

    if (gpu->mig_current == 0)
        return publish_view(dir, state, gpu, NULL);
    for (unsigned i = 0; i < SIM_GIS_MAX; i++)
        if (gpu->gi[i].birth != 0)
            published = publish_view(dir, state, gpu, &gpu->gi[i]) && published;
    return published;
}

bool
sim_publish(const char *dir, const struct sim_state *state, bool anew)
{
    char views[SIM_PATH_MAX];
    bool published;

    /* Closed to all but root: a tenant reaches its view by a bind mount only. */
    if (!sim_path(views, "%s/view", dir) || !sim_make_folders(views, 0700))
        return false;
    published = publish_remove_unwanted(views, state);
    for (uint32_t i = 0; i < state->system.gpus; i++)
        published = publish_gpu(dir, state, &state->gpu[i]) && published;
    return sim_proctree_publish(dir, state, anew) && published;
}
