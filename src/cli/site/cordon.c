#include "cli/site/cordon.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "cli/command/pick.h"
#include "cli/output/output.h"

#define POLL_NS (200 * BH_NS_PER_MS)

static const char *
cordon_text(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

/* ---- saying it ---- */

static void
cordon_put_body(const struct bh_cli *cli, const char *target, struct bh_buf *out)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '{');
    if (bh_cli_flag(cli, BH_OPT_CLEAR_FAULT))
        bh_json_bool(&w, "clear_fault", true);
    if (bh_cli_flag(cli, BH_OPT_NOW))
        bh_json_bool(&w, "now", true);
    if (bh_cli_flag(cli, BH_OPT_REASON))
        bh_json_str(&w, "reason", cli->args->options[BH_OPT_REASON].text);
    bh_json_str(&w, "target", target);
    bh_json_close(&w, '}');
}

/* `done` NULL: the caller says what came of it. */
static bh_rc
cordon_print(struct bh_cli *cli, const char *what, const char *done, const char *target, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    BH_AUTO(bh_document_fini) struct bh_document body = { .text.max = BH_JSON_BYTES_MAX };
    bh_rc rc;

    cordon_put_body(cli, target, &body.text);
    rc = bh_cli_change(cli, what, &body, &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    if (done && !bh_cli_flag(cli, BH_OPT_QUIET))
        printf("%s %s\n", target, done);
    return BH_OK;
}

static bh_rc
cordon_print_argument(struct bh_cli *cli, const char *what, const char *done, struct bh_err *err)
{
    char target[BH_PICK_NAME_MAX];
    bh_rc rc = bh_pick_target(cli, target, err);

    return rc == BH_OK ? cordon_print(cli, what, done, target, err) : rc;
}

bh_rc
bh_cli_cordon(struct bh_cli *cli, struct bh_err *err)
{
    return cordon_print_argument(cli, "POST /v1/cordon", "gets no new work", err);
}

/* ---- letting it go again ---- */

static bool
cordon_is_of_target(bh_json_value gpu, const char *target)
{
    return strncmp(cordon_text(gpu, "uuid"), target, strlen(target)) == 0
           || strcmp(cordon_text(gpu, "node"), target) == 0;
}

/* What lets new work on a GPU that is kept from it by more than its own hold. */
static void
cordon_put_remedy(struct bh_buf *out, bh_json_value gpu)
{
    const char *node_cordon = cordon_text(gpu, "node_cordon");

    if (*cordon_text(gpu, "unmanaged_why"))
        bh_buf_printf(out, ": %s; %s", cordon_text(gpu, "unmanaged_why"), cordon_text(gpu, "unmanaged_fix"));
    else if (strcmp(cordon_text(gpu, "health"), "quarantined") == 0)
        bh_buf_printf(out, "; bulkhead uncordon %s --clear-fault ends that", cordon_text(gpu, "uuid"));
    else if (*node_cordon && strcmp(node_cordon, "no") != 0)
        bh_buf_printf(out, "; bulkhead uncordon %s releases its node", cordon_text(gpu, "node"));
    else if (bh_json_truth(bh_json_get(gpu, "cordoned")))
        bh_buf_puts(out, "; the site file cordons it");
}

/* A line for each GPU of the target that gets no new work all the same.  `tested`: a test is under
 * way, which only those do not end that are not managed. */
static void
cordon_put_blocked(struct bh_buf *out, bh_json_value gpus, const char *target, bool tested)
{
    static const struct bh_column state = { "STATE", "", BH_CELL_GPU_STATE, false };
    bh_json_value items = bh_json_get(gpus, "items");

    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value gpu = bh_json_at(items, i);

        if (!cordon_is_of_target(gpu, target)
            || (tested ? !*cordon_text(gpu, "unmanaged_why") : bh_view_gpu_is_open(gpu)))
            continue;
        bh_buf_printf(out, "%s still gets no new work: ", cordon_text(gpu, "uuid"));
        bh_view_cell(out, &state, gpu, 0);
        cordon_put_remedy(out, gpu);
        bh_buf_putc(out, '\n');
    }
}

/* Its own hold is one of several things that keep work off a GPU: say those that stay.  A target
 * that was named by the beginning of a UUID is found by it, too. */
static bh_rc
cordon_print_remaining_holds(const struct bh_cli *cli, const char *target, bool tested, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_JSON_BYTES_MAX };
    BH_AUTO(bh_json_free) struct bh_json *gpus = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/gpus", &gpus, err);

    if (rc != BH_OK)
        return rc;
    cordon_put_blocked(&out, bh_json_root(gpus), target, tested);
    if (out.length == 0)
        bh_buf_printf(&out, "%s %s\n", target,
                      tested ? "is being tested, and gets new work when it is healthy" : "may get new work");
    return bh_output_write(&out, err);
}

bh_rc
bh_cli_uncordon(struct bh_cli *cli, struct bh_err *err)
{
    static const char what[] = "POST /v1/uncordon";
    char target[BH_PICK_NAME_MAX];
    bh_rc rc = bh_pick_target(cli, target, err);

    if (rc != BH_OK)
        return rc;
    rc = cordon_print(cli, what, NULL, target, err);
    if (rc != BH_OK || bh_cli_flag(cli, BH_OPT_QUIET) || bh_cli_output(cli) > BH_OUT_WIDE)
        return rc;
    return cordon_print_remaining_holds(cli, target, bh_cli_flag(cli, BH_OPT_CLEAR_FAULT), err);
}

/* ---- waiting ---- */

/* Pieces that are leased, or being carved for a job, on the GPU or the GPUs of the node. */
static uint32_t
cordon_in_use(bh_json_value gpus, const char *target)
{
    bh_json_value items = bh_json_get(gpus, "items");
    uint32_t used = 0;

    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value gpu = bh_json_at(items, i), partitions = bh_json_get(gpu, "partitions");

        if (!cordon_is_of_target(gpu, target))
            continue;
        for (size_t k = 0; k < bh_json_count(partitions); k++) {
            const char *state = cordon_text(bh_json_at(partitions, k), "state");

            used += strcmp(state, "leased") == 0 || strcmp(state, "carving") == 0;
        }
    }
    return used;
}

static bh_rc
cordon_wait_until_empty(struct bh_cli *cli, const char *target, struct bh_err *err)
{
    bh_ns deadline = bh_time_monotonic() + cli->args->options[BH_OPT_WAIT].number;

    for (;;) {
        BH_AUTO(bh_json_free) struct bh_json *gpus = NULL;
        bh_rc rc = bh_cli_fetch(cli, "/v1/gpus", &gpus, err);
        uint32_t used;

        if (rc != BH_OK)
            return rc;
        used = cordon_in_use(bh_json_root(gpus), target);
        if (used == 0)
            break;
        if (bh_time_monotonic() >= deadline)
            return bh_err_set(err, BH_TIMEOUT, "%s: %" PRIu32 " partitions are still in use", target, used);
        bh_time_sleep(POLL_NS);
    }
    if (!bh_cli_flag(cli, BH_OPT_QUIET) && bh_cli_output(cli) <= BH_OUT_WIDE)
        printf("%s is empty\n", target);
    return BH_OK;
}

bh_rc
bh_cli_drain(struct bh_cli *cli, struct bh_err *err)
{
    char target[BH_PICK_NAME_MAX];
    bh_rc rc = bh_pick_target(cli, target, err);

    if (rc == BH_OK)
        rc = cordon_print(cli, "POST /v1/drain",
                          bh_cli_flag(cli, BH_OPT_NOW) ? "is being emptied"
                                                       : "will be empty when its jobs have ended",
                          target, err);
    if (rc != BH_OK || !cli->args->options[BH_OPT_WAIT].given)
        return rc;
    return cordon_wait_until_empty(cli, target, err);
}
