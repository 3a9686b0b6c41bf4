/* Pages that stay up to date: what a reader is sent, and when it ends. */
#include "web/live.h"

#include <pthread.h>
#include <time.h>

#include "base/test.h"

#define SESSION "bs_abcdefghijkl_SECRET"
#define OTHER_SESSION "bs_zyxwvutsrqpo_SECRET"
#define WITHIN_NS (20 * BH_NS_PER_S) /* of what happens at once, on the slowest machine */

enum { TEXT_MAX = 1 << 18 };

/* The API and the owner behind it: one mutex, and a condition for what changed. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t number;           /* of the newest change */
    uint32_t session, refused; /* statuses of /v1/whoami, and of all else */
    const char *role;
    bool slow;      /* what ada's pages ask takes longer than a turn */
    char asked[64]; /* since then, but for whoami: 'a' by ada, 'z' by zoe */
} site = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void
site_set(uint32_t session, uint32_t status, bool changed)
{
    pthread_mutex_lock(&site.mutex);
    site.session = session;
    site.refused = status;
    site.number += changed;
    pthread_cond_broadcast(&site.changed);
    pthread_mutex_unlock(&site.mutex);
}

/* Whether it takes long. */
static bool
site_note(bool who, bool ada)
{
    size_t length;
    bool slow;

    pthread_mutex_lock(&site.mutex);
    slow = site.slow && !who;
    length = strlen(site.asked);
    if (slow && length + 1 < sizeof site.asked)
        site.asked[length] = ada ? 'a' : 'z';
    pthread_cond_broadcast(&site.changed);
    pthread_mutex_unlock(&site.mutex);
    return slow && ada;
}

static void
site_answer(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    bool who = strcmp(request->path, "/v1/whoami") == 0;
    bool ada = !request->authorization || !strstr(request->authorization, OTHER_SESSION);

    if (site_note(who, ada))
        nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL); /* its work */
    pthread_mutex_lock(&site.mutex);
    reply->status = who || site.session == 401 ? site.session : site.refused;
    reply->known = reply->status != 401;
    reply->principal = 7;
    snprintf(reply->who, sizeof reply->who, ada ? "ada" : "zoe");
    bh_buf_printf(&reply->body,
                  "{\"name\":\"%s\",\"items\":[],\"whole_site\":true,\"roles\":[{\"role\":\"%s\"}]}",
                  reply->who, site.role);
    pthread_mutex_unlock(&site.mutex);
}

static void
site_set_role(const char *role)
{
    pthread_mutex_lock(&site.mutex);
    site.role = role;
    pthread_mutex_unlock(&site.mutex);
}

static uint64_t
site_change_number(void *self)
{
    uint64_t number;

    pthread_mutex_lock(&site.mutex);
    number = site.number;
    pthread_mutex_unlock(&site.mutex);
    return number;
}

static uint32_t
site_changes(void *self, uint64_t after, uint64_t wait_ns, struct bh_change *ret_changes, uint32_t max)
{
    struct timespec until;
    uint32_t count;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)wait_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&site.mutex);
    while (site.number <= after && pthread_cond_timedwait(&site.changed, &site.mutex, &until) == 0)
        ;
    count = site.number > after;
    if (count > 0)
        *ret_changes = (struct bh_change){ .number = site.number };
    pthread_mutex_unlock(&site.mutex);
    return count;
}

static const struct bh_owner_ops owner_ops = { .change_number = site_change_number, .changes = site_changes };

static struct bh_web *
site_open(const struct bh_live_limits *limits)
{
    static struct bh_web web;

    site_set(200, 200, false);
    site_set_role("developer");
    web = (struct bh_web){ .options = { .api = site_answer, .site = "GPUs" } };
    web.live = bh_live_new(&web, &(struct bh_owner){ .ops = &owner_ops }, limits);
    return &web;
}

/* ---- a reader ---- */

struct reader {
    struct bh_arena *arena;
    struct bh_reply reply;
    const char *page, *have;
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    bool rings; /* under mutex */
    char text[TEXT_MAX];
    size_t length;
};

static const char *
reader_query(const struct bh_request *request, const char *name)
{
    const struct reader *reader = request->server;

    return strcmp(name, "page") == 0 ? reader->page : strcmp(name, "have") == 0 ? reader->have : NULL;
}

static void
reader_each_query(const struct bh_request *request,
                  void (*sink)(void *self, const char *name, const char *value), void *self)
{
}

static void
reader_wake(void *self)
{
    struct reader *reader = self;

    pthread_mutex_lock(&reader->mutex);
    reader->rings = true;
    pthread_cond_signal(&reader->woken);
    pthread_mutex_unlock(&reader->mutex);
}

/* `cookie` NULL: of a person who is signed in. */
static struct reader *
reader_open(struct bh_web *web, const char *page, const char *have, const char *cookie)
{
    static const struct bh_transport transport = { .address = "127.0.0.1" };
    struct reader *reader = calloc(1, sizeof *reader);
    struct bh_request request = { .path = "/live",
                                  .body = "",
                                  .cookie = cookie ? cookie : "__Host-bulkhead=" SESSION,
                                  .transport = &transport,
                                  .query = reader_query,
                                  .each_query = reader_each_query,
                                  .server = reader };

    assert_non_null(reader);
    request.arena = reader->arena = bh_arena_new(1 << 20);
    reader->page = page;
    reader->have = have;
    pthread_mutex_init(&reader->mutex, NULL);
    pthread_cond_init(&reader->woken, NULL);
    bh_buf_init(&reader->reply.body, 1 << 20);
    bh_web_handle(web, &request, &reader->reply);
    if (reader->reply.stream.read)
        reader->reply.stream.begin(reader->reply.stream.self, &(struct bh_waker){ reader_wake, reader });
    return reader;
}

/* Up to a moment, or until it is woken. */
static void
reader_wait(struct reader *reader)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 10 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&reader->mutex);
    if (!reader->rings)
        (void)pthread_cond_timedwait(&reader->woken, &reader->mutex, &until);
    reader->rings = false;
    pthread_mutex_unlock(&reader->mutex);
}

/* Whether the stream comes to `until`; NULL: to its end. */
static bool
reader_receive(struct reader *reader, const char *until)
{
    struct bh_stream *stream = &reader->reply.stream;

    for (bh_ns end = bh_time_monotonic() + WITHIN_NS; bh_time_monotonic() < end;) {
        bh_ns again;
        long got =
            stream->read(stream->self, reader->text + reader->length, TEXT_MAX - 1 - reader->length, &again);

        if (got == BH_STREAM_OVER)
            return !until;
        reader->length += (size_t)got;
        if (until && strstr(reader->text, until))
            return true;
        if (got == 0)
            reader_wait(reader);
    }
    return false;
}

static void
reader_forget(struct reader *reader)
{
    memset(reader->text, 0, reader->length);
    reader->length = 0;
}

static void
reader_close(struct reader *reader)
{
    if (reader->reply.stream.read)
        reader->reply.stream.close(reader->reply.stream.self);
    bh_buf_fini(&reader->reply.body);
    bh_arena_free(reader->arena);
    free(reader);
}

/* ---- the tests ---- */

static bh_rc
no_randomness(void *ret_bytes, size_t length, struct bh_err *err)
{
    memset(ret_bytes, 0, length);
    return BH_OK;
}

static const struct bh_live_limits quick = { .sensors = 10 * BH_NS_PER_MS, .silence = 50 * BH_NS_PER_MS };

/* The list of jobs is asked for when a job changes, and none does. */
static void
a_session_that_ends_ends_its_pages(void **state)
{
    struct bh_web *web = site_open(&quick);
    struct reader *reader = reader_open(web, "/jobs", "", NULL);

    BH_CHECK("is followed", reader_receive(reader, "event: live\n"));
    BH_CHECK("is sent", reader_receive(reader, "\"id\":\"jobs\""));
    reader_forget(reader);
    site_set(401, 401, false);
    BH_CHECK("says so", reader_receive(reader, "event: over\n"));
    BH_CHECK("and ends", reader_receive(reader, NULL));
    BH_CHECK("with nothing else", !strstr(reader->text, "event: panel"));
    reader_close(reader);
    bh_live_free(web->live);
    BH_CHECK_DONE();
}

static void
what_may_not_be_seen_any_more_is_taken_back(void **state)
{
    struct bh_web *web = site_open(&quick);
    struct reader *reader = reader_open(web, "/jobs", "", NULL);

    BH_CHECK("is sent", reader_receive(reader, "\"id\":\"jobs\""));
    reader_forget(reader);
    site_set(200, 403, true);
    BH_CHECK("is empty", reader_receive(reader, "data: {\"html\":\"\",\"id\":\"jobs\"}\n"));
    reader_forget(reader);
    site_set(200, 200, true);
    BH_CHECK("is back", reader_receive(reader, "<h2>Jobs"));
    reader_close(reader);
    bh_live_free(web->live);
    BH_CHECK_DONE();
}

/* No job changes. */
static void
other_roles_have_all_asked_for(void **state)
{
    struct bh_web *web = site_open(&quick);
    struct reader *reader = reader_open(web, "/tenants/acme", "", NULL);

    BH_CHECK("the last is sent", reader_receive(reader, "\"id\":\"jobs\""));
    reader_forget(reader);
    site_set(200, 403, false);
    site_set_role("none");
    BH_CHECK("the object", reader_receive(reader, "data: {\"html\":\"\",\"id\":\"tenant\"}\n"));
    BH_CHECK("and what is of it", reader_receive(reader, "data: {\"html\":\"\",\"id\":\"jobs\"}\n"));
    reader_close(reader);
    bh_live_free(web->live);
    BH_CHECK_DONE();
}

/* A page of one object is not there where its first section is not, though others are for all. */
static void
of_an_object_that_may_not_be_seen_nothing_is_sent(void **state)
{
    struct bh_web *web = site_open(&quick);
    struct reader *reader;

    site_set(200, 404, false);
    reader = reader_open(web, "/jobs/7", "", NULL);
    BH_CHECK("is followed", reader_receive(reader, "event: live\n"));
    BH_CHECK("and hears nothing",
             reader_receive(reader, "event: live\ndata: {}\n\nevent: live\ndata: {}\n\n"));
    BH_CHECK("of it", !strstr(reader->text, "event: panel"));
    reader_close(reader);
    bh_live_free(web->live);
    BH_CHECK_DONE();
}

/* "ID:VERSION," of each section that came, in `ret_have`. */
static void
put_versions(const struct reader *reader, struct bh_buf *ret_have)
{
    static const char mark[] = "<data value=\\\"", id[] = "\"id\":\"";

    for (const char *at = reader->text; (at = strstr(at, mark));) {
        const char *name = strstr(at, id) + sizeof id - 1;

        bh_buf_printf(ret_have, "%.*s:%.16s,", (int)strcspn(name, "\""), name, at + sizeof mark - 1);
        at = name;
    }
}

/* "Your share", the first of the page, is not for a person who sees the whole site. */
static void
a_page_that_has_everything_is_sent_nothing(void **state)
{
    struct bh_web *web = site_open(&quick);
    struct reader *first = reader_open(web, "/", "", NULL), *again;
    BH_AUTO(bh_buf_fini) struct bh_buf have = { .max = 4096 };

    for (const char *const *id = (const char *const[]){ "status", "gpus", "queue", "tenants", "nodes", NULL };
         *id; id++) {
        char part[32];

        snprintf(part, sizeof part, "\"id\":\"%s\"", *id);
        BH_CHECK(*id, reader_receive(first, part));
    }
    BH_CHECK("what is not for it is not sent", !strstr(first->text, "\"id\":\"share\""));
    put_versions(first, &have);
    again = reader_open(web, "/", bh_buf_text(&have), NULL);
    BH_CHECK("is followed", reader_receive(again, "event: live\n"));
    BH_CHECK("and hears nothing",
             reader_receive(again, "event: live\ndata: {}\n\nevent: live\ndata: {}\n\n"));
    BH_CHECK("of what it has", !strstr(again->text, "event: panel"));
    reader_close(first);
    reader_close(again);
    bh_live_free(web->live);
    BH_CHECK_DONE();
}

static void
too_many_pages_are_refused_with_words(void **state)
{
    static const struct {
        const char *name;
        struct bh_live_limits limits;
        const char *page, *text; /* of the third; NULL: it is followed */
    } cases[] = {
        { "all that fit", { .readers_each = 3, .pages_each = 2 }, "/jobs", NULL },
        { "of one person", { .readers_each = 2 }, "/jobs", "You have too many pages open: close some." },
        { "of different ones", { .pages_each = 2 }, "/tenants", "You have too many pages open: close some." },
        { "of the site", { .readers = 2 }, "/jobs", "Too many pages of this site are open." },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_web *web = site_open(&cases[i].limits);
        struct reader *readers[] = { reader_open(web, "/jobs", "", NULL), reader_open(web, "/gpus", "", NULL),
                                     reader_open(web, cases[i].page, "", NULL) };
        const struct bh_reply *last = &readers[2]->reply;

        BH_CHECK_EQ(cases[i].name, last->status, 200);
        BH_CHECK_STR(cases[i].name, last->content_type, "text/event-stream");
        BH_CHECK_EQ(cases[i].name, last->stream.read != NULL, cases[i].text == NULL);
        if (cases[i].text)
            BH_CHECK(cases[i].name, strstr(bh_buf_text(&readers[2]->reply.body), cases[i].text));
        for (size_t k = 0; k < BH_COUNT(readers); k++)
            reader_close(readers[k]);
        bh_live_free(web->live);
    }
    BH_CHECK_DONE();
}

static void
who_may_not_follow_a_page(void **state)
{
    static const struct {
        const char *name, *page, *cookie;
        uint32_t session, status;
        const char *body;
    } cases[] = {
        { "a stranger", "/jobs", "a=1", 200, 200, "event: over\ndata: {}\n\n" },
        { "whose session has ended", "/jobs", NULL, 401, 200, "event: over\ndata: {}\n\n" },
        { "who asks too often", "/jobs", NULL, 429, 429, "<title>" },
        { "of a page that is none", "/nothing", NULL, 200, 404, "<title>" },
    };
    static const struct bh_crypto_ops crypto = { .random = no_randomness };
    struct bh_web *web = site_open(&quick);

    web->options.crypto = &crypto;
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct reader *reader;

        site_set(cases[i].session, 200, false);
        reader = reader_open(web, cases[i].page, "", cases[i].cookie);
        BH_CHECK_EQ(cases[i].name, reader->reply.status, cases[i].status);
        BH_CHECK(cases[i].name, !reader->reply.stream.read);
        BH_CHECK(cases[i].name, strstr(bh_buf_text(&reader->reply.body), cases[i].body));
        reader_close(reader);
    }
    bh_live_free(web->live);
    BH_CHECK_DONE();
}

/* Else its connection would be an unknown client's, which gives way first. */
static void
a_stream_counts_for_its_principal(void **state)
{
    struct bh_web *web = site_open(&quick);
    struct reader *reader = reader_open(web, "/jobs", "", NULL);

    BH_CHECK("known", reader->reply.known);
    BH_CHECK_EQ("principal", reader->reply.principal, 7);
    reader_close(reader);
    bh_live_free(web->live);
    BH_CHECK_DONE();
}

/* Until that many of ada's pages have asked, and zoe's; how many of ada's asked before zoe's. */
static size_t
site_await_turns(size_t pages)
{
    struct timespec until;
    size_t before;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WITHIN_NS / BH_NS_PER_S;
    pthread_mutex_lock(&site.mutex);
    while (strlen(site.asked) < pages + 1 && pthread_cond_timedwait(&site.changed, &site.mutex, &until) == 0)
        ;
    before = strlen(site.asked) > pages ? strcspn(site.asked, "z") : SIZE_MAX;
    site.slow = false;
    pthread_mutex_unlock(&site.mutex);
    return before;
}

/* A person with many pages has one turn in a round, as one with a single page has. */
static void
persons_take_turns(void **state)
{
    enum { PAGES = 6 };
    static const char *const pages[PAGES] = { "/jobs?state=pending", "/jobs?state=running",
                                              "/jobs?state=failed",  "/jobs?state=completed",
                                              "/jobs?mine=true",     "/jobs?active=true" };
    struct bh_web *web = site_open(&(struct bh_live_limits){ .sensors = 3600 * BH_NS_PER_S });
    struct reader *many[PAGES], *one;

    for (size_t i = 0; i < PAGES; i++)
        many[i] = reader_open(web, pages[i], "", NULL);
    one = reader_open(web, "/jobs", "", "__Host-bulkhead=" OTHER_SESSION);
    for (size_t i = 0; i < PAGES; i++)
        BH_CHECK(pages[i], reader_receive(many[i], "event: panel"));
    BH_CHECK("zoe's", reader_receive(one, "event: panel"));
    pthread_mutex_lock(&site.mutex);
    site.slow = true;
    pthread_mutex_unlock(&site.mutex);
    site_set(200, 200, true);
    BH_CHECK_EQ("pages of ada's before zoe's", site_await_turns(PAGES), 1);
    for (size_t i = 0; i < PAGES; i++)
        reader_close(many[i]);
    reader_close(one);
    bh_live_free(web->live);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(a_session_that_ends_ends_its_pages),
                                           cmocka_unit_test(persons_take_turns),
                                           cmocka_unit_test(what_may_not_be_seen_any_more_is_taken_back),
                                           cmocka_unit_test(other_roles_have_all_asked_for),
                                           cmocka_unit_test(
                                               of_an_object_that_may_not_be_seen_nothing_is_sent),
                                           cmocka_unit_test(a_page_that_has_everything_is_sent_nothing),
                                           cmocka_unit_test(too_many_pages_are_refused_with_words),
                                           cmocka_unit_test(who_may_not_follow_a_page),
                                           cmocka_unit_test(a_stream_counts_for_its_principal) };

BH_TEST_MAIN(tests)
