/* How busy processes keep a simulated GPU: for NVML, which must not wait for what tenants
 * can write to.  A copy of the record is taken without its lock and brought up to now: nothing in
 * it is later than that, and nothing took longer. */
#ifndef BH_SIM_MACHINE_GAUGE_H
#define BH_SIM_MACHINE_GAUGE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_gauge;

/* Read the record in the folder of an instance.  NULL: there is none, or no memory. */
struct sim_gauge *sim_gauge_open(const char *folder);
void sim_gauge_close(struct sim_gauge *gauge);

/* The moment that it counts from, by sim_queue_now(): when it was opened. */
uint64_t sim_gauge_at(const struct sim_gauge *gauge);

/* How long the SMs have worked for the process with this slot of the ledger, in ns.  False
 * and unchanged: it never submitted any. */
bool sim_gauge_busy(const struct sim_gauge *gauge, uint32_t user, uint64_t *ret_busy_ns);

/* What the samples that ended after `since_ns`, of sim_queue_now(), say of the process: how much
 * of their time was its, each counted for whose the SMs were at its end; and when the last that
 * was its own ended.  False and unchanged: none was, or not one in a hundred. */
struct sim_gauge_share {
    unsigned percent;
    uint64_t last_ns;
};
bool sim_gauge_share_of(const struct sim_gauge *gauge, uint32_t user, uint64_t since_ns,
                        struct sim_gauge_share *ret_share);

#endif
