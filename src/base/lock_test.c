/* A mutex keeps others out, knows who holds it, and stands by the order of tables/locks.tbl. */

#include "base/lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/test.h"

enum { THREADS = 4, ROUNDS = 20000 };

static struct {
    struct bh_mutex mutex;
    struct bh_condition changed;
    uint64_t count;
    bool held_elsewhere, go;
} shared;

static int
begin(void **state)
{
    bh_mutex_init(&shared.mutex, BH_LOCK_OWNER);
    bh_condition_init(&shared.changed);
    return 0;
}

static int
end(void **state)
{
    bh_condition_fini(&shared.changed);
    bh_mutex_fini(&shared.mutex);
    return 0;
}

static void *
count_up(void *self)
{
    for (int i = 0; i < ROUNDS; i++) {
        bh_mutex_lock(&shared.mutex);
        shared.count++;
        bh_mutex_unlock(&shared.mutex);
    }
    return NULL;
}

static void
test_others_wait(void **state)
{
    pthread_t threads[THREADS];

    shared.count = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    BH_CHECK_EQ("none is lost", shared.count, THREADS * ROUNDS);
    BH_CHECK_DONE();
}

static void *
look_and_wait(void *self)
{
    bool free_soon = bh_mutex_lock_until(&shared.mutex, bh_time_monotonic() + BH_NS_PER_MS);

    shared.held_elsewhere = bh_mutex_is_held(&shared.mutex) || free_soon;
    return NULL;
}

static void
test_it_knows_who_holds_it(void **state)
{
    pthread_t thread;

    BH_CHECK("free", !bh_mutex_is_held(&shared.mutex));
    bh_mutex_lock(&shared.mutex);
    BH_CHECK("held", bh_mutex_is_held(&shared.mutex));
    assert_int_equal(pthread_create(&thread, NULL, look_and_wait, NULL), 0);
    pthread_join(thread, NULL);
    BH_CHECK("not by another thread, which waits in vain", !shared.held_elsewhere);
    bh_mutex_unlock(&shared.mutex);
    BH_CHECK("free again", !bh_mutex_is_held(&shared.mutex));
    BH_CHECK("in time", bh_mutex_lock_until(&shared.mutex, bh_time_monotonic() + BH_NS_PER_S));
    bh_mutex_unlock(&shared.mutex);
    BH_CHECK_DONE();
}

static void *
wait_to_go(void *self)
{
    bh_mutex_lock(&shared.mutex);
    while (!shared.go)
        bh_condition_wait(&shared.changed, &shared.mutex);
    shared.held_elsewhere = bh_mutex_is_held(&shared.mutex);
    bh_mutex_unlock(&shared.mutex);
    return NULL;
}

static void
test_a_condition_gives_it_away_and_takes_it_back(void **state)
{
    pthread_t thread;

    shared.go = shared.held_elsewhere = false;
    assert_int_equal(pthread_create(&thread, NULL, wait_to_go, NULL), 0);
    bh_mutex_lock(&shared.mutex);
    while (bh_condition_wait_until(&shared.changed, &shared.mutex, bh_time_monotonic() + BH_NS_PER_MS))
        ;
    BH_CHECK("mine again", bh_mutex_is_held(&shared.mutex));
    shared.go = true;
    bh_condition_broadcast(&shared.changed);
    bh_condition_signal(&shared.changed);
    bh_mutex_unlock(&shared.mutex);
    pthread_join(thread, NULL);
    BH_CHECK("the other had it", shared.held_elsewhere);
    BH_CHECK_DONE();
}

static void
take_in_order(struct bh_mutex *first, struct bh_mutex *second)
{
    bh_mutex_lock(first);
    bh_mutex_lock(second);
    bh_mutex_unlock(first);
    bh_mutex_unlock(second);
}

static void
take_out_of_order(struct bh_mutex *first, struct bh_mutex *second)
{
    bh_mutex_lock(second);
    bh_mutex_lock(first);
}

static void
take_twice(struct bh_mutex *first, struct bh_mutex *second)
{
    bh_mutex_lock(first);
    bh_mutex_lock(first);
}

static void
take_late_out_of_order(struct bh_mutex *first, struct bh_mutex *second)
{
    bh_mutex_lock(second);
    (void)!bh_mutex_lock_until(first, bh_time_monotonic());
}

static void
give_what_is_not_held(struct bh_mutex *first, struct bh_mutex *second)
{
    bh_mutex_unlock(first);
}

static void
wait_without_it(struct bh_mutex *first, struct bh_mutex *second)
{
    bh_condition_wait(&shared.changed, first);
}

static void
test_what_is_out_of_order_aborts(void **state)
{
    static const struct {
        const char *name;
        void (*run)(struct bh_mutex *first, struct bh_mutex *second);
        bool aborts;
    } cases[] = {
        { "in order", take_in_order, false },
        { "out of order", take_out_of_order, true },
        { "twice", take_twice, true },
        { "out of order, for a while", take_late_out_of_order, true },
        { "unlock of what is not held", give_what_is_not_held, true },
        { "wait without it", wait_without_it, true },
    };
    struct bh_mutex second;

    bh_mutex_init(&second, BH_LOCK_KEYS);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        int status = 0;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            cases[i].run(&shared.mutex, &second);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        BH_CHECK_EQ(cases[i].name, WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, cases[i].aborts);
    }
    bh_mutex_fini(&second);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_others_wait, begin, end),
    cmocka_unit_test_setup_teardown(test_it_knows_who_holds_it, begin, end),
    cmocka_unit_test_setup_teardown(test_a_condition_gives_it_away_and_takes_it_back, begin, end),
    cmocka_unit_test_setup_teardown(test_what_is_out_of_order_aborts, begin, end),
};

BH_TEST_MAIN(tests)
