/* A library of the driver's that one of ours stands in front of: opened when a call first
 * needs it, and each of its calls found when it is first used.
 *
 * It stands at BH_SHARE_DRIVER_DIR, outside the global scope: programs find ours.  No lock
 * is held while it is opened; two threads that come first both open it. */
#ifndef BH_SHIM_PROCESS_LIBRARY_H
#define BH_SHIM_PROCESS_LIBRARY_H

#include <stdbool.h>

struct bh_library {
    const char *path;
    const char *known;        /* a call that both have, */
    void *own;                /* and ours: that library must not be this one again */
    const char *const *names; /* in the order of the slots */
    void **slots;
    void *absent, *lacking;      /* what answers without the library, and without the call */
    void (*ready)(void *opened); /* called before any other call, perhaps twice; or NULL */
    void *opened;                /* NULL at first */
};

/* The library's call of that name; NULL when there is none. */
void *bh_library_symbol(struct bh_library *library, const char *name);

/* The call of a slot, which is filled; never NULL. */
void *bh_library_find(struct bh_library *library, void **slot);

/* Does the library have the call of this slot? */
bool bh_library_has(struct bh_library *library, void **slot);

#endif
