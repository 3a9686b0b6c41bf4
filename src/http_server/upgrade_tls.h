#ifndef BH_HTTP_SERVER_UPGRADE_TLS_H
#define BH_HTTP_SERVER_UPGRADE_TLS_H

#include <microhttpd.h>

/* Carry bytes between the TLS session of a connection and a plain socket, both non-blocking,
 * until one side ends; what the plain side wrote before is delivered.
 *
 * libmicrohttpd has a loop for that; but what it allots it from the connection's memory is eight
 * bytes once a reply's head has taken the rest (0.9.75), and it then moves four bytes at a time. */
void bh_upgrade_tls_carry(struct MHD_Connection *mhd, int tcp, int plain);

#endif
