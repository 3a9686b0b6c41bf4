#ifndef BH_WEB_TENANT_SHARE_H
#define BH_WEB_TENANT_SHARE_H

#include "base/json.h"
#include "web/html.h"

/* What a tenant uses of what it is guaranteed and may use at most, as a bar. */

/* The largest figure of a tenant, and of all of a list: bars of one page have one scale.  In parts; at least
 * a whole GPU, so that a small use without a limit is no full bar. */
uint64_t bh_tenant_share_scale_of(bh_json_value tenant);
uint64_t bh_tenant_share_scale(bh_json_value tenants);

/* Of a tenant as the API shows it; `scale` as above. */
void bh_tenant_share_put_bar(struct bh_html *html, bh_json_value tenant, uint64_t scale);

/* The numbers of the bar, in words: "0.29 used, 2 guaranteed, limit 8". */
void bh_tenant_share_put_words(struct bh_html *html, bh_json_value tenant);

#endif
