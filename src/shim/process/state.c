#include "shim/process/state.h"

#include <errno.h>
#include <sys/mman.h>

_Atomic bool bh_state_latched;

void
bh_state_wipe_on_fork(void *state, size_t bytes)
{
    int saved = errno;

    (void)madvise(state, bytes, MADV_WIPEONFORK);
    errno = saved;
}

void *
bh_state_map(size_t bytes)
{
    int saved = errno;
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory != MAP_FAILED)
        (void)madvise(memory, bytes, MADV_DONTFORK);
    errno = saved;
    return memory == MAP_FAILED ? NULL : memory;
}

void
bh_state_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

void
bh_state_latch(void)
{
    atomic_store_explicit(&bh_state_latched, true, memory_order_relaxed);
}
