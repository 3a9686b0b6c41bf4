#ifndef BH_ENGINE_FORECAST_DEFRAG_LEAVE_H
#define BH_ENGINE_FORECAST_DEFRAG_LEAVE_H

#include "engine/forecast/defrag.h"

/* The plan that empties a GPU which gets no new work (cordoned), so that people need not wait
 * for the last job on it: all of its jobs find other places.  The whole GPU is gained for as
 * long as the last of them would have stayed, as far as one can tell (bh_lease_ends_ns).  Of
 * several GPUs the one where most is gained beyond what that must be worth. */
bool bh_defrag_leave(const struct bh_engine *engine, struct bh_defrag_plan *ret_plan);

#endif
