#include "sim/machine/guard.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/machine/vram_internal.h"

static __thread const struct sim_vram *guarded;
static struct sigaction before;

static bool
is_head_of(const struct sim_vram *vram, const char *at)
{
    size_t length = (size_t)vram->data;

    for (uint32_t i = 0; i < vram->units; i++) {
        const char *head = (const char *)vram->unit[i].slots;

        if (at >= head && at < head + length)
            return true;
    }
    return false;
}

/* A page of zeros in the place of one that the file no longer has, until the memory is opened
 * again, which gives the file its length back. */
static void
stand_in(int number, siginfo_t *about, void *context)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *page = (char *)((uintptr_t)about->si_addr & ~(uintptr_t)(size - 1));

    if (guarded == NULL || !is_head_of(guarded, page)
        || mmap(page, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
               == MAP_FAILED)
        sigaction(SIGBUS, &before, NULL); /* and again, as if without the guard */
}

/* Only for the time of a look: the process belongs to the program that loaded this. */
void
sim_guard(const struct sim_vram *vram)
{
    static pthread_mutex_t one_looks = PTHREAD_MUTEX_INITIALIZER;
    struct sigaction action = { .sa_sigaction = stand_in, .sa_flags = SA_SIGINFO };

    if (vram != NULL) {
        pthread_mutex_lock(&one_looks);
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &before);
        guarded = vram;
    } else {
        guarded = NULL;
        sigaction(SIGBUS, &before, NULL);
        pthread_mutex_unlock(&one_looks);
    }
}
