#include "shim/nvml/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/driver/connection.h"
#include "shim/driver/pages.h"
#include "shim/process/clock.h"

#define LOOK_NS (2000 * BH_MS)
enum { BUSY_OLD_S = 3 }; /* bulkhead-share no longer measures */

/* The first call puts them here; both mappings of one page are the same memory. */
static const struct bh_share_limits *_Atomic limits;
static const struct bh_share_usage *_Atomic usage;

/* ---- the pages ---- */

static bool
view_keep_limits(int fd)
{
    const struct bh_share_limits *none = NULL;
    struct bh_share_limits *mine = bh_pages_map(fd, sizeof(*mine), PROT_READ, NULL);

    close(fd);
    if (mine == NULL)
        return false;
    if (bh_pages_are_good(mine) && atomic_compare_exchange_strong(&limits, &none, mine))
        return true;
    munmap(mine, sizeof(*mine));
    return none != NULL;
}

static bool
view_keep_usage(int fd)
{
    const struct bh_share_usage *none = NULL;
    struct bh_share_usage *mine = bh_pages_map(fd, sizeof(*mine), PROT_READ, NULL);

    close(fd);
    if (mine == NULL)
        return false;
    if (!atomic_compare_exchange_strong(&usage, &none, mine))
        munmap(mine, sizeof(*mine));
    return true;
}

nvmlReturn_t
bh_view_open(void)
{
    struct bh_share_connection connection;
    bool kept;

    if (atomic_load(&limits) != NULL)
        return NVML_SUCCESS;
    if (!bh_connection_open(BH_SHARE_OBSERVE, bh_clock_ns() + LOOK_NS, &connection))
        return NVML_ERROR_NOT_READY;
    close(connection.socket);
    kept = view_keep_usage(connection.usage); /* before the limits, which say that both are there */
    return view_keep_limits(connection.limits) && kept ? NVML_SUCCESS : NVML_ERROR_NOT_READY;
}

unsigned
bh_view_count(void)
{
    const struct bh_share_limits *seen = atomic_load(&limits);

    return seen == NULL ? 0 : seen->device_count;
}

/* ---- which device is which ---- */

nvmlReturn_t
bh_view_device(unsigned index, nvmlDevice_t *ret_device)
{
    static const uint8_t lines[16] = { [4] = 1, [6] = 1, [8] = 1, [10] = 1 };
    char text[NVML_DEVICE_UUID_BUFFER_SIZE] = "GPU-";
    unsigned at = 4;
    const uint8_t *uuid;

    if (atomic_load(&limits) == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (index >= bh_view_count() || ret_device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    uuid = atomic_load(&limits)->device[index].uuid;
    for (unsigned i = 0; i < 16; i++) {
        if (lines[i])
            text[at++] = '-';
        text[at++] = "0123456789abcdef"[uuid[i] >> 4];
        text[at++] = "0123456789abcdef"[uuid[i] & 15];
    }
    return REAL(nvmlDeviceGetHandleByUUID)(text, ret_device);
}

static int
view_digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool
view_parse_uuid(const char *text, uint8_t ret_uuid[16])
{
    unsigned digits = 0;

    if (strncmp(text, "GPU-", 4) != 0)
        return false;
    for (text += 4; *text != '\0' && digits < 32; text++) {
        int digit = view_digit_of(*text);

        if (digit < 0 && *text != '-')
            return false;
        if (digit >= 0) {
            ret_uuid[digits / 2] = (uint8_t)(ret_uuid[digits / 2] << 4 | digit);
            digits++;
        }
    }
    return digits == 32 && *text == '\0';
}

nvmlReturn_t
bh_view_index(nvmlDevice_t device, unsigned *ret_index)
{
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
    uint8_t uuid[16] = { 0 };
    nvmlReturn_t rc = REAL(nvmlDeviceGetUUID)(device, text, sizeof(text));

    if (rc != NVML_SUCCESS)
        return rc;
    for (unsigned i = 0; view_parse_uuid(text, uuid) && i < bh_view_count(); i++)
        if (memcmp(atomic_load(&limits)->device[i].uuid, uuid, sizeof(uuid)) == 0) {
            *ret_index = i;
            return NVML_SUCCESS;
        }
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* ---- what is taken ---- */

void
bh_view_memory(unsigned index, uint64_t *ret_total, uint64_t *ret_used)
{
    const struct bh_share_device *device = &atomic_load(&limits)->device[index];
    uint64_t used =
        (uint64_t)bh_share_used(atomic_load(&usage), index) + atomic_load(&device->overhead_units);

    used *= BH_SHARE_UNIT_BYTES;
    *ret_total = device->memory_bytes;
    *ret_used = used < device->memory_bytes ? used : device->memory_bytes;
}

nvmlReturn_t
bh_view_busy(unsigned index, unsigned *ret_permille, bool *ret_whole)
{
    uint64_t busy = atomic_load(&atomic_load(&limits)->device[index].busy);
    uint64_t now_s = bh_clock_ns() / (1000 * BH_MS), at_s = busy >> 32;

    if ((busy & BH_SHARE_BUSY_KNOWN) == 0 || now_s > at_s + BUSY_OLD_S)
        return NVML_ERROR_NOT_SUPPORTED;
    *ret_permille = (unsigned)(busy & BH_SHARE_BUSY_PERMILLE);
    *ret_whole = (busy & BH_SHARE_BUSY_FREE) != 0;
    return NVML_SUCCESS;
}

/* As bh_share_held; but what the total names and is not settled yet is added here alone. */
static uint32_t
view_held_units(const struct bh_share_usage *seen, unsigned index, uint32_t slot)
{
    uint64_t total = atomic_load(&seen->total[index].word);
    uint64_t held = atomic_load(&seen->slot[slot].held[index]);

    if (bh_share_slot_of(total) != slot || ((held ^ total) & 0x1fff) == 0)
        return bh_share_units(held);
    return bh_share_units(held) + (uint32_t)bh_share_difference(total);
}

/* Its slot is not taken back in the very moment it dies. */
static bool
view_is_there(uint32_t pid)
{
    char path[24];
    int saved = errno;
    bool there;

    snprintf(path, sizeof(path), "/proc/%u", pid);
    there = access(path, F_OK) == 0;
    errno = saved;
    return there;
}

/* A process with several copies of the library has several slots, and is one.  Returns how
 * many users there are now. */
static unsigned
view_add_user(struct bh_view_user *users, unsigned count, uint32_t pid, uint64_t bytes)
{
    unsigned at = 0;

    while (at < count && users[at].pid != pid)
        at++;
    if (at == count)
        users[at] = (struct bh_view_user){ .pid = pid };
    users[at].bytes += bytes;
    return at == count ? count + 1 : count;
}

unsigned
bh_view_users(unsigned index, struct bh_view_user *ret_users)
{
    const struct bh_share_usage *seen = atomic_load(&usage);
    unsigned count = 0;

    for (uint32_t slot = 0; slot < BH_SHARE_SLOTS_MAX; slot++) {
        uint32_t pid = atomic_load(&seen->pid[slot]);
        uint32_t units = pid == 0 ? 0 : view_held_units(seen, index, slot);

        if (units > 0 && view_is_there(pid))
            count = view_add_user(ret_users, count, pid, units * BH_SHARE_UNIT_BYTES);
    }
    return count;
}
