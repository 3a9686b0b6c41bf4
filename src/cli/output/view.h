#ifndef BH_CLI_OUTPUT_VIEW_H
#define BH_CLI_OUTPUT_VIEW_H

#include "base/buf.h"
#include "base/json.h"

/* Which members of an object of the API are in which column of a table. */

enum bh_unpack_view {
    BH_CELL_TEXT,       /* strings as they are, lists joined, true and false as yes and no */
    BH_CELL_TIME,       /* nanoseconds since the epoch: UTC */
    BH_CELL_RUNTIME,    /* of a job: from its start to its end or to now */
    BH_CELL_PARTS,      /* parts of a GPU, as GPUs: 2100 is 0.5 */
    BH_CELL_MIB,        /* MiB, as GiB when whole */
    BH_CELL_GPU_TIME,   /* part-nanoseconds, as GPU-hours */
    BH_CELL_PLACEMENT,  /* of a job: node and partitions */
    BH_CELL_REASON,     /* of a job: why it waits or how it ended */
    BH_CELL_COUNT,      /* how many items a list has */
    BH_CELL_MODELS,     /* of a SKU: which partition of which model keeps the promise */
    BH_CELL_QUOTAS,     /* of a tenant: what is used of each */
    BH_CELL_BUDGET,     /* of a tenant: what is spent of it */
    BH_CELL_PARTITIONS, /* of a GPU: its partitions and their tenants */
    BH_CELL_GPU_STATE,  /* of a GPU: ok, or what keeps it from being used */
    BH_CELL_NODE_STATE, /* of a node: up or down, and what keeps new work off it */
    BH_CELL_BOUND,      /* of a forecast: its value, with ? where it is a guess */
    BH_CELL_HITS,       /* of a forecast: bounds kept of those that fell due */
    BH_CELL_PERMILLE,   /* as a percentage */
    BH_CELL_PROPOSAL,   /* of a pool: "grow by 8", "shrink by 8", "keep" */
    BH_CELL_UNVERIFIED, /* of a GPU: "assumed" where no real board confirmed its geometry */
    BH_CELLS
};

struct bh_column {
    const char *header, *key; /* key: "name" or, inside an object, "limit.gpu" */
    enum bh_unpack_view cell;
    bool wide; /* only with -o wide */
};

struct bh_view {
    const struct bh_column *columns;
    uint32_t count;
};

struct bh_view_style {
    bool wide, headers;
    uint64_t now_ns;
};

/* A table that grows page by page: begin with its headers (if any), add arrays of
 * objects, render it (cli/output/table.h) and free it. */
struct bh_table;
BH_MUST_USE struct bh_table *bh_view_begin(const struct bh_view *view, const struct bh_view_style *style);
void bh_view_add(struct bh_table *table, const struct bh_view *view, const struct bh_view_style *style,
                 bh_json_value items);

/* Append a table of the objects in `items`, an array. */
void bh_view_table(struct bh_buf *out, const struct bh_view *view, const struct bh_view_style *style,
                   bh_json_value items);

/* Append one cell of `object`. */
void bh_view_cell(struct bh_buf *out, const struct bh_column *column, bh_json_value object, uint64_t now_ns);

/* Whether nothing keeps new work off a GPU of the API: what BH_CELL_GPU_STATE says otherwise. */
bool bh_view_gpu_is_open(bh_json_value gpu);

/* Append everything in `value` as lines of "Key:  value", nested ones indented: the
 * description of an object.  Keys that end in _ns are shown as times. */
void bh_view_describe(struct bh_buf *out, bh_json_value value, uint64_t now_ns);

/* "3s", "3m05s", "2h07m", "4d01h" */
void bh_view_span(struct bh_buf *out, uint64_t span_ns);

#endif
