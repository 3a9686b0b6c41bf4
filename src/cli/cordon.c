#include "cli/cordon.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/time.h"

enum { NAME_MAX_BYTES = 128 };
#define LOOK_AGAIN (200 * BH_NS_PER_MS)

static const char *
text(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

/* ---- which GPU ---- */

/* "gpu0" and "gpu1/0": the number after the node's name, or after the word. */
static bool
parse_number(const char *target, char ret_node[NAME_MAX_BYTES], uint32_t *ret_index)
{
    const char *slash = strrchr(target, '/');
    const char *number = slash ? slash + 1 : strncmp(target, "gpu", 3) == 0 ? target + 3 : "";
    size_t length = slash ? (size_t)(slash - target) : 0;
    struct bh_err ignored;

    if (length >= NAME_MAX_BYTES)
        return false;
    memcpy(ret_node, target, length);
    ret_node[length] = '\0';
    return bh_parse_u32(number, 0, 1000, ret_index, &ignored) == BH_OK;
}

/* The UUID of the GPU that is meant by its number; what is meant otherwise stays as it is, for
 * the daemon to find.  BH_INVALID: several nodes have one. */
static bh_rc
resolve(bh_json_value gpus, const char *target, char ret_name[NAME_MAX_BYTES],
        struct bh_err *err)
{
    bh_json_value items = bh_json_get(gpus, "items");
    char node[NAME_MAX_BYTES];
    uint32_t index, found = 0;

    snprintf(ret_name, NAME_MAX_BYTES, "%s", target);
    if (!parse_number(target, node, &index))
        return BH_OK;
    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value gpu = bh_json_at(items, i);

        if (strcmp(text(gpu, "node"), target) == 0)
            return BH_OK; /* a node of that name */
        if (bh_json_number(bh_json_get(gpu, "index"), UINT64_MAX) != index
            || (*node && strcmp(text(gpu, "node"), node) != 0))
            continue;
        found++;
        snprintf(ret_name, NAME_MAX_BYTES, "%s", text(gpu, "uuid"));
    }
    if (found <= 1)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "several nodes have a %s", target);
    return bh_err_hint(err, "say NODE/%" PRIu32, index);
}

/* ---- saying it ---- */

static void
put_body(const struct bh_cli *cli, const char *target, struct bh_buf *out)
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

static bh_rc
find_target(const struct bh_cli *cli, char ret_name[NAME_MAX_BYTES], struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *gpus = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/gpus", &gpus, err);

    return rc == BH_OK ? resolve(bh_json_root(gpus), cli->args->arguments[0], ret_name, err) : rc;
}

static bh_rc
say(struct bh_cli *cli, const char *what, const char *done, const char *target,
    struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_document body = { .yaml = false };
    bh_rc rc;

    bh_buf_init(&body.text, BH_JSON_BYTES_MAX);
    put_body(cli, target, &body.text);
    rc = bh_cli_change(cli, what, &body, &json, err);
    bh_buf_fini(&body.text);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    if (!bh_cli_flag(cli, BH_OPT_QUIET))
        printf("%s %s\n", target, done);
    return BH_OK;
}

static bh_rc
say_of_argument(struct bh_cli *cli, const char *what, const char *done, struct bh_err *err)
{
    char target[NAME_MAX_BYTES];
    bh_rc rc = find_target(cli, target, err);

    return rc == BH_OK ? say(cli, what, done, target, err) : rc;
}

bh_rc
bh_cli_cordon(struct bh_cli *cli, struct bh_err *err)
{
    return say_of_argument(cli, "POST /v1/cordon", "gets no new work", err);
}

bh_rc
bh_cli_uncordon(struct bh_cli *cli, struct bh_err *err)
{
    return say_of_argument(cli, "POST /v1/uncordon",
                           bh_cli_flag(cli, BH_OPT_CLEAR_FAULT)
                               ? "is tested, and gets new work when it is well"
                               : "may get new work",
                           err);
}

/* ---- waiting ---- */

/* Pieces that are leased, or being carved for somebody, on the GPU or the GPUs of the node. */
static uint32_t
in_use(bh_json_value gpus, const char *target)
{
    bh_json_value items = bh_json_get(gpus, "items");
    uint32_t used = 0;

    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value gpu = bh_json_at(items, i), pieces = bh_json_get(gpu, "pieces");

        if (strncmp(text(gpu, "uuid"), target, strlen(target)) != 0
            && strcmp(text(gpu, "node"), target) != 0)
            continue;
        for (size_t k = 0; k < bh_json_count(pieces); k++) {
            const char *state = text(bh_json_at(pieces, k), "state");

            used += strcmp(state, "leased") == 0 || strcmp(state, "carving") == 0;
        }
    }
    return used;
}

static bh_rc
wait_until_empty(struct bh_cli *cli, const char *target, struct bh_err *err)
{
    bh_ns deadline = bh_time_monotonic() + cli->args->options[BH_OPT_WAIT].number;

    for (;;) {
        BH_AUTO(bh_json_free) struct bh_json *gpus = NULL;
        bh_rc rc = bh_cli_fetch(cli, "/v1/gpus", &gpus, err);
        uint32_t used;

        if (rc != BH_OK)
            return rc;
        used = in_use(bh_json_root(gpus), target);
        if (used == 0)
            break;
        if (bh_time_monotonic() >= deadline)
            return bh_err_set(err, BH_TIMEOUT, "%s: %" PRIu32 " pieces are still in use", target,
                              used);
        bh_time_sleep(LOOK_AGAIN);
    }
    if (!bh_cli_flag(cli, BH_OPT_QUIET) && bh_cli_output(cli) <= BH_OUT_WIDE)
        printf("%s is empty\n", target);
    return BH_OK;
}

bh_rc
bh_cli_drain(struct bh_cli *cli, struct bh_err *err)
{
    char target[NAME_MAX_BYTES];
    bh_rc rc = find_target(cli, target, err);

    if (rc == BH_OK)
        rc = say(cli, "POST /v1/drain",
                 bh_cli_flag(cli, BH_OPT_NOW) ? "is being emptied" : "gets empty as its jobs end",
                 target, err);
    if (rc != BH_OK || !cli->args->options[BH_OPT_WAIT].given)
        return rc;
    return wait_until_empty(cli, target, err);
}
