#ifndef BH_JOB_NETWORK_RULES_H
#define BH_JOB_NETWORK_RULES_H

#include "base/buf.h"
#include "ports/network.h"

/* The nftables rules as texts for `nft -f`: each is one transaction.
 *
 *   from_job     whatever comes from a job's interface has its own two addresses, or is dropped
 *   to_host      nothing from a job is for this machine
 *   from_host    this machine says nothing to a job but that a packet did not arrive
 *   between      jobs of one group; outward; answers
 *   translate    masquerading
 *
 * A table is made anew as a whole, with all jobs that there are, or changed by one job. */

#define BH_NETWORK_TABLE "bulkhead"
#define BH_NETWORK_PREFIX "bhj" /* of interfaces; the slot follows */

enum { BH_NETWORK_NAME = 16 };

struct bh_rules_site {
    struct bh_cidr pool;
    const char *const *uplinks; /* interfaces that jobs may leave by */
    uint32_t uplink_count;
    const struct bh_cidr *deny; /* never reached, also where a job is allowed to */
    uint32_t deny_count;
    bool guard; /* Bulkhead turned forwarding on: drop all packets but the jobs' */
};

struct bh_rules_count {
    uint64_t packets, bytes; /* what was denied to it before */
};

/* "bhj12" and "02:62:68:00:00:0c": the interface, and the address of either end. */
void bh_rules_interface(uint32_t slot, char ret_name[BH_NETWORK_NAME]);
void bh_rules_mac(uint32_t slot, bool of_job, uint8_t ret_mac[6]);

/* The table without jobs, in the place of one that may be there. */
void bh_rules_put_table(struct bh_buf *out, const struct bh_rules_site *site);
/* No table. */
void bh_rules_put_nothing(struct bh_buf *out);

void bh_rules_put_job(struct bh_buf *out, const struct bh_rules_site *site, const struct bh_network_job *job,
                      struct bh_rules_count before);
/* `last`: of its group. */
void bh_rules_drop_job(struct bh_buf *out, const struct bh_rules_site *site, const struct bh_network_job *job,
                       bool last);

/* The interface group of a job: what rules call its tenant. */
uint32_t bh_rules_group(const struct bh_network_job *job);

#endif
