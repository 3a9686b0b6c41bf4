#include "daemon/changes/rotate.h"

#include <string.h>

#include "daemon/authorization/command.h"
#include "daemon/batch/batch.h"
#include "daemon/batch/record.h"

/* Recorded before it happens, in the same transaction. */
static bh_rc
rotate_key(struct bh_core *core, const struct bh_entry *entry, const uint8_t *next, uint64_t *ret_count,
           struct bh_err *err)
{
    bh_rc rc = bh_core_begin(core, err);

    if (rc == BH_OK)
        rc = bh_keyring_rotate(&core->ring, core->crypto, next, ret_count, err);
    if (rc == BH_OK)
        rc = bh_core_record(core, entry, BH_OK, err);
    if (rc == BH_OK || rc == BH_CONFLICT || bh_core_is_fatal(rc))
        return rc;
    return bh_err_set(err, BH_IO, "%.200s", err->msg); /* some are wrapped anew: abort */
}

bh_rc
bh_rotate_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
              struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_verdict verdict = bh_command_authz(core, command, "key.rotate", (bh_tenant_id){ 0 });
    struct bh_entry entry;
    uint64_t count;
    bh_rc rc;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ "key.rotate", verdict, BH_REACH_OBJECT }, err);
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    entry.obj = (struct bh_record_object){ .type = "site" };
    rc = rotate_key(core, &entry, NULL, &count, err);
    if (rc == BH_CONFLICT && !core->ring.root.replaceable)
        return bh_err_hint(
            err, "stop the daemon, run bulkheadd --rotate-root FILE, then replace the credential with FILE");
    if (rc != BH_OK)
        return rc;
    ret_answer->keys = (uint32_t)count;
    return BH_OK;
}

bh_rc
bh_rotate_to_file(struct bh_core *core, const char *path, uint64_t *ret_count, struct bh_err *err)
{
    const struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                    .dec = { .allow = true },
                                    .phase = BH_PHASE_INTENT,
                                    .verb = "key.rotate",
                                    .obj = { .type = "site" } };
    uint8_t next[BH_KEY_BYTES];
    bh_rc rc = bh_root_read(path, next, err);

    if (rc == BH_OK)
        rc = rotate_key(core, &entry, next, ret_count, err);
    explicit_bzero(next, sizeof next);
    return rc == BH_OK ? bh_core_commit(core, err) : rc;
}
