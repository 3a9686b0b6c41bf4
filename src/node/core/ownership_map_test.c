#include "node/core/ownership_map.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"

enum { A = 7, B = 8 };

static const char gpu[] = "GPU-1";

static struct bh_node_partition
partition_at(uint32_t units)
{
    struct bh_node_partition partition = { .units = units };

    snprintf(partition.gpu, sizeof partition.gpu, "%s", gpu);
    return partition;
}

/* Geometries by letter. */
static const struct {
    char letter;
    const char *profile;
    uint32_t start;
} shapes[] = {
    { 's', "1g.10gb", 0 }, { 't', "1g.10gb", 1 },  { 'e', "1g.10gb+me", 0 }, { 'm', "2g.20gb", 0 },
    { 'w', "whole", 0 },   { 'h', "25%:18Gi", 0 }, { 'i', "25%:18Gi", 3 },
};

/* Write that of the letter, if it is one. */
static bool
find_shape(char letter, char profile[BH_PROFILE_NAME_MAX], uint32_t *ret_start)
{
    for (size_t i = 0; i < BH_COUNT(shapes); i++) {
        if (shapes[i].letter != letter)
            continue;
        snprintf(profile, BH_PROFILE_NAME_MAX, "%s", shapes[i].profile);
        *ret_start = shapes[i].start;
        return true;
    }
    return false;
}

/* What happens to a GPU of four units, and who may have its partitions then.
 *   "+UT" tenant T is lent the units U, "&UT" has a share there, "*U" they are scrubbed, "!U" their
 *   scrub fails, "?U" is interrupted, "~U" they are scrubbed in part beside others; a letter behind the units
 * is the geometry of the partition */
static const struct {
    const char *name, *scenario;
    uint32_t units, tenant;
    bool allowed, failed, unknown;
    char shape; /* of the partition that is asked for */
} cases[] = {
    { "never scrubbed", "", 0x1, A, false, false, true },
    { "scrubbed", "*1", 0x1, A, true, false, false },
    { "scrubbed, half of it", "*1", 0x3, A, false, false, true },
    { "its own", "*1 +1A", 0x1, A, true, false, false },
    { "another's", "*1 +1A", 0x1, B, false, false, false },
    { "another's beside it", "*3 +1A", 0x2, B, true, false, false },
    { "another's in part", "*3 +1A", 0x3, B, false, false, false },
    { "its own and clean", "*3 +1A", 0x3, A, true, false, false },
    { "scrubbed after another", "*1 +1A *1", 0x1, B, true, false, false },
    { "a scrub of more than it", "*3 +3A *f", 0x3, B, true, false, false },
    { "a scrub of less than it", "*3 +3A *1", 0x3, B, false, false, false },
    { "a scrub that failed", "*1 +1A !1", 0x1, B, false, true, false },
    { "a scrub that failed: its own", "*1 +1A !1", 0x1, A, false, true, false },
    { "failed, then not", "*1 +1A !1 *1", 0x1, B, true, false, false },
    { "failed beside it", "*3 !2", 0x1, A, true, false, false },
    { "nobody's, clean", "*1", 0x1, 0, true, false, false },
    { "nobody's, another's", "*1 +1A", 0x1, 0, false, false, false },
    { "all units where not noted", "*f +1A", 0x0, B, false, false, false },
    { "shared by its own", "*f &fA &fA", 0xf, A, true, false, false },
    { "shared with another", "*f &fA &fB", 0xf, A, false, false, false },
    { "shared with another: the last", "*f &fA &fB", 0xf, B, false, false, false },
    { "shared, an instance of it", "*f &fA &fB", 0x1, A, false, false, false },
    { "shared, scrubbed", "*f &fA &fB *f", 0xf, A, true, false, false },
    { "shared, an instance scrubbed", "*f &fA &fB *1", 0x1, A, true, false, false },
    { "shared, the others not", "*f &fA &fB *1", 0x2, A, false, false, false },
    { "shared, then its own whole", "*f &fA &fB +fA", 0xf, A, true, false, false },
    { "shared on unknown memory", "&fA", 0xf, A, false, false, false },
    { "scrubbed in part", "*f &fA &fB ~f", 0xf, A, false, false, false },
    { "interrupted", "*1 +1A ?1", 0x1, A, false, true, false },
    { "gap: the same piece, its own", "*1s +1A", 0x1, A, true, false, false, 's' },
    { "gap: the same piece, clean", "*1s", 0x1, B, true, false, false, 's' },
    { "gap: the same, many times", "*1s +1A *1s +1B *1s +1A", 0x1, A, true, false, false, 's' },
    { "gap: another profile, its own", "*1s +1A", 0x1, A, false, false, true, 'e' },
    { "gap: another profile, clean", "*1s", 0x1, A, false, false, true, 'e' },
    { "gap: another profile, another's", "*1s +1A", 0x1, B, false, false, false, 'e' },
    { "gap: the same profile elsewhere", "*1s +1A", 0x1, A, false, false, true, 't' },
    { "gap: a larger one of small ones", "*1s *2t +3A", 0x3, A, false, false, true, 'm' },
    { "gap: a larger one, scrubbed", "*1s *2t +3A *3m +3A", 0x3, A, true, false, false, 'm' },
    { "gap: a small one of a larger", "*3m +3A", 0x1, A, false, false, true, 's' },
    { "gap: half of it made anew", "*3m +3A *1s +1A", 0x3, A, false, false, true, 'm' },
    { "gap: the same beside that", "*3m *2t", 0x1, A, false, false, true, 's' },
    { "gap: the whole GPU", "*1s +1A", 0x1, A, false, false, true, 'w' },
    { "gap: of the whole GPU", "*fw +fA", 0x1, A, false, false, true, 's' },
    { "gap: a share of a whole GPU", "*fw +fA", 0xf, A, true, false, false, 'h' },
    { "gap: another share", "*fh &fA", 0xf, A, true, false, false, 'i' },
    { "gap: the whole GPU of shares", "*fi &fA", 0xf, A, true, false, false, 'w' },
    { "gap: a part does not fill it", "*3m +3A ~1s", 0x1, A, false, false, true, 's' },
    { "gap: a failure does not", "*3m +3A !1s", 0x1, A, false, true, false, 's' },
    { "gap: nobody knows", "+1A", 0x1, A, false, false, true, 's' },
};

static void
ownership_test_list(struct bh_ownership_map *table, const char *scenario)
{
    for (const char *at = scenario; *at; at += *at != '\0') {
        char *end;
        uint32_t units = (uint32_t)strtoul(at + 1, &end, 16);
        struct bh_msg_receipt receipt = { .result = *at == '!'   ? BH_SCRUB_FAILED
                                                    : *at == '?' ? BH_SCRUB_INTERRUPTED
                                                    : *at == '~' ? BH_SCRUB_PARTIAL
                                                                 : BH_SCRUB_CLEAN,
                                          .beside = *at == '~' };
        struct bh_err err;

        end += find_shape(*end, receipt.profile, &receipt.start);
        snprintf(receipt.gpu, sizeof receipt.gpu, "%s", gpu);
        assert_int_equal(bh_ownership_map_reserve(table, &err), BH_OK);
        if (*at == '+' || *at == '&') {
            struct bh_ownership_unit as = { .tenant = at[2] == 'A' ? A : B, .job = 1 };
            char one[] = { at[1], '\0' };

            units = (uint32_t)strtoul(one, NULL, 16);
            (*at == '+' ? bh_ownership_map_set : bh_ownership_map_add)(table, gpu, units, &as);
            end = (char *)(uintptr_t)&at[3];
        } else {
            bh_ownership_map_apply_receipt(table, units, &receipt);
        }
        at = end;
        if (!*at)
            return;
    }
}

static void
test_stories(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_ownership_map table = { 0 };
        struct bh_node_partition partition = partition_at(cases[i].units);

        find_shape(cases[i].shape, partition.profile, &partition.start);
        ownership_test_list(&table, cases[i].scenario);
        BH_CHECK_EQ(cases[i].name, bh_ownership_map_allows(&table, &partition, cases[i].tenant),
                    cases[i].allowed);
        BH_CHECK_EQ(cases[i].name, bh_ownership_map_has_failed(&table, &partition), cases[i].failed);
        BH_CHECK_EQ(cases[i].name, bh_ownership_map_is_unknown(&table, &partition, cases[i].tenant),
                    cases[i].unknown);
        bh_ownership_map_free(&table);
    }
    BH_CHECK_DONE();
}

static void
test_list(void **state)
{
    struct bh_ownership_map table = { 0 };
    struct bh_node_partition partition = partition_at(0xf);
    struct bh_msg_receipt receipt = { 0 };

    ownership_test_list(&table, "*f +3A +4B");
    bh_ownership_map_list_owners(&table, &partition, &receipt);
    BH_CHECK_EQ("each once, the clean one not", receipt.from_count, 2);
    BH_CHECK_EQ("first", receipt.from[0].tenant, A);
    BH_CHECK_EQ("second", receipt.from[1].tenant, B);
    ownership_test_list(&table, "*f &fA &fB");
    bh_ownership_map_list_owners(&table, &partition, &receipt);
    BH_CHECK_EQ("all that share it", receipt.from_count, 2);
    BH_CHECK_EQ("the last", receipt.from[1].tenant, B);
    ownership_test_list(&table, "+3A +cB");
    BH_CHECK_EQ("units alike", bh_ownership_map_alike(&table.items[0], 0), 0x3);
    snprintf(partition.gpu, sizeof partition.gpu, "GPU-2");
    bh_ownership_map_list_owners(&table, &partition, &receipt);
    BH_CHECK_EQ("a GPU that nobody knows", receipt.from_count, 1);
    BH_CHECK_EQ("its tenant", receipt.from[0].tenant, BH_OWNERSHIP_UNKNOWN);
    bh_ownership_map_free(&table);
    BH_CHECK_DONE();
}

/* Whose bytes may stand in what smaller partitions left out, behind those who had its memory last. */
static void
test_list_gaps(void **state)
{
    static const struct {
        const char *name, *scenario;
        char shape;
        uint32_t from[4], count;
        /* clang-format off */
    } lists[] = {
        { "never scrubbed: once",           "",                        'm', { BH_OWNERSHIP_UNKNOWN }, 1 },
        { "the same geometry: who had it",  "*3m +3A *3m +3B",         'm', { B }, 1 },
        { "the same geometry: clean",       "*3m +3A *3m",             'm', { 0 }, 0 },
        { "another: who had it before, too", "*3m +3A *1s *2t +3B",    'm', { B, BH_OWNERSHIP_UNKNOWN, A }, 3 },
        { "another: clean",                 "*3m +3A *1s *2t",         'm', { BH_OWNERSHIP_UNKNOWN, A }, 2 },
        { "a gap in a gap",                 "*3m +3A *1s *2t *3m +3B", 'w', { B, BH_OWNERSHIP_UNKNOWN, A }, 3 },
        { "of shares",                      "*fw &fA &fB *fw",         's', { BH_OWNERSHIP_UNKNOWN, A, B }, 3 },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(lists); i++) {
        struct bh_ownership_map table = { 0 };
        struct bh_node_partition partition = partition_at(0x3);
        struct bh_msg_receipt receipt = { 0 };

        find_shape(lists[i].shape, partition.profile, &partition.start);
        ownership_test_list(&table, lists[i].scenario);
        bh_ownership_map_list_owners(&table, &partition, &receipt);
        BH_CHECK_EQ(lists[i].name, receipt.from_count, lists[i].count);
        for (uint32_t at = 0; at < lists[i].count; at++)
            BH_CHECK_EQ(lists[i].name, receipt.from[at].tenant, lists[i].from[at]);
        bh_ownership_map_free(&table);
    }
    BH_CHECK_DONE();
}

/* Eight jobs of one tenant leave no room for what is in the gaps: a tenant is named before a second job of
 * one. */
static void
test_list_full(void **state)
{
    struct bh_ownership_map table = { 0 };
    struct bh_node_partition partition = partition_at(0xff);
    struct bh_msg_receipt receipt = { 0 };

    ownership_test_list(&table, "*fw +fA *fs");
    for (uint32_t u = 0; u < 8; u++)
        bh_ownership_map_set(&table, gpu, 1u << u, &(struct bh_ownership_unit){ .tenant = B, .job = u + 1 });
    bh_ownership_map_list_owners(&table, &partition, &receipt);
    BH_CHECK_EQ("as many as fit", receipt.from_count, BH_RECEIPT_FROM_MAX);
    BH_CHECK_EQ("the first job", receipt.from[0].job, 1);
    BH_CHECK_EQ("the last that is left", receipt.from[5].job, 6);
    BH_CHECK_EQ("the tenant before", receipt.from[6].tenant, A);
    BH_CHECK_EQ("and nobody known", receipt.from[7].tenant, BH_OWNERSHIP_UNKNOWN);
    BH_CHECK_EQ("units alike", bh_ownership_map_alike(&table.items[0], 0), 0x1);
    bh_ownership_map_free(&table);
    BH_CHECK_DONE();
}

/* Which scrubs left memory clean that was for another job. */
static void
test_prove(void **state)
{
    static const struct bh_msg_receipt scrubs[] = {
        { .order = 40, .job = 1, .tenant = A, .method = BH_SCRUB_FILL, .gpu = "GPU-1" },
        { .order = 41,
          .job = 2,
          .tenant = A,
          .method = BH_SCRUB_RECREATE,
          .result = BH_SCRUB_UNSAMPLED,
          .gpu = "GPU-1" },
        { .order = 42, .job = 3, .tenant = B, .method = BH_SCRUB_EARLIER, .gpu = "GPU-1" },
    };
    static const struct {
        const char *name;
        uint32_t units;
        uint64_t job;
        bool found;
        uint32_t count, result;
        uint64_t first;
    } proofs[] = {
        { "of another job", 0x3, 9, true, 1, BH_SCRUB_CLEAN, 40 },
        { "its own", 0x3, 1, false, 0, BH_SCRUB_CLEAN, 0 },
        { "its own, and another", 0x7, 1, true, 1, BH_SCRUB_UNSAMPLED, 41 },
        { "of two, one unsampled", 0xf, 9, true, 2, BH_SCRUB_UNSAMPLED, 40 },
        { "what somebody had", 0x10, 9, false, 0, BH_SCRUB_CLEAN, 0 },
    };
    struct bh_ownership_map table = { 0 };

    ownership_test_list(&table, "*f +cB");
    bh_ownership_map_apply_receipt(&table, 0x3, &scrubs[0]);
    bh_ownership_map_apply_receipt(&table, 0xc, &scrubs[1]);
    bh_ownership_map_apply_receipt(&table, 0xf, &scrubs[2]); /* which changes nothing */
    bh_ownership_map_set(&table, gpu, 0x10, &(struct bh_ownership_unit){ .tenant = A, .job = 7 });
    for (size_t i = 0; i < BH_COUNT(proofs); i++) {
        struct bh_node_partition partition = partition_at(proofs[i].units);
        struct bh_msg_receipt receipt = { .job = proofs[i].job };

        BH_CHECK_EQ(proofs[i].name, bh_ownership_map_prove(&table, &partition, &receipt), proofs[i].found);
        BH_CHECK_EQ(proofs[i].name, receipt.by_count, proofs[i].count);
        BH_CHECK_EQ(proofs[i].name, receipt.result, proofs[i].result);
        BH_CHECK_EQ(proofs[i].name, receipt.by[0].receipt, proofs[i].first);
    }
    BH_CHECK_EQ("units of one scrub", bh_ownership_map_alike(&table.items[0], 0), 0x3);
    bh_ownership_map_free(&table);
    BH_CHECK_DONE();
}

/* More tenants than there is room for: the last row counts those that are not named. */
static void
test_too_many(void **state)
{
    struct bh_ownership_map table = { 0 };
    struct bh_node_partition partition = partition_at(0x1);
    struct bh_msg_receipt receipt = { 0 };
    struct bh_err err;

    assert_int_equal(bh_ownership_map_reserve(&table, &err), BH_OK);
    bh_ownership_map_set(&table, gpu, 0x1, &(struct bh_ownership_unit){ .clean = true });
    for (uint32_t i = 1; i <= BH_RECEIPT_FROM_MAX + 2; i++)
        bh_ownership_map_add(&table, gpu, 0x1, &(struct bh_ownership_unit){ .tenant = i, .job = i });
    bh_ownership_map_list_owners(&table, &partition, &receipt);
    BH_CHECK_EQ("as many as fit", receipt.from_count, BH_RECEIPT_FROM_MAX);
    BH_CHECK_EQ("the first", receipt.from[0].tenant, 1);
    BH_CHECK_EQ("the rest", receipt.from[BH_RECEIPT_FROM_MAX - 1].tenant, BH_OWNERSHIP_UNKNOWN);
    BH_CHECK("nobody's", !bh_ownership_map_allows(&table, &partition, 1));
    bh_ownership_map_free(&table);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_stories),   cmocka_unit_test(test_list),  cmocka_unit_test(test_list_gaps),
    cmocka_unit_test(test_list_full), cmocka_unit_test(test_prove), cmocka_unit_test(test_too_many),
};
BH_TEST_MAIN(tests)
