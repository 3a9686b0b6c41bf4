#ifndef BH_WEB_GOLDEN_TEST_H
#define BH_WEB_GOLDEN_TEST_H

#include "base/test.h"
#include "base/buf.h"

/* Pages as they were last looked at: golden/NAME.html.  Where one differs, what came out is left in the
 * build folder; look at it, then copy it over. */

/* Appends a file's bytes; nothing where there is none. */
void bh_golden_read(const char *path, struct bh_buf *out);

/* Whether the page has the golden file's bytes, with assets by their names. */
bool bh_golden_matches(const char *golden_folder, const char *build_folder, const char *name,
                       const char *page);

#endif
