#include "cli/login/login_browser.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "cli/login/loopback.h"
#include "cli/login/pkce.h"

enum { ADDRESS_MAX = 2048, SHOWN_CHARACTERS = 8 };

/* Fit to be handed to a browser: http or https, and only characters that no shell looks
 * at, because xdg-open is a script. */
static bool
browser_is_address(const char *address)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789-._~:/?#[]@=%&+,";

    return (strncmp(address, "https://", 8) == 0 || strncmp(address, "http://", 7) == 0)
           && address[strspn(address, allowed)] == '\0' && strlen(address) < ADDRESS_MAX;
}

bool
bh_login_find_program(const char *name, char *ret_path, size_t size)
{
    const char *path = getenv("PATH");

    for (size_t length; path && *path; path += length + (path[length] == ':')) {
        length = strcspn(path, ":");
        if (*path == '/' && (size_t)snprintf(ret_path, size, "%.*s/%s", (int)length, path, name) < size
            && access(ret_path, X_OK) == 0)
            return true;
    }
    return false;
}

/* ---- opening a browser ---- */

static bool
browser_has_display(void)
{
    const char *x11 = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

    return (x11 && *x11) || (wayland && *wayland);
}

/* In a session of its own, so that Ctrl-C here does not end the browser; its chatter is not
 * shown.  It is not waited for: that the browser came is known by its coming. */
static void
open_browser(const struct bh_cli *cli, const char *address)
{
    char program[ADDRESS_MAX];
    const char *const argv[] = { program, address, NULL };
    struct bh_process_options options = { .argv = argv,
                                          .envp = (const char *const *)environ,
                                          .new_session = true };
    struct bh_err none;
    pid_t pid;

    if (bh_cli_flag(cli, BH_OPT_NO_BROWSER) || !browser_has_display()
        || !bh_login_find_program("xdg-open", program, sizeof program))
        return;
    (void)!bh_process_start(&options, &pid, NULL, &none); /* the address is printed, too */
}

/* ---- the way there and back ---- */

/* The server's page for this sign-in.  Its address is the one for browsers; the one that the
 * commands use when it names none. */
static bh_rc
browser_put_address(const struct bh_cli *cli, bh_json_value ways, const struct bh_pkce *pkce,
                    struct bh_buf *out, struct bh_err *err)
{
    const char *base = bh_json_text(bh_json_get(ways, "address"), "");
    char host[BH_SESSION_HOST_MAX];
    size_t length;

    if (!*base && cli->client.server)
        base = cli->client.server;
    if (!*base) {
        bh_err_set(err, BH_UNAVAILABLE, "the server has no address for browsers");
        return bh_err_hint(err, "sign in with --account NAME, or with --device; an admin sets "
                                "sign_in.address in the site file");
    }
    for (length = strlen(base); length > 0 && base[length - 1] == '/'; length--)
        ;
    bh_session_host(host);
    bh_buf_put(out, base, length);
    bh_buf_printf(out, "/sign-in/command-line?challenge=%s&state=%s&host=", pkce->challenge, pkce->state);
    bh_http_put_encoded(out, host);
    return BH_OK;
}

static bh_rc
login_browser_invite(const struct bh_cli *cli, bh_json_value ways, const struct bh_pkce *pkce, uint16_t port,
                     struct bh_err *err)
{
    char address[ADDRESS_MAX];
    struct bh_buf out;
    bh_rc rc;

    bh_buf_init_fixed(&out, address, sizeof address);
    rc = browser_put_address(cli, ways, pkce, &out, err);
    bh_buf_printf(&out, "&port=%u", port);
    if (rc != BH_OK)
        return rc;
    if (!bh_buf_text(&out) || !browser_is_address(address))
        return bh_err_set(err, BH_INVALID, "the server's address for browsers is invalid");
    /* Printed even with --quiet: without it the sign-in cannot continue. */
    fprintf(stderr,
            "open in a browser on this machine:\n%s\n"
            "and check that it shows the code %.*s\n",
            address, SHOWN_CHARACTERS, pkce->challenge);
    open_browser(cli, address);
    return BH_OK;
}

static bh_rc
login_browser_exchange(const struct bh_cli *cli, const struct bh_pkce *pkce, const char *code,
                       struct bh_json **ret_json, struct bh_err *err)
{
    struct bh_member members[] = {
        { "code", code },
        { "verifier", pkce->verifier },
        { NULL, NULL },
    };

    return bh_session_send(cli, "POST /v1/sign-in/code", members, ret_json, err);
}

bh_rc
bh_login_browser(const struct bh_cli *cli, bh_json_value ways, struct bh_json **ret_json, struct bh_err *err)
{
    char code[BH_LOOPBACK_CODE_MAX];
    struct bh_loopback loopback;
    struct bh_pkce pkce;
    bh_rc rc = bh_pkce_make(&pkce, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_loopback_open(pkce.state, &loopback, err);
    if (rc != BH_OK)
        return rc;
    rc = login_browser_invite(cli, ways, &pkce, loopback.port, err);
    if (rc == BH_OK)
        rc = bh_loopback_wait(&loopback, code, err);
    bh_loopback_close(&loopback);
    if (rc == BH_OK)
        rc = login_browser_exchange(cli, &pkce, code, ret_json, err);
    explicit_bzero(&pkce, sizeof pkce);
    explicit_bzero(code, sizeof code);
    return rc;
}
