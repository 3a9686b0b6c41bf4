#ifndef BH_MODEL_SITE_EDITS_H
#define BH_MODEL_SITE_EDITS_H

#include "base/edits.h"
#include "model/site.h"

/* How two site files differ, as base/edits.h says it: every member that is another, an item
 * wherever it stands in its list. There is no line if and only if the files say the same.
 *
 * This is what `apply`, its dry run, whatif and the audit log call changes. */
void bh_site_edits(const struct bh_site *from, const struct bh_site *to,
                   void (*line)(void *self, const char *text, size_t length), void *self);

/* Whether every list of the site file has a key.  For tests. */
bool bh_site_edits_known(void);

#endif
