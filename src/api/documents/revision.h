#ifndef BH_API_DOCUMENTS_REVISION_H
#define BH_API_DOCUMENTS_REVISION_H

#include "base/arena.h"
#include "base/fields.h"
#include "model/site.h"
#include "ports/store.h"

/* Revisions of the site file: each file that came into force has the number of the record that
 * applied it. The store keeps the last BH_REVISIONS_MAX as documents of kind
 * BH_DOCUMENT_REVISION, by their number in 20 digits, and their texts by digest. The present
 * one's number is in the store's meta "site_revision"; 0: the file in force is older than
 * revisions are, or there is none. */
struct bh_revision {
    uint64_t number; /* not in the document: its key */
    uint64_t at_ns;
    uint32_t changes;   /* lines of the difference from the one before */
    uint8_t digest[32]; /* of the file's canonical text */
    uint32_t principal; /* who applied it; 0: the system, or root */
};
extern const struct bh_fields bh_revision_fields;

enum { BH_REVISION_KEY_SIZE = 21, BH_REVISIONS_MAX = 640 };
void bh_revision_key(uint64_t number, char ret_key[BH_REVISION_KEY_SIZE]);

/* BH_NOT_FOUND: that revision is not kept, or never was; failures of the store. */
BH_MUST_USE bh_rc bh_revision_read(const struct bh_store *store, uint64_t number, struct bh_arena *arena,
                                   struct bh_revision *ret_revision, struct bh_err *err);

/* Its canonical text, in the arena. */
BH_MUST_USE bh_rc bh_revision_text(const struct bh_store *store, const struct bh_revision *revision,
                                   struct bh_arena *arena, const char **ret_text, struct bh_err *err);

/* What a row of the store says; false: it is damaged. */
bool bh_revision_decode(const struct bh_document_row *row, struct bh_arena *arena,
                        struct bh_revision *ret_revision);

/* The canonical text of the file in force, in the arena; NULL: none was applied yet. */
BH_MUST_USE bh_rc bh_revision_present_text(const struct bh_store *store, struct bh_arena *arena,
                                           const char **ret_text, struct bh_err *err);

/* The same, decoded: an empty one where none was applied yet. */
BH_MUST_USE bh_rc bh_revision_present_site(const struct bh_store *store, struct bh_arena *arena,
                                           struct bh_site *ret_site, struct bh_err *err);

/* Number of the present one. */
BH_MUST_USE bh_rc bh_revision_present(const struct bh_store *store, struct bh_arena *arena,
                                      uint64_t *ret_number, struct bh_err *err);

#endif
