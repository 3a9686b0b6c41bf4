#ifndef BH_WEB_GPU_CARD_H
#define BH_WEB_GPU_CARD_H

#include "base/json.h"
#include "base/time.h"
#include "web/html.h"

/* A GPU as the API shows it: its board with the partitions where they lie, and what is to be known at once.
 */

enum { BH_GPU_PARTITIONS_MAX = 64 };

/* The color of a tenant, which it has on all pages: 0 to BH_SVG_HUES - 1. */
uint32_t bh_gpu_card_hue(const char *tenant);

/* The partitions of a GPU in the order in which they lie on it. */
struct bh_gpu_order {
    bh_json_value rows[BH_GPU_PARTITIONS_MAX];
    uint32_t count;
};
void bh_gpu_card_order(bh_json_value gpu, struct bh_gpu_order *ret_order);

/* The board; a partition leads to the job that holds it. */
void bh_gpu_card_put_board(struct bh_html *html, bh_json_value gpu);

/* Whether no job holds anything of it: what is dedicated may be used up by it alone. */
bool bh_gpu_card_is_empty(bh_json_value gpu);

/* Health, fence and cordon, where they are not as they should be: words in their colors. */
void bh_gpu_card_put_states(struct bh_html *html, bh_json_value gpu);

/* Why the API has no figure of its driver, of those that do not depend on who holds partitions. */
const char *bh_gpu_card_why_unknown(bh_json_value gpu);

/* Sensors in a line; of each that is not known, why; of old ones, of when they are. */
void bh_gpu_card_put_sensors(struct bh_html *html, bh_json_value gpu, bh_ns now);

/* All of it in an <article>, named by its number on its node. */
void bh_gpu_card_put(struct bh_html *html, bh_json_value gpu, bh_ns now);

/* Which tenant has which color, of those that hold partitions of `gpus`; nothing where none does. */
void bh_gpu_card_put_legend(struct bh_html *html, bh_json_value gpus);

#endif
