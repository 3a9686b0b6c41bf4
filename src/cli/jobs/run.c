#include "cli/jobs/run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "cli/jobs/attach.h"
#include "cli/jobs/follow.h"
#include "cli/jobs/jobs.h"

#define WHY_EVERY_NS BH_NS_PER_S
#define START_POLL_NS (30 * BH_NS_PER_MS)

enum { STATUS_INTERRUPTED = 130, SENTENCE_MAX = 512 };

static volatile sig_atomic_t interrupts;

static void
run_count_interrupt(int signal)
{
    interrupts++;
}

/* A job that its submitter is looking at. */
struct run_job {
    struct bh_cli *cli;
    char id[24];
    bool started, cancelled, out_of_time;
    bh_ns submitted, asked;      /* monotonic; `asked` why it waits */
    char sentence[SENTENCE_MAX]; /* last reason that was shown */
};

static void
run_print(const struct run_job *job, const char *text)
{
    if (!bh_cli_flag(job->cli, BH_OPT_QUIET))
        fprintf(stderr, "bulkhead: job %s %s\n", job->id, text);
}

static void
run_cancel(struct run_job *job, const char *why)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err err;
    char what[64];

    job->cancelled = true;
    run_print(job, why);
    snprintf(what, sizeof what, "POST /v1/jobs/%s/cancel", job->id);
    if (bh_cli_change(job->cli, what, NULL, &json, &err) != BH_OK && err.rc != BH_CONFLICT)
        bh_cli_report(&err);
}

/* Show why it waits, once for each new reason. */
static void
run_show_why(struct run_job *job)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char path[64], text[SENTENCE_MAX + 16];
    struct bh_err err;
    bh_json_value why;
    const char *state, *sentence;

    job->asked = bh_time_monotonic();
    snprintf(path, sizeof path, "/v1/jobs/%s/why", job->id);
    if (bh_cli_fetch(job->cli, path, &json, &err) != BH_OK)
        return;
    why = bh_json_root(json);
    state = bh_json_text(bh_json_get(why, "state"), "");
    sentence = bh_json_text(bh_json_get(why, "sentence"), "");
    if (strcmp(state, "pending") != 0) {
        job->started = true;
        return;
    }
    if (strncmp(sentence, job->sentence, sizeof job->sentence - 1) == 0)
        return;
    snprintf(job->sentence, sizeof job->sentence, "%s", sentence);
    snprintf(text, sizeof text, "waits: %s", job->sentence);
    run_print(job, text);
}

/* Asked several times a second while the output is followed. */
static bool
run_poll_job(void *self)
{
    struct run_job *job = self;
    const struct bh_option_value *limit = &job->cli->args->options[BH_OPT_WAIT];
    bh_ns now = bh_time_monotonic();

    if (interrupts > 1)
        return false;
    if (interrupts == 1 && !job->cancelled)
        run_cancel(job, "is being cancelled; Ctrl-C again leaves it alone");
    if (!job->started && now - job->asked >= WHY_EVERY_NS)
        run_show_why(job);
    if (!job->started && !job->cancelled && limit->given && now - job->submitted > limit->number) {
        run_show_why(job);
        job->out_of_time = !job->started;
        if (job->out_of_time)
            run_cancel(job, "has not started in time and is cancelled");
    }
    return true;
}

/* The job is over: say how, unless its status says it all. */
static bh_rc
run_finish(struct run_job *job, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char path[64], text[160];
    const char *state, *cause;
    bh_rc rc;

    snprintf(path, sizeof path, "/v1/jobs/%s", job->id);
    rc = bh_cli_fetch(job->cli, path, &json, err);
    if (rc != BH_OK)
        return rc;
    state = bh_json_text(bh_json_get(bh_json_root(json), "state"), "");
    cause = bh_json_text(bh_json_get(bh_json_root(json), "cause"), "");
    job->cli->status =
        bh_job_exit_status(state, cause, bh_json_integer(bh_json_get(bh_json_root(json), "exit_status"), -1));
    if (job->out_of_time)
        return bh_err_set(err, BH_TIMEOUT, "job %s did not start within --wait", job->id);
    if (strcmp(state, "completed") != 0 && strcmp(cause, "exited") != 0) {
        bool same = strcmp(state, cause) == 0;

        snprintf(text, sizeof text, "%s%s%s", state, same ? "" : ": ", same ? "" : cause);
        run_print(job, text);
    }
    if (job->cancelled && strcmp(cause, "cancelled") == 0)
        job->cli->status = STATUS_INTERRUPTED;
    return BH_OK;
}

/* Of a gang one member's output is shown: say whose, and where the others' is. */
static void
run_print_member(const struct run_job *job)
{
    const struct bh_option_value *gang = &job->cli->args->options[BH_OPT_GANG];
    char text[160];

    if (!gang->given || gang->number < 2)
        return;
    snprintf(text, sizeof text,
             "has %" PRIu64 " members: this was the first's output; bulkhead logs %s --member 1%s",
             gang->number, job->id, gang->number > 2 ? ", 2, ..." : "");
    run_print(job, text);
}

static void
run_catch_interrupts(void)
{
    /* Without SA_RESTART: a wait for output ends at once. */
    struct sigaction action = { .sa_handler = run_count_interrupt };

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* Wait until it runs, or has ended. */
static bh_rc
run_await_start(struct run_job *job, bool *ret_runs, struct bh_err *err)
{
    for (;;) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        char path[64];
        const char *state;
        bh_rc rc;

        snprintf(path, sizeof path, "/v1/jobs/%s", job->id);
        rc = bh_cli_fetch(job->cli, path, &json, err);
        if (rc != BH_OK)
            return rc;
        state = bh_json_text(bh_json_get(bh_json_root(json), "state"), "");
        *ret_runs = strcmp(state, "running") == 0;
        if (*ret_runs || bh_job_has_ended(state) || !run_poll_job(job))
            return BH_OK;
        bh_time_sleep(START_POLL_NS);
    }
}

/* A job with this program's input, or in a terminal: attached to as soon as it runs.  What a short one wrote
 * before is in its log. */
static bh_rc
run_attached(struct run_job *job, struct bh_follow *follow, struct bh_err *err)
{
    enum bh_attach_end end = BH_ATTACH_NEVER;
    bool runs = false;
    bh_rc rc = run_await_start(job, &runs, err);

    if (rc == BH_OK && runs)
        rc = bh_attach(job->cli, job->id, true, &end, err);
    if (rc != BH_OK || end == BH_ATTACH_JOB_ENDED)
        return rc == BH_OK ? bh_attach_conclude(job->cli, job->id, err) : rc;
    if (end == BH_ATTACH_LEFT) {
        run_print(job, "keeps running; bulkhead attach connects to it again");
        return BH_OK;
    }
    rc = bh_follow_output(follow, err);
    return rc == BH_OK && !follow->left ? run_finish(job, err) : rc;
}

bh_rc
bh_cli_run(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct run_job job = { .cli = cli, .submitted = bh_time_monotonic() };
    struct bh_follow follow = { .cli = cli, .job = job.id, .idle = run_poll_job, .idle_self = &job };
    bh_rc rc = bh_attach_check(cli, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_cli_send_job(cli, NULL, &json, err);
    if (rc != BH_OK)
        return rc;
    snprintf(job.id, sizeof job.id, "%" PRIu64, bh_json_number(bh_json_get(bh_json_root(json), "id"), 0));
    run_print(&job, bh_json_text(bh_json_get(bh_json_root(json), "state"), "submitted"));
    run_catch_interrupts();
    /* A job that starts at once need not be explained. */
    job.asked = bh_time_monotonic() - WHY_EVERY_NS + BH_NS_PER_S / 4;
    if (bh_cli_flag(cli, BH_OPT_STDIN) || bh_cli_flag(cli, BH_OPT_TTY))
        return run_attached(&job, &follow, err);
    rc = bh_follow_output(&follow, err);
    if (rc != BH_OK)
        return rc;
    run_print_member(&job);
    if (!follow.left)
        return run_finish(&job, err);
    run_print(&job, "is left alone; bulkhead logs -f shows its output");
    cli->status = STATUS_INTERRUPTED;
    return BH_OK;
}
