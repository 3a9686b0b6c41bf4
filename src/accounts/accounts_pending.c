#include <string.h>

#include "accounts/accounts_internal.h"

/* What one request begins and another ends. */

static bool
accounts_is_free(const struct bh_pending *pending, bh_ns now)
{
    return pending->kind == BH_PENDING_NONE || pending->expires <= now;
}

/* Sign-ins that unknown callers begin take no row from signed-in users. */
static struct bh_pending *
oldest_anonymous(struct bh_accounts *accounts)
{
    struct bh_pending *oldest = NULL;

    for (uint32_t i = 0; i < BH_PENDING_MAX; i++) {
        struct bh_pending *at = &accounts->pending[i];

        if (at->principal == 0 && (!oldest || at->expires < oldest->expires))
            oldest = at;
    }
    return oldest;
}

bh_rc
bh_pending_put(struct bh_accounts *accounts, const struct bh_pending *draft, char ret_id[33],
               struct bh_err *err)
{
    bh_ns now = bh_accounts_now(accounts);
    struct bh_pending *slot = NULL;
    bh_rc rc = bh_accounts_random_hex(accounts, 16, ret_id, err);

    if (rc != BH_OK)
        return rc;
    bh_mutex_lock(&accounts->mutex);
    for (uint32_t i = 0; i < BH_PENDING_MAX; i++) {
        struct bh_pending *at = &accounts->pending[i];

        if (draft->principal && at->kind == draft->kind && at->principal == draft->principal)
            *at = (struct bh_pending){ 0 }; /* begun anew: the one before is void */
        if (!slot && accounts_is_free(at, now))
            slot = at;
    }
    if (!slot)
        slot = oldest_anonymous(accounts);
    if (slot) {
        *slot = *draft;
        memcpy(slot->id, ret_id, sizeof slot->id);
    }
    bh_mutex_unlock(&accounts->mutex);
    return slot ? BH_OK : bh_err_set(err, BH_UNAVAILABLE, "too many sign-ins are under way");
}

bool
bh_pending_consume(struct bh_accounts *accounts, enum bh_pending_kind kind, const char *id,
                   uint32_t principal, struct bh_pending *ret_pending)
{
    bh_ns now = bh_accounts_now(accounts);
    bool found = false;

    bh_mutex_lock(&accounts->mutex);
    for (uint32_t i = 0; i < BH_PENDING_MAX && !found; i++) {
        struct bh_pending *at = &accounts->pending[i];

        if (at->kind != kind || at->expires <= now
            || (principal != BH_ANY_PRINCIPAL && at->principal != principal)
            || (id && strcmp(at->id, id) != 0))
            continue;
        *ret_pending = *at;
        explicit_bzero(at, sizeof *at);
        found = true;
    }
    bh_mutex_unlock(&accounts->mutex);
    return found;
}
