#ifndef BH_WEB_PANEL_FORECAST_H
#define BH_WEB_PANEL_FORECAST_H

#include "base/json.h"
#include "web/html.h"

/* A plan of moves with what it wins and costs: on its panel, and on the page that asks again. */
void bh_defrag_plan_put(struct bh_html *html, bh_json_value plan);

#endif
