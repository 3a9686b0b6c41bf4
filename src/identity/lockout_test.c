#include "identity/lockout.h"

#include "base/test.h"

#define S BH_NS_PER_S
#define NOW (UINT64_C(1790000000) * S)

static struct bh_lockout lockout;
static bh_ns until;
static bool alert;

static enum bh_identity_fault
try_at(const char *account, const char *source, const char *device, bh_ns now)
{
    struct bh_attempt attempt = { account, source, device };

    return bh_lockout_begin(&lockout, &attempt, now, &until, &alert);
}

/* From a new address each time, so that only the account counts. */
static enum bh_identity_fault
guess(const char *account, bh_ns now)
{
    static unsigned number;
    char source[32];

    snprintf(source, sizeof source, "10.0.%u.%u", number / 250, number % 250);
    number++;
    return try_at(account, source, NULL, now);
}

static void
lockout_test_account(void **state)
{
    static const uint32_t locks_s[] = { 900, 1800, 3600, 7200, 14400, 14400 };
    bh_ns now = NOW;

    memset(&lockout, 0, sizeof lockout);
    for (size_t i = 0; i < BH_COUNT(locks_s); i++) {
        for (int k = 0; k < 5; k++)
            BH_CHECK_EQ("five", guess("alice", now), 0);
        BH_CHECK_EQ("sixth", guess("alice", now), BH_FAULT_LOCKED_ACCOUNT);
        BH_CHECK_EQ("until", until, now + locks_s[i] * S);
        BH_CHECK_EQ("others", guess("bob", now), 0);
        now += locks_s[i] * S;
    }
    BH_CHECK_EQ("after it", guess("alice", now), 0);
    BH_CHECK_DONE();
}

/* CVE-2025-6004 and its like: a name in other clothes has no attempts of its own. */
static void
lockout_test_spellings(void **state)
{
    static const char *const names[] = { "Alice", "alice ", "alice\xcc\x81", "alic\xc3\xa9",
                                         "\xef\xbc\xa1lice" };

    memset(&lockout, 0, sizeof lockout);
    for (size_t i = 0; i < BH_COUNT(names); i++)
        BH_CHECK_EQ(names[i], guess(names[i], NOW), 0);
    BH_CHECK_EQ("alice", guess("alice", NOW), BH_FAULT_LOCKED_ACCOUNT);
    BH_CHECK_DONE();
}

static void
lockout_test_windows(void **state)
{
    memset(&lockout, 0, sizeof lockout);
    for (int i = 0; i < 4; i++)
        BH_CHECK_EQ("four", guess("alice", NOW), 0);
    for (int i = 0; i < 4; i++)
        BH_CHECK_EQ("four later", guess("alice", NOW + 300 * S), 0);
    BH_CHECK_EQ("fifth", guess("alice", NOW + 300 * S), 0);
    BH_CHECK_EQ("locked", guess("alice", NOW + 300 * S), BH_FAULT_LOCKED_ACCOUNT);
    BH_CHECK_DONE();
}

static void
source(void **state)
{
    static const uint32_t locks_s[] = { 900, 1800, 3600 };
    unsigned tried = 0;
    bh_ns now = NOW;
    char name[16];

    memset(&lockout, 0, sizeof lockout);
    for (size_t i = 0; i < BH_COUNT(locks_s); i++) {
        for (int k = 0; k < 20; k++) {
            snprintf(name, sizeof name, "user%u", tried++);
            BH_CHECK_EQ("spray", try_at(name, "192.0.2.1", NULL, now), 0);
        }
        BH_CHECK_EQ("source", try_at("more", "192.0.2.1", NULL, now), BH_FAULT_LOCKED_SOURCE);
        BH_CHECK_EQ("until", until, now + locks_s[i] * S);
        BH_CHECK_EQ("other source", try_at("more", "192.0.2.2", NULL, now), 0);
        now += locks_s[i] * S;
    }
    BH_CHECK_DONE();
}

/* 540 wrong sign-ins once locked the whole site; nor do 100,000, from as many places, at as many
 * names. */
static void
nothing_locks_everybody(void **state)
{
    char name[16], from[32];

    memset(&lockout, 0, sizeof lockout);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "user%u", i / 5);
        snprintf(from, sizeof from, "2001:db8:%x:%x::/64", i >> 16, i & 0xffff);
        (void)!try_at(name, from, NULL, NOW);
        if (i % 500 == 0)
            BH_CHECK_EQ("bob", try_at("bob", "192.0.2.9", NULL, NOW + i / 500 * 600 * S), 0);
    }
    BH_CHECK_DONE();
}

/* A stranger locks the account for strangers, never for the person's own devices. */
static void
known_device(void **state)
{
    memset(&lockout, 0, sizeof lockout);
    for (int i = 0; i < 5; i++)
        BH_CHECK_EQ("stranger", guess("alice", NOW), 0);
    BH_CHECK_EQ("stranger", guess("alice", NOW), BH_FAULT_LOCKED_ACCOUNT);
    for (int i = 0; i < 5; i++)
        BH_CHECK_EQ("device", try_at("alice", "10.9.9.9", "d1", NOW), 0);
    BH_CHECK_EQ("stolen device", try_at("alice", "10.9.9.9", "d1", NOW), BH_FAULT_LOCKED_ACCOUNT);
    BH_CHECK_EQ("other device", try_at("alice", "10.9.9.9", "d2", NOW), 0);
    BH_CHECK_DONE();
}

static void
success(void **state)
{
    struct bh_attempt attempt = { "Alice", "192.0.2.1", NULL };

    memset(&lockout, 0, sizeof lockout);
    for (int i = 0; i < 50; i++) {
        BH_CHECK_EQ("right", try_at("alice", "192.0.2.1", NULL, NOW), 0);
        bh_lockout_succeed(&lockout, &attempt);
    }
    /* the fifth attempt is right */
    for (int i = 0; i < 5; i++)
        BH_CHECK_EQ("wrong", try_at("alice", "192.0.2.1", NULL, NOW), 0);
    bh_lockout_succeed(&lockout, &attempt);
    BH_CHECK_EQ("open", try_at("alice", "192.0.2.1", NULL, NOW), 0);
    /* a sign-in to one's own account does not free the address for guesses at others */
    memset(&lockout, 0, sizeof lockout);
    for (int i = 0; i < 19; i++) {
        char name[16];

        snprintf(name, sizeof name, "user%d", i);
        BH_CHECK_EQ("spray", try_at(name, "192.0.2.1", NULL, NOW), 0);
        if (i % 4 == 3) {
            BH_CHECK_EQ("own", try_at("alice", "192.0.2.1", NULL, NOW), 0);
            bh_lockout_succeed(&lockout, &attempt);
        }
    }
    BH_CHECK_EQ("20th", try_at("bob", "192.0.2.1", NULL, NOW), 0);
    BH_CHECK_EQ("21st", try_at("bob", "192.0.2.1", NULL, NOW), BH_FAULT_LOCKED_SOURCE);
    BH_CHECK_DONE();
}

static void
alerts(void **state)
{
    int alerts_count = 0;
    bh_ns now = NOW;

    memset(&lockout, 0, sizeof lockout);
    for (int i = 0; i < 30; i++, now += 600 * S) {
        BH_CHECK_EQ("slow", guess("alice", now), 0);
        alerts_count += alert;
        BH_CHECK_EQ("the 20th", alert, i == 19);
    }
    BH_CHECK_EQ("once", alerts_count, 1);
    BH_CHECK_DONE();
}

/* A clock that jumps makes no lock longer than the longest, and ends none. */
static void
clocks(void **state)
{
    memset(&lockout, 0, sizeof lockout);
    for (int i = 0; i < 5; i++)
        BH_CHECK_EQ("future", guess("alice", NOW + 86400 * 365 * S), 0);
    BH_CHECK_EQ("back", guess("alice", NOW), BH_FAULT_LOCKED_ACCOUNT);
    BH_CHECK_EQ("bounded", until, NOW + BH_LOCKOUT_MAX_S * S);
    BH_CHECK_EQ("over", guess("alice", NOW + BH_LOCKOUT_MAX_S * S), 0);

    memset(&lockout, 0, sizeof lockout);
    for (int i = 0; i < 4; i++)
        BH_CHECK_EQ("four", guess("alice", NOW), 0);
    BH_CHECK_EQ("fifth, an hour back", guess("alice", NOW - 3600 * S), 0);
    BH_CHECK_EQ("still counted", guess("alice", NOW - 3600 * S), BH_FAULT_LOCKED_ACCOUNT);
    BH_CHECK_DONE();
}

/* Floods of names push no lock and no count that matters out of the table. */
static void
full(void **state)
{
    char name[32];

    memset(&lockout, 0, sizeof lockout);
    for (int i = 0; i < 4; i++)
        BH_CHECK_EQ("four", guess("alice", NOW), 0);
    for (int i = 0; i < 3 * BH_LOCKOUT_ACCOUNTS_MAX; i++) {
        snprintf(name, sizeof name, "d%d", i);
        BH_CHECK_EQ("flood", try_at("mallory", "10.9.9.9", name, NOW), 0);
    }
    BH_CHECK_EQ("fifth", guess("alice", NOW), 0);
    BH_CHECK_EQ("locked", guess("alice", NOW), BH_FAULT_LOCKED_ACCOUNT);
    for (size_t i = 0; i < BH_LOCKOUT_ACCOUNTS_MAX; i++)
        if (lockout.accounts[i].locks == 0)
            lockout.accounts[i].day_attempts = 4;
    BH_CHECK_EQ("another makes room", guess("new", NOW), 0);
    BH_CHECK_EQ("not a lock", guess("alice", NOW), BH_FAULT_LOCKED_ACCOUNT);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lockout_test_account),
    cmocka_unit_test(lockout_test_spellings),
    cmocka_unit_test(lockout_test_windows),
    cmocka_unit_test(source),
    cmocka_unit_test(nothing_locks_everybody),
    cmocka_unit_test(known_device),
    cmocka_unit_test(success),
    cmocka_unit_test(alerts),
    cmocka_unit_test(clocks),
    cmocka_unit_test(full),
};

BH_TEST_MAIN(tests)
