#include "web/tenant_share.h"

#include <stdio.h>

#include "base/attr.h"
#include "model/quantity.h"
#include "web/show.h"
#include "web/svg.h"

enum { TITLE_MAX = 256 };

uint64_t
bh_tenant_share_scale_of(bh_json_value tenant)
{
    static const char *const names[] = { "used_parts", "guarantee_parts", "limit_parts" };
    uint64_t most = BH_GPU_PARTS;

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        uint64_t parts = bh_show_number_of(tenant, names[i]);

        most = parts > most ? parts : most;
    }
    return most;
}

uint64_t
bh_tenant_share_scale(bh_json_value tenants)
{
    uint64_t most = BH_GPU_PARTS;

    for (size_t i = 0; i < bh_json_count(tenants); i++) {
        uint64_t parts = bh_tenant_share_scale_of(bh_json_at(tenants, i));

        most = parts > most ? parts : most;
    }
    return most;
}

void
bh_tenant_share_put_bar(struct bh_html *html, bh_json_value tenant, uint64_t scale)
{
    const char *limit = bh_show_text_of(tenant, "limit");
    char title[TITLE_MAX];

    snprintf(title, sizeof title, "%.40s GPUs used, %.40s guaranteed, limit %.40s",
             bh_show_text_of(tenant, "used"), bh_show_text_of(tenant, "guarantee"),
             limit[0] ? limit : "none");
    bh_svg_put_bar(html, &(struct bh_svg_bar){
                             .title = title,
                             .used = bh_show_number_of(tenant, "used_parts"),
                             .guarantee = bh_show_number_of(tenant, "guarantee_parts"),
                             .limit = limit[0] ? bh_show_number_of(tenant, "limit_parts") : BH_SVG_NO_LIMIT,
                             .whole = scale,
                         });
}

void
bh_tenant_share_put_words(struct bh_html *html, bh_json_value tenant)
{
    uint64_t used = bh_show_number_of(tenant, "used_parts");
    uint64_t guarantee = bh_show_number_of(tenant, "guarantee_parts");
    const char *limit = bh_show_text_of(tenant, "limit");

    bh_show_parts(html, used);
    bh_html_text(html, " GPUs used, ");
    bh_show_parts(html, guarantee);
    bh_html_text(html, " guaranteed, ");
    if (used > guarantee) {
        bh_show_parts(html, used - guarantee);
        bh_html_text(html, " borrowed, ");
    }
    if (limit[0]) {
        bh_html_text(html, "limit ");
        bh_show_parts(html, bh_show_number_of(tenant, "limit_parts"));
    } else {
        bh_html_text(html, "no limit");
    }
}
