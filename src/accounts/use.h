#ifndef BH_ACCOUNTS_USE_H
#define BH_ACCOUNTS_USE_H

#include <stdbool.h>
#include <stdint.h>

/* When tokens and sessions were last used: kept in memory, and written down now and then,
 * since a write for each request would be the most of all writes.  The caller locks. */

enum { BH_USES_MAX = 4096 };

struct bh_use {
    char id[16];  /* "": free */
    bool session; /* else an API token */
    bool written;
    uint64_t at_ns;
};

/* Zeroed is empty. */
struct bh_uses {
    struct bh_use items[BH_USES_MAX];
};

/* Note a use.  Where there is no room, one that was written, the oldest of a few, is forgotten;
 * where none was written, this one is. */
void bh_use_record(struct bh_uses *uses, const char *id, bool session, uint64_t at_ns);

/* When it was last used, as far as it is known here; 0: not. */
uint64_t bh_use_at(const struct bh_uses *uses, const char *id);

/* The next use that is not written yet, marked as written: start with *cursor = 0; NULL at
 * the end. */
const struct bh_use *bh_use_next(struct bh_uses *uses, uint32_t *cursor);

#endif
