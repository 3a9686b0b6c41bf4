#ifndef BH_HTTP_SERVER_UPGRADE_H
#define BH_HTTP_SERVER_UPGRADE_H

#include <microhttpd.h>

#include "http_server/peers.h"
#include "ports/http.h"

/* Connections that stopped being HTTP: a thread each, until what took them over returns. */
struct bh_upgrades;

BH_MUST_USE struct bh_upgrades *bh_upgrades_new(void);

/* Shut them all down and wait for their threads; no new one begins. */
void bh_upgrades_stop(struct bh_upgrades *upgrades);
void bh_upgrades_free(struct bh_upgrades *upgrades);

/* The 101 for a reply that hands its connection over.  What the reply held is now
 * `*ret_pending`, which becomes NULL when the connection was handed over; otherwise, when the
 * request is completed, it is dropped.  NULL: it cannot be made, and the reply still holds it. */
struct bh_upgrade_pending;
struct MHD_Response *bh_upgrade_response(struct bh_upgrades *upgrades, struct bh_reply *reply,
                                         struct bh_connection *connection,
                                         struct bh_upgrade_pending **ret_pending);
void bh_upgrade_drop(struct bh_upgrade_pending *pending); /* NULL is fine */

#endif
