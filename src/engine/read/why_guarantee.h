#ifndef BH_ENGINE_READ_WHY_GUARANTEE_H
#define BH_ENGINE_READ_WHY_GUARANTEE_H

#include "engine/placement/placement.h"

/* Why a job (slot `search->job`) that waits for room that others hold takes none of it back,
 * though a guarantee says something of it; `ret_reason` stays as it is where none does. */
void bh_why_guarantee(const struct bh_search *search, const struct bh_need *need,
                      struct bh_guarantee_reason *ret_reason);

#endif
