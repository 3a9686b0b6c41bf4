#ifndef BH_STORE_MEMORY_INTERNAL_H
#define BH_STORE_MEMORY_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "ports/crypto.h"
#include "ports/store.h"

/* Each kind of row has one sorted array of committed rows and one of rows put since
 * begin.  A row is one piece of memory: its struct, then the texts it points to. */

struct record_row {
    uint64_t seq;
    struct bh_digest hash;
    const char *leaf;
    size_t length;
};

struct text_row {
    struct bh_digest digest;
    const char *text;
    bool gone;               /* erased */
};

struct meta_row {
    const char *key, *value;
};

enum kind { RECORDS, TEXTS, JOBS, NAMES, TOKENS, CHECKPOINTS, REPLIES, METAS, KEYS, KINDS };

struct rows {
    void **at;
    size_t count, room;
};

struct memory {
    const struct bh_crypto_ops *crypto;
    /* owner thread */
    struct rows put[KINDS];
    bool begun, failed;
    /* shared, under mutex */
    pthread_mutex_t mutex;
    struct rows kept[KINDS];
};

/* Put a copy of the row into the open transaction. */
bh_rc bh_store_memory_put(struct memory *memory, enum kind kind, const void *row,
                    struct bh_err *err);

/* The row equal to `row`, or NULL. */
void *bh_store_memory_find(const struct rows *rows, enum kind kind, const void *row);

/* Calls `emit` for each kept row of a kind from the first not before `from` on, under the
 * mutex. */
void bh_store_memory_each(struct memory *memory, enum kind kind, const void *from,
                    bool (*emit)(const void *row, void *context), void *context);

/* ---- memory_keys.c ---- */
bh_rc bh_memory_put_key(void *self, const struct bh_key_row *row, struct bh_err *err);
bh_rc bh_memory_erase_jobs(void *self, const struct bh_erasure *which, struct bh_err *err);
bh_rc bh_memory_scrub(void *self, struct bh_err *err);
bh_rc bh_memory_list_keys(void *self, bh_key_sink sink, void *sink_self,
                          struct bh_err *err);

#endif
