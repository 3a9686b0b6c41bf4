#include "node/verify/verify_retry.h"

#define RETRY_PAUSE_MAX (300 * BH_NS_PER_S)

static bh_ns
retry_pause(uint32_t number, bh_ns first)
{
    bh_ns pause = first;

    for (uint32_t i = 0; i < number && pause < RETRY_PAUSE_MAX; i++)
        pause *= 2;
    return pause < RETRY_PAUSE_MAX ? pause : RETRY_PAUSE_MAX;
}

void
bh_verify_retry_schedule(struct bh_verify_retry *retry, const struct bh_conf *conf, bh_ns now)
{
    retry->at = 0;
    if (retry->made >= conf->verify_retries)
        return;
    retry->at = now + retry_pause(retry->made, conf->verify_retry_ms * BH_NS_PER_MS);
    retry->made++;
}

bool
bh_verify_retry_is_due(struct bh_verify_retry *retry, bh_ns now)
{
    if (!retry->at || now < retry->at)
        return false;
    retry->at = 0;
    return true;
}
