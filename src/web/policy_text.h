#ifndef BH_WEB_POLICY_TEXT_H
#define BH_WEB_POLICY_TEXT_H

#include "base/json.h"
#include "web/html.h"

/* A policy as the site file says it: each entry with what it is for.  `tenant` has declared it; "*": the
 * site. */
void bh_policy_text_put(struct bh_html *html, const char *tenant, bh_json_value policy);

#endif
