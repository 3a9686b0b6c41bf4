#include <string.h>

#include "base/assert.h"
#include "policy/authz.h"
#include "web/headers.h"
#include "web/signin_pages.h"
#include "web/page.h"
#include "web/question.h"

enum { ANSWER_BYTES_MAX = 1 << 20, BODY_MAX = 1 << 15 };

const char *
bh_page_lines(const struct bh_page *page, const char *name)
{
    const char *value =
        page->form ? bh_form_get(page->form, name) : page->request->query(page->request, name);

    return value ? value : "";
}

const char *
bh_page_field(const struct bh_page *page, const char *name)
{
    const char *value = bh_page_lines(page, name);

    return value[strcspn(value, "\n\t")] ? "" : value;
}

static void
page_put_parameter(void *self, const char *name, const char *value)
{
    struct bh_buf *out = self;

    if (out->length > 0)
        bh_buf_putc(out, '&');
    bh_form_put_encoded(out, name);
    bh_buf_putc(out, '=');
    bh_form_put_encoded(out, value ? value : "");
}

const char *
bh_page_query(const struct bh_page *page)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_FORM_BYTES_MAX };
    const char *text = NULL;

    page->request->each_query(page->request, page_put_parameter, &out);
    if (bh_buf_text(&out))
        text = bh_arena_strdup(page->request->arena, bh_buf_text(&out));
    return text ? text : "";
}

bh_ns
bh_page_now(const struct bh_page *page)
{
    bh_ns (*now)(void) = page->web->options.now;

    return now ? now() : bh_time_now();
}

const char *
bh_page_address(const struct bh_page *page)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_FORM_BYTES_MAX };
    const char *text = NULL;

    bh_form_put_path(&out, page->request->path);
    if (bh_buf_text(&out))
        text = bh_arena_strdup(page->request->arena, bh_buf_text(&out));
    return text ? text : "/";
}

struct bh_page_frame
bh_page_frame(const struct bh_page *page, const char *account)
{
    const char *notice = page->form ? "" : bh_page_field(page, "notice");

    return (struct bh_page_frame){ .site = page->web->options.site,
                                   .account = account,
                                   .csrf = page->csrf,
                                   .now = bh_page_now(page),
                                   .notice = bh_notice_find(notice) };
}

void
bh_api_response_fini(struct bh_api_response *response)
{
    bh_json_free(response->json);
    response->json = NULL;
}

bool
bh_api_response_is_ok(const struct bh_api_response *response)
{
    return response->status >= 200 && response->status < 300;
}

static bh_json_value
page_member(const struct bh_api_response *response, const char *name)
{
    return response->json ? bh_json_get(bh_json_root(response->json), name) : NULL;
}

const char *
bh_api_response_text(const struct bh_api_response *response, const char *name)
{
    return bh_json_text(page_member(response, name), "");
}

uint64_t
bh_api_response_number(const struct bh_api_response *response, const char *name)
{
    return bh_json_number(page_member(response, name), 0);
}

const char *
bh_api_response_error(const struct bh_api_response *response)
{
    return bh_json_text(bh_json_get(page_member(response, "error"), "message"), "");
}

const char *
bh_api_response_next(const struct bh_api_response *response)
{
    return bh_json_text(bh_json_get(page_member(response, "error"), "next"), "");
}

static bool
page_needs_step_up(const struct bh_reply *reply)
{
    for (uint32_t i = 0; i < reply->header_count; i++)
        if (strcmp(reply->headers[i].name, "WWW-Authenticate") == 0
            && strstr(reply->headers[i].value, "insufficient_user_authentication"))
            return true;
    return false;
}

struct page_request {
    enum bh_method method;
    const char *path, *body, *idempotency_key; /* NULL: none */
    struct bh_question *parameters;            /* NULL: none */
};

/* A question to the API on its way, with the session as the bearer. */
struct page_asking {
    struct bh_request question;
    char bearer[BH_SESSION_TEXT_MAX + 8];
    struct bh_stream stream; /* of the reply */
};

/* Put a question to the API, as the person whose session it is. */
static void
page_asking_send(struct bh_page *page, const struct page_request *asked, struct page_asking *asking,
                 struct bh_reply *ret_reply)
{
    const char *body = asked->body;
    const struct bh_web_options *web = &page->web->options;

    *asking = (struct page_asking){ .bearer = "Bearer " };
    asking->question = (struct bh_request){ .method = asked->method,
                                            .path = asked->path,
                                            .body = body ? body : "",
                                            .body_length = body ? strlen(body) : 0,
                                            .content_type = body ? "application/json" : NULL,
                                            .idempotency_key = asked->idempotency_key,
                                            .accept = "application/json",
                                            .transport = page->request->transport,
                                            .arena = page->request->arena,
                                            .query = bh_question_parameter,
                                            .each_query = bh_question_each_parameter,
                                            .server = asked->parameters };
    memcpy(asking->bearer + 7, page->session, strlen(page->session) + 1);
    if (page->session[0])
        asking->question.authorization = asking->bearer;
    web->api(web->api_self, &asking->question, ret_reply);
}

/* A question whose answer is no stream. */
static void
page_request(struct bh_page *page, const struct page_request *asked, struct bh_reply *ret_reply)
{
    struct page_asking asking;

    page_asking_send(page, asked, &asking, ret_reply);
    BH_ASSERT(!ret_reply->stream.read);
    bh_secret_wipe(asking.bearer, sizeof asking.bearer);
}

static void
page_stream_begin(void *self, const struct bh_waker *waker)
{
    struct page_asking *asking = self;

    asking->stream.begin(asking->stream.self, waker);
}

static long
page_stream_read(void *self, char *memory, size_t size, bh_ns *ret_again)
{
    struct page_asking *asking = self;

    return asking->stream.read(asking->stream.self, memory, size, ret_again);
}

static void
page_stream_close(void *self)
{
    struct page_asking *asking = self;

    asking->stream.close(asking->stream.self);
    bh_secret_wipe(asking->bearer, sizeof asking->bearer);
}

/* The API looks at its question, and at the bearer, as long as the stream lasts. */
static void
page_forward(struct bh_page *page, const struct page_request *asked)
{
    struct page_asking *asking = bh_arena_alloc(page->request->arena, sizeof *asking);

    if (!asking) {
        bh_page_error(page, 503);
        return;
    }
    page_asking_send(page, asked, asking, page->reply);
    bh_data_headers(page->reply);
    if (page->reply->stream.read) {
        asking->stream = page->reply->stream;
        page->reply->stream =
            (struct bh_stream){ page_stream_begin, page_stream_read, page_stream_close, asking };
    } else {
        bh_secret_wipe(asking->bearer, sizeof asking->bearer);
    }
}

/* What the API said, parsed; takes the reply's body. */
static struct bh_api_response
page_read(struct bh_page *page, struct bh_reply *reply)
{
    struct bh_api_response response = { .status = reply->status, .step_up = page_needs_step_up(reply) };
    struct bh_err err;

    if (reply->known) {
        page->reply->known = true;
        page->reply->principal = reply->principal;
        memcpy(page->reply->who, reply->who, sizeof page->reply->who);
    }
    if (reply->body.length > 0) {
        if (bh_json_parse(reply->body.bytes, reply->body.length, &response.json, &err) != BH_OK)
            response.json = NULL;
        bh_secret_wipe(reply->body.bytes, reply->body.length);
    }
    bh_buf_fini(&reply->body);
    return response;
}

struct bh_api_response
bh_page_ask(struct bh_page *page, struct bh_question *question)
{
    struct bh_reply reply = { 0 };

    bh_buf_init(&reply.body, ANSWER_BYTES_MAX);
    page_request(page,
                 &(struct page_request){ .method = BH_GET, .path = question->path, .parameters = question },
                 &reply);
    return page_read(page, &reply);
}

struct bh_api_response
bh_page_post(struct bh_page *page, const struct bh_page_change *change)
{
    struct bh_reply reply = { 0 };

    bh_buf_init(&reply.body, ANSWER_BYTES_MAX);
    page_request(page,
                 &(struct page_request){ .method = BH_POST,
                                         .path = change->question->path,
                                         .body = change->body,
                                         .idempotency_key = change->idempotency_key,
                                         .parameters = change->question },
                 &reply);
    return page_read(page, &reply);
}

void
bh_page_forward_question(struct bh_page *page, struct bh_question *question)
{
    page_forward(page,
                 &(struct page_request){ .method = BH_GET, .path = question->path, .parameters = question });
}

struct bh_api_response
bh_page_call(struct bh_page *page, enum bh_method method, const char *path, const char *body)
{
    struct bh_reply reply = { 0 };

    bh_buf_init(&reply.body, ANSWER_BYTES_MAX);
    page_request(page, &(struct page_request){ .method = method, .path = path, .body = body }, &reply);
    return page_read(page, &reply);
}

void
bh_page_forward(struct bh_page *page, enum bh_method method, const char *path)
{
    page_forward(page, &(struct page_request){ .method = method, .path = path });
}

struct bh_api_response
bh_page_call_with(struct bh_page *page, enum bh_method method, const char *path,
                  const struct bh_page_member *members)
{
    struct bh_api_response response = { .status = 400 };
    char memory[BODY_MAX];
    struct bh_json_writer w;
    struct bh_buf body;

    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    for (; members->name; members++)
        if (members->text)
            bh_json_str(&w, members->name, members->text);
    bh_json_close(&w, '}');
    if (bh_buf_text(&body))
        response = bh_page_call(page, method, path, memory);
    bh_secret_wipe(memory, sizeof memory);
    return response;
}

/* The sections whose verb the role holds; with BH_ROLES, those that are everybody's. */
static uint32_t
page_sections_of(enum bh_role role)
{
    static const char *const verbs[BH_SECTIONS] = {
#define BH_SECTION(section, path, title, verb) [BH_SECTION_##section] = verb,
#include "tables/sections.tbl"
#undef BH_SECTION
    };
    uint32_t sees = 0;

    for (enum bh_section i = BH_SECTION_NONE + 1; i < BH_SECTIONS; i++)
        if (role == BH_ROLES ? !verbs[i][0] : verbs[i][0] && bh_authz_role_grants(role, verbs[i]))
            sees |= 1u << i;
    return sees;
}

const struct bh_api_response *
bh_page_whoami(struct bh_page *page)
{
    if (page->who.status == 0)
        page->who = bh_page_call(page, BH_GET, "/v1/whoami", NULL);
    return &page->who;
}

void
bh_page_fini(struct bh_page *page)
{
    bh_secret_wipe(page->session, sizeof page->session);
    bh_api_response_fini(&page->who);
}

void
bh_page_who(struct bh_page *page, struct bh_page_frame *frame)
{
    const struct bh_api_response *who = bh_page_whoami(page);
    bh_json_value roles = page_member(who, "roles");

    if (!bh_api_response_is_ok(who))
        return;
    frame->account = bh_arena_strdup(page->request->arena, bh_api_response_text(who, "name"));
    frame->sees = page_sections_of(BH_ROLES);
    for (size_t i = 0; i < bh_json_count(roles); i++)
        frame->sees |=
            page_sections_of(bh_role_find(bh_json_text(bh_json_get(bh_json_at(roles, i), "role"), "")));
}

bool
bh_page_may(struct bh_page *page, const char *verb)
{
    bh_json_value roles = page_member(bh_page_whoami(page), "roles");

    for (size_t i = 0; i < bh_json_count(roles); i++) {
        bh_json_value row = bh_json_at(roles, i);
        enum bh_role role = bh_role_find(bh_json_text(bh_json_get(row, "role"), ""));

        if (strcmp(bh_json_text(bh_json_get(row, "tenant"), ""), "*") == 0 && role < BH_ROLES
            && bh_authz_role_grants(role, verb))
            return true;
    }
    return false;
}

bool
bh_page_lacks_factor(struct bh_page *page)
{
    const struct bh_api_response *who = bh_page_whoami(page);

    return strcmp(bh_api_response_text(who, "via"), "session") == 0 && bh_api_response_text(who, "scopes")[0];
}

struct bh_page_frame
bh_page_site_frame(struct bh_page *page, enum bh_section section, const char *title)
{
    struct bh_page_frame frame = bh_page_frame(page, NULL);

    bh_page_who(page, &frame);
    frame.section = section;
    frame.title = title ? title : "";
    return frame;
}

static const char *
page_parameter(const void *self, const char *name)
{
    return bh_page_field(self, name);
}

struct bh_question *
bh_page_question(const struct bh_page *page, const char *template)
{
    struct bh_question *question = bh_arena_alloc(page->request->arena, sizeof *question);

    return question && bh_question_fill(template, page->id, page_parameter, page, question) ? question : NULL;
}

void
bh_page_redirect(struct bh_page *page, const char *path, enum bh_notice notice)
{
    const char *where = path;

    if (notice != BH_NOTICE_NONE)
        where = bh_arena_printf(page->request->arena, "%s%cnotice=%s", path, strchr(path, '?') ? '&' : '?',
                                bh_notice_name(notice));
    bh_redirect(page->reply, where ? where : "/");
}

/* Too many attempts are a 401 as a wrong password is, and differ by the message. */
static bool
page_is_locked(const struct bh_api_response *response)
{
    static const char begin[] = "too many attempts";

    return strncmp(bh_api_response_error(response), begin, sizeof begin - 1) == 0;
}

enum bh_notice
bh_page_notice(const struct bh_api_response *response, enum bh_notice refused)
{
    switch (response->status) {
    case 400:
        return BH_NOTICE_MALFORMED;
    case 401:
        return page_is_locked(response) ? BH_NOTICE_LOCKED : refused;
    case 404:
    case 409:
        return refused;
    case 403:
        return BH_NOTICE_DENIED;
    case 429:
        return BH_NOTICE_BUSY;
    case 507:
        return BH_NOTICE_FULL;
    default:
        return BH_NOTICE_UNAVAILABLE;
    }
}

void
bh_page_refuse(struct bh_page *page, const struct bh_api_response *response, const char *path,
               enum bh_notice refused)
{
    const char *step_up;

    if (response->step_up) {
        step_up = bh_arena_printf(page->request->arena, "/again?next=%s", path);
        bh_page_redirect(page, step_up ? step_up : "/again", BH_NOTICE_NONE);
    } else {
        bh_page_redirect(page, path, bh_page_notice(response, refused));
    }
}

/* A user who is not signed in is sent to do so, and returns to the requested page. */
void
bh_page_require_sign_in(struct bh_page *page)
{
    BH_AUTO(bh_buf_fini) struct bh_buf where = { .max = BH_FORM_BYTES_MAX };
    enum bh_notice notice = page->session[0] ? BH_NOTICE_SESSION_OVER : BH_NOTICE_NONE;
    const char *query = bh_page_query(page), *path = NULL;

    bh_buf_puts(&where, "/signin?next=");
    bh_form_put_encoded(&where, page->request->path);
    if (query[0])
        bh_form_put_encoded(&where, "?");
    bh_form_put_encoded(&where, query);
    if (page->request->method == BH_GET && bh_buf_text(&where))
        path = bh_arena_strdup(page->request->arena, bh_buf_text(&where));
    bh_page_redirect(page, path ? path : "/signin", notice);
}

void
bh_page_error(struct bh_page *page, uint32_t status)
{
    struct bh_error_view view = { bh_page_frame(page, NULL), status };

    view.frame.notice = BH_NOTICE_NONE;
    view.frame.narrow = true;
    if (page->session[0])
        bh_page_who(page, &view.frame);
    bh_page_headers(page->reply, status, true);
    bh_error_page(&page->reply->body, &view);
}
