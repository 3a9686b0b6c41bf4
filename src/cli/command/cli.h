#ifndef BH_CLI_COMMAND_CLI_H
#define BH_CLI_COMMAND_CLI_H

#include "cli/client/client.h"
#include "cli/output/view.h"

struct bh_stored_session;

/* What every command gets, and the steps that many of them share. */
struct bh_cli {
    const struct bh_args *args;
    struct bh_client client;
    const struct bh_stored_session *session; /* whose secret client.token is; NULL: none kept is used */
    struct bh_arena *arena;                  /* lives as long as the command */
    int status;                              /* exit status when the command returns BH_OK */
};

/* A command of tables/commands.tbl: BH_OK ends the program with cli->status, an error with its own status. */
typedef bh_rc (*bh_cli_command_fn)(struct bh_cli *cli, struct bh_err *err);

/* How to print: -o, with the table as the standard. */
enum bh_cli_output { BH_OUT_TABLE, BH_OUT_WIDE, BH_OUT_JSON, BH_OUT_YAML };
enum bh_cli_output bh_cli_output(const struct bh_cli *cli);

/* Whether the flag was given. */
bool bh_cli_flag(const struct bh_cli *cli, enum bh_option_id option);

/* GET `path`; free ret_json. */
BH_MUST_USE bh_rc bh_cli_fetch(const struct bh_cli *cli, const char *path, struct bh_json **ret_json,
                               struct bh_err *err);

/* What is sent with a change. */
struct bh_document {
    struct bh_buf text;
    bool yaml;
};

/* For BH_AUTO(bh_document_fini). */
static inline void
bh_document_fini_auto(struct bh_document *document)
{
    bh_buf_fini(&document->text);
}

/* Send a change ("POST /v1/jobs") with an idempotency key of its own, or the one given,
 * and repeat it once under that key when its outcome is not known. */
BH_MUST_USE bh_rc bh_cli_change(const struct bh_cli *cli, const char *what, struct bh_document *body,
                                struct bh_json **ret_json, struct bh_err *err);

/* "/v1/jobs/12" + `rest` for a job as one writes it; BH_INVALID: no number. */
BH_MUST_USE bh_rc bh_cli_job_path(const char *job, const char *rest, char *ret_path, size_t size,
                                  struct bh_err *err);

/* Print a document as -o json or yaml asks; false when a table was asked for. */
BH_MUST_USE bool bh_cli_print_document(const struct bh_cli *cli, bh_json_value value, bh_rc *ret_rc,
                                       struct bh_err *err);

/* Fetch a list and print it, as one table or one document: all pages with --all, as
 * many rows as --limit says, or one page; a line on standard error says what is left.
 * `path` may have a query already; `paged` says that it takes limit and after. */
BH_MUST_USE bh_rc bh_cli_list(const struct bh_cli *cli, const char *path, bool paged,
                              const struct bh_view *view, struct bh_err *err);

/* A file as it is, - is standard input; what does not begin like JSON is YAML.  Release
 * it on every outcome.  BH_INVALID: it is empty. */
BH_MUST_USE bh_rc bh_cli_read_document(const char *path, struct bh_document *ret_document,
                                       struct bh_err *err);

/* The error and its next step on standard error, as "bulkhead: ..."; its exit status. */
int bh_cli_report(const struct bh_err *err);

/* The folder of this program with `relative` behind it, "../libexec/bulkhead". */
BH_MUST_USE bh_rc bh_cli_program_path(const char *relative, char *ret_path, size_t size, struct bh_err *err);

#endif
