/* A sandbox as a job with a share has it, for tests of the shim: the door, the pages behind
 * it, and a driver, all where the library looks for them.
 *
 * The test becomes a mount namespace of its own with an empty /run; what it runs in
 * children finds there what bh_box_share() says.  The door is a thread of the test: a
 * stand-in for bulkhead-share that gives out slots, reaps those who leave and remembers
 * what was said. */
#ifndef BH_SHIM_BOX_H
#define BH_SHIM_BOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "bulkhead/share_socket.h"
#include "bulkhead/share_page.h"
#include "sim/null/world.h"

enum box_door {
    BOX_GOOD,
    BOX_ABSENT,   /* no socket */
    BOX_SILENT,   /* accepts, says nothing */
    BOX_HANGS_UP, /* takes the hello and goes */
    BOX_REFUSES,  /* BH_SHARE_FULL */
    BOX_FOREIGN,  /* WELCOME with another magic number */
    BOX_BARE,     /* WELCOME without descriptors */
    BOX_SHORT,    /* a page that is too short */
    BOX_FORGED,   /* a page of another kind */
    BOX_SLOTLESS, /* WELCOME to a slot that there is not */
    BOX_DOORS
};

/* The world's file has room behind it for what a test shares with its children. */
enum { BOX_WORLD_BYTES = 16384, BOX_BEHIND_WORLD = 8192 };
_Static_assert(sizeof(struct null_world) <= BOX_BEHIND_WORLD, "it fits");

struct box {
    struct bh_share_limits *limits;
    struct bh_share_usage *usage;
    struct null_world *world;
    _Atomic int door, connections, statics;            /* statics: programs that said that they are static */
    _Atomic int joins, hang_ups;                       /* how often somebody came, and was hung up on */
    _Atomic uint32_t said[BH_SHARE_CLIENT_KINDS];      /* how often */
    _Atomic uint32_t said_turn[BH_SHARE_CLIENT_KINDS]; /* the turn it was last said of */
    _Atomic uint64_t said_ns[BH_SHARE_CLIENT_KINDS];
};

extern struct box bh_box;

/* Enter it, with the driver at `path`.  False: no right to; the test is skipped. */
bool bh_box_enter(const char *path);

/* Another of the driver's libraries, from `path`, as `name`. */
void bh_box_bring(const char *path, const char *name);

/* A copy of a program, which may be run. */
void bh_box_copy(const char *from, const char *to);

/* So many seats are taken, as if by processes that stay. */
void bh_box_occupy(unsigned seats);

/* A call of the driver itself, past the shim; NULL: it has none. */
void *bh_box_driver(const char *name);

/* The driver as it is with nobody: so many devices, and nothing taken. */
void bh_box_world(unsigned devices);

/* What a process had is free again, as the driver does it when a process that was killed
 * closes its files: before others learn that it is gone. */
void bh_box_driver_frees(pid_t pid);

/* A fresh share: so many devices, each with this cap; a context takes `context` units. */
void bh_box_share(unsigned devices, uint32_t cap, uint32_t context);

/* Run `body` in a child; what it returns, or -1 when it did not end by itself. */
int bh_box_run(int (*body)(void *self), void *self);
pid_t bh_box_start(int (*body)(void *self), void *self);
int bh_box_wait(pid_t pid);

/* Run what ends within `most_ns`; again, a few times, while it took longer: a machine that is busy
 * with others keeps it waiting now and then, and not each time.  What it returns, or -1. */
int bh_box_run_within(int (*body)(void *self), void *self, uint64_t most_ns);

/* None of these has ended. */
bool bh_box_alive(const pid_t *pids, unsigned count);

/* Wait until everybody who joined has left and was reaped. */
void bh_box_emptied(void);

uint32_t bh_box_used(unsigned device);

/* Wait until so many units are used; until a count is more than that.  False: half a minute
 * was not enough. */
bool bh_box_comes_to(unsigned device, uint32_t units);
bool bh_box_passes(const _Atomic uint64_t *count, uint64_t more);

/* Write a device's turn and wake who waits for it; of one that ends at `until_ns`. */
void bh_box_turn(unsigned device, uint32_t slice);
void bh_box_turn_until(unsigned device, uint32_t slice, uint64_t until_ns);

/* 'x': hang up on everybody and open anew, as bulkhead-share started again; 'n': hang up, and no
 * door; 'o': a door again.  It is so when this returns. */
void bh_box_stir(char what);

uint64_t bh_box_now_ns(void);

/* Wait until `word` was said more than `more` times; false: half a minute was not enough. */
bool bh_box_heard(enum bh_share_client_kind word, uint32_t more);

#endif
