#include "device/holders.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/utf8.h"

static bool
holds(const char *proc_root, const char *pid, const char *node)
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
        found = strcmp(target, node) == 0;
    }
    closedir(dir);
    return found;
}

void
bh_holders_put_name(struct bh_buf *out, const char *proc_root, uint32_t pid)
{
    char path[512], memory[64];
    struct bh_buf name;
    struct bh_err err;
    const char *text = NULL;

    snprintf(path, sizeof path, "%s/%u/comm", proc_root, pid);
    bh_buf_init_fixed(&name, memory, sizeof memory);
    if (bh_file_read(path, sizeof memory - 1, &name, &err) == BH_OK)
        text = bh_buf_text(&name);
    bh_buf_put_u64(out, pid);
    if (!text || !text[0])
        return;
    memory[strcspn(memory, "\n")] = '\0';
    bh_utf8_scrub(memory);
    bh_buf_printf(out, " (%s)", memory);
}

uint32_t
bh_holders_put(struct bh_buf *out, const char *proc_root, const char *node, uint32_t most)
{
    const struct dirent *entry;
    struct bh_err err;
    uint32_t found = 0;
    DIR *dir = opendir(proc_root);

    while (dir && (entry = readdir(dir))) {
        uint64_t pid;

        if (bh_parse_u64(entry->d_name, &pid, &err) != BH_OK || pid == (uint64_t)getpid()
            || !holds(proc_root, entry->d_name, node))
            continue;
        if (found < most) {
            bh_buf_puts(out, found ? ", " : "");
            bh_holders_put_name(out, proc_root, (uint32_t)pid);
        }
        found++;
    }
    if (found > most)
        bh_buf_puts(out, ", ...");
    if (dir)
        closedir(dir);
    return found;
}
