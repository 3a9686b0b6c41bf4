#include "web/gpu_card.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/show.h"
#include "web/svg.h"

enum { TITLE_MAX = 192, LABEL_MAX = 24, LEGEND_MAX = 24 };

uint32_t
bh_gpu_card_hue(const char *tenant)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *tenant; tenant++)
        hash = (hash ^ (unsigned char)*tenant) * 16777619u;
    return hash % BH_SVG_HUES;
}

void
bh_gpu_card_order(bh_json_value gpu, struct bh_gpu_order *ret_order)
{
    bh_json_value list = bh_json_get(gpu, "partitions");

    ret_order->count = 0;
    for (size_t i = 0; i < bh_json_count(list) && ret_order->count < BH_GPU_PARTITIONS_MAX; i++) {
        bh_json_value row = bh_json_at(list, i);
        uint64_t start = bh_show_number_of(row, "start");
        uint32_t at = ret_order->count++;

        for (; at > 0 && bh_show_number_of(ret_order->rows[at - 1], "start") > start; at--)
            ret_order->rows[at] = ret_order->rows[at - 1];
        ret_order->rows[at] = row;
    }
}

/* ---- the board ---- */

/* The texts that a picture borrows. */
struct gpu_card_texts {
    char titles[BH_GPU_PARTITIONS_MAX][TITLE_MAX], labels[BH_GPU_PARTITIONS_MAX][LABEL_MAX];
};

static void
gpu_card_word_partition(bh_json_value row, char title[TITLE_MAX], char label[LABEL_MAX])
{
    const char *tenant = bh_show_text_of(row, "tenant"), *profile = bh_show_text_of(row, "profile");
    unsigned long long job = bh_show_number_of(row, "job");

    if (job) {
        snprintf(title, TITLE_MAX, "job %llu of %.120s: %.40s", job, tenant, profile);
        snprintf(label, LABEL_MAX, "%llu", job);
    } else {
        snprintf(title, TITLE_MAX, "%.20s: %.40s", bh_show_text_of(row, "state"), profile);
        snprintf(label, LABEL_MAX, "%.20s", bh_show_text_of(row, "state"));
    }
}

/* Shares have no place in memory slices: they stand side by side, as wide as their part of the time. */
static void
gpu_card_place(bh_json_value gpu, bh_json_value row, uint32_t *next, struct bh_svg_partition *ret)
{
    uint32_t units = (uint32_t)bh_show_number_of(gpu, "memory_units");
    uint32_t slices = (uint32_t)bh_show_number_of(gpu, "compute_slices");
    uint64_t parts = bh_show_number_of(row, "compute_parts");
    uint32_t wide = (uint32_t)(parts * units / 4200);

    if (strcmp(bh_show_text_of(row, "profile"), "whole") == 0) {
        ret->units = units;
        ret->slices = slices;
    } else if (parts > 0) {
        ret->start = *next < units ? *next : units - 1;
        ret->units = wide ? wide : 1;
        ret->slices = ret->units < slices ? ret->units : slices;
        *next = ret->start + ret->units;
    } else {
        ret->start = (uint32_t)bh_show_number_of(row, "start");
        ret->units = (uint32_t)bh_show_number_of(row, "units");
        ret->slices = (uint32_t)bh_show_number_of(row, "slices");
    }
}

static uint32_t
gpu_card_read_partitions(bh_json_value gpu, struct bh_svg_partition partitions[BH_GPU_PARTITIONS_MAX],
                         struct gpu_card_texts *texts)
{
    struct bh_gpu_order order;
    uint32_t count = 0, next = 0;

    bh_gpu_card_order(gpu, &order);
    for (; count < order.count; count++) {
        bh_json_value row = order.rows[count];

        gpu_card_word_partition(row, texts->titles[count], texts->labels[count]);
        partitions[count] = (struct bh_svg_partition){
            .title = texts->titles[count],
            .label = texts->labels[count],
            .state = bh_show_text_of(row, "state"),
            .job = bh_show_number_of(row, "job"),
            .hue = bh_gpu_card_hue(bh_show_text_of(row, "tenant")),
        };
        gpu_card_place(gpu, row, &next, &partitions[count]);
    }
    return count;
}

void
bh_gpu_card_put_board(struct bh_html *html, bh_json_value gpu)
{
    struct bh_svg_partition partitions[BH_GPU_PARTITIONS_MAX];
    struct gpu_card_texts texts;
    struct bh_svg_gpu picture = { .partitions = partitions,
                                  .units = (uint32_t)bh_show_number_of(gpu, "memory_units"),
                                  .slices = (uint32_t)bh_show_number_of(gpu, "compute_slices"),
                                  .fenced = bh_show_truth_of(gpu, "fenced"),
                                  .cordoned = bh_show_truth_of(gpu, "cordoned")
                                              || strcmp(bh_show_text_of(gpu, "cordon"), "no") != 0 };
    char title[TITLE_MAX];

    picture.partition_count = gpu_card_read_partitions(gpu, partitions, &texts);
    if (bh_show_text_of(gpu, "node")[0])
        snprintf(title, sizeof title, "%s, %.20s of it used", bh_show_text_of(gpu, "mode"),
                 bh_show_text_of(bh_json_get(gpu, "used"), "gpus"));
    else
        snprintf(title, sizeof title, "%s, its node is away", bh_show_text_of(gpu, "mode"));
    picture.title = title;
    bh_svg_put_gpu(html, &picture);
}

/* ---- words ---- */

static void
gpu_card_put_state(struct bh_html *html, const char *state, const char *usual)
{
    if (!state[0] || strcmp(state, usual) == 0)
        return;
    bh_html_text(html, " ");
    bh_show_state(html, state);
}

static uint64_t
gpu_card_parts_of(bh_json_value gpu, const char *amount)
{
    return bh_show_number_of(bh_json_get(gpu, amount), "compute")
           + bh_show_number_of(bh_json_get(gpu, amount), "memory");
}

bool
bh_gpu_card_is_empty(bh_json_value gpu)
{
    return gpu_card_parts_of(gpu, "used") <= gpu_card_parts_of(gpu, "dedicated");
}

void
bh_gpu_card_put_states(struct bh_html *html, bh_json_value gpu)
{
    gpu_card_put_state(html, bh_show_text_of(gpu, "health"), "ok");
    gpu_card_put_state(html, bh_show_truth_of(gpu, "fenced") ? "fenced" : "", "");
    gpu_card_put_state(html, bh_show_truth_of(gpu, "cordoned") ? "cordoned" : "", "");
    bh_html_text(html, " ");
    bh_show_cordon(html, bh_show_text_of(gpu, "cordon"), bh_gpu_card_is_empty(gpu));
    if (!bh_show_truth_of(gpu, "managed"))
        bh_show_state(html, "unmanaged");
}

const char *
bh_gpu_card_why_unknown(bh_json_value gpu)
{
    if (!bh_show_text_of(gpu, "node")[0])
        return "its node is away";
    if (!bh_json_get(gpu, "sampled_ns"))
        return "its driver does not answer";
    return "its driver does not give it";
}

static const char *
gpu_card_why_silent(bh_json_value gpu)
{
    if (bh_show_truth_of(gpu, "sensors_withheld"))
        return "others hold partitions of it";
    return bh_gpu_card_why_unknown(gpu);
}

static void
gpu_card_put_unavailable(struct bh_html *html, bh_json_value gpu, const char *what)
{
    char text[TITLE_MAX];

    snprintf(text, sizeof text, "%s, as %s", what, gpu_card_why_silent(gpu));
    bh_show_unavailable(html, text);
}

/* "87 % busy, 32 \xc2\xb0C, 105 W, ". */
static void
gpu_card_put_figures(struct bh_html *html, bh_json_value gpu)
{
    static const struct {
        const char *member, *name, *unit;
        uint64_t divisor;
    } figures[] = { { "utilisation", "busy", " % busy", 1 },
                    { "temperature_c", "temperature",
                      " \xc2\xb0"
                      "C",
                      1 },
                    { "power_mw", "power", " W", 1000 } };
    bool mig = strcmp(bh_show_text_of(gpu, "mode"), "mig") == 0; /* a MIG GPU is busy by its instances */

    for (size_t i = mig; i < BH_COUNT(figures); i++) {
        if (bh_json_get(gpu, figures[i].member)) {
            bh_html_u64(html, bh_show_number_of(gpu, figures[i].member) / figures[i].divisor);
            bh_html_text(html, figures[i].unit);
        } else {
            gpu_card_put_unavailable(html, gpu, figures[i].name);
        }
        bh_html_text(html, ", ");
    }
}

static void
gpu_card_put_memory(struct bh_html *html, bh_json_value gpu)
{
    if (bh_json_get(gpu, "memory_used_mib"))
        bh_show_mib(html, bh_show_number_of(gpu, "memory_used_mib"));
    else
        gpu_card_put_unavailable(html, gpu, "memory used");
    if (!bh_json_get(gpu, "memory_mib"))
        return;
    bh_html_text(html, " of ");
    bh_show_mib(html, bh_show_number_of(gpu, "memory_mib"));
}

/* Whether the driver says anything of what runs on it. */
static bool
gpu_card_is_read(bh_json_value gpu)
{
    return bh_json_get(gpu, "temperature_c") || bh_json_get(gpu, "power_mw")
           || bh_json_get(gpu, "memory_used_mib");
}

void
bh_gpu_card_put_sensors(struct bh_html *html, bh_json_value gpu, bh_ns now)
{
    if (!gpu_card_is_read(gpu)) {
        if (bh_show_text_of(gpu, "node")[0]) { /* what an absent node's leases use is not counted as used */
            bh_html_text(html, bh_show_text_of(bh_json_get(gpu, "used"), "gpus"));
            bh_html_text(html, " of it used, ");
        }
        gpu_card_put_unavailable(html, gpu, "sensors");
        return;
    }
    gpu_card_put_figures(html, gpu);
    gpu_card_put_memory(html, gpu);
    bh_show_age(html, bh_show_number_of(gpu, "sampled_ns"), now);
}

void
bh_gpu_card_put(struct bh_html *html, bh_json_value gpu, bh_ns now)
{
    const char *uuid = bh_show_text_of(gpu, "uuid");
    char name[32];

    snprintf(name, sizeof name, "GPU %llu", (unsigned long long)bh_show_number_of(gpu, "index"));
    bh_html_open(html, "article");
    bh_html_attr(html, "class", "card");
    bh_html_open(html, "p");
    bh_show_link(html, "/gpus/", uuid, bh_json_get(gpu, "index") ? name : uuid);
    bh_html_text(html, " ");
    bh_html_text(html, bh_show_text_of(gpu, "model"));
    bh_gpu_card_put_states(html, gpu);
    bh_html_close(html, "p");
    bh_gpu_card_put_board(html, gpu);
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_gpu_card_put_sensors(html, gpu, now);
    bh_html_close(html, "p");
    bh_html_close(html, "article");
}

/* ---- the legend ---- */

struct gpu_card_legend {
    const char *tenants[LEGEND_MAX];
    uint32_t count;
    bool more;
};

static void
gpu_card_add_tenant(struct gpu_card_legend *legend, const char *tenant)
{
    if (!tenant[0])
        return;
    for (uint32_t i = 0; i < legend->count; i++)
        if (strcmp(legend->tenants[i], tenant) == 0)
            return;
    if (legend->count == LEGEND_MAX)
        legend->more = true;
    else
        legend->tenants[legend->count++] = tenant;
}

static void
gpu_card_read_legend(bh_json_value gpus, struct gpu_card_legend *ret)
{
    for (size_t i = 0; i < bh_json_count(gpus); i++) {
        bh_json_value partitions = bh_json_get(bh_json_at(gpus, i), "partitions");

        for (size_t k = 0; k < bh_json_count(partitions); k++)
            gpu_card_add_tenant(ret, bh_show_text_of(bh_json_at(partitions, k), "tenant"));
    }
}

void
bh_gpu_card_put_legend(struct bh_html *html, bh_json_value gpus)
{
    struct gpu_card_legend legend = { .count = 0 };
    char class[24];

    gpu_card_read_legend(gpus, &legend);
    if (legend.count == 0)
        return;
    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "legend");
    for (uint32_t i = 0; i < legend.count; i++) {
        snprintf(class, sizeof class, "t%u", bh_gpu_card_hue(legend.tenants[i]));
        bh_html_open(html, "li");
        bh_html_attr(html, "class", class);
        bh_show_tenant(html, legend.tenants[i]);
        bh_html_close(html, "li");
    }
    if (legend.more)
        bh_html_element(html, "li", NULL, "and others");
    bh_html_close(html, "ul");
}
