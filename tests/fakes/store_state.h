#ifndef BH_FAKES_STORE_STATE_H
#define BH_FAKES_STORE_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "ports/crypto.h"
#include "ports/store.h"

/* Each kind of row has one sorted array of committed rows and one of rows put since
 * begin.  A row is one partition of memory: its struct, then the texts it points to. */

struct bh_memory_record {
    uint64_t seq;
    struct bh_digest hash;
    const char *leaf;
    size_t length;
};

struct bh_memory_text {
    struct bh_digest digest;
    uint32_t tenant_id;
    uint64_t key; /* that sealed it; 0: none did, or it is no tenant's */
    const char *text;
    bool gone; /* erased */
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
    BH_MEMORY_KEYS,
    BH_MEMORY_KINDS
};

struct bh_memory_rows {
    void **at;
    size_t count, capacity;
};

struct bh_memory {
    const struct bh_crypto_ops *crypto;
    /* owner thread */
    struct bh_memory_rows put[BH_MEMORY_KINDS];
    bool begun, failed;
    /* shared, under mutex */
    struct bh_mutex mutex;
    struct bh_memory_rows kept[BH_MEMORY_KINDS];
};

/* ---- memory_rows.c ---- */

/* Position of the first row that is not before `row`. */
size_t bh_memory_lower_bound(const struct bh_memory_rows *rows, enum bh_memory_kind kind, const void *row);

/* The row with the same key, or NULL. */
void *bh_memory_find(const struct bh_memory_rows *rows, enum bh_memory_kind kind, const void *row);

/* Takes over `row`, in place of an equal one. */
void bh_memory_insert(struct bh_memory_rows *rows, enum bh_memory_kind kind, void *row);

/* Frees all rows. */
void bh_memory_clear(struct bh_memory_rows *rows);

/* BH_IO: a write of the open transaction has failed. */
bh_rc bh_memory_check_open(const struct bh_memory *memory, struct bh_err *err);

/* Put a copy of the row into the open transaction. */
bh_rc bh_memory_put_row(struct bh_memory *memory, enum bh_memory_kind kind, const void *row,
                        struct bh_err *err);

/* Calls `emit` for each kept row of a kind from the first not before `from` on, under the
 * mutex. */
void bh_memory_each_row(struct bh_memory *memory, enum bh_memory_kind kind, const void *from,
                        bool (*emit)(const void *row, void *context), void *context);
/* The same for all of them, from the last one on. */
void bh_memory_each_row_back(struct bh_memory *memory, enum bh_memory_kind kind,
                             bool (*emit)(const void *row, void *context), void *context);

/* ---- memory_keys.c ---- */
bh_rc bh_memory_put_key(void *self, const struct bh_key_row *row, struct bh_err *err);
bh_rc bh_memory_erase_name(void *self, enum bh_name_kind kind, uint32_t id, struct bh_err *err);
bh_rc bh_memory_erase_sealed(void *self, uint64_t key, struct bh_err *err);
bh_rc bh_memory_erase_jobs(void *self, const struct bh_erasure *which, struct bh_err *err);
bh_rc bh_memory_scrub(void *self, struct bh_err *err);
bh_rc bh_memory_list_keys(void *self, bh_key_sink sink, void *sink_self, struct bh_err *err);

#endif
