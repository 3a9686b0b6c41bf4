/* The owner thread under many workers: every answer is durable and no request waits for ever. */

#include "daemon/fixture/fixture_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/time.h"
#include "daemon/owner/owner.h"

enum { WORKERS = 8, JOBS_EACH = 40 };

struct worker {
    struct bh_owner owner;
    struct bh_caller caller;
    uint64_t ids[JOBS_EACH];
    uint32_t accepted, unavailable, questions;
    pthread_t thread;
};

static void
count_question(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    ++*(uint32_t *)self;
}

static bh_rc
submit_one(struct worker *worker, struct bh_arena *arena, uint64_t *ret_id)
{
    const char *args[] = { "true" };
    struct bh_job_spec spec = {
        .args = { args, 1 }, .tenant = "acme/vision/train", .sku = "small", .hold = true
    };
    struct bh_command command = {
        .op = BH_OP_JOB_SUBMIT, .caller = worker->caller, .spec = &spec, .text = "{}", .text_length = 2
    };
    struct bh_answer answer;
    struct bh_err err;
    bh_rc rc = bh_spec_check(&spec, &command.numbers, &err);

    if (rc == BH_OK)
        rc = worker->owner.ops->command(worker->owner.self, &command, arena, &answer, &err);
    if (rc == BH_OK)
        *ret_id = answer.job.v;
    return rc;
}

static void *
owner_work(void *self)
{
    struct worker *worker = self;
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_err err;

    for (int i = 0; i < JOBS_EACH; i++) {
        const struct bh_directory *dir = worker->owner.ops->directory_get(worker->owner.self);
        bh_rc rc = submit_one(worker, arena, &worker->ids[worker->accepted]);

        worker->owner.ops->directory_put(worker->owner.self, dir);
        worker->accepted += rc == BH_OK;
        worker->unavailable += rc == BH_UNAVAILABLE;
        if (worker->owner.ops->ask(worker->owner.self, count_question, &worker->questions, &err) != BH_OK)
            break;
        bh_arena_reset(arena);
    }
    bh_arena_free(arena);
    return NULL;
}

static void
start_workers(struct fixture *f, struct bh_owner_thread *owner, struct worker *workers)
{
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){ .owner = bh_owner_port(owner), .caller = caller_named(f, "alice") };
        pthread_create(&workers[i].thread, NULL, owner_work, &workers[i]);
    }
}

static void
test_answers_are_kept(void **unused)
{
    struct bh_owner_thread *owner;
    struct worker workers[WORKERS];
    struct bh_change changes[16];
    struct fixture f;
    bool seen[WORKERS * JOBS_EACH + 1] = { false };

    fixture_setup(&f);
    f.config.node_socket = "/nonexistent/node.sock";
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(bh_owner_start(&f.core, &owner, &f.err), BH_OK);
    start_workers(&f, owner, workers);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        BH_CHECK_EQ("accepted", workers[i].accepted, JOBS_EACH);
        BH_CHECK_EQ("questions", workers[i].questions, JOBS_EACH);
        for (uint32_t n = 0; n < workers[i].accepted; n++) {
            BH_CHECK("number in range", workers[i].ids[n] <= WORKERS * JOBS_EACH);
            BH_CHECK_EQ("given twice", seen[workers[i].ids[n]], false);
            seen[workers[i].ids[n]] = true;
        }
    }
    BH_CHECK_EQ("no change waits",
                bh_owner_port(owner).ops->changes(owner, bh_owner_port(owner).ops->change_number(owner),
                                                  BH_NS_PER_MS, changes, 16),
                0);
    bh_owner_stop(owner);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* A request that comes while the owner stops gets an answer, if only that the owner is unavailable. */
static void
test_stopping_leaves_no_request_waiting(void **unused)
{
    struct bh_owner_thread *owner;
    struct worker workers[WORKERS];
    struct fixture f;
    uint32_t accepted = 0;

    fixture_setup(&f);
    f.config.node_socket = "/nonexistent/node.sock";
    f.config.batch_max = 1;
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(bh_owner_start(&f.core, &owner, &f.err), BH_OK);
    start_workers(&f, owner, workers);
    bh_time_sleep(5 * BH_NS_PER_MS);
    bh_owner_halt(owner);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        accepted += workers[i].accepted;
    }
    bh_owner_stop(owner);
    close_core(&f);
    assert_int_equal(open_core(&f), BH_OK);
    BH_CHECK_EQ("kept", f.core.next_job - 1, accepted);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

struct sum {
    uint64_t records, strangers, known;
};

static bool
add_refusal(void *self, uint64_t seq, const char *leaf, size_t length)
{
    static char scratch[BH_RECORD_BYTES_MAX + 64];
    struct sum *sum = self;
    struct bh_record record;
    struct bh_err err;
    uint64_t times;

    assert_int_equal(bh_record_decode(leaf, length, scratch, &record, &err), BH_OK);
    times = record.count ? record.count : 1;
    if (strcmp(record.res, "unauthenticated") == 0) {
        sum->records++;
        sum->strangers += times;
        assert_int_equal(record.actor.via, BH_VIA_PEER);
        assert_true(record.actor.uid >= 100000);
    }
    if (strcmp(record.res, "denied") == 0)
        sum->known += times;
    return true;
}

/* Faster than the owner takes them: each is counted, few are records, and they leave room for others. */
static void
test_strangers_leave_room(void **unused)
{
    enum { USERS = 20000 };
    const struct bh_err turned_away = { .rc = BH_UNAUTHENTICATED }, denied = { .rc = BH_DENIED };
    const struct bh_refused_request tried = { .op = BH_OP_JOB_LIST };
    struct bh_owner_thread *owner;
    struct bh_caller alice;
    struct sum sum = { .records = 0 };
    struct bh_owner port;
    struct fixture f;

    fixture_setup(&f);
    f.config.node_socket = "/nonexistent/node.sock";
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    alice = caller_named(&f, "alice");
    assert_int_equal(bh_owner_start(&f.core, &owner, &f.err), BH_OK);
    port = bh_owner_port(owner);
    for (uint32_t uid = 100000; uid < 100000 + USERS; uid++) {
        const struct bh_caller stranger = { .via = BH_VIA_PEER, .subject.uid = uid };
        const struct bh_caller far = { .subject.uid = UINT32_MAX };

        port.ops->refused(port.self, &stranger, &tried, &turned_away);
        port.ops->refused(port.self, &far, &tried, &turned_away);
        if (uid % 1000 == 0)
            port.ops->refused(port.self, &alice, &tried, &denied);
    }
    bh_owner_stop(owner);
    assert_int_equal(
        f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, add_refusal, &sum, &f.err), BH_OK);
    BH_CHECK_EQ("each is counted", sum.strangers, USERS);
    BH_CHECK("in few records", sum.records <= 2 * BH_REFUSAL_GROUPS_UNKNOWN);
    BH_CHECK_EQ("who is known, too", sum.known, USERS / 1000);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* ---- a store that does not take what the daemon itself writes ---- */

static struct {
    struct bh_store_ops ops;
    void (*rollback)(void *self);
    bh_rc rc;
    _Atomic uint32_t commits;
} broken;

static bh_rc
broken_commit(void *self, struct bh_err *err)
{
    broken.commits++;
    broken.rollback(self);
    bh_err_set(err, broken.rc, "the store is broken");
    return bh_err_hint(err, "mend it");
}

/* A core whose record of its start is due, over a store whose commits fail. */
static void
broken_setup(struct fixture *f, bh_rc rc)
{
    fixture_setup(f);
    f->config.node_socket = "/nonexistent/node.sock";
    broken.ops = *f->core.store.ops;
    broken.rollback = broken.ops.rollback;
    broken.rc = rc;
    broken.commits = 0;
    broken.ops.commit = broken_commit;
    f->core.store.ops = &broken.ops;
    f->core.journal.store.ops = &broken.ops;
    f->core.start_due = true;
}

static void
test_own_work_that_fails_is_not_repeated_at_once(void **unused)
{
    enum { QUESTIONS = 200 };
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL, .job = { 1 } };
    struct bh_owner_thread *owner;
    struct bh_answer answer;
    struct bh_owner port;
    uint32_t answered = 0;
    struct fixture f;
    bh_rc rc;

    broken_setup(&f, BH_IO);
    cancel.caller = caller_named(&f, "root");
    assert_int_equal(bh_owner_start(&f.core, &owner, &f.err), BH_OK);
    port = bh_owner_port(owner);
    for (int i = 0; i < QUESTIONS; i++) /* each makes a batch */
        assert_int_equal(port.ops->ask(port.self, count_question, &answered, &f.err), BH_OK);
    BH_CHECK_EQ("questions are answered", answered, QUESTIONS);
    BH_CHECK("tried again after a pause", broken.commits < QUESTIONS / 4);
    while (broken.commits == 0)
        assert_int_equal(port.ops->ask(port.self, count_question, &answered, &f.err), BH_OK);
    do /* the pause of a slow machine may be over; each is longer */
        rc = port.ops->command(port.self, &cancel, f.arena, &answer, &f.err);
    while (rc == BH_IO);
    BH_CHECK_EQ("changes are refused", rc, BH_UNAVAILABLE);
    BH_CHECK("with the reason", strstr(f.err.msg, "(the store is broken)"));
    BH_CHECK("it runs", !bh_owner_failed(owner, &f.err));
    bh_owner_stop(owner);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_what_only_a_start_can_tell_ends_it(void **unused)
{
    struct bh_owner_thread *owner;
    struct fixture f;
    sigset_t ends;
    int number;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &ends, NULL), 0);
    broken_setup(&f, BH_UNCERTAIN);
    assert_int_equal(bh_owner_start(&f.core, &owner, &f.err), BH_OK);
    assert_int_equal(sigwait(&ends, &number), 0); /* main is woken */
    bh_owner_halt(owner);
    BH_CHECK("it ended", bh_owner_failed(owner, &f.err));
    BH_CHECK_STR("why", f.err.msg, "the store is broken");
    BH_CHECK_STR("what to do", f.err.hint, "mend it");
    BH_CHECK_EQ("tried once", broken.commits, 1);
    bh_owner_stop(owner);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_own_work_that_fails_is_not_repeated_at_once),
    cmocka_unit_test(test_what_only_a_start_can_tell_ends_it),
    cmocka_unit_test(test_answers_are_kept),
    cmocka_unit_test(test_stopping_leaves_no_request_waiting),
    cmocka_unit_test(test_strangers_leave_room),
};

BH_TEST_MAIN(tests)
