#include "identity/password.h"

#include <time.h>

#include "base/test.h"

static const struct bh_password_cost cheap = { 64, 1, 1 };
static const uint8_t salt[BH_PASSWORD_SALT] = { '0', '1', '2', '3', '4', '5', '6', '7',
                                                '8', '9', 'a', 'b', 'c', 'd', 'e', 'f' };

static void
checking(void **state)
{
    char stored_text[BH_PASSWORD_TEXT] = "", other[BH_PASSWORD_TEXT];

    BH_CHECK_EQ("hash",
                bh_password_hash("corr\xc3\xa9"
                                 "ct horse",
                                 salt, &cheap, stored_text),
                0);
    BH_CHECK("kind", strncmp(stored_text, "$argon2id$v=19$m=64,t=1,p=1$", 28) == 0);
    BH_CHECK("not the password", !strstr(stored_text, "horse"));
    BH_CHECK_EQ("right",
                bh_password_check(stored_text,
                                  "corr\xc3\xa9"
                                  "ct horse",
                                  &cheap),
                0);
    BH_CHECK_EQ("wrong", bh_password_check(stored_text, "correct horse", &cheap), BH_FAULT_PASSWORD_WRONG);
    BH_CHECK_EQ("cut",
                bh_password_check(stored_text,
                                  "corr\xc3\xa9"
                                  "ct hors",
                                  &cheap),
                BH_FAULT_PASSWORD_WRONG);
    BH_CHECK_EQ("longer",
                bh_password_check(stored_text,
                                  "corr\xc3\xa9"
                                  "ct horse ",
                                  &cheap),
                BH_FAULT_PASSWORD_WRONG);
    BH_CHECK_EQ("no account", bh_password_check(NULL, "correct horse", &cheap), BH_FAULT_PASSWORD_WRONG);
    BH_CHECK_EQ("other salt",
                bh_password_hash("corr\xc3\xa9"
                                 "ct horse",
                                 (const uint8_t *)"another salt....", &cheap, other),
                0);
    BH_CHECK("other text", strcmp(stored_text, other) != 0);
    BH_CHECK("fresh", !bh_password_is_stale(stored_text, &cheap));
    BH_CHECK("stale", bh_password_is_stale(stored_text, &bh_password_cost));
    BH_CHECK_DONE();
}

/* printf password | argon2 0123456789abcdef -id -t 2 -k 65536 -p 1 -l 32 -e */
static void
password_test_published(void **state)
{
    static const struct bh_password_cost cost = { 65536, 2, 1 };
    char stored_text[BH_PASSWORD_TEXT];

    BH_CHECK_EQ("hash", bh_password_hash("password", salt, &cost, stored_text), 0);
    BH_CHECK_STR("hash", stored_text,
                 "$argon2id$v=19$m=65536,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$"
                 "7+/qEheh109gdg4M3e8OHdzFjQSPKlC6NgbVvwpor58");
    BH_CHECK_DONE();
}

static void
bad_input(void **state)
{
    static const char *const stored[] = { "",
                                          "x",
                                          "$argon2id$",
                                          "$argon2i$v=19$m=64,t=1,p=1$",
                                          "$argon2id$v=19$m=64,t=1,p=1$AAAA$AAAA",
                                          "$2y$10$abcdefghijklmnopqrstuv" };
    char text[BH_PASSWORD_MAX + 2] = "", stored_text[BH_PASSWORD_TEXT] = "kept";

    for (size_t i = 0; i < BH_COUNT(stored); i++)
        BH_CHECK_EQ(stored[i], bh_password_check(stored[i], "password", &cheap), BH_FAULT_PASSWORD_STORED);
    BH_CHECK_EQ("empty", bh_password_hash("", salt, &cheap, stored_text), BH_FAULT_PASSWORD_LENGTH);
    memset(text, 'p', BH_PASSWORD_MAX + 1);
    BH_CHECK_EQ("too long", bh_password_hash(text, salt, &cheap, stored_text), BH_FAULT_PASSWORD_LENGTH);
    BH_CHECK_STR("untouched", stored_text, "kept");
    BH_CHECK_EQ("too long", bh_password_check(NULL, text, &cheap), BH_FAULT_PASSWORD_LENGTH);
    text[BH_PASSWORD_MAX] = '\0';
    BH_CHECK_EQ("longest", bh_password_hash(text, salt, &cheap, stored_text), 0);
    BH_CHECK_EQ("longest", bh_password_check(stored_text, text, &cheap), 0);
    BH_CHECK_DONE();
}

static double
cpu_ms(const char *stored_text)
{
    struct timespec before, after;
    enum bh_identity_fault fault;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    fault = bh_password_check(stored_text, "password", &bh_password_cost);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    BH_CHECK_EQ("wrong", fault, BH_FAULT_PASSWORD_WRONG);
    return (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6;
}

/* CVE-2025-6011: an unknown account costs what a wrong password costs.  Processor time, the
 * least of several, since other programs run too. */
static void
unknown_costs_the_same(void **state)
{
    char stored_text[BH_PASSWORD_TEXT];
    double known_ms = 1e9, unknown_ms = 1e9;

    BH_CHECK_EQ("hash", bh_password_hash("another", salt, &bh_password_cost, stored_text), 0);
    for (int i = 0; i < 7; i++) {
        double known = cpu_ms(stored_text), unknown = cpu_ms(NULL);

        known_ms = known < known_ms ? known : known_ms;
        unknown_ms = unknown < unknown_ms ? unknown : unknown_ms;
    }
    printf("# known %.2f ms, unknown %.2f ms\n", known_ms, unknown_ms);
    BH_CHECK("alike", known_ms < 1.5 * unknown_ms && unknown_ms < 1.5 * known_ms);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(checking),
    cmocka_unit_test(password_test_published),
    cmocka_unit_test(bad_input),
    cmocka_unit_test(unknown_costs_the_same),
};

BH_TEST_MAIN(tests)
