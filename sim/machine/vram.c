#include "sim/machine/vram.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/machine/files.h"
#include "sim/machine/geometry.h"
#include "sim/machine/queue.h"
#include "sim/machine/vram_internal.h"

#define PART_BYTES 32768
#define UNIT_MODE 0666 /* the folder is what is closed, as with view files */

static uint32_t
vram_pages_of_unit(const struct sim_gpu *gpu)
{
    const struct sim_model *model = sim_model_at(gpu->model);
    uint64_t bytes = (model->memory_mib << 20) / (model->units > 0 ? model->units : 1);

    return (uint32_t)((bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES) + 1;
}

static uint64_t
vram_owners_bytes(uint32_t pages)
{
    return (pages * sizeof(uint16_t) + SIM_BLOCK_BYTES - 1) / SIM_BLOCK_BYTES * SIM_BLOCK_BYTES;
}

static uint64_t
vram_records_bytes(uint32_t pages)
{
    return SLOTS_BYTES + vram_owners_bytes(pages) + (uint64_t)pages * sizeof(struct page);
}

static uint64_t
vram_head_bytes(uint32_t pages)
{
    return (vram_records_bytes(pages) + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES * SIM_PAGE_BYTES;
}

static off_t
vram_file_bytes(uint32_t pages)
{
    return (off_t)(vram_head_bytes(pages) + pages * SIM_PAGE_BYTES);
}

/* ---- where the units lie ---- */

/* What is zero is only read, which costs a third.  By calls: a job that makes the file shorter meanwhile
 * would kill processes that have it mapped. */
static bool
vram_put_zeros(int fd, uint64_t from, uint64_t to)
{
    static const char zeros[PART_BYTES];
    char part[PART_BYTES];

    for (uint64_t at = from; at < to; at += PART_BYTES) {
        size_t length = to - at < PART_BYTES ? (size_t)(to - at) : PART_BYTES;
        ssize_t got = pread(fd, part, length, (off_t)at);

        if (got == (ssize_t)length && memcmp(part, zeros, length) == 0)
            continue;
        if (pwrite(fd, zeros, length, (off_t)at) != (ssize_t)length)
            return false;
    }
    return true;
}

/* The pages of a unit become free: the instance that they were in is gone.  Where freed
 * memory is cleared their bytes go, too, and the room that they took. */
static bool
vram_forget_owners(int fd, uint32_t pages, bool clears)
{
    return vram_put_zeros(fd, 0, clears ? vram_records_bytes(pages) : SLOTS_BYTES + vram_owners_bytes(pages))
           && (!clears
               || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)vram_head_bytes(pages),
                            (off_t)(pages * SIM_PAGE_BYTES))
                      == 0);
}

/* The records have their room for good, so that no writing to them fails, and none by a mapping
 * kills, because the file system is full. */
static bool
vram_make_unit(const char *path, const struct sim_gpu *gpu)
{
    uint32_t pages = vram_pages_of_unit(gpu);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, UNIT_MODE);
    bool made = fd >= 0 && ftruncate(fd, vram_file_bytes(pages)) == 0 && fchmod(fd, UNIT_MODE) == 0
                && fallocate(fd, 0, 0, (off_t)vram_records_bytes(pages)) == 0
                && vram_forget_owners(fd, pages, (gpu->memory_faults & SIM_FAULT_LEAK) == 0);

    if (fd >= 0)
        close(fd);
    return made;
}

static bool
vram_link_unit(const char *from, const char *to)
{
    return link(from, to) == 0 || errno == EEXIST;
}

bool
sim_vram_is_mounted(const char *dir)
{
    char path[SIM_PATH_MAX];
    struct stat above, own;

    return sim_path(path, "%s/vram", dir) && stat(dir, &above) == 0 && stat(path, &own) == 0
           && above.st_dev != own.st_dev;
}

bool
sim_vram_publish(const char *dir, const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    uint32_t first = gi == NULL ? 0 : gi->start;
    uint32_t count = gi == NULL ? sim_model_at(gpu->model)->units : gi->size;
    char folder[SIM_PATH_MAX], from[SIM_PATH_MAX], to[SIM_PATH_MAX], name[16] = "w";
    mode_t mode = sim_vram_is_mounted(dir) ? 0755 : 0700;
    bool made = sim_path(folder, "%s/vram", dir) && sim_make_folders(folder, 0700);

    if (gi != NULL)
        snprintf(name, sizeof(name), "%u", gi->id);
    made = made && sim_path(folder, "%s/vram/%u-%s", dir, gpu->minor, name) && sim_make_folders(folder, mode)
           && sim_empty_folder(folder) && sim_queue_forget_slice(folder);
    for (uint32_t i = 0; made && i < (count > 0 ? count : 1); i++)
        made = sim_path(from, "%s/vram/unit-%u-%u", dir, gpu->minor, first + i) && vram_make_unit(from, gpu)
               && sim_path(to, "%s/%u", folder, i) && vram_link_unit(from, to);
    return made && sim_queue_publish(folder);
}

static bool
vram_clear_pads(int fd, uint32_t pages)
{
    struct page part[PART_BYTES / sizeof(struct page)];
    uint32_t most = sizeof(part) / sizeof(part[0]);

    for (uint32_t i = 0; i < pages; i += most) {
        size_t length = (pages - i < most ? pages - i : most) * sizeof(part[0]);
        off_t at = (off_t)(SLOTS_BYTES + vram_owners_bytes(pages) + i * sizeof(part[0]));
        bool written = false;

        if (pread(fd, part, length, at) != (ssize_t)length)
            return false;
        for (uint32_t n = 0; n < length / sizeof(part[0]); n++) {
            written = written || part[n].pad != 0;
            part[n].pad = 0;
        }
        if (written && pwrite(fd, part, length, at) != (ssize_t)length)
            return false;
    }
    return true;
}

/* What a job wrote of a unit where no page's bytes lie: behind the records, and in them where these
 * stay. */
static bool
vram_clear_gaps(int fd, uint32_t pages, bool clears)
{
    uint64_t length = vram_records_bytes(pages), head = vram_head_bytes(pages);
    uint64_t whole = (length + SIM_BLOCK_BYTES - 1) / SIM_BLOCK_BYTES * SIM_BLOCK_BYTES;

    return (clears || vram_clear_pads(fd, pages)) && vram_put_zeros(fd, length, whole)
           && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)whole, (off_t)(head - whole))
                  == 0;
}

bool
sim_vram_renew(const char *dir, const struct sim_gpu *gpu)
{
    uint32_t pages = vram_pages_of_unit(gpu), units = sim_model_at(gpu->model)->units;
    char folder[SIM_PATH_MAX], path[SIM_PATH_MAX];
    bool clears = (gpu->memory_faults & SIM_FAULT_LEAK) == 0;
    bool renewed = sim_path(folder, "%s/vram/%u-w", dir, gpu->minor);

    for (uint32_t i = 0; renewed && i < (units > 0 ? units : 1); i++) {
        int fd = sim_path(path, "%s/vram/unit-%u-%u", dir, gpu->minor, i)
                     ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
                     : -1;

        renewed = fd >= 0 && ftruncate(fd, vram_file_bytes(pages)) == 0
                  && fallocate(fd, 0, 0, (off_t)vram_records_bytes(pages)) == 0
                  && vram_forget_owners(fd, pages, clears) && vram_clear_gaps(fd, pages, clears);
        if (fd >= 0)
            close(fd);
    }
    return renewed && sim_queue_publish(folder);
}

bool
sim_vram_forget(const char *dir)
{
    char path[SIM_PATH_MAX];

    return sim_path(path, "%s/vram", dir) && sim_empty_folder(path);
}

/* ---- opening ---- */

static bool
vram_open_unit(struct sim_vram *vram, const char *folder, uint32_t index)
{
    struct unit *unit = &vram->unit[index];
    off_t wanted = vram_file_bytes(vram->unit_pages);
    char path[SIM_PATH_MAX];
    struct stat st;
    void *map;

    unit->fd = sim_path(path, "%s/%u", folder, index) ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    /* A job may have made it shorter or longer. */
    if (unit->fd < 0 || fstat(unit->fd, &st) != 0
        || (st.st_size != wanted && ftruncate(unit->fd, wanted) != 0))
        return false;
    map = mmap(NULL, vram_head_bytes(vram->unit_pages), PROT_READ | PROT_WRITE, MAP_SHARED, unit->fd, 0);
    if (map == MAP_FAILED)
        return false;
    unit->slots = map;
    unit->owner = (uint16_t *)(void *)((char *)map + SLOTS_BYTES);
    unit->pages = (struct page *)(void *)((char *)map + SLOTS_BYTES + vram_owners_bytes(vram->unit_pages));
    return true;
}

struct sim_vram *
sim_vram_open(const char *folder, const struct sim_gpu *gpu, uint64_t bytes)
{
    struct sim_vram *vram = calloc(1, sizeof(*vram));
    bool opened = vram != NULL;

    if (vram == NULL)
        return NULL;
    for (uint32_t i = 0; i < UNITS_MAX; i++)
        vram->unit[i].fd = -1;
    vram->unit_pages = vram_pages_of_unit(gpu);
    vram->data = vram_head_bytes(vram->unit_pages);
    vram->pages = (uint32_t)(bytes / SIM_PAGE_BYTES);
    vram->units = (vram->pages + vram->unit_pages - 1) / vram->unit_pages;
    opened = vram->units > 0 && vram->units <= UNITS_MAX && sim_path(vram->folder, "%s", folder);
    for (uint32_t i = 0; opened && i < vram->units; i++)
        opened = vram_open_unit(vram, folder, i);
    if (opened)
        return vram;
    int number = errno;
    sim_vram_close(vram);
    errno = number;
    return NULL;
}

void
sim_vram_close(struct sim_vram *vram)
{
    if (vram == NULL)
        return;
    for (uint32_t i = 0; i < UNITS_MAX; i++) {
        if (vram->unit[i].slots != NULL)
            munmap(vram->unit[i].slots, vram_head_bytes(vram->unit_pages));
        if (vram->unit[i].fd >= 0)
            close(vram->unit[i].fd);
    }
    free(vram);
}

/* ---- the bytes of a page ---- */

struct vram_location {
    struct unit *unit;
    struct page *page;
    uint64_t data; /* offset of its bytes in the unit's file */
};

static struct vram_location
vram_locate(struct sim_vram *vram, uint32_t page)
{
    struct unit *unit = &vram->unit[page / vram->unit_pages];
    uint32_t index = page % vram->unit_pages;

    return (struct vram_location){ unit, &unit->pages[index], vram->data + index * SIM_PAGE_BYTES };
}

static bool
vram_is_own(const struct page *page, uint64_t block)
{
    return (page->own[block / 64] >> block % 64 & 1) != 0;
}

static bool
vram_has_own(const struct page *page)
{
    for (size_t i = 0; i < BLOCKS / 64; i++)
        if (page->own[i] != 0)
            return true;
    return false;
}

static bool
vram_read_block(const struct vram_location *location, uint64_t block, uint8_t bytes[SIM_BLOCK_BYTES])
{
    if (vram_is_own(location->page, block))
        return pread(location->unit->fd, bytes, SIM_BLOCK_BYTES,
                     (off_t)(location->data + block * SIM_BLOCK_BYTES))
               == SIM_BLOCK_BYTES;
    for (size_t i = 0; i < SIM_BLOCK_BYTES; i += sizeof(location->page->word))
        memcpy(bytes + i, &location->page->word, sizeof(location->page->word));
    return true;
}

static bool
vram_write_block(const struct vram_location *location, uint64_t block, const uint8_t bytes[SIM_BLOCK_BYTES])
{
    if (pwrite(location->unit->fd, bytes, SIM_BLOCK_BYTES, (off_t)(location->data + block * SIM_BLOCK_BYTES))
        != SIM_BLOCK_BYTES)
        return false;
    location->page->own[block / 64] |= 1ull << block % 64;
    return true;
}

/* The whole page is one word again; the file gives the room back where it can, also that of
 * bytes that a job wrote past this library. */
static void
vram_fill_page(const struct vram_location *location, uint32_t word)
{
    (void)!fallocate(location->unit->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)location->data,
                     SIM_PAGE_BYTES);
    if (vram_has_own(location->page))
        memset(location->page->own, 0, sizeof(location->page->own));
    if (location->page->word != word)
        location->page->word = word;
}

bool
sim_vram_is_clear(struct sim_vram *vram, uint32_t page)
{
    struct vram_location location = vram_locate(vram, page);

    return location.page->word == 0 && !vram_has_own(location.page);
}

bool
sim_vram_read(struct sim_vram *vram, uint32_t page, uint64_t offset, void *target, size_t length)
{
    struct vram_location location = vram_locate(vram, page);
    uint8_t bytes[SIM_BLOCK_BYTES], *to = target;

    while (length > 0) {
        uint64_t block = offset / SIM_BLOCK_BYTES, at = offset % SIM_BLOCK_BYTES;
        size_t part = length < SIM_BLOCK_BYTES - at ? length : SIM_BLOCK_BYTES - at;

        if (!vram_read_block(&location, block, bytes))
            return false;
        memcpy(to, bytes + at, part);
        to += part;
        offset += part;
        length -= part;
    }
    return true;
}

/* Change a part of a block.  A block that is written whole need not be read. */
static bool
vram_change_block(const struct vram_location *location, uint64_t offset, const void *source, size_t length)
{
    uint8_t bytes[SIM_BLOCK_BYTES];
    uint64_t block = offset / SIM_BLOCK_BYTES;

    if (length < SIM_BLOCK_BYTES && !vram_read_block(location, block, bytes))
        return false;
    memcpy(bytes + offset % SIM_BLOCK_BYTES, source, length);
    return vram_write_block(location, block, bytes);
}

bool
sim_vram_write(struct sim_vram *vram, uint32_t page, uint64_t offset, const void *source, size_t length)
{
    struct vram_location location = vram_locate(vram, page);
    const uint8_t *from = source;

    while (length > 0) {
        uint64_t at = offset % SIM_BLOCK_BYTES;
        size_t part = length < SIM_BLOCK_BYTES - at ? length : SIM_BLOCK_BYTES - at;

        if (!vram_change_block(&location, offset, from, part))
            return false;
        from += part;
        offset += part;
        length -= part;
    }
    return true;
}

bool
sim_vram_fill(struct sim_vram *vram, uint32_t page, uint64_t offset, size_t length, uint32_t word)
{
    uint8_t bytes[SIM_BLOCK_BYTES];

    if (offset == 0 && length == SIM_PAGE_BYTES) {
        struct vram_location location = vram_locate(vram, page);

        vram_fill_page(&location, word);
        return true;
    }
    for (size_t i = 0; i < sizeof(bytes); i += sizeof(word))
        memcpy(bytes + i, &word, sizeof(word));
    while (length > 0) {
        size_t part = length < sizeof(bytes) ? length : sizeof(bytes);

        if (!sim_vram_write(vram, page, offset, bytes, part))
            return false;
        offset += part;
        length -= part;
    }
    return true;
}
