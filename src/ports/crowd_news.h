#ifndef BH_PORTS_CROWD_NEWS_H
#define BH_PORTS_CROWD_NEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* When to report a crowd (ports/http.h, bh_crowding): at most once a second, and the same one at most once a
 * minute.  Zeroed: nothing was reported. */
struct bh_crowd_news {
    uint64_t whose;
    bh_ns at; /* monotonic; 0: never */
};

/* Whether to report it now; it then counts as reported. */
static inline bool
bh_crowd_news_due(struct bh_crowd_news *news, uint64_t whose, bh_ns now)
{
    bh_ns pause = news->whose == whose ? 60 * BH_NS_PER_S : BH_NS_PER_S;

    if (news->at && now - news->at < pause)
        return false;
    *news = (struct bh_crowd_news){ whose, now };
    return true;
}

#endif
