#include "shim/driver/page.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/driver/connection.h"
#include "shim/driver/driver.h"
#include "shim/driver/pages.h"
#include "shim/process/clock.h"

#define REJOIN_NS (50 * BH_MS)
#define STATIC_NS (500 * BH_MS)

struct bh_page_state bh_page_state;

int
bh_page_device(CUdevice device)
{
    if (device < 0 || device >= BH_PAGE_ORDINALS_MAX)
        return -1;
    return (int)bh_page->index_next[device] - 1;
}

int
bh_page_managed_device(const CUmemLocation *location)
{
    int index = location->type == CU_MEM_LOCATION_TYPE_DEVICE ? bh_page_device(location->id) : 0;

    return bh_page->limits->managed == BH_SHARE_MANAGED_CHARGED ? index : -1;
}

/* ---- the pages ---- */

/* Map both, and close the descriptors.  Over the old ones when there are any: the same
 * memory, or what replaced it. */
static bool
map_pages(const struct bh_share_connection *connection)
{
    void *limits = bh_pages_map(connection->limits, sizeof(struct bh_share_limits), PROT_READ,
                                (void *)(uintptr_t)bh_page->limits);
    struct bh_share_usage *usage =
        bh_pages_map(connection->usage, sizeof(*usage), PROT_READ | PROT_WRITE, bh_page->usage);

    close(connection->limits);
    close(connection->usage);
    if (limits == NULL || usage == NULL || !bh_pages_are_good(limits))
        return false;
    (void)madvise(limits, sizeof(struct bh_share_limits), MADV_DONTFORK);
    (void)madvise(usage, sizeof(*usage), MADV_DONTFORK);
    atomic_store(&usage->pid[connection->slot], (uint32_t)getpid());
    bh_page->limits = limits;
    bh_page->usage = usage;
    return true;
}

/* ---- which device is which ---- */

static int
page_find_device(const CUuuid *uuid)
{
    for (uint32_t i = 0; i < bh_page->limits->device_count; i++)
        if (memcmp(bh_page->limits->device[i].uuid, uuid, sizeof(*uuid)) == 0)
            return (int)i;
    return -1;
}

static void
page_learn_device(int ordinal)
{
    CUdevice device;
    CUuuid uuid;
    int index = -1;

    if (REAL(cuDeviceGet)(&device, ordinal) != CUDA_SUCCESS || device < 0 || device >= BH_PAGE_ORDINALS_MAX)
        return;
    if (REAL(cuDeviceGetUuid_v2)(&uuid, device) == CUDA_SUCCESS) /* a MIG instance's own */
        index = page_find_device(&uuid);
    if (index < 0 && REAL(cuDeviceGetUuid)(&uuid, device) == CUDA_SUCCESS)
        index = page_find_device(&uuid);
    if (index < 0)
        return;
    bh_page->index_next[device] = (uint8_t)(index + 1);
    bh_page->ordinal[index] = device;
}

static void
page_learn_devices(void)
{
    int count = 0;

    if (REAL(cuDeviceGetCount)(&count) != CUDA_SUCCESS)
        return;
    bh_page->visible = (uint32_t)count;
    for (int ordinal = 0; ordinal < count; ordinal++)
        page_learn_device(ordinal);
}

/* ---- joining and leaving ---- */

/* A static program that loads the shim brings a second libc with it, which cannot start threads there:
 * neither the shim nor the driver could work. */
static bool
page_is_static_program(void)
{
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    unsigned long parts = part == NULL ? 0 : getauxval(AT_PHNUM);

    for (unsigned long i = 0; i < parts; i++)
        if (part[i].p_type == PT_INTERP)
            return false;
    return true;
}

/* The connection is the parent's; the rest of what it knows the kernel wiped. */
static void
page_leave_in_child(void)
{
    int saved = errno, socket = atomic_exchange(&bh_page->socket_next, 0);

    if (socket > 0)
        close(socket - 1);
    memset(bh_page, 0, sizeof(*bh_page));
    errno = saved;
}

/* A wiped page cannot say which descriptor to close, so it is kept before the fork. */
static int before_fork = -1;

static void
page_note_socket(void)
{
    before_fork = atomic_load(&bh_page->socket_next);
}

static void
page_close_in_child(void)
{
    atomic_store(&bh_page->socket_next, before_fork);
    page_leave_in_child();
}

static bool
page_join(void (*prepare)(void))
{
    static bool watched;
    struct bh_share_connection connection;

    bh_state_wipe_on_fork(bh_page, sizeof(*bh_page));
    prepare();
    if (!watched)
        watched = pthread_atfork(page_note_socket, NULL, page_close_in_child) == 0;
    if (!bh_connection_open(-1, bh_clock_ns() + BH_PAGE_JOIN_SECONDS * 1000 * BH_MS, &connection))
        return false;
    if (!map_pages(&connection)) {
        close(connection.socket);
        return false;
    }
    bh_page->slot = (uint32_t)connection.slot;
    atomic_store(&bh_page->socket_next, connection.socket + 1);
    page_learn_devices();
    return true;
}

/* Not for an answer: so that bulkhead-share reports it. */
static CUresult
page_refuse_static(void)
{
    struct bh_share_connection connection;

    if (bh_connection_open(BH_SHARE_STATIC, bh_clock_ns() + STATIC_NS, &connection)) {
        close(connection.limits);
        close(connection.usage);
        close(connection.socket);
    }
    return CUDA_ERROR_SYSTEM_NOT_READY;
}

CUresult
bh_page_join(void (*prepare)(void))
{
    if (page_is_static_program())
        return page_refuse_static();
    for (;;) {
        uint32_t now = BH_PAGE_APART;

        if (atomic_compare_exchange_strong(&bh_page->joined, &now, BH_PAGE_JOINING)) {
            bool joined = page_join(prepare);

            atomic_store(&bh_page->joined, joined ? BH_PAGE_JOINED : BH_PAGE_APART);
            return joined ? CUDA_SUCCESS : CUDA_ERROR_SYSTEM_NOT_READY;
        }
        if (now == BH_PAGE_JOINED)
            return CUDA_SUCCESS;
        bh_clock_sleep(BH_MS);
    }
}

/* ---- the connection ---- */

bool
bh_page_send(uint32_t word, unsigned index, uint32_t slice)
{
    struct bh_share_client_message message = { word, index, slice, 0 };
    int socket = atomic_load(&bh_page->socket_next);

    return socket > 0 && bh_connection_send(socket - 1, &message);
}

bool
bh_page_keep_connection(void)
{
    int socket = atomic_load(&bh_page->socket_next);
    struct bh_share_connection connection;

    if (socket <= 0)
        return false;
    if (!bh_connection_is_closed(socket - 1))
        return true;
    if (!bh_connection_open((int32_t)bh_page->slot, bh_clock_ns() + REJOIN_NS, &connection))
        return false;
    if (connection.slot != (int32_t)bh_page->slot || !map_pages(&connection)) {
        close(connection.socket);
        return false;
    }
    /* Under the old number, which other threads may be using; of two helpers that connected,
     * the last one's connection stays. */
    dup3(connection.socket, socket - 1, O_CLOEXEC);
    close(connection.socket);
    return true;
}
