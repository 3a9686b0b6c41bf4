#include "cli/login/login.h"

#include <string.h>

#include "base/time.h"
#include "cli/login/login_browser.h"
#include "cli/login/login_device.h"

/* ---- what all ways end with ---- */

static const char *
login_member(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

/* The previous session is no longer used.  It may have ended already. */
static void
login_end_former(const struct bh_cli *cli, const char *path)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_cli inner = *cli;
    struct bh_stored_session former;
    struct bh_err unread;

    if (bh_stored_session_find(path, bh_session_address(cli), cli->arena, &former, &unread) != BH_OK)
        return;
    inner.client.token = former.session;
    if (bh_session_send(&inner, "POST /v1/sign-out", NULL, &json, &unread) == BH_OK)
        bh_session_print(cli, "the earlier session, %s, was ended", former.id);
}

/* Signing in did not need it, so that it cannot be kept is no failure of it. */
static void
login_store_device(const struct bh_cli *cli, const char *path, bh_json_value session)
{
    struct bh_stored_device device = { bh_session_address(cli), login_member(session, "device"),
                                       login_member(session, "name") };
    struct bh_err err;

    if (*device.device && bh_stored_device_put(path, &device, cli->arena, &err) != BH_OK)
        bh_session_print(cli, "this device could not be remembered: %s", err.msg);
}

static bh_rc
login_store(const struct bh_cli *cli, const char *path, bh_json_value session, struct bh_err *err)
{
    struct bh_stored_session stored = {
        .address = bh_session_address(cli),
        .id = login_member(session, "id"),
        .name = login_member(session, "name"),
        .session = login_member(session, "session"),
        .expires_ns = bh_json_number(bh_json_get(session, "expires_ns"), 0),
    };
    bh_rc rc;

    if (!*stored.session || !*stored.id)
        return bh_err_set(err, BH_IO, "the server's answer has no session");
    login_end_former(cli, path);
    rc = bh_stored_session_put(path, &stored, bh_time_now(), cli->arena, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "the session could not be stored");
    login_store_device(cli, path, session);
    bh_session_print(cli, "signed in at %s as %s until %s; bulkhead logout ends it", stored.address,
                     stored.name, bh_session_time(cli, session, "expires_ns"));
    return BH_OK;
}

/* ---- an account ---- */

static bh_rc
login_sign_in_account(const struct bh_cli *cli, struct bh_json **ret_json, struct bh_err *err)
{
    char password[BH_PROMPT_MAX], code[BH_PROMPT_MAX] = "", host[BH_SESSION_HOST_MAX];
    const char *account = cli->args->options[BH_OPT_ACCOUNT].text;
    struct bh_member members[] = {
        { "account", account }, { "code", NULL },         { "device", bh_session_device(cli, account) },
        { "host", host },       { "password", password }, { NULL, NULL },
    };
    bh_rc rc = bh_session_ask(cli, "password: ", password, err);

    bh_session_host(host);
    if (rc == BH_OK)
        rc = bh_session_ask(cli, "code of the authenticator app, or a recovery code (empty: none): ", code,
                            err);
    if (*code)
        members[1].text = code;
    if (rc == BH_OK)
        rc = bh_session_send(cli, "POST /v1/sign-in", members, ret_json, err);
    explicit_bzero(password, sizeof password);
    explicit_bzero(code, sizeof code);
    if (rc != BH_OK)
        return rc;
    if (strcmp(login_member(bh_json_root(*ret_json), "level"), "none") == 0)
        bh_session_print(cli, "you are signed in without a second factor; bulkhead account totp adds one");
    return BH_OK;
}

/* ---- the first admin ---- */

static bh_rc
login_ask_account(const struct bh_cli *cli, char ret_name[BH_PROMPT_MAX], struct bh_err *err)
{
    const char *given = cli->args->options[BH_OPT_ACCOUNT].text;

    if (!given && !bh_cli_flag(cli, BH_OPT_PASSWORD_STDIN))
        return bh_prompt_ask("name of the new account: ", true, ret_name, err);
    if (!given || strlen(given) >= BH_PROMPT_MAX) {
        bh_err_set(err, BH_INVALID, "login --first: no name for the new account");
        return bh_err_hint(err, "--account NAME");
    }
    memcpy(ret_name, given, strlen(given) + 1);
    return BH_OK;
}

static bh_rc
login_sign_in_first(const struct bh_cli *cli, struct bh_json **ret_json, struct bh_err *err)
{
    char code[BH_PROMPT_MAX], name[BH_PROMPT_MAX], password[BH_PROMPT_MAX];
    struct bh_member members[] = {
        { "account", name },
        { "code", code },
        { "password", password },
        { NULL, NULL },
    };
    bh_rc rc = login_ask_account(cli, name, err);

    if (rc == BH_OK)
        rc = bh_session_ask(cli, "code from the file first-admin.code: ", code, err);
    if (rc == BH_OK)
        rc = bh_session_ask_new(cli, password, err);
    if (rc == BH_OK)
        rc = bh_session_send(cli, "POST /v1/sign-in/first", members, ret_json, err);
    explicit_bzero(code, sizeof code);
    explicit_bzero(password, sizeof password);
    if (rc != BH_OK)
        return rc;
    bh_session_print(cli, "next, add a second factor: bulkhead account totp");
    return BH_OK;
}

/* ---- again ---- */

static bh_rc
login_show_step_up(struct bh_cli *cli, struct bh_err *err)
{
    char code[BH_PROMPT_MAX];
    bh_rc rc = bh_session_use(cli, err);

    if (rc != BH_OK)
        return rc;
    if (!cli->client.token) {
        bh_err_set(err, BH_NOT_FOUND, "you are not signed in at %s", bh_session_address(cli));
        return bh_err_hint(err, "bulkhead login signs in");
    }
    rc = bh_session_ask(cli, "code of the authenticator app: ", code, err);
    if (rc == BH_OK)
        rc = bh_session_prove(cli, code, err);
    explicit_bzero(code, sizeof code);
    if (rc != BH_OK)
        return rc;
    bh_session_print(cli, "the code was accepted");
    return BH_OK;
}

/* ---- which way ---- */

/* Ways that ask the server first what it offers. */
static bh_rc
login_sign_in_by_methods(const struct bh_cli *cli, struct bh_json **ret_json, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/sign-in", &json, err);

    if (rc != BH_OK)
        return rc;
    return bh_cli_flag(cli, BH_OPT_DEVICE) ? bh_login_device(cli, bh_json_root(json), ret_json, err)
                                           : bh_login_browser(cli, bh_json_root(json), ret_json, err);
}

static bh_rc
login_sign_in(const struct bh_cli *cli, struct bh_json **ret_json, struct bh_err *err)
{
    if (bh_cli_flag(cli, BH_OPT_FIRST))
        return login_sign_in_first(cli, ret_json, err);
    if (bh_cli_flag(cli, BH_OPT_ACCOUNT))
        return login_sign_in_account(cli, ret_json, err);
    return login_sign_in_by_methods(cli, ret_json, err);
}

/* Options that each choose a way; --first takes --account as the new one's name. */
static bh_rc
login_check_ways(const struct bh_cli *cli, struct bh_err *err)
{
    uint32_t chosen = 0;

    chosen += bh_cli_flag(cli, BH_OPT_DEVICE);
    chosen += bh_cli_flag(cli, BH_OPT_FIRST) || bh_cli_flag(cli, BH_OPT_ACCOUNT);
    chosen += bh_cli_flag(cli, BH_OPT_AGAIN);
    if (chosen > 1)
        return bh_err_set(err, BH_INVALID, "login: --device, --account and --again exclude each other");
    if (bh_cli_flag(cli, BH_OPT_ISSUER) && !bh_cli_flag(cli, BH_OPT_DEVICE)) {
        bh_err_set(err, BH_INVALID, "login: --issuer goes with --device");
        return bh_err_hint(err, "without --device the browser's page asks for it");
    }
    return BH_OK;
}

bh_rc
bh_cli_login(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char path[BH_STORED_SESSION_PATH_MAX];
    struct bh_stored_session former;
    bh_rc rc = login_check_ways(cli, err);

    if (rc != BH_OK)
        return rc;
    if (bh_cli_flag(cli, BH_OPT_AGAIN))
        return login_show_step_up(cli, err);
    rc = bh_stored_session_path(path, err);
    if (rc != BH_OK)
        return rc;
    /* A session that cannot be kept is not begun. */
    rc = bh_stored_session_find(path, bh_session_address(cli), cli->arena, &former, err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    cli->client.token = NULL;
    rc = login_sign_in(cli, &json, err);
    return rc == BH_OK ? login_store(cli, path, bh_json_root(json), err) : rc;
}
