#include "cli/login/sessions.h"

#include <stdio.h>
#include <string.h>

#include "cli/login/session.h"
#include "cli/output/views.h"

enum { PATH_BYTES_MAX = 512 };

/* ---- logout ---- */

/* End the session at the server.  That it had ended already is no failure. */
static bh_rc
sign_out(const struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    const char *logout;
    bh_rc rc = bh_session_send(cli, "POST /v1/sign-out", NULL, &json, err);

    if (rc == BH_UNAUTHENTICATED)
        return BH_OK;
    if (rc != BH_OK)
        return rc;
    logout = bh_json_text(bh_json_get(bh_json_root(json), "logout"), "");
    if (*logout)
        bh_session_print(cli, "to sign out at the provider, too, open:\n%s", logout);
    return BH_OK;
}

/* Always the kept session, whatever tokens are given. */
bh_rc
bh_cli_logout(struct bh_cli *cli, struct bh_err *err)
{
    char path[BH_STORED_SESSION_PATH_MAX];
    struct bh_stored_session stored;
    bh_rc rc = bh_stored_session_path(path, err);

    if (rc == BH_OK)
        rc = bh_stored_session_find(path, bh_session_address(cli), cli->arena, &stored, err);
    if (rc == BH_NOT_FOUND)
        return bh_err_set(err, BH_NOT_FOUND, "you are not signed in at %s", bh_session_address(cli));
    if (rc != BH_OK)
        return rc;
    cli->client.token = stored.session;
    rc = sign_out(cli, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_stored_session_drop(path, stored.address, stored.id, cli->arena, err);
    if (rc != BH_OK)
        return rc;
    bh_session_print(cli, "signed out of %s as %s", stored.address, stored.name);
    return BH_OK;
}

/* ---- sessions ---- */

static bh_rc
end_one(struct bh_cli *cli, const char *id, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char memory[PATH_BYTES_MAX], path[BH_STORED_SESSION_PATH_MAX];
    struct bh_buf what;
    bh_rc rc;

    bh_buf_init_fixed(&what, memory, sizeof memory);
    bh_buf_puts(&what, "DELETE /v1/sessions/");
    bh_http_put_encoded(&what, id);
    if (!bh_buf_text(&what))
        return bh_err_set(err, BH_INVALID, "the session's id is too long");
    rc = bh_cli_change(cli, bh_buf_text(&what), NULL, &json, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_cli_flag(cli, BH_OPT_QUIET))
        printf("session %s was ended\n", id);
    if (!cli->session || strcmp(cli->session->id, id) != 0)
        return BH_OK;
    rc = bh_stored_session_path(path, err);
    return rc == BH_OK ? bh_stored_session_drop(path, cli->session->address, id, cli->arena, err) : rc;
}

static bh_rc
end_others(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/sessions", &json, err);
    bh_json_value items = json ? bh_json_get(bh_json_root(json), "items") : NULL;

    for (size_t i = 0; rc == BH_OK && i < bh_json_count(items); i++) {
        bh_json_value session = bh_json_at(items, i);
        const char *id = bh_json_text(bh_json_get(session, "id"), "");

        if (!bh_json_truth(bh_json_get(session, "this")))
            rc = end_one(cli, id, err);
        if (rc == BH_NOT_FOUND) /* it ended meanwhile */
            rc = BH_OK;
    }
    return rc;
}

bh_rc
bh_cli_session_end(struct bh_cli *cli, struct bh_err *err)
{
    bool others = bh_cli_flag(cli, BH_OPT_ALL_OTHERS);
    bh_rc rc = BH_OK;

    if (others == (cli->args->count > 0)) {
        bh_err_set(err, BH_INVALID, "session end: name sessions, or --all-others");
        return bh_err_hint(err, "bulkhead session list shows them");
    }
    if (others)
        return end_others(cli, err);
    for (uint32_t i = 0; rc == BH_OK && i < cli->args->count; i++)
        rc = end_one(cli, cli->args->arguments[i], err);
    return rc;
}

/* ---- break-glass ---- */

bh_rc
bh_cli_break_glass(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char reason[PATH_BYTES_MAX];
    struct bh_member members[] = { { "reason", reason }, { NULL, NULL } };
    struct bh_buf words;
    bh_rc rc;

    bh_buf_init_fixed(&words, reason, sizeof reason);
    for (uint32_t i = 0; i < cli->args->count; i++)
        bh_buf_printf(&words, "%s%s", i ? " " : "", cli->args->arguments[i]);
    if (!bh_buf_text(&words))
        return bh_err_set(err, BH_INVALID, "the reason is too long");
    rc = bh_session_send(cli, "POST /v1/break-glass", members, &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    fprintf(
        stderr,
        "BREAK-GLASS until %s.\nThis session is an administrator of the whole site until then. Every user "
        "sees\nwho did this and why; the audit log records each action under this reason.\nEnd it early "
        "with: bulkhead logout\n",
        bh_session_time(cli, bh_json_root(json), "until_ns"));
    return BH_OK;
}
