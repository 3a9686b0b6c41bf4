#ifndef BH_API_METRICS_METRICS_SITE_H
#define BH_API_METRICS_METRICS_SITE_H

#include "api/metrics/exposition.h"
#include "api/metrics/scrape.h"

/* The families of the whole site; of the health of its GPUs alone, where the scrape is of a node of that
 * node's.  Folder-internal. */
void bh_metrics_put_health(struct bh_exposition *x, const struct bh_scrape *s);
void bh_metrics_put_site(struct bh_exposition *x, const struct bh_scrape *s);

#endif
