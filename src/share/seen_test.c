/* What the processes of a lease report to have asked the driver for, all together. */
#include "share/pages.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"

#define MIB (UINT64_C(1) << 20)
#define MOST UINT32_MAX

/* Rows: what three processes report, of which the last then dies. */
static const struct {
    const char *name;
    uint32_t kind[3], grains[3];
    uint32_t is, is_then;
    uint64_t grains_all, grains_then;
    /* clang-format off */
} cases[] = {
    { "none has reported", { 0, 0, 0 }, { 0, 0, 0 }, BH_SHARE_SEEN_NOT, BH_SHARE_SEEN_NOT, 0, 0 },
    { "none can", { 1, 1, 1 }, { 0, 0, 0 }, BH_SHARE_SEEN_ABSENT, BH_SHARE_SEEN_ABSENT, 0, 0 },
    { "all", { 3, 3, 3 }, { 5, 7, 100 }, BH_SHARE_SEEN_WHOLE, BH_SHARE_SEEN_WHOLE, 112, 12 },
    { "one cannot", { 3, 3, 1 }, { 5, 7, 0 }, BH_SHARE_SEEN_PARTLY, BH_SHARE_SEEN_WHOLE, 12, 12 },
    { "one can", { 1, 1, 3 }, { 0, 0, 9 }, BH_SHARE_SEEN_PARTLY, BH_SHARE_SEEN_ABSENT, 9, 0 },
    { "a part", { 3, 2, 3 }, { 5, 7, 9 }, BH_SHARE_SEEN_PARTLY, BH_SHARE_SEEN_PARTLY, 21, 12 },
    { "one has not reported yet", { 3, 0, 0 }, { 5, 0, 0 }, BH_SHARE_SEEN_WHOLE, BH_SHARE_SEEN_WHOLE,
      5, 5 },
    { "no such kind", { 3, 77, 77 }, { MOST, MOST, MOST }, BH_SHARE_SEEN_WHOLE,
      BH_SHARE_SEEN_WHOLE, 3 * (uint64_t)MOST, 2 * (uint64_t)MOST },
};
/* clang-format on */

static void
counts_are_added_up(void **state)
{
    struct bh_share_open open = { .lease = 1, .gpu_count = 2, .folder = "/tmp/bh-seen-XXXXXX" };
    BH_AUTO(bh_share_pages_free) struct bh_share_pages *pages = NULL;
    struct bh_share_usage *usage;
    struct bh_err err = { 0 };
    char path[256];

    assert_non_null(mkdtemp(open.folder));
    for (int d = 0; d < 2; d++)
        open.gpus[d] = (struct bh_share_gpu){ .uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff",
                                              .cap_bytes = 64 * MIB };
    assert_int_equal(bh_share_pages_open(&open, &pages, &err), BH_OK);
    usage = mmap(NULL, sizeof(*usage), PROT_READ | PROT_WRITE, MAP_SHARED, bh_share_pages_usage_fd(pages), 0);
    assert_true(usage != MAP_FAILED);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int s = 0; s < 3; s++) {
            (void)bh_share_pages_assign(pages, (struct bh_share_owner){ 1, 1 });
            atomic_store(&usage->seen_kind[s], cases[i].kind[s]);
            atomic_store(&usage->seen[s].grains[1], cases[i].grains[s]);
        }
        atomic_store(&usage->seen_kind[3], 2); /* no process has that slot */
        atomic_store(&usage->seen[3].grains[1], 1000);
        BH_CHECK_EQ(cases[i].name, bh_share_pages_seen_kind(pages), cases[i].is);
        BH_CHECK_EQ(cases[i].name, bh_share_pages_seen_bytes(pages, 1) / BH_SHARE_SEEN_BYTES,
                    cases[i].grains_all);
        BH_CHECK("reaped", bh_share_pages_reap(pages, 2));
        BH_CHECK_EQ(cases[i].name, bh_share_pages_seen_kind(pages), cases[i].is_then);
        BH_CHECK_EQ(cases[i].name, bh_share_pages_seen_bytes(pages, 1) / BH_SHARE_SEEN_BYTES,
                    cases[i].grains_then);
        BH_CHECK_EQ("forgotten", atomic_load(&usage->seen_kind[2]), BH_SHARE_SEEN_NOT);
        BH_CHECK_EQ("forgotten", atomic_load(&usage->seen[2].grains[1]), 0);
        BH_CHECK("reaped", bh_share_pages_reap(pages, 1) && bh_share_pages_reap(pages, 0));
    }
    BH_CHECK_EQ("the other device", bh_share_pages_seen_bytes(pages, 0), 0);
    BH_CHECK_EQ("no device", bh_share_pages_seen_bytes(pages, BH_SHARE_DEVICES_MAX), 0);
    munmap(usage, sizeof(*usage));
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof(path), "%s/%s", open.folder, k == 0 ? "limits" : "slots");
        unlink(path);
    }
    BH_CHECK_EQ("folder", rmdir(open.folder), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(counts_are_added_up) };

BH_TEST_MAIN(tests)
