#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "cli/audit/audit.h"
#include "cli/audit/key.h"
#include "cli/command/cli.h"
#include "cli/doctor/doctor.h"
#include "cli/jobs/attach.h"
#include "cli/jobs/forward.h"
#include "cli/jobs/get.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/run.h"
#include "cli/jobs/whatif.h"
#include "cli/login/account.h"
#include "cli/login/login.h"
#include "cli/login/session.h"
#include "cli/login/sessions.h"
#include "cli/options/help.h"
#include "cli/output/output.h"
#include "cli/output/views.h"
#include "cli/site/cordon.h"
#include "cli/site/defrag.h"
#include "cli/site/forecast.h"
#include "cli/site/isolation.h"
#include "cli/site/layout.h"
#include "cli/site/metrics.h"
#include "cli/site/policy.h"
#include "cli/site/receipts.h"
#include "cli/site/series.h"
#include "cli/site/site.h"
#include "cli/up/up.h"

#define ARENA_MAX (16u << 20)

enum { STATUS_PIPE = 141 }; /* as if SIGPIPE had ended this program */

static bh_rc
cli_print_help(enum bh_command_id command, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };

    if (command < BH_COMMANDS)
        bh_help_command(&out, command);
    else
        bh_help_overview(&out);
    return bh_output_write(&out, err);
}

/* `bulkhead help audit verify` */
static bh_rc
cli_main_help(struct bh_cli *cli, struct bh_err *err)
{
    const char *const *words = cli->args->arguments;
    char name[64];
    enum bh_command_id command;

    if (cli->args->count == 0)
        return cli_print_help(BH_COMMANDS, err);
    snprintf(name, sizeof name, "%s%s%s", words[0], cli->args->count > 1 ? " " : "",
             cli->args->count > 1 ? words[1] : "");
    command = bh_command_find(name);
    if (command < BH_COMMANDS)
        return cli_print_help(command, err);
    bh_err_set(err, BH_INVALID, "no such command: %s", name);
    bh_err_hint(err, "bulkhead help lists the commands");
    bh_cli_report(err);
    cli->status = BH_STATUS_USAGE; /* as of the command itself */
    return BH_OK;
}

static bh_rc
cli_main_completion(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };

    if (!bh_words_have("bash", ' ', cli->args->arguments[0], 4))
        return bh_err_set(err, BH_INVALID, "completion: only bash is supported");
    bh_help_completion(&out);
    return bh_output_write(&out, err);
}

static bh_rc
cli_main_version(struct bh_cli *cli, struct bh_err *err)
{
    printf("bulkhead %s\n", BH_VERSION);
    return BH_OK;
}

static const bh_cli_command_fn commands[BH_COMMANDS] = {
    [BH_CMD_UP] = bh_cli_up,
    [BH_CMD_RUN] = bh_cli_run,
    [BH_CMD_SUBMIT] = bh_cli_submit,
    [BH_CMD_PS] = bh_cli_ps,
    [BH_CMD_DESCRIBE] = bh_cli_describe,
    [BH_CMD_WHY] = bh_cli_why,
    [BH_CMD_WHATIF_SUBMIT] = bh_cli_whatif_submit,
    [BH_CMD_WHATIF_CANCEL] = bh_cli_whatif_cancel,
    [BH_CMD_WHATIF_QUOTA] = bh_cli_whatif_quota,
    [BH_CMD_WHATIF_DRAIN] = bh_cli_whatif_drain,
    [BH_CMD_WHATIF_APPLY] = bh_cli_whatif_apply,
    [BH_CMD_POLICY_TEST] = bh_cli_policy_test,
    [BH_CMD_DEFRAG] = bh_cli_defrag,
    [BH_CMD_LAYOUT_DIFF] = bh_cli_layout_diff,
    [BH_CMD_LAYOUT_APPLY] = bh_cli_layout_apply,
    [BH_CMD_LAYOUT_ROLLBACK] = bh_cli_layout_rollback,
    [BH_CMD_CORDON] = bh_cli_cordon,
    [BH_CMD_UNCORDON] = bh_cli_uncordon,
    [BH_CMD_DRAIN] = bh_cli_drain,
    [BH_CMD_VERIFY] = bh_cli_verify,
    [BH_CMD_LOGS] = bh_cli_logs,
    [BH_CMD_EXEC] = bh_cli_exec,
    [BH_CMD_ATTACH] = bh_cli_attach,
    [BH_CMD_PORT_FORWARD] = bh_cli_port_forward,
    [BH_CMD_CANCEL] = bh_cli_cancel,
    [BH_CMD_RELEASE] = bh_cli_release,
    [BH_CMD_WAIT_FOR] = bh_cli_wait_for,
    [BH_CMD_GET] = bh_cli_get,
    [BH_CMD_APPLY] = bh_cli_apply,
    [BH_CMD_SITE_DIFF] = bh_cli_site_diff,
    [BH_CMD_SITE_SHOW] = bh_cli_site_show,
    [BH_CMD_TENANTS] = bh_cli_tenants,
    [BH_CMD_QUOTA] = bh_cli_quota,
    [BH_CMD_USAGE] = bh_cli_usage,
    [BH_CMD_FORECAST] = bh_cli_forecast,
    [BH_CMD_AUDIT_TAIL] = bh_cli_audit_tail,
    [BH_CMD_AUDIT_SHOW] = bh_cli_audit_show,
    [BH_CMD_AUDIT_LOG] = bh_cli_audit_log,
    [BH_CMD_AUDIT_SIZE] = bh_cli_audit_size,
    [BH_CMD_AUDIT_SEARCH] = bh_cli_audit_search,
    [BH_CMD_AUDIT_VERIFY] = bh_cli_audit_verify,
    [BH_CMD_AUDIT_PROVE] = bh_cli_audit_prove,
    [BH_CMD_AUDIT_CHECK] = bh_cli_audit_check,
    [BH_CMD_AUDIT_CONSISTENCY] = bh_cli_audit_consistency,
    [BH_CMD_AUDIT_EXPORT] = bh_cli_audit_export,
    [BH_CMD_AUDIT_PRUNE] = bh_cli_audit_prune,
    [BH_CMD_METRICS] = bh_cli_metrics,
    [BH_CMD_RECEIPTS] = bh_cli_receipts,
    [BH_CMD_SERIES] = bh_cli_series,
    [BH_CMD_KEY_SHRED] = bh_cli_key_shred,
    [BH_CMD_KEY_ROTATE] = bh_cli_key_rotate,
    [BH_CMD_TOKEN_CREATE] = bh_cli_token_create,
    [BH_CMD_TOKEN_REVOKE] = bh_cli_token_revoke,
    [BH_CMD_LOGIN] = bh_cli_login,
    [BH_CMD_LOGOUT] = bh_cli_logout,
    [BH_CMD_SESSION_END] = bh_cli_session_end,
    [BH_CMD_BREAK_GLASS] = bh_cli_break_glass,
    [BH_CMD_ACCOUNT_SHOW] = bh_cli_account_show,
    [BH_CMD_ACCOUNT_PASSWORD] = bh_cli_account_password,
    [BH_CMD_ACCOUNT_TOTP] = bh_cli_account_totp,
    [BH_CMD_ACCOUNT_RECOVERY] = bh_cli_account_recovery,
    [BH_CMD_ACCOUNT_PASSKEY] = bh_cli_account_passkey,
    [BH_CMD_ACCOUNT_ENROL] = bh_cli_account_enroll,
    [BH_CMD_ACCOUNT_RESET] = bh_cli_account_reset,
    [BH_CMD_WHOAMI] = bh_cli_whoami,
    [BH_CMD_STATUS] = bh_cli_status,
    [BH_CMD_DOCTOR] = bh_cli_doctor,
    [BH_CMD_COMPLETION] = cli_main_completion,
    [BH_CMD_VERSION] = cli_main_version,
    [BH_CMD_HELP] = cli_main_help,
};

/* The others: commands that only list a resource. */
static const struct {
    const char *path;
    const struct bh_view *view;
} lists[BH_COMMANDS] = {
    [BH_CMD_LAYOUT_GET] = { "/v1/layouts", &bh_view_layouts },
    [BH_CMD_SITE_HISTORY] = { "/v1/site/revisions", &bh_view_revisions },
    [BH_CMD_GPUS] = { "/v1/gpus", &bh_view_gpus },
    [BH_CMD_NODES] = { "/v1/nodes", &bh_view_nodes },
    [BH_CMD_KEY_LIST] = { "/v1/keys", &bh_view_keys },
    [BH_CMD_KEYS] = { "/v1/keys", &bh_view_keys },
    [BH_CMD_TOKEN_LIST] = { "/v1/tokens", &bh_view_tokens },
    [BH_CMD_TOKENS] = { "/v1/tokens", &bh_view_tokens },
    [BH_CMD_SESSION_LIST] = { "/v1/sessions", &bh_view_sessions },
    [BH_CMD_ACCOUNT_LIST] = { "/v1/accounts", &bh_view_accounts },
};

/* Commands that ask nothing of a server, or see to their session themselves. */
static bool
cli_needs_no_session(const struct bh_args *args)
{
    static const enum bh_command_id without[] = {
        BH_CMD_UP,         BH_CMD_LOGIN,   BH_CMD_LOGOUT, BH_CMD_AUDIT_CHECK,
        BH_CMD_COMPLETION, BH_CMD_VERSION, BH_CMD_HELP,
    };

    for (size_t i = 0; i < BH_COUNT(without); i++)
        if (args->command == without[i])
            return true;
    return args->command == BH_CMD_ACCOUNT_PASSWORD && args->options[BH_OPT_ENROL].given;
}

static bh_rc
cli_perform(struct bh_cli *cli, struct bh_err *err)
{
    enum bh_command_id command = cli->args->command;
    bh_rc rc = bh_client_init(&cli->client, cli->args, cli->arena, err);

    if (rc == BH_OK && !cli_needs_no_session(cli->args))
        rc = bh_session_use(cli, err);
    if (command == BH_CMD_DOCTOR)
        rc = BH_OK; /* it reports what it cannot reach */
    if (rc != BH_OK)
        return rc;
    rc = lists[command].path ? bh_cli_list(cli, lists[command].path, false, lists[command].view, err)
                             : commands[command](cli, err);
    if (rc == BH_OK && fflush(stdout) != 0)
        rc = bh_err_errno(err, "standard output");
    return rc;
}

int
main(int argc, char **argv)
{
    struct bh_args args;
    struct bh_err err = { .rc = BH_OK };
    struct bh_cli cli = { .args = &args };
    bh_rc rc = bh_args_parse(argc, argv, &args, &err);

    if (rc != BH_OK) {
        bh_cli_report(&err);
        bh_args_fini(&args);
        return BH_STATUS_USAGE;
    }
    /* A server that closes early must not end this program before it has read why. */
    signal(SIGPIPE, SIG_IGN);
    cli.arena = bh_arena_new(ARENA_MAX);
    rc = args.options[BH_OPT_HELP].given ? cli_print_help(args.command, &err) : cli_perform(&cli, &err);
    if (rc != BH_OK && err.sys_kind == BH_SYS_ERRNO && err.sys == EPIPE)
        cli.status = STATUS_PIPE; /* the reader of the output has seen enough */
    else if (rc != BH_OK)
        cli.status = bh_cli_report(&err);
    bh_arena_free(cli.arena);
    bh_args_fini(&args);
    return cli.status;
}
