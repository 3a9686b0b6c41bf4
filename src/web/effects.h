#ifndef BH_WEB_EFFECTS_H
#define BH_WEB_EFFECTS_H

#include "base/json.h"
#include "web/html.h"

/* What a change would do to jobs, as POST /v1/whatif says it: a list, and what it supposes.  Where nothing
 * would be different, that. */
void bh_effects_put(struct bh_html *html, bh_json_value whatif);

#endif
