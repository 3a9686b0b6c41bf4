#include "cli/login/account.h"

#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "base/utf8.h"
#include "cli/login/account_qr.h"
#include "cli/login/session.h"
#include "cli/output/output.h"
#include "cli/output/views.h"

enum { PATH_BYTES_MAX = 1024, TEXT_MAX = 1024 };

static const char *
account_member(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

/* A text of the server's as a line of standard output. */
static void
account_print_line(const char *text)
{
    char line[TEXT_MAX];

    snprintf(line, sizeof line, "%s", text);
    bh_utf8_scrub(line);
    printf("%s\n", line);
}

/* "DELETE /v1/accounts/" + `name`, encoded. */
static bh_rc
account_remove_named(const struct bh_cli *cli, const char *what, const char *name, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char memory[PATH_BYTES_MAX];
    struct bh_buf path;

    bh_buf_init_fixed(&path, memory, sizeof memory);
    bh_buf_puts(&path, what);
    bh_http_put_encoded(&path, name);
    if (!bh_buf_text(&path))
        return bh_err_set(err, BH_INVALID, "the name is too long");
    return bh_cli_change(cli, memory, NULL, &json, err);
}

/* ---- one's own ---- */

bh_rc
bh_cli_account_show(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/account", &json, err);

    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    bh_view_describe(&out, bh_json_root(json), bh_time_now());
    return bh_output_write(&out, err);
}

/* ---- password ---- */

/* The account whose password it is: --account, else the signed-in one. */
static bh_rc
account_name(const struct bh_cli *cli, const char **ret_name, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc;

    *ret_name = cli->args->options[BH_OPT_ACCOUNT].text;
    if (*ret_name)
        return BH_OK;
    if (bh_cli_flag(cli, BH_OPT_ENROL)) {
        bh_err_set(err, BH_INVALID, "account password --enrol: no account");
        return bh_err_hint(err, "--account NAME");
    }
    rc = bh_cli_fetch(cli, "/v1/account", &json, err);
    if (rc != BH_OK)
        return rc;
    *ret_name = bh_arena_strdup(cli->arena, account_member(bh_json_root(json), "name"));
    return BH_OK;
}

bh_rc
bh_cli_account_password(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bool enrol = bh_cli_flag(cli, BH_OPT_ENROL);
    char before[BH_PROMPT_MAX], password[BH_PROMPT_MAX];
    struct bh_member members[] = {
        { "account", NULL },
        { enrol ? "enrol" : "old", before },
        { "password", password },
        { NULL, NULL },
    };
    bh_rc rc = account_name(cli, &members[0].text, err);

    if (rc == BH_OK)
        rc = bh_session_ask(cli, enrol ? "one-time code: " : "present password: ", before, err);
    if (rc == BH_OK)
        rc = bh_session_ask_new(cli, password, err);
    if (rc == BH_OK)
        rc = bh_session_send(cli, "PUT /v1/account/password", members, &json, err);
    explicit_bzero(before, sizeof before);
    explicit_bzero(password, sizeof password);
    if (rc != BH_OK)
        return rc;
    bh_session_print(cli, "the password was set");
    bh_session_recheck(cli);
    return BH_OK;
}

/* ---- recovery codes ---- */

static void
account_print_recovery(const struct bh_cli *cli, bh_json_value codes)
{
    if (bh_json_count(codes) == 0)
        return;
    bh_session_print(
        cli, "Recovery codes: each signs in once in place of the app. They are not shown again; store them "
             "apart from the app. Earlier ones stop working.");
    for (size_t i = 0; i < bh_json_count(codes); i++)
        account_print_line(bh_json_text(bh_json_at(codes, i), ""));
}

bh_rc
bh_cli_account_recovery(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_session_send(cli, "POST /v1/account/recovery", NULL, &json, err);

    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    account_print_recovery(cli, bh_json_get(bh_json_root(json), "recovery"));
    return BH_OK;
}

/* ---- the authenticator app ---- */

static bh_rc
account_confirm_totp(const struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char code[BH_PROMPT_MAX];
    struct bh_member members[] = { { "code", code }, { NULL, NULL } };
    bh_rc rc = bh_session_ask(cli, "the code that the app shows: ", code, err);

    if (rc == BH_OK)
        rc = bh_session_send(cli, "PUT /v1/account/totp", members, &json, err);
    explicit_bzero(code, sizeof code);
    if (rc != BH_OK) {
        bh_err_wrap(err, "the app is not added");
        return bh_err_hint(err, "start again: bulkhead account totp");
    }
    bh_session_print(cli, "the authenticator app was added, and this session has shown it");
    account_print_recovery(cli, bh_json_get(bh_json_root(json), "recovery"));
    return BH_OK;
}

static bh_rc
account_add_totp(const struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_session_send(cli, "POST /v1/account/totp", NULL, &json, err);

    if (rc != BH_OK)
        return rc;
    bh_session_print(cli, "For the authenticator app, not shown again:");
    account_print_line(account_member(bh_json_root(json), "address"));
    printf("secret: ");
    account_print_line(account_member(bh_json_root(json), "secret"));
    if (fflush(stdout) != 0)
        return bh_err_errno(err, "standard output");
    bh_account_show_qr(account_member(bh_json_root(json), "address"));
    return account_confirm_totp(cli, err);
}

bh_rc
bh_cli_account_totp(struct bh_cli *cli, struct bh_err *err)
{
    bh_rc rc;

    if (cli->args->count == 0)
        return account_add_totp(cli, err);
    if (strcmp(cli->args->arguments[0], "remove") != 0) {
        bh_err_set(err, BH_INVALID, "account totp: unknown action \"%.40s\"", cli->args->arguments[0]);
        return bh_err_hint(err, "account totp adds the app, account totp remove removes it");
    }
    rc = account_remove_named(cli, "DELETE /v1/account/totp", "", err);
    if (rc != BH_OK)
        return rc;
    bh_session_print(cli, "the authenticator app was removed");
    return BH_OK;
}

/* ---- passkeys ---- */

static bh_rc
account_list_passkeys(const struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_view_style style = { .wide = bh_cli_output(cli) == BH_OUT_WIDE,
                                   .headers = !bh_cli_flag(cli, BH_OPT_NO_HEADERS),
                                   .now_ns = bh_time_now() };
    bh_json_value passkeys;
    bh_rc rc = bh_cli_fetch(cli, "/v1/account", &json, err);

    passkeys = rc == BH_OK ? bh_json_get(bh_json_root(json), "passkeys") : NULL;
    if (rc != BH_OK || bh_cli_print_document(cli, passkeys, &rc, err))
        return rc;
    bh_view_table(&out, &bh_view_passkeys, &style, passkeys);
    return bh_output_write(&out, err);
}

/* Only a browser reaches a passkey. */
static bh_rc
account_print_where(const struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    const char *address;
    char text[TEXT_MAX];
    bh_rc rc = bh_cli_fetch(cli, "/v1/sign-in", &json, err);

    if (rc != BH_OK)
        return rc;
    address = account_member(bh_json_root(json), "address");
    if (!*address && cli->client.server)
        address = bh_session_address(cli);
    if (!*address)
        return bh_err_set(err, BH_UNAVAILABLE, "the server has no address for browsers");
    bh_session_print(cli, "passkeys are added in a browser:");
    snprintf(text, sizeof text, "%.*s/account",
             (int)(strlen(address) - (address[strlen(address) - 1] == '/')), address);
    account_print_line(text);
    return BH_OK;
}

static bh_rc
account_remove_passkey(const struct bh_cli *cli, const char *id, struct bh_err *err)
{
    bh_rc rc = account_remove_named(cli, "DELETE /v1/account/passkeys/", id, err);

    if (rc != BH_OK)
        return rc;
    bh_session_print(cli, "passkey %s was removed", id);
    return BH_OK;
}

bh_rc
bh_cli_account_passkey(struct bh_cli *cli, struct bh_err *err)
{
    const char *what = cli->args->count > 0 ? cli->args->arguments[0] : "list";
    uint32_t rest = cli->args->count > 0 ? cli->args->count - 1 : 0;

    if (strcmp(what, "list") == 0 && rest == 0)
        return account_list_passkeys(cli, err);
    if (strcmp(what, "add") == 0 && rest == 0)
        return account_print_where(cli, err);
    if (strcmp(what, "remove") == 0 && rest == 1)
        return account_remove_passkey(cli, cli->args->arguments[1], err);
    bh_err_set(err, BH_INVALID, "account passkey: unknown action");
    return bh_err_hint(err, "account passkey list, add, or remove PASSKEY");
}

/* ---- all accounts ---- */

bh_rc
bh_cli_account_enroll(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_member members[] = { { "principal", cli->args->arguments[0] }, { NULL, NULL } };
    bh_rc rc = bh_session_send(cli, "POST /v1/accounts", members, &json, err);

    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    bh_session_print(
        cli,
        "One-time code for %s, valid until %s, not shown again. To set a password with it: bulkhead "
        "account password --enrol --account %s",
        account_member(bh_json_root(json), "name"), bh_session_time(cli, bh_json_root(json), "expires_ns"),
        account_member(bh_json_root(json), "name"));
    account_print_line(account_member(bh_json_root(json), "code"));
    return BH_OK;
}

bh_rc
bh_cli_account_reset(struct bh_cli *cli, struct bh_err *err)
{
    const char *name = cli->args->arguments[0];
    bh_rc rc = account_remove_named(cli, "DELETE /v1/accounts/", name, err);

    if (rc != BH_OK)
        return rc;
    bh_session_print(
        cli,
        "the password and factors of the account %s were removed and its sessions ended; bulkhead account "
        "enrol %s makes a code to set it up again",
        name, name);
    bh_session_recheck(cli);
    return BH_OK;
}
