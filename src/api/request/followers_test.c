/* Streams are woken for every change that comes after they joined. */
#include "api/request/followers.h"

#include <stdatomic.h>

#include "base/lock.h"
#include "base/test.h"

enum { FOLLOWERS = 3 };

#define WITHIN_NS (20 * BH_NS_PER_S) /* of what happens at once, on the slowest machine */

static _Atomic uint64_t newest;
static _Atomic unsigned woken[FOLLOWERS];

static uint64_t
followers_test_number(void *self)
{
    return newest;
}

static uint32_t
followers_test_changes(void *self, uint64_t after, uint64_t wait_ns, struct bh_change *ret_changes,
                       uint32_t max)
{
    bh_ns until = bh_time_monotonic() + wait_ns;

    while (newest == after && bh_time_monotonic() < until)
        bh_time_sleep(BH_NS_PER_MS);
    if (newest == after)
        return 0;
    ret_changes[0] = (struct bh_change){ .number = newest };
    return 1;
}

static const struct bh_owner_ops followers_test_ops = { .change_number = followers_test_number,
                                                        .changes = followers_test_changes };

static void
followers_test_wake(void *self)
{
    ++*(_Atomic unsigned *)self;
}

static bool
becomes_awake(int follower, unsigned than)
{
    for (bh_ns until = bh_time_monotonic() + WITHIN_NS; bh_time_monotonic() < until;) {
        if (woken[follower] > than)
            return true;
        bh_time_sleep(BH_NS_PER_MS);
    }
    return false;
}

static void
each_change_wakes_all_that_have_joined(void **state)
{
    struct bh_followers *followers = bh_followers_new(&(struct bh_owner){ &followers_test_ops, NULL });
    struct bh_follower follower[FOLLOWERS] = { 0 };
    unsigned before;

    newest = 7;
    bh_followers_leave(followers, &follower[0]); /* has not joined */
    for (int i = 0; i < FOLLOWERS; i++) {
        const struct bh_waker waker = { followers_test_wake, (void *)(uintptr_t)&woken[i] };

        bh_followers_join(followers, &follower[i], &waker);
    }
    newest++;
    for (int i = 0; i < FOLLOWERS; i++)
        BH_CHECK("woken", becomes_awake(i, 0));
    before = woken[1];
    bh_followers_leave(followers, &follower[1]);
    newest++;
    BH_CHECK("woken again", becomes_awake(0, 1) && becomes_awake(2, 1));
    BH_CHECK_EQ("one that left is not", woken[1], before);
    bh_followers_leave(followers, &follower[0]);
    bh_followers_leave(followers, &follower[2]);
    newest++; /* while there are none */
    before = woken[0];
    bh_followers_join(followers, &follower[0],
                      &(struct bh_waker){ followers_test_wake, (void *)(uintptr_t)&woken[0] });
    newest++;
    BH_CHECK("one that comes again is", becomes_awake(0, before));
    bh_followers_leave(followers, &follower[0]);
    bh_followers_free(followers);
    bh_followers_free(NULL);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_wakes_all_that_have_joined),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
