/* The usage page of a lease, which its processes write as they like: whatever stands in it,
 * bulkhead-share reads and reaps it without harm, gives a slot back only when nothing is held in
 * it, and what bulkhead-share alone writes stays as it was.
 *
 * Twelve bytes each: where in the page, and the word that is put there; with the highest bit of
 * the place set a slot is reaped instead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "bulkhead/share_page.h"
#include "share/pages.h"
#include "tests/fuzz/fuzz.h"

enum { GPUS = 2, EDIT = 12, EDITS_MAX = 4096, SEATS = 4, WORDS = sizeof(struct bh_share_usage) / 8 };

static char folder[] = "/tmp/bulkhead-fuzz-XXXXXX";
static struct bh_share_pages *pages;
static struct bh_share_usage *usage;

static void
remove_folder(void)
{
    static const char *const names[] = { "limits", "slots" };
    char path[sizeof folder + 8];

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void
open_pages(void)
{
    struct bh_share_open open = { .lease = 1, .gpu_count = GPUS };
    struct bh_err err;
    bh_rc rc;

    BH_ASSERT(mkdtemp(folder));
    atexit(remove_folder);
    snprintf(open.folder, sizeof open.folder, "%s", folder);
    for (uint32_t i = 0; i < GPUS; i++)
        open.gpus[i] = (struct bh_share_gpu){ .uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff",
                                              .cap_bytes = UINT64_C(1) << 30 };
    rc = bh_share_pages_open(&open, &pages, &err);
    BH_ASSERT(rc == BH_OK);
    usage = mmap(NULL, sizeof *usage, PROT_READ | PROT_WRITE, MAP_SHARED, bh_share_pages_usage_fd(pages), 0);
    BH_ASSERT(usage != MAP_FAILED);
}

/* No process has such a number. */
static struct bh_share_owner
owner_of(uint32_t seat)
{
    return (struct bh_share_owner){ .pid = UINT32_MAX - seat, .started = seat + 1 };
}

static void
seat_all(void)
{
    for (uint32_t seat = 0; seat < SEATS; seat++)
        if (!bh_share_pages_owner(pages, seat).pid)
            BH_ASSERT(bh_share_pages_assign(pages, owner_of(seat)) == (int)seat);
}

static void
reap(uint32_t slot)
{
    bool back;

    if (!bh_share_pages_owner(pages, slot).pid)
        return;
    back = bh_share_pages_reap(pages, slot);
    BH_ASSERT(back == (bh_share_pages_owner(pages, slot).pid == 0));
    for (uint32_t device = 0; device < GPUS && back; device++)
        BH_ASSERT(bh_share_units(atomic_load(&usage->slot[slot].held[device])) == 0);
}

static void
look(void)
{
    for (uint32_t device = 0; device < GPUS; device++) {
        BH_ASSERT(bh_share_pages_used_bytes(pages, device) <= BH_SHARE_UNITS_MAX * BH_SHARE_UNIT_BYTES);
        (void)bh_share_pages_seen_bytes(pages, device);
    }
    BH_ASSERT(bh_share_pages_seen_kind(pages) <= BH_SHARE_SEEN_WHOLE);
    BH_ASSERT(!bh_share_pages_are_outdated(pages));
}

static void
edit(const uint8_t *bytes)
{
    uint32_t place;
    uint64_t word;

    memcpy(&place, bytes, sizeof place);
    memcpy(&word, bytes + sizeof place, sizeof word);
    if (place >> 31) {
        reap(place % SEATS);
        return;
    }
    memcpy((char *)usage + place % WORDS * 8, &word, sizeof word);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > (size_t)EDIT * EDITS_MAX)
        return 0;
    if (!pages)
        open_pages();
    memset(usage, 0, sizeof *usage);
    seat_all();
    for (; size >= EDIT; data += EDIT, size -= EDIT)
        edit(data);
    look();
    for (uint32_t seat = 0; seat < SEATS; seat++)
        reap(seat);
    look();
    return 0;
}
