#ifndef BH_LAB_COMMON_FIGURES_H
#define BH_LAB_COMMON_FIGURES_H

#include <stdint.h>

/* Whole numbers of which means and quantiles are wanted.  All zero is empty; release with
 * bh_figures_fini. */
struct bh_figures {
    uint64_t *values;
    uint32_t count, capacity;
};

void bh_figures_add(struct bh_figures *figures, uint64_t value);
void bh_figures_fini(struct bh_figures *figures);

/* 0 when there are none. */
uint64_t bh_figures_mean(const struct bh_figures *figures);

/* The least of the values that at least `permille` of 1000 do not exceed; 0 when there are
 * none.  Sorts them. */
uint64_t bh_figures_quantile(struct bh_figures *figures, uint32_t permille);

#endif
