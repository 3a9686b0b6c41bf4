#ifndef BH_BASE_PROC_INTERNAL_H
#define BH_BASE_PROC_INTERNAL_H

#include <stdbool.h>

#include "base/proc.h"

/* What the files say, for tests: false, and nothing changed, where that is not as expected. */
bool bh_proc_stat_parse(const char *text, struct bh_proc_stat *ret_stat);
bool bh_proc_meminfo_parse(const char *text, uint64_t *ret_bytes);

#endif
