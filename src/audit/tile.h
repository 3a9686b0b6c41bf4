#ifndef BH_AUDIT_TILE_H
#define BH_AUDIT_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

/* The log in partitions as C2SP's tlog-tiles has them, so that other people's programs read
 * it: tiles of 256 hashes, level by level, and bundles of 256 records. */
struct bh_crypto_ops;

enum {
    BH_TILE_WIDTH = 256, /* hashes of a full tile, records of a full bundle */
    BH_TILE_LEVELS = 8,  /* of a tree of any size */
    BH_TILE_PATH_MAX = 64
};

struct bh_tile {
    bool entries;   /* a bundle of records; level is 0 then */
    uint32_t level; /* its hashes are roots of 256^level records */
    uint64_t index;
    uint32_t width; /* 1 .. BH_TILE_WIDTH; less is a partial one */
};

/* Append its path: "tile/0/x001/067", "tile/entries/005.p/12". */
void bh_tile_path_format(struct bh_buf *out, const struct bh_tile *tile);

/* Read such a path; false: it is none, or not written the one way. */
BH_MUST_USE bool bh_tile_path_parse(const char *path, struct bh_tile *ret_tile);

/* How many hashes tile `index` of `level` has when the log has `size` records; 0: the
 * tile does not exist then. */
uint32_t bh_tile_width(uint32_t level, uint64_t index, uint64_t size);

/* Append one record to a bundle. */
void bh_bundle_put(struct bh_buf *bundle, const void *record, uint16_t length);

/* The record that `bundle` begins with; *ret_length of it stand behind the two bytes of
 * its length.  False: it is cut short. */
BH_MUST_USE bool bh_bundle_step(const char *bundle, size_t length, size_t *ret_length);

/* Takes a tile of hashes when it is complete, or at the end. */
struct bh_tile_sink {
    bh_rc (*put)(void *self, const struct bh_tile *tile, const uint8_t (*hashes)[32], struct bh_err *err);
    void *self;
};

/* Makes all tiles of hashes from the leaf hashes, one after the other. */
struct bh_tiler {
    uint64_t size;                                     /* leaves so far */
    uint8_t hashes[BH_TILE_LEVELS][BH_TILE_WIDTH][32]; /* the last tile of each level */
};

/* Take the next leaf's hash.  Failures of the sink. */
BH_MUST_USE bh_rc bh_tiler_add(struct bh_tiler *tiler, const struct bh_crypto_ops *crypto,
                               const uint8_t leaf_hash[32], const struct bh_tile_sink *sink,
                               struct bh_err *err);

/* Give the partial tiles to the sink; more leaves may follow.  Failures of the sink. */
BH_MUST_USE bh_rc bh_tiler_end(const struct bh_tiler *tiler, const struct bh_tile_sink *sink,
                               struct bh_err *err);

#endif
