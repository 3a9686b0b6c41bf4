#include "node/gpu/cpu_wait.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/proc.h"

static bool
is_runnable(pid_t pid)
{
    struct bh_proc_stat stat;
    struct bh_err ignored;

    return bh_proc_stat(pid, &stat, &ignored) == BH_OK && stat.state == 'R';
}

/* "RAN WAITED SLICES", in nanoseconds. */
static void
add_thread(struct bh_cpu_wait *wait, pid_t pid, const char *thread)
{
    char name[64], text[96];
    uint64_t ran, waited;
    struct bh_err ignored;

    snprintf(name, sizeof name, "task/%.20s/schedstat", thread);
    if (bh_proc_read(pid, name, text, sizeof text, &ignored) != BH_OK
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
    DIR *threads = bh_proc_list(pid, "task");

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
    if (!before->known || !after->known || after->waited < before->waited || after->ran < before->ran)
        return false;
    /* the wait that is going on is not counted yet */
    return after->waited - before->waited >= span / 4
           || (after->runnable && after->ran - before->ran < span / 2);
}
