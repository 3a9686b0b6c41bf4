#ifndef BH_STORE_MEMORY_INTERNAL_H
#define BH_STORE_MEMORY_INTERNAL_H

#include "ports/store.h"

/* Each kind of row has one sorted array of committed rows and one of rows put since
 * begin.  A row is one piece of memory: its struct, then the texts it points to. */

struct bh_memory_record {
    uint64_t seq;
    struct bh_digest hash;
    const char *leaf;
    size_t length;
};

struct bh_memory_text {
    struct bh_digest digest;
    const char *text;
};

struct bh_memory_meta {
    const char *key, *value;
};

enum bh_memory_kind {
    BH_MEMORY_RECORDS,
    BH_MEMORY_TEXTS,
    BH_MEMORY_JOBS,
    BH_MEMORY_NAMES,
    BH_MEMORY_TOKENS,
    BH_MEMORY_DOCUMENTS,
    BH_MEMORY_CHECKPOINTS,
    BH_MEMORY_REPLIES,
    BH_MEMORY_METAS,
    BH_MEMORY_KINDS
};

struct bh_memory_rows {
    void **at;
    size_t count, room;
};

/* Position of the first row that is not before `row`. */
size_t bh_memory_lower_bound(const struct bh_memory_rows *rows, enum bh_memory_kind kind,
                             const void *row);

/* The row with the same key, or NULL. */
void *bh_memory_find(const struct bh_memory_rows *rows, enum bh_memory_kind kind,
                     const void *row);

/* Takes over `row`, in place of an equal one. */
void bh_memory_insert(struct bh_memory_rows *rows, enum bh_memory_kind kind, void *row);

/* Frees all rows. */
void bh_memory_clear(struct bh_memory_rows *rows);

/* A copy with its texts behind it; NULL texts become "". */
void *bh_memory_copy(enum bh_memory_kind kind, const void *row);

#endif
