#include <string.h>

#include "base/num.h"
#include "web/headers.h"
#include "web/signin_pages.h"
#include "web/visit.h"

/* `bulkhead login`: its user says yes or no here, and the browser takes the answer to a
 * door that the command line keeps open on 127.0.0.1 (RFC 8252, 7.3).  What is taken there
 * is good only for who knows the challenge's verifier, which never leaves the command line.
 */

enum { CHALLENGE = 43, STATE_MAX = 128, HOST_MAX = 120, BODY_MAX = 4096 };

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static bool
is_word(const char *text, size_t most)
{
    size_t length = strspn(text, letters);

    return length > 0 && length <= most && text[length] == '\0';
}

/* What the command line put into the address, which a stranger may have made; false when it
 * is not such. */
static bool
read_door(const struct bh_visit *visit, struct bh_door_view *ret_view, uint16_t *ret_port)
{
    const char *port = bh_visit_field(visit, "port");
    struct bh_err err;
    uint32_t number;

    *ret_view = (struct bh_door_view) { .challenge = bh_visit_field(visit, "challenge"),
                                        .state = bh_visit_field(visit, "state"),
                                        .port = port,
                                        .host = bh_visit_field(visit, "host") };
    if (!is_word(ret_view->challenge, CHALLENGE) ||
        strlen(ret_view->challenge) != CHALLENGE || !is_word(ret_view->state, STATE_MAX) ||
        !ret_view->host[0] || strlen(ret_view->host) > HOST_MAX ||
        bh_parse_u32(port, 1, UINT16_MAX, &number, &err) != BH_OK)
        return false;
    *ret_port = (uint16_t)number;
    return true;
}

void
bh_show_door(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said account = { 0 };
    struct bh_door_view view;
    uint16_t port;

    if (!read_door(visit, &view, &port)) {
        bh_visit_error(visit, 400);
        return;
    }
    account = bh_visit_ask(visit, BH_GET, "/v1/account", NULL);
    if (!bh_said_well(&account)) {
        bh_visit_ask_to_sign_in(visit);
        return;
    }
    view.frame = bh_visit_frame(visit, bh_said_text(&account, "name"));
    bh_page_headers_door(visit->reply, visit->request->arena, port);
    bh_door_page(&visit->reply->body, &view);
}

/* Take an answer to the door: "code" or "error" with its value. */
static void
go_to_door(struct bh_visit *visit, uint16_t port, const char *name, const char *value)
{
    const char *address =
        bh_arena_printf(visit->request->arena, "http://127.0.0.1:%u/?%s=%s&state=%s", port,
                        name, value, bh_visit_field(visit, "state"));

    if (address && is_word(value, STATE_MAX))
        bh_redirect(visit->reply, address);
    else
        bh_visit_error(visit, 500);
}

static struct bh_said
ask_grant(struct bh_visit *visit, const struct bh_door_view *view)
{
    struct bh_said said = { .status = 400 };
    char memory[BODY_MAX];
    struct bh_json_writer w;
    struct bh_buf body;

    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "challenge", view->challenge);
    bh_json_str(&w, "host", view->host);
    bh_json_close(&w, '}');
    if (bh_buf_text(&body))
        said = bh_visit_ask(visit, BH_POST, "/v1/sign-in/grant", memory);
    return said;
}

void
bh_take_door(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };
    struct bh_door_view view;
    uint16_t port;

    if (!read_door(visit, &view, &port)) {
        bh_visit_error(visit, 400);
        return;
    }
    if (strcmp(bh_visit_field(visit, "answer"), "yes") != 0) {
        go_to_door(visit, port, "error", "access_denied");
        return;
    }
    said = ask_grant(visit, &view);
    if (bh_said_well(&said))
        go_to_door(visit, port, "code", bh_said_text(&said, "code"));
    else
        bh_visit_error(visit, said.status);
}
