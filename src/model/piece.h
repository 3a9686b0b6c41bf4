#ifndef BH_MODEL_PIECE_H
#define BH_MODEL_PIECE_H

#include "model/share.h"

/* Any kind of piece on a GPU of a model, by its profile number: the whole GPU, a MIG
 * instance, a share.  A GPU is in one mode at a time, so pieces of two kinds never stand on
 * it together. */

enum { BH_PIECE_NAME_MAX = 24 };

/* Whether there is such a piece on GPUs of the model. */
bool bh_piece_exists(enum bh_gpu_model model, uint32_t profile);

/* Bits of the starts where it may stand on an empty GPU: memory units, slots of shares; 1 for
 * the whole. */
uint32_t bh_piece_starts(uint32_t profile);

/* Whether nothing stands there. */
bool bh_occupancy_is_empty(const struct bh_occupancy *occupancy);

/* Whether it may be added at `start`. */
bool bh_piece_fits(const struct bh_occupancy *occupancy, enum bh_gpu_model model,
                   uint32_t profile, uint32_t start);

/* Add or take away a piece that fits, or stands there. */
void bh_piece_add(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile,
                  uint32_t start);
void bh_piece_remove(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile,
                     uint32_t start);

/* Mark its place as taken, whatever stands there: less fits beside it, never more. */
void bh_piece_block(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile,
                    uint32_t start);

/* How many more could be added. */
uint32_t bh_piece_room(const struct bh_occupancy *occupancy, enum bh_gpu_model model,
                       uint32_t profile);

/* Whether two pieces of one GPU want the same place, however much room there is. */
bool bh_piece_overlaps(uint32_t profile, uint32_t start, uint32_t other, uint32_t other_start);

/* "whole", "1g.10gb", "1/4:18448Mi". */
void bh_piece_name(enum bh_gpu_model model, uint32_t profile, char ret_name[BH_PIECE_NAME_MAX]);

#endif
