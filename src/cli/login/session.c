#include "cli/login/session.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "base/utf8.h"

enum { BODY_MAX = 16 << 10, LINE_MAX_BYTES = 1024 };

/* ---- what they share ---- */

const char *
bh_session_address(const struct bh_cli *cli)
{
    const char *server = cli->client.server, *text;
    char path[PATH_MAX];

    if (server) {
        size_t length = strlen(server);

        while (length > 0 && server[length - 1] == '/')
            length--;
        text = bh_arena_strndup(cli->arena, server, length);
    } else {
        text = bh_arena_printf(cli->arena, "unix:%s",
                               realpath(cli->client.socket, path) ? path : cli->client.socket);
    }
    return text ? text : "";
}

void
bh_session_print(const struct bh_cli *cli, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;

    if (bh_cli_flag(cli, BH_OPT_QUIET))
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    bh_utf8_scrub(line);
    fprintf(stderr, "%s\n", line);
}

void
bh_session_host(char ret_host[BH_SESSION_HOST_MAX])
{
    if (gethostname(ret_host, BH_SESSION_HOST_MAX) != 0 || !*ret_host)
        snprintf(ret_host, BH_SESSION_HOST_MAX, "unnamed");
    ret_host[BH_SESSION_HOST_MAX - 1] = '\0';
    bh_utf8_scrub(ret_host);
}

const char *
bh_session_time(const struct bh_cli *cli, bh_json_value object, const char *key)
{
    char memory[40];
    struct bh_buf text;
    const char *stored;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_time_put_utc(&text, bh_json_number(bh_json_get(object, key), 0));
    stored = bh_buf_text(&text) ? bh_arena_strdup(cli->arena, memory) : NULL;
    return stored ? stored : "?";
}

/* {"key":"text",...} into memory that the caller wipes. */
static bh_rc
session_put_members(struct bh_buf *out, const struct bh_member *members, struct bh_err *err)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '{');
    for (; members && members->key; members++)
        if (members->text)
            bh_json_str(&w, members->key, members->text);
    bh_json_close(&w, '}');
    return bh_buf_text(out) ? BH_OK : bh_err_set(err, BH_INVALID, "the request is too long");
}

bh_rc
bh_session_send(const struct bh_cli *cli, const char *what, const struct bh_member *members,
                struct bh_json **ret_json, struct bh_err *err)
{
    struct bh_http_request request = { .accept = "application/json" };
    char body[BODY_MAX], method[16];
    size_t length = strcspn(what, " ");
    struct bh_buf out;
    bh_rc rc;

    snprintf(method, sizeof method, "%.*s", (int)length, what);
    request.method = method;
    request.path = what + length + 1;
    bh_buf_init_fixed(&out, body, sizeof body);
    rc = session_put_members(&out, members, err);
    request.body = body;
    request.body_length = out.length;
    if (rc == BH_OK)
        rc = bh_client_json(&cli->client, &request, ret_json, err);
    explicit_bzero(body, sizeof body);
    return rc;
}

bh_rc
bh_session_ask(const struct bh_cli *cli, const char *question, char ret_text[BH_PROMPT_MAX],
               struct bh_err *err)
{
    bh_rc rc;

    if (bh_cli_flag(cli, BH_OPT_PASSWORD_STDIN))
        return bh_prompt_read_line(STDIN_FILENO, ret_text, err);
    rc = bh_prompt_ask(question, false, ret_text, err);
    return rc == BH_UNAVAILABLE && bh_command_takes(cli->args->command, BH_OPT_PASSWORD_STDIN)
               ? bh_err_hint(err, "--password-stdin reads it from standard input")
               : rc;
}

bh_rc
bh_session_ask_new(const struct bh_cli *cli, char ret_text[BH_PROMPT_MAX], struct bh_err *err)
{
    char again[BH_PROMPT_MAX];
    bh_rc rc = bh_session_ask(cli, "new password: ", ret_text, err);

    if (rc != BH_OK || bh_cli_flag(cli, BH_OPT_PASSWORD_STDIN))
        return rc;
    rc = bh_session_ask(cli, "the same again: ", again, err);
    if (rc == BH_OK && strcmp(ret_text, again) != 0)
        rc = bh_err_set(err, BH_INVALID, "the two passwords differ; nothing was changed");
    explicit_bzero(again, sizeof again);
    if (rc != BH_OK)
        explicit_bzero(ret_text, BH_PROMPT_MAX);
    return rc;
}

/* ---- the kept session as bearer ---- */

/* The same client, which takes a 401 as it is. */
static struct bh_cli
session_plain(const struct bh_cli *cli)
{
    struct bh_cli copy = *cli;

    copy.client.refused = NULL;
    return copy;
}

const char *
bh_session_device(const struct bh_cli *cli, const char *name)
{
    char path[BH_STORED_SESSION_PATH_MAX];
    struct bh_err unread;

    return bh_stored_session_path(path, &unread) == BH_OK
               ? bh_stored_device(path, bh_session_address(cli), name, cli->arena)
               : NULL;
}

bh_rc
bh_session_prove(const struct bh_cli *cli, const char *code, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_cli inner = session_plain(cli);
    struct bh_member members[] = {
        { "code", code },
        { "device", cli->session ? bh_session_device(cli, cli->session->name) : NULL },
        { NULL, NULL },
    };

    return bh_session_send(&inner, "POST /v1/prove", members, &json, err);
}

static bh_rc
session_ended(const struct bh_cli *cli, const char *name, struct bh_err *err)
{
    bh_err_set(err, BH_UNAUTHENTICATED, "your session as %.100s has ended", name);
    return bh_err_hint(err, cli->client.server
                                ? "bulkhead login signs in again"
                                : "bulkhead login signs in again; until then your Unix user counts");
}

/* Forget the stored session if the server no longer knows it; else `err` stays. */
static bh_rc
session_check_ended(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_cli inner = session_plain(cli);
    char path[BH_STORED_SESSION_PATH_MAX];
    struct bh_err asked;

    if (bh_cli_fetch(&inner, "/v1/whoami", &json, &asked) != BH_UNAUTHENTICATED)
        return err->rc;
    if (bh_stored_session_path(path, &asked) == BH_OK
        && bh_stored_session_drop(path, cli->session->address, cli->session->id, cli->arena, &asked) != BH_OK)
        bh_session_print(cli, "the ended session could not be deleted: %s", asked.msg);
    return session_ended(cli, cli->session->name, err);
}

void
bh_session_recheck(struct bh_cli *cli)
{
    struct bh_err err = { .rc = BH_OK };

    if (!cli->session || session_check_ended(cli, &err) != BH_UNAUTHENTICATED)
        return;
    bh_session_print(cli, "%s: %s", err.msg, err.hint);
}

/* Ask for a code, show it and have the request repeated. */
static bh_rc
session_step_up(struct bh_cli *cli, struct bh_err *err)
{
    char code[BH_PROMPT_MAX];
    bh_rc rc;

    if (!isatty(STDIN_FILENO)) {
        bh_err_hint(err, "show a code with bulkhead login --again, then try again");
        return err->rc;
    }
    bh_session_print(cli, "%s", err->msg);
    rc = bh_prompt_ask("code of the authenticator app: ", false, code, err);
    if (rc == BH_OK)
        rc = bh_session_prove(cli, code, err);
    explicit_bzero(code, sizeof code);
    return rc;
}

/* A 401 that asks for nothing again. */
static bh_rc
session_not_signed_in(struct bh_cli *cli, struct bh_err *err)
{
    if (cli->session)
        return session_check_ended(cli, err);
    if (!cli->client.token && cli->client.server)
        bh_err_hint(err, "sign in with bulkhead login, or pass a token with --token-file or BULKHEAD_TOKEN");
    return err->rc;
}

static bh_rc
session_refused(void *self, const char *challenge, struct bh_err *err)
{
    struct bh_cli *cli = self;

    if (!strstr(challenge, "error=\"insufficient_user_authentication\""))
        return session_not_signed_in(cli, err);
    if (!cli->client.token || strncmp(cli->client.token, "bs_", 3) != 0)
        return err->rc; /* a token shows nothing again; the server says what to do */
    if (strstr(challenge, "acr_values=\"passkey\"")) {
        bh_err_hint(err, "this needs a passkey: run bulkhead login, and use one in the browser");
        return err->rc;
    }
    return session_step_up(cli, err);
}

static bh_rc
session_use_stored(struct bh_cli *cli, const char *path, struct bh_err *err)
{
    const char *address = bh_session_address(cli);
    struct bh_stored_session *stored = bh_arena_alloc(cli->arena, sizeof *stored);
    bh_rc rc;

    if (!stored)
        return bh_err_set(err, BH_FULL, "no memory");
    rc = bh_stored_session_find(path, address, cli->arena, stored, err);
    if (rc == BH_DENIED && err->sys_kind == BH_SYS_ERRNO && err->sys == EACCES)
        return BH_OK; /* a home of another user, as with setpriv: nothing is kept there */
    if (rc != BH_OK)
        return rc == BH_NOT_FOUND ? BH_OK : rc;
    if (stored->expires_ns <= bh_time_now()) {
        rc = bh_stored_session_drop(path, address, stored->id, cli->arena, err);
        return rc == BH_OK ? session_ended(cli, stored->name, err) : rc;
    }
    cli->session = stored;
    cli->client.token = stored->session;
    return BH_OK;
}

bh_rc
bh_session_use(struct bh_cli *cli, struct bh_err *err)
{
    char path[BH_STORED_SESSION_PATH_MAX];

    cli->client.refused = session_refused;
    cli->client.refused_self = cli;
    if (cli->client.token || bh_stored_session_path(path, err) != BH_OK)
        return BH_OK;
    return session_use_stored(cli, path, err);
}
