#include "node/sandbox/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "node/common/path.h"
#include "node/sandbox/keeper.h"

enum { STATUS_MAX = 16 << 10, CHILDREN_MAX = 1024, EXITING = 4 };

/* False, and "": the process is gone, the file is longer than that or has nothing in it. */
static bool
read_process(pid_t pid, const char *name, char *text, size_t size)
{
    struct bh_err ignored;

    return bh_proc_read(pid, name, text, size, &ignored) == BH_OK && text[0];
}

static bool
read_children(pid_t pid, char text[CHILDREN_MAX])
{
    char name[64];

    bh_path_format(name, sizeof name, "task/%d/children", (int)pid);
    return read_process(pid, name, text, CHILDREN_MAX);
}

/* "NSpid:\t2744\t1": number 1 of a namespace directly below the node's. */
static bool
is_first(pid_t pid)
{
    char status[STATUS_MAX], rest[8];
    const char *at = read_process(pid, "status", status, sizeof status) ? strstr(status, "\nNSpid:") : NULL;
    int here, inside;

    return at && sscanf(at, "\nNSpid:%d%d%*[\t ]%7[0-9]", &here, &inside, rest) == 2 && inside == 1;
}

/* Among the children of a process, or 0. */
static pid_t
first_child_of(pid_t parent)
{
    char text[CHILDREN_MAX], *at = text;

    if (!read_children(parent, text))
        return 0;
    for (long pid; (pid = strtol(at, &at, 10)) > 0;)
        if (is_first((pid_t)pid))
            return (pid_t)pid;
    return 0;
}

/* The keeper's child is the runtime, whose child is the sandbox. */
static pid_t
find_first(pid_t keeper)
{
    char text[CHILDREN_MAX], *at = text;
    pid_t first = first_child_of(keeper);

    if (first || !read_children(keeper, text))
        return first;
    for (long pid; !first && (pid = strtol(at, &at, 10)) > 0;)
        first = first_child_of((pid_t)pid);
    return first;
}

int
bh_process_first(const struct bh_node *node, uint64_t lease, pid_t *ret_pid)
{
    char folder[BH_NODE_PATH_MAX], id[32];
    struct bh_err ignored;
    bool inside = false;
    pid_t keeper, first;
    int fd;

    bh_node_job_folder(node, lease, folder);
    bh_node_job_id(lease, id);
    if (!bh_keeper_alive(folder, &keeper) || keeper <= 0)
        return -1;
    first = find_first(keeper);
    fd = first > 0 ? (int)syscall(SYS_pidfd_open, first, 0) : -1;
    if (fd < 0)
        return -1;
    /* looked at again behind the descriptor: the number is still the same process's */
    if (is_first(first) && node->runtime.ops->has(node->runtime.self, id, first, &inside, &ignored) == BH_OK
        && inside) {
        *ret_pid = first;
        return fd;
    }
    close(fd);
    return -1;
}

enum bh_first_state
bh_process_first_state(pid_t pid)
{
    char status[STATUS_MAX], children[CHILDREN_MAX];
    const char *caught;

    if (!read_process(pid, "status", status, sizeof status) || strncmp(status, "Name:\tinit\n", 11) != 0)
        return BH_FIRST_SETUP; /* nothing of the tenant's runs yet that could choose the name */
    caught = strstr(status, "\nSigCgt:\t");
    if (caught && strtoull(caught + 9, NULL, 16) >> (SIGUSR1 - 1) & 1)
        return BH_FIRST_WAITS;
    return read_children(pid, children) ? BH_FIRST_BEGAN : BH_FIRST_SETUP;
}

bool
bh_process_is_ending(pid_t pid)
{
    struct bh_proc_stat stat;
    struct bh_err ignored;

    return bh_proc_stat(pid, &stat, &ignored) != BH_OK || stat.state == 'Z' || stat.state == 'X'
           || stat.flags & EXITING;
}
