#ifndef BH_DAEMON_DIRECTORY_H
#define BH_DAEMON_DIRECTORY_H

#include "daemon/catalog.h"

/* One published picture of names and site: a bh_directory with its memory and a count
 * of its readers. */
struct bh_published;

/* From the catalog's present names and site; the caller holds the first reference. */
BH_MUST_USE struct bh_published *bh_published_new(const struct bh_catalog *catalog);

/* Take and give back a reference, from any thread; NULL is fine for put. */
const struct bh_directory *bh_published_get(struct bh_published *published);
void bh_published_put(struct bh_published *published);

/* The published picture that a directory belongs to. */
struct bh_published *bh_published_of(const struct bh_directory *directory);

#endif
