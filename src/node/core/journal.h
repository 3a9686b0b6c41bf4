#ifndef BH_NODE_CORE_JOURNAL_H
#define BH_NODE_CORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

/* The node's own journal: an append-only file of checked frames
 *
 *   u32 length, u32 crc32c of the payload, payload
 *
 * little-endian.  A torn end, as a crash leaves it, is cut off when the journal is
 * opened; a damaged frame before the end is refused.  Appends are durable after
 * bh_order_journal_sync, many with one sync. */
struct bh_order_journal;

enum { BH_JOURNAL_FRAME_MAX = 64 << 10 };

/* Called for each payload, in order, when the journal is opened; any failure stops. */
typedef bh_rc (*bh_order_journal_sink)(void *self, const char *payload, size_t length, struct bh_err *err);

/* Open or create the journal at `path`; a rewrite that a crash cut off is removed.
 * BH_INVALID: damaged in the middle. */
BH_MUST_USE bh_rc bh_order_journal_open(const char *path, bh_order_journal_sink sink, void *sink_self,
                                        struct bh_order_journal **ret_journal, struct bh_err *err);
void bh_order_journal_close(struct bh_order_journal *journal);
BH_AUTO_DEFINE(struct bh_order_journal *, bh_order_journal_close)

/* Take room on the disk beyond the end, so that BH_JOURNAL_SPARE bytes can be appended
 * although the disk fills up.  BH_FULL: there is none.  BH_OK where the file system cannot. */
enum { BH_JOURNAL_SPARE = 256 << 10 };
BH_MUST_USE bh_rc bh_order_journal_reserve(struct bh_order_journal *journal, struct bh_err *err);

/* Append without waiting for the disk.  BH_FULL, BH_IO: nothing was kept. */
BH_MUST_USE bh_rc bh_order_journal_append(struct bh_order_journal *journal, const char *payload,
                                          size_t length, struct bh_err *err);

/* Wait until all that was appended is on disk. */
BH_MUST_USE bh_rc bh_order_journal_sync(struct bh_order_journal *journal, struct bh_err *err);

/* Sync records that no caller waits for, BH_JOURNAL_SYNC_WITHIN after this function first sees them.
 * `ret_next`: when to call again, also after an error, or 0. */
#define BH_JOURNAL_SYNC_WITHIN BH_NS_PER_S
BH_MUST_USE bh_rc bh_order_journal_tick(struct bh_order_journal *journal, bh_ns now, bh_ns *ret_next,
                                        struct bh_err *err);

/* Bytes in the file. */
uint64_t bh_order_journal_size(const struct bh_order_journal *journal);

/* Begin a new file that will replace this one: appends go there until commit, which
 * makes it durable and puts it in place, or cancel.  On a failure of either the old one
 * stays in use. */
BH_MUST_USE bh_rc bh_order_journal_rewrite_begin(struct bh_order_journal *journal, struct bh_err *err);
BH_MUST_USE bh_rc bh_order_journal_rewrite_commit(struct bh_order_journal *journal, struct bh_err *err);
void bh_order_journal_rewrite_cancel(struct bh_order_journal *journal);

/* CRC-32C (Castagnoli), as iSCSI and ext4 compute it. */
uint32_t bh_crc32c(const void *bytes, size_t length);

#endif
