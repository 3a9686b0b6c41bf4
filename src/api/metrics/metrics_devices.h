#ifndef BH_API_METRICS_METRICS_DEVICES_H
#define BH_API_METRICS_METRICS_DEVICES_H

#include "api/metrics/exposition.h"
#include "api/metrics/scrape.h"

/* The families of GPUs and MIG instances, by the DCGM exporter's names: what the caller sees of them, and
 * where the scrape is of a node those of that node alone.  What a GPU and its instances both have is a
 * series for each instance then and none for the GPU, as the exporter does: sums count it once.
 * Folder-internal. */
void bh_metrics_put_devices(struct bh_exposition *x, const struct bh_scrape *s);

#endif
