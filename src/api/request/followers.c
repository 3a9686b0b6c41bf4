#include "api/request/followers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/lock.h"

enum { CHANGES_MAX = 64 };

#define WAIT_NS (100 * BH_NS_PER_MS) /* between looks at whether to stop */

struct bh_followers {
    struct bh_owner owner;
    pthread_t thread;
    struct bh_mutex mutex;
    struct bh_condition wake;
    /* under mutex */
    struct bh_follower *first;
    uint64_t number; /* all have seen this change, or were woken for it */
    bool running, stopping;
};

static void
followers_wake_all(struct bh_followers *followers)
{
    BH_ASSERT(bh_mutex_is_held(&followers->mutex));
    for (struct bh_follower *at = followers->first; at; at = at->next)
        at->waker.wake(at->waker.self);
}

/* Called and returns with the mutex held. */
static void
followers_await_changes(struct bh_followers *followers)
{
    struct bh_change changes[CHANGES_MAX];
    uint64_t number = followers->number;
    uint32_t count;

    bh_mutex_unlock(&followers->mutex);
    count = followers->owner.ops->changes(followers->owner.self, number, WAIT_NS, changes, CHANGES_MAX);
    bh_mutex_lock(&followers->mutex);
    if (count == 0)
        return;
    followers->number = changes[count - 1].number;
    followers_wake_all(followers);
}

static void *
followers_run(void *self)
{
    struct bh_followers *followers = self;

    bh_mutex_lock(&followers->mutex);
    while (!followers->stopping)
        if (followers->first)
            followers_await_changes(followers);
        else
            bh_condition_wait(&followers->wake, &followers->mutex);
    bh_mutex_unlock(&followers->mutex);
    return NULL;
}

struct bh_followers *
bh_followers_new(const struct bh_owner *owner)
{
    struct bh_followers *followers = calloc(1, sizeof *followers);

    BH_ASSERT(followers);
    followers->owner = *owner;
    bh_mutex_init(&followers->mutex, BH_LOCK_FOLLOWERS);
    bh_condition_init(&followers->wake);
    return followers;
}

void
bh_followers_free(struct bh_followers *followers)
{
    if (!followers)
        return;
    bh_mutex_lock(&followers->mutex);
    BH_ASSERT(!followers->first);
    followers->stopping = true;
    bh_condition_signal(&followers->wake);
    bh_mutex_unlock(&followers->mutex);
    if (followers->running)
        pthread_join(followers->thread, NULL);
    bh_condition_fini(&followers->wake);
    bh_mutex_fini(&followers->mutex);
    free(followers);
}

/* The number is read before the newcomer reads for the first time, so that no change falls between. */
void
bh_followers_join(struct bh_followers *followers, struct bh_follower *follower, const struct bh_waker *waker)
{
    const struct bh_owner *owner = &followers->owner;

    follower->waker = *waker;
    bh_mutex_lock(&followers->mutex);
    if (!followers->first)
        followers->number = owner->ops->change_number(owner->self);
    if (!followers->running)
        followers->running = pthread_create(&followers->thread, NULL, followers_run, followers) == 0;
    BH_ASSERT(followers->running);
    follower->next = followers->first;
    follower->link = &followers->first;
    if (followers->first)
        followers->first->link = &follower->next;
    followers->first = follower;
    bh_condition_signal(&followers->wake);
    bh_mutex_unlock(&followers->mutex);
}

void
bh_followers_leave(struct bh_followers *followers, struct bh_follower *follower)
{
    if (!follower->link)
        return;
    bh_mutex_lock(&followers->mutex);
    *follower->link = follower->next;
    if (follower->next)
        follower->next->link = follower->link;
    bh_mutex_unlock(&followers->mutex);
    follower->link = NULL;
}
