#ifndef BH_DAEMON_NAMES_PUBLISHED_H
#define BH_DAEMON_NAMES_PUBLISHED_H

#include "base/arena.h"
#include "policy/directory.h"

/* One published picture of names and site: a bh_directory with its memory and a count
 * of its readers. */
struct bh_published;

/* A picture whose texts and rows are in `arena`, which goes with it; the caller holds the first
 * reference. */
BH_MUST_USE struct bh_published *bh_published_new(struct bh_arena *arena,
                                                  const struct bh_directory *directory);

/* Take and give back a reference, from any thread; NULL is fine for put. */
const struct bh_directory *bh_published_get(struct bh_published *published);
void bh_published_put(struct bh_published *published);

/* The published picture that a directory belongs to. */
struct bh_published *bh_published_of(const struct bh_directory *directory);

#endif
