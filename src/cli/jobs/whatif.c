#include "cli/jobs/whatif.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/time.h"
#include "base/yaml.h"
#include "cli/command/pick.h"
#include "cli/jobs/jobspec.h"
#include "cli/output/output.h"
#include "cli/site/site.h"

/* ---- the answer in words ---- */

static uint64_t
whatif_number(bh_json_value object, const char *key)
{
    return bh_json_number(bh_json_get(object, key), 0);
}

static const char *
whatif_text(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

/* "at once", "in 2h05m" */
static void
whatif_put_when(struct bh_buf *out, uint64_t at_ns, uint64_t now_ns)
{
    if (at_ns <= now_ns + BH_NS_PER_S) {
        bh_buf_puts(out, "at once");
        return;
    }
    bh_buf_puts(out, "in ");
    bh_view_span(out, at_ns - now_ns);
}

void
bh_whatif_put_estimate(struct bh_buf *out, bh_json_value job, uint64_t now_ns)
{
    uint64_t start_ns = whatif_number(job, "estimated_start_ns");

    if (!start_ns)
        return;
    bh_buf_puts(out, "estimated start: ");
    whatif_put_when(out, start_ns, now_ns);
    if (*whatif_text(job, "assumption"))
        bh_buf_printf(out, ", %s", whatif_text(job, "assumption"));
    bh_buf_putc(out, '\n');
}

static void
whatif_put_job(struct bh_buf *out, bh_json_value job, uint64_t now_ns)
{
    uint64_t start_ns = whatif_number(job, "estimated_start_ns");

    if (strcmp(whatif_text(job, "decision"), "ends") == 0)
        return;
    if (strcmp(whatif_text(job, "decision"), "starts") == 0) {
        bh_buf_puts(out, "the job would start at once");
        if (*whatif_text(job, "gpu"))
            bh_buf_printf(out, " on %s", whatif_text(job, "gpu"));
        bh_buf_putc(out, '\n');
        return;
    }
    bh_buf_puts(out, "the job would wait");
    if (start_ns) {
        bh_buf_puts(out, " and start ");
        whatif_put_when(out, start_ns, now_ns);
    } else {
        bh_buf_puts(out, "; its start cannot be estimated");
    }
    bh_buf_printf(out, "\nwhy: %s\nnext: %s\nreason: %s\n", whatif_text(job, "sentence"),
                  whatif_text(job, "next"), whatif_text(job, "reason"));
}

/* "job 12 (acme/vision) would start 2h05m later, in 3h" */
static void
whatif_put_change(struct bh_buf *out, bh_json_value change, uint64_t now_ns)
{
    static const struct {
        const char *kind, *words;
        bool moves, when;
    } rows[] = {
        { "cancelled", "would end", false, true },
        { "suspended", "would be suspended", false, true },
        { "requeued", "would be stopped and queued again", false, true },
        { "never", "would no longer start", false, false },
        { "later", "would start", true, true },
        { "earlier", "would start", true, true },
        { "starts", "would start, which it otherwise would not,", false, true },
        { "spared", "would no longer be preempted", false, false },
    };
    const char *kind = whatif_text(change, "kind");
    uint64_t before = whatif_number(change, "before_ns"), after = whatif_number(change, "after_ns");

    bh_buf_printf(out, "job %" PRIu64 " (%s) ", whatif_number(change, "job"), whatif_text(change, "tenant"));
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        if (strcmp(rows[i].kind, kind) != 0)
            continue;
        bh_buf_puts(out, rows[i].words);
        bh_buf_puts(out, rows[i].when ? " " : "");
        if (rows[i].moves) {
            bh_view_span(out, after > before ? after - before : before - after);
            bh_buf_printf(out, " %s, ", kind);
        }
        if (rows[i].when)
            whatif_put_when(out, after, now_ns);
    }
    if (whatif_number(change, "for_job"))
        bh_buf_printf(out, " for job %" PRIu64, whatif_number(change, "for_job"));
    else if (*whatif_text(change, "for"))
        bh_buf_printf(out, " for %s", whatif_text(change, "for"));
    bh_buf_putc(out, '\n');
}

static void
whatif_put_hidden(struct bh_buf *out, bh_json_value hidden)
{
    void *cursor = NULL;
    const char *kind;
    bh_json_value unused;

    while (bh_json_next(hidden, &cursor, &kind, &unused))
        bh_buf_printf(out, "jobs of other tenants: %s\n", kind);
}

/* Append an answer in words. */
static void
whatif_put(struct bh_buf *out, bh_json_value answer)
{
    bh_json_value changes = bh_json_get(answer, "changes");
    bh_json_value hidden = bh_json_get(answer, "changes_of_other_tenants");
    bh_json_value site = bh_json_get(answer, "site");
    uint64_t now_ns = whatif_number(answer, "now_ns");
    void *cursor = NULL;
    const char *kind;
    bh_json_value count;

    if (site) {
        bh_site_put_changes(out, site);
        bh_buf_printf(out, "%" PRIu64 " changes of the site file\n",
                      bh_json_number(bh_json_get(site, "change_count"), 0));
    }
    if (bh_json_get(answer, "job"))
        whatif_put_job(out, bh_json_get(answer, "job"), now_ns);
    for (size_t i = 0; i < bh_json_count(changes); i++)
        whatif_put_change(out, bh_json_at(changes, i), now_ns);
    whatif_put_hidden(out, hidden);
    if (bh_json_count(changes) == 0 && !bh_json_next(hidden, &cursor, &kind, &count))
        bh_buf_puts(out, "nothing changes for other jobs\n");
    if (!bh_json_truth(bh_json_get(answer, "complete")))
        bh_buf_puts(out, "the queue is long: only its first part was simulated\n");
    bh_buf_printf(out, "(%s; nothing was changed)\n", whatif_text(answer, "assumption"));
}

/* ---- questions ---- */

/* Nothing is changed, so a question may be repeated freely. */
static bh_rc
whatif_ask(struct bh_cli *cli, struct bh_buf *body, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_http_request request = { .method = "POST",
                                       .path = "/v1/whatif",
                                       .accept = "application/json",
                                       .body = bh_buf_text(body),
                                       .body_length = body->length };
    bh_rc rc;

    if (!request.body)
        return bh_err_set(err, BH_FULL, "the request is too large");
    rc = bh_client_json(&cli->client, &request, &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    whatif_put(&out, bh_json_root(json));
    return bh_output_write(&out, err);
}

/* The document as JSON, whatever it is written in. */
static bh_rc
whatif_put_document(struct bh_buf *body, const char *key, const struct bh_document *document,
                    struct bh_err *err)
{
    const struct bh_buf *text = &document->text;
    bh_rc rc = BH_OK;

    bh_buf_printf(body, "{\"%s\":", key);
    if (document->yaml)
        rc = bh_yaml_to_json(text->bytes ? text->bytes : "", text->length, body, err);
    else
        bh_buf_put(body, text->bytes, text->length);
    bh_buf_putc(body, '}');
    return rc;
}

bh_rc
bh_cli_whatif_submit(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf body = { .max = 2 * BH_JSON_BYTES_MAX };
    BH_AUTO(bh_document_fini) struct bh_document job = { .yaml = false };
    const char *file;
    bh_rc rc = bh_jobspec_file(cli->args, &file, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_jobspec_build(cli->args, file, cli->arena, &job, err);
    if (rc == BH_OK)
        rc = whatif_put_document(&body, "submit", &job, err);
    if (rc == BH_OK)
        rc = whatif_ask(cli, &body, err);
    return rc == BH_OK ? rc : bh_jobspec_explain(file, err);
}

bh_rc
bh_cli_whatif_apply(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf body = { .max = 2 * BH_JSON_BYTES_MAX };
    const char *file = cli->args->options[BH_OPT_FILE].text;
    BH_AUTO(bh_document_fini) struct bh_document site = { .yaml = false };
    bh_rc rc;

    if (!file) {
        bh_err_set(err, BH_INVALID, "whatif apply: no site file");
        return bh_err_hint(err, "bulkhead whatif apply -f site.yaml; - is standard input");
    }
    rc = bh_cli_read_document(file, &site, err);
    if (rc != BH_OK)
        return rc;
    rc = whatif_put_document(&body, "site", &site, err);
    return rc == BH_OK ? whatif_ask(cli, &body, err) : rc;
}

bh_rc
bh_cli_whatif_cancel(struct bh_cli *cli, struct bh_err *err)
{
    char memory[64];
    struct bh_buf body;
    uint64_t job;
    bh_rc rc = bh_parse_u64(cli->args->arguments[0], &job, err);

    if (rc != BH_OK)
        return bh_err_set(err, BH_INVALID, "\"%.80s\" is not a job id", cli->args->arguments[0]);
    bh_buf_init_fixed(&body, memory, sizeof memory);
    bh_buf_puts(&body, "{\"cancel\":");
    bh_json_put_u64(&body, job);
    bh_buf_putc(&body, '}');
    return whatif_ask(cli, &body, err);
}

bh_rc
bh_cli_whatif_quota(struct bh_cli *cli, struct bh_err *err)
{
    static const struct {
        const char *key;
        enum bh_option_id option;
    } rows[] = { { "guarantee", BH_OPT_GUARANTEE }, { "limit", BH_OPT_GPUS } };
    char memory[1024];
    struct bh_buf body;
    struct bh_json_writer w;

    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    bh_json_open(&w, "quota", '{');
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        if (bh_cli_flag(cli, rows[i].option))
            bh_json_str(&w, rows[i].key, cli->args->options[rows[i].option].text);
    bh_json_str(&w, "tenant", cli->args->arguments[0]);
    bh_json_close(&w, '}');
    bh_json_close(&w, '}');
    return whatif_ask(cli, &body, err);
}

bh_rc
bh_cli_whatif_drain(struct bh_cli *cli, struct bh_err *err)
{
    char memory[1024], target[BH_PICK_NAME_MAX];
    struct bh_buf body;
    struct bh_json_writer w;
    bh_rc rc = bh_pick_target(cli, target, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "drain", target);
    if (bh_cli_flag(cli, BH_OPT_NOW))
        bh_json_bool(&w, "now", true);
    bh_json_close(&w, '}');
    return whatif_ask(cli, &body, err);
}
