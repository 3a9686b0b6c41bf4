#include "people/people.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "base/assert.h"
#include "base/fd.h"
#include "people/account.h"
#include "people/challenge.h"
#include "people/counts.h"
#include "people/factor.h"
#include "people/first.h"
#include "people/grant.h"
#include "people/oidc.h"
#include "people/passkeys.h"
#include "people/people_internal.h"
#include "people/session.h"
#include "people/sessions.h"

bh_ns
bh_people_now(const struct bh_people *people)
{
    return people->options.now ? people->options.now() : bh_time_now();
}

bh_rc
bh_people_random_hex(const struct bh_people *people, size_t bytes, char *ret_text,
                     struct bh_err *err)
{
    uint8_t random[64];
    struct bh_buf text;
    bh_rc rc;

    BH_ASSERT(bytes <= sizeof random);
    rc = people->options.crypto->random(random, bytes, err);
    bh_buf_init_fixed(&text, ret_text, 2 * bytes + 1);
    bh_buf_put_hex(&text, random, bytes);
    bh_buf_text(&text);
    explicit_bzero(random, sizeof random);
    return rc;
}

/* Who is not known yet has no request id either. */
static bh_rc
number(struct bh_people *people, struct bh_call *call, struct bh_err *err)
{
    static const uint8_t none[16];

    if (memcmp(call->caller.request_id, none, sizeof none) != 0)
        return BH_OK;
    return people->options.crypto->random(call->caller.request_id,
                                          sizeof call->caller.request_id, err);
}

bh_rc
bh_people_commit(struct bh_people *people, struct bh_call *call,
                 const struct bh_people_change *change, struct bh_answer *ret_answer,
                 struct bh_err *err)
{
    const struct bh_owner *owner = &people->options.owner;
    struct bh_command command = { .op = call->op->id, .people = change };
    bh_rc rc = number(people, call, err);

    if (rc != BH_OK)
        return rc;
    command.caller = call->caller;
    call->recorded = true;
    *ret_answer = (struct bh_answer){ 0 };
    return owner->ops->command(owner->self, &command, call->arena, ret_answer, err);
}

/* ---- what was begun ---- */

static bool
is_free(const struct bh_pending *pending, bh_ns now)
{
    return pending->kind == BH_PENDING_NONE || pending->expires <= now;
}

/* What strangers begin takes no place from people who are signed in. */
static struct bh_pending *
oldest_of_strangers(struct bh_people *people)
{
    struct bh_pending *oldest = NULL;

    for (uint32_t i = 0; i < BH_PENDING_MAX; i++) {
        struct bh_pending *at = &people->pending[i];

        if (at->principal == 0 && (!oldest || at->expires < oldest->expires))
            oldest = at;
    }
    return oldest;
}

bh_rc
bh_pending_put(struct bh_people *people, const struct bh_pending *draft, char ret_id[33],
               struct bh_err *err)
{
    bh_ns now = bh_people_now(people);
    struct bh_pending *place = NULL;
    bh_rc rc = bh_people_random_hex(people, 16, ret_id, err);

    if (rc != BH_OK)
        return rc;
    pthread_mutex_lock(&people->mutex);
    for (uint32_t i = 0; i < BH_PENDING_MAX; i++) {
        struct bh_pending *at = &people->pending[i];

        if (draft->principal && at->kind == draft->kind && at->principal == draft->principal)
            *at = (struct bh_pending){ 0 }; /* begun anew: the one before is void */
        if (!place && is_free(at, now))
            place = at;
    }
    if (!place)
        place = oldest_of_strangers(people);
    if (place) {
        *place = *draft;
        memcpy(place->id, ret_id, sizeof place->id);
    }
    pthread_mutex_unlock(&people->mutex);
    return place ? BH_OK : bh_err_set(err, BH_UNAVAILABLE, "too many sign-ins are under way");
}

bool
bh_pending_take(struct bh_people *people, enum bh_pending_kind kind, const char *id,
                uint32_t principal, struct bh_pending *ret_pending)
{
    bh_ns now = bh_people_now(people);
    bool found = false;

    pthread_mutex_lock(&people->mutex);
    for (uint32_t i = 0; i < BH_PENDING_MAX && !found; i++) {
        struct bh_pending *at = &people->pending[i];

        if (at->kind != kind || at->expires <= now
            || (principal != BH_ANYBODY && at->principal != principal)
            || (id && strcmp(at->id, id) != 0))
            continue;
        *ret_pending = *at;
        explicit_bzero(at, sizeof *at);
        found = true;
    }
    pthread_mutex_unlock(&people->mutex);
    return found;
}

/* ---- operations ---- */

static const bh_people_resource_fn resources[BH_OPERATIONS] = {
    [BH_OP_SIGN_IN_WAYS] = bh_serve_ways,
    [BH_OP_SIGN_IN] = bh_serve_sign_in,
    [BH_OP_SIGN_IN_CHALLENGE] = bh_serve_challenge,
    [BH_OP_SIGN_IN_ISSUER] = bh_serve_issuer,
    [BH_OP_SIGN_IN_RETURN] = bh_serve_return,
    [BH_OP_SIGN_IN_DEVICE] = bh_serve_device,
    [BH_OP_SIGN_IN_POLL] = bh_serve_poll,
    [BH_OP_SIGN_IN_LOGOUT] = bh_serve_logout,
    [BH_OP_SIGN_IN_GRANT] = bh_serve_grant,
    [BH_OP_SIGN_IN_CODE] = bh_serve_code,
    [BH_OP_SIGN_IN_FIRST] = bh_serve_first,
    [BH_OP_SIGN_OUT] = bh_serve_sign_out,
    [BH_OP_PROVE] = bh_serve_prove,
    [BH_OP_BREAK_GLASS] = bh_serve_glass,
    [BH_OP_SESSION_LIST] = bh_serve_sessions,
    [BH_OP_SESSION_END] = bh_serve_session_end,
    [BH_OP_ACCOUNT_GET] = bh_serve_account,
    [BH_OP_ACCOUNT_PASSWORD] = bh_serve_password,
    [BH_OP_TOTP_BEGIN] = bh_serve_totp_begin,
    [BH_OP_TOTP_CONFIRM] = bh_serve_totp_confirm,
    [BH_OP_TOTP_REMOVE] = bh_serve_totp_remove,
    [BH_OP_RECOVERY_MAKE] = bh_serve_recovery,
    [BH_OP_PASSKEY_BEGIN] = bh_serve_passkey_begin,
    [BH_OP_PASSKEY_ADD] = bh_serve_passkey_add,
    [BH_OP_PASSKEY_REMOVE] = bh_serve_passkey_remove,
    [BH_OP_ACCOUNT_LIST] = bh_serve_accounts,
    [BH_OP_ACCOUNT_ENROL] = bh_serve_enrol,
    [BH_OP_ACCOUNT_RESET] = bh_serve_reset,
};

static bh_rc
port_serve(void *self, struct bh_call *call, struct bh_err *err)
{
    bh_people_resource_fn resource = resources[call->op->id];

    if (!resource)
        return bh_err_set(err, BH_UNAVAILABLE, "this is not set up here");
    return resource(self, call, err);
}

static bh_rc
port_identify(void *self, const char *secret, struct bh_call *call, struct bh_err *err)
{
    return bh_session_identify(self, secret, call, err);
}

static void
port_token_used(void *self, const char *id, uint64_t now_ns)
{
    struct bh_people *people = self;

    pthread_mutex_lock(&people->mutex);
    bh_use_note(&people->uses, id, false, now_ns);
    pthread_mutex_unlock(&people->mutex);
}

struct bh_people_port
bh_people_port(struct bh_people *people)
{
    static const struct bh_people_ops ops = { port_serve, port_identify, port_token_used };

    return (struct bh_people_port){ &ops, people };
}

/* ---- from start to end ---- */

/* What devices that signed in before are known by; who loses it is a stranger again. */
static bh_rc
load_device_key(struct bh_people *people, struct bh_err *err)
{
    char path[4096];
    struct bh_buf text;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/device.key", people->options.state_dir);
    bh_buf_init_fixed(&text, people->device_key, sizeof people->device_key);
    rc = bh_file_read(path, sizeof people->device_key, &text, err);
    if (rc == BH_OK && text.length == sizeof people->device_key)
        return BH_OK;
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    rc = people->options.crypto->random(people->device_key, sizeof people->device_key, err);
    if (rc == BH_OK)
        rc = bh_file_replace(path, people->device_key, sizeof people->device_key, 0600, err);
    return rc;
}

bh_rc
bh_people_open(const struct bh_people_options *options, struct bh_people **ret_people,
               struct bh_err *err)
{
    BH_AUTO(bh_people_close) struct bh_people *people = calloc(1, sizeof *people);
    bh_rc rc;

    BH_ASSERT(people);
    people->options = *options;
    people->documents = (struct bh_documents){ options->store, options->keys };
    people->cost = bh_password_cost;
    if (options->hash_kib)
        people->cost = (struct bh_password_cost){ options->hash_kib, 1, 1 };
    pthread_mutex_init(&people->mutex, NULL);
    pthread_cond_init(&people->hash_freed, NULL);
    rc = load_device_key(people, err);
    if (rc == BH_OK)
        rc = bh_challenges_open(people, err);
    if (rc == BH_OK)
        rc = bh_counts_load(people, err);
    if (rc == BH_OK)
        rc = bh_first_offer(people, err);
    if (rc == BH_OK)
        *ret_people = bh_steal(&people);
    return rc;
}

void
bh_people_close(struct bh_people *people)
{
    if (!people)
        return;
    pthread_mutex_destroy(&people->mutex);
    pthread_cond_destroy(&people->hash_freed);
    explicit_bzero(people, sizeof *people);
    free(people);
}
