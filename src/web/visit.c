#include <string.h>

#include "base/assert.h"
#include "web/headers.h"
#include "web/signin_pages.h"
#include "web/visit.h"

enum { ANSWER_BYTES_MAX = 1 << 20, BODY_MAX = 1 << 15 };

const char *
bh_visit_field(const struct bh_visit *visit, const char *name)
{
    const char *value = visit->form ? bh_form_get(visit->form, name)
                                    : visit->request->query(visit->request, name);

    return value ? value : "";
}

static void
put_parameter(void *self, const char *name, const char *value)
{
    struct bh_buf *out = self;

    if (out->length > 0)
        bh_buf_putc(out, '&');
    bh_form_put_encoded(out, name);
    bh_buf_putc(out, '=');
    bh_form_put_encoded(out, value ? value : "");
}

const char *
bh_visit_query(const struct bh_visit *visit)
{
    const char *text = NULL;
    struct bh_buf out;

    bh_buf_init(&out, BH_FORM_BYTES_MAX);
    visit->request->each_query(visit->request, put_parameter, &out);
    if (bh_buf_text(&out))
        text = bh_arena_strdup(visit->request->arena, bh_buf_text(&out));
    bh_buf_fini(&out);
    return text ? text : "";
}

struct bh_frame
bh_visit_frame(const struct bh_visit *visit, const char *account)
{
    const char *notice = visit->form ? "" : bh_visit_field(visit, "notice");

    return (struct bh_frame) { .site = visit->web->options.site,
                               .account = account,
                               .csrf = visit->csrf,
                               .notice = bh_notice_find(notice) };
}

void
bh_said_fini(struct bh_said *said)
{
    bh_json_free(said->json);
    said->json = NULL;
}

bool
bh_said_well(const struct bh_said *said)
{
    return said->status >= 200 && said->status < 300;
}

static bh_json_value
member(const struct bh_said *said, const char *name)
{
    return said->json ? bh_json_get(bh_json_root(said->json), name) : NULL;
}

const char *
bh_said_text(const struct bh_said *said, const char *name)
{
    return bh_json_text(member(said, name), "");
}

uint64_t
bh_said_number(const struct bh_said *said, const char *name)
{
    return bh_json_number(member(said, name), 0);
}

/* A question within the process has a body and no query. */
static const char *
no_parameter(const struct bh_request *request, const char *name)
{
    (void)request;
    (void)name;
    return NULL;
}

static void
no_parameters(const struct bh_request *request,
              void (*sink)(void *self, const char *name, const char *value), void *self)
{
    (void)request;
    (void)sink;
    (void)self;
}

static bool
asks_again(const struct bh_reply *reply)
{
    for (uint32_t i = 0; i < reply->header_count; i++)
        if (strcmp(reply->headers[i].name, "WWW-Authenticate") == 0 &&
            strstr(reply->headers[i].value, "insufficient_user_authentication"))
            return true;
    return false;
}

/* Put a question to the API, as the person whose session it is. */
static void
ask(struct bh_visit *visit, enum bh_method method, const char *path, const char *body,
    struct bh_reply *ret_reply)
{
    const struct bh_web_options *web = &visit->web->options;
    char bearer[BH_SESSION_TEXT_MAX + 8] = "Bearer ";
    struct bh_request question = { .method = method,
                                   .path = path,
                                   .body = body ? body : "",
                                   .body_length = body ? strlen(body) : 0,
                                   .content_type = body ? "application/json" : NULL,
                                   .accept = "application/json",
                                   .transport = visit->request->transport,
                                   .arena = visit->request->arena,
                                   .query = no_parameter,
                                   .each_query = no_parameters };

    memcpy(bearer + 7, visit->session, strlen(visit->session) + 1);
    if (visit->session[0])
        question.authorization = bearer;
    web->api(web->api_self, &question, ret_reply);
    BH_ASSERT(!ret_reply->stream.read); /* no page asks for a stream */
    bh_secret_wipe(bearer, sizeof bearer);
}

struct bh_said
bh_visit_ask(struct bh_visit *visit, enum bh_method method, const char *path,
             const char *body)
{
    struct bh_reply reply = { 0 };
    struct bh_said said;
    struct bh_err err;

    bh_buf_init(&reply.body, ANSWER_BYTES_MAX);
    ask(visit, method, path, body, &reply);
    visit->reply->known = visit->reply->known || reply.known;
    said = (struct bh_said) { .status = reply.status, .again = asks_again(&reply) };
    if (reply.body.length > 0) {
        if (bh_json_parse(reply.body.bytes, reply.body.length, &said.json, &err) != BH_OK)
            said.json = NULL;
        bh_secret_wipe(reply.body.bytes, reply.body.length);
    }
    bh_buf_fini(&reply.body);
    return said;
}

void
bh_visit_pass(struct bh_visit *visit, enum bh_method method, const char *path)
{
    ask(visit, method, path, NULL, visit->reply);
}

struct bh_said
bh_visit_ask_with(struct bh_visit *visit, enum bh_method method, const char *path,
                  const char *name, const char *text)
{
    struct bh_said said = { .status = 400 };
    char memory[BODY_MAX];
    struct bh_json_writer w;
    struct bh_buf body;

    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, name, text);
    bh_json_close(&w, '}');
    if (bh_buf_text(&body))
        said = bh_visit_ask(visit, method, path, memory);
    bh_secret_wipe(memory, sizeof memory);
    return said;
}

void
bh_visit_go(struct bh_visit *visit, const char *path, enum bh_notice notice)
{
    const char *where = path;

    if (notice != BH_NOTICE_NONE)
        where = bh_arena_printf(visit->request->arena, "%s%cnotice=%s", path,
                                strchr(path, '?') ? '&' : '?', bh_notice_name(notice));
    bh_redirect(visit->reply, where ? where : "/");
}

/* Too many attempts are a 401 as a wrong password is, and told apart by what is said. */
static bool
is_locked(const struct bh_said *said)
{
    static const char begin[] = "too many attempts";
    const char *message = bh_json_text(bh_json_get(member(said, "error"), "message"), "");

    return strncmp(message, begin, sizeof begin - 1) == 0;
}

enum bh_notice
bh_visit_notice(const struct bh_said *said, enum bh_notice refused)
{
    switch (said->status) {
    case 400:
        return BH_NOTICE_MALFORMED;
    case 401:
        return is_locked(said) ? BH_NOTICE_LOCKED : refused;
    case 404:
    case 409:
        return refused;
    case 403:
    case 429:
        return BH_NOTICE_LOCKED;
    default:
        return BH_NOTICE_UNAVAILABLE;
    }
}

void
bh_visit_refuse(struct bh_visit *visit, const struct bh_said *said, const char *path,
                enum bh_notice refused)
{
    const char *again;

    if (said->again) {
        again = bh_arena_printf(visit->request->arena, "/again?next=%s", path);
        bh_visit_go(visit, again ? again : "/again", BH_NOTICE_NONE);
    } else {
        bh_visit_go(visit, path, bh_visit_notice(said, refused));
    }
}

void
bh_visit_error(struct bh_visit *visit, uint32_t status)
{
    struct bh_error_view view = { bh_visit_frame(visit, NULL), status };

    view.frame.csrf = NULL;
    bh_page_headers(visit->reply, status, true);
    bh_error_page(&visit->reply->body, &view);
}
