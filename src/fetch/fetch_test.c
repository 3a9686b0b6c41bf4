/* bulkhead-fetch as the daemon has it, against servers on this machine that misbehave. */
#include "fetch/fetch.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/test.h"
#include "fetch/server_test.h"

enum { ARENA_MAX = 1 << 20, TOGETHER = 8 };

static struct {
    const char *program;
    char folder[32], ca[64], other_ca[64], certificate[64], key[64], empty[64];
    struct server_pem pem, other, expired, stranger, me;
    struct server *server, *plain;
    const char *loopback[1];
} site = { .loopback = { "127.0.0.0/8" } };

/* ---- set-up ---- */

static void
fetch_test_write_file(const char *name, const char *text, char *ret_path, size_t size)
{
    struct bh_err err;

    snprintf(ret_path, size, "%s/%s", site.folder, name);
    assert_int_equal(bh_file_replace(ret_path, text, strlen(text), 0600, &err), BH_OK);
}

static int
fetch_test_set_up(void **state)
{
    char all[3 * sizeof site.pem.certificate];

    snprintf(site.folder, sizeof site.folder, "/tmp/bh-fetch-XXXXXX");
    assert_non_null(mkdtemp(site.folder));
    bh_test_make_pem(NULL, -1, 2, &site.pem);
    bh_test_make_pem(NULL, -1, 2, &site.other);
    bh_test_make_pem(NULL, -2, -1, &site.expired);
    bh_test_make_pem("idp.example", -1, 2, &site.stranger);
    bh_test_make_pem("bulkhead", -1, 2, &site.me);
    snprintf(all, sizeof all, "%s%s%s", site.pem.certificate, site.expired.certificate,
             site.stranger.certificate);
    fetch_test_write_file("ca.pem", all, site.ca, sizeof site.ca);
    fetch_test_write_file("other.pem", site.other.certificate, site.other_ca, sizeof site.other_ca);
    fetch_test_write_file("me.pem", site.me.certificate, site.certificate, sizeof site.certificate);
    fetch_test_write_file("me.key", site.me.key, site.key, sizeof site.key);
    fetch_test_write_file("empty", "", site.empty, sizeof site.empty);
    site.server = bh_test_server_start(&(struct server_options){ .pem = &site.pem });
    site.plain = bh_test_server_start(&(struct server_options){ .pem = NULL });
    return 0;
}

static int
fetch_test_tear_down(void **state)
{
    const char *const files[] = { site.ca, site.other_ca, site.certificate, site.key, site.empty };

    bh_test_server_stop(site.server);
    bh_test_server_stop(site.plain);
    for (size_t i = 0; i < BH_COUNT(files); i++)
        unlink(files[i]);
    rmdir(site.folder);
    return 0;
}

static struct bh_fetch_options
usual(void)
{
    return (struct bh_fetch_options){
        .program = site.program, .ca = site.ca, .allow = { site.loopback, 1 }, .timeout_ms = 30000
    };
}

static struct bh_fetch *
fetch_test_start(const struct bh_fetch_options *options)
{
    struct bh_fetch *fetch = NULL;
    struct bh_err err = { 0 };

    if (bh_fetch_start(options, &fetch, &err) != BH_OK)
        fail_msg("%s", err.msg);
    return fetch;
}

/* ---- asking ---- */

static struct bh_arena *arena;

static struct bh_https_response
fetch_test_ask(struct bh_fetch *fetch, const struct bh_https_request *request)
{
    struct bh_https port = bh_fetch_port(fetch);
    struct bh_https_response answer = { .body = NULL };
    struct bh_err err = { 0 };

    bh_arena_reset(arena);
    if (bh_https_ask(&port, request, arena, &answer, &err) != BH_OK)
        fail_msg("%s", err.msg);
    return answer;
}

static struct bh_https_response
fetch_test_get(struct bh_fetch *fetch, const char *url)
{
    return fetch_test_ask(fetch, &(struct bh_https_request){ .url = url });
}

static const char *
url_at(const char *host, const struct server *server, const char *path)
{
    static char url[200];

    snprintf(url, sizeof url, "%s:%u%s", host, bh_test_server_port(server), path);
    return url;
}

static struct bh_https_response
get_path(struct bh_fetch *fetch, const char *path)
{
    return fetch_test_get(fetch, url_at("https://127.0.0.1", site.server, path));
}

/* ---- tests ---- */

static void
fetch_test_answers(void **state)
{
    static const struct {
        const char *path;
        uint32_t status;
        const char *body;
        enum bh_https_cause cause;
        uint32_t max_age_s;
    } rows[] = {
        { "/ok", 200, "ok", 0, 300 },
        { "/ok?a=b", 200, "ok", 0, 300 },
        { "/kept", 200, "kept", 0, 5 },
        { "/unkept", 200, "x", 0, 0 },
        { "/500", 500, "broken", 0, 0 },
        { "/204", 204, "", 0, 0 },
        { "/nowhere", 404, "", 0, 0 },
        { "/redirect", 302, "there", 0, 0 },
        { "/continue", 200, "ok", 0, 0 },
        { "/chunks", 200, "ok", 0, 0 },
        { "/understated", 200, "ok", 0, 0 },
        { "/lying", 0, "", BH_HTTPS_CUT, 0 },
        { "/length", 0, "", BH_HTTPS_CUT, 0 },
        { "/chunk", 0, "", BH_HTTPS_CUT, 0 },
        { "/cut", 0, "", BH_HTTPS_CUT, 0 },
        { "/nothing", 0, "", BH_HTTPS_CUT, 0 },
        { "/torn", 0, "", BH_HTTPS_CUT, 0 },
        { "/ancient", 0, "", BH_HTTPS_CUT, 0 },
        { "/latin", 0, "", BH_HTTPS_NO_TEXT, 0 },
        { "/binary", 0, "", BH_HTTPS_NO_TEXT, 0 },
        { "/large", 0, "", BH_HTTPS_TOO_LONG, 0 },
        { "/chunked-large", 0, "", BH_HTTPS_TOO_LONG, 0 },
        { "/flood", 0, "", BH_HTTPS_TOO_LONG, 0 },
        { "/headers", 0, "", BH_HTTPS_TOO_LONG, 0 },
    };
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch = fetch_test_start(&options);
    uint32_t before = bh_test_server_accepted(site.server);
    pid_t process = bh_fetch_process(fetch);
    struct bh_https_response answer;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        answer = get_path(fetch, rows[i].path);
        BH_CHECK_EQ(rows[i].path, answer.status, rows[i].status);
        BH_CHECK_EQ(rows[i].path, answer.cause, rows[i].cause);
        BH_CHECK_EQ(rows[i].path, answer.max_age_s, rows[i].max_age_s);
        BH_CHECK_STR(rows[i].path, answer.body, rows[i].body);
        BH_CHECK_EQ(rows[i].path, answer.length, strlen(rows[i].body));
    }
    /* No redirect was followed, and nothing asked twice. */
    BH_CHECK_EQ("connections", bh_test_server_accepted(site.server) - before, BH_COUNT(rows));
    answer = get_path(fetch, "/edge");
    BH_CHECK_EQ("the longest", answer.length, BH_HTTPS_BYTES_MAX);
    answer = get_path(fetch, "/chunked-edge");
    BH_CHECK_EQ("the longest", answer.length, BH_HTTPS_BYTES_MAX);
    BH_CHECK_EQ("one process did it all", bh_fetch_process(fetch), process);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

static void
requests(void **state)
{
    static char body[BH_HTTPS_BODY_MAX + 2], secret[BH_HTTPS_HEADER_MAX + 2];
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch;
    struct bh_https port;
    struct bh_https_request request = {
        .post = true,
        .url = url_at("https://localhost", site.server, "/echo"),
        .authorization = "Basic YTpi",
        .body = "a=b&c=%20",
    };
    struct bh_https_response answer;
    struct bh_err err;

    setenv("https_proxy", "http://127.0.0.1:1", 1);
    fetch = fetch_test_start(&options);
    port = bh_fetch_port(fetch);
    unsetenv("https_proxy");
    answer = fetch_test_ask(fetch, &request);
    BH_CHECK("a form", strstr(answer.body, "POST /echo HTTP/1.1\r\n"));
    BH_CHECK("a form", strstr(answer.body, "\r\nAuthorization: Basic YTpi\r\n"));
    BH_CHECK("a form", strstr(answer.body, "\r\nContent-Type: application/x-www-form-urlencoded\r\n"));
    BH_CHECK("a form", strstr(answer.body, "\r\n\r\na=b&c=%20"));
    answer = get_path(fetch, "/echo");
    BH_CHECK("GET", strstr(answer.body, "GET /echo HTTP/1.1\r\n"));
    BH_CHECK("GET", !strstr(answer.body, "Authorization"));
    memset(body, 'b', BH_HTTPS_BODY_MAX);
    memset(secret, 's', BH_HTTPS_HEADER_MAX);
    request.body = body;
    request.authorization = secret;
    answer = fetch_test_ask(fetch, &request);
    BH_CHECK_EQ("the longest", answer.status, 200);
    BH_CHECK("the longest", answer.length > BH_HTTPS_BODY_MAX + BH_HTTPS_HEADER_MAX);

    body[BH_HTTPS_BODY_MAX] = 'b';
    BH_CHECK_EQ("body", bh_https_ask(&port, &request, arena, &answer, &err), BH_INVALID);
    request.body = NULL;
    secret[BH_HTTPS_HEADER_MAX] = 's';
    BH_CHECK_EQ("header", bh_https_ask(&port, &request, arena, &answer, &err), BH_INVALID);
    request.authorization = "a\r\nHost: b";
    BH_CHECK_EQ("lines", bh_https_ask(&port, &request, arena, &answer, &err), BH_INVALID);
    request.authorization = NULL;
    request.url = "";
    BH_CHECK_EQ("no url", bh_https_ask(&port, &request, arena, &answer, &err), BH_INVALID);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

static void
small_arena(void **state)
{
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch = fetch_test_start(&options);
    struct bh_https port = bh_fetch_port(fetch);
    struct bh_https_request request = { .url = url_at("https://127.0.0.1", site.server, "/edge") };
    struct bh_arena *small = bh_arena_new(1000);
    struct bh_https_response answer;
    struct bh_err err;

    BH_CHECK_EQ("small", bh_https_ask(&port, &request, small, &answer, &err), BH_FULL);
    BH_CHECK_EQ("afterwards", get_path(fetch, "/ok").status, 200);
    bh_arena_free(small);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

static void
trust(void **state)
{
    struct {
        const char *name;
        struct server_options server;
        const char *ca, *host;
        enum bh_https_cause cause;
    } rows[] = {
        { "trusted", { .pem = &site.pem }, site.ca, "https://127.0.0.1", 0 },
        { "by name", { .pem = &site.pem }, site.ca, "https://localhost", 0 },
        { "another's", { .pem = &site.pem }, site.other_ca, "https://127.0.0.1", BH_HTTPS_UNTRUSTED },
        { "unknown to the system", { .pem = &site.pem }, NULL, "https://127.0.0.1", BH_HTTPS_UNTRUSTED },
        { "of another host", { .pem = &site.stranger }, site.ca, "https://127.0.0.1", BH_HTTPS_UNTRUSTED },
        { "expired", { .pem = &site.expired }, site.ca, "https://127.0.0.1", BH_HTTPS_UNTRUSTED },
        { "TLS 1.1", { .pem = &site.pem, .old = true }, site.ca, "https://127.0.0.1", BH_HTTPS_TLS },
        { "no TLS", { .pem = NULL }, site.ca, "https://127.0.0.1", BH_HTTPS_TLS },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct server *server = bh_test_server_start(&rows[i].server);
        struct bh_fetch_options options = usual();
        struct bh_https_response answer;
        struct bh_fetch *fetch;

        options.ca = rows[i].ca;
        fetch = fetch_test_start(&options);
        answer = fetch_test_get(fetch, url_at(rows[i].host, server, "/ok"));
        BH_CHECK_EQ(rows[i].name, answer.cause, rows[i].cause);
        BH_CHECK_EQ(rows[i].name, answer.status, rows[i].cause ? 0 : 200);
        bh_fetch_stop(fetch);
        bh_test_server_stop(server);
    }
    BH_CHECK_DONE();
}

static void
client_certificates(void **state)
{
    const struct bh_fetch_certificate mine = { "mine", site.certificate, site.key };
    struct server *server = bh_test_server_start(&(struct server_options){ .pem = &site.pem, .ask = true });
    struct bh_fetch_options options = usual();
    struct bh_https_request request = { .url = url_at("https://127.0.0.1", server, "/certificate") };
    struct bh_fetch *fetch;

    options.certificates = &mine;
    options.certificate_count = 1;
    fetch = fetch_test_start(&options);
    BH_CHECK_STR("none", fetch_test_ask(fetch, &request).body, "nobody");
    request.certificate = "mine";
    BH_CHECK_STR("mine", fetch_test_ask(fetch, &request).body, "bulkhead");
    request.certificate = "yours";
    BH_CHECK_EQ("yours", fetch_test_ask(fetch, &request).cause, BH_HTTPS_CERTIFICATE);
    request.certificate = NULL;
    BH_CHECK_STR("none again", fetch_test_ask(fetch, &request).body, "nobody");
    bh_fetch_stop(fetch);
    bh_test_server_stop(server);
    BH_CHECK_DONE();
}

/* Which addresses may be asked, and how. */
static void
fetch_test_addresses(void **state)
{
    enum { STRICT, LOOPBACK, PLAIN, KINDS };
    static const struct {
        const char *host;
        bool tls;
        enum bh_https_cause causes[KINDS];
    } rows[] = {
        { "https://127.0.0.1", true, { BH_HTTPS_PRIVATE, 0, BH_HTTPS_PRIVATE } },
        { "https://localhost", true, { BH_HTTPS_PRIVATE, 0, BH_HTTPS_PRIVATE } },
        { "https://2130706433", true, { BH_HTTPS_PRIVATE, 0, BH_HTTPS_PRIVATE } },
        { "https://[::1]", true, { BH_HTTPS_PRIVATE, BH_HTTPS_PRIVATE, BH_HTTPS_PRIVATE } },
        { "https://169.254.169.254", true, { BH_HTTPS_PRIVATE, BH_HTTPS_PRIVATE, BH_HTTPS_PRIVATE } },
        { "https://10.0.0.1", true, { BH_HTTPS_PRIVATE, BH_HTTPS_PRIVATE, BH_HTTPS_PRIVATE } },
        { "http://127.0.0.1", false, { BH_HTTPS_URL, BH_HTTPS_URL, 0 } },
        { "http://localhost", false, { BH_HTTPS_URL, BH_HTTPS_URL, 0 } },
        { "http://127.0.0.2", false, { BH_HTTPS_URL, BH_HTTPS_URL, BH_HTTPS_URL } },
        { "http://10.0.0.1", false, { BH_HTTPS_URL, BH_HTTPS_URL, BH_HTTPS_URL } },
        { "http://op.example", false, { BH_HTTPS_URL, BH_HTTPS_URL, BH_HTTPS_URL } },
        { "https://me@127.0.0.1", true, { BH_HTTPS_URL, BH_HTTPS_URL, BH_HTTPS_URL } },
        { "ftp://127.0.0.1", false, { BH_HTTPS_URL, BH_HTTPS_URL, BH_HTTPS_URL } },
        { "127.0.0.1", true, { BH_HTTPS_URL, BH_HTTPS_URL, BH_HTTPS_URL } },
        { "https://", true, { BH_HTTPS_URL, BH_HTTPS_URL, BH_HTTPS_URL } },
        { "https://name.invalid", true, { BH_HTTPS_RESOLVE, BH_HTTPS_RESOLVE, BH_HTTPS_RESOLVE } },
    };

    for (int kind = STRICT; kind < KINDS; kind++) {
        struct bh_fetch_options options = usual();
        struct bh_fetch *fetch;

        options.allow.count = kind == LOOPBACK ? 1 : 0;
        options.plain_loopback = kind == PLAIN;
        fetch = fetch_test_start(&options);
        for (size_t i = 0; i < BH_COUNT(rows); i++) {
            struct server *server = rows[i].tls ? site.server : site.plain;
            struct bh_https_response answer = fetch_test_get(fetch, url_at(rows[i].host, server, "/204"));
            bool certified = strcmp(rows[i].host, "https://2130706433") != 0;

            BH_CHECK_EQ(rows[i].host, answer.cause,
                        kind == LOOPBACK && !certified && answer.cause == BH_HTTPS_UNTRUSTED
                            ? BH_HTTPS_UNTRUSTED
                            : rows[i].causes[kind]);
        }
        BH_CHECK_EQ("a file", fetch_test_get(fetch, "file:///etc/passwd").cause, BH_HTTPS_URL);
        bh_fetch_stop(fetch);
    }
    BH_CHECK_DONE();
}

static void
by_proxy(void **state)
{
    struct bh_fetch_options options = usual();
    uint32_t before = bh_test_server_accepted(site.plain);
    struct bh_https_response answer;
    struct bh_fetch *fetch;
    char proxy[64];

    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", bh_test_server_port(site.plain));
    options.proxy = proxy;
    options.allow.count = 0;
    fetch = fetch_test_start(&options);
    answer = get_path(fetch, "/500");
    BH_CHECK_EQ("through", answer.status, 500);
    BH_CHECK_EQ("the proxy's own header", answer.max_age_s, 0);
    BH_CHECK_EQ("through", bh_test_server_accepted(site.plain) - before, 1);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

static void
slow(void **state)
{
    static const char *const paths[] = { "/slow", "/silent" };
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch;

    options.timeout_ms = 3000;
    fetch = fetch_test_start(&options);
    for (size_t i = 0; i < BH_COUNT(paths); i++)
        BH_CHECK_EQ(paths[i], get_path(fetch, paths[i]).cause, BH_HTTPS_TIMEOUT);
    BH_CHECK_EQ("afterwards", get_path(fetch, "/ok").status, 200);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

/* ---- several at a time ---- */

struct asker {
    struct bh_fetch *fetch;
    char url[200];
    struct bh_https_response answer;
    pthread_t thread;
};

static void *
ask_alone(void *self)
{
    struct asker *asker = self;
    struct bh_https port = bh_fetch_port(asker->fetch);
    struct bh_https_request request = { .url = asker->url };
    struct bh_arena *own = bh_arena_new(ARENA_MAX);
    struct bh_err err;

    asker->answer.status = 999;
    BH_ASSERT(bh_https_ask(&port, &request, own, &asker->answer, &err) == BH_OK);
    asker->answer.body = NULL;
    bh_arena_free(own);
    return NULL;
}

static void
begin_ask(struct asker *asker, struct bh_fetch *fetch, const char *path)
{
    asker->fetch = fetch;
    snprintf(asker->url, sizeof asker->url, "%s", url_at("https://127.0.0.1", site.server, path));
    assert_int_equal(pthread_create(&asker->thread, NULL, ask_alone, asker), 0);
}

static void
several(void **state)
{
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch = fetch_test_start(&options);
    struct asker askers[TOGETHER];

    for (size_t i = 0; i < BH_COUNT(askers); i++)
        begin_ask(&askers[i], fetch, "/together");
    for (size_t i = 0; i < BH_COUNT(askers); i++) {
        pthread_join(askers[i].thread, NULL);
        BH_CHECK_EQ("together", askers[i].answer.status, 200);
    }
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

static void
too_many_then_stopped(void **state)
{
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch = fetch_test_start(&options);
    uint32_t before = bh_test_server_accepted(site.server);
    struct asker askers[BH_FETCH_PENDING_MAX];

    for (size_t i = 0; i < BH_COUNT(askers); i++)
        begin_ask(&askers[i], fetch, "/silent");
    bh_test_server_await(site.server, before + BH_FETCH_PENDING_MAX);
    BH_CHECK_EQ("one more", get_path(fetch, "/ok").cause, BH_HTTPS_BUSY);
    bh_fetch_stop(fetch);
    for (size_t i = 0; i < BH_COUNT(askers); i++) {
        pthread_join(askers[i].thread, NULL);
        BH_CHECK_EQ("stopped", askers[i].answer.cause, BH_HTTPS_PROCESS);
    }
    BH_CHECK_DONE();
}

/* ---- a process that goes ---- */

static void
killed_in_the_middle(void **state)
{
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch = fetch_test_start(&options);
    pid_t first = bh_fetch_process(fetch);
    uint32_t before;
    struct asker asker;

    BH_CHECK_EQ("before", get_path(fetch, "/ok").status, 200);
    before = bh_test_server_accepted(site.server);
    begin_ask(&asker, fetch, "/silent");
    bh_test_server_await(site.server, before + 1);
    kill(first, SIGKILL);
    pthread_join(asker.thread, NULL);
    BH_CHECK_EQ("killed", asker.answer.status, 0);
    BH_CHECK_EQ("killed", asker.answer.cause, BH_HTTPS_PROCESS);
    BH_CHECK_EQ("another", get_path(fetch, "/ok").status, 200);
    BH_CHECK("another", bh_fetch_process(fetch) != first);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

static void
fetch_test_hangs(void **state)
{
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch;
    pid_t first;

    options.timeout_ms = 3000;
    fetch = fetch_test_start(&options);
    first = bh_fetch_process(fetch);
    BH_CHECK_EQ("before", get_path(fetch, "/ok").status, 200);
    kill(first, SIGSTOP);
    BH_CHECK_EQ("hangs", get_path(fetch, "/ok").cause, BH_HTTPS_PROCESS);
    BH_CHECK_EQ("another", get_path(fetch, "/ok").status, 200);
    BH_CHECK("another", bh_fetch_process(fetch) != first);
    BH_CHECK("the first is gone", kill(first, 0) != 0);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

/* The lines of /proc/PID/status that say what a process may do. */
static void
read_status(pid_t pid, struct bh_buf *text)
{
    char path[64];
    struct bh_err err;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    assert_int_equal(bh_file_read(path, 8000, text, &err), BH_OK);
    assert_non_null(bh_buf_text(text));
}

static void
sandboxed(void **state)
{
    static const char *const lines[] = { "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n",
                                         "\nCapEff:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n" };
    struct bh_fetch_options options = usual();
    int inherited = dup2(2, 100); /* not closed on exec */
    struct bh_fetch *fetch = fetch_test_start(&options);
    char path[64], memory[8192];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    read_status(bh_fetch_process(fetch), &text);
    for (size_t i = 0; i < BH_COUNT(lines); i++)
        BH_CHECK(lines[i], strstr(text.bytes, lines[i]));
    BH_CHECK("nobody", geteuid() != 0 || strstr(text.bytes, "\nUid:\t65534\t65534\t65534"));
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)bh_fetch_process(fetch), inherited);
    BH_CHECK("descriptors", access(path, F_OK) != 0);
    close(inherited);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

/* Mounts that no other process sees; false: not root. */
static bool
own_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void
put_file_over(const char *slot, const char *text, char *ret_path, size_t size)
{
    fetch_test_write_file("over", text, ret_path, size);
    assert_int_equal(chmod(ret_path, 0644), 0);
    assert_int_equal(mount(ret_path, slot, NULL, MS_BIND, NULL), 0);
}

/* The rules for files hold those of the start: when the resolver's are replaced, the next
 * question starts a process that can read them. */
static void
replaced_files(void **state)
{
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch;
    char hosts[64], url[100];
    pid_t first;

    if (!own_mounts()) {
        print_message("# left out: this machine gives no mounts of one's own\n");
        return;
    }
    snprintf(url, sizeof url, "https://op.invalid:%u/ok", bh_test_server_port(site.server));
    fetch = fetch_test_start(&options);
    first = bh_fetch_process(fetch);
    BH_CHECK_EQ("before", fetch_test_get(fetch, url).cause, BH_HTTPS_RESOLVE);
    BH_CHECK_EQ("before", bh_fetch_process(fetch), first);
    put_file_over("/etc/hosts", "127.0.0.1 op.invalid\n169.254.169.254 meta.invalid\n", hosts, sizeof hosts);
    BH_CHECK_EQ("after: resolved, of another name", fetch_test_get(fetch, url).cause, BH_HTTPS_UNTRUSTED);
    BH_CHECK("another", bh_fetch_process(fetch) != first);
    BH_CHECK_EQ("a name for metadata", fetch_test_get(fetch, "https://meta.invalid").cause, BH_HTTPS_PRIVATE);
    assert_int_equal(umount("/etc/hosts"), 0);
    unlink(hosts);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

/* A resolver's thread that waits for a name server must not keep others waiting. */
static void
silent_resolver(void **state)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(53),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct bh_fetch_options options = usual();
    struct bh_fetch *fetch;
    char conf[64];
    pid_t first;

    if (!own_mounts() || bind(server, (const void *)&at, sizeof at) != 0) {
        close(server);
        print_message("# left out: this machine gives no mounts of one's own\n");
        return;
    }
    put_file_over("/etc/resolv.conf", "nameserver 127.0.0.1\n", conf, sizeof conf);
    options.timeout_ms = 3000;
    fetch = fetch_test_start(&options);
    first = bh_fetch_process(fetch);
    for (int i = 0; i < 2; i++)
        BH_CHECK_EQ("silent", fetch_test_get(fetch, "https://op.invalid").cause, BH_HTTPS_TIMEOUT);
    BH_CHECK_EQ("another", get_path(fetch, "/ok").status, 200);
    BH_CHECK_EQ("the same process", bh_fetch_process(fetch), first);
    bh_fetch_stop(fetch);
    assert_int_equal(umount("/etc/resolv.conf"), 0);
    unlink(conf);
    close(server);
    BH_CHECK_DONE();
}

static void
wrong_options(void **state)
{
    static const char *blocks[] = { "10.0.0.0/8", "gpu.example" };
    static const struct bh_fetch_certificate colon = { "a", "b:c", "d" };
    static const struct bh_fetch_certificate missing = { "a", "/nowhere", "/nowhere" };
    const struct {
        const char *name;
        struct bh_fetch_options options;
        bh_rc rc;
        const char *part;
    } rows[] = {
        { "a password",
          { .program = site.program, .proxy = "http://me:word@proxy:1" },
          BH_INVALID,
          "password" },
        { "no program", { .program = NULL }, BH_INVALID, "no fetch program" },
        { "not there", { .program = "/nowhere" }, BH_UNAVAILABLE, "/nowhere" },
        { "not it", { .program = "/bin/true" }, BH_UNAVAILABLE, "closed" },
        { "no CA", { .program = site.program, .ca = "/nowhere" }, BH_INVALID, "/nowhere" },
        { "empty CA", { .program = site.program, .ca = site.empty }, BH_INVALID, "is empty" },
        { "blocks", { .program = site.program, .allow = { blocks, 2 } }, BH_INVALID, "gpu.example" },
        { "colon",
          { .program = site.program, .certificates = &colon, .certificate_count = 1 },
          BH_INVALID,
          "':'" },
        { "missing",
          { .program = site.program, .certificates = &missing, .certificate_count = 1 },
          BH_INVALID,
          "/nowhere" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_fetch *fetch = NULL;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(rows[i].name, bh_fetch_start(&rows[i].options, &fetch, &err), rows[i].rc);
        BH_CHECK(err.msg, strstr(err.msg, rows[i].part));
        BH_CHECK(rows[i].name, !fetch);
    }
    BH_CHECK_STR("text", bh_https_cause_text(BH_HTTPS_TIMEOUT), "no answer in time");
    BH_CHECK_STR("text", bh_https_cause_text(BH_HTTPS_CAUSES), "unknown cause");
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fetch_test_answers),
    cmocka_unit_test(requests),
    cmocka_unit_test(small_arena),
    cmocka_unit_test(trust),
    cmocka_unit_test(client_certificates),
    cmocka_unit_test(fetch_test_addresses),
    cmocka_unit_test(by_proxy),
    cmocka_unit_test(slow),
    cmocka_unit_test(several),
    cmocka_unit_test(too_many_then_stopped),
    cmocka_unit_test(killed_in_the_middle),
    cmocka_unit_test(fetch_test_hangs),
    cmocka_unit_test(sandboxed),
    cmocka_unit_test(replaced_files),
    cmocka_unit_test(silent_resolver),
    cmocka_unit_test(wrong_options),
};

int
main(int argc, char **argv)
{
    int failed;

    if (argc != 2) {
        fputs("usage: fetch_test BULKHEAD-FETCH\n", stderr);
        return 2;
    }
    site.program = argv[1];
    signal(SIGPIPE, SIG_IGN);
    arena = bh_arena_new(ARENA_MAX);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    failed = cmocka_run_group_tests(tests, fetch_test_set_up, fetch_test_tear_down);
    bh_arena_free(arena);
    return failed;
}
