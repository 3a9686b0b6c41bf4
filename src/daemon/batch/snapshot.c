#include "daemon/batch/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "daemon/batch/abandoned_orders.h"
#include "daemon/batch/record.h"

enum { SNAPSHOT_BYTES_MAX = 1 << 30 };

/* What the store remembers about the last snapshot (meta "snapshot"). */
struct manifest {
    char file[64]; /* in the state folder */
    char frontier[BH_MERKLE_TEXT_MAX];
    uint64_t next_job;
    uint64_t seq;   /* records it covers */
    uint64_t ts_ns; /* time of the last of them */
    uint32_t boot;
    uint8_t sha256[32]; /* of the file */
};

static const struct bh_field manifest_fields[] = {
    BH_F(struct manifest, boot, BH_FIELD_U32),     BH_F(struct manifest, file, BH_FIELD_STR),
    BH_F(struct manifest, frontier, BH_FIELD_STR), BH_F(struct manifest, next_job, BH_FIELD_U64),
    BH_F(struct manifest, seq, BH_FIELD_U64),      BH_F(struct manifest, sha256, BH_FIELD_HEX),
    BH_F(struct manifest, ts_ns, BH_FIELD_NS),
};
static const struct bh_fields manifest_description = BH_FIELDS("snapshot", struct manifest, manifest_fields);

static void
snapshot_path_of(const struct bh_core *core, const char *file, char ret_path[4096])
{
    snprintf(ret_path, 4096, "%s/%s", core->config->state_dir, file);
}

static bh_rc
snapshot_put_manifest(struct bh_core *core, const struct manifest *manifest, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf json = { .max = 64 << 10 };

    bh_json_encode(&json, &manifest_description, manifest);
    return core->store.ops->put_meta(core->store.self, "snapshot", bh_buf_text(&json), err);
}

void
bh_snapshot_committed(struct bh_core *core)
{
    char file[64], path[4096];

    if (!core->stale_snapshot)
        return;
    snprintf(file, sizeof file, "snapshot-%" PRIu64 ".bin", core->stale_snapshot);
    snapshot_path_of(core, file, path);
    unlink(path);
    core->stale_snapshot = 0;
}

static bh_rc
snapshot_write(struct bh_core *core, struct bh_err *err)
{
    struct manifest manifest = { .seq = core->journal.next_seq,
                                 .boot = core->journal.boot,
                                 .next_job = core->next_job,
                                 .ts_ns = core->journal.last_ts_ns };
    struct bh_entry entry = {
        .phase = BH_PHASE_EVENT, .verb = "snapshot", .obj = { .id = manifest.seq }, .dec = { .allow = true }
    };
    uint8_t digest[32];
    char path[4096];
    struct bh_buf frontier;
    bh_rc rc;

    bh_state_snapshot_type(entry.obj.type);
    snprintf(manifest.file, sizeof manifest.file, "snapshot-%" PRIu64 ".bin", manifest.seq);
    snapshot_path_of(core, manifest.file, path);
    core->crypto->sha256(core->state.block, core->state.bytes, "", 0, manifest.sha256);
    bh_buf_init_fixed(&frontier, manifest.frontier, sizeof manifest.frontier);
    bh_merkle_frontier_format(&frontier, &core->journal.frontier);
    if (!bh_buf_text(&frontier))
        return bh_err_set(err, BH_BUG, "frontier is too long");
    rc = bh_file_replace(path, core->state.block, core->state.bytes, 0600, err);
    if (rc != BH_OK)
        return rc;
    bh_state_digest(&core->state, core->crypto, digest);
    entry.text = digest;
    rc = bh_core_record(core, &entry, BH_OK, err);
    if (rc != BH_OK)
        return rc;
    rc = snapshot_put_manifest(core, &manifest, err);
    if (rc != BH_OK)
        return rc;
    if (core->snapshot_seq != manifest.seq)
        core->stale_snapshot = core->snapshot_seq;
    core->snapshot_seq = manifest.seq;
    bh_log(SNAPSHOT_WRITTEN, BH_U64("records", manifest.seq), BH_U64("bytes", core->state.bytes));
    return BH_OK;
}

bh_rc
bh_snapshot_write(struct bh_core *core, struct bh_err *err)
{
    bh_rc rc = bh_abandoned_orders_record(core, UINT64_MAX, err); /* the snapshot lists only the rest */

    if (rc != BH_OK)
        return rc;
    rc = snapshot_write(core, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "snapshot");
}

bh_rc
bh_snapshot_if_due(struct bh_core *core, struct bh_err *err)
{
    if (core->journal.next_seq < core->snapshot_seq + core->config->snapshot_every)
        return BH_OK;
    return bh_snapshot_write(core, err);
}

static bh_rc
snapshot_read_manifest(struct bh_core *core, struct manifest *ret_manifest, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    const char *json;
    bh_rc rc = core->store.ops->get_meta(core->store.self, "snapshot", arena, &json, err);

    if (rc != BH_OK)
        return rc;
    return bh_json_decode(json, strlen(json), &manifest_description, ret_manifest, arena, err);
}

/* The file, if it is what was written. */
static bh_rc
snapshot_read_block(const struct bh_core *core, const struct manifest *manifest, struct bh_buf *ret_bytes,
                    struct bh_err *err)
{
    char path[4096];
    uint8_t sha256[32];
    bh_rc rc;

    snapshot_path_of(core, manifest->file, path);
    rc = bh_file_read(path, SNAPSHOT_BYTES_MAX, ret_bytes, err);
    if (rc != BH_OK)
        return rc;
    core->crypto->sha256(ret_bytes->bytes, ret_bytes->length, "", 0, sha256);
    if (memcmp(sha256, manifest->sha256, sizeof sha256) == 0)
        return BH_OK;
    return bh_err_set(err, BH_INVALID, "%s does not have the digest it was written with", manifest->file);
}

bh_rc
bh_snapshot_check(struct bh_core *core, uint64_t *ret_seq, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf bytes = { .max = SNAPSHOT_BYTES_MAX };
    struct manifest manifest = { .seq = 0 };
    bh_rc rc = snapshot_read_manifest(core, &manifest, err);

    if (rc != BH_OK)
        return rc;
    rc = snapshot_read_block(core, &manifest, &bytes, err);
    if (rc == BH_NOT_FOUND)
        rc = err->rc = BH_IO;
    if (rc != BH_OK)
        return rc;
    *ret_seq = manifest.seq;
    return BH_OK;
}

static bh_rc
snapshot_adopt(struct bh_core *core, const struct manifest *manifest, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf bytes = { .max = SNAPSHOT_BYTES_MAX };
    bh_rc rc = snapshot_read_block(core, manifest, &bytes, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_merkle_frontier_parse(manifest->frontier, &core->journal.frontier, err);
    if (rc != BH_OK)
        return rc;
    return bh_state_adopt(&core->state, bytes.bytes, bytes.length, err);
}

bh_rc
bh_snapshot_load(struct bh_core *core, struct bh_err *err)
{
    struct manifest manifest = { .seq = 0 };
    struct bh_journal *journal = &core->journal;
    bh_rc rc;

    journal->frontier = (struct bh_merkle_frontier){ 0 };
    journal->next_seq = journal->last_ts_ns = core->snapshot_seq = core->stale_snapshot = 0;
    journal->boot = 0;
    core->next_job = 1;
    rc = snapshot_read_manifest(core, &manifest, err);
    if (rc == BH_OK)
        rc = snapshot_adopt(core, &manifest, err);
    if (rc == BH_OK) {
        journal->next_seq = core->snapshot_seq = manifest.seq;
        journal->last_ts_ns = manifest.ts_ns;
        journal->boot = manifest.boot;
        core->next_job = manifest.next_job;
    } else if (rc != BH_NOT_FOUND) {
        bh_log(SNAPSHOT_REFUSED, BH_ERRLOG(err));
        journal->frontier = (struct bh_merkle_frontier){ 0 };
    }
    return BH_OK;
}
