#include "node/again.h"

#define PAUSE_MOST (300 * BH_NS_PER_S)

static bh_ns
pause_before(uint32_t number, bh_ns first)
{
    bh_ns pause = first;

    for (uint32_t i = 0; i < number && pause < PAUSE_MOST; i++)
        pause *= 2;
    return pause < PAUSE_MOST ? pause : PAUSE_MOST;
}

void
bh_again_plan(struct bh_again *again, const struct bh_conf *conf, bh_ns now)
{
    again->at = 0;
    if (again->made >= conf->verify_retries)
        return;
    again->at = now + pause_before(again->made, conf->verify_retry_ms * BH_NS_PER_MS);
    again->made++;
}

bool
bh_again_take(struct bh_again *again, bh_ns now)
{
    if (!again->at || now < again->at)
        return false;
    again->at = 0;
    return true;
}
