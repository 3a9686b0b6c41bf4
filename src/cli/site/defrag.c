#include "cli/site/defrag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "cli/output/output.h"

static uint64_t
defrag_number(bh_json_value object, const char *key)
{
    return bh_json_number(bh_json_get(object, key), 0);
}

static const char *
defrag_text(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

/* "1.50 GPU-hours", "2.3 GPU-minutes" */
static void
defrag_put_gpu_time(struct bh_buf *out, uint64_t gpu_ms)
{
    if (gpu_ms >= 3600000)
        bh_buf_printf(out, "%" PRIu64 ".%02" PRIu64 " GPU-hours", gpu_ms / 3600000, gpu_ms % 3600000 / 36000);
    else
        bh_buf_printf(out, "%" PRIu64 ".%" PRIu64 " GPU-minutes", gpu_ms / 60000, gpu_ms % 60000 / 6000);
}

/* "3g.40gb at 4 on GPU-1234, ..." */
static void
defrag_put_placements(struct bh_buf *out, bh_json_value placements)
{
    for (size_t i = 0; i < bh_json_count(placements); i++) {
        bh_json_value placement = bh_json_at(placements, i);

        bh_buf_printf(out, "%s%s", i ? ", " : "", defrag_text(placement, "profile"));
        if (strcmp(defrag_text(placement, "profile"), "whole") != 0)
            bh_buf_printf(out, " at %" PRIu64, defrag_number(placement, "start"));
        bh_buf_printf(out, " on %s", defrag_text(placement, "gpu"));
    }
}

static void
defrag_put_simulated(struct bh_buf *out, bh_json_value simulated)
{
    int64_t saved = bh_json_integer(bh_json_get(simulated, "saved_gpu_ms"), 0);

    bh_buf_printf(out, "simulated: %" PRIu64 " start sooner and %" PRIu64 " later; ",
                  defrag_number(simulated, "sooner"), defrag_number(simulated, "later"));
    defrag_put_gpu_time(out, saved < 0 ? (uint64_t)-saved : (uint64_t)saved);
    bh_buf_puts(out, saved < 0 ? " more waiting\n" : " less waiting\n");
}

static void
defrag_put_plan(struct bh_buf *out, bh_json_value plan)
{
    bh_json_value moves = bh_json_get(plan, "moves");

    for (size_t i = 0; i < bh_json_count(moves); i++) {
        bh_json_value move = bh_json_at(moves, i);

        bh_buf_printf(out, "job %" PRIu64 " (%s) would move from ", defrag_number(move, "job"),
                      defrag_text(move, "tenant"));
        defrag_put_placements(out, bh_json_get(move, "from"));
        bh_buf_puts(out, " to ");
        defrag_put_placements(out, bh_json_get(move, "to"));
        bh_buf_putc(out, '\n');
    }
    if (defrag_number(plan, "for_job"))
        bh_buf_printf(out, "so that job %" PRIu64 " can start\n", defrag_number(plan, "for_job"));
    else if (*defrag_text(plan, "empties"))
        bh_buf_printf(out, "so that %s, which is cordoned, becomes empty\n", defrag_text(plan, "empties"));
    else
        bh_buf_puts(out, "so that free capacity is joined for larger jobs\n");
    bh_buf_puts(out, "gains ");
    defrag_put_gpu_time(out, defrag_number(plan, "gain_gpu_ms"));
    bh_buf_puts(out, ", loses ");
    defrag_put_gpu_time(out, defrag_number(plan, "cost_gpu_ms"));
    bh_buf_putc(out, '\n');
    defrag_put_simulated(out, bh_json_get(plan, "simulated"));
    if (!bh_json_truth(bh_json_get(plan, "complete")))
        bh_buf_puts(out, "the queue is long: only its first part was simulated\n");
    bh_buf_printf(out, "apply it with: bulkhead defrag --apply %s\n", defrag_text(plan, "token"));
}

static void
defrag_put_budget(struct bh_buf *out, bh_json_value budget, uint64_t now_ns)
{
    uint64_t ends_ns = defrag_number(budget, "ends_ns");

    bh_buf_printf(out, "left of this hour: %" PRIu64 " of %" PRIu64 " moves, ",
                  defrag_number(budget, "moves_left"), defrag_number(budget, "moves"));
    defrag_put_gpu_time(out, defrag_number(budget, "gpu_ms_left"));
    bh_buf_puts(out, " of work that they may lose");
    if (ends_ns > now_ns) {
        bh_buf_puts(out, "; it ends in ");
        bh_view_span(out, ends_ns - now_ns);
    }
    bh_buf_putc(out, '\n');
}

/* Append what /v1/defrag answers in words. */
static void
defrag_put(struct bh_buf *out, bh_json_value answer)
{
    bh_json_value plan = bh_json_get(answer, "plan"), budget = bh_json_get(answer, "budget");

    bh_buf_printf(out, "defrag: %s; %s\n", defrag_text(answer, "mode"), defrag_text(answer, "sentence"));
    if (plan)
        defrag_put_plan(out, plan);
    if (budget)
        defrag_put_budget(out, budget, defrag_number(answer, "now_ns"));
    if (plan)
        bh_buf_printf(out, "(%s; nothing was changed)\n", defrag_text(answer, "assumption"));
}

static bh_rc
defrag_show(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/defrag", &json, err);

    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    if (bh_cli_flag(cli, BH_OPT_QUIET))
        bh_buf_printf(&out, "%s\n", defrag_text(bh_json_get(bh_json_root(json), "plan"), "token"));
    else
        defrag_put(&out, bh_json_root(json));
    return bh_output_write(&out, err);
}

static bh_rc
defrag_apply(struct bh_cli *cli, const char *token, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    BH_AUTO(bh_document_fini) struct bh_document body = { .text.max = BH_JSON_BYTES_MAX };
    struct bh_json_writer w;
    bh_json_value moved;
    bh_rc rc;

    w = bh_json_begin(&body.text);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "token", token);
    bh_json_close(&w, '}');
    rc = bh_cli_change(cli, "POST /v1/defrag", &body, &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    moved = bh_json_get(bh_json_root(json), "moved");
    for (size_t i = 0; !bh_cli_flag(cli, BH_OPT_QUIET) && i < bh_json_count(moved); i++)
        printf("job %" PRIu64 " is being moved\n", bh_json_number(bh_json_at(moved, i), 0));
    return BH_OK;
}

bh_rc
bh_cli_defrag(struct bh_cli *cli, struct bh_err *err)
{
    const char *token = cli->args->options[BH_OPT_APPLY_PLAN].text;

    return token ? defrag_apply(cli, token, err) : defrag_show(cli, err);
}
