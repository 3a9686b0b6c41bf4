#include "http_server/ticks_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/test.h"

static int streams_open, streams_closed;

struct ticks {
    int left;   /* negative: one every 20 ms */
    bh_ns next; /* when */
};

static void
ticks_begin(void *self, const struct bh_waker *waker)
{
}

static long
ticks_read(void *self, char *memory, size_t size, bh_ns *ret_again)
{
    struct ticks *ticks = self;
    bh_ns now = bh_time_monotonic();

    if (ticks->left == 0)
        return BH_STREAM_OVER;
    if (ticks->left > 0) {
        ticks->left--;
    } else if (now < ticks->next) {
        *ret_again = ticks->next;
        return 0;
    } else {
        ticks->next = now + 20 * BH_NS_PER_MS;
    }
    memcpy(memory, "tick\n", 5);
    return 5;
}

static void
ticks_close(void *self)
{
    free(self);
    __atomic_add_fetch(&streams_closed, 1, __ATOMIC_SEQ_CST);
}

void
bh_ticks_start(struct bh_reply *reply, int count)
{
    struct ticks *ticks = calloc(1, sizeof *ticks);

    assert_non_null(ticks);
    ticks->left = count;
    reply->stream = (struct bh_stream){ ticks_begin, ticks_read, ticks_close, ticks };
    reply->content_type = "text/plain";
    __atomic_add_fetch(&streams_open, 1, __ATOMIC_SEQ_CST);
}

bool
bh_ticks_all_closed(void)
{
    for (int i = 0; i < 1500; i++) {
        if (__atomic_load_n(&streams_closed, __ATOMIC_SEQ_CST) == streams_open)
            return true;
        bh_time_sleep(20 * BH_NS_PER_MS);
    }
    return false;
}
