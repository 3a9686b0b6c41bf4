#ifndef BH_NODE_SESSION_REPORT_DEVICES_H
#define BH_NODE_SESSION_REPORT_DEVICES_H

#include "node/core/node.h"

/* Devices of the last scan as struct bh_msg_samples tells them, in the arena. */

/* Each GPU instance once, however many compute instances somebody made of it; of one that is
 * Bulkhead's, with the partition that it is. */
void bh_report_put_instances(const struct bh_node *node, struct bh_arena *arena, struct bh_list *ret_list);

/* None when the scan was not made for samples. */
void bh_report_put_sensors(const struct bh_node *node, struct bh_arena *arena, struct bh_list *ret_list);

#endif
