#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/probe.h"

enum {
    PAGE = 4096,
    SAMPLED = 16 << 20,
    LOCKED = 256 << 20,
    HUGE_PAGES_SIZE = 2 << 20,
    TERMINALS = 200,
    CHUNK = 1 << 20,
    OVER = 32 << 20
};

/* Fresh memory is zero: what others had in it is gone. */
int
bh_try_old_memory(const struct bh_targets *targets)
{
    const uint64_t *words =
        mmap(NULL, SAMPLED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (words == MAP_FAILED)
        return errno;
    for (size_t i = 0; i < SAMPLED / sizeof *words; i++)
        if (words[i])
            return 0;
    return ENODATA;
}

int
bh_try_huge_pages(const struct bh_targets *targets)
{
    char *page =
        mmap(NULL, HUGE_PAGES_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    if (page == MAP_FAILED)
        return errno;
    page[0] = 1;
    return 0;
}

int
bh_try_lock_memory(const struct bh_targets *targets)
{
    void *locked = mmap(NULL, LOCKED, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return locked == MAP_FAILED ? errno : bh_probe_result(mlock(locked, LOCKED));
}

int
bh_try_terminals(const struct bh_targets *targets)
{
    for (int i = 0; i < TERMINALS; i++) {
        if (open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) < 0)
            return errno;
    }
    return 0;
}

/* They are killed one by one: what was forked last may not have got far. */
int
bh_try_processes_over(const struct bh_targets *targets)
{
    long most = strtol(targets->pids, NULL, 10) + 16, made = 0;
    pid_t *children = calloc((size_t)most, sizeof *children);
    int answer = 0;

    for (; children && made < most && answer == 0; made++) {
        children[made] = fork();
        if (children[made] == 0) {
            pause();
            _exit(0);
        }
        answer = children[made] < 0 ? errno : 0;
    }
    for (long i = 0; i < made; i++) {
        if (children[i] > 0 && kill(children[i], SIGKILL) == 0)
            waitpid(children[i], NULL, 0);
    }
    free(children);
    return answer;
}

/* ---- more than was given ---- */

static size_t
probe_memory_beyond(const struct bh_targets *targets)
{
    return strtoull(targets->memory, NULL, 10) + OVER;
}

static int
probe_memory_fill(int fd, size_t size)
{
    static char chunk[CHUNK];

    memset(chunk, 'x', sizeof chunk);
    for (size_t done = 0; done < size; done += sizeof chunk) {
        if (write(fd, chunk, sizeof chunk) < 0)
            return errno;
    }
    return 0;
}

static int
memory_fill_file(const char *folder, size_t size)
{
    char path[64];
    int fd;

    snprintf(path, sizeof path, "%s/bulkhead-probe-%d", folder, (int)getpid());
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    unlink(path);
    return probe_memory_fill(fd, size);
}

BH_TRY(tmpfs_over, memory_fill_file("/tmp", probe_memory_beyond(targets)))
BH_TRY(shm_over, memory_fill_file("/dev/shm", probe_memory_beyond(targets)))

int
bh_try_memfd_over(const struct bh_targets *targets)
{
    int fd = memfd_create("bulkhead-probe", MFD_CLOEXEC);

    return fd < 0 ? errno : probe_memory_fill(fd, probe_memory_beyond(targets));
}

int
bh_try_memory_over(const struct bh_targets *targets)
{
    size_t size = probe_memory_beyond(targets);
    volatile char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (bytes == MAP_FAILED)
        return errno;
    for (size_t at = 0; at < size; at += PAGE)
        bytes[at] = 1;
    return 0;
}
