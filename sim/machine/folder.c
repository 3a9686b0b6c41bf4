#include "sim/machine/folder.h"

#include "sim/machine/files.h"

struct sim_folder sim_folder;

bool
sim_folder_memory_path(const struct sim_gpu *gpu, const struct sim_gi *gi, char *ret_path)
{
    if (sim_folder.view)
        return sim_path(ret_path, "%s/view/memory", sim_folder.dir);
    if (gi == NULL)
        return sim_path(ret_path, "%s/view/%u-w/memory", sim_folder.dir, gpu->minor);
    return sim_path(ret_path, "%s/view/%u-%u/memory", sim_folder.dir, gpu->minor, gi->id);
}

bool
sim_folder_vram_path(const struct sim_gpu *gpu, const struct sim_gi *gi, char *ret_path)
{
    if (sim_folder.view)
        return sim_path(ret_path, "%s/vram", sim_folder.dir);
    if (gi == NULL)
        return sim_path(ret_path, "%s/vram/%u-w", sim_folder.dir, gpu->minor);
    return sim_path(ret_path, "%s/vram/%u-%u", sim_folder.dir, gpu->minor, gi->id);
}
