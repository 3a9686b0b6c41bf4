#include "shim/driver/rm_slot.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { CALL_SLOT = R_X86_64_JUMP_SLOT, ADDRESS_SLOT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { CALL_SLOT = R_AARCH64_JUMP_SLOT, ADDRESS_SLOT = R_AARCH64_GLOB_DAT };
#else
enum { CALL_SLOT = -1, ADDRESS_SLOT = -1 };
#endif

/* A library as it lies in memory. */
struct module {
    const ElfW(Dyn) * dynamic;
    uintptr_t base;
    const ElfW(Phdr) * header;
    unsigned headers; /* 0: not found */
};

struct tables {
    const ElfW(Rela) * relocation[2]; /* of calls, of the rest */
    size_t count[2];
    const ElfW(Sym) * symbols;
    const char *names;
    size_t names_bytes;
};

static int
slot_compare_module(struct dl_phdr_info *info, size_t size, void *self)
{
    struct module *module = self;

    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];

        if (header->p_type == PT_DYNAMIC && info->dlpi_addr + header->p_vaddr == (uintptr_t)module->dynamic) {
            module->base = info->dlpi_addr;
            module->header = info->dlpi_phdr;
            module->headers = info->dlpi_phnum;
            return 1;
        }
    }
    return 0;
}

static bool
slot_find_module(void *library, struct module *ret_module)
{
    struct link_map *map = NULL;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == NULL || map->l_ld == NULL)
        return false;
    *ret_module = (struct module){ .dynamic = map->l_ld };
    return dl_iterate_phdr(slot_compare_module, ret_module) == 1;
}

/* Do these bytes lie within one segment of the library? */
static bool
slot_is_inside(const struct module *module, uintptr_t address, size_t bytes)
{
    for (unsigned i = 0; i < module->headers; i++) {
        const ElfW(Phdr) *header = &module->header[i];
        uintptr_t at = address - (module->base + header->p_vaddr);

        if (header->p_type == PT_LOAD && at < header->p_memsz && bytes <= header->p_memsz - at)
            return true;
    }
    return false;
}

/* An address of the dynamic section: glibc has added the base already, musl has not. */
static uintptr_t
slot_address_of(const struct module *module, uintptr_t value)
{
    return slot_is_inside(module, value, 1) ? value : module->base + value;
}

static uintptr_t
slot_value_of(const struct module *module, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *entry = module->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_val;
    return 0;
}

static bool
slot_find_tables(const struct module *module, struct tables *ret_tables)
{
    static const ElfW(Sxword) tags[2][2] = { { DT_JMPREL, DT_PLTRELSZ }, { DT_RELA, DT_RELASZ } };
    uintptr_t symbols = slot_address_of(module, slot_value_of(module, DT_SYMTAB));
    uintptr_t names = slot_address_of(module, slot_value_of(module, DT_STRTAB));

    *ret_tables = (struct tables){ .symbols = (const ElfW(Sym) *)symbols,
                                   .names = (const char *)names,
                                   .names_bytes = slot_value_of(module, DT_STRSZ) };
    if (ret_tables->names_bytes == 0 || !slot_is_inside(module, names, ret_tables->names_bytes)
        || ret_tables->names[ret_tables->names_bytes - 1] != '\0')
        return false;
    for (unsigned i = 0; i < 2; i++) {
        uintptr_t at = slot_value_of(module, tags[i][0]), bytes = slot_value_of(module, tags[i][1]);

        if (at == 0 || (i == 0 && slot_value_of(module, DT_PLTREL) != DT_RELA))
            continue;
        at = slot_address_of(module, at);
        if (!slot_is_inside(module, at, bytes))
            continue;
        ret_tables->relocation[i] = (const ElfW(Rela) *)at;
        ret_tables->count[i] = bytes / sizeof(ElfW(Rela));
    }
    return true;
}

/* The slot of a relocation, when it is one for `name`; NULL. */
static void *_Atomic *
slot_of(const struct module *module, const struct tables *tables, const ElfW(Rela) * relocation,
        const char *name)
{
    uint32_t type = ELF64_R_TYPE(relocation->r_info);
    const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(relocation->r_info)];
    uintptr_t slot = module->base + relocation->r_offset;

    if ((type != (uint32_t)CALL_SLOT && type != (uint32_t)ADDRESS_SLOT)
        || !slot_is_inside(module, (uintptr_t)symbol, sizeof(*symbol))
        || symbol->st_name >= tables->names_bytes || strcmp(tables->names + symbol->st_name, name) != 0
        || slot % sizeof(void *) != 0 || !slot_is_inside(module, slot, sizeof(void *)))
        return NULL;
    return (void *_Atomic *)slot;
}

/* Did the linker make this page read-only once it had filled it?  It rounds the end down: the
 * last page, when it is not all of that kind, stays writable. */
static bool
slot_is_read_only(const struct module *module, uintptr_t page, uintptr_t page_bytes)
{
    for (unsigned i = 0; i < module->headers; i++) {
        const ElfW(Phdr) *header = &module->header[i];
        uintptr_t from = module->base + header->p_vaddr, end = from + header->p_memsz;

        if (header->p_type == PT_GNU_RELRO && page >= (from & ~(page_bytes - 1))
            && page < (end & ~(page_bytes - 1)))
            return true;
    }
    return false;
}

static bool
write_slot(const struct module *module, void *_Atomic *slot, void *ours)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)slot & ~(page_bytes - 1);
    bool read_only = slot_is_read_only(module, page, page_bytes);

    if (read_only && mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) != 0)
        return false;
    atomic_store(slot, ours);
    if (read_only)
        (void)mprotect((void *)page, page_bytes, PROT_READ);
    return true;
}

static bool
take_slot(const struct module *module, void *_Atomic *slot, void *ours, void *_Atomic *forward)
{
    void *there = atomic_load(slot);

    if (there == ours)
        return true;
    /* An unbound slot leads back into the library, and from there to the linker, which would write the slot:
     * no call may take that way. */
    if (there != NULL && !slot_is_inside(module, (uintptr_t)there, 1))
        atomic_store(forward, there);
    return write_slot(module, slot, ours);
}

struct bh_rm_slots
bh_rm_slot_take(void *library, const char *name, void *ours, void *_Atomic *forward)
{
    struct bh_rm_slots slots = { 0 };
    struct module module;
    struct tables tables;
    int saved = errno;

    if (!slot_find_module(library, &module) || !slot_find_tables(&module, &tables))
        return slots;
    for (unsigned i = 0; i < 2; i++)
        for (size_t at = 0; at < tables.count[i]; at++) {
            void *_Atomic *slot = slot_of(&module, &tables, &tables.relocation[i][at], name);

            if (slot != NULL && take_slot(&module, slot, ours, forward))
                slots.taken++;
            else if (slot != NULL)
                slots.missed++;
        }
    errno = saved;
    return slots;
}
