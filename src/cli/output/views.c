#include "cli/output/views.h"

#define VIEW(what) const struct bh_view bh_view_##what = { what##_columns, BH_COUNT(what##_columns) }

static const struct bh_column jobs_columns[] = {
    { "JOBID", "id", BH_CELL_TEXT, false },
    { "NAME", "name", BH_CELL_TEXT, false },
    { "USER", "user", BH_CELL_TEXT, false },
    { "TENANT", "tenant", BH_CELL_TEXT, false },
    { "SKU", "sku", BH_CELL_TEXT, false },
    { "N", "count", BH_CELL_TEXT, true },
    { "GANG", "gang", BH_CELL_TEXT, true },
    { "PRIORITY", "priority", BH_CELL_TEXT, true },
    { "CONTRACT", "contract", BH_CELL_TEXT, true },
    { "SIGNAL", "checkpoint_signal", BH_CELL_TEXT, true },
    { "STATE", "state", BH_CELL_TEXT, false },
    { "TIME", "", BH_CELL_RUNTIME, false },
    { "GRADE", "grade", BH_CELL_TEXT, true },
    { "RESTARTS", "restarts", BH_CELL_TEXT, true },
    { "SUBMITTED", "submitted_ns", BH_CELL_TIME, true },
    { "DEADLINE", "deadline_ns", BH_CELL_TIME, true },
    { "START", "estimated_start_ns", BH_CELL_TIME, true },
    { "RESERVED", "reserved_ns", BH_CELL_TIME, true },
    { "NODE/GPU", "", BH_CELL_PLACEMENT, false },
    { "REASON", "", BH_CELL_REASON, false },
};
VIEW(jobs);

/* `ps --start`, in the manner of squeue --start. */
static const struct bh_column starts_columns[] = {
    { "JOBID", "id", BH_CELL_TEXT, false },
    { "NAME", "name", BH_CELL_TEXT, false },
    { "USER", "user", BH_CELL_TEXT, false },
    { "TENANT", "tenant", BH_CELL_TEXT, false },
    { "SKU", "sku", BH_CELL_TEXT, false },
    { "N", "count", BH_CELL_TEXT, true },
    { "STATE", "state", BH_CELL_TEXT, false },
    { "START", "estimated_start_ns", BH_CELL_TIME, false },
    { "RESERVED", "reserved_ns", BH_CELL_TIME, true },
    { "NODE/GPU", "", BH_CELL_PLACEMENT, false },
    { "REASON", "", BH_CELL_REASON, false },
};
VIEW(starts);

static const struct bh_column gpus_columns[] = {
    { "GPU", "index", BH_CELL_TEXT, false },
    { "UUID", "uuid", BH_CELL_TEXT, true },
    { "NODE", "node", BH_CELL_TEXT, false },
    { "MODEL", "model", BH_CELL_TEXT, false },
    { "PRODUCT", "product", BH_CELL_TEXT, true },
    { "PCI", "pci", BH_CELL_TEXT, true },
    { "MEMORY", "memory_mib", BH_CELL_MIB, true },
    { "FACTS", "", BH_CELL_UNVERIFIED, true },
    { "MODE", "mode", BH_CELL_TEXT, false },
    { "STATE", "", BH_CELL_GPU_STATE, false },
    { "USED", "used.gpus", BH_CELL_TEXT, false },
    { "IDLE", "idle.gpus", BH_CELL_TEXT, false },
    { "UNUSABLE", "unusable.gpus", BH_CELL_TEXT, true },
    { "LAYOUT", "layout", BH_CELL_TEXT, true },
    { "SHARES %", "share_percent", BH_CELL_TEXT, true },
    { "PARTITIONS", "partitions", BH_CELL_PARTITIONS, false },
    { "TROUBLE", "trouble", BH_CELL_TEXT, true },
    { "UNMANAGED", "unmanaged_why", BH_CELL_TEXT, true },
};
VIEW(gpus);

static const struct bh_column nodes_columns[] = {
    { "NODE", "name", BH_CELL_TEXT, false },
    { "STATE", "", BH_CELL_NODE_STATE, false },
    { "GPUS", "gpus", BH_CELL_TEXT, false },
    { "CPUS", "cpus", BH_CELL_TEXT, false },
    { "OFFERED (1/1000)", "offered_cpu_milli", BH_CELL_TEXT, true },
    { "HELD (1/1000)", "used_cpu_milli", BH_CELL_TEXT, true },
    { "MEMORY", "memory_mib", BH_CELL_MIB, false },
    { "OFFERED", "offered_memory_mib", BH_CELL_MIB, true },
    { "HELD", "used_memory_mib", BH_CELL_MIB, true },
    { "DRIVER", "driver", BH_CELL_TEXT, false },
    { "CLEARS", "driver_scrub", BH_CELL_TEXT, true },
    { "CHECKPOINTS", "checkpoint", BH_CELL_TEXT, true },
    { "FAULTS", "driver_faults", BH_CELL_TEXT, false },
    { "NOT OFFERED", "grades_not_verified", BH_CELL_TEXT, true },
    { "ISOLATION", "isolation", BH_CELL_TEXT, true },
    { "WHY", "isolation_why", BH_CELL_TEXT, true },
    { "AGAIN", "isolation_again_ns", BH_CELL_TIME, true },
    { "RUNTIME", "runtime", BH_CELL_TEXT, false },
};
VIEW(nodes);

static const struct bh_column tenants_columns[] = {
    { "TENANT", "name", BH_CELL_TEXT, false },       { "KIND", "kind", BH_CELL_TEXT, false },
    { "BOUNDARY", "boundary", BH_CELL_TEXT, false }, { "DEDICATED", "dedicated_nodes", BH_CELL_TEXT, true },
    { "LIMIT", "limit", BH_CELL_TEXT, false },       { "GUARANTEE", "guarantee", BH_CELL_TEXT, false },
    { "USED", "used", BH_CELL_TEXT, false },         { "RUNNING", "running", BH_CELL_TEXT, false },
    { "PENDING", "pending", BH_CELL_TEXT, false },
};
VIEW(tenants);

static const struct bh_column quota_columns[] = {
    { "TENANT", "name", BH_CELL_TEXT, false },
    { "GPUS USED", "used", BH_CELL_TEXT, false },
    { "LIMIT", "limit", BH_CELL_TEXT, false },
    { "GUARANTEE", "guarantee", BH_CELL_TEXT, false },
    { "WEIGHT", "weight", BH_CELL_TEXT, false },
    { "FAIR GPU-H", "fair_gpu_hours", BH_CELL_TEXT, false },
    { "QUOTA USED/LIMIT", "quotas", BH_CELL_QUOTAS, false },
    { "LENDS", "lending_limit", BH_CELL_TEXT, true },
    { "USER LIMIT", "user_limit", BH_CELL_TEXT, true },
    { "BUDGET SPENT/AMOUNT", "budget", BH_CELL_BUDGET, true },
};
VIEW(quota);

static const struct bh_column skus_columns[] = {
    { "SKU", "name", BH_CELL_TEXT, false },      { "GRADE", "grade", BH_CELL_TEXT, false },
    { "CPU", "cpu", BH_CELL_TEXT, false },       { "MEMORY", "memory", BH_CELL_TEXT, false },
    { "PRICE/H", "price", BH_CELL_TEXT, false }, { "MODELS", "models", BH_CELL_MODELS, false },
};
VIEW(skus);

static const struct bh_column layouts_columns[] = {
    { "NODE", "node", BH_CELL_TEXT, false },       { "GPU", "index", BH_CELL_TEXT, false },
    { "MODEL", "model", BH_CELL_TEXT, false },     { "STATE", "state", BH_CELL_TEXT, false },
    { "CHANGE", "change", BH_CELL_TEXT, true },    { "DECLARED", "declared", BH_CELL_TEXT, false },
    { "READY", "layout", BH_CELL_TEXT, false },    { "UUID", "gpu", BH_CELL_TEXT, true },
    { "TROUBLE", "trouble", BH_CELL_TEXT, false },
};
VIEW(layouts);

static const struct bh_column datasets_columns[] = {
    { "DATASET", "name", BH_CELL_TEXT, false },      { "ID", "id", BH_CELL_TEXT, true },
    { "KIND", "kind", BH_CELL_TEXT, false },         { "MAY", "may", BH_CELL_TEXT, false },
    { "UNTIL", "until_ns", BH_CELL_TIME, false },    { "OWNER", "owner", BH_CELL_TEXT, false },
    { "PATH", "declared.path", BH_CELL_TEXT, true },
};
VIEW(datasets);

static const struct bh_column revisions_columns[] = {
    { "REVISION", "revision", BH_CELL_TEXT, false },
    { "APPLIED", "at_ns", BH_CELL_TIME, false },
    { "BY", "by", BH_CELL_TEXT, false },
    { "CHANGES", "changes", BH_CELL_TEXT, false },
    { "DIGEST", "digest", BH_CELL_TEXT, true },
};
VIEW(revisions);

static const struct bh_column usage_columns[] = {
    { "TENANT", "tenant", BH_CELL_TEXT, false },
    { "COMPUTE GPU-HOURS", "compute_part_ns", BH_CELL_GPU_TIME, false },
    { "MEMORY GPU-HOURS", "memory_part_ns", BH_CELL_GPU_TIME, false },
    { "COMPUTE WITH BELOW", "with_below.compute_part_ns", BH_CELL_GPU_TIME, false },
    { "MEMORY WITH BELOW", "with_below.memory_part_ns", BH_CELL_GPU_TIME, false },
    { "REMOVED", "removed", BH_CELL_TEXT, false },
    { "OF THAT DEDICATED", "dedicated_compute_part_ns", BH_CELL_GPU_TIME, true },
    { "COMPUTE PART-NS", "compute_part_ns", BH_CELL_TEXT, true },
    { "MEMORY PART-NS", "memory_part_ns", BH_CELL_TEXT, true },
};
VIEW(usage);

static const struct bh_column tokens_columns[] = {
    { "TOKEN", "id", BH_CELL_TEXT, false },          { "PRINCIPAL", "principal", BH_CELL_TEXT, false },
    { "STATE", "state", BH_CELL_TEXT, false },       { "EXPIRES", "expires_ns", BH_CELL_TIME, false },
    { "CREATED", "created_ns", BH_CELL_TIME, true }, { "LAST USED", "last_used_ns", BH_CELL_TIME, true },
    { "SCOPES", "scopes", BH_CELL_TEXT, false },     { "NOTE", "note", BH_CELL_TEXT, false },
    { "CHANGES", "changes", BH_CELL_COUNT, true },
};
VIEW(tokens);

static const struct bh_column keys_columns[] = {
    { "KEY", "id", BH_CELL_TEXT, false },
    { "KIND", "kind", BH_CELL_TEXT, false },
    { "TENANT", "tenant", BH_CELL_TEXT, false },
    { "MONTH", "month", BH_CELL_TEXT, false },
    { "CREATED", "created_ns", BH_CELL_TIME, false },
    { "DESTROYED", "shredded_ns", BH_CELL_TIME, true },
    { "STATE", "state", BH_CELL_TEXT, false },
};
VIEW(keys);

static const struct bh_column receipts_columns[] = {
    { "RECEIPT", "id", BH_CELL_TEXT, false },       { "TIME", "ended_ns", BH_CELL_TIME, false },
    { "GPU", "gpu", BH_CELL_TEXT, false },          { "PROFILE", "profile", BH_CELL_TEXT, false },
    { "START", "start", BH_CELL_TEXT, true },       { "FOR", "tenant", BH_CELL_TEXT, false },
    { "JOB", "job", BH_CELL_TEXT, false },          { "METHOD", "method", BH_CELL_TEXT, false },
    { "BYTES", "bytes", BH_CELL_TEXT, false },      { "OF", "memory_bytes", BH_CELL_TEXT, false },
    { "SAMPLES", "samples", BH_CELL_TEXT, false },  { "RESIDUE", "residue", BH_CELL_TEXT, false },
    { "UNFILLED", "unfilled", BH_CELL_TEXT, true }, { "DRIVER", "driver_scrub", BH_CELL_TEXT, true },
    { "RECORD", "record", BH_CELL_TEXT, false },    { "RESULT", "result", BH_CELL_TEXT, false },
    { "WHY", "why", BH_CELL_TEXT, true },
};
VIEW(receipts);

static const struct bh_column records_columns[] = {
    { "SEQ", "seq", BH_CELL_TEXT, false },         { "TIME", "ts_ns", BH_CELL_TIME, false },
    { "WHO", "actor.name", BH_CELL_TEXT, false },  { "UID", "actor.uid", BH_CELL_TEXT, true },
    { "VIA", "actor.via", BH_CELL_TEXT, true },    { "VERB", "verb", BH_CELL_TEXT, false },
    { "TENANT", "tenant", BH_CELL_TEXT, false },   { "OBJECT", "object", BH_CELL_TEXT, false },
    { "PHASE", "phase", BH_CELL_TEXT, true },      { "RESULT", "result", BH_CELL_TEXT, false },
    { "OUTCOME", "outcome", BH_CELL_TEXT, false }, { "DECISION", "decision", BH_CELL_TEXT, false },
    { "COUNT", "count", BH_CELL_TEXT, false },     { "NOTE", "note", BH_CELL_TEXT, false },
};
VIEW(records);

static const struct bh_column sessions_columns[] = {
    { "SESSION", "id", BH_CELL_TEXT, false },
    { "THIS", "this", BH_CELL_TEXT, false },
    { "WHO", "principal", BH_CELL_TEXT, false },
    { "KIND", "kind", BH_CELL_TEXT, false },
    { "HOST", "host", BH_CELL_TEXT, false },
    { "ISSUER", "issuer", BH_CELL_TEXT, true },
    { "FACTOR", "level", BH_CELL_TEXT, false },
    { "CREATED", "created_ns", BH_CELL_TIME, true },
    { "LAST USED", "last_used_ns", BH_CELL_TIME, false },
    { "EXPIRES", "expires_ns", BH_CELL_TIME, false },
    { "BREAK-GLASS UNTIL", "break_glass_until_ns", BH_CELL_TIME, true },
};
VIEW(sessions);

static const struct bh_column accounts_columns[] = {
    { "ACCOUNT", "name", BH_CELL_TEXT, false },
    { "IDENTITY", "identity", BH_CELL_TEXT, false },
    { "PASSWORD", "password", BH_CELL_TEXT, false },
    { "APP", "totp", BH_CELL_TEXT, false },
    { "PASSKEYS", "passkeys", BH_CELL_TEXT, false },
    { "RECOVERY LEFT", "recovery_left", BH_CELL_TEXT, false },
    { "SESSIONS", "sessions", BH_CELL_TEXT, false },
    { "CREATED", "created_ns", BH_CELL_TIME, true },
};
VIEW(accounts);

static const struct bh_column passkeys_columns[] = {
    { "PASSKEY", "id", BH_CELL_TEXT, false },
    { "NAME", "name", BH_CELL_TEXT, false },
    { "CREATED", "created_ns", BH_CELL_TIME, false },
    { "LAST USED", "last_used_ns", BH_CELL_TIME, false },
};
VIEW(passkeys);

static const struct bh_column checkpoints_columns[] = {
    { "SIZE", "size", BH_CELL_TEXT, false },
    { "NOTE", "note", BH_CELL_TEXT, false },
};
VIEW(checkpoints);

static const struct bh_column roles_columns[] = {
    { "ROLE", "role", BH_CELL_TEXT, false },
    { "TENANT", "tenant", BH_CELL_TEXT, false },
    { "BY GROUP", "gid", BH_CELL_TEXT, false },
};
VIEW(roles);

static const struct bh_column checks_columns[] = {
    { "CHECK", "check", BH_CELL_TEXT, false },
    { "RESULT", "result", BH_CELL_TEXT, false },
    { "FOUND", "found", BH_CELL_TEXT, false },
    { "FIX", "fix", BH_CELL_TEXT, false },
};
VIEW(checks);

/* `forecast`: a table a kind of subject. */
static const struct bh_column forecast_tenants_columns[] = {
    { "TENANT", "name", BH_CELL_TEXT, false },         { "GUARANTEE", "guarantee", BH_CELL_TEXT, false },
    { "NOW", "level", BH_CELL_TEXT, false },           { "NEXT", "bounds.near", BH_CELL_BOUND, false },
    { "LATER", "bounds.later", BH_CELL_BOUND, false }, { "FAR", "bounds.far", BH_CELL_BOUND, false },
    { "KEPT", "bounds.near", BH_CELL_HITS, false },    { "KEPT LATER", "bounds.later", BH_CELL_HITS, true },
    { "KEPT FAR", "bounds.far", BH_CELL_HITS, true },  { "MAY BE LENT", "lends", BH_CELL_TEXT, false },
};
VIEW(forecast_tenants);

static const struct bh_column forecast_pools_columns[] = {
    { "POOL", "model", BH_CELL_TEXT, false },
    { "GPUS", "gpus", BH_CELL_TEXT, false },
    { "NOW", "level", BH_CELL_TEXT, false },
    { "NEXT", "bounds.near", BH_CELL_BOUND, false },
    { "LATER", "bounds.later", BH_CELL_BOUND, false },
    { "FAR", "bounds.far", BH_CELL_BOUND, false },
    { "KEPT", "bounds.near", BH_CELL_HITS, false },
    { "KEPT LATER", "bounds.later", BH_CELL_HITS, true },
    { "KEPT FAR", "bounds.far", BH_CELL_HITS, true },
    { "WANTS", "proposal.wanted", BH_CELL_TEXT, false },
    { "WANTS FAR", "proposal.wanted_later", BH_CELL_TEXT, false },
    { "GUARANTEED", "proposal.least", BH_CELL_TEXT, true },
    { "PROPOSAL", "proposal", BH_CELL_PROPOSAL, false },
};
VIEW(forecast_pools);

static const struct bh_column forecast_partitions_columns[] = {
    { "PROFILE", "profile", BH_CELL_TEXT, false },     { "MODEL", "model", BH_CELL_TEXT, false },
    { "NOW", "level", BH_CELL_TEXT, false },           { "NEXT", "bounds.near", BH_CELL_BOUND, false },
    { "LATER", "bounds.later", BH_CELL_BOUND, false }, { "FAR", "bounds.far", BH_CELL_BOUND, false },
    { "KEPT", "bounds.near", BH_CELL_HITS, false },    { "READY", "ready", BH_CELL_TEXT, false },
};
VIEW(forecast_partitions);

static const struct bh_column forecast_nodes_columns[] = {
    { "NODE", "node", BH_CELL_TEXT, false },
    { "GPUS", "capacity", BH_CELL_TEXT, false },
    { "NOW", "level", BH_CELL_TEXT, false },
    { "NEXT", "bounds.near", BH_CELL_BOUND, false },
    { "KEPT", "bounds.near", BH_CELL_HITS, false },
    { "FULL", "level_permille", BH_CELL_PERMILLE, false },
    { "EXPECTED", "projected_permille", BH_CELL_PERMILLE, false },
    { "MARK", "mark_permille", BH_CELL_PERMILLE, true },
    { "HOT", "hot", BH_CELL_TEXT, false },
};
VIEW(forecast_nodes);
