#ifndef BH_DAEMON_SITE_SITE_WARNINGS_H
#define BH_DAEMON_SITE_SITE_WARNINGS_H

#include "daemon/state/core.h"

/* What a site file may say and has no effect as things are: it is put in force, because what it
 * names may come later, and the answer says so, of a dry run too.
 *
 *   gpus[UUID]          no node has shown such a GPU
 *   pools[NAME].nodes   no node of that name has connected
 *   skus[NAME]          it promises grade A, and no tenant of the file has dedicated nodes
 *
 * One line for each, with the name that was probably meant; in `arena`.  "": none.  What does not
 * fit is counted in a last line.  NULL: the arena has no room. */
BH_MUST_USE const char *bh_site_warnings(const struct bh_core *core, const struct bh_site *site,
                                         struct bh_arena *arena);

#endif
