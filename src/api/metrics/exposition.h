#ifndef BH_API_METRICS_EXPOSITION_H
#define BH_API_METRICS_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/quantity.h"

/* Metrics as text: Prometheus' exposition format 0.0.4, or OpenMetrics 1.0.  What there is stands
 * in tables/metrics.tbl; a family's series are written together, families in the table's order. */

enum bh_metric {
#define BH_METRIC(id, name, type, unit, sees, labels, help) BH_METRIC_##id,
#include "tables/metrics.tbl"
#undef BH_METRIC
    BH_METRICS
};

enum bh_metric_type {
    BH_METRIC_GAUGE,
    BH_METRIC_COUNTER,
    BH_METRIC_HISTOGRAM,
    BH_METRIC_INFO,
    BH_METRIC_TYPES
};
enum bh_metric_sees { BH_METRIC_SEES_TENANT, BH_METRIC_SEES_SITE, BH_METRIC_SEES_HOLDER };

struct bh_metric_row {
    const char *name;
    enum bh_metric_type type;
    const char *unit; /* "" without one */
    enum bh_metric_sees sees;
    const char *labels, *help; /* labels "" without any */
};
const struct bh_metric_row *bh_metric_get(enum bh_metric metric);

enum { BH_METRIC_LABELS_MAX = 13 };

/* Of a GPU or MIG instance, in the DCGM exporter's order; the tenant and the job that hold it last. */
#define BH_DEVICE_LABELS                                                                                     \
    "gpu UUID pci_bus_id device modelName GPU_I_PROFILE GPU_I_ID hostname DCGM_FI_DRIVER_VERSION tenant job_id"
enum {
    BH_DEVICE_LABEL_GPU,
    BH_DEVICE_LABEL_UUID,
    BH_DEVICE_LABEL_PCI,
    BH_DEVICE_LABEL_DEVICE,
    BH_DEVICE_LABEL_MODEL,
    BH_DEVICE_LABEL_PROFILE,
    BH_DEVICE_LABEL_INSTANCE,
    BH_DEVICE_LABEL_HOST,
    BH_DEVICE_LABEL_DRIVER,
    BH_DEVICE_LABEL_TENANT,
    BH_DEVICE_LABEL_JOB,
    BH_DEVICE_LABELS_COUNT
};

struct bh_exposition {
    struct bh_buf *out;
    bool open_metrics;
    const char *host_label; /* how the label hostname is spelled; NULL: as in the table */
    enum bh_metric metric;  /* of the family that is being written */
    bool begun;             /* its first series was */
};

/* Whether the header Accept (NULL: absent) would rather have OpenMetrics than text. */
bool bh_exposition_wants_open_metrics(const char *accept);
const char *bh_exposition_content_type(bool open_metrics);

/* Its series come next.  Those before it in the table are over. */
void bh_exposition_family(struct bh_exposition *x, enum bh_metric metric);

/* A series.  `values` has one for each label of the table; NULL and "" leave the label out.
 * Nothing of a family is written without a series. */
void bh_exposition_u64(struct bh_exposition *x, const char *const *values, uint64_t number);

/* A number of billionths, written exactly: nanoseconds as seconds.  `_milli`: of thousandths. */
void bh_exposition_nano(struct bh_exposition *x, const char *const *values, bh_part_ns nanos);
void bh_exposition_milli(struct bh_exposition *x, const char *const *values, uint64_t millis);

/* A histogram without labels: `counts` has one more than `bounds_ns`, of what was more than the
 * bound before and no more than this one. */
struct bh_exposition_histogram {
    const uint64_t *bounds_ns, *counts;
    uint32_t bound_count;
    uint64_t sum_ns;
};
void bh_exposition_put_histogram(struct bh_exposition *x, const struct bh_exposition_histogram *histogram);

void bh_exposition_end(struct bh_exposition *x);

#endif
