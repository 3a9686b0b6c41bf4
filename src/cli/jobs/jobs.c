#include "cli/jobs/jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "cli/jobs/follow.h"
#include "cli/jobs/jobspec.h"
#include "cli/jobs/whatif.h"
#include "cli/output/output.h"
#include "cli/output/views.h"

enum { PATH_BYTES_MAX = 4096 };

bool
bh_job_has_ended(const char *state)
{
    static const char *const ends[] = { "completed", "failed", "cancelled" };

    for (size_t i = 0; i < BH_COUNT(ends); i++)
        if (strcmp(state, ends[i]) == 0)
            return true;
    return false;
}

int
bh_job_exit_status(const char *state, const char *cause, int64_t status)
{
    if (strcmp(state, "completed") == 0)
        return 0;
    if (strcmp(cause, "signalled") == 0 && status > 0) /* the signal, or what a shell says */
        return ((int)status & 127) + 128;
    if (strcmp(cause, "exited") == 0 && status > 0)
        return (int)status & 255;
    return BH_STATUS_JOB_FAILED;
}

bh_rc
bh_cli_send_job(struct bh_cli *cli, const char *file, struct bh_json **ret_json, struct bh_err *err)
{
    const char *what = bh_cli_flag(cli, BH_OPT_DRY_RUN) ? "POST /v1/jobs?dry_run=true" : "POST /v1/jobs";
    BH_AUTO(bh_document_fini) struct bh_document body = { .yaml = false };
    bh_rc rc = bh_jobspec_build(cli->args, file, cli->arena, &body, err);

    if (rc == BH_OK)
        rc = bh_cli_change(cli, what, &body, ret_json, err);
    return rc == BH_OK ? rc : bh_jobspec_explain(file, err);
}

/* `submit -- bash < script`: the shell would run without it, and end well. */
static void
jobs_warn_of_input(const struct bh_args *args, const char *file)
{
    struct stat status;

    if (file && strcmp(file, "-") == 0)
        return; /* the job file itself */
    if (args->program && !args->options[BH_OPT_STDIN].given && fstat(STDIN_FILENO, &status) == 0
        && S_ISREG(status.st_mode) && status.st_size > 0)
        fprintf(stderr,
                "bulkhead: a submitted job cannot read this command's input: mount the file, or use bulkhead "
                "run -i\n");
}

bh_rc
bh_cli_submit(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    const char *file;
    bh_rc rc = bh_jobspec_file(cli->args, &file, err);

    if (rc != BH_OK)
        return rc;
    jobs_warn_of_input(cli->args, file);
    rc = bh_cli_send_job(cli, file, &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    if (bh_cli_flag(cli, BH_OPT_DRY_RUN))
        printf("the job would be accepted; nothing was changed\n");
    else
        printf("%" PRIu64 "\n", bh_json_number(bh_json_get(bh_json_root(json), "id"), 0));
    return BH_OK;
}

/* "&name=value" or "?name=value" */
static void
jobs_put_query(struct bh_buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    bh_buf_puts(path, memchr(path->bytes, '?', path->length) ? "&" : "?");
    bh_buf_printf(path, "%s=", name);
    bh_http_put_encoded(path, value);
}

void
bh_jobs_put_filter(const struct bh_cli *cli, struct bh_buf *path)
{
    const char *gpu = cli->args->options[BH_OPT_ON_GPU].text;
    bool ended = bh_cli_flag(cli, BH_OPT_ENDED), newest = ended || gpu;
    bool active = !bh_cli_flag(cli, BH_OPT_ALL_TENANTS) && !bh_cli_flag(cli, BH_OPT_STATE) && !newest
                  && cli->args->command == BH_CMD_PS;

    bool jobs = strcmp(bh_buf_text(path), "/v1/jobs") == 0;
    bool start = bh_cli_flag(cli, BH_OPT_START) || (jobs && bh_cli_output(cli) != BH_OUT_TABLE);

    jobs_put_query(path, "tenant", cli->args->options[BH_OPT_TENANT].text);
    jobs_put_query(path, "state", cli->args->options[BH_OPT_STATE].text);
    jobs_put_query(path, "active", active ? "true" : NULL);
    jobs_put_query(path, "ended", ended ? "true" : NULL);
    jobs_put_query(path, "gpu", gpu);
    jobs_put_query(path, "order", newest ? "newest" : NULL);
    jobs_put_query(path, "mine", bh_cli_flag(cli, BH_OPT_MINE) ? "true" : NULL);
    jobs_put_query(path, "start", start && !bh_cli_flag(cli, BH_OPT_QUIET) ? "true" : NULL);
    jobs_put_query(path, newest ? "before" : "after", cli->args->options[BH_OPT_AFTER].text);
}

bh_rc
bh_cli_ps(struct bh_cli *cli, struct bh_err *err)
{
    char memory[PATH_BYTES_MAX];
    struct bh_buf path;
    const struct bh_view *view = bh_cli_flag(cli, BH_OPT_START) ? &bh_view_starts : &bh_view_jobs;
    bh_rc rc;

    bh_buf_init_fixed(&path, memory, sizeof memory);
    bh_buf_puts(&path, "/v1/jobs");
    bh_jobs_put_filter(cli, &path);
    if (!bh_buf_text(&path))
        return bh_err_set(err, BH_INVALID, "ps: an option is too long");
    rc = bh_cli_list(cli, bh_buf_text(&path), true, view, err);
    if (rc != BH_OK)
        return rc;
    if (bh_cli_flag(cli, BH_OPT_WATCH))
        return bh_follow_changes(cli, err);
    return BH_OK;
}

/* Fetch one document about a job and print it whole. */
static bh_rc
fetch_job(const struct bh_cli *cli, const char *job, const char *rest, struct bh_json **ret_json,
          struct bh_err *err)
{
    char path[128];
    bh_rc rc = bh_cli_job_path(job, rest, path, sizeof path, err);

    return rc == BH_OK ? bh_cli_fetch(cli, path, ret_json, err) : rc;
}

/* "n1 GPU-3f2a 1g.10gb@0, n1 GPU-77aa whole" */
static void
jobs_put_placements(struct bh_buf *out, bh_json_value placements)
{
    static const struct bh_column cells[] = { { "", "node", BH_CELL_TEXT, false },
                                              { "", "gpu", BH_CELL_TEXT, false },
                                              { "", "profile", BH_CELL_TEXT, false } };

    for (size_t i = 0; i < bh_json_count(placements); i++) {
        bh_json_value placement = bh_json_at(placements, i);

        bh_buf_puts(out, i > 0 ? "," : "");
        for (size_t c = 0; c < BH_COUNT(cells); c++) {
            bh_buf_putc(out, ' ');
            bh_view_cell(out, &cells[c], placement, 0);
        }
        if (strcmp(bh_json_text(bh_json_get(placement, "profile"), ""), "whole") != 0)
            bh_buf_printf(out, "@%" PRIu64, bh_json_number(bh_json_get(placement, "start"), 0));
    }
}

/* What the engine keeps for the job while it waits. */
static void
jobs_put_reservation(struct bh_buf *out, bh_json_value why, uint64_t now_ns)
{
    uint64_t from_ns = bh_json_number(bh_json_get(why, "reserved_ns"), 0);

    if (bh_json_count(bh_json_get(why, "claimed_on")) > 0) {
        bh_buf_puts(out, "being cleared for it:");
        jobs_put_placements(out, bh_json_get(why, "claimed_on"));
        bh_buf_putc(out, '\n');
    }
    if (!from_ns)
        return;
    bh_buf_puts(out, "reserved for it from ");
    bh_time_put_utc(out, from_ns);
    if (from_ns > now_ns) {
        bh_buf_puts(out, " (in ");
        bh_view_span(out, from_ns - now_ns);
        bh_buf_putc(out, ')');
    }
    bh_buf_puts(out, " on:");
    jobs_put_placements(out, bh_json_get(why, "reserved_on"));
    bh_buf_putc(out, '\n');
}

bh_rc
bh_cli_why(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = fetch_job(cli, cli->args->arguments[0], "/why", &json, err);
    bh_json_value why = json ? bh_json_root(json) : NULL;

    if (rc != BH_OK || bh_cli_print_document(cli, why, &rc, err))
        return rc;
    bh_buf_printf(&out, "job %s: %s\n", cli->args->arguments[0],
                  bh_json_text(bh_json_get(why, "sentence"), "the reason is unknown"));
    if (*bh_json_text(bh_json_get(why, "next"), ""))
        bh_buf_printf(&out, "next: %s\n", bh_json_text(bh_json_get(why, "next"), ""));
    bh_whatif_put_estimate(&out, why, bh_time_now());
    jobs_put_reservation(&out, why, bh_time_now());
    bh_buf_printf(&out, "reason: %s\n", bh_json_text(bh_json_get(why, "reason"), "none"));
    return bh_output_write(&out, err);
}

/* Send a change for each job; continues after a failure, and reports the first one. */
static bh_rc
change_jobs(struct bh_cli *cli, const char *rest, const char *done, struct bh_err *err)
{
    struct bh_err first = { .rc = BH_OK };

    for (uint32_t i = 0; i < cli->args->count; i++) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        const char *job = cli->args->arguments[i];
        char what[128] = "POST ";
        bh_rc rc = bh_cli_job_path(job, rest, what + 5, sizeof what - 5, err);

        if (rc == BH_OK)
            rc = bh_cli_change(cli, what, NULL, &json, err);
        if (rc == BH_OK && bh_cli_print_document(cli, bh_json_root(json), &rc, err))
            continue;
        if (rc == BH_OK && !bh_cli_flag(cli, BH_OPT_QUIET))
            printf("job %s %s\n", job, done);
        else if (rc != BH_OK && first.rc == BH_OK)
            first = *err;
        else if (rc != BH_OK)
            bh_cli_report(err);
    }
    *err = first;
    return first.rc;
}

bh_rc
bh_cli_cancel(struct bh_cli *cli, struct bh_err *err)
{
    if (bh_cli_flag(cli, BH_OPT_NOW))
        return change_jobs(cli, "/cancel?now=true", "is being killed", err);
    return change_jobs(cli, "/cancel", "is being cancelled", err);
}

bh_rc
bh_cli_release(struct bh_cli *cli, struct bh_err *err)
{
    return change_jobs(cli, "/release", "is released", err);
}

static bool
jobs_write_out(void *self, const char *bytes, size_t length)
{
    struct bh_err *err = self;

    return bh_fd_write_all(STDOUT_FILENO, bytes, length, err) == BH_OK;
}

/* The byte with which the last lines begin. */
static bh_rc
jobs_find_tail(struct bh_cli *cli, uint64_t member, uint64_t lines, uint64_t *ret_offset, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_json_value root, first;
    char path[160], rest[100];
    bh_rc rc;

    snprintf(rest, sizeof rest, "/log?member=%" PRIu64 "&limit=%" PRIu64, member, lines ? lines : 1);
    rc = bh_cli_job_path(cli->args->arguments[0], rest, path, sizeof path, err);
    if (rc == BH_OK)
        rc = bh_client_json(&cli->client, &(struct bh_http_request){ .method = "GET", .path = path }, &json,
                            err);
    if (rc != BH_OK)
        return rc;
    root = bh_json_root(json);
    first = bh_json_at(bh_json_get(root, "items"), 0);
    *ret_offset = bh_json_number(bh_json_get(lines ? first : NULL, "offset"),
                                 bh_json_number(bh_json_get(root, "end"), 0));
    return BH_OK;
}

bh_rc
bh_cli_logs(struct bh_cli *cli, struct bh_err *err)
{
    struct bh_exchange exchange = { .sink = jobs_write_out, .self = err };
    struct bh_http_request request = { .method = "GET", .accept = "text/plain" };
    const struct bh_option_value *tail = &cli->args->options[BH_OPT_TAIL];
    uint64_t offset = cli->args->options[BH_OPT_OFFSET].number;
    uint64_t member = cli->args->options[BH_OPT_MEMBER].number;
    char path[160], rest[100];
    bh_rc rc = BH_OK;

    if (tail->given && cli->args->options[BH_OPT_OFFSET].given)
        return bh_err_set(err, BH_INVALID, "logs: --tail and --offset both say where to begin; give one");
    if (tail->given)
        rc = jobs_find_tail(cli, member, tail->number, &offset, err);
    if (rc != BH_OK)
        return rc;
    if (bh_cli_flag(cli, BH_OPT_FOLLOW)) {
        struct bh_follow follow = {
            .cli = cli, .job = cli->args->arguments[0], .member = member, .offset = offset
        };
        return bh_follow_output(&follow, err);
    }
    snprintf(rest, sizeof rest, "/logs?member=%" PRIu64 "&offset=%" PRIu64, member, offset);
    rc = bh_cli_job_path(cli->args->arguments[0], rest, path, sizeof path, err);
    request.path = path;
    if (rc == BH_OK)
        rc = bh_client_send(&cli->client, &request, &exchange, err);
    return rc == BH_OK && exchange.stopped ? err->rc : rc;
}

/* Has the job come as far as is waited for?  It has started when its program runs: exec, attach
 * and port-forward may follow. */
static bool
jobs_has_arrived(const struct bh_cli *cli, const char *state)
{
    const char *goal = cli->args->options[BH_OPT_FOR].text;
    bool start = goal && strcmp(goal, "start") == 0;

    return bh_job_has_ended(state) || (start && strcmp(state, "running") == 0);
}

/* Ask until the job has come so far or the time is over. */
static bh_rc
jobs_wait_for(struct bh_cli *cli, const char *job, bh_ns deadline, struct bh_err *err)
{
    bh_ns pause = 50 * BH_NS_PER_MS;

    for (;;) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        bh_rc rc = fetch_job(cli, job, "", &json, err);
        const char *state = bh_json_text(bh_json_get(json ? bh_json_root(json) : NULL, "state"), "");

        if (rc != BH_OK && rc != BH_UNAVAILABLE && rc != BH_UNCERTAIN)
            return rc;
        if (rc == BH_OK && jobs_has_arrived(cli, state)) {
            if (bh_job_has_ended(state) && strcmp(state, "completed") != 0)
                cli->status = BH_STATUS_JOB_FAILED;
            if (!bh_cli_flag(cli, BH_OPT_QUIET))
                printf("job %s %s\n", job, state);
            return BH_OK;
        }
        if (bh_time_monotonic() + pause > deadline)
            return bh_err_set(err, BH_TIMEOUT, "job %s is still %s", job, *state ? state : "unknown");
        bh_time_sleep(pause);
        pause = pause < BH_NS_PER_S / 2 ? pause * 2 : BH_NS_PER_S;
    }
}

bh_rc
bh_cli_wait_for(struct bh_cli *cli, struct bh_err *err)
{
    const struct bh_option_value *limit = &cli->args->options[BH_OPT_WAIT];
    bh_ns deadline = limit->given ? bh_time_monotonic() + limit->number : UINT64_MAX;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < cli->args->count; i++)
        rc = jobs_wait_for(cli, cli->args->arguments[i], deadline, err);
    return rc;
}
