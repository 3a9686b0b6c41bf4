#ifndef BH_API_METRICS_METRICS_SITE_H
#define BH_API_METRICS_METRICS_SITE_H

#include "api/metrics/exposition.h"
#include "api/metrics/scrape.h"

/* The families of the whole site, and of its devices by the DCGM exporter's names.
 * Folder-internal. */
void bh_metrics_put_site(struct bh_exposition *x, const struct bh_scrape *s);

#endif
