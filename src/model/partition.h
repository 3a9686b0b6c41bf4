#ifndef BH_MODEL_PARTITION_H
#define BH_MODEL_PARTITION_H

#include "model/share.h"

/* Any kind of partition on a GPU of a model, by its profile number: the whole GPU, a MIG
 * instance, a share.  A GPU is in one mode at a time, so partitions of two kinds never stand on
 * it together. */

enum { BH_PARTITION_NAME_MAX = 24 };

/* Whether there is such a partition on GPUs of the model. */
bool bh_partition_exists(enum bh_gpu_model model, uint32_t profile);

/* Bits of the starts where it may stand on an empty GPU: memory units, slots of shares; 1 for
 * the whole. */
uint32_t bh_partition_starts(uint32_t profile);

/* Whether nothing stands there. */
bool bh_occupancy_is_empty(const struct bh_occupancy *occupancy);

/* Whether it may be added at `start`. */
bool bh_partition_fits(const struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile,
                       uint32_t start);

/* Add or take away a partition that fits, or stands there. */
void bh_partition_add(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile,
                      uint32_t start);
void bh_partition_remove(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile,
                         uint32_t start);

/* Mark its place as taken, whatever stands there: less fits beside it, never more. */
void bh_partition_block(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile,
                        uint32_t start);

/* How many more could be added. */
uint32_t bh_partition_capacity(const struct bh_occupancy *occupancy, enum bh_gpu_model model,
                               uint32_t profile);

/* Whether two partitions of one GPU want the same place, however much room there is. */
bool bh_partition_overlaps(uint32_t profile, uint32_t start, uint32_t other, uint32_t other_start);

/* "whole", "1g.10gb", "1/4:18448Mi". */
void bh_partition_name(enum bh_gpu_model model, uint32_t profile, char ret_name[BH_PARTITION_NAME_MAX]);

#endif
