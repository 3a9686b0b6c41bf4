#ifndef BH_API_REQUEST_FOLLOWERS_H
#define BH_API_REQUEST_FOLLOWERS_H

#include "api/request/owner.h"
#include "ports/http.h"

/* The streams that follow changes of jobs.  One thread waits for changes and wakes them, so that a commit
 * wakes that thread alone, however many streams there are. */
struct bh_followers;

struct bh_follower { /* the stream's; zeros: follows nothing */
    struct bh_waker waker;
    struct bh_follower *next, **link;
};

/* `owner` is copied.  The thread runs from the first follower on. */
BH_MUST_USE struct bh_followers *bh_followers_new(const struct bh_owner *owner);
void bh_followers_free(struct bh_followers *followers); /* all have left; NULL is fine */

/* Wake `waker` after every change that comes from now on, until it leaves. */
void bh_followers_join(struct bh_followers *followers, struct bh_follower *follower,
                       const struct bh_waker *waker);

/* It is woken no more.  Fine for one that has not joined. */
void bh_followers_leave(struct bh_followers *followers, struct bh_follower *follower);

#endif
