#include "api/jobs/traffic.h"

#include "api/documents/job_document.h"
#include "api/request/facts.h"

/* A job that was queued again, and a gang, have several leases: they add up. */
static bool
traffic_add(bh_json_value items, uint64_t job, struct bh_reply_traffic *sums)
{
    const struct bh_fields *fields = &bh_reply_traffic_fields;
    bool found = false;

    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value item = bh_json_at(items, i);

        if (bh_json_number(bh_json_get(item, "job"), 0) != job)
            continue;
        found = true;
        for (uint32_t k = 0; k < fields->count; k++) {
            uint64_t *sum = (uint64_t *)(void *)((char *)sums + fields->fields[k].offset);

            *sum += bh_json_number(bh_json_get(item, fields->fields[k].name), 0);
        }
    }
    return found;
}

/* What is committed leaves the owner's memory in the same turn: for these microseconds a
 * lease is in both, or, when it ends between the two reads, in neither. */
bh_rc
bh_traffic_of_job(const struct bh_call *call, uint64_t job, const struct bh_reply_traffic **ret,
                  struct bh_err *err)
{
    BH_AUTO(bh_facts_fini) struct bh_facts facts = { 0 };
    struct bh_reply_traffic *sums;
    struct bh_carried_row kept;
    bh_rc rc = bh_job_document_get(&call->api->options.store, BH_DOCUMENT_CARRIED, job, &kept, err);
    bool found = kept.leases > 0;

    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, sizeof *sums, &sums, err);
    if (rc != BH_OK)
        return rc;
    *sums =
        (struct bh_reply_traffic){ kept.sums.denied_bytes, kept.sums.denied_packets, kept.sums.rx_bytes,
                                   kept.sums.rx_packets,   kept.sums.tx_bytes,       kept.sums.tx_packets };
    bh_facts_load(&call->api->options.owner, &facts);
    for (uint32_t i = 0; i < facts.node_count; i++)
        found = traffic_add(bh_json_get(facts.nodes[i].root, "traffic"), job, sums) || found;
    *ret = found ? sums : NULL;
    return BH_OK;
}
