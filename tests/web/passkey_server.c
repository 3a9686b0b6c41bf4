/* Passkeys without the rest: one account, its page, the second step of a sign-in, over the
 * real server, pages and checks.  For tests/web/passkey.py.
 *
 *     passkey_server GOLDEN-FOLDER
 *
 * Prints "PORT CERTIFICATE-FILE" and serves https://localhost:PORT until standard input
 * ends.  What happened to the last answer is the text of /verdict. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "identity/webauthn.h"
#include "http_server/server.h"
#include "ports/crypto.h"
#include "web/account_pages.h"
#include "web/form.h"
#include "web/headers.h"
#include "web/signin_pages.h"

static const struct bh_crypto_ops *crypto = &bh_crypto_openssl;
static const char secret[] = "the session's secret";
static const struct bh_webauthn_user user = { "0123456789abcdef", 16, "ada" };

static struct {
    pthread_mutex_t mutex;
    const char *golden;
    char origin[64], csrf[BH_SECRET_TEXT];
    struct bh_webauthn ceremony;
    struct bh_passkey passkeys[BH_PASSKEYS_MAX];
    uint32_t count;
    char verdict[64];
} site = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static struct bh_webauthn_site
relying_party(void)
{
    static const char *origin;

    origin = site.origin;
    return (struct bh_webauthn_site){ "localhost", "Example's GPUs", { &origin, 1 } };
}

static struct bh_page_frame
frame_of(const char *account, enum bh_notice notice)
{
    return (struct bh_page_frame){
        .site = "Example's GPUs", .account = account, .csrf = site.csrf, .notice = notice
    };
}

static void
show_account(struct bh_reply *reply, enum bh_notice notice)
{
    struct bh_passkey_view views[BH_PASSKEYS_MAX];
    struct bh_account_view view = { .frame = frame_of("ada", notice), .passkeys = views };

    for (; view.passkey_count < site.count; view.passkey_count++)
        views[view.passkey_count] =
            (struct bh_passkey_view){ .id = site.passkeys[view.passkey_count].id,
                                      .name = site.passkeys[view.passkey_count].name };
    bh_page_headers(reply, 200, true);
    bh_account_page(&reply->body, &view);
}

static void
show_signin(struct bh_reply *reply, enum bh_notice notice)
{
    struct bh_signin_view view = {
        .frame = frame_of(NULL, notice), .passkey = true, .account = "", .next = ""
    };

    bh_page_headers(reply, 200, true);
    bh_signin_page(&reply->body, &view);
}

static void
begin(enum bh_webauthn_kind kind)
{
    uint8_t random[BH_SECRET_BYTES];
    struct bh_err err;

    BH_ASSERT(crypto->random(random, sizeof random, &err) == BH_OK);
    bh_webauthn_begin(&site.ceremony, kind, random, bh_time_now());
}

static void
send_options(struct bh_reply *reply, enum bh_webauthn_kind kind)
{
    struct bh_webauthn_site party = relying_party();
    struct bh_passkeys known = { site.passkeys, site.count };

    begin(kind);
    reply->status = 200;
    bh_buf_puts(&reply->body, "{\"challenge\":\"the only one\",\"options\":");
    if (kind == BH_WEBAUTHN_CREATE)
        bh_webauthn_put_creation(&reply->body, &party, &user, &known, &site.ceremony);
    else
        bh_webauthn_put_request(&reply->body, &party, &known, &site.ceremony);
    bh_buf_putc(&reply->body, '}');
}

static enum bh_identity_fault
take_creation(const struct bh_webauthn_response *answer)
{
    struct bh_webauthn_site party = relying_party();
    struct bh_passkeys known = { site.passkeys, site.count };
    struct bh_passkey passkey;
    enum bh_identity_fault fault =
        bh_webauthn_register(&party, &site.ceremony, answer, bh_time_now(), &passkey);

    if (fault != BH_FAULT_NONE)
        return fault;
    if (bh_passkeys_find(&known, passkey.id))
        return BH_FAULT_PASSKEY_KNOWN;
    if (site.count == BH_PASSKEYS_MAX)
        return BH_FAULT_PASSKEY_MANY;
    site.passkeys[site.count++] = passkey;
    return BH_FAULT_NONE;
}

static enum bh_identity_fault
take_assertion(const struct bh_webauthn_response *answer)
{
    struct bh_webauthn_site party = relying_party();
    struct bh_webauthn_owner owner = { &party, &user, { site.passkeys, site.count } };
    struct bh_webauthn_proof proof;
    enum bh_identity_fault fault = bh_webauthn_assert(&owner, &site.ceremony, answer, bh_time_now(), &proof);

    if (fault != BH_FAULT_NONE)
        return fault;
    for (uint32_t i = 0; i < site.count; i++)
        if (strcmp(site.passkeys[i].id, proof.passkey.id) == 0)
            site.passkeys[i] = proof.passkey;
    return proof.cloned ? BH_FAULT_WEBAUTHN_SIGNATURE : BH_FAULT_NONE;
}

static void
take_answer(const struct bh_request *request, struct bh_reply *reply, const char *text)
{
    enum bh_webauthn_kind kind = site.ceremony.kind;
    struct bh_webauthn_response answer;
    enum bh_identity_fault fault = bh_webauthn_parse(text, strlen(text), kind, request->arena, &answer);

    if (fault == BH_FAULT_NONE)
        fault = kind == BH_WEBAUTHN_CREATE ? take_creation(&answer) : take_assertion(&answer);
    snprintf(site.verdict, sizeof site.verdict, "%s", bh_fault_name(fault));
    if (kind == BH_WEBAUTHN_CREATE)
        show_account(reply, fault == BH_FAULT_NONE ? BH_NOTICE_PASSKEY_ADDED : BH_NOTICE_REFUSED);
    else if (fault == BH_FAULT_NONE)
        show_account(reply, BH_NOTICE_NONE);
    else
        show_signin(reply, BH_NOTICE_REFUSED);
}

static void
take_post(const struct bh_request *request, struct bh_reply *reply)
{
    static struct bh_form form;
    enum bh_identity_fault fault = bh_form_receive(request, site.origin, site.csrf, &form);
    const char *answer = bh_form_get(&form, "answer");

    if (fault != BH_FAULT_NONE || !answer)
        reply->status = 403;
    else if (strcmp(request->path, "/account/passkey/options") == 0)
        send_options(reply, BH_WEBAUTHN_CREATE);
    else if (strcmp(request->path, "/signin/passkey/options") == 0)
        send_options(reply, BH_WEBAUTHN_GET);
    else
        take_answer(request, reply, answer);
}

/* The pages as they were last looked at; their assets have no digest in the address. */
static void
show_golden(const char *name, struct bh_reply *reply)
{
    char path[1024];
    struct bh_err err;

    snprintf(path, sizeof path, "%s/%s", site.golden, name);
    bh_page_headers(reply, 200, true);
    if (strchr(name, '/') || bh_file_read(path, 1 << 20, &reply->body, &err) != BH_OK)
        reply->status = 404;
}

static void
show(const char *path, struct bh_reply *reply)
{
    const struct bh_asset *asset = bh_asset_find(path);

    for (const struct bh_asset *each = bh_assets; each->name && !asset; each++)
        if (strncmp(path, "/assets/", 8) == 0 && strcmp(path + 8, each->name) == 0)
            asset = each;
    if (asset)
        bh_asset_reply(reply, asset);
    else if (strcmp(path, "/account") == 0)
        show_account(reply, BH_NOTICE_NONE);
    else if (strcmp(path, "/signin") == 0)
        show_signin(reply, BH_NOTICE_NONE);
    else if (strcmp(path, "/verdict") == 0)
        bh_buf_puts(&reply->body, site.verdict);
    else if (strcmp(path, "/live") == 0 || strstr(path, "/log/live"))
        reply->status = 204; /* pages stay as they are */
    else if (strncmp(path, "/golden/", 8) == 0)
        show_golden(path + 8, reply);
    else
        reply->status = 404;
}

static void
serve(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    reply->status = 200;
    pthread_mutex_lock(&site.mutex);
    if (request->method == BH_GET)
        show(request->path, reply);
    else
        take_post(request, reply);
    pthread_mutex_unlock(&site.mutex);
}

int
main(int argc, char **argv)
{
    char certificate[4096], key[2048], path[] = "/tmp/bh-passkey-XXXXXX", byte;
    struct bh_server_options options = { .handler = serve, .certificate = certificate, .key = key };
    struct bh_server *server = NULL;
    struct bh_err err;
    int file;

    if (argc != 2)
        return 2;
    site.golden = argv[1];
    if (crypto->make_certificate("localhost", certificate, sizeof certificate, key, sizeof key, &err) != BH_OK
        || bh_tcp_listen("127.0.0.1", 0, &options.fd, &err) != BH_OK)
        return 1;
    snprintf(site.origin, sizeof site.origin, "https://localhost:%u", bh_tcp_port(options.fd));
    bh_csrf_token(secret, site.csrf);
    file = mkstemp(path);
    if (file < 0 || bh_fd_write_all(file, certificate, strlen(certificate), &err) != BH_OK)
        return 1;
    close(file);
    if (bh_server_start(&options, &server, &err) != BH_OK)
        return 1;
    printf("%s %s\n", site.origin, path);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    unlink(path);
    bh_server_stop(server);
    return 0;
}
