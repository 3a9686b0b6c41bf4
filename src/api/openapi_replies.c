#include "api/openapi_replies.h"

#include <string.h>

#include "base/attr.h"

/* A member of a reply.  `type` is a type of JSON Schema; "ns" is a time or a span in
 * nanoseconds, which is text; "[x]" is a list of the schema x; anything else a schema. */
struct replies_member {
    const char *name, *type, *doc;
    bool always;
};

/* clang-format off */
static const struct replies_member job_members[] = {
    { "cause", "string", "how it ended", false },
    { "checkpoint_signal", "string",
      "what it is told to write a checkpoint with, where that is its contract", false },
    { "claimed_on", "[kept_place]", "room that others are leaving for it just now", false },
    { "contract", "string", "what may be done so that a higher one can run", true },
    { "count", "integer", "partitions of each member", true },
    { "deadline_ns", "ns", "it must have ended by then; 0: none", true },
    { "ended_ns", "ns", "0: it has not ended", true },
    { "erased", "boolean", "what was submitted was destroyed for good", false },
    { "estimated_start_ns", "ns", "when it will begin, as far as can be told", false },
    { "exit_status", "exit_status", "null while it has none", true },
    { "gang", "integer", "members, which start and end together", true },
    { "grade", "string", "what separates it from others; unverified stands behind it while its isolation checks do not pass", true },
    { "id", "integer", "its number", true },
    { "image", "string", "how far its image is, in GET of one job that starts", false },
    { "image_digest", "string", "sha256: of the manifest of its image, in GET of one job", false },
    { "kind", "string", "batch, service or interactive", true },
    { "members", "[job_member]", "of a job that has leases, in GET of one job", false },
    { "name", "string", "free text", true },
    { "node", "string", "of its first member", true },
    { "notices", "[job_notice]", "what it did with its share of a GPU that its people should know, in "
      "GET of one job", false },
    { "pieces", "string", "of its first member, for people", true },
    { "priority", "string", "its class", true },
    { "reason", "string", "why it waits", true },
    { "receipts", "[receipt]", "of scrubs before it began and of what it left, in GET of one job", false },
    { "reserved_ns", "ns", "from when on room is kept for it; lists say it with start=true",
      false },
    { "reserved_on", "[kept_place]", "that room, in GET of one job", false },
    { "restarts", "integer", "how often it was queued again", true },
    { "sku", "string", "the size of a piece", true },
    { "spec", "job", "as submitted, in GET of one job", false },
    { "started_ns", "ns", "0: it has not", true },
    { "state", "string", "its point of life", true },
    { "submitted_ns", "ns", "when it was", true },
    { "tenant", "string", "its tenant", true },
    { "time_limit_ns", "ns", "how long it may run; 0: no limit", true },
    { "traffic", "traffic", "what it sent and received, in GET of one job that has a network", false },
    { "user", "string", "who submitted it", true },
    { "why", "reason", "of a job that has not ended (how it stands, and which form of a GPU it has and why), "
      "could not be started or was ended by its node, in GET of one job", false },
};
/* clang-format on */

static const struct replies_member list_members[] = {
    { "items", "[job_shown]", "by number", true },
    { "next", "string", "what `after` takes for the next page, where there is one", false },
    { "total", "integer", "how many the filter fits, counted to 100,000", true },
};

static const struct replies_member member_members[] = {
    { "lease", "integer", "its number", true },
    { "member", "integer", "counted from 0", true },
    { "node", "string", "where it is", true },
    { "pieces", "array", "what it holds", true },
    { "share", "job_share", "how it stands with its shares of GPUs, as its node said last", false },
    { "state", "string", "its point of life; done: it ended and others have not", true },
};

static const struct replies_member share_members[] = {
    { "cap_mib", "integer", "GPU memory that it may have, the first context on each GPU with it", true },
    { "driver_mib", "integer", "that it has as the driver sees it", true },
    { "promised_permille", "integer", "of a GPU's time, while others want it, too", true },
    { "reserved_mib", "integer", "that its processes have reserved", true },
    { "turns_permille", "integer", "of the last second in which it had its turn", true },
};

static const struct replies_member place_members[] = {
    { "gpu", "string", "its UUID", true },
    { "node", "string", "where it stands", true },
    { "profile", "string", "of the GPU instance, or whole", true },
    { "start", "integer", "the first memory slice", true },
};

static const struct replies_member reason_members[] = {
    { "next", "string", "what can be done, or what will happen", true },
    { "operands", "object", "the reason's numbers and names", true },
    { "reason", "string", "in a code", true },
    { "sentence", "string", "in words", true },
};

static const struct replies_member why_members[] = {
    { "assumption", "string", "what the estimated start supposes", false },
    { "claimed_on", "[kept_place]", "room that others are leaving for it just now", false },
    { "estimated_start_ns", "ns", "when it will begin, as far as can be told", false },
    { "job", "integer", "its number", true },
    { "next", "string", "what can be done, or what will happen", true },
    { "operands", "object", "the reason's numbers and names", true },
    { "reason", "string", "in a code", true },
    { "reserved_ns", "ns", "from when on room is kept for it", false },
    { "reserved_on", "[kept_place]", "that room", false },
    { "sentence", "string", "in words", true },
    { "state", "string", "its point of life", true },
};

static const struct replies_member notice_members[] = {
    { "count", "integer", "how often", true },
    { "first_ns", "ns", "when it was told first", true },
    { "last_ns", "ns", "and last", true },
    { "name", "string", "its kind", true },
    { "sentence", "string", "the same for people", true },
};

static const struct replies_member traffic_members[] = {
    { "denied_bytes", "integer", "from it or to it, and not let through", true },
    { "denied_packets", "integer", "the same in packets", true },
    { "rx_bytes", "integer", "received, of all members since they were started", true },
    { "rx_packets", "integer", "the same in packets", true },
    { "tx_bytes", "integer", "sent", true },
    { "tx_packets", "integer", "the same in packets", true },
};

static const struct replies_member ticket_members[] = {
    { "expires_ns", "ns", "until when it may be opened", true },
    { "job", "integer", "its number", true },
    { "record", "integer", "the audit record that it was let in by", true },
    { "ticket", "string", "for GET /v1/streams/{id}: good once, for who asked", true },
};

/* clang-format off */
static const struct replies_member receipt_members[] = {
    { "begun_ns", "ns", "when the scrub began", true },
    { "by", "array", "of method earlier: `id` of each scrub that left the memory clean", false },
    { "bytes", "integer", "filled", true },
    { "digest", "string", "SHA-256 of the receipt, which the record has as its text", true },
    { "driver_scrub", "string", "whether the driver itself clears what is freed: on, off, unknown", true },
    { "ended_ns", "ns", "when it ended", true },
    { "from", "array", "whose memory it was since it was last clean, and before where its geometry is another; all that one may not see are one entry", true },
    { "gpu", "string", "its UUID", true },
    { "id", "integer", "its number", true },
    { "job", "integer", "that got the piece", false },
    { "memory_bytes", "integer", "of the piece, as the driver tells them", true },
    { "method", "string", "fill, recreate, none or earlier", true },
    { "neighbors", "integer", "leases beside a share's scrub, for who may see the whole site", false },
    { "piece", "integer", "its number", true },
    { "profile", "string", "of the GPU instance, or whole", true },
    { "receipt", "object", "as its digest was taken, for who may see the whole site", false },
    { "record", "integer", "of the audit log, that has its digest", true },
    { "residue", "integer", "samples that held something before", true },
    { "result", "string", "clean, partial, unsampled, interrupted or failed", true },
    { "samples", "integer", "pages read back, each time", true },
    { "start", "integer", "the first memory slice", true },
    { "tenant", "string", "whose it was going to be", true },
    { "tries", "integer", "how often it was tried", true },
    { "unfilled", "integer", "samples that did not read back as they were filled", true },
    { "why", "string", "of one that is not clean", false },
};
/* clang-format on */

static const struct replies_member receipts_members[] = {
    { "items", "[receipt]", "oldest first", true },
    { "next", "string", "what `after` takes for the next page, where there may be one", false },
};

static const struct replies_member parts_members[] = {
    { "compute", "integer", "parts, of 4200 for a whole GPU", true },
    { "gpus", "string", "the same in GPUs, for people", true },
    { "memory", "integer", "parts, of 4200 for a whole GPU", true },
};

static const struct replies_member partition_members[] = {
    { "assumed", "boolean", "its numbers are from documents, not from such a board", true },
    { "cap_bytes", "integer", "of a share: the most memory that its job gets", false },
    { "compute_parts", "integer", "of a share: its part of the GPU's time, of 4200", false },
    { "grade", "string", "of a share: F", false },
    { "id", "integer", "its number", true },
    { "job", "integer", "that holds it, where the caller may see that", false },
    { "memory_mib", "integer", "of a MIG instance", false },
    { "memory_parts", "integer", "of a share: its cap, in parts", false },
    { "profile", "string", "of the GPU instance, whole, or what the share is", true },
    { "share_mode", "string", "work_conserving, hard, latency or multiplexed", false },
    { "slices", "integer", "of a MIG instance: compute slices", false },
    { "start", "integer", "the first memory slice; of a share, its place", true },
    { "state", "string", "its point of life", true },
    { "tenant", "string", "of who holds it; pieces of others are not shown", false },
    { "units", "integer", "of a MIG instance: memory slices", false },
};

/* clang-format off */
static const struct replies_member gpu_members[] = {
    { "assumed", "boolean", "its geometry is from documents, not from such a board", true },
    { "compute_slices", "integer", "of a model that is known", false },
    { "cordoned", "boolean", "gets nothing new", true },
    { "dedicated", "gpu_parts", "in no lease, kept from others by a dedicated node", true },
    { "ecc_uncorrected", "integer", "errors since the driver was loaded", false },
    { "fault", "string", "what it had", false },
    { "fenced", "boolean", "nothing is placed on it: a wall or its driver failed", true },
    { "fenced_why", "string", "why, as its node says", false },
    { "foreign_instances", "integer", "that keep it from being managed: they are not in its node's journal", false },
    { "health", "string", "as docs/health.md has it", true },
    { "health_since_ns", "ns", "when it came to that, unless it is ok", false },
    { "health_until_ns", "ns", "when that is over", false },
    { "held", "string", "whether it was cordoned or is being drained", true },
    { "id", "integer", "its number", true },
    { "idle", "gpu_parts", "free to be promised", true },
    { "index", "integer", "on its node", false },
    { "layout", "string", "whether a layout is declared, and stands", true },
    { "lone_carve", "boolean", "instances are changed only while no other tenant runs on it", true },
    { "managed", "boolean", "Bulkhead may change it", true },
    { "memory_mib", "integer", "that it has", false },
    { "memory_units", "integer", "memory slices of a model that is known", false },
    { "memory_used_mib", "integer", "as sampled last; as power and temperature, not where others hold a piece", false },
    { "mode", "string", "free, whole, mig, shared, unmanaged", true },
    { "model", "string", "by which SKUs name it", false },
    { "node", "string", "where it is, when that is connected", true },
    { "node_held", "string", "the same as held, of its node", true },
    { "pci", "string", "its address", false },
    { "pieces", "[gpu_piece]", "that stand on it", true },
    { "power_mw", "integer", "as sampled last", false },
    { "product", "string", "as the driver names it", false },
    { "reset_due", "boolean", "it is reset when it is next empty", true },
    { "resets", "integer", "in the last day", true },
    { "share_percent", "integer", "how much of it shares may promise; 0: none may stand on it", true },
    { "temperature_c", "integer", "as sampled last", false },
    { "trouble", "string", "why the last change of it failed", false },
    { "unmanaged_fix", "string", "what makes it managed", false },
    { "unmanaged_why", "string", "why Bulkhead changes nothing on it", false },
    { "unusable", "gpu_parts", "that nobody can have now", true },
    { "used", "gpu_parts", "promised", true },
    { "utilisation", "integer", "percent, as sampled last; not of a GPU in MIG mode", false },
    { "uuid", "string", "as the driver has it", true },
};
/* clang-format on */

static const struct replies_member gpus_members[] = {
    { "items", "[gpu_shown]", "by number", true },
    { "total", "integer", "how many", true },
};

static const struct schema {
    const char *name;
    const struct replies_member *members;
    size_t count;
} schemas[] = {
    { "gpu_shown", gpu_members, BH_COUNT(gpu_members) },
    { "gpu_list", gpus_members, BH_COUNT(gpus_members) },
    { "gpu_parts", parts_members, BH_COUNT(parts_members) },
    { "gpu_piece", partition_members, BH_COUNT(partition_members) },
    { "job_list", list_members, BH_COUNT(list_members) },
    { "job_member", member_members, BH_COUNT(member_members) },
    { "job_shown", job_members, BH_COUNT(job_members) },
    { "job_why", why_members, BH_COUNT(why_members) },
    { "job_share", share_members, BH_COUNT(share_members) },
    { "kept_place", place_members, BH_COUNT(place_members) },
    { "reason", reason_members, BH_COUNT(reason_members) },
    { "traffic", traffic_members, BH_COUNT(traffic_members) },
    { "job_notice", notice_members, BH_COUNT(notice_members) },
    { "stream_ticket", ticket_members, BH_COUNT(ticket_members) },
    { "receipt", receipt_members, BH_COUNT(receipt_members) },
    { "receipt_list", receipts_members, BH_COUNT(receipts_members) },
};

const char *
bh_openapi_reply_of(enum bh_operation op)
{
    static const char *const replies[BH_OPERATIONS] = {
        [BH_OP_GPU_LIST] = "gpu_list",         [BH_OP_JOB_LIST] = "job_list",
        [BH_OP_JOB_GET] = "job_shown",         [BH_OP_JOB_WHY] = "job_why",
        [BH_OP_JOB_EXEC] = "stream_ticket",    [BH_OP_JOB_ATTACH] = "stream_ticket",
        [BH_OP_JOB_FORWARD] = "stream_ticket", [BH_OP_RECEIPT_LIST] = "receipt_list",
    };

    return replies[op];
}

static void
replies_put_ref(struct bh_json_writer *w, const char *name, size_t length)
{
    char text[80];
    struct bh_buf ref;

    bh_buf_init_fixed(&ref, text, sizeof text);
    bh_buf_printf(&ref, "#/components/schemas/%.*s", (int)length, name);
    bh_json_str(w, "$ref", bh_buf_text(&ref));
}

static void
replies_put_list(struct bh_json_writer *w, const char *of)
{
    bh_json_str(w, "type", "array");
    bh_json_open(w, "items", '{');
    replies_put_ref(w, of, strlen(of) - 1);
    bh_json_close(w, '}');
}

static void
replies_put_integer_or_null(struct bh_json_writer *w)
{
    bh_json_open(w, "type", '[');
    bh_json_str(w, NULL, "integer");
    bh_json_str(w, NULL, "null");
    bh_json_close(w, ']');
}

static bool
replies_is_plain(const char *type)
{
    static const char *const plain[] = { "array", "boolean", "integer", "object", "string" };

    for (size_t i = 0; i < BH_COUNT(plain); i++)
        if (strcmp(type, plain[i]) == 0)
            return true;
    return false;
}

static void
replies_put_member(struct bh_json_writer *w, const struct replies_member *member)
{
    bh_json_open(w, member->name, '{');
    bh_json_str(w, "description", member->doc);
    if (member->type[0] == '[') {
        replies_put_list(w, member->type + 1);
    } else if (strcmp(member->type, "ns") == 0) {
        bh_json_str(w, "type", "string");
        bh_json_str(w, "pattern", "^(0|[1-9][0-9]*)$");
    } else if (strcmp(member->type, "exit_status") == 0) {
        replies_put_integer_or_null(w);
    } else if (replies_is_plain(member->type)) {
        bh_json_str(w, "type", member->type);
    } else {
        replies_put_ref(w, member->type, strlen(member->type));
    }
    bh_json_close(w, '}');
}

void
bh_openapi_put_replies(struct bh_json_writer *w)
{
    for (size_t i = 0; i < BH_COUNT(schemas); i++) {
        const struct schema *schema = &schemas[i];

        bh_json_open(w, schema->name, '{');
        bh_json_str(w, "type", "object");
        bh_json_open(w, "required", '[');
        for (size_t k = 0; k < schema->count; k++)
            if (schema->members[k].always)
                bh_json_str(w, NULL, schema->members[k].name);
        bh_json_close(w, ']');
        bh_json_open(w, "properties", '{');
        for (size_t k = 0; k < schema->count; k++)
            replies_put_member(w, &schema->members[k]);
        bh_json_close(w, '}');
        bh_json_close(w, '}');
    }
}
