#include "cli/jobs/attach.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/time.h"
#include "cli/command/terminal.h"
#include "cli/jobs/interact.h"
#include "cli/jobs/jobs.h"

#define AWAY_MAX_NS (60 * BH_NS_PER_S)
#define RETRY_NS (200 * BH_NS_PER_MS)
#define END_MAX_NS (30 * BH_NS_PER_S)

enum { BODY_MAX = 256 << 10, STATUS_INTERRUPTED = 130 };

/* ---- asking ---- */

bh_rc
bh_stream_ask(const struct bh_cli *cli, const struct bh_stream_target *target, const char **ret_ticket,
              struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_http_request request = { .method = "POST",
                                       .body = target->body,
                                       .body_length = strlen(target->body) };
    char path[160];
    bh_rc rc = bh_cli_job_path(target->job, target->rest, path, sizeof path, err);

    request.path = path;
    if (rc != BH_OK)
        return rc;
    rc = bh_client_json(&cli->client, &request, &json, err);
    if (rc != BH_OK)
        return rc;
    *ret_ticket = bh_arena_strdup(cli->arena, bh_json_text(bh_json_get(bh_json_root(json), "ticket"), ""));
    return *ret_ticket ? BH_OK : bh_err_set(err, BH_FULL, "the answer is too large");
}

static void
attach_put_member(const struct bh_cli *cli, struct bh_json_writer *w)
{
    if (cli->args->options[BH_OPT_MEMBER].given)
        bh_json_u64(w, "member", cli->args->options[BH_OPT_MEMBER].number);
}

static void
attach_put_size(struct bh_json_writer *w, bool columns)
{
    uint16_t size[2];

    if (bh_terminal_size(&size[0], &size[1]))
        bh_json_u64(w, columns ? "columns" : "rows", size[columns]);
}

/* Ask, and open the stream that was granted; the body is freed. */
static bh_rc
attach_open_stream(const struct bh_cli *cli, struct bh_stream_target target, struct bh_buf *body,
                   struct bh_duplex **ret_duplex, struct bh_err *err)
{
    const char *ticket;
    bh_rc rc;

    target.body = bh_buf_text(body);
    rc = target.body ? bh_stream_ask(cli, &target, &ticket, err)
                     : bh_err_set(err, BH_RANGE, "the command is too long");
    bh_buf_fini(body);

    return rc == BH_OK ? bh_duplex_open(&cli->client, ticket, 0, ret_duplex, err) : rc;
}

bh_rc
bh_attach_check(const struct bh_cli *cli, struct bh_err *err)
{
    if (!bh_cli_flag(cli, BH_OPT_STDIN) || !bh_cli_flag(cli, BH_OPT_TTY) || isatty(STDIN_FILENO))
        return BH_OK;
    bh_err_set(err, BH_INVALID, "-it: standard input is not a terminal");
    return bh_err_hint(err, "use -i alone for input that does not come from a terminal");
}

/* ---- exec ---- */

bh_rc
bh_cli_exec(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_duplex_close) struct bh_duplex *duplex = NULL;
    struct bh_interact interact = { .input = bh_cli_flag(cli, BH_OPT_STDIN) };
    const char *const *words = cli->args->arguments;
    struct bh_json_writer w;
    struct bh_buf body;
    bh_rc rc = bh_attach_check(cli, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init(&body, BODY_MAX);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    bh_json_open(&w, "args", '[');
    for (uint32_t i = 1; i < cli->args->count; i++)
        bh_json_str(&w, NULL, words[i]);
    bh_json_close(&w, ']');
    attach_put_size(&w, true);
    bh_json_bool(&w, "input", interact.input);
    attach_put_member(cli, &w);
    attach_put_size(&w, false);
    bh_json_bool(&w, "tty", bh_cli_flag(cli, BH_OPT_TTY));
    bh_json_close(&w, '}');
    rc = attach_open_stream(cli, (struct bh_stream_target){ words[0], "/exec", NULL }, &body, &duplex, err);
    if (rc != BH_OK)
        return rc;
    interact.duplex = duplex;
    rc = bh_interact(&interact, err);
    cli->status = interact.status;
    return rc;
}

/* ---- attach ---- */

static bh_rc
attach_once(struct bh_cli *cli, const char *job, struct bh_interact *interact, struct bh_err *err)
{
    BH_AUTO(bh_duplex_close) struct bh_duplex *duplex = NULL;
    struct bh_json_writer w;
    struct bh_buf body;
    bh_rc rc;

    bh_buf_init(&body, BODY_MAX);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    attach_put_size(&w, true);
    bh_json_bool(&w, "input", interact->input);
    attach_put_member(cli, &w);
    attach_put_size(&w, false);
    bh_json_close(&w, '}');
    rc = attach_open_stream(cli, (struct bh_stream_target){ job, "/attach", NULL }, &body, &duplex, err);
    if (rc != BH_OK)
        return rc;
    interact->duplex = duplex;
    return bh_interact(interact, err);
}

bh_rc
bh_attach(struct bh_cli *cli, const char *job, bool input, enum bh_attach_end *ret_end, struct bh_err *err)
{
    struct bh_interact interact = { .input = input, .detach = true };
    bh_ns since = bh_time_monotonic();
    bool was = false;

    for (;;) {
        bh_rc rc;

        interact.ready = false;
        rc = attach_once(cli, job, &interact, err);
        was = was || interact.ready;
        if (rc == BH_OK || (rc == BH_CONFLICT && !interact.ready)) {
            *ret_end = rc != BH_OK         ? (was ? BH_ATTACH_JOB_ENDED : BH_ATTACH_NEVER)
                       : interact.detached ? BH_ATTACH_LEFT
                                           : BH_ATTACH_JOB_ENDED;
            cli->status = interact.detached ? interact.status : 0;
            return BH_OK;
        }
        if (rc != BH_UNAVAILABLE || bh_time_monotonic() - since > AWAY_MAX_NS)
            return rc;
        if (interact.ready) {
            fprintf(stderr, "\r\nbulkhead: the connection broke; the job keeps running, attaching again\r\n");
            since = bh_time_monotonic();
        }
        bh_time_sleep(RETRY_NS);
    }
}

bh_rc
bh_attach_conclude(struct bh_cli *cli, const char *job, struct bh_err *err)
{
    bh_ns until = bh_time_monotonic() + END_MAX_NS;

    for (;;) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        char path[64];
        const char *state;
        bh_json_value root;
        bh_rc rc = bh_cli_job_path(job, "", path, sizeof path, err);

        if (rc == BH_OK)
            rc = bh_cli_fetch(cli, path, &json, err);
        if (rc != BH_OK)
            return rc;
        root = bh_json_root(json);
        state = bh_json_text(bh_json_get(root, "state"), "");
        if (bh_job_has_ended(state)) {
            cli->status = bh_job_exit_status(state, bh_json_text(bh_json_get(root, "cause"), ""),
                                             bh_json_integer(bh_json_get(root, "exit_status"), -1));
            return BH_OK;
        }
        if (bh_time_monotonic() > until)
            return bh_err_set(err, BH_TIMEOUT, "job %s has no more output, and is %s", job, state);
        bh_time_sleep(RETRY_NS / 4);
    }
}

bh_rc
bh_cli_attach(struct bh_cli *cli, struct bh_err *err)
{
    const char *job = cli->args->arguments[0];
    enum bh_attach_end end;
    bh_rc rc = bh_attach(cli, job, !bh_cli_flag(cli, BH_OPT_NO_STDIN), &end, err);

    if (rc != BH_OK)
        return rc;
    if (end == BH_ATTACH_JOB_ENDED)
        return bh_attach_conclude(cli, job, err);
    if (end == BH_ATTACH_NEVER) {
        bh_err_set(err, BH_CONFLICT, "job %s is not running", job);
        return bh_err_hint(err, "bulkhead logs %s has its output, bulkhead why %s its state", job, job);
    }
    if (!bh_cli_flag(cli, BH_OPT_QUIET))
        fprintf(stderr, "bulkhead: job %s keeps running\n", job);
    return BH_OK;
}
