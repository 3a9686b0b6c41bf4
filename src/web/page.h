#ifndef BH_WEB_PAGE_H
#define BH_WEB_PAGE_H

#include "base/json.h"
#include "web/form.h"
#include "web/frame.h"
#include "web/web.h"

/* One request for a page on its way, and what every page's function needs. */

struct bh_live;
struct bh_web {
    struct bh_web_options options;
    struct bh_live *live; /* NULL: pages stay as they are */
};

enum { BH_SESSION_TEXT_MAX = 128, BH_DEVICE_TEXT_MAX = 256, BH_LOGIN_TEXT_MAX = 3500 };

/* What the API said. */
struct bh_api_response {
    uint32_t status;
    struct bh_json *json; /* of the reply; NULL: none */
    bool step_up;         /* it asks for a second factor first (RFC 9470) */
};

struct bh_page {
    const struct bh_web *web;
    const struct bh_request *request;
    struct bh_reply *reply;
    char session[BH_SESSION_TEXT_MAX]; /* the secret that the cookie holds; "": none */
    char csrf[BH_SECRET_TEXT];
    char device[BH_DEVICE_TEXT_MAX]; /* by which accounts know this browser again; "" */
    const struct bh_form *form;      /* what was posted; NULL with GET */
    const char *id;                  /* the path's variable part; "" */
    struct bh_api_response who;      /* bh_page_whoami: of status 0 until it is asked */
};

/* At the end of the visit: forgets the session's secret. */
void bh_page_fini(struct bh_page *page);
static inline void
bh_page_fini_auto(struct bh_page *page)
{
    bh_page_fini(page);
}

typedef void (*bh_page_fn)(struct bh_page *page);

/* Every page's function (tables/pages.tbl): fills the visit's reply. */
#define BH_PAGE(method, path, access, function) void function(struct bh_page *page);
#include "tables/pages.tbl"
#undef BH_PAGE

/* A field of the form or, with GET, a parameter of the query; "" when there is none, or it is of several
 * lines. */
const char *bh_page_field(const struct bh_page *page, const char *name);

/* The same of a field that may be of several lines. */
const char *bh_page_lines(const struct bh_page *page, const char *name);

/* The query again, encoded; in the arena, "" without room. */
const char *bh_page_query(const struct bh_page *page);

/* What all pages of this visit have in common, with the notice that the query names.
 * `account` as in struct bh_page_frame. */
struct bh_page_frame bh_page_frame(const struct bh_page *page, const char *account);

void bh_api_response_fini(struct bh_api_response *response);
static inline void
bh_api_response_fini_auto(struct bh_api_response *response)
{
    bh_api_response_fini(response);
}

/* Ask the API, as the person whose session it is.  `body` is JSON, NULL for none; texts of
 * what it says live until bh_api_response_fini. */
struct bh_api_response bh_page_call(struct bh_page *page, enum bh_method method, const char *path,
                                    const char *body);

/* The same with these texts as the body, up to the one without a name; a NULL text is left out.
 * Status 400 when they are too long. */
struct bh_page_member {
    const char *name, *text;
};
struct bh_api_response bh_page_call_with(struct bh_page *page, enum bh_method method, const char *path,
                                         const struct bh_page_member *members);

/* Ask with GET what a panel asks (web/question.h). */
struct bh_question;
struct bh_api_response bh_page_ask(struct bh_page *page, struct bh_question *question);

/* Have the API change something: a POST to the question's path, with its parameters. */
struct bh_page_change {
    struct bh_question *question;
    const char *body, *idempotency_key; /* NULL: none */
};
struct bh_api_response bh_page_post(struct bh_page *page, const struct bh_page_change *change);

/* A question as tables/panels.tbl writes them, filled in with this visit's variable part and fields; in the
 * arena.  NULL: too long. */
struct bh_question *bh_page_question(const struct bh_page *page, const char *template);

/* Hand on what the API answers to it, as it is; a stream, too. */
void bh_page_forward_question(struct bh_page *page, struct bh_question *question);

/* What the API refused with: its sentence and what to do next; "" where it did not say. */
const char *bh_api_response_error(const struct bh_api_response *response);
const char *bh_api_response_next(const struct bh_api_response *response);

/* What /v1/whoami says of the session: asked once a visit, the page's own. */
const struct bh_api_response *bh_page_whoami(struct bh_page *page);

/* Who is signed in, and which parts of the navigation that person sees; nothing where the API does not say.
 */
void bh_page_who(struct bh_page *page, struct bh_page_frame *frame);

/* Whether no second factor was shown in the session yet: it may only complete its account. */
bool bh_page_lacks_factor(struct bh_page *page);

/* The frame of a page of the site: who is signed in, and the navigation, of which it is in `section`. */
struct bh_page_frame bh_page_site_frame(struct bh_page *page, enum bh_section section, const char *title);

/* Whether a role that the person holds on the whole site allows the verb: which buttons a page has.  The API
 * decides. */
bool bh_page_may(struct bh_page *page, const char *verb);

/* Now, for "3m ago". */
bh_ns bh_page_now(const struct bh_page *page);

/* The page's own path, encoded, in the arena. */
const char *bh_page_address(const struct bh_page *page);

/* Hand on what the API answers, as it is: for passkey.js. */
void bh_page_forward(struct bh_page *page, enum bh_method method, const char *path);

/* Whether it went well. */
bool bh_api_response_is_ok(const struct bh_api_response *response);

/* A text or a number of the reply; "" and 0 when there is none. */
const char *bh_api_response_text(const struct bh_api_response *response, const char *name);
uint64_t bh_api_response_number(const struct bh_api_response *response, const char *name);

/* Send the browser on, with a notice for the page it comes to. */
void bh_page_redirect(struct bh_page *page, const char *path, enum bh_notice notice);

/* The API refused: send the browser to the sign-in when the session is over, to /again when a second factor
 * is asked for, else back to `path` with the notice that fits the status, or `refused` where the API says
 * that something did not match. */
void bh_page_refuse(struct bh_page *page, const struct bh_api_response *response, const char *path,
                    enum bh_notice refused);

/* The notice for a refusal. */
enum bh_notice bh_page_notice(const struct bh_api_response *response, enum bh_notice refused);

/* Begin and end the browser's session: sets the cookies.  `device` is what the API has
 * browsers keep; "": nothing new. */
void bh_page_sign_in(struct bh_page *page, const char *session, const char *device);
void bh_page_sign_out(struct bh_page *page);

/* Send the browser to sign in, and back to this page afterwards. */
void bh_page_require_sign_in(struct bh_page *page);

/* What the browser keeps while it is at a provider: the sign-in's id and where to continue.  `text` NULL:
 * remove it. */
void bh_page_store_login(struct bh_page *page, const char *text);

/* That text in `ret_text`; false when there is none. */
bool bh_page_login(const struct bh_page *page, char *ret_text, size_t size);

/* Answer with the error page for that status, with the navigation of who is signed in: the same bytes for
 * what is not there and for what the caller may not see. */
void bh_page_error(struct bh_page *page, uint32_t status);

#endif
