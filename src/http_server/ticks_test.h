#ifndef BH_HTTP_SERVER_TICKS_TEST_H
#define BH_HTTP_SERVER_TICKS_TEST_H

#include "ports/http.h"

/* Streams of lines "tick", for tests of servers. */

/* Reply with so many ticks; with a negative count, with one every 20 ms. */
void bh_ticks_start(struct bh_reply *reply, int count);

/* Whether all streams that were started get closed. */
bool bh_ticks_all_closed(void);

#endif
