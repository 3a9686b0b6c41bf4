#ifndef BH_WEB_VISIT_H
#define BH_WEB_VISIT_H

#include "base/json.h"
#include "web/form.h"
#include "web/frame.h"
#include "web/web.h"

/* One request for a page on its way, and what every page's function needs. */

struct bh_web {
    struct bh_web_options options;
};

enum { BH_SESSION_TEXT_MAX = 128, BH_DEVICE_TEXT_MAX = 256, BH_LOGIN_TEXT_MAX = 3500 };

struct bh_visit {
    const struct bh_web *web;
    const struct bh_request *request;
    struct bh_reply *reply;
    char session[BH_SESSION_TEXT_MAX]; /* the secret that the cookie holds; "": none */
    char csrf[BH_SECRET_TEXT];
    char device[BH_DEVICE_TEXT_MAX]; /* by which accounts know this browser again; "" */
    const struct bh_form *form;      /* what was posted; NULL with GET */
};

typedef void (*bh_page)(struct bh_visit *visit);

/* Every page's function (tables/pages.tbl): fills the visit's reply. */
#define BH_PAGE(method, path, access, function) void function(struct bh_visit *visit);
#include "tables/pages.tbl"
#undef BH_PAGE

/* A field of the form or, with GET, a parameter of the query; "" when there is none. */
const char *bh_visit_field(const struct bh_visit *visit, const char *name);

/* The query again, encoded; in the arena, "" without room. */
const char *bh_visit_query(const struct bh_visit *visit);

/* What all pages of this visit have in common, with the notice that the query names.
 * `account` as in struct bh_frame. */
struct bh_frame bh_visit_frame(const struct bh_visit *visit, const char *account);

/* What the API said. */
struct bh_said {
    uint32_t status;
    struct bh_json *json; /* of the reply; NULL: none */
    bool again;           /* it asks for a second factor first (RFC 9470) */
};
void bh_said_fini(struct bh_said *said);
static inline void
bh_said_fini_auto(struct bh_said *said)
{
    bh_said_fini(said);
}

/* Ask the API, as the person whose session it is.  `body` is JSON, NULL for none; texts of
 * what it says live until bh_said_fini. */
struct bh_said bh_visit_ask(struct bh_visit *visit, enum bh_method method, const char *path,
                            const char *body);

/* The same with one text in the body, under that name. */
struct bh_said bh_visit_ask_with(struct bh_visit *visit, enum bh_method method,
                                 const char *path, const char *name, const char *text);

/* Hand on what the API answers, as it is: for passkey.js. */
void bh_visit_pass(struct bh_visit *visit, enum bh_method method, const char *path);

/* Whether it went well. */
bool bh_said_well(const struct bh_said *said);

/* A text or a number of the reply; "" and 0 when there is none. */
const char *bh_said_text(const struct bh_said *said, const char *name);
uint64_t bh_said_number(const struct bh_said *said, const char *name);

/* Send the browser on, with a notice for the page it comes to. */
void bh_visit_go(struct bh_visit *visit, const char *path, enum bh_notice notice);

/* The API refused: to the sign-in when the session is none any more, to /again when a
 * second factor is asked for, else back to `path` with the notice that fits the status, or
 * `refused` where the API says that something did not match. */
void bh_visit_refuse(struct bh_visit *visit, const struct bh_said *said, const char *path,
                     enum bh_notice refused);

/* The notice for a refusal. */
enum bh_notice bh_visit_notice(const struct bh_said *said, enum bh_notice refused);

/* Begin and end the browser's session: sets the cookies.  `device` is what the API has
 * browsers keep; "": nothing new. */
void bh_visit_sign_in(struct bh_visit *visit, const char *session, const char *device);
void bh_visit_sign_out(struct bh_visit *visit);

/* Send the browser to sign in, and back to this page afterwards. */
void bh_visit_ask_to_sign_in(struct bh_visit *visit);

/* What the browser keeps while it is at a provider: the sign-in's id and where to go on to.
 * `text` NULL: nothing any more. */
void bh_visit_keep_login(struct bh_visit *visit, const char *text);

/* That text in `ret_text`; false when there is none. */
bool bh_visit_login(const struct bh_visit *visit, char *ret_text, size_t size);

/* Answer with the error page for that status. */
void bh_visit_error(struct bh_visit *visit, uint32_t status);

#endif
