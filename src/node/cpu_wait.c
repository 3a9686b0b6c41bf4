#include "node/cpu_wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

static bool
cpu_wait_read_text(const char *path, char *text, size_t size)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool
is_runnable(pid_t pid)
{
    char path[64], text[512];
    const char *name_end;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    name_end = cpu_wait_read_text(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    return name_end && strncmp(name_end, ") R", 3) == 0;
}

/* "RAN WAITED SLICES", in nanoseconds. */
static void
add_thread(struct bh_cpu_wait *wait, pid_t pid, const char *thread)
{
    char path[80], text[96];
    uint64_t ran, waited;

    snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, thread);
    if (!cpu_wait_read_text(path, text, sizeof text)
        || sscanf(text, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
        return;
    wait->known = true;
    wait->ran += ran;
    wait->waited += waited;
}

struct bh_cpu_wait
bh_cpu_wait_read(pid_t pid)
{
    struct bh_cpu_wait wait = { .runnable = is_runnable(pid) };
    char path[64];
    DIR *threads;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    threads = opendir(path);
    for (const struct dirent *entry; threads && (entry = readdir(threads));)
        if (entry->d_name[0] != '.')
            add_thread(&wait, pid, entry->d_name);
    if (threads)
        closedir(threads);
    return wait;
}

bool
bh_cpu_wait_starved(const struct bh_cpu_wait *before, const struct bh_cpu_wait *after, bh_ns span)
{
    if (!before->known || !after->known || after->waited < before->waited
        || after->ran < before->ran)
        return false;
    /* the wait that is going on is not counted yet */
    return after->waited - before->waited >= span / 4
           || (after->runnable && after->ran - before->ran < span / 2);
}
