#include "shim/calls/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/calls/ptx.h"

#define FAT_MAGIC "\x50\xed\x55\xba"
#define WRAPPER_MAGIC "\xb1\x43\x62\x46"
#define SECTION_ALIGN UINT64_C(512)
#define PTX_GROWTH 4 /* compiled code against its text */

enum { PAGE = 4096, SECTIONS_MAX = 1 << 20, ENTRIES_MAX = 4096, EM_CUDA_CODE = 190 };
enum { FAT_PTX = 1, FAT_CUBIN = 2 };

struct image_fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};

struct image_fat_entry {
    uint16_t kind, pad;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t packed_bytes, pad2;
    uint16_t minor, major;
    uint32_t capability;
    uint32_t name[2];
    uint64_t flags, zero, unpacked_bytes; /* 0: it is not packed */
};
_Static_assert(sizeof(struct image_fat_entry) == 64, "as the tools write it");

struct image_wrapper {
    uint32_t magic, version;
    uint64_t image;
};

/* ---- where an image is read from ---- */

/* Memory, or a file. */
struct source {
    const unsigned char *memory; /* NULL: the file */
    int fd;
    uintptr_t good_to; /* so far it is mapped; 0: not asked yet */
};

/* Whether memory is mapped from the image's first byte up to `end`.  An image's own sizes may be wrong:
 * behind a gap lies other memory.  The question touches no memory. */
static bool
image_reaches(struct source *source, uintptr_t end)
{
    unsigned char resident[256];

    if (source->good_to == 0)
        source->good_to = (uintptr_t)source->memory & ~(uintptr_t)(PAGE - 1);
    while (source->good_to < end) {
        size_t pages = (end - source->good_to + PAGE - 1) / PAGE;

        pages = pages < sizeof(resident) ? pages : sizeof(resident);
        if (mincore((void *)source->good_to, pages * PAGE, resident) != 0)
            return false;
        source->good_to += pages * PAGE;
    }
    return true;
}

/* How many of `bytes` at `offset` can be read, all or none, and where: those in memory stay
 * there. */
static size_t
image_look(struct source *source, uint64_t offset, size_t bytes, char *buffer, const char **ret_at)
{
    uintptr_t from = (uintptr_t)source->memory + offset;

    if (source->memory == NULL) {
        ssize_t got = offset > INT64_MAX ? -1 : pread(source->fd, buffer, bytes, (off_t)offset);

        *ret_at = buffer;
        return got < 0 ? 0 : (size_t)got;
    }
    *ret_at = (const char *)from;
    if (from < offset || from > UINTPTR_MAX - bytes - PAGE || !image_reaches(source, from + bytes))
        return 0;
    return bytes;
}

static bool
image_read_at(struct source *source, uint64_t offset, void *into, size_t bytes)
{
    const char *at;

    if (image_look(source, offset, bytes, into, &at) < bytes)
        return false;
    if (at != into)
        memcpy(into, at, bytes);
    return true;
}

/* ---- PTX ---- */

/* `most` bytes of it are there at most; it ends with a zero. */
static uint64_t
image_ptx_bytes(struct source *source, uint64_t offset, uint64_t most)
{
    struct bh_ptx ptx = { 0 };
    char buffer[PAGE];
    const char *part;
    uint64_t bytes;

    while (ptx.read < most) {
        size_t room = PAGE - (size_t)(((uintptr_t)source->memory + offset + ptx.read) % PAGE);
        size_t got = image_look(source, offset + ptx.read,
                                room < most - ptx.read ? room : (size_t)(most - ptx.read), buffer, &part);

        if (got == 0 || !bh_ptx_read(&ptx, part, got))
            break;
    }
    return __builtin_mul_overflow(ptx.read, PTX_GROWTH, &bytes)
                   || __builtin_add_overflow(bytes, ptx.variables, &bytes)
               ? UINT64_MAX
               : bytes;
}

/* ---- cubins ---- */

/* Shared memory is no part of the device's. */
static bool
image_is_shared(struct source *source, uint64_t name)
{
    static const char shared[] = ".nv.shared";
    char start[sizeof(shared) - 1];

    return image_read_at(source, name, start, sizeof(start)) && memcmp(start, shared, sizeof(start)) == 0;
}

static bool
image_read_section(struct source *source, const Elf64_Ehdr *head, uint64_t offset, uint64_t number,
                   Elf64_Shdr *ret_section)
{
    return image_read_at(source, offset + head->e_shoff + number * sizeof(*ret_section), ret_section,
                         sizeof(*ret_section));
}

static uint64_t
image_add(uint64_t bytes, uint64_t more)
{
    return __builtin_add_overflow(bytes, more, &bytes) ? UINT64_MAX : bytes;
}

static uint64_t
image_section_bytes(struct source *source, const Elf64_Shdr *section, uint64_t name)
{
    if ((section->sh_flags & SHF_ALLOC) == 0 || section->sh_size == 0
        || (section->sh_type == SHT_NOBITS && image_is_shared(source, name)))
        return 0;
    return image_add(section->sh_size, SECTION_ALIGN - 1) & ~(SECTION_ALIGN - 1);
}

/* A file of very many sections has their number in the first. */
static bool
image_read_names(struct source *source, const Elf64_Ehdr *head, uint64_t offset, uint64_t *ret_count,
                 uint64_t *ret_names)
{
    Elf64_Shdr first, names;
    uint64_t at = head->e_shstrndx;

    if (head->e_shentsize != sizeof(first) || !image_read_section(source, head, offset, 0, &first))
        return false;
    *ret_count = head->e_shnum != 0 ? head->e_shnum : first.sh_size;
    at = at == SHN_XINDEX ? first.sh_link : at;
    if (*ret_count > SECTIONS_MAX || !image_read_section(source, head, offset, at, &names))
        return false;
    *ret_names = offset + names.sh_offset;
    return true;
}

static uint64_t
image_cubin_bytes(struct source *source, uint64_t offset)
{
    Elf64_Ehdr head;
    uint64_t count, names, bytes = 0;

    if (!image_read_at(source, offset, &head, sizeof(head)) || head.e_ident[EI_CLASS] != ELFCLASS64
        || head.e_machine != EM_CUDA_CODE || !image_read_names(source, &head, offset, &count, &names))
        return BH_IMAGE_UNKNOWN_BYTES;
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Shdr section;

        if (!image_read_section(source, &head, offset, i, &section))
            return image_add(bytes, BH_IMAGE_UNKNOWN_BYTES);
        bytes = image_add(bytes, image_section_bytes(source, &section, names + section.sh_name));
    }
    return bytes;
}

/* ---- fat binaries ---- */

static uint64_t
image_entry_bytes(struct source *source, const struct image_fat_entry *entry, uint64_t offset)
{
    uint64_t unpacked = entry->unpacked_bytes;

    if (entry->kind == FAT_CUBIN)
        return unpacked != 0 ? unpacked : image_cubin_bytes(source, offset);
    if (entry->kind == FAT_PTX && unpacked == 0)
        return image_ptx_bytes(source, offset, entry->bytes);
    unpacked = unpacked != 0 ? unpacked : entry->bytes;
    return unpacked > UINT64_MAX / PTX_GROWTH ? UINT64_MAX : unpacked * PTX_GROWTH;
}

static uint64_t
image_most_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The driver takes a cubin for the device, else it compiles PTX; among those that it may take
 * the largest counts, and where none is known to fit, the largest of all. */
static uint64_t
image_fat_bytes(struct source *source, uint64_t offset, unsigned capability)
{
    uint64_t cubin = 0, ptx = 0, any = BH_IMAGE_UNKNOWN_BYTES, at, end;
    struct image_fat_header head;
    struct image_fat_entry entry;

    if (!image_read_at(source, offset, &head, sizeof(head)))
        return BH_IMAGE_UNKNOWN_BYTES;
    at = offset + head.header_bytes;
    end = image_add(at, head.bytes);
    for (unsigned i = 0; at < end && i < ENTRIES_MAX; i++) {
        uint64_t bytes;

        if (!image_read_at(source, at, &entry, sizeof(entry)) || entry.header_bytes < 16)
            break;
        bytes = image_entry_bytes(source, &entry, at + entry.header_bytes);
        if (entry.kind == FAT_CUBIN && entry.capability / 10 == capability / 10
            && entry.capability <= capability)
            cubin = image_most_of(cubin, bytes);
        if (entry.kind == FAT_PTX && entry.capability <= capability)
            ptx = image_most_of(ptx, bytes);
        any = image_most_of(any, bytes);
        at = image_add(at, image_add(entry.header_bytes, entry.bytes));
    }
    return cubin != 0 ? cubin : ptx != 0 ? ptx : any;
}

/* ---- any ---- */

/* PTX begins with a directive or a comment. */
static bool
image_is_ptx(struct source *source)
{
    char first = ' ';

    for (uint64_t at = 0; first == ' ' || first == '\t' || first == '\n' || first == '\r'; at++)
        if (!image_read_at(source, at, &first, 1))
            return false;
    return first == '.' || first == '/';
}

/* No more is read than is the same. */
static bool
image_begins(struct source *source, const char *magic)
{
    char there;

    for (uint64_t at = 0; magic[at] != '\0'; at++)
        if (!image_read_at(source, at, &there, 1) || there != magic[at])
            return false;
    return true;
}

static uint64_t
image_bytes_of(struct source *source, unsigned capability)
{
    struct image_wrapper wrapper;

    if (image_begins(source, WRAPPER_MAGIC) && source->memory != NULL
        && image_read_at(source, 0, &wrapper, sizeof(wrapper)))
        *source = (struct source){ .memory = (const unsigned char *)wrapper.image };
    if (image_begins(source, ELFMAG))
        return image_cubin_bytes(source, 0);
    if (image_begins(source, FAT_MAGIC))
        return image_fat_bytes(source, 0, capability);
    return image_is_ptx(source) ? image_ptx_bytes(source, 0, UINT64_MAX) : BH_IMAGE_UNKNOWN_BYTES;
}

uint64_t
bh_image_bytes(const void *image, unsigned capability)
{
    struct source source = { .memory = image };
    int saved = errno;
    uint64_t bytes = image == NULL ? BH_IMAGE_UNKNOWN_BYTES : image_bytes_of(&source, capability);

    errno = saved;
    return bytes;
}

uint64_t
bh_image_file_bytes(const char *path, unsigned capability)
{
    int saved = errno;
    struct source source = { .fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) };
    uint64_t bytes = source.fd < 0 ? 0 : image_bytes_of(&source, capability);

    if (source.fd >= 0)
        close(source.fd);
    errno = saved;
    return bytes;
}
