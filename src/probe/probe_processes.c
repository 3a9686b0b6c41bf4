#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/probe.h"

static int
open_of_process(const struct bh_targets *targets, const char *name, int flags)
{
    char path[300];

    snprintf(path, sizeof path, "/proc/%s/%s", targets->pid, name);
    return bh_probe_open(path, flags);
}

static pid_t
other(const struct bh_targets *targets)
{
    return (pid_t)strtol(targets->pid, NULL, 10);
}

BH_TRY(process_seen, open_of_process(targets, "status", O_RDONLY))
BH_TRY(process_environment, open_of_process(targets, "environ", O_RDONLY))
BH_TRY(process_root, open_of_process(targets, "root/tmp", O_RDONLY | O_DIRECTORY))
BH_TRY(process_namespace, open_of_process(targets, "ns/mnt", O_RDONLY))
BH_TRY(process_signal, bh_probe_result(kill(other(targets), 0)))
BH_TRY(process_pidfd, bh_probe_result(syscall(SYS_pidfd_open, other(targets), 0)))

int
bh_try_machine_init(const struct bh_targets *targets)
{
    char path[700];

    snprintf(path, sizeof path, "/proc/1/root%s", targets->file);
    return bh_probe_open(path, O_RDONLY);
}

int
bh_try_oom_immunity(const struct bh_targets *targets)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    return fd < 0 ? errno : bh_probe_result(write(fd, "-999", 4));
}
