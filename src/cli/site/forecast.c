#include "cli/site/forecast.h"

#include "cli/output/output.h"
#include "cli/output/views.h"

/* What is shown, in this order; empty tables are left out. */
static const struct {
    const char *key;
    const struct bh_view *view;
} tables[] = {
    { "tenants", &bh_view_forecast_tenants },
    { "pools", &bh_view_forecast_pools },
    { "partitions", &bh_view_forecast_partitions },
    { "nodes", &bh_view_forecast_nodes },
};

/* "bounds 1h, 3h, 24h ahead, to be kept 95 % of the time; ? is a guess; lending all, ..." */
static void
put_head(struct bh_buf *out, bh_json_value root)
{
    static const struct bh_column settings[] = {
        { "; lending ", "lending", BH_CELL_TEXT, false },
        { ", hotspots ", "hotspots", BH_CELL_TEXT, false },
        { ", preshape ", "preshape", BH_CELL_TEXT, false },
    };
    bh_json_value ahead = bh_json_get(root, "ahead_ns");

    bh_buf_puts(out, "NEXT, LATER and FAR are bounds for the time ");
    for (size_t i = 0; i < bh_json_count(ahead); i++) {
        bh_buf_puts(out, i ? ", " : "");
        bh_view_span(out, bh_json_number(bh_json_at(ahead, i), 0));
    }
    bh_buf_puts(out, " ahead, meant to hold ");
    bh_buf_put_u64(out, bh_json_number(bh_json_get(root, "q_bp"), 0) / 100);
    bh_buf_puts(out, " % of the time; ?: too little history");
    for (size_t i = 0; i < BH_COUNT(settings); i++) {
        bh_buf_puts(out, settings[i].header);
        bh_view_cell(out, &settings[i], root, 0);
    }
    bh_buf_puts(out, "\n");
}

bh_rc
bh_cli_forecast(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_view_style style = { .wide = bh_cli_output(cli) == BH_OUT_WIDE,
                                   .headers = !bh_cli_flag(cli, BH_OPT_NO_HEADERS) };
    bh_rc rc = bh_cli_fetch(cli, "/v1/forecast", &json, err);

    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    if (style.headers)
        put_head(&out, bh_json_root(json));
    for (size_t i = 0; i < BH_COUNT(tables); i++) {
        bh_json_value items = bh_json_get(bh_json_root(json), tables[i].key);

        if (bh_json_count(items) == 0)
            continue;
        bh_buf_puts(&out, style.headers ? "\n" : "");
        bh_view_table(&out, tables[i].view, &style, items);
    }
    return bh_output_write(&out, err);
}
