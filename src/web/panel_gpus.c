/* GPUs as cards: the board with its partitions where they lie, and how it is. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/panel.h"
#include "web/show.h"
#include "web/svg.h"

enum { SHOWN_MAX = 64, TITLE_MAX = 192, LABEL_MAX = 24 };

/* The texts that a picture borrows. */
struct gpu_texts {
    char titles[SHOWN_MAX][TITLE_MAX], labels[SHOWN_MAX][LABEL_MAX];
};

static void
gpus_word_partition(bh_json_value row, char title[TITLE_MAX], char label[LABEL_MAX])
{
    const char *tenant = bh_show_text_of(row, "tenant"), *profile = bh_show_text_of(row, "profile");
    unsigned long long job = bh_show_number_of(row, "job");

    if (job) {
        snprintf(title, TITLE_MAX, "%s at %llu: job %llu of %.120s", profile,
                 (unsigned long long)bh_show_number_of(row, "start"), job, tenant);
        snprintf(label, LABEL_MAX, "%llu", job);
    } else {
        snprintf(title, TITLE_MAX, "%s at %llu: %s", profile,
                 (unsigned long long)bh_show_number_of(row, "start"), bh_show_text_of(row, "state"));
        snprintf(label, LABEL_MAX, "%.20s", bh_show_text_of(row, "state"));
    }
}

/* The partitions of a GPU in the order in which they lie on it. */
struct gpu_order {
    bh_json_value rows[SHOWN_MAX];
    uint32_t count;
};

static void
gpus_order(bh_json_value gpu, struct gpu_order *ret)
{
    bh_json_value list = bh_json_get(gpu, "partitions");

    ret->count = 0;
    for (size_t i = 0; i < bh_json_count(list) && ret->count < SHOWN_MAX; i++) {
        bh_json_value row = bh_json_at(list, i);
        uint64_t start = bh_show_number_of(row, "start");
        uint32_t at = ret->count++;

        for (; at > 0 && bh_show_number_of(ret->rows[at - 1], "start") > start; at--)
            ret->rows[at] = ret->rows[at - 1];
        ret->rows[at] = row;
    }
}

static uint32_t
gpus_read_partitions(bh_json_value gpu, struct bh_svg_partition partitions[SHOWN_MAX],
                     struct gpu_texts *texts)
{
    struct gpu_order order;
    uint32_t units = (uint32_t)bh_show_number_of(gpu, "memory_units"), count = 0;
    uint32_t slices = (uint32_t)bh_show_number_of(gpu, "compute_slices");

    gpus_order(gpu, &order);
    for (; count < order.count; count++) {
        bh_json_value row = order.rows[count];
        bool whole = strcmp(bh_show_text_of(row, "profile"), "whole") == 0;

        gpus_word_partition(row, texts->titles[count], texts->labels[count]);
        partitions[count] = (struct bh_svg_partition){
            .start = whole ? 0 : (uint32_t)bh_show_number_of(row, "start"),
            .units = whole ? units : (uint32_t)bh_show_number_of(row, "units"),
            .slices = whole ? slices : (uint32_t)bh_show_number_of(row, "slices"),
            .title = texts->titles[count],
            .label = texts->labels[count],
            .state = bh_show_text_of(row, "state"),
            .hue = bh_svg_hue(bh_show_text_of(row, "tenant")),
        };
    }
    return count;
}

static void
gpus_put_picture(struct bh_html *html, bh_json_value gpu)
{
    struct bh_svg_partition partitions[SHOWN_MAX];
    struct gpu_texts texts;
    struct bh_svg_gpu picture = { .partitions = partitions,
                                  .units = (uint32_t)bh_show_number_of(gpu, "memory_units"),
                                  .slices = (uint32_t)bh_show_number_of(gpu, "compute_slices"),
                                  .blocked =
                                      bh_show_truth_of(gpu, "fenced") || bh_show_truth_of(gpu, "cordoned") };
    char title[TITLE_MAX];

    picture.partition_count = gpus_read_partitions(gpu, partitions, &texts);
    snprintf(title, sizeof title, "GPU %llu, %s: %u partitions, %s GPU used",
             (unsigned long long)bh_show_number_of(gpu, "index"), bh_show_text_of(gpu, "mode"),
             picture.partition_count, bh_show_text_of(bh_json_get(gpu, "used"), "gpus"));
    picture.title = title;
    bh_svg_put_gpu(html, &picture);
}

/* Who holds what, in words: the picture's twin. */
static void
gpus_put_holders(struct bh_html *html, bh_json_value gpu)
{
    struct gpu_order order;

    gpus_order(gpu, &order);
    if (order.count == 0)
        return;
    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "holders");
    for (uint32_t i = 0; i < order.count; i++) {
        bh_json_value row = order.rows[i];

        bh_html_open(html, "li");
        bh_html_text(html, bh_show_text_of(row, "profile"));
        bh_html_text(html, " ");
        if (bh_show_number_of(row, "job")) {
            bh_show_job(html, bh_show_number_of(row, "job"));
            bh_html_text(html, " ");
            bh_show_tenant(html, bh_show_text_of(row, "tenant"));
        } else {
            bh_html_text(html, bh_show_text_of(row, "state"));
        }
        bh_html_close(html, "li");
    }
    bh_html_close(html, "ul");
}

static void
gpus_put_sensors(struct bh_html *html, bh_json_value gpu)
{
    char text[96];

    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    if (bh_json_get(gpu, "temperature_c")) {
        snprintf(text, sizeof text,
                 "%llu \xc2\xb0"
                 "C, %llu W, ",
                 (unsigned long long)bh_show_number_of(gpu, "temperature_c"),
                 (unsigned long long)bh_show_number_of(gpu, "power_mw") / 1000);
        bh_html_text(html, text);
        bh_show_mib(html, bh_show_number_of(gpu, "memory_used_mib"));
        bh_html_text(html, " of ");
        bh_show_mib(html, bh_show_number_of(gpu, "memory_mib"));
    } else {
        bh_show_unavailable(html, "its node has not reported sensors");
    }
    bh_html_close(html, "p");
}

static void
gpus_put_card(struct bh_html *html, bh_json_value gpu)
{
    const char *health = bh_show_text_of(gpu, "health");
    char name[48];

    snprintf(name, sizeof name, " GPU %llu", (unsigned long long)bh_show_number_of(gpu, "index"));
    bh_html_open(html, "article");
    bh_html_attr(html, "class", "card");
    bh_html_open(html, "h3");
    bh_show_gpu(html, bh_show_text_of(gpu, "uuid"));
    bh_html_close(html, "h3");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_text(html, bh_show_text_of(gpu, "node"));
    bh_html_text(html, name);
    bh_html_text(html, ", ");
    bh_html_text(html, bh_show_text_of(gpu, "model"));
    bh_html_text(html, ", ");
    bh_html_text(html, bh_show_text_of(gpu, "mode"));
    bh_html_close(html, "p");
    gpus_put_picture(html, gpu);
    if (strcmp(health, "ok") != 0)
        bh_show_state(html, health);
    if (strcmp(bh_show_text_of(gpu, "held"), "no") != 0)
        bh_show_state(html, bh_show_text_of(gpu, "held"));
    gpus_put_holders(html, gpu);
    gpus_put_sensors(html, gpu);
    bh_html_close(html, "article");
}

void
bh_panel_gpus(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(
            html, "p", NULL,
            "No GPU is known yet. Start bulkhead-node on a server with GPUs, or try: bulkhead up --sim "
            "\"8x H100-80GB\".");
        return;
    }
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "cards");
    for (size_t i = 0; i < bh_json_count(list); i++)
        gpus_put_card(html, bh_json_at(list, i));
    bh_html_close(html, "div");
}
