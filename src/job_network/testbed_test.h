#ifndef BH_JOB_NETWORK_TESTBED_TEST_H
#define BH_JOB_NETWORK_TESTBED_TEST_H

/* A world of its own for tests of networks: a network namespace that plays this machine, another
 * one that plays everything outside, joined as up0, and a folder for places.  Nothing of it is
 * seen by, or sees, the machine that the test runs on. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ports/network.h"

#define TESTBED_OUTSIDE 0xcb007101u  /* 203.0.113.1, of the outside */
#define TESTBED_OTHER 0xcb007181u    /* 203.0.113.129, too */
#define TESTBED_METADATA 0xa9fea9feu /* 169.254.169.254, too */
#define TESTBED_HERE 0xcb0071feu     /* 203.0.113.254, this machine's */

struct bh_testbed {
    char folder[64];
    int home, outside; /* network namespaces */
};

/* Why it cannot be made here; NULL: it can. */
const char *bh_testbed_obstacle(void);
/* The process is in it from then on, and only in it. */
void bh_testbed_enter(struct bh_testbed *testbed);
void bh_testbed_leave(struct bh_testbed *testbed);

/* The place of a slot, empty; texts live until the slot's next call. */
struct bh_network_place bh_testbed_place(const struct bh_testbed *testbed, uint32_t slot);

/* Run a function in the namespace of that descriptor, in a process of its own: its answer. */
int bh_testbed_run(int space, int (*what)(const void *self), const void *self);
/* The same without waiting. */
pid_t bh_testbed_start(int space, int (*what)(const void *self), const void *self);
int bh_testbed_wait(pid_t pid);
int bh_testbed_netns(const struct bh_network_place *place);

/* What the function of bh_testbed_run may be; each is 0 when it went well. */
struct bh_testbed_traffic {
    uint32_t from, to; /* from 0: whatever fits */
    uint16_t port;
    bool udp;
    uint64_t bytes; /* to send; of a server: none */
    int ready;      /* a server says when it listens: a pipe; -1: not */
};
/* Connect and send; the errno that stopped it. */
int bh_testbed_send(const void *traffic);
/* Take one connection, or one datagram, and read to its end; 0 when something came. */
int bh_testbed_serve(const void *traffic);

/* Start a server and wait until it listens. */
pid_t bh_testbed_listen(int space, struct bh_testbed_traffic traffic);

#endif
