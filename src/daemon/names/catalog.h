#ifndef BH_DAEMON_NAMES_CATALOG_H
#define BH_DAEMON_NAMES_CATALOG_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/site.h"
#include "policy/directory.h"
#include "ports/crypto.h"
#include "ports/store.h"

/* Names and numbers: which id each tenant, SKU, principal, node and GPU has, and the
 * directory that workers read.
 *
 * A name that is new is bound to the log (audit/binding.h) by the next record of the
 * transaction (daemon/batch/append.h, daemon/batch/names.h); its row is put with that record.
 *
 * The owner changes names inside its transaction; after the commit it publishes a new
 * directory, which lives until the last reader has given it back. */
struct bh_catalog;
struct bh_published;

/* Names of one kind, and so ids and rows of tables by id; a power of two, as the capacity is. */
enum { BH_CATALOG_NAMES_MAX = 1 << 30 };

BH_MUST_USE struct bh_catalog *bh_catalog_new(struct bh_store store, const struct bh_crypto_ops *crypto);
void bh_catalog_free(struct bh_catalog *catalog);

/* Forget everything and read names and the site file from the store; to be published then. */
BH_MUST_USE bh_rc bh_catalog_load(struct bh_catalog *catalog, struct bh_err *err);

/* The id of a name: the one it has, or had, else the next free one, which waits to be bound. */
BH_MUST_USE bh_rc bh_catalog_name(struct bh_catalog *catalog, enum bh_name_kind kind, const char *name,
                                  uint32_t *ret_id, struct bh_err *err);

/* The id of a name that is in use, or 0. */
uint32_t bh_catalog_find(const struct bh_catalog *catalog, enum bh_name_kind kind, const char *name);

/* The id that a name has, or had; 0: it never had one. */
uint32_t bh_catalog_known(const struct bh_catalog *catalog, enum bh_name_kind kind, const char *name);

/* The name of an id, in use or not; NULL when it was never given. */
const char *bh_catalog_name_of(const struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t id);

/* The highest id of a kind; 0: none was given. */
uint32_t bh_catalog_last(const struct bh_catalog *catalog, enum bh_name_kind kind);

/* Walk the names in use: start with *cursor = 0; NULL at the end. */
const char *bh_catalog_next(const struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t *cursor,
                            uint32_t *ret_id);

/* The name is no longer in use; its id stays taken. */
BH_MUST_USE bh_rc bh_catalog_drop(struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t id,
                                  struct bh_err *err);

/* ---- binding ---- */

/* How many names wait to be bound. */
uint32_t bh_catalog_unbound(const struct bh_catalog *catalog);

/* Bind up to `max` of them, oldest first, by record `seq`: their rows go into the open
 * transaction, their items are appended to `list`. */
BH_MUST_USE bh_rc bh_catalog_bind(struct bh_catalog *catalog, uint32_t max, uint64_t seq, struct bh_buf *list,
                                  struct bh_err *err);

/* Have all names wait again, to be bound as they are; those that never were, get a key when
 * `fresh`.  Returns how many. */
BH_MUST_USE bh_rc bh_catalog_rebind(struct bh_catalog *catalog, bool fresh, uint32_t *ret_count,
                                    struct bh_err *err);

/* Erase a name that is not in use, in the open transaction: its row keeps the id alone and the
 * number of the record that says so.  BH_CONFLICT: it is in use, or waits to be bound. */
BH_MUST_USE bh_rc bh_catalog_erase(struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t id,
                                   uint64_t seq, struct bh_err *err);

/* The site file in force (never NULL) and its canonical text ("" before the first). */
const struct bh_site *bh_catalog_site(const struct bh_catalog *catalog);
const char *bh_catalog_site_text(const struct bh_catalog *catalog);

/* The revision that it is (api/documents/revision.h); 0: none. */
uint64_t bh_catalog_revision(const struct bh_catalog *catalog);

/* Put a new site file into the open transaction, as that revision; in force at once for the
 * owner. */
BH_MUST_USE bh_rc bh_catalog_set_site(struct bh_catalog *catalog, const char *text,
                                      const struct bh_digest *digest, uint64_t revision, struct bh_err *err);

/* Have workers read that picture of names and site (daemon/names/directory.h); the catalog takes the
 * reference over. */
void bh_catalog_publish(struct bh_catalog *catalog, struct bh_published *fresh);

/* Any thread: the directory last published; give each back. */
const struct bh_directory *bh_catalog_get(struct bh_catalog *catalog);
void bh_catalog_put(struct bh_catalog *catalog, const struct bh_directory *directory);

#endif
