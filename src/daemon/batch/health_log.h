#ifndef BH_DAEMON_BATCH_HEALTH_LOG_H
#define BH_DAEMON_BATCH_HEALTH_LOG_H

#include "daemon/state/core.h"

/* Log which GPUs' health is another than was said last. */
void bh_health_log(struct bh_core *core);

#endif
