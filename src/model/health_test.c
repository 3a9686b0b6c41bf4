#include "model/health.h"

#include "base/attr.h"
#include "base/test.h"

/* The catalog's classes, as a reader of gpu.md 6.1 finds them; written apart from the table. */
static const struct {
    uint32_t xid;
    enum bh_fault_class class;
    /* clang-format off */
} catalog[] = {
#define A BH_FAULT_CLASS_APP
#define R BH_FAULT_CLASS_APP_REPEAT
    { 8, A },   { 11, A },  { 13, A },  { 25, A },  { 31, A },  { 43, A },  { 44, A },
    { 60, A },  { 68, A },  { 69, A },  { 82, A },  { 83, A },  { 84, A },  { 86, A },
    { 88, A },  { 89, A },  { 96, A },  { 97, A },  { 98, A },  { 99, A },  { 105, A },
    { 137, A }, { 139, A }, { 32, R },  { 39, R },  { 40, R },  { 41, R },  { 70, R },
    { 71, R },  { 72, R },  { 75, R },  { 76, R },  { 77, R },  { 80, R },  { 85, R },
    { 126, R }, { 135, R },
#undef A
#undef R
    { 45, BH_FAULT_CLASS_SYMPTOM },     { 159, BH_FAULT_CLASS_SYMPTOM },
    { 94, BH_FAULT_CLASS_CONTAINED },   { 46, BH_FAULT_CLASS_RESET },
    { 48, BH_FAULT_CLASS_RESET },       { 62, BH_FAULT_CLASS_RESET },
    { 74, BH_FAULT_CLASS_RESET },       { 95, BH_FAULT_CLASS_RESET },
    { 109, BH_FAULT_CLASS_RESET },      { 110, BH_FAULT_CLASS_RESET },
    { 119, BH_FAULT_CLASS_RESET },      { 120, BH_FAULT_CLASS_RESET },
    { 136, BH_FAULT_CLASS_RESET },      { 140, BH_FAULT_CLASS_RESET },
    { 143, BH_FAULT_CLASS_RESET },      { 151, BH_FAULT_CLASS_RESET },
    { 158, BH_FAULT_CLASS_RESET },      { 166, BH_FAULT_CLASS_RESET },
    { 169, BH_FAULT_CLASS_RESET },      { 170, BH_FAULT_CLASS_RESET },
    { 63, BH_FAULT_CLASS_RESET_IDLE },  { 156, BH_FAULT_CLASS_RESET_IDLE },
    { 149, BH_FAULT_CLASS_DRAIN },      { 79, BH_FAULT_CLASS_REBOOT },
    { 167, BH_FAULT_CLASS_REBOOT },     { 54, BH_FAULT_CLASS_RETIRE },
    { 64, BH_FAULT_CLASS_RETIRE },      { 157, BH_FAULT_CLASS_RETIRE },
    { 168, BH_FAULT_CLASS_RETIRE },     { 92, BH_FAULT_CLASS_WATCH },
    { 121, BH_FAULT_CLASS_WATCH },      { 144, BH_FAULT_CLASS_WATCH },
    { 148, BH_FAULT_CLASS_WATCH },      { 150, BH_FAULT_CLASS_WATCH },
    { 155, BH_FAULT_CLASS_WATCH },      { 160, BH_FAULT_CLASS_WATCH },
    { 161, BH_FAULT_CLASS_WATCH },      { 162, BH_FAULT_CLASS_WATCH },
    { 165, BH_FAULT_CLASS_WATCH },      { 78, BH_FAULT_CLASS_INFO },
    { 93, BH_FAULT_CLASS_INFO },        { 171, BH_FAULT_CLASS_INFO },
    { 172, BH_FAULT_CLASS_INFO },       { 14, BH_FAULT_CLASS_IGNORE },
    { 37, BH_FAULT_CLASS_IGNORE },      { 38, BH_FAULT_CLASS_IGNORE },
    { 66, BH_FAULT_CLASS_IGNORE },      { 67, BH_FAULT_CLASS_IGNORE },
    { 106, BH_FAULT_CLASS_IGNORE },     { 107, BH_FAULT_CLASS_IGNORE },
    { 141, BH_FAULT_CLASS_IGNORE },     { 154, BH_FAULT_CLASS_BY_ACTION },
    /* unused on these boards, named without a meaning, not an XID */
    { 1, BH_FAULT_CLASS_UNKNOWN },      { 56, BH_FAULT_CLASS_UNKNOWN },
    { 108, BH_FAULT_CLASS_UNKNOWN },    { 173, BH_FAULT_CLASS_UNKNOWN },
    { 999, BH_FAULT_CLASS_UNKNOWN },
};
/* clang-format on */

static void
every_xid_has_its_class(void **state)
{
    for (size_t i = 0; i < BH_COUNT(catalog); i++) {
        char name[32];

        snprintf(name, sizeof name, "XID %u", catalog[i].xid);
        BH_CHECK_EQ(name, bh_xid_get(catalog[i].xid)->class, catalog[i].class);
    }
    BH_CHECK_DONE();
}

#define SILENT UINT32_MAX

static void
remedies(void **state)
{
    static const struct {
        const char *name;
        struct bh_fault_report seen;
        enum bh_fault_ends ends;
        enum bh_fault_then then;
        /* clang-format off */
    } cases[] = {
        { "page fault of an application", { .xid = 31, .instance = true },
          BH_ENDS_NOBODY, BH_THEN_NOTHING },
        { "it does not matter who asks for a reset then", { .xid = 31, .recovery = BH_RECOVERY_RESET },
          BH_ENDS_NOBODY, BH_THEN_NOTHING },
        { "copy engine", { .xid = 39, .instance = true }, BH_ENDS_NOBODY, BH_THEN_COUNT },
        { "contained, in an instance", { .xid = 94, .instance = true },
          BH_ENDS_INSTANCE, BH_THEN_RESET_IDLE },
        { "contained, on a whole GPU", { .xid = 94 }, BH_ENDS_GPU, BH_THEN_RESET_IDLE },
        { "double bit, in an instance", { .xid = 48, .instance = true },
          BH_ENDS_INSTANCE, BH_THEN_DRAIN },
        { "double bit, no instance", { .xid = 48 }, BH_ENDS_GPU, BH_THEN_RESET },
        { "context switch, no instance", { .xid = 109 }, BH_ENDS_GPU, BH_THEN_RESET },
        { "uncontained, whatever it names", { .xid = 95, .instance = true },
          BH_ENDS_GPU, BH_THEN_RESET },
        { "fallen off the bus", { .xid = 79 }, BH_ENDS_GPU, BH_THEN_REBOOT },
        { "a reset is enough, says the driver", { .xid = 79, .recovery = BH_RECOVERY_RESET },
          BH_ENDS_GPU, BH_THEN_RESET },
        { "row remapped", { .xid = 63 }, BH_ENDS_NOBODY, BH_THEN_RESET_IDLE },
        { "row not remapped", { .xid = 64 }, BH_ENDS_NOBODY, BH_THEN_RETIRE },
        { "removed, alone", { .xid = 45 }, BH_ENDS_NOBODY, BH_THEN_WATCH },
        { "removed, after a cause", { .xid = 45, .after_cause = true },
          BH_ENDS_NOBODY, BH_THEN_NOTHING },
        { "copy engine after a cause", { .xid = 39, .after_cause = true },
          BH_ENDS_NOBODY, BH_THEN_NOTHING },
        { "a second cause", { .xid = 95, .after_cause = true }, BH_ENDS_GPU, BH_THEN_RESET },
        { "no row", { .xid = 999 }, BH_ENDS_NOBODY, BH_THEN_WATCH },
        { "154, and the action cannot be read", { .xid = 154, .recovery = SILENT },
          BH_ENDS_NOBODY, BH_THEN_WATCH },
        { "154: none", { .xid = 154, .recovery = BH_RECOVERY_NONE },
          BH_ENDS_NOBODY, BH_THEN_WATCH },
        { "154: reset", { .xid = 154, .recovery = BH_RECOVERY_RESET },
          BH_ENDS_GPU, BH_THEN_RESET },
        { "154: reboot", { .xid = 154, .recovery = BH_RECOVERY_REBOOT },
          BH_ENDS_GPU, BH_THEN_REBOOT },
        { "154: drain and reset", { .xid = 154, .recovery = BH_RECOVERY_DRAIN_RESET },
          BH_ENDS_NOBODY, BH_THEN_DRAIN },
        { "154: drain P2P", { .xid = 154, .recovery = BH_RECOVERY_DRAIN_P2P },
          BH_ENDS_NOBODY, BH_THEN_WATCH },
        { "the action before the class", { .xid = 95, .recovery = BH_RECOVERY_DRAIN_RESET },
          BH_ENDS_GPU, BH_THEN_DRAIN },
        { "an unknown action does not count", { .xid = 95, .recovery = 17 },
          BH_ENDS_GPU, BH_THEN_RESET },
        { "NVLink 5, the driver wants nothing", { .xid = 145 }, BH_ENDS_NOBODY, BH_THEN_WATCH },
        { "read: reset", { .sign = BH_HEALTH_RULE_RECOVERY, .recovery = BH_RECOVERY_RESET },
          BH_ENDS_GPU, BH_THEN_RESET },
        { "read: remap pending", { .sign = BH_HEALTH_RULE_REMAP_PENDING },
          BH_ENDS_NOBODY, BH_THEN_RESET_IDLE },
        { "read: remap failed", { .sign = BH_HEALTH_RULE_REMAP_FAILED },
          BH_ENDS_NOBODY, BH_THEN_RETIRE },
        { "read: errors", { .sign = BH_HEALTH_RULE_ECC_UNCORRECTED }, BH_ENDS_NOBODY, BH_THEN_DRAIN },
        { "read: errors that an XID told", { .sign = BH_HEALTH_RULE_ECC_UNCORRECTED, .after_cause = true },
          BH_ENDS_NOBODY, BH_THEN_NOTHING },
        { "read: too hot", { .sign = BH_HEALTH_RULE_THERMAL }, BH_ENDS_NOBODY, BH_THEN_WATCH },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fault_remedy remedy = bh_fault_remedy(&cases[i].seen);

        BH_CHECK_EQ(cases[i].name, remedy.ends, cases[i].ends);
        BH_CHECK_EQ(cases[i].name, remedy.then, cases[i].then);
    }
    BH_CHECK_DONE();
}

static void
consequences(void **state)
{
    static const struct {
        const char *name;
        struct bh_fault_report seen;
        uint64_t after_s;
        bool follows;
    } cases[] = {
        { "45 at once", { .xid = 45 }, 0, true },
        { "43 within the time", { .xid = 43 }, 29, true },
        { "43 later", { .xid = 43 }, 30, false },
        { "another cause", { .xid = 95 }, 0, false },
        { "the counter that it moved", { .sign = BH_HEALTH_RULE_ECC_UNCORRECTED }, 5, true },
        { "what is no counter", { .sign = BH_HEALTH_RULE_REMAP_FAILED }, 5, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, bh_fault_follows(&cases[i].seen, cases[i].after_s * 1000000000ull),
                    cases[i].follows);
    for (uint32_t then = 0; then < BH_FAULT_THENS; then++) {
        struct bh_fault_remedy remedy = { .then = (enum bh_fault_then)then };

        BH_CHECK_EQ(bh_fault_then_names[then], bh_fault_is_cause(&remedy),
                    then >= BH_THEN_RESET_IDLE && then <= BH_THEN_RETIRE);
    }
    BH_CHECK_DONE();
}

/* Rows do not overlap and stand in order: the first that fits is the only one. */
static void
the_table_is_sorted(void **state)
{
    uint32_t last = 0;
    const struct {
        uint32_t first, last;
    } rows[] = {
#define BH_XID(first, last, name, class, scope, doc) { first, last },
#include "tables/xid.tbl"
#undef BH_XID
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        assert_true(rows[i].first > last);
        assert_true(rows[i].last >= rows[i].first);
        last = rows[i].last;
    }
    for (uint32_t sign = 0; sign < BH_HEALTH_RULES; sign++)
        assert_true(*bh_health_rule_doc((enum bh_health_rule)sign) && *bh_health_rule_names[sign]);
    assert_string_equal(bh_health_rule_doc(BH_HEALTH_RULES), "nothing");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_xid_has_its_class),
    cmocka_unit_test(remedies),
    cmocka_unit_test(consequences),
    cmocka_unit_test(the_table_is_sorted),
};
BH_TEST_MAIN(tests)
