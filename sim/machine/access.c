#include "sim/machine/access.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sim/machine/files.h"
#include "sim/machine/geometry.h"

bool
sim_access_read(const char *dir, struct sim_view *ret_view)
{
    char path[SIM_PATH_MAX];
    ssize_t got = -1;
    int fd;

    if (!sim_path(path, "%s/view/view", dir))
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    got = read(fd, ret_view, sizeof(*ret_view));
    close(fd);
    return got == (ssize_t)sizeof(*ret_view) && ret_view->magic == SIM_VIEW_MAGIC
           && ret_view->layout == SIM_LAYOUT;
}

/* Asked without opening it: the fence answers access(2), too, and at each open of a node that has
 * no driver a kernel with modules runs modprobe, twice. */
static bool
opens(const char *path, int mode)
{
    return access(path, mode) == 0;
}

static bool
cap_opens(const struct sim_view *view, uint32_t ci)
{
    uint32_t minor = sim_cap_minor(view->gpu.minor, view->gpu.gi[0].id, ci);
    char path[SIM_PATH_MAX];

    return sim_path(path, "/dev/nvidia-caps/nvidia-cap%u", minor) && opens(path, R_OK);
}

static bool
ci_opens(const struct sim_view *view, const struct sim_ci *ci)
{
    return ci->birth != 0 && cap_opens(view, ci->id);
}

bool
sim_access_allowed(const struct sim_view *view)
{
    char path[SIM_PATH_MAX];

    if (!opens("/dev/nvidiactl", R_OK | W_OK) || !sim_path(path, "/dev/nvidia%u", view->gpu.minor)
        || !opens(path, R_OK | W_OK))
        return false;
    if (view->gpu.mig_current == 0)
        return true;
    if (view->gpu.gi[0].birth == 0 || !cap_opens(view, SIM_NO_ID))
        return false;
    for (unsigned i = 0; i < SIM_CIS_MAX; i++)
        if (ci_opens(view, &view->gpu.gi[0].ci[i]))
            return true;
    return false;
}

void
sim_access_narrow(struct sim_view *view)
{
    uint32_t index = 0;

    for (unsigned i = 0; i < SIM_CIS_MAX; i++) {
        struct sim_ci *ci = &view->gpu.gi[0].ci[i];

        if (!ci_opens(view, ci))
            memset(ci, 0, sizeof(*ci));
        else
            ci->mig_index = index++; /* a job counts its own devices from 0 */
    }
}
