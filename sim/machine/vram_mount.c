#include "sim/machine/vram_mount.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sim/machine/files.h"
#include "sim/machine/vram.h"

#define FILES_MAX 16384 /* units, links to them and records of work, of 32 GPUs */

bool
sim_vram_mount(const char *dir, uint32_t mib)
{
    char path[SIM_PATH_MAX], options[64];

    if (sim_vram_is_mounted(dir))
        return true;
    snprintf(options, sizeof(options), "mode=700,size=%um,nr_inodes=%d", mib, FILES_MAX);
    return sim_path(path, "%s/vram", dir) && sim_make_folders(path, 0700) && sim_empty_folder(path)
           && mount("bulkhead-sim", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) == 0;
}

/* A line of mountinfo: "36 35 98:0 /root /where ...".  Jobs have folders of the file system,
 * and no other process has: copies of this whole mount in other name spaces go with it. */
static bool
is_part(const char *line, dev_t device)
{
    unsigned major, minor;
    char root[SIM_PATH_MAX];

    return sscanf(line, "%*d %*d %u:%u %511s", &major, &minor, root) == 3 && makedev(major, minor) == device
           && strcmp(root, "/") != 0;
}

static bool
has_part(const char *pid, dev_t device)
{
    char path[SIM_PATH_MAX], line[2 * SIM_PATH_MAX];
    FILE *file = sim_path(path, "/proc/%s/mountinfo", pid) ? fopen(path, "re") : NULL;
    bool found = false, whole = true;

    while (!found && file != NULL && fgets(line, sizeof(line), file) != NULL) {
        found = whole && is_part(line, device);
        whole = strchr(line, '\n') != NULL;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

static bool
is_lent(dev_t device)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    bool lent = false;

    while (!lent && processes != NULL && (entry = readdir(processes)) != NULL)
        lent = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && has_part(entry->d_name, device);
    if (processes != NULL)
        closedir(processes);
    return lent;
}

bool
sim_vram_unmount(const char *dir)
{
    char path[SIM_PATH_MAX];
    struct stat st;

    if (!sim_vram_is_mounted(dir))
        return true;
    if (!sim_path(path, "%s/vram", dir) || stat(path, &st) != 0)
        return false;
    if (is_lent(st.st_dev)) {
        errno = EBUSY;
        return false;
    }
    return umount2(path, MNT_DETACH) == 0;
}
