/* bulkhead audit prune: an export that is whole, and then the log without what it holds. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "audit/note.h"
#include "base/fd.h"
#include "cli/audit/audit.h"
#include "cli/jobs/get.h"
#include "cli/output/output.h"

/* The body: the checkpoint up to which the log is exported. */
static void
prune_put_body(struct bh_buf *checkpoint, struct bh_buf *ret_text)
{
    struct bh_json_writer w = bh_json_begin(ret_text);

    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "checkpoint", bh_buf_text(checkpoint));
    bh_json_close(&w, '}');
}

/* The one that the export was verified by. */
static bh_rc
prune_read_checkpoint(const char *folder, struct bh_buf *checkpoint, struct bh_err *err)
{
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof path, "%s/checkpoint", folder) >= sizeof path)
        return bh_err_set(err, BH_INVALID, "%.60s...: the name is too long", folder);
    return bh_file_read(path, BH_NODE_RECORD_BYTES_MAX, checkpoint, err);
}

static bool
prune_append_bytes(void *self, const char *bytes, size_t length)
{
    bh_buf_put(self, bytes, length);
    return true;
}

/* The one that an export would begin with now. */
static bh_rc
prune_fetch_checkpoint(const struct bh_cli *cli, struct bh_buf *checkpoint, struct bh_err *err)
{
    const struct bh_http_request request = { .method = "GET", .path = "/v1/log/checkpoint" };
    struct bh_exchange exchange = { .sink = prune_append_bytes, .self = checkpoint };
    bh_rc rc = bh_client_send(&cli->client, &request, &exchange, err);

    return rc == BH_OK && !bh_buf_text(checkpoint) ? bh_err_set(err, BH_IO, "the checkpoint is too long")
                                                   : rc;
}

static void
audit_prune_print(const struct bh_cli *cli, uint64_t pruned, uint64_t minimum)
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

/* Ask before anything is written what would be removed, or what forbids it. */
static bh_rc
audit_prune_request(struct bh_cli *cli, struct bh_json **ret_json, struct bh_err *err)
{
    BH_AUTO(bh_document_fini) struct bh_document body = { .text.max = BH_JSON_BYTES_MAX };
    char memory[BH_NODE_RECORD_BYTES_MAX + 1];
    struct bh_buf checkpoint;
    bh_rc rc;

    bh_buf_init_fixed(&checkpoint, memory, sizeof memory);
    rc = prune_fetch_checkpoint(cli, &checkpoint, err);
    if (rc != BH_OK)
        return rc;
    prune_put_body(&checkpoint, &body.text);
    return bh_cli_change(cli, "POST /v1/log/prune?dry_run=true", &body, ret_json, err);
}

static void
prune_print_answer(const struct bh_cli *cli, uint64_t pruned, bh_json_value answer, bh_rc *rc,
                   struct bh_err *err)
{
    if (!bh_cli_print_document(cli, answer, rc, err))
        audit_prune_print(cli, pruned, bh_json_number(bh_json_get(answer, "minimum"), 0));
}

/* A few thousand records at a time, so that others are served between. */
static bh_rc
audit_prune_run(struct bh_cli *cli, struct bh_document *body, struct bh_err *err)
{
    bool progress = !bh_cli_flag(cli, BH_OPT_QUIET) && isatty(STDERR_FILENO);
    uint64_t pruned = 0;

    for (;;) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        bh_rc rc = bh_cli_change(cli, "POST /v1/log/prune", body, &json, err);
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
        prune_print_answer(cli, pruned, answer, &rc, err);
        return rc;
    }
}

/* By the checkpoint of the export that lies in the folder. */
static bh_rc
prune_exported(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_document_fini) struct bh_document body = { .text.max = BH_JSON_BYTES_MAX };
    char memory[BH_NODE_RECORD_BYTES_MAX + 1];
    struct bh_buf checkpoint;
    bh_rc rc;

    bh_buf_init_fixed(&checkpoint, memory, sizeof memory);
    rc = prune_read_checkpoint(cli->args->arguments[0], &checkpoint, err);
    if (rc != BH_OK)
        return rc;
    prune_put_body(&checkpoint, &body.text);
    return audit_prune_run(cli, &body, err);
}

bh_rc
bh_cli_audit_prune(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = audit_prune_request(cli, &json, err);

    if (rc != BH_OK)
        return rc;
    if (bh_cli_flag(cli, BH_OPT_DRY_RUN)) {
        bh_json_value answer = bh_json_root(json);

        prune_print_answer(cli, bh_json_number(bh_json_get(answer, "pruned"), 0), answer, &rc, err);
        return rc;
    }
    rc = bh_cli_audit_export(cli, err);
    return rc == BH_OK && cli->status == 0 ? prune_exported(cli, err) : rc;
}
