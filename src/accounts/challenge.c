#include "accounts/challenge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/num.h"
#include "identity/secret.h"

enum { SECOND_HEX = 8, RANDOM = 12 };

#define LIFE_NS (BH_WEBAUTHN_SECONDS * BH_NS_PER_S)

bh_rc
bh_challenges_open(struct bh_accounts *accounts, struct bh_err *err)
{
    uint8_t random[BH_SECRET_BYTES];
    bh_rc rc = accounts->options.crypto->random(random, sizeof random, err);

    bh_secret_text(random, accounts->challenge_key);
    bh_secret_wipe(random, sizeof random);
    return rc;
}

/* The second in its id. */
static bh_ns
challenge_begun(const struct bh_challenge *challenge)
{
    uint8_t bytes[SECOND_HEX / 2];
    char hex[SECOND_HEX + 1];
    uint64_t second = 0;

    memcpy(hex, challenge->id, SECOND_HEX);
    hex[SECOND_HEX] = '\0';
    if (!bh_parse_hex(hex, bytes, sizeof bytes))
        return 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        second = second << 8 | bytes[i];
    return second * BH_NS_PER_S;
}

/* The challenge from its id. */
static void
derive(const struct bh_accounts *accounts, struct bh_challenge *challenge)
{
    challenge->ceremony =
        (struct bh_webauthn){ .kind = BH_WEBAUTHN_GET, .begun = challenge_begun(challenge) };
    bh_secret_mac(accounts->challenge_key, challenge->id, challenge->ceremony.challenge);
}

bh_rc
bh_challenge_make(const struct bh_accounts *accounts, struct bh_challenge *ret_challenge, struct bh_err *err)
{
    char random[2 * RANDOM + 1];
    bh_rc rc = bh_accounts_random_hex(accounts, RANDOM, random, err);

    if (rc != BH_OK)
        return rc;
    snprintf(ret_challenge->id, sizeof ret_challenge->id, "%08" PRIx32 "%s",
             (uint32_t)(bh_accounts_now(accounts) / BH_NS_PER_S), random);
    derive(accounts, ret_challenge);
    return BH_OK;
}

/* The place of one that was answered, else a free one, else NULL. */
static struct bh_answered *
challenge_slot_of(struct bh_accounts *accounts, const char *id)
{
    bh_ns now = bh_accounts_now(accounts);
    struct bh_answered *slot = NULL;

    BH_ASSERT(bh_mutex_is_held(&accounts->mutex));
    for (uint32_t i = 0; i < BH_ANSWERED_MAX; i++) {
        struct bh_answered *at = &accounts->answered[i];

        if (strcmp(at->id, id) == 0)
            return at;
        if (!slot && at->until <= now)
            slot = at;
    }
    return slot;
}

bool
bh_challenge_find(struct bh_accounts *accounts, const char *id, struct bh_challenge *ret_challenge)
{
    const struct bh_answered *slot;

    if (!id || strlen(id) != sizeof ret_challenge->id - 1 || strspn(id, "0123456789abcdef") != strlen(id))
        return false;
    memcpy(ret_challenge->id, id, sizeof ret_challenge->id);
    derive(accounts, ret_challenge);
    bh_mutex_lock(&accounts->mutex);
    slot = challenge_slot_of(accounts, id);
    ret_challenge->ceremony.used = slot && strcmp(slot->id, id) == 0;
    bh_mutex_unlock(&accounts->mutex);
    return true;
}

bool
bh_challenge_consume(struct bh_accounts *accounts, const struct bh_challenge *challenge)
{
    struct bh_answered *slot;
    bool fresh;

    bh_mutex_lock(&accounts->mutex);
    slot = challenge_slot_of(accounts, challenge->id);
    fresh = slot && strcmp(slot->id, challenge->id) != 0;
    if (fresh) {
        memcpy(slot->id, challenge->id, sizeof slot->id);
        slot->until = challenge->ceremony.begun + LIFE_NS + BH_NS_PER_S;
    }
    bh_mutex_unlock(&accounts->mutex);
    return fresh;
}
