#include "cli/site/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/time.h"
#include "cli/output/output.h"

#define POLL_NS (200 * BH_NS_PER_MS)
#define FOLLOW_DEFAULT (300 * BH_NS_PER_S)

enum { STATUS_DIFFERS = 1, STATUS_PENDING = 7 };

static const char *
layout_text(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

static uint64_t
layout_number(bh_json_value object, const char *key)
{
    return bh_json_number(bh_json_get(object, key), 0);
}

/* "gpu1/0 GPU-1234 (H100-80GB)" */
static void
layout_put_gpu(struct bh_buf *out, bh_json_value item)
{
    if (*layout_text(item, "node"))
        bh_buf_printf(out, "%s/%" PRIu64 " ", layout_text(item, "node"), layout_number(item, "index"));
    bh_buf_printf(out, "%s (%s)", layout_text(item, "gpu"), layout_text(item, "model"));
}

/* ---- differences ---- */

static void
layout_put_partitions(struct bh_buf *out, bh_json_value item, const char *key, const char *sign)
{
    bh_json_value partitions = bh_json_get(item, key);

    for (size_t i = 0; i < bh_json_count(partitions); i++)
        bh_buf_printf(out, "  %s %s\n", sign, bh_json_text(bh_json_at(partitions, i), ""));
}

static void
layout_put_waits(struct bh_buf *out, bh_json_value item)
{
    bh_json_value waits = bh_json_get(item, "waits");

    for (size_t i = 0; i < bh_json_count(waits); i++) {
        bh_json_value wait = bh_json_at(waits, i);

        bh_buf_printf(out, "  ~ %s is in use by ", layout_text(wait, "partition"));
        if (layout_number(wait, "job"))
            bh_buf_printf(out, "job %" PRIu64, layout_number(wait, "job"));
        else
            bh_buf_puts(out, "another tenant's job");
        bh_buf_puts(out, ", and stays until that ends\n");
    }
}

/* Append a difference as text: "+ 1g.10gb@0" a line, and what it waits for. */
static void
layout_put_diff(struct bh_buf *out, bh_json_value answer)
{
    bh_json_value items = bh_json_get(answer, "items");

    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value item = bh_json_at(items, i);

        layout_put_gpu(out, item);
        if (bh_json_truth(bh_json_get(item, "forget")))
            bh_buf_puts(out, ": no longer declared");
        bh_buf_putc(out, '\n');
        layout_put_partitions(out, item, "keep", "=");
        layout_put_partitions(out, item, "destroy", "-");
        layout_put_partitions(out, item, "create", "+");
        layout_put_waits(out, item);
    }
    bh_buf_printf(out, "%" PRIu64 " changes on %zu GPUs; GPUs that are not named are left alone\n",
                  layout_number(answer, "total"), bh_json_count(items));
}

static bh_rc
layout_fetch_diff(const struct bh_cli *cli, const struct bh_document *document, struct bh_json **ret_json,
                  struct bh_err *err)
{
    struct bh_http_request request = {
        .method = "POST",
        .path = "/v1/layouts/diff",
        .accept = "application/json",
        .body = document->text.bytes ? document->text.bytes : "",
        .body_length = document->text.length,
        .content_type = document->yaml ? "application/yaml" : "application/json",
    };

    return bh_client_json(&cli->client, &request, ret_json, err);
}

static bh_rc
layout_print_diff(const struct bh_cli *cli, bh_json_value answer, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    bh_rc rc = BH_OK;

    if (bh_cli_flag(cli, BH_OPT_QUIET) || bh_cli_print_document(cli, answer, &rc, err))
        return rc;
    layout_put_diff(&out, answer);
    return bh_output_write(&out, err);
}

bh_rc
bh_cli_layout_diff(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    BH_AUTO(bh_document_fini) struct bh_document document = { .yaml = false };
    bh_rc rc = bh_cli_read_document(cli->args->arguments[0], &document, err);

    if (rc != BH_OK)
        return rc;
    rc = layout_fetch_diff(cli, &document, &json, err);
    if (rc != BH_OK)
        return rc;
    if (layout_number(bh_json_root(json), "total") > 0)
        cli->status = STATUS_DIFFERS;
    return layout_print_diff(cli, bh_json_root(json), err);
}

/* ---- following a change ---- */

/* What is seen of a change's GPUs at one look. */
struct layout_progress {
    size_t gpus, declared, ready; /* partitions declared, and those that are ready */
    bool busy, waits;             /* something is being done; something has to end first */
    bh_json_value undone;         /* a GPU where it failed, or that went back with one */
};

static bool
layout_is_ready(bh_json_value item, const char *partition)
{
    bh_json_value all = bh_json_get(item, "partitions");

    for (size_t i = 0; i < bh_json_count(all); i++) {
        bh_json_value at = bh_json_at(all, i);

        if (strcmp(layout_text(at, "partition"), partition) == 0
            && (strcmp(layout_text(at, "state"), "idle") == 0
                || strcmp(layout_text(at, "state"), "leased") == 0))
            return true;
    }
    return false;
}

static bool
layout_is_at_work(bh_json_value item)
{
    bh_json_value all = bh_json_get(item, "partitions");

    for (size_t i = 0; i < bh_json_count(all); i++) {
        const char *state = layout_text(bh_json_at(all, i), "state");

        if (strcmp(state, "carving") == 0 || strcmp(state, "clearing") == 0)
            return true;
    }
    return false;
}

static void
layout_read_gpu_progress(bh_json_value item, struct layout_progress *progress)
{
    bh_json_value declared = bh_json_get(item, "declared");
    const char *state = layout_text(item, "state");
    bool under_way = strcmp(state, "applying") == 0 || strcmp(state, "undoing") == 0;

    progress->gpus++;
    progress->declared += bh_json_count(declared);
    for (size_t i = 0; i < bh_json_count(declared); i++)
        progress->ready += layout_is_ready(item, bh_json_text(bh_json_at(declared, i), ""));
    progress->busy = progress->busy || layout_is_at_work(item);
    progress->waits = progress->waits || under_way;
    if ((strcmp(state, "undone") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "undoing") == 0)
        && (!progress->undone || *layout_text(item, "failure")))
        progress->undone = item;
}

static struct layout_progress
layout_read_progress(bh_json_value answer, uint64_t change)
{
    bh_json_value items = bh_json_get(answer, "items");
    struct layout_progress progress = { .gpus = 0 };

    for (size_t i = 0; i < bh_json_count(items); i++)
        if (layout_number(bh_json_at(items, i), "change") == change)
            layout_read_gpu_progress(bh_json_at(items, i), &progress);
    return progress;
}

/* It failed somewhere: which GPU, why, and what is there now. */
static bh_rc
layout_report_undone(bh_json_value item, struct bh_err *err)
{
    char memory[160];
    struct bh_buf gpu;

    bh_buf_init_fixed(&gpu, memory, sizeof memory);
    layout_put_gpu(&gpu, item);
    bh_err_set(err, BH_CONFLICT, "the layout could not be applied and was undone: %s%s%s",
               bh_buf_text(&gpu) ? memory : layout_text(item, "gpu"),
               *layout_text(item, "trouble") ? ": " : "", layout_text(item, "trouble"));
    if (strcmp(layout_text(item, "state"), "failed") == 0)
        return bh_err_hint(
            err, "the earlier layout could not be restored either; `bulkhead layout get` shows what exists");
    return bh_err_hint(err, "`bulkhead doctor` on the node names the processes that hold its GPUs");
}

static void
layout_print_progress(const struct bh_cli *cli, const struct layout_progress *progress, size_t *printed)
{
    if (bh_cli_flag(cli, BH_OPT_QUIET) || *printed == progress->ready + 1)
        return;
    *printed = progress->ready + 1;
    fprintf(stderr, "%zu of %zu partitions are ready on %zu GPUs\n", progress->ready, progress->declared,
            progress->gpus);
}

static bh_ns
layout_follow_for(const struct bh_cli *cli)
{
    const char *span = cli->args->options[BH_OPT_WAIT].text;
    struct bh_err unused;
    uint64_t ns;

    return span && bh_parse_span(span, &ns, &unused) == BH_OK ? ns : FOLLOW_DEFAULT;
}

/* Until it is ready, was undone, or can only wait for jobs to end. */
static bh_rc
layout_follow(struct bh_cli *cli, uint64_t change, struct bh_err *err)
{
    bh_ns until = bh_time_monotonic() + layout_follow_for(cli);
    size_t printed = 0;

    for (;;) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        bh_rc rc = bh_cli_fetch(cli, "/v1/layouts", &json, err);
        struct layout_progress progress;

        if (rc != BH_OK)
            return rc;
        progress = layout_read_progress(bh_json_root(json), change);
        layout_print_progress(cli, &progress, &printed);
        if (progress.undone && !progress.busy)
            return layout_report_undone(progress.undone, err);
        if (!progress.busy && !progress.waits)
            return BH_OK;
        if (!progress.busy || bh_time_monotonic() > until) {
            fprintf(stderr,
                    "the rest waits for jobs to end, or for reserved capacity, and is then created (bulkhead "
                    "layout get)\n");
            cli->status = STATUS_PENDING;
            return BH_OK;
        }
        bh_time_sleep(POLL_NS);
    }
}

static bh_rc
layout_print_change(struct bh_cli *cli, const struct bh_json *json, struct bh_err *err)
{
    bh_json_value answer = bh_json_root(json);
    bh_rc rc = BH_OK;

    if (bh_cli_print_document(cli, answer, &rc, err) && rc != BH_OK)
        return rc;
    if (!bh_cli_flag(cli, BH_OPT_QUIET) && bh_cli_output(cli) == BH_OUT_TABLE)
        printf("change %" PRIu64 " of %" PRIu64 " GPUs\n", layout_number(answer, "change"),
               layout_number(answer, "gpus"));
    fflush(stdout);
    return layout_follow(cli, layout_number(answer, "change"), err);
}

bh_rc
bh_cli_layout_apply(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *diff = NULL;
    BH_AUTO(bh_json_free) struct bh_json *made = NULL;
    bool dry_run = bh_cli_flag(cli, BH_OPT_DRY_RUN);
    bool table = bh_cli_output(cli) == BH_OUT_TABLE;
    BH_AUTO(bh_document_fini) struct bh_document document = { .yaml = false };
    bh_rc rc = bh_cli_read_document(cli->args->arguments[0], &document, err);

    if (rc == BH_OK && (dry_run || table))
        rc = layout_fetch_diff(cli, &document, &diff, err);
    if (rc == BH_OK && diff)
        rc = layout_print_diff(cli, bh_json_root(diff), err);
    if (rc != BH_OK)
        return rc;
    if (!dry_run) {
        rc = bh_cli_change(cli, "POST /v1/layouts", &document, &made, err);
        return rc == BH_OK ? layout_print_change(cli, made, err) : rc;
    }
    if (table && !bh_cli_flag(cli, BH_OPT_QUIET))
        printf("nothing was changed\n");
    return BH_OK;
}

bh_rc
bh_cli_layout_rollback(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_change(cli, "POST /v1/layouts/rollback", NULL, &json, err);

    return rc == BH_OK ? layout_print_change(cli, json, err) : rc;
}
