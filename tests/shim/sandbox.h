/* A sandbox as a job with a share has it, for tests of the shim: the socket, the pages, and a
 * driver, all where the library looks for them.
 *
 * The test becomes a mount namespace of its own with an empty /run; what it runs in
 * children finds there what bh_sandbox_share() says.  The server is a thread of the test: a
 * stand-in for bulkhead-share that assigns slots, reaps processes that end and remembers
 * what they sent. */
#ifndef BH_SHIM_SANDBOX_H
#define BH_SHIM_SANDBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "bulkhead/share_socket.h"
#include "bulkhead/share_page.h"
#include "sim/null/world.h"

enum sandbox_server {
    SANDBOX_GOOD,
    SANDBOX_ABSENT,   /* no socket */
    SANDBOX_SILENT,   /* accepts, says nothing */
    SANDBOX_HANGS_UP, /* takes the hello and goes */
    SANDBOX_REFUSES,  /* BH_SHARE_FULL */
    SANDBOX_FOREIGN,  /* WELCOME with another magic number */
    SANDBOX_BARE,     /* WELCOME without descriptors */
    SANDBOX_SHORT,    /* a page that is too short */
    SANDBOX_FORGED,   /* a page of another kind */
    SANDBOX_SLOTLESS, /* WELCOME to a slot that there is not */
    SANDBOX_SERVERS
};

/* The world's file has room behind it for what a test shares with its children. */
enum { SANDBOX_WORLD_BYTES = 16384, SANDBOX_BEHIND_WORLD = 8192 };
_Static_assert(sizeof(struct null_world) <= SANDBOX_BEHIND_WORLD, "it fits");

struct shim_sandbox {
    struct bh_share_limits *limits;
    struct bh_share_usage *usage;
    struct null_world *world;
    _Atomic int server, connections, statics;         /* statics: programs that sent that they are static */
    _Atomic int joins, hang_ups;                      /* connections accepted, and closed from this side */
    _Atomic uint32_t received[BH_SHARE_CLIENT_KINDS]; /* how often */
    _Atomic uint32_t received_slice[BH_SHARE_CLIENT_KINDS]; /* the time slice it was last said of */
    _Atomic uint64_t received_ns[BH_SHARE_CLIENT_KINDS];
};

extern struct shim_sandbox bh_sandbox;

/* Enter it, with the driver at `path`.  False: not permitted; the test is skipped. */
bool bh_sandbox_enter(const char *path);

/* Another of the driver's libraries, from `path`, as `name`. */
void bh_sandbox_bring(const char *path, const char *name);

/* A copy of a program, which may be run. */
void bh_sandbox_copy(const char *from, const char *to);

/* A server of this topology, for a driver that is the simulated one. */
bool bh_sandbox_simulate(const char *topology);

/* So many slots are taken, as if by processes that stay. */
void bh_sandbox_occupy(unsigned slots);

/* A call of the driver itself, past the shim; NULL: it has none. */
void *bh_sandbox_driver(const char *name);

/* The driver without a process: so many devices, and nothing taken. */
void bh_sandbox_world(unsigned devices);

/* What a process had is free again, as the driver does it when a process that was killed
 * closes its files: before others learn that it is gone. */
void bh_sandbox_driver_frees(pid_t pid);

/* A fresh share: so many devices, each with this cap; a context takes `context` units. */
void bh_sandbox_share(unsigned devices, uint32_t cap, uint32_t context);

/* Run `body` in a child; what it returns, or -1 when it did not end by itself. */
int bh_sandbox_run(int (*body)(void *self), void *self);
pid_t bh_sandbox_start(int (*body)(void *self), void *self);
int bh_sandbox_wait(pid_t pid);

/* Run what ends within `most_ns`; again, a few times, while it took longer: a machine that is busy
 * with others keeps it waiting now and then, and not each time.  What it returns, or -1. */
int bh_sandbox_run_within(int (*body)(void *self), void *self, uint64_t most_ns);

/* None of these has ended. */
bool bh_sandbox_alive(const pid_t *pids, unsigned count);

/* Wait until all processes that joined have ended and are reaped. */
void bh_sandbox_emptied(void);

uint32_t bh_sandbox_used(unsigned device);

/* Wait until so many units are used; until a count is more than that.  False: half a minute
 * was not enough. */
bool bh_sandbox_comes_to(unsigned device, uint32_t units);
bool bh_sandbox_passes(const _Atomic uint64_t *count, uint64_t more);

/* Write a device's time slice and wake its waiters; of one that ends at `until_ns`. */
void bh_sandbox_set_slice(unsigned device, uint32_t slice);
void bh_sandbox_set_slice_until(unsigned device, uint32_t slice, uint64_t until_ns);

/* 'x': close all connections and listen anew, as bulkhead-share started again; 'n': close them and
 * the socket; 'o': listen again.  It is so when this returns. */
void bh_sandbox_restart_server(char what);

uint64_t bh_sandbox_now_ns(void);

/* Wait until `word` was received more than `more` times; false: half a minute was not enough. */
bool bh_sandbox_received(enum bh_share_client_kind word, uint32_t more);

/* The main of a test program whose first argument is the driver. */
#define BH_SANDBOX_MAIN(tests)                                                                               \
    int main(int argc, char **argv)                                                                          \
    {                                                                                                        \
        if (argc < 2 || !bh_sandbox_enter(argv[1]))                                                          \
            return argc < 2 ? 2 : 0;                                                                         \
        cmocka_set_message_output(CM_OUTPUT_TAP);                                                            \
        return cmocka_run_group_tests(tests, NULL, NULL);                                                    \
    }

#endif
