#ifndef BH_DAEMON_NODES_LINK_REPORT_H
#define BH_DAEMON_NODES_LINK_REPORT_H

#include "base/fields.h"
#include "base/lock.h"

/* What a node said last of a kind, for readers of other threads. */
struct bh_link_report {
    char *json;     /* NULL: nothing on this connection */
    uint64_t at_ns; /* when that was said, by the daemon's clock */
};

/* Takes the mutex that readers hold.  `message` NULL: it has said nothing. */
void bh_link_report_set(struct bh_link_report *report, struct bh_mutex *mutex, const struct bh_fields *fields,
                        const void *message);

#endif
