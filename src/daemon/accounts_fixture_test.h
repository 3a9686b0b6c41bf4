#ifndef BH_DAEMON_ACCOUNTS_FIXTURE_TEST_H
#define BH_DAEMON_ACCOUNTS_FIXTURE_TEST_H

/* The API with people on a core, without a server and without a thread: requests as they come
 * over HTTPS from an address, and a clock that tests move.  Tests only. */

#include "api/api.h"
#include "daemon/batch.h"
#include "daemon/dispatch.h"
#include "daemon/fixture_test.h"
#include "daemon/unauthenticated.h"
#include "accounts/accounts.h"

static const char accounts_site[] =
    "tenants:\n"
    "  - {name: acme}\n"
    "skus:\n"
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"
    "principals:\n"
    "  - {name: ada, account: true}\n"
    "  - {name: bob, account: true, break_glass: true}\n"
    "  - {name: carol, uid: 2003}\n"
    "bindings:\n"
    "  - {role: admin, principal: ada, tenant: '*'}\n"
    "  - {role: developer, principal: bob, tenant: acme}\n"
    "  - {role: admin, principal: carol, tenant: '*'}\n";

struct site {
    struct fixture f;
    struct bh_https https;       /* in the network's place */
    struct bh_streams_port streams; /* NULL: none */
    struct bh_owner owner;
    struct bh_accounts *accounts;
    struct bh_api *api;
    /* the last reply */
    uint32_t status;
    char text[65536], challenge[200];
    struct bh_json *json;
};

static uint64_t clock_ns = UINT64_C(1795000000000000000);

static inline uint64_t
clock_now(void)
{
    return clock_ns;
}

static inline bh_rc
owner_command(void *self, const struct bh_command *command, struct bh_arena *arena,
              struct bh_answer *ret_answer, struct bh_err *err)
{
    struct site *s = self;
    bh_rc rc = bh_dispatch_run(&s->f.core, command, arena, ret_answer, err);

    assert_false(bh_core_is_fatal(rc));
    assert_int_equal(bh_core_commit(&s->f.core, &s->f.err), BH_OK);
    return rc;
}

static inline void
owner_refused(void *self, const struct bh_caller *caller, const struct bh_refused_request *attempt,
              const struct bh_err *err)
{
    struct site *s = self;
    const struct bh_counted_refusal what = { *attempt, err->rc, 1 };

    if (caller->subject.principal.v == 0
        && (caller->via != BH_VIA_PEER || err->rc != BH_UNAUTHENTICATED))
        return; /* as daemon/owner.c has it */
    assert_int_equal(bh_command_refused(&s->f.core, caller, &what), BH_OK);
    assert_int_equal(bh_core_commit(&s->f.core, &s->f.err), BH_OK);
}

static inline void
owner_unauthenticated(void *self, uint64_t token)
{
    struct site *s = self;
    struct bh_unauthenticated unauthenticated = { .items = { { 0 } } };

    bh_unauthenticated_add(&unauthenticated, token);
    assert_int_equal(bh_unauthenticated_record(&s->f.core, &unauthenticated, &s->f.err), BH_OK);
    assert_int_equal(bh_core_commit(&s->f.core, &s->f.err), BH_OK);
}

static inline const struct bh_directory *
owner_directory(void *self)
{
    return bh_catalog_get(((struct site *)self)->f.core.catalog);
}

static inline void
owner_directory_put(void *self, const struct bh_directory *dir)
{
    bh_catalog_put(((struct site *)self)->f.core.catalog, dir);
}

static const struct bh_owner_ops owner_ops = {
    .command = owner_command, .refused = owner_refused, .unauthenticated = owner_unauthenticated, .directory_get = owner_directory,
    .directory_put = owner_directory_put,
};

static inline void
open_accounts(struct site *s)
{
    struct bh_accounts_options options = { .owner = s->owner, .store = s->f.core.store,
                                         .crypto = &bh_crypto_openssl, .now = clock_now,
                                         .keys = s->f.core.ring.keys,
                                         .https = s->https, .secrets_dir = s->f.folder,
                                         .state_dir = s->f.folder, .hash_kib = 64 };
    struct bh_api_options api = { .owner = s->owner, .store = s->f.core.store, .now = clock_now,
                                  .crypto = &bh_crypto_openssl, .version = "test",
                                  .streams = s->streams,
                                  .job_uid_first = 100000 };

    assert_int_equal(bh_accounts_open(&options, &s->accounts, &s->f.err), BH_OK);
    api.accounts = bh_accounts_port(s->accounts);
    s->api = bh_api_new(&api);
}

static inline void
close_accounts(struct site *s)
{
    bh_api_free(s->api);
    bh_accounts_close(s->accounts);
}

/* As the daemon does when it is started anew. */
static inline void
accounts_fixture_restart(struct site *s)
{
    close_accounts(s);
    close_core(&s->f);
    assert_int_equal(open_core(&s->f), BH_OK);
    open_accounts(s);
}

static inline void
open_site_with(struct site *s, const char *yaml, struct bh_https https)
{
    memset(s, 0, sizeof *s);
    s->https = https;
    fixture_setup(&s->f);
    s->owner = (struct bh_owner){ &owner_ops, s };
    if (yaml)
        assert_int_equal(fixture_apply(&s->f, yaml), BH_OK);
    open_accounts(s);
}

static inline void
accounts_fixture_open_site(struct site *s, const char *yaml)
{
    open_site_with(s, yaml, (struct bh_https){ .ops = NULL });
}

static inline void
accounts_fixture_close_site(struct site *s)
{
    bh_json_free(s->json);
    close_accounts(s);
    fixture_teardown(&s->f);
}

static inline const char *
no_query(const struct bh_request *request, const char *name)
{
    return NULL;
}

static inline void
no_queries(const struct bh_request *request,
           void (*sink)(void *self, const char *name, const char *value), void *self)
{
}

struct sent {
    enum bh_method method;
    const char *path, *body, *bearer, *address, *type;
    uint32_t uid;                /* over the socket, where it is not 0 */
    uint8_t certificate;         /* shown: a thumbprint of this byte */
};

static inline void
send_sent(struct site *s, const struct sent *sent)
{
    struct bh_transport peer = { .unix_socket = sent->uid != 0, .uid = sent->uid,
                                 .gids = { sent->uid }, .gid_count = 1 };
    struct bh_arena *arena = bh_arena_new(16 << 20);
    char header[120];
    struct bh_request request = {
        .method = sent->method, .path = sent->path, .content_type = sent->type, .body = sent->body ? sent->body : "",
        .body_length = sent->body ? strlen(sent->body) : 0, .transport = &peer, .arena = arena,
        .query = no_query, .each_query = no_queries,
    };
    struct bh_reply reply = { 0 };

    memset(peer.certificate, sent->certificate, sizeof peer.certificate);
    snprintf(peer.address, sizeof peer.address, "%s", sent->address ? sent->address : "192.0.2.1");
    memcpy(peer.block, peer.address, sizeof peer.block);
    snprintf(header, sizeof header, "Bearer %s", sent->bearer ? sent->bearer : "");
    if (sent->bearer)
        request.authorization = header;
    bh_buf_init(&reply.body, 1 << 20);
    bh_api_handle(s->api, &request, &reply);
    s->status = reply.status;
    snprintf(s->challenge, sizeof s->challenge, "%s",
             reply.header_count ? reply.headers[0].value : "");
    snprintf(s->text, sizeof s->text, "%.*s", (int)reply.body.length, reply.body.bytes);
    bh_json_free(s->json);
    s->json = NULL;
    if (bh_json_parse(s->text, strlen(s->text), &s->json, &s->f.err) != BH_OK)
        s->json = NULL;
    bh_buf_fini(&reply.body);
    bh_arena_free(arena);
}

#define SEND(s, ...) send_sent(s, &(struct sent){ __VA_ARGS__ })

/* A text of the last reply, copied. */
static inline const char *
accounts_fixture_text_of(struct site *s, const char *key)
{
    return bh_arena_strdup(s->f.arena, bh_json_text(bh_json_get(bh_json_root(s->json), key), ""));
}

static inline const char *
body_of(struct site *s, const char *format, ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return bh_arena_strdup(s->f.arena, text);
}

#endif
