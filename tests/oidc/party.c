/* A relying party by the line: src/identity's state machines, and src/fetch to ask, against
 * whatever provider its arguments name.  oidc_test.py drives it.
 *
 *   party fetch=PROGRAM issuer=URL client=ID ca=FILE [secret=TEXT] [key=FILE kid=ID]
 *         [identity=CERTIFICATE:KEY] [redirect=URL] [scope=TEXT]
 *
 * Each line of standard input is a command with at most one argument; each answer is a
 * line: "ok ...", "fault NAME" or "error TEXT". */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/fd.h"
#include "fetch/fetch.h"
#include "identity/assertion.h"
#include "identity/device.h"
#include "identity/id_token.h"
#include "identity/jwks_cache.h"
#include "identity/logout.h"

enum { ARENA_MAX = 4 << 20, TEXT_MAX = 1 << 16 };

static struct {
    struct bh_fetch *fetch;
    const char *issuer;
    struct bh_relying_party client;
    struct bh_assertion_key *key;
    struct bh_arena *arena, *kept; /* of a command; of tokens */
    bh_ns ahead;                   /* of the clock */

    struct bh_provider provider;
    struct bh_jwks_cache keys;
    unsigned keys_asked;
    struct bh_login login;
    struct bh_device_login device;
    struct bh_tokens tokens;
    const char *spent; /* the refresh token before */
    struct bh_id_token who;
    struct bh_logout_replay seen;
} party;

static bh_ns
now(void)
{
    return bh_time_now() + party.ahead;
}

/* ---- answers of this program ---- */

static void
say_fault(enum bh_identity_fault fault)
{
    printf("fault %s\n", bh_fault_name(fault));
}

static void
say_error(const char *text)
{
    printf("error %s\n", text);
}

static void
say_who(void)
{
    printf("ok sub=%s groups=", party.who.subject);
    for (uint32_t i = 0; i < party.who.groups.count; i++)
        printf("%s%s", i ? "," : "", party.who.groups.items[i]);
    printf(" sid=%s refresh=%s\n", party.who.session, party.tokens.refresh ? "yes" : "no");
}

/* ---- asking ---- */

static struct bh_https_response
ask(const struct bh_https_request *request)
{
    struct bh_https port = bh_fetch_port(party.fetch);
    struct bh_https_response answer = { .body = "" };
    struct bh_err err;

    BH_ASSERT(bh_https_ask(&port, request, party.arena, &answer, &err) == BH_OK);
    if (answer.status == 0)
        fprintf(stderr, "party: %s: %s\n", request->url, bh_https_cause_text(answer.cause));
    return answer;
}

/* Us, with a fresh proof where one is due. */
static struct bh_relying_party
proved(void)
{
    struct bh_relying_party client = party.client;
    uint8_t random[BH_SECRET_BYTES];
    const struct bh_assertion_request wish = {
        .client = client.id, .audience = party.provider.token, .random = random, .now = now()
    };
    struct bh_err err;

    if (!party.key)
        return client;
    BH_ASSERT(getrandom(random, sizeof random, 0) == sizeof random);
    BH_ASSERT(bh_assertion_make(party.key, &wish, party.arena, &client.assertion, &err) == BH_OK);
    return client;
}

static void
ask_keys(bool unknown)
{
    struct bh_https_response answer;
    enum bh_identity_fault fault;

    if (!bh_jwks_cache_due(&party.keys, unknown, now()))
        return;
    party.keys_asked++;
    answer = ask(&(struct bh_https_request){ .url = party.provider.jwks });
    fault = bh_jwks_cache_receive(&party.keys, &answer, now());
    if (fault != BH_FAULT_NONE)
        fprintf(stderr, "party: keys: %s\n", bh_fault_name(fault));
}

static struct bh_jws_trust
trust(void)
{
    static const struct bh_jwks none = { .count = 0 };
    const struct bh_jwks *keys = bh_jwks_cache_keys(&party.keys, now());

    return (struct bh_jws_trust){ keys ? keys : &none, party.provider.algs };
}

/* ---- ID tokens ---- */

static enum bh_identity_fault
read_id_token(const char *nonce, const char *subject)
{
    const struct bh_id_token_rules rules = {
        .issuer = party.issuer,
        .client = party.client.id,
        .when = { .now = now(), .skew_s = 60, .issued_within_s = 600 },
        .nonce = nonce,
        .access_token = party.tokens.access,
        .subject = subject,
        .groups = "groups",
    };
    struct bh_jws_trust trusted;
    enum bh_identity_fault fault;

    ask_keys(false);
    trusted = trust();
    fault = bh_id_token_read(party.tokens.id, &trusted, &rules, party.kept, &party.who);
    if (fault != BH_FAULT_KEY_UNKNOWN)
        return fault;
    ask_keys(true);
    trusted = trust();
    return bh_id_token_read(party.tokens.id, &trusted, &rules, party.kept, &party.who);
}

static void
say_tokens(enum bh_identity_fault fault, const char *nonce, const char *subject)
{
    if (fault == BH_FAULT_NONE && party.tokens.id)
        fault = read_id_token(nonce, subject);
    if (fault != BH_FAULT_NONE)
        say_fault(fault);
    else
        say_who();
}

/* ---- commands ---- */

static void
discover(const char *argument)
{
    struct bh_https_request request;
    struct bh_https_response answer;
    enum bh_identity_fault fault;
    struct bh_err err;

    BH_ASSERT(bh_provider_ask(party.issuer, false, party.arena, &request, &err) == BH_OK);
    answer = ask(&request);
    fault = bh_provider_receive(&answer, party.issuer, false, &party.provider);
    if (fault != BH_FAULT_NONE)
        say_fault(fault);
    else
        printf("ok algs=%x iss=%d device=%s\n", party.provider.algs, party.provider.iss_parameter,
               party.provider.device);
}

static void
login(const char *argument)
{
    uint8_t random[BH_LOGIN_RANDOM];
    struct bh_buf url;

    BH_ASSERT(getrandom(random, sizeof random, 0) == sizeof random);
    bh_login_init(&party.login, random, now());
    bh_buf_init(&url, TEXT_MAX);
    BH_ASSERT(bh_login_begin(&party.provider, &party.client, &(struct bh_login_request){ .hint = NULL },
                             &party.login, &url)
              == BH_OK);
    printf("ok %s\n", bh_buf_text(&url));
    bh_buf_fini(&url);
}

static void
callback(const char *argument)
{
    enum bh_identity_fault fault = bh_login_callback(&party.login, &party.provider, argument, now());

    if (fault != BH_FAULT_NONE)
        say_fault(fault);
    else
        puts("ok");
}

/* The code for tokens; a second time this is the replay of a code. */
static void
tokens(const char *argument)
{
    struct bh_relying_party client = proved();
    struct bh_https_request request;
    struct bh_https_response answer;

    BH_ASSERT(bh_login_ask(&party.login, &party.provider, &client, party.arena, &request) == BH_OK);
    answer = ask(&request);
    say_tokens(bh_tokens_receive(&answer, true, party.kept, &party.tokens), party.login.nonce, NULL);
}

static void
refresh_with(const char *token)
{
    struct bh_relying_party client = proved();
    struct bh_https_request request;
    struct bh_https_response answer;
    struct bh_tokens fresh;
    enum bh_identity_fault fault;

    BH_ASSERT(bh_refresh_ask(&party.provider, &client, token, party.arena, &request) == BH_OK);
    answer = ask(&request);
    fault = bh_tokens_receive(&answer, false, party.kept, &fresh);
    if (fault == BH_FAULT_NONE) {
        party.spent = token;
        party.tokens = fresh;
        if (!party.tokens.refresh)
            party.tokens.refresh = token;
    }
    say_tokens(fault, NULL, party.who.subject);
}

static void
refresh(const char *argument)
{
    if (!party.tokens.refresh)
        say_error("no refresh token");
    else
        refresh_with(party.tokens.refresh);
}

static void
refresh_spent(const char *argument)
{
    if (!party.spent || strcmp(party.spent, party.tokens.refresh) == 0)
        say_error("no spent refresh token");
    else
        refresh_with(party.spent);
}

static void
userinfo(const char *argument)
{
    struct bh_https_request request = {
        .url = party.provider.userinfo,
        .authorization = bh_arena_printf(party.arena, "Bearer %s", party.tokens.access),
    };
    struct bh_https_response answer = ask(&request);
    enum bh_identity_fault fault = bh_userinfo_check(&answer, party.who.subject);

    if (fault != BH_FAULT_NONE)
        say_fault(fault);
    else
        puts("ok");
}

static void
device(const char *argument)
{
    struct bh_relying_party client = proved();
    struct bh_https_request request;
    struct bh_https_response answer;
    enum bh_identity_fault fault;

    if (bh_device_ask(&party.provider, &client, party.arena, &request) != BH_OK) {
        say_error("no device flow");
        return;
    }
    answer = ask(&request);
    fault = bh_device_begin(&answer, false, now(), &party.device);
    if (fault != BH_FAULT_NONE)
        say_fault(fault);
    else
        printf("ok %s %s\n", party.device.user_code, party.device.address);
}

/* The clock moves to the next poll: nothing waits. */
static void
poll_device(const char *argument)
{
    static const char *const states[] = { "waiting", "done", "denied", "expired" };
    struct bh_relying_party client = proved();
    struct bh_https_request request;
    struct bh_https_response answer;
    enum bh_identity_fault fault;

    if (party.device.next_poll > now())
        party.ahead += party.device.next_poll - now();
    if (!bh_device_due(&party.device, now())) {
        printf("ok %s\n", states[party.device.state]);
        return;
    }
    BH_ASSERT(bh_device_poll(&party.device, &party.provider, &client, party.arena, &request) == BH_OK);
    answer = ask(&request);
    fault = bh_device_receive(&party.device, &answer, now(), party.kept, &party.tokens);
    if (fault == BH_FAULT_NONE && party.device.state != BH_DEVICE_DONE)
        printf("ok %s\n", states[party.device.state]);
    else
        say_tokens(fault, NULL, NULL);
}

/* Poll once more with a code that gave tokens already. */
static void
poll_spent(const char *argument)
{
    party.device.state = BH_DEVICE_PENDING;
    poll_device(argument);
}

static void
logout_url(const char *argument)
{
    struct bh_logout_request wish = { .id_token_hint = party.tokens.id,
                                      .back = argument,
                                      .state = party.login.state };
    struct bh_buf url;

    bh_buf_init(&url, TEXT_MAX);
    if (bh_logout_url(&party.provider, &party.client, &wish, &url) != BH_OK)
        say_error("no page for it");
    else
        printf("ok %s\n", bh_buf_text(&url));
    bh_buf_fini(&url);
}

static void
logout_callback(const char *argument)
{
    enum bh_identity_fault fault = bh_logout_callback(party.login.state, argument);

    if (fault != BH_FAULT_NONE)
        say_fault(fault);
    else
        puts("ok");
}

static void
logout_token(const char *argument)
{
    const struct bh_logout_rules rules = { .issuer = party.issuer,
                                           .client = party.client.id,
                                           .when = { .now = now(), .skew_s = 60 } };
    struct bh_jws_trust trusted;
    struct bh_logout logout;
    enum bh_identity_fault fault;

    ask_keys(false);
    trusted = trust();
    fault = bh_logout_read(argument, &trusted, &rules, &party.seen, &logout);
    if (fault != BH_FAULT_NONE)
        say_fault(fault);
    else
        printf("ok sub=%s sid=%s\n", logout.subject, logout.session);
}

static void
keys(const char *argument)
{
    printf("ok asked=%u\n", party.keys_asked);
}

static void
advance(const char *argument)
{
    party.ahead += strtoull(argument, NULL, 10) * BH_NS_PER_S;
    puts("ok");
}

static const struct {
    const char *name;
    void (*run)(const char *argument);
    /* clang-format off */
} commands[] = {
    { "discover", discover },         { "login", login },
    { "callback", callback },         { "tokens", tokens },
    { "refresh", refresh },           { "refresh-spent", refresh_spent },
    { "userinfo", userinfo },         { "device", device },
    { "poll", poll_device },          { "poll-spent", poll_spent },
    { "logout-url", logout_url },     { "logout-callback", logout_callback },
    { "logout-token", logout_token }, { "keys", keys },
    { "advance", advance },
};
/* clang-format on */

static void
run_line(char *line)
{
    char *argument = strchr(line, ' ');

    if (argument)
        *argument++ = '\0';
    for (size_t i = 0; i < BH_COUNT(commands); i++) {
        if (strcmp(commands[i].name, line) != 0)
            continue;
        commands[i].run(argument ? argument : "");
        return;
    }
    say_error("no such command");
}

/* ---- arguments ---- */

static const char *
argument_of(int argc, char **argv, const char *name)
{
    size_t length = strlen(name);

    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return argv[i] + length + 1;
    return NULL;
}

static void
open_key(const char *path, const char *kid)
{
    struct bh_buf pem;
    struct bh_err err;

    bh_buf_init(&pem, TEXT_MAX);
    if (bh_file_read(path, TEXT_MAX - 1, &pem, &err) != BH_OK
        || bh_assertion_key_open(pem.bytes, pem.length, kid, &party.key, &err) != BH_OK) {
        fprintf(stderr, "party: %s\n", err.msg);
        exit(1);
    }
    bh_buf_fini(&pem);
}

static void
start_fetch(int argc, char **argv)
{
    static const char *loopback[] = { "127.0.0.0/8" };
    const char *identity = argument_of(argc, argv, "identity");
    char *files = identity ? strdup(identity) : NULL, *colon = files ? strchr(files, ':') : NULL;
    struct bh_fetch_certificate mine = { .name = "mine", .certificate = files };
    struct bh_fetch_options options = { .program = argument_of(argc, argv, "fetch"),
                                        .ca = argument_of(argc, argv, "ca"),
                                        .allow = { loopback, 1 } };
    struct bh_err err;

    if (colon) {
        *colon = '\0';
        mine.key = colon + 1;
        options.certificates = &mine;
        options.certificate_count = 1;
        party.client.certificate = "mine";
    }
    if (bh_fetch_start(&options, &party.fetch, &err) != BH_OK) {
        fprintf(stderr, "party: %s\n", err.msg);
        exit(1);
    }
    free(files);
}

int
main(int argc, char **argv)
{
    const char *key = argument_of(argc, argv, "key");
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    signal(SIGPIPE, SIG_IGN);
    party.issuer = argument_of(argc, argv, "issuer");
    party.client = (struct bh_relying_party){ .id = argument_of(argc, argv, "client"),
                                              .secret = argument_of(argc, argv, "secret"),
                                              .redirect = argument_of(argc, argv, "redirect"),
                                              .scope = argument_of(argc, argv, "scope") };
    party.arena = bh_arena_new(ARENA_MAX);
    party.kept = bh_arena_new(ARENA_MAX);
    if (key)
        open_key(key, argument_of(argc, argv, "kid"));
    start_fetch(argc, argv);
    while ((length = getline(&line, &size, stdin)) > 0) {
        line[strcspn(line, "\n")] = '\0';
        bh_arena_reset(party.arena);
        run_line(line);
        fflush(stdout);
    }
    free(line);
    bh_fetch_stop(party.fetch);
    bh_assertion_key_free(party.key);
    bh_arena_free(party.arena);
    bh_arena_free(party.kept);
    return 0;
}
