#include "sim/cuda/work/code.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/memory/physical.h"

#define UNKNOWN_BYTES ((size_t)4096)
#define SECTION_ALIGN ((size_t)256)
#define FAT_MAGIC "\x50\xed\x55\xba"
#define WRAPPER_MAGIC "\xb1\x43\x62\x46"

/* ---- how large an image is: as the vendor's tools write them (CUDA 13.0) ---- */

struct fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};

struct fat_entry {
    uint16_t kind, pad; /* 1: PTX, 2: a cubin */
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t packed_bytes, pad2;
    uint16_t minor, major;
    uint32_t capability;
    uint32_t name[2];
    uint64_t flags, zero, unpacked_bytes; /* 0: it is not packed */
};

struct wrapper {
    uint32_t magic, version;
    const char *image;
};

/* Shared memory is none of the device's. */
static bool
code_is_loaded(const Elf64_Shdr *section, const char *name)
{
    return (section->sh_flags & SHF_ALLOC) != 0 && strncmp(name, ".nv.shared", strlen(".nv.shared")) != 0;
}

static size_t
code_cubin_bytes(const char *image, size_t limit)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)image;
    const Elf64_Shdr *section = (const Elf64_Shdr *)(const void *)(image + head->e_shoff);
    size_t bytes = 0;

    if (limit < sizeof(*head) || head->e_shoff > limit
        || head->e_shnum * sizeof(*section) > limit - head->e_shoff || head->e_shstrndx >= head->e_shnum
        || section[head->e_shstrndx].sh_offset >= limit)
        return UNKNOWN_BYTES;
    for (unsigned i = 0; i < head->e_shnum; i++)
        if (code_is_loaded(&section[i], image + section[head->e_shstrndx].sh_offset + section[i].sh_name))
            bytes += (section[i].sh_size + SECTION_ALIGN - 1) & ~(SECTION_ALIGN - 1);
    return bytes;
}

/* ".global .align 4 .b8 name[4096];": what stands in brackets. */
static size_t
code_variable_bytes(const char *text)
{
    size_t length = strcspn(text, "=;({\n");
    const char *open = memchr(text, '[', length);
    unsigned bits = 8;

    for (const char *at = text; at < text + length; at++)
        if (*at == '.' && strchr("bsuf", at[1]) != NULL && isdigit((unsigned char)at[2]))
            bits = (unsigned)strtoul(at + 2, NULL, 10);
    return (open == NULL ? 1 : strtoull(open + 1, NULL, 10)) * (bits / 8);
}

static size_t
code_ptx_bytes(const char *text, size_t limit)
{
    size_t bytes = strnlen(text, limit);
    const char *end = text + bytes;

    for (const char *line = text; line != NULL && line < end;) {
        if (strncmp(line, ".visible ", 9) == 0)
            line += 9;
        if (strncmp(line, ".global ", 8) == 0 || strncmp(line, ".const ", 7) == 0)
            bytes += code_variable_bytes(line);
        line = memchr(line, '\n', (size_t)(end - line));
        line = line == NULL ? NULL : line + 1;
    }
    return bytes;
}

static size_t
code_entry_bytes(const struct fat_entry *entry)
{
    const char *image = (const char *)entry + entry->header_bytes;

    if (entry->unpacked_bytes != 0)
        return entry->unpacked_bytes;
    return entry->kind == 2 ? code_cubin_bytes(image, entry->bytes) : code_ptx_bytes(image, entry->bytes);
}

/* The newest cubin that runs on the device; where there is none the newest PTX. */
static size_t
code_fat_bytes(const char *image, unsigned capability)
{
    const struct fat_header *head = (const struct fat_header *)(const void *)image;
    const struct fat_entry *best = NULL;

    for (uint64_t at = head->header_bytes; at < head->bytes;) {
        const struct fat_entry *entry = (const struct fat_entry *)(const void *)(image + at);
        bool runs = entry->capability <= capability
                    && (entry->kind == 1 || entry->capability / 10 == capability / 10);

        if (runs
            && (best == NULL || entry->kind > best->kind
                || (entry->kind == best->kind && entry->capability > best->capability)))
            best = entry;
        at += entry->header_bytes + entry->bytes;
    }
    return best == NULL ? UNKNOWN_BYTES : code_entry_bytes(best);
}

bool
sim_image_is_text(const char *image)
{
    while (isspace((unsigned char)*image))
        image++;
    return strncmp(image, ".version", 8) == 0 || strncmp(image, "//", 2) == 0;
}

size_t
sim_image_bytes(const char *image, size_t limit, unsigned capability)
{
    struct wrapper wrapper = { 0 };

    if (strncmp(image, ELFMAG, SELFMAG) == 0)
        return code_cubin_bytes(image, limit);
    if (sim_image_is_text(image))
        return code_ptx_bytes(image, limit);
    if (strncmp(image, WRAPPER_MAGIC, strlen(WRAPPER_MAGIC)) == 0) {
        memcpy(&wrapper, image, sizeof(wrapper));
        image = wrapper.image;
    }
    return strncmp(image, FAT_MAGIC, strlen(FAT_MAGIC)) == 0 ? code_fat_bytes(image, capability)
                                                             : UNKNOWN_BYTES;
}

/* ---- a context's pages of it ---- */

static bool
code_has_room(struct CUctx_st *context, size_t pages)
{
    struct sim_physical **more = realloc(context->code.page, pages * sizeof(*more));

    if (more != NULL)
        context->code.page = more;
    return more != NULL;
}

/* As many as its bytes fill, under the lock. */
static CUresult
code_fit(struct CUctx_st *context)
{
    size_t pages = (context->code.bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
    CUresult rc = CUDA_SUCCESS;

    if (pages > context->code.pages && !code_has_room(context, pages))
        return CUDA_ERROR_OUT_OF_MEMORY;
    while (rc == CUDA_SUCCESS && context->code.pages < pages) {
        rc = sim_physical_new(context->memory, SIM_PAGE_BYTES, SIM_TAKE_TOP,
                              &context->code.page[context->code.pages]);
        context->code.pages += rc == CUDA_SUCCESS;
    }
    while (rc == CUDA_SUCCESS && context->code.pages > pages)
        sim_physical_release(context->code.page[--context->code.pages]);
    return rc;
}

CUresult
sim_code_take(struct CUctx_st *context, size_t bytes)
{
    CUresult rc;

    sim_memory_lock();
    context->code.bytes += bytes;
    rc = code_fit(context);
    if (rc != CUDA_SUCCESS) {
        context->code.bytes -= bytes;
        (void)code_fit(context);
    }
    sim_memory_unlock();
    return rc;
}

void
sim_code_give(struct CUctx_st *context, size_t bytes)
{
    sim_memory_lock();
    context->code.bytes -= bytes;
    (void)code_fit(context);
    sim_memory_unlock();
}

void
sim_code_drop(struct CUctx_st *context)
{
    context->code.bytes = 0;
    (void)code_fit(context);
    free(context->code.page);
    context->code.page = NULL;
}
