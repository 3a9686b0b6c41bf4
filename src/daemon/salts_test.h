#ifndef BH_DAEMON_SALTS_TEST_H
#define BH_DAEMON_SALTS_TEST_H

/* That each record of a store has a salt of its own.  Tests only. */

#include <inttypes.h>

#include "base/slice.h"
#include "base/test.h"
#include "ports/store.h"

/* Whether the record holds what nobody guesses, and not that of the one before: its hash is public.
 * A request's own number is not enough.  Whoever sees one of its records knows it for the others. */
static inline bool
see_salt(void *self, uint64_t seq, const char *leaf, size_t length)
{
    char *before = self, salt[33];
    struct bh_slice value;
    bool salted = bh_slice_get((struct bh_slice){ leaf, length }, "salt", &value)
                  && bh_slice_str(value, salt, sizeof salt) && strlen(salt) == 32
                  && strcmp(salt, before) != 0;

    if (!salted)
        print_error("record %" PRIu64 " has no salt of its own: %.*s\n", seq, (int)length, leaf);
    assert_true(salted);
    memcpy(before, salt, sizeof salt);
    return true;
}

/* All that the core wrote, of whatever verb.  A store that cannot be read tells nothing of that. */
static inline void
check_salts(const struct bh_store *store)
{
    char before[33] = "";
    struct bh_err err;

    if (store->ops->list_records(store->self, 0, UINT64_MAX >> 1, see_salt, before, &err) != BH_OK)
        print_message("# records not read: %s\n", err.msg);
}

#endif
