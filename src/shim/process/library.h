/* The driver's library that a library of the shim replaces: opened when a call first needs it, and each of
 * its calls found when it is first used.
 *
 * It lies at BH_SHARE_DRIVER_DIR, outside the global scope, so that programs find the shim's.  No lock is
 * held while it is opened; two threads that come first both open it. */
#ifndef BH_SHIM_PROCESS_LIBRARY_H
#define BH_SHIM_PROCESS_LIBRARY_H

#include <stdbool.h>

/* Of variables that only this library sees: reached without a table. */
#define BH_HIDDEN __attribute__((visibility("hidden")))

struct bh_library {
    const char *path;
    const char *known;           /* a call that both have, */
    void *own;                   /* and of the shim's library, which the opened one must not be */
    const char *const *names;    /* in the order of the slots */
    void *absent, *lacking;      /* what answers without the library, and without the call */
    void (*ready)(void *opened); /* called before any other call, perhaps twice; or NULL */
    void *opened;                /* NULL at first */
};

extern BH_HIDDEN struct bh_library bh_driver; /* driver/driver.c, nvml/driver.c */
extern BH_HIDDEN void *bh_driver_slots[];     /* one for each name; trampolines.S */

/* The driver's call of that name, with the prototype of the tables.  A call that the driver
 * lacks answers `lacking`; every one answers `absent` without a driver. */
#define REAL(name) ((__typeof__(&(name)))__atomic_load_n(&bh_real_##name, __ATOMIC_RELAXED))

/* The call of this slot, which is filled; for trampolines.S.  Never NULL. */
void *bh_driver_find(void **slot);

/* Does the driver have the call of this slot? */
bool bh_driver_has(void **slot);
#define HAS(name) bh_driver_has(&bh_real_##name)

#endif
