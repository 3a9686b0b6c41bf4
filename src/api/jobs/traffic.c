#include "api/jobs/traffic.h"

#include "api/documents/job_document.h"
#include "api/request/facts.h"

static const char *const keys[] = { "denied_bytes", "denied_packets", "rx_bytes",
                                    "rx_packets",   "tx_bytes",       "tx_packets" };

/* A job that was queued again, and a gang, have several leases: they add up. */
static bool
traffic_add(bh_json_value items, uint64_t job, uint64_t sums[BH_COUNT(keys)])
{
    bool found = false;

    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value item = bh_json_at(items, i);

        if (bh_json_number(bh_json_get(item, "job"), 0) != job)
            continue;
        found = true;
        for (size_t k = 0; k < BH_COUNT(keys); k++)
            sums[k] += bh_json_number(bh_json_get(item, keys[k]), 0);
    }
    return found;
}

/* What is committed leaves the owner's memory in the same turn: for these microseconds a
 * lease is in both, or, when it ends between the two reads, in neither. */
bh_rc
bh_traffic_put_job(const struct bh_call *call, struct bh_json_writer *w, uint64_t job, struct bh_err *err)
{
    struct bh_carried_row kept;
    bh_rc rc = bh_job_document_get(&call->api->options.store, BH_DOCUMENT_CARRIED, job, &kept, err);
    BH_AUTO(bh_facts_fini) struct bh_facts facts = { 0 };
    uint64_t sums[BH_COUNT(keys)] = {
        kept.sums.denied_bytes, kept.sums.denied_packets, kept.sums.rx_bytes,
        kept.sums.rx_packets,   kept.sums.tx_bytes,       kept.sums.tx_packets
    };
    bool found = kept.leases > 0;

    if (rc != BH_OK)
        return rc;
    bh_facts_load(&call->api->options.owner, &facts);
    for (uint32_t i = 0; i < facts.node_count; i++)
        found = traffic_add(bh_json_get(facts.nodes[i].root, "traffic"), job, sums) || found;
    if (!found)
        return BH_OK;
    bh_json_open(w, "traffic", '{');
    for (size_t k = 0; k < BH_COUNT(keys); k++)
        bh_json_u64(w, keys[k], sums[k]);
    bh_json_close(w, '}');
    return BH_OK;
}
