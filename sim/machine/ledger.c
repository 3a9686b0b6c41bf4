#include "sim/machine/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/machine/files.h"
#include "sim/machine/vram_internal.h"

#define CHANGE (1ull << 32)
#define SNAPSHOT_TRIES 10000
#define QUAD 0x0001000100010001ull /* four owners at once */

/* Slot 0 belongs to no process: its record says how far the table was ever used. */
#define HIGH_WATER(vram) ((vram)->unit[0].slots[0].generation)

typedef uint64_t __attribute__((may_alias)) quad;

struct sim_slot *
sim_ledger_slot(struct sim_vram *vram, uint32_t slot)
{
    return &vram->unit[0].slots[slot % SIM_SLOTS_MAX];
}

static uint32_t
ledger_last_used(const struct sim_vram *vram)
{
    uint32_t high = SIM_READ(HIGH_WATER(vram));

    return high < SIM_SLOTS_MAX ? high : SIM_SLOTS_MAX - 1;
}

static uint32_t
ledger_pages_in(const struct sim_vram *vram, uint64_t held)
{
    uint32_t pages = (uint32_t)held;

    return pages < vram->pages ? pages : vram->pages;
}

uint32_t
sim_ledger_held(struct sim_vram *vram, uint32_t slot)
{
    return ledger_pages_in(vram, SIM_READ(sim_ledger_slot(vram, slot)->held));
}

/* ---- which slots live ---- */

static bool
ledger_lock_slot(int fd, uint32_t slot, short type)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1 };

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Does another open file hold the slot? */
static bool
ledger_is_held(int fd, uint32_t slot)
{
    struct flock probe = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1 };

    return fcntl(fd, F_OFD_GETLK, &probe) != 0 || probe.l_type != F_UNLCK;
}

static uint16_t *
ledger_owner_of(struct sim_vram *vram, uint32_t page)
{
    return &vram->unit[page / vram->unit_pages].owner[page % vram->unit_pages];
}

/* All pages of a slot become free; only under its write lock. */
static void
ledger_strip(struct sim_vram *vram, uint32_t slot)
{
    for (uint32_t page = 0; page < vram->pages; page++) {
        uint16_t owner = (uint16_t)slot;

        if (__atomic_load_n(ledger_owner_of(vram, page), __ATOMIC_RELAXED) == owner)
            __atomic_compare_exchange_n(ledger_owner_of(vram, page), &owner, 0, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
    }
    vram->lowest = 0;
}

static void
ledger_empty_slot(struct sim_vram *vram, uint32_t slot)
{
    struct sim_slot *record = sim_ledger_slot(vram, slot);

    __atomic_store_n(&record->kind, SIM_SLOT_FREE, __ATOMIC_RELEASE);
    __atomic_store_n(&record->held, (__atomic_load_n(&record->held, __ATOMIC_RELAXED) / CHANGE + 1) * CHANGE,
                     __ATOMIC_RELEASE);
    ledger_strip(vram, slot);
}

void
sim_ledger_reap(struct sim_vram *vram)
{
    uint32_t high = ledger_last_used(vram);
    int fd = vram->unit[0].fd;

    for (uint32_t slot = 1; slot <= high; slot++) {
        if (slot == vram->slot || SIM_READ(sim_ledger_slot(vram, slot)->kind) == SIM_SLOT_FREE
            || ledger_is_held(fd, slot) || !ledger_lock_slot(fd, slot, F_WRLCK))
            continue;
        ledger_empty_slot(vram, slot);
        ledger_lock_slot(fd, slot, F_UNLCK);
    }
}

/* ---- taking slots ---- */

static void
ledger_raise_high_water(struct sim_vram *vram, uint32_t slot)
{
    uint32_t high = __atomic_load_n(&HIGH_WATER(vram), __ATOMIC_RELAXED);

    while (high < slot
           && !__atomic_compare_exchange_n(&HIGH_WATER(vram), &high, slot, true, __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED)) {
    }
}

/* The lowest free slot becomes `fd`'s.  0: there is none. */
static uint32_t
ledger_take_slot(struct sim_vram *vram, int fd, enum sim_slot_kind kind)
{
    for (uint32_t slot = 1; slot < SIM_SLOTS_MAX; slot++) {
        struct sim_slot *record = sim_ledger_slot(vram, slot);

        /* locks of this very file do not exclude each other */
        if (slot == vram->slot || ledger_is_held(fd, slot) || !ledger_lock_slot(fd, slot, F_WRLCK))
            continue;
        ledger_empty_slot(vram, slot);
        record->bytes = 0;
        record->creator = record->gate = record->busy = record->moves = 0;
        record->location = record->aside = 0;
        record->pid = (int32_t)getpid();
        __atomic_fetch_add(&record->generation, 1, __ATOMIC_RELAXED);
        ledger_raise_high_water(vram, slot);
        __atomic_store_n(&record->kind, kind, __ATOMIC_RELEASE);
        ledger_lock_slot(fd, slot, F_RDLCK);
        return slot;
    }
    errno = ENOSPC;
    return 0;
}

bool
sim_ledger_join(struct sim_vram *vram)
{
    if (vram->slot == 0)
        vram->slot = ledger_take_slot(vram, vram->unit[0].fd, SIM_SLOT_PROCESS);
    return vram->slot != 0;
}

uint32_t
sim_ledger_own(const struct sim_vram *vram)
{
    return vram->slot;
}

static int
ledger_open_again(const struct sim_vram *vram)
{
    char path[SIM_PATH_MAX];

    return sim_path(path, "%s/0", vram->folder) ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
}

void
sim_ledger_abandon(struct sim_vram *vram)
{
    for (uint32_t i = 0; i < vram->units; i++) {
        close(vram->unit[i].fd);
        vram->unit[i].fd = -1;
    }
}

/* ---- lists of pages ---- */

/* Add one page, which mostly lies next to the last run. */
static bool
ledger_add_page(struct sim_extents *list, uint32_t page, uint32_t unit_pages)
{
    struct sim_extent *last = list->count > 0 ? sim_extents_at(list, list->count - 1) : NULL;

    if (last != NULL && last->page + last->count == page && page % unit_pages != 0) {
        last->count++;
        return true;
    }
    if (last != NULL && last->page == page + 1 && last->page % unit_pages != 0) {
        last->page--;
        last->count++;
        return true;
    }
    if (list->count == 1 && list->more == NULL) {
        list->more = malloc(8 * sizeof(*list->more));
        if (list->more == NULL)
            return false;
        list->more[0] = list->first;
        list->room = 8;
    } else if (list->count > 1 && list->count == list->room) {
        struct sim_extent *more = realloc(list->more, (size_t)list->room * 2 * sizeof(*more));

        if (more == NULL)
            return false;
        list->more = more;
        list->room *= 2;
    }
    list->count++;
    *sim_extents_at(list, list->count - 1) = (struct sim_extent){ page, 1 };
    return true;
}

static bool
ledger_add_run(struct sim_extents *list, uint32_t page, uint32_t count, uint32_t unit_pages)
{
    if (count == 0)
        return true;
    if (!ledger_add_page(list, page, unit_pages))
        return false;
    sim_extents_at(list, list->count - 1)->count += count - 1;
    return true;
}

/* ---- taking pages ---- */

static bool
ledger_swap_owner(uint16_t *owner, uint16_t from, uint16_t to)
{
    return __atomic_compare_exchange_n(owner, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Four pages that lie together, all free. */
static bool
ledger_swap_four(uint16_t *owner, uint16_t from, uint16_t to)
{
    quad was = from * QUAD;

    return __atomic_compare_exchange_n((quad *)(void *)owner, &was, to * QUAD, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Take free pages from `page` on until one is not, the unit ends, or there are `most`. */
static uint32_t
ledger_take_run(struct sim_vram *vram, uint32_t page, uint32_t most)
{
    uint32_t end = (page / vram->unit_pages + 1) * vram->unit_pages, taken = 0;
    uint16_t *owner = ledger_owner_of(vram, page), slot = (uint16_t)vram->slot;

    end = end < vram->pages ? end : vram->pages;
    most = most < end - page ? most : end - page;
    while (taken < most) {
        bool four = most - taken >= 4 && (page + taken) % vram->unit_pages % 4 == 0;

        if (four && ledger_swap_four(owner + taken, 0, slot))
            taken += 4;
        else if (ledger_swap_owner(owner + taken, 0, slot))
            taken++;
        else
            break;
    }
    return taken;
}

static bool
ledger_take_low(struct sim_vram *vram, uint32_t count, struct sim_extents *list)
{
    uint32_t page = vram->lowest;

    while (count > 0 && page < vram->pages) {
        uint32_t taken = 0;

        if (__atomic_load_n(ledger_owner_of(vram, page), __ATOMIC_RELAXED) == 0)
            taken = ledger_take_run(vram, page, count);
        if (!ledger_add_run(list, page, taken, vram->unit_pages))
            return false; /* those pages come back when the process ends */
        count -= taken;
        page += taken > 0 ? taken : 1;
    }
    if (count == 0)
        vram->lowest = page;
    return count == 0;
}

static bool
ledger_take_high(struct sim_vram *vram, uint32_t count, struct sim_extents *list)
{
    for (uint32_t page = vram->pages; count > 0 && page-- > 0;) {
        if (!ledger_swap_owner(ledger_owner_of(vram, page), 0, (uint16_t)vram->slot))
            continue;
        if (!ledger_add_page(list, page, vram->unit_pages))
            return false;
        count--;
    }
    return count == 0;
}

static void
ledger_clear_pages(struct sim_vram *vram, struct sim_extents *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct sim_extent *extent = sim_extents_at(list, i);

        for (uint32_t at = 0; at < extent->count; at++)
            sim_vram_fill(vram, extent->page + at, 0, SIM_PAGE_BYTES, 0);
    }
}

static void
ledger_free_list(struct sim_extents *list)
{
    free(list->more);
    *list = (struct sim_extents){ 0 };
}

/* Pages of the list that are the slot's become another's (0: free). */
static uint32_t
ledger_give(struct sim_vram *vram, uint32_t slot, uint32_t to, struct sim_extents *list)
{
    uint32_t given = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        const struct sim_extent *extent = sim_extents_at(list, i);

        for (uint32_t at = 0; at < extent->count; at++)
            given +=
                ledger_swap_owner(ledger_owner_of(vram, extent->page + at), (uint16_t)slot, (uint16_t)to);
        if (extent->page < vram->lowest)
            vram->lowest = extent->page;
    }
    return given;
}

bool
sim_ledger_take(struct sim_vram *vram, uint32_t count, unsigned how, struct sim_extents *ret_extents)
{
    bool (*take)(struct sim_vram *, uint32_t, struct sim_extents *) =
        (how & SIM_TAKE_TOP) != 0 ? ledger_take_high : ledger_take_low;
    struct sim_extents list = { 0 };
    bool taken = count <= vram->pages && take(vram, count, &list);

    if (!taken && count <= vram->pages) { /* the dead, and what lies lower */
        ledger_give(vram, vram->slot, 0, &list);
        ledger_free_list(&list);
        sim_ledger_reap(vram);
        vram->lowest = 0;
        taken = take(vram, count, &list);
    }
    if (!taken) {
        ledger_give(vram, vram->slot, 0, &list);
        ledger_free_list(&list);
        errno = ENOMEM;
        return false;
    }
    if ((how & SIM_TAKE_CLEAR) != 0)
        ledger_clear_pages(vram, &list);
    __atomic_fetch_add(&sim_ledger_slot(vram, vram->slot)->held, CHANGE + count, __ATOMIC_ACQ_REL);
    *ret_extents = list;
    return true;
}

uint32_t
sim_extents_pages(struct sim_extents *list)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < list->count; i++)
        count += sim_extents_at(list, i)->count;
    return count;
}

/* What a slot has is counted down before a page is another's: the sum of all is never
 * more than there are. */
void
sim_ledger_release(struct sim_vram *vram, uint32_t slot, struct sim_extents *extents)
{
    uint32_t count = sim_extents_pages(extents);

    if (count > 0)
        __atomic_fetch_add(&sim_ledger_slot(vram, slot)->held, CHANGE - count, __ATOMIC_ACQ_REL);
    ledger_give(vram, slot, 0, extents);
    ledger_free_list(extents);
}

void
sim_ledger_give(struct sim_vram *vram, uint32_t slot, struct sim_extents *extents)
{
    uint32_t count = sim_extents_pages(extents);

    __atomic_fetch_add(&sim_ledger_slot(vram, vram->slot)->held, CHANGE - count, __ATOMIC_ACQ_REL);
    ledger_give(vram, vram->slot, slot, extents);
    __atomic_fetch_add(&sim_ledger_slot(vram, slot)->held, CHANGE + count, __ATOMIC_ACQ_REL);
    ledger_free_list(extents);
}

bool
sim_extents_add(const struct sim_vram *vram, struct sim_extents *extents, uint32_t page)
{
    return ledger_add_page(extents, page, vram->unit_pages);
}

bool
sim_ledger_pages(struct sim_vram *vram, uint32_t slot, struct sim_extents *ret_extents)
{
    struct sim_extents list = { 0 };

    for (uint32_t page = 0; page < vram->pages; page++)
        if (__atomic_load_n(ledger_owner_of(vram, page), __ATOMIC_RELAXED) == slot
            && !ledger_add_page(&list, page, vram->unit_pages)) {
            ledger_free_list(&list);
            return false;
        }
    *ret_extents = list;
    return true;
}

/* ---- shared objects ---- */

int
sim_ledger_share(struct sim_vram *vram, struct sim_extents *extents, uint64_t bytes, uint32_t location,
                 uint32_t *ret_slot)
{
    int fd = ledger_open_again(vram);
    uint32_t slot = fd < 0 ? 0 : ledger_take_slot(vram, fd, SIM_SLOT_SHARED);
    uint32_t count = sim_extents_pages(extents);
    struct sim_slot *record;

    if (slot == 0 || lseek(fd, (off_t)(slot * sizeof(*record)), SEEK_SET) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    record = sim_ledger_slot(vram, slot);
    record->bytes = bytes;
    record->creator = vram->slot;
    record->creator_generation = sim_ledger_slot(vram, vram->slot)->generation;
    record->location = location;
    __atomic_fetch_add(&sim_ledger_slot(vram, vram->slot)->held, CHANGE - count, __ATOMIC_ACQ_REL);
    ledger_give(vram, vram->slot, slot, extents);
    __atomic_fetch_add(&record->held, CHANGE + count, __ATOMIC_ACQ_REL);
    *ret_slot = slot;
    return fd;
}

uint32_t
sim_ledger_shared_slot(struct sim_vram *vram, int fd)
{
    struct stat ours, theirs;
    off_t at = lseek(fd, 0, SEEK_CUR);
    uint32_t slot = (uint32_t)((uint64_t)at / sizeof(struct sim_slot));

    if (at <= 0 || (uint64_t)at % sizeof(struct sim_slot) != 0 || slot >= SIM_SLOTS_MAX
        || fstat(fd, &theirs) != 0 || fstat(vram->unit[0].fd, &ours) != 0 || ours.st_ino != theirs.st_ino
        || ours.st_dev != theirs.st_dev)
        return 0;
    return SIM_READ(sim_ledger_slot(vram, slot)->kind) == SIM_SLOT_SHARED ? slot : 0;
}

int
sim_ledger_reopen(struct sim_vram *vram, uint32_t slot, uint32_t generation)
{
    int fd = slot > 0 && slot < SIM_SLOTS_MAX && ledger_is_held(vram->unit[0].fd, slot)
                 ? ledger_open_again(vram)
                 : -1;
    const struct sim_slot *record = sim_ledger_slot(vram, slot);

    if (fd < 0)
        return -1;
    if (ledger_lock_slot(fd, slot, F_RDLCK) && SIM_READ(record->kind) == SIM_SLOT_SHARED
        && SIM_READ(record->generation) == generation)
        return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

/* ---- all at once ---- */

/* The same words twice are what stood there at one instant between. */
uint64_t
sim_ledger_snapshot(struct sim_vram *vram, uint32_t *ret_pages)
{
    uint64_t seen[SIM_SLOTS_MAX], pages = 0;
    uint32_t high;
    bool same = false;

    sim_ledger_reap(vram);
    high = ledger_last_used(vram);
    for (uint32_t slot = 1; slot <= high; slot++)
        seen[slot] = __atomic_load_n(&sim_ledger_slot(vram, slot)->held, __ATOMIC_SEQ_CST);
    for (unsigned tries = 0; !same && tries < SNAPSHOT_TRIES; tries++) {
        same = true;
        for (uint32_t slot = 1; slot <= high; slot++) {
            uint64_t now = __atomic_load_n(&sim_ledger_slot(vram, slot)->held, __ATOMIC_SEQ_CST);

            same = same && now == seen[slot];
            seen[slot] = now;
        }
    }
    if (ret_pages != NULL)
        memset(ret_pages, 0, SIM_SLOTS_MAX * sizeof(*ret_pages));
    for (uint32_t slot = 1; slot <= high; slot++) {
        pages += ledger_pages_in(vram, seen[slot]);
        if (ret_pages != NULL)
            ret_pages[slot] = ledger_pages_in(vram, seen[slot]);
    }
    return pages < vram->pages ? pages : vram->pages;
}
