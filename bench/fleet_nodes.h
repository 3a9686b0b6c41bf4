#ifndef BH_BENCH_FLEET_NODES_H
#define BH_BENCH_FLEET_NODES_H

#include <stdint.h>

#include "base/time.h"

/* Many simulated nodes in one thread, each on a unix socket of its own, with whole GPUs:
 * they speak the real protocol and answer every order at once with success.  Nothing is
 * kept on disk and no job runs. */
struct fleet;

enum { FLEET_NODES_MAX = 4096, FLEET_GPUS_MAX = 8 };

/* `nodes` sockets node-0000.sock, ... in `folder`; job numbers below `jobs` are timed. */
struct fleet *bh_fleet_start(const char *folder, uint32_t nodes, uint32_t jobs);
void bh_fleet_stop(struct fleet *fleet);

/* Nodes that have received RETAIN: the daemon has their inventory on disk. */
uint32_t bh_fleet_greeted(const struct fleet *fleet);

/* Leases whose START was answered, and the answer acknowledged: on disk as running. */
uint32_t bh_fleet_running(const struct fleet *fleet);

/* Running leases that a RETAIN did not name: a real node would have ended them. */
uint32_t bh_fleet_unnamed(const struct fleet *fleet);

/* When the START of a job came (monotonic), or 0. */
bh_ns bh_fleet_started_ns(const struct fleet *fleet, uint64_t job);

/* Every running job exits with status 0. */
void bh_fleet_end_all(struct fleet *fleet);

#endif
