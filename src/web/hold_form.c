#include "web/hold_form.h"

#include <string.h>

#include "web/show.h"

enum { REASON_MAX = 400 };

static void
hold_form_open(struct bh_html *html, const struct bh_panel_call *call, const struct bh_hold_target *target,
               const char *verb)
{
    bh_frame_form(html, call->frame, "/hold");
    bh_frame_hidden(html, "verb", verb);
    bh_frame_hidden(html, "folder", target->folder);
    bh_frame_hidden(html, "target", target->target);
}

static void
hold_form_put_cordon(struct bh_html *html, const struct bh_panel_call *call,
                     const struct bh_hold_target *target)
{
    hold_form_open(html, call, target, "cordon");
    bh_frame_input(html, &(struct bh_input){ .id = "reason",
                                             .label = "Why (for the record)",
                                             .name = "reason",
                                             .autocomplete = "off",
                                             .length_max = REASON_MAX,
                                             .optional = true });
    bh_frame_button(html, "plain", "Cordon");
    bh_html_close(html, "form");
}

static void
hold_form_put_uncordon(struct bh_html *html, const struct bh_panel_call *call,
                       const struct bh_hold_target *target)
{
    hold_form_open(html, call, target, "uncordon");
    bh_frame_button(html, "plain", "Uncordon");
    bh_html_close(html, "form");
    if (!target->faulty)
        return;
    hold_form_open(html, call, target, "clear");
    bh_frame_button(html, "plain", "Clear the fault and uncordon");
    bh_html_close(html, "form");
}

static void
hold_form_put_drain(struct bh_html *html, const struct bh_hold_target *target)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = 2048 };

    bh_buf_puts(&address, "/hold?folder=");
    bh_form_put_encoded(&address, target->folder);
    bh_buf_puts(&address, "&target=");
    bh_form_put_encoded(&address, target->target);
    if (!bh_buf_text(&address))
        return;
    bh_html_open(html, "a");
    bh_html_attr(html, "class", "button plain");
    bh_html_attr(html, "href", bh_buf_text(&address));
    bh_html_text(html, "Drain\xe2\x80\xa6");
    bh_html_close(html, "a");
}

void
bh_hold_form_put(struct bh_html *html, const struct bh_panel_call *call, const struct bh_hold_target *target)
{
    if (!bh_page_may(call->page, "gpu.cordon"))
        return;
    bh_html_element(html, "h3", NULL, "Take out of service");
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "actions");
    if (!target->cordoned)
        hold_form_put_cordon(html, call, target);
    if (target->cordoned || target->faulty)
        hold_form_put_uncordon(html, call, target);
    hold_form_put_drain(html, target);
    bh_html_close(html, "div");
}
