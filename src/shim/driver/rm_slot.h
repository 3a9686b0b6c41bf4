/* Where a library that is loaded calls another library's function: the slots of its GOT that
 * the dynamic linker filled for a name, and putting another function there.
 *
 * Looked for in the relocations that the library carries.  Not found: it calls the function
 * some other way, is linked statically, or has another word size. */
#ifndef BH_SHIM_DRIVER_RM_SLOT_H
#define BH_SHIM_DRIVER_RM_SLOT_H

#include <stdatomic.h>

struct bh_rm_slots {
    unsigned taken;  /* have the replacement now */
    unsigned missed; /* could not be written: the library bypasses the replacement there */
};

/* Put `ours`, the replacement, into the slots for `name` of the library that dlopen gave as `library`.
 * Before the first is written, *forward becomes the function that the slot was bound to; a slot that was
 * never bound leaves it as it is.  A slot that already has `ours` counts as taken.  Pages that are read-only
 * are writable for the one write, and read-only again.
 *
 * Nothing else may write these slots meanwhile but another call of this with the same `ours`.  errno is
 * kept. */
struct bh_rm_slots bh_rm_slot_take(void *library, const char *name, void *ours, void *_Atomic *forward);

#endif
