#ifndef BH_WEB_HOLD_FORM_H
#define BH_WEB_HOLD_FORM_H

#include "base/json.h"
#include "web/panel.h"

/* Cordon, uncordon and drain of a GPU or a node, for callers that may. */

/* What is held: its page is `folder` and `target`. */
struct bh_hold_target {
    const char *folder; /* "/gpus/" or "/nodes/" */
    const char *target; /* the GPU's UUID, or the node's name */
    bool cordoned;      /* by an operator */
    bool faulty;        /* its health keeps work off it */
};

/* The forms; nothing where the caller may not. */
void bh_hold_form_put(struct bh_html *html, const struct bh_panel_call *call,
                      const struct bh_hold_target *target);

#endif
