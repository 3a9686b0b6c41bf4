#include "node/common/disk.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "node/common/path.h"

bh_rc
bh_disk_of(const char *devices, const char *path, uint32_t *ret_major, uint32_t *ret_minor,
           struct bh_err *err)
{
    char folder[256], file[300], memory[32];
    struct bh_buf text;
    struct stat st;

    if (stat(path, &st) != 0)
        return bh_err_errno(err, "inspect %s", path);
    bh_path_format(folder, sizeof folder, "%.200s/%u:%u", devices, major(st.st_dev), minor(st.st_dev));
    bh_path_format(file, sizeof file, "%s/partition", folder);
    bh_path_format(file, sizeof file, "%s/%s", folder, access(file, F_OK) == 0 ? "../dev" : "dev");
    bh_buf_init_fixed(&text, memory, sizeof memory);
    if (bh_file_read(file, sizeof memory - 1, &text, err) == BH_OK && bh_buf_text(&text)
        && sscanf(memory, "%u:%u", ret_major, ret_minor) == 2)
        return BH_OK;
    return bh_err_set(err, BH_UNAVAILABLE, "%.100s is not on a disk whose use can be limited", path);
}
