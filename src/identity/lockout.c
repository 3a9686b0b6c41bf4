#include "identity/lockout.h"

#include <string.h>

#include "identity/account.h"
#include "identity/secret.h"

#define DAY_NS (86400 * BH_NS_PER_S)

/* What a kind of count allows. */
struct limit {
    uint32_t attempts, lock_s;
    enum bh_identity_fault fault;
};

static const struct limit account_limit = { 5, BH_LOCKOUT_S, BH_FAULT_LOCKED_ACCOUNT };
static const struct limit source_limit = { 20, BH_LOCKOUT_S, BH_FAULT_LOCKED_SOURCE };

static const uint8_t no_key[16];

/* 16 bytes for a text; never zeros. */
static void
lockout_key_of(const char *first, const char *second, uint8_t ret_key[16])
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = 1 << 20 };
    char hash[BH_SECRET_TEXT];
    const char *whole;

    bh_account_key(first, &text);
    bh_buf_puts(&text, "\n");
    bh_buf_puts(&text, second ? second : "");
    whole = bh_buf_text(&text);
    bh_secret_challenge(whole ? whole : "", hash);
    memcpy(ret_key, hash, 16);
}

/* Whether the count can be dropped: no lock, window and day over.  A count from the future, from before a
 * clock was set back, is kept. */
static bool
lockout_is_stale(const struct bh_lockout_count *count, bh_ns now)
{
    return count->until <= now && count->day + DAY_NS <= now
           && count->since + BH_LOCKOUT_WINDOW_S * BH_NS_PER_S <= now;
}

/* Whether a count matters less than another: it locks nothing, or has locked less often, or saw
 * fewer attempts, or began earlier. */
static bool
lockout_matters_less(const struct bh_lockout_count *a, const struct bh_lockout_count *b, bh_ns now)
{
    if ((a->until > now) != (b->until > now))
        return a->until <= now;
    if (a->locks != b->locks)
        return a->locks < b->locks;
    if (a->day_attempts != b->day_attempts)
        return a->day_attempts < b->day_attempts;
    return a->since < b->since;
}

/* The count of that key, or a place for it: a free one, else that of the count that matters
 * least. */
static struct bh_lockout_count *
lockout_find(struct bh_lockout_count *counts, size_t size, const uint8_t key[16], bh_ns now)
{
    struct bh_lockout_count *slot = NULL, *least = &counts[0];

    for (size_t i = 0; i < size; i++) {
        struct bh_lockout_count *count = &counts[i];

        if (memcmp(count->key, key, 16) == 0)
            return count;
        if (!slot && (memcmp(count->key, no_key, 16) == 0 || lockout_is_stale(count, now)))
            slot = count;
        if (lockout_matters_less(count, least, now))
            least = count;
    }
    if (!slot)
        slot = least;
    *slot = (struct bh_lockout_count){ .since = now, .day = now };
    memcpy(slot->key, key, 16);
    return slot;
}

/* A lock never lasts longer than the longest from now on, whatever the clock did. */
static bool
lockout_is_locked(struct bh_lockout_count *count, bh_ns now)
{
    if (count->until > now + BH_LOCKOUT_MAX_S * BH_NS_PER_S)
        count->until = now + BH_LOCKOUT_MAX_S * BH_NS_PER_S;
    return count->until > now;
}

static void
lockout_begin_anew(struct bh_lockout_count *count, bh_ns now)
{
    if (count->since > now || now - count->since >= BH_LOCKOUT_WINDOW_S * BH_NS_PER_S) {
        count->attempts = count->since > now ? count->attempts : 0;
        count->since = now;
    }
    if (count->day > now || now - count->day >= DAY_NS) {
        count->locks = count->day > now ? count->locks : 0;
        count->day_attempts = count->day > now ? count->day_attempts : 0;
        count->day = now;
    }
}

static void
lockout_count_one(struct bh_lockout_count *count, const struct limit *limit, bh_ns now)
{
    uint64_t lock_s = limit->lock_s;

    lockout_begin_anew(count, now);
    count->attempts++;
    count->day_attempts++;
    if (count->attempts < limit->attempts)
        return;
    for (uint32_t i = 0; i < count->locks && lock_s < BH_LOCKOUT_MAX_S; i++)
        lock_s *= 2;
    if (lock_s > BH_LOCKOUT_MAX_S)
        lock_s = BH_LOCKOUT_MAX_S;
    count->until = now + lock_s * BH_NS_PER_S;
    count->attempts = 0;
    count->since = now;
    count->locks++;
}

/* The counts that an attempt is subject to: a known device's own, or account and source. */
struct subject {
    struct bh_lockout_count *count;
    const struct limit *limit;
};

static uint32_t
lockout_subjects_of(struct bh_lockout *lockout, const struct bh_attempt *attempt, bh_ns now,
                    struct subject ret_subjects[2])
{
    uint8_t key[16];

    lockout_key_of(attempt->account, attempt->device, key);
    ret_subjects[0] = (struct subject){ lockout_find(lockout->accounts, BH_LOCKOUT_ACCOUNTS_MAX, key, now),
                                        &account_limit };
    if (attempt->device)
        return 1;
    lockout_key_of(attempt->source, NULL, key);
    ret_subjects[1] =
        (struct subject){ lockout_find(lockout->sources, BH_LOCKOUT_SOURCES_MAX, key, now), &source_limit };
    return 2;
}

enum bh_identity_fault
bh_lockout_begin(struct bh_lockout *lockout, const struct bh_attempt *attempt, bh_ns now, bh_ns *ret_until,
                 bool *ret_alert)
{
    struct subject subjects[2];
    uint32_t count = lockout_subjects_of(lockout, attempt, now, subjects);

    for (uint32_t i = 0; i < count; i++) {
        if (lockout_is_locked(subjects[i].count, now)) {
            *ret_until = subjects[i].count->until;
            return subjects[i].limit->fault;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        lockout_count_one(subjects[i].count, subjects[i].limit, now);
    *ret_alert = subjects[0].count->day_attempts == BH_LOCKOUT_DAY_ALERT;
    return BH_FAULT_NONE;
}

/* The count of that key; NULL: it was forgotten since. */
static struct bh_lockout_count *
lockout_find_count(struct bh_lockout_count *counts, size_t size, const char *first, const char *second)
{
    uint8_t key[16];

    lockout_key_of(first, second, key);
    for (size_t i = 0; i < size; i++)
        if (memcmp(counts[i].key, key, 16) == 0)
            return &counts[i];
    return NULL;
}

/* Take one attempt back.  A lock stays: others' failures caused the most of it. */
static void
lockout_undo(struct bh_lockout_count *count)
{
    if (count && count->attempts > 0)
        count->attempts--;
}

void
bh_lockout_succeed(struct bh_lockout *lockout, const struct bh_attempt *attempt)
{
    struct bh_lockout_count *account =
        lockout_find_count(lockout->accounts, BH_LOCKOUT_ACCOUNTS_MAX, attempt->account, attempt->device);

    if (account)
        memset(account, 0, sizeof *account);
    if (attempt->device)
        return;
    lockout_undo(lockout_find_count(lockout->sources, BH_LOCKOUT_SOURCES_MAX, attempt->source, NULL));
}
