/* bulkhead audit prune: an export that is whole, and then the log without what it holds. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "audit/note.h"
#include "base/fd.h"
#include "cli/audit.h"
#include "cli/get.h"
#include "cli/output.h"

/* The body: the checkpoint that the export was verified by. */
static bh_rc
read_body(const char *folder, struct bh_buf *ret_text, struct bh_err *err)
{
    struct bh_json_writer w = bh_json_begin(ret_text);
    char path[PATH_MAX];
    struct bh_buf note;
    bh_rc rc;

    if ((size_t)snprintf(path, sizeof path, "%s/checkpoint", folder) >= sizeof path)
        return bh_err_set(err, BH_INVALID, "%.60s...: the name is too long", folder);
    bh_buf_init(&note, BH_NOTE_BYTES_MAX + 1);
    rc = bh_file_read(path, BH_NOTE_BYTES_MAX, &note, err);
    if (rc == BH_OK && bh_buf_text(&note)) {
        bh_json_open(&w, NULL, '{');
        bh_json_str(&w, "checkpoint", bh_buf_text(&note));
        bh_json_close(&w, '}');
    }
    bh_buf_fini(&note);
    return rc;
}

static void
say(const struct bh_cli *cli, uint64_t pruned, uint64_t minimum)
{
    if (bh_cli_flag(cli, BH_OPT_DRY_RUN))
        printf("%" PRIu64 " records would be pruned, those below %" PRIu64 "\n", pruned, minimum);
    else if (pruned == 0)
        printf("nothing to prune; the log begins with record %" PRIu64 "\n", minimum);
    else
        printf("%" PRIu64 " records pruned: the log begins with record %" PRIu64
               ", %s holds what came before\n",
               pruned, minimum, cli->args->arguments[0]);
}

/* A few thousand records at a time, so that others are served between. */
static bh_rc
prune(struct bh_cli *cli, struct bh_document *body, struct bh_err *err)
{
    const char *what = bh_cli_flag(cli, BH_OPT_DRY_RUN) ? "POST /v1/log/prune?dry_run=true"
                                                        : "POST /v1/log/prune";
    bool progress = !bh_cli_flag(cli, BH_OPT_QUIET) && isatty(STDERR_FILENO);
    uint64_t pruned = 0;

    for (;;) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        bh_rc rc = bh_cli_change(cli, what, body, &json, err);
        bh_json_value answer = json ? bh_json_root(json) : NULL;

        if (rc != BH_OK)
            return rc;
        pruned += bh_json_number(bh_json_get(answer, "pruned"), 0);
        if (bh_json_truth(bh_json_get(answer, "more"))) {
            if (progress)
                fprintf(stderr, "\rpruned %" PRIu64 " records", pruned);
            continue;
        }
        if (progress && pruned > 0)
            fputs("\r\033[K", stderr);
        if (!bh_cli_print_document(cli, answer, &rc, err))
            say(cli, pruned, bh_json_number(bh_json_get(answer, "minimum"), 0));
        return rc;
    }
}

bh_rc
bh_cli_audit_prune(struct bh_cli *cli, struct bh_err *err)
{
    struct bh_document body = { .yaml = false };
    bh_rc rc = bh_cli_audit_export(cli, err);

    if (rc != BH_OK || cli->status != 0)
        return rc;
    bh_buf_init(&body.text, BH_JSON_BYTES_MAX);
    rc = read_body(cli->args->arguments[0], &body.text, err);
    if (rc == BH_OK)
        rc = prune(cli, &body, err);
    bh_buf_fini(&body.text);
    return rc;
}
