#include "daemon/authorization/allowance.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/time.h"
#include "daemon/authorization/command.h"
#include "daemon/state/texts.h"

bool
bh_allowance_is_free(struct bh_core *core, const struct bh_caller *caller)
{
    const struct bh_command command = { .caller = *caller };

    return bh_command_holds(core, &command, "site.apply", (bh_tenant_id){ 0 }).allow;
}

/* ---- what the open batch adds: readers of the store do not see it yet ---- */

enum allowance_kind { JOB, TOKEN };

static void
allowance_add(struct bh_core *core, enum allowance_kind kind, uint32_t principal)
{
    struct bh_batch_created *taken = bh_arena_alloc(core->arena, sizeof *taken);

    if (!taken) /* a batch of that size fails for want of room elsewhere */
        return;
    *taken = (struct bh_batch_created){ core->taken, principal, kind == TOKEN };
    core->taken = taken;
}

static uint64_t
allowance_added_by(const struct bh_core *core, enum allowance_kind kind, uint32_t principal)
{
    uint64_t count = 0;

    for (const struct bh_batch_created *taken = core->taken; taken; taken = taken->next)
        count += taken->principal == principal && taken->token == (kind == TOKEN);
    return count;
}

void
bh_allowance_add_job(struct bh_core *core, uint32_t principal)
{
    allowance_add(core, JOB, principal);
}

void
bh_allowance_add_token(struct bh_core *core, uint32_t principal)
{
    allowance_add(core, TOKEN, principal);
}

bool
bh_allowance_has_new_token(const struct bh_core *core, uint32_t principal)
{
    return allowance_added_by(core, TOKEN, principal) > 0;
}

/* ---- jobs ---- */

static bh_rc
allowance_count_pending(struct bh_core *core, uint32_t principal, uint64_t *ret_count, struct bh_err *err)
{
    const struct bh_job_filter filter = { .principal_id = principal,
                                          .active_only = true,
                                          .state = bh_job_state_names[BH_JOB_PENDING] };
    bh_rc rc = core->store.ops->count_jobs(core->store.self, &filter, ret_count, err);

    *ret_count += allowance_added_by(core, JOB, principal);
    return rc;
}

static bh_rc
allowance_refuse_jobs(const char *whose, uint64_t most, struct bh_err *err)
{
    bh_err_set(err, BH_QUOTA,
               "%.100s has %" PRIu64 " jobs that wait or are held, which is the "
               "most",
               whose, most);
    return bh_err_hint(err, "wait until some have begun, or cancel some; an administrator can "
                            "raise the limit in bulkheadd.conf");
}

bh_rc
bh_allowance_check_job(struct bh_core *core, const struct bh_command *command, bh_tenant_id tenant,
                       struct bh_err *err)
{
    const struct bh_daemon_config *config = core->config;
    const struct bh_caller *caller = &command->caller;
    struct bh_tenant_view view;
    uint64_t waiting = 0;
    bh_rc rc = BH_OK;

    if (bh_allowance_is_free(core, caller))
        return BH_OK;
    if (config->tenant_jobs_waiting_max
        && bh_view_tenant(core->state.engine, tenant, bh_core_now(core), &view)
        && view.pending >= config->tenant_jobs_waiting_max)
        return allowance_refuse_jobs("the tenant", config->tenant_jobs_waiting_max, err);
    if (config->jobs_waiting_max)
        rc = allowance_count_pending(core, caller->subject.principal.v, &waiting, err);
    if (rc != BH_OK)
        return rc;
    if (config->jobs_waiting_max && waiting >= config->jobs_waiting_max)
        return allowance_refuse_jobs(caller->name ? caller->name : "the caller", config->jobs_waiting_max,
                                     err);
    return BH_OK;
}

/* ---- what people wrote ---- */

bh_rc
bh_allowance_check_text(struct bh_core *core, const struct bh_command *command, bh_tenant_id tenant,
                        uint64_t bytes, struct bh_err *err)
{
    uint64_t most = core->config->tenant_texts_max, kept;
    const char *name;
    bh_rc rc;

    if (most == 0 || bytes == 0 || bh_allowance_is_free(core, &command->caller))
        return BH_OK;
    rc = bh_texts_bytes(core, tenant.v, &kept, err);
    if (rc != BH_OK || (kept <= most && bytes <= most - kept))
        return rc;
    name = bh_catalog_name_of(core->catalog, BH_NAME_TENANT, tenant.v);
    bh_err_set(err, BH_QUOTA,
               "%.80s keeps %" PRIu64 " KiB of its jobs' specifications, commands "
               "and messages, of %" PRIu64 " at most",
               name ? name : "the tenant", kept >> 10, most >> 10);
    return bh_err_hint(err, "an administrator erases months that are over (`bulkhead key shred`), "
                            "or raises tenant_texts_max in bulkheadd.conf");
}

/* ---- tokens ---- */

struct allowance_tally {
    uint64_t now_ns, valid;
};

static bool
allowance_count_valid(void *self, const struct bh_token_row *row)
{
    struct allowance_tally *tally = self;

    tally->valid += !row->revoked && (!row->expires_ns || row->expires_ns > tally->now_ns);
    return true;
}

bh_rc
bh_allowance_check_token(struct bh_core *core, const struct bh_command *command, uint32_t principal,
                         struct bh_err *err)
{
    const struct bh_token_filter filter = { .principal_id = principal };
    struct allowance_tally tally = { .now_ns = bh_core_now(core) };
    uint32_t most = core->config->tokens_max;
    bh_rc rc;

    if (most == 0 || bh_allowance_is_free(core, &command->caller))
        return BH_OK;
    rc = core->store.ops->list_tokens(core->store.self, &filter, allowance_count_valid, &tally, err);
    if (rc != BH_OK || tally.valid + allowance_added_by(core, TOKEN, principal) < most)
        return rc;
    bh_err_set(err, BH_QUOTA, "there are %" PRIu32 " valid tokens already, which is the most", most);
    return bh_err_hint(err, "revoke one that is not needed: `bulkhead token`");
}

/* ---- the disk ---- */

#define DISK_CHECK_INTERVAL BH_NS_PER_S

/* A change's text is sealed, which makes it a third longer, and stands in the store's log before
 * it is copied into its file; the rest is the record, the rows and what the store has beside them. */
enum { TAKEN_OF_TEXT = 3, TAKEN_BESIDE = 16 << 10 };

static uint64_t
allowance_disk_use_of(const struct bh_command *command)
{
    return TAKEN_BESIDE + TAKEN_OF_TEXT * (uint64_t)command->text_length;
}

/* What the daemon's user may still write.  Where jobs' output is on the same disk, it ends
 * earlier unless the disk is small (bh_disk_leaves_space). */
static void
allowance_check_disk(struct bh_core *core)
{
    struct bh_disk *disk = &core->disk;
    bh_ns now = bh_time_monotonic();
    bool low;

    if (disk->checked_ns && now < disk->checked_ns + DISK_CHECK_INTERVAL)
        return;
    disk->checked_ns = now;
    disk->capacity = bh_disk_space_at(core->config->state_dir);
    disk->taken = 0;
    low = !bh_disk_space_is_left(&disk->capacity, core->config->disk_reserve, 0);
    if (low && !disk->low)
        bh_log(DISK_LOW, BH_U64("left_bytes", disk->capacity.free),
               BH_U64("reserve", core->config->disk_reserve));
    disk->low = low;
}

/* What ends something: refusing it would keep the disk full.  There are no more of them than there
 * are jobs and tokens, and they keep no text. */
static const enum bh_operation relieving[] = { BH_OP_JOB_CANCEL, BH_OP_JOB_RELEASE, BH_OP_TOKEN_REVOKE };

static bool
allowance_relieves(const struct bh_command *command)
{
    for (size_t i = 0; i < BH_COUNT(relieving); i++)
        if (relieving[i] == command->op)
            return true;
    return false;
}

bh_rc
bh_allowance_check_disk(struct bh_core *core, const struct bh_command *command, struct bh_err *err)
{
    uint64_t reserve = core->config->disk_reserve, taken;

    if (reserve == 0 || command->system || command->accounts || command->dry_run)
        return BH_OK;
    allowance_check_disk(core);
    taken = core->disk.taken + allowance_disk_use_of(command);
    if (bh_disk_space_is_left(&core->disk.capacity, reserve, taken) || allowance_relieves(command)
        || bh_allowance_is_free(core, &command->caller)) {
        core->disk.taken = taken;
        return BH_OK;
    }
    bh_err_set(err, BH_FULL, "the disk is nearly full: what is left is kept for administrators");
    return bh_err_hint(err, "cancelling jobs and revoking tokens still works; an administrator makes "
                            "room on the daemon's disk, or lowers disk_reserve in bulkheadd.conf");
}
