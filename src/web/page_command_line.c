#include <string.h>

#include "base/num.h"
#include "web/headers.h"
#include "web/signin_pages.h"
#include "web/page.h"

/* `bulkhead login`: its user says yes or no here, and the browser takes the answer to a listener that the
 * command line keeps open on 127.0.0.1 (RFC 8252, 7.3).  What is taken there is good only with the
 * challenge's verifier, which never leaves the command line. */

enum { CHALLENGE = 43, STATE_MAX = 128, HOST_MAX = 120 };

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static bool
command_line_handler_is_word(const char *text, size_t most)
{
    size_t length = strspn(text, letters);

    return length > 0 && length <= most && text[length] == '\0';
}

/* The command line's parameters in the address, which an attacker may have made; false when they are not
 * well-formed. */
static bool
read_command_line(const struct bh_page *page, struct bh_command_line_view *ret_view, uint16_t *ret_port)
{
    const char *port = bh_page_field(page, "port");
    struct bh_err err;
    uint32_t number;

    *ret_view = (struct bh_command_line_view){ .challenge = bh_page_field(page, "challenge"),
                                               .state = bh_page_field(page, "state"),
                                               .port = port,
                                               .host = bh_page_field(page, "host") };
    if (!command_line_handler_is_word(ret_view->challenge, CHALLENGE)
        || strlen(ret_view->challenge) != CHALLENGE
        || !command_line_handler_is_word(ret_view->state, STATE_MAX) || !ret_view->host[0]
        || strlen(ret_view->host) > HOST_MAX || bh_parse_u32(port, 1, UINT16_MAX, &number, &err) != BH_OK)
        return false;
    *ret_port = (uint16_t)number;
    return true;
}

void
bh_show_command_line(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response account = { 0 };
    struct bh_command_line_view view;
    uint16_t port;

    if (!read_command_line(page, &view, &port)) {
        bh_page_error(page, 400);
        return;
    }
    account = bh_page_call(page, BH_GET, "/v1/account", NULL);
    if (!bh_api_response_is_ok(&account)) {
        bh_page_require_sign_in(page);
        return;
    }
    view.frame = bh_page_frame(page, bh_api_response_text(&account, "name"));
    bh_page_headers_loopback(page->reply, page->request->arena, port);
    bh_command_line_page(&page->reply->body, &view);
}

/* Send an answer to the listener: "code" or "error" with its value. */
static void
redirect_to_command_line(struct bh_page *page, uint16_t port, const char *name, const char *value)
{
    const char *address = bh_arena_printf(page->request->arena, "http://127.0.0.1:%u/?%s=%s&state=%s", port,
                                          name, value, bh_page_field(page, "state"));

    if (address && command_line_handler_is_word(value, STATE_MAX))
        bh_redirect(page->reply, address);
    else
        bh_page_error(page, 500);
}

void
bh_post_command_line(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };
    struct bh_command_line_view view;
    uint16_t port;

    if (!read_command_line(page, &view, &port)) {
        bh_page_error(page, 400);
        return;
    }
    if (strcmp(bh_page_field(page, "answer"), "yes") != 0) {
        redirect_to_command_line(page, port, "error", "access_denied");
        return;
    }
    response = bh_page_call_with(
        page, BH_POST, "/v1/sign-in/grant",
        (struct bh_page_member[]){ { "challenge", view.challenge }, { "host", view.host }, { NULL, NULL } });
    if (bh_api_response_is_ok(&response))
        redirect_to_command_line(page, port, "code", bh_api_response_text(&response, "code"));
    else
        bh_page_error(page, response.status);
}
