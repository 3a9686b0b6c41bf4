#include "accounts/attempt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/log.h"
#include "identity/secret.h"

/* Attempts are counted in one value in memory; what changed in it is written under the place
 * its place, so that a restart finds the same value. */

static const struct bh_field count_rows[] = {
    BH_F(struct bh_lockout_count, attempts, BH_FIELD_U32),
    BH_F(struct bh_lockout_count, day, BH_FIELD_NS),
    BH_F(struct bh_lockout_count, day_attempts, BH_FIELD_U32),
    BH_F(struct bh_lockout_count, key, BH_FIELD_HEX),
    BH_F(struct bh_lockout_count, locks, BH_FIELD_U32),
    BH_F(struct bh_lockout_count, since, BH_FIELD_NS),
    BH_F(struct bh_lockout_count, until, BH_FIELD_NS),
};
static const struct bh_fields count_fields = BH_FIELDS("lockout", struct bh_lockout_count, count_rows);

enum { COUNTERS = sizeof(struct bh_lockout) / sizeof(struct bh_lockout_count) };

static struct bh_lockout_count *
attempt_counter_at(struct bh_lockout *lockout, uint32_t at)
{
    _Static_assert(sizeof *lockout == COUNTERS * sizeof lockout->accounts[0], "counts and nothing else");
    return (struct bh_lockout_count *)(void *)lockout + at;
}

static bh_rc
attempt_put_count(const struct bh_lockout_count *count, uint32_t at, struct bh_arena *arena,
                  struct bh_document_put *ret_put, struct bh_err *err)
{
    static const uint8_t zeros[sizeof count->key];
    char memory[512];
    struct bh_buf text;

    *ret_put = (struct bh_document_put){
        .blind = true, .row = { .kind = BH_DOCUMENT_LOCKOUT, .key = bh_arena_printf(arena, "%" PRIu32, at) }
    };
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_json_encode(&text, &count_fields, count);
    if (memcmp(count->key, zeros, sizeof zeros) != 0 || count->attempts || count->until)
        ret_put->row.value = bh_buf_text(&text) ? bh_arena_strdup(arena, memory) : NULL;
    return ret_put->row.key ? BH_OK : bh_err_set(err, BH_FULL, "no room for a count");
}

/* What changed since it was last asked.  An attempt touches two places. */
static bh_rc
attempt_load_changes(struct bh_accounts *accounts, struct bh_arena *arena, struct bh_puts *puts,
                     struct bh_err *err)
{
    bh_rc rc = BH_OK;

    BH_ASSERT(bh_mutex_is_held(&accounts->mutex));
    for (uint32_t at = 0; at < COUNTERS && rc == BH_OK && puts->count < BH_PUTS_MAX; at++) {
        struct bh_lockout_count *is = attempt_counter_at(&accounts->lockout, at);
        struct bh_lockout_count *was = attempt_counter_at(&accounts->kept, at);

        if (memcmp(is, was, sizeof *is) == 0)
            continue;
        rc = attempt_put_count(is, at, arena, &puts->items[puts->count++], err);
        *was = *is;
    }
    return rc;
}

static bool
attempt_load_count(void *self, const struct bh_document_row *row)
{
    struct bh_accounts *accounts = self;
    unsigned long at = strtoul(row->key, NULL, 10);
    struct bh_arena *arena = bh_arena_new(4096);
    struct bh_lockout_count count = { 0 };
    struct bh_err err;

    if (at < COUNTERS
        && bh_json_decode(row->value, strlen(row->value), &count_fields, &count, arena, &err) == BH_OK)
        *attempt_counter_at(&accounts->lockout, (uint32_t)at) =
            *attempt_counter_at(&accounts->kept, (uint32_t)at) = count;
    bh_arena_free(arena);
    return true;
}

bh_rc
bh_attempts_load(struct bh_accounts *accounts, struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;

    return store->ops->list_documents(store->self, &(struct bh_document_filter){ BH_DOCUMENT_LOCKOUT, 0 },
                                      attempt_load_count, accounts, err);
}

/* ---- devices ---- */

enum { DEVICE_ID = 16, DEVICE_TEXT = 2 * DEVICE_ID + 1 + 64 };

/* What proves that an account signed in from a device before: its id and a keyed hash of id
 * and account. */
static void
attempt_sign_device_id(const struct bh_accounts *accounts, const char *id, uint32_t principal,
                       char ret_hex[65])
{
    const struct bh_crypto_ops *crypto = accounts->options.crypto;
    uint8_t inner[32], outer[32];
    char text[64];
    struct bh_buf hex;

    snprintf(text, sizeof text, "%s %" PRIu32, id, principal);
    crypto->sha256(accounts->device_key, 32, text, strlen(text), inner);
    crypto->sha256(accounts->device_key, 32, inner, sizeof inner, outer);
    bh_buf_init_fixed(&hex, ret_hex, 65);
    bh_buf_put_hex(&hex, outer, sizeof outer);
    bh_buf_text(&hex);
}

const char *
bh_device_make(const struct bh_accounts *accounts, struct bh_arena *arena, uint32_t principal)
{
    char id[2 * DEVICE_ID + 1], hex[65];
    struct bh_err err;

    if (bh_accounts_random_hex(accounts, DEVICE_ID, id, &err) != BH_OK)
        return NULL;
    attempt_sign_device_id(accounts, id, principal, hex);
    return bh_arena_printf(arena, "%s.%s", id, hex);
}

static bool
attempt_device_known(const struct bh_accounts *accounts, const char *device, uint32_t principal)
{
    char id[2 * DEVICE_ID + 1], hex[65];

    if (!device || !principal || strlen(device) != DEVICE_TEXT || device[2 * DEVICE_ID] != '.')
        return false;
    memcpy(id, device, 2 * DEVICE_ID);
    id[2 * DEVICE_ID] = '\0';
    attempt_sign_device_id(accounts, id, principal, hex);
    return bh_secret_equal(hex, device + 2 * DEVICE_ID + 1);
}

/* ---- attempts ---- */

struct bh_sign_in_attempt
bh_attempt_from_call(const struct bh_accounts *accounts, struct bh_call *call, const char *account,
                     const char *device, uint32_t principal)
{
    const struct bh_transport *peer = call->request->transport;
    struct bh_sign_in_attempt attempt = { .account = account ? account : "", .principal = principal };

    attempt.source = peer->unix_socket ? bh_arena_printf(call->arena, "uid %" PRIu32, peer->uid)
                                       : bh_arena_strdup(call->arena, peer->block);
    if (!attempt.source)
        attempt.source = "";
    if (attempt_device_known(accounts, device, principal))
        attempt.device = device;
    return attempt;
}

static struct bh_attempt
lockout_attempt_of(const struct bh_sign_in_attempt *attempt)
{
    return (struct bh_attempt){ attempt->account, attempt->source, attempt->device };
}

static struct bh_accounts_change
attempt_refused_change(const struct bh_sign_in_attempt *attempt)
{
    return (struct bh_accounts_change){ .verb = "sign_in.refused",
                                        .res = BH_UNAUTHENTICATED,
                                        .object = { "account", attempt->principal } };
}

/* It may not be made: that is in the log as those are that were made. */
static bh_rc
attempt_not_now(struct bh_accounts *accounts, struct bh_call *call, const struct bh_sign_in_attempt *attempt,
                bh_ns until, struct bh_err *err)
{
    struct bh_accounts_change change = attempt_refused_change(attempt);
    struct bh_answer answer;
    char when[32] = "";
    struct bh_buf text;
    bh_rc rc = bh_accounts_commit(accounts, call, &change, &answer, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&text, when, sizeof when);
    bh_time_put_utc(&text, until);
    bh_buf_text(&text);
    bh_err_set(err, BH_UNAUTHENTICATED, "too many attempts with this name or from here");
    return bh_err_hint(
        err, "try again after %s; a device that has signed in before is not affected by attempts of others",
        when);
}

bh_rc
bh_attempt_begin(struct bh_accounts *accounts, struct bh_call *call, const struct bh_sign_in_attempt *attempt,
                 struct bh_err *err)
{
    struct bh_attempt lockout_attempt = lockout_attempt_of(attempt);
    struct bh_puts puts = { .count = 0 };
    struct bh_accounts_change change = { .verb = "sign_in.attempt",
                                         .puts = puts.items,
                                         .object = { "account", attempt->principal } };
    struct bh_answer answer;
    enum bh_identity_fault fault;
    bool alert = false;
    bh_ns until = 0;
    bh_rc rc = BH_OK;

    bh_mutex_lock(&accounts->mutex);
    fault = bh_lockout_begin(&accounts->lockout, &lockout_attempt, bh_accounts_now(accounts), &until, &alert);
    if (fault == BH_FAULT_NONE)
        rc = attempt_load_changes(accounts, call->arena, &puts, err);
    bh_mutex_unlock(&accounts->mutex);
    if (fault != BH_FAULT_NONE)
        return attempt_not_now(accounts, call, attempt, until, err);
    if (alert)
        bh_log(ACCOUNT_ATTACKED, BH_U64("principal", attempt->principal));
    change.put_count = puts.count;
    return rc == BH_OK ? bh_accounts_commit(accounts, call, &change, &answer, err) : rc;
}

bh_rc
bh_attempt_failed(struct bh_accounts *accounts, struct bh_call *call,
                  const struct bh_sign_in_attempt *attempt, struct bh_err *err)
{
    struct bh_accounts_change change = attempt_refused_change(attempt);
    struct bh_answer answer;
    bh_rc rc = bh_accounts_commit(accounts, call, &change, &answer, err);

    if (rc != BH_OK)
        return rc;
    bh_err_set(err, BH_UNAUTHENTICATED, "the name, password or code is wrong");
    return bh_err_hint(
        err, "an account with a second factor also needs its code; an admin can reset both with `bulkhead "
             "account reset`");
}

bh_rc
bh_attempt_succeeded(struct bh_accounts *accounts, struct bh_call *call,
                     const struct bh_sign_in_attempt *attempt, struct bh_puts *puts, struct bh_err *err)
{
    struct bh_attempt lockout_attempt = lockout_attempt_of(attempt);
    bh_rc rc;

    bh_mutex_lock(&accounts->mutex);
    bh_lockout_succeed(&accounts->lockout, &lockout_attempt);
    rc = attempt_load_changes(accounts, call->arena, puts, err);
    bh_mutex_unlock(&accounts->mutex);
    return rc;
}
