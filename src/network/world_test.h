#ifndef BH_NETWORK_WORLD_TEST_H
#define BH_NETWORK_WORLD_TEST_H

/* A world of its own for tests of networks: a network namespace that plays this machine, another
 * one that plays everything outside, joined as up0, and a folder for places.  Nothing of it is
 * seen by, or sees, the machine that the test runs on. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ports/network.h"

#define WORLD_OUTSIDE 0xcb007101u   /* 203.0.113.1, of the outside */
#define WORLD_OTHER 0xcb007181u     /* 203.0.113.129, too */
#define WORLD_METADATA 0xa9fea9feu  /* 169.254.169.254, too */
#define WORLD_HERE 0xcb0071feu      /* 203.0.113.254, this machine's */

struct bh_world {
    char folder[64];
    int home, outside;              /* network namespaces */
};

/* Why it cannot be made here; NULL: it can. */
const char *bh_world_obstacle(void);
/* The process is in it from then on, and only in it. */
void bh_world_enter(struct bh_world *world);
void bh_world_leave(struct bh_world *world);

/* The place of a slot, empty; texts live until the slot's next call. */
struct bh_network_place bh_world_place(const struct bh_world *world, uint32_t slot);

/* Run a function in the namespace of that descriptor, in a process of its own: its answer. */
int bh_world_run(int space, int (*what)(const void *self), const void *self);
/* The same without waiting. */
pid_t bh_world_begin(int space, int (*what)(const void *self), const void *self);
int bh_world_end(pid_t pid);
int bh_world_space(const struct bh_network_place *place);

/* What the function of bh_world_run may be; each is 0 when it went well. */
struct bh_world_talk {
    uint32_t from, to;              /* from 0: whatever fits */
    uint16_t port;
    bool udp;
    uint64_t bytes;                 /* to send; of a server: none */
    int ready;                      /* a server says when it listens: a pipe; -1: not */
};
/* Connect and send; the errno that stopped it. */
int bh_world_send(const void *talk);
/* Take one connection, or one datagram, and read to its end; 0 when something came. */
int bh_world_serve(const void *talk);

/* Start a server and wait until it listens. */
pid_t bh_world_listen(int space, struct bh_world_talk talk);

#endif
