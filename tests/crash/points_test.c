/* The daemon's core works on a disk that is written down call by call (disk.h); then it is
 * started again on what a crash before each call may have left.  At every crash point:
 *
 *   it starts;
 *   every record that was acknowledged is there, byte for byte, and what else is there
 *     stands as it was written: whole batches, with the jobs and tokens that came with them;
 *   the log verifies, and covers all that was ever signed; so does the watermark;
 *   it goes on: another record, another signature.
 *
 *   points_test [points [seed]] */

#include "tests/crash/left.h"

#include <inttypes.h>

#include "base/log.h"
#include "daemon/batch/record.h"
#include "tests/crash/disk.h"

enum { POINTS_PER_RUN = 4000, RECORDS_MAX = 8192, SNAPSHOT_EVERY = 73 };

enum mark { MARK_COMMITTING, MARK_ACKNOWLEDGED, MARK_SIGNED };

/* What can be wrong after a crash. */
enum finding { REFUSED, LOST, TORN, BROKEN, SIGNED_MORE, STUCK, FINDINGS };
static const char *const finding_names[FINDINGS] = {
    "starts refused", "acknowledged records lost",         "batches torn",
    "logs broken",    "signatures over what is not there", "starts that do not go on",
};

struct leaf {
    char *bytes;
    size_t length;
};

/* The state of things at the end of a batch. */
struct boundary {
    uint64_t records, jobs, tokens;
};

static struct fixture f;
static struct leaf leaves[RECORDS_MAX];
static struct boundary boundaries[RECORDS_MAX];
static uint32_t boundary_count;
static uint64_t tokens_made;
static uint64_t found[FINDINGS];
static char first_found[FINDINGS][300];
static uint64_t points_wanted = 1000, seed_wanted = 1, random_state;

static uint32_t
draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((random_state >> 33) % below);
}

/* ---- a run ---- */

static const struct bh_store_ops *real_store;
static struct bh_store_ops marking_store;
static struct bh_crypto_ops marking_crypto;

static bh_rc
commit_with_marks(void *self, struct bh_err *err)
{
    uint64_t records = f.core.journal.next_seq;
    bh_rc rc;

    bh_disk_mark(MARK_COMMITTING, records);
    rc = real_store->commit(self, err);
    bh_disk_mark(MARK_ACKNOWLEDGED, records);
    boundaries[boundary_count++] = (struct boundary){ records, f.core.next_job - 1, tokens_made };
    return rc;
}

/* A checkpoint's second line is its size. */
static bh_rc
sign_with_mark(const uint8_t private_key[32], const void *message, size_t length, uint8_t ret_signature[64],
               struct bh_err *err)
{
    const char *line = memchr(message, '\n', length);

    assert_non_null(line);
    bh_disk_mark(MARK_SIGNED, strtoull(line + 1, NULL, 10));
    return bh_crypto_openssl.sign(private_key, message, length, ret_signature, err);
}

static void
start_core(void)
{
    if (open_core(&f) != BH_OK)
        fail_msg("%s", f.err.msg);
    real_store = f.core.store.ops;
    marking_store = *real_store;
    marking_store.commit = commit_with_marks;
    f.core.store.ops = &marking_store;
    marking_crypto = bh_crypto_openssl;
    marking_crypto.sign = sign_with_mark;
    f.signer.crypto = &marking_crypto;
}

static void
make_token(void)
{
    struct bh_token_request request = { .scopes = "job.submit", .lifetime = "1d" };
    struct bh_command command = { .op = BH_OP_TOKEN_CREATE,
                                  .token = &request,
                                  .caller = caller_named(&f, "alice") };

    tokens_made++;
    assert_int_equal(bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err), BH_OK);
}

/* One batch of a few records, as workers would have queued them. */
static void
run_batch(void)
{
    struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                              .phase = BH_PHASE_EVENT,
                              .verb = "test.note" };
    uint32_t count = 1 + draw(5);

    if (draw(4) == 0)
        f.core.journal.asked_ns = 0; /* a checkpoint is due */
    for (uint32_t i = 0; i < count; i++) {
        entry.obj = (struct bh_record_object){ "test", draw(1 << 20) };
        assert_int_equal(bh_core_record(&f.core, &entry, BH_OK, &f.err), BH_OK);
    }
    if (draw(3) == 0)
        make_token();
    if (draw(3) == 0)
        assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    else
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    bh_arena_reset(f.arena);
}

static bool
keep_leaf(void *self, uint64_t seq, const char *bytes, size_t length)
{
    assert_true(seq < RECORDS_MAX);
    leaves[seq].bytes = malloc(length + 1);
    assert_non_null(leaves[seq].bytes);
    memcpy(leaves[seq].bytes, bytes, length);
    leaves[seq].length = length;
    return true;
}

/* From the first start on, restarted `restarts` times. */
static void
record_run(uint32_t restarts, uint32_t batches)
{
    left_make_folder(f.folder);
    boundary_count = 0;
    tokens_made = 0;
    bh_disk_record(f.folder);
    start_core();
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    for (uint32_t i = 0; i <= restarts; i++) {
        for (uint32_t n = 0; n < batches; n++)
            run_batch();
        if (i == restarts)
            break;
        close_core(&f);
        start_core();
    }
    bh_disk_pause();
    assert_int_equal(real_store->list_records(f.core.store.self, 0, INT64_MAX, keep_leaf, NULL, &f.err),
                     BH_OK);
    close_core(&f);
    left_remove(f.folder);
}

static void
forget_run(void)
{
    bh_disk_forget();
    for (size_t i = 0; i < RECORDS_MAX; i++)
        free(leaves[i].bytes);
    memset(leaves, 0, sizeof leaves);
}

/* ---- after the crash ---- */

/* What the program had promised before the point. */
struct promised {
    uint64_t acknowledged, signed_size;
    bool early; /* a fault of the test: acknowledged before it was committed */
};

static void
take_promise(void *self, size_t at, uint32_t kind, uint64_t number)
{
    struct promised *promised = self;

    if (kind == MARK_SIGNED)
        promised->signed_size = number;
    else if (kind == (promised->early ? MARK_COMMITTING : MARK_ACKNOWLEDGED))
        promised->acknowledged = number;
}

static void
find(enum finding finding, size_t point, uint64_t seed, const char *detail)
{
    if (found[finding]++ == 0)
        snprintf(first_found[finding], sizeof first_found[finding], "call %zu, seed %" PRIu64 ": %.200s",
                 point, seed, detail);
}

struct comparison {
    uint64_t next;
    bool same;
};

static bool
compare_leaf(void *self, uint64_t seq, const char *bytes, size_t length)
{
    struct comparison *comparison = self;

    comparison->same = seq == comparison->next && seq < RECORDS_MAX && leaves[seq].length == length
                       && memcmp(leaves[seq].bytes, bytes, length) == 0;
    comparison->next++;
    return comparison->same;
}

static bool
count_token(void *self, const struct bh_token_row *row)
{
    ++*(uint64_t *)self;
    return row->id[0] != '\0';
}

/* How many records there are and whether the same ones were written, with what belongs
 * to them. */
static bool
as_at_a_boundary(uint64_t *ret_records)
{
    const struct bh_job_filter all = { 0 };
    const struct bh_token_filter every_token = { 0 };
    struct comparison comparison = { .same = true };
    uint64_t jobs = 0, tokens = 0;
    const struct bh_store *store = &f.core.store;
    bh_rc rc = store->ops->list_records(store->self, 0, INT64_MAX, compare_leaf, &comparison, &f.err);

    if (rc == BH_OK)
        rc = store->ops->count_jobs(store->self, &all, &jobs, &f.err);
    if (rc == BH_OK)
        rc = store->ops->list_tokens(store->self, &every_token, count_token, &tokens, &f.err);
    *ret_records = comparison.same ? comparison.next : comparison.next - 1;
    if (rc != BH_OK || !comparison.same)
        return false;
    if (comparison.next == 0)
        return jobs == 0 && tokens == 0;
    for (uint32_t i = 0; i < boundary_count; i++)
        if (boundaries[i].records == comparison.next)
            return boundaries[i].jobs == jobs && boundaries[i].tokens == tokens;
    return false;
}

static bool
goes_on(void)
{
    const struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                    .phase = BH_PHASE_EVENT,
                                    .verb = "daemon.start" };
    uint64_t records = f.core.journal.next_seq;

    for (int i = 0; i < 2; i++) { /* what the first one writes is signed with the second */
        f.core.journal.asked_ns = 0;
        if (bh_core_record(&f.core, &entry, BH_OK, &f.err) != BH_OK
            || bh_core_commit(&f.core, &f.err) != BH_OK)
            return false;
    }
    return f.core.journal.signed_size > records;
}

static void
judge_core(size_t point, uint64_t seed, const struct promised *promised)
{
    uint64_t records;

    if (!as_at_a_boundary(&records))
        find(TORN, point, seed, "");
    if (records < promised->acknowledged)
        find(LOST, point, seed, "");
    if (records < promised->signed_size || f.core.journal.checkpoints.watermark_size < promised->signed_size)
        find(SIGNED_MORE, point, seed, "");
    if (!goes_on())
        find(STUCK, point, seed, f.err.msg);
    if (!left_verifies(&f))
        find(BROKEN, point, seed, f.err.msg);
}

static void
crash_at(size_t point, uint64_t seed, bool early)
{
    struct promised promised = { .early = early };
    bh_rc rc;

    bh_disk_marks(point, take_promise, &promised);
    bh_disk_crash(point, seed, f.folder);
    rc = left_open(&f);
    if (rc != BH_OK)
        find(REFUSED, point, seed, f.err.msg);
    else
        judge_core(point, seed, &promised);
    left_close(&f);
    left_empty(f.folder);
}

/* `count` crashes, all along the run. */
static void
crash_along(uint64_t count, uint64_t seed, bool early)
{
    size_t length = bh_disk_length();

    memset(found, 0, sizeof found);
    left_make_folder(f.folder);
    bh_disk_rewind();
    for (uint64_t i = 0; i < count; i++)
        crash_at(count > 1 ? i * length / (count - 1) : 0, seed * POINTS_PER_RUN + i, early);
    left_remove(f.folder);
}

static uint64_t
tell_found(void)
{
    uint64_t total = 0;

    for (int i = 0; i < FINDINGS; i++) {
        if (found[i])
            print_message("# %" PRIu64 " %s, first at %s\n", found[i], finding_names[i], first_found[i]);
        total += found[i];
    }
    return total;
}

/* ---- the tests ---- */

static struct bh_arena *config_arena;

static int
prepare(void **state)
{
    bh_log_setup("points_test", false, BH_LOG_ERROR);
    config_arena = bh_arena_new(1 << 20);
    assert_int_equal(bh_params_parse(&bh_daemon_params, "", &f.config, config_arena, &f.err), BH_OK);
    f.config.state_dir = f.folder;
    f.config.checkpoint_interval = UINT64_C(3600) * 1000000000; /* when a test says so */
    f.config.snapshot_every = SNAPSHOT_EVERY;
    f.arena = bh_arena_new(8 << 20); /* reset now and then */
    return 0;
}

static int
clean(void **state)
{
    bh_arena_free(f.arena);
    bh_arena_free(config_arena);
    return 0;
}

static void
nothing_acknowledged_is_lost(void **state)
{
    uint64_t left = points_wanted, calls = 0, runs = 0;

    for (uint64_t seed = seed_wanted; left > 0; seed++, runs++) {
        uint64_t count = left < POINTS_PER_RUN ? left : POINTS_PER_RUN;

        random_state = seed;
        /* every third without a restart, long enough for the store's own thread to copy */
        if (seed % 3 == 0)
            record_run(0, 260);
        else
            record_run(4, 14);
        calls += bh_disk_length();
        crash_along(count, seed, false);
        forget_run();
        assert_int_equal(tell_found(), 0);
        left -= count;
    }
    print_message("# %" PRIu64 " crash points in %" PRIu64 " runs of %" PRIu64
                  " calls and remarks: nothing lost\n",
                  points_wanted, runs, calls);
}

/* What the check is worth: disks and programs that are wrong are found out. */
enum planted { PLANTED_NO_LOG_FLUSH, PLANTED_NO_MARK_FLUSH, PLANTED_EARLY, PLANTED };

static void
planted_faults_are_found(void **state)
{
    static const struct {
        const char *name, *unflushed;
        bool early;
        enum finding finding;
    } cases[PLANTED] = {
        [PLANTED_NO_LOG_FLUSH] = { "commits are not flushed", "bulkhead.db-wal", false, LOST },
        [PLANTED_NO_MARK_FLUSH] = { "the watermark is not flushed", "audit.signed", false, REFUSED },
        [PLANTED_EARLY] = { "acknowledged before the commit", NULL, true, LOST },
    };

    for (size_t i = 0; i < PLANTED; i++) {
        random_state = seed_wanted;
        record_run(0, 12);
        if (cases[i].unflushed)
            bh_disk_drop_flushes(cases[i].unflushed);
        crash_along(60, seed_wanted, cases[i].early);
        BH_CHECK(cases[i].name, found[cases[i].finding] > 0);
        forget_run();
    }
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost),
        cmocka_unit_test(planted_faults_are_found),
    };

    if (argc > 1)
        points_wanted = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed_wanted = strtoull(argv[2], NULL, 10);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, prepare, clean);
}
