#include "daemon/allowance.h"

#include <inttypes.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "base/time.h"
#include "daemon/command.h"

bool
bh_allowance_is_free(struct bh_core *core, const struct bh_caller *caller)
{
    const struct bh_command command = { .caller = *caller };

    return bh_command_authz(core, &command, "site.apply", (bh_tenant_id){ 0 }).allow;
}

/* ---- what the open batch adds: readers of the store do not see it yet ---- */

enum kind { JOB, TOKEN };

static void
took(struct bh_core *core, enum kind kind, uint32_t principal)
{
    struct bh_taken *taken = bh_arena_alloc(core->arena, sizeof *taken);

    if (!taken) /* a batch of that size fails for want of room elsewhere */
        return;
    *taken = (struct bh_taken){ core->taken, principal, kind == TOKEN };
    core->taken = taken;
}

static uint64_t
taken_by(const struct bh_core *core, enum kind kind, uint32_t principal)
{
    uint64_t count = 0;

    for (const struct bh_taken *taken = core->taken; taken; taken = taken->next)
        count += taken->principal == principal && taken->token == (kind == TOKEN);
    return count;
}

void
bh_allowance_took_job(struct bh_core *core, uint32_t principal)
{
    took(core, JOB, principal);
}

void
bh_allowance_took_token(struct bh_core *core, uint32_t principal)
{
    took(core, TOKEN, principal);
}

/* ---- jobs ---- */

static bh_rc
count_waiting(struct bh_core *core, uint32_t principal, uint64_t *ret_count, struct bh_err *err)
{
    const struct bh_job_filter filter = { .principal_id = principal, .active_only = true,
                                          .state = bh_job_state_names[BH_JOB_PENDING] };
    bh_rc rc = core->store.ops->count_jobs(core->store.self, &filter, ret_count, err);

    *ret_count += taken_by(core, JOB, principal);
    return rc;
}

static bh_rc
refuse_jobs(const char *whose, uint64_t most, struct bh_err *err)
{
    bh_err_set(err, BH_QUOTA, "%.100s has %" PRIu64 " jobs that wait or are held, which is the "
               "most", whose, most);
    return bh_err_hint(err, "wait until some have begun, or cancel some; an administrator can "
                            "raise the limit in bulkheadd.conf");
}

bh_rc
bh_allowance_check_job(struct bh_core *core, const struct bh_command *command,
                       bh_tenant_id tenant, struct bh_err *err)
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
        return refuse_jobs("the tenant", config->tenant_jobs_waiting_max, err);
    if (config->jobs_waiting_max)
        rc = count_waiting(core, caller->subject.principal.v, &waiting, err);
    if (rc == BH_OK && config->jobs_waiting_max && waiting >= config->jobs_waiting_max)
        return refuse_jobs(caller->name ? caller->name : "the caller", config->jobs_waiting_max,
                           err);
    return rc;
}

/* ---- tokens ---- */

struct tally {
    uint64_t now_ns, valid;
};

static bool
count_valid(void *self, const struct bh_token_row *row)
{
    struct tally *tally = self;

    tally->valid += !row->revoked && (!row->expires_ns || row->expires_ns > tally->now_ns);
    return true;
}

bh_rc
bh_allowance_check_token(struct bh_core *core, const struct bh_command *command,
                         uint32_t principal, struct bh_err *err)
{
    const struct bh_token_filter filter = { .principal_id = principal };
    struct tally tally = { .now_ns = bh_core_now(core) };
    uint32_t most = core->config->tokens_max;
    bh_rc rc;

    if (most == 0 || bh_allowance_is_free(core, &command->caller))
        return BH_OK;
    rc = core->store.ops->list_tokens(core->store.self, &filter, count_valid, &tally, err);
    if (rc != BH_OK || tally.valid + taken_by(core, TOKEN, principal) < most)
        return rc;
    bh_err_set(err, BH_QUOTA, "there are %" PRIu32 " valid tokens already, which is the most",
               most);
    return bh_err_hint(err, "revoke one that is not needed: `bulkhead token`");
}

/* ---- the disk ---- */

#define LOOK_AGAIN BH_NS_PER_S

/* What the daemon's user may still write; a quota of the folder shows there, too.  A disk that
 * does not answer is not low: writing to it says what is wrong. */
static void
look_at_disk(struct bh_core *core)
{
    struct bh_disk *disk = &core->disk;
    bh_ns now = bh_time_monotonic();
    struct statvfs found;
    uint64_t left;
    bool low;

    if (disk->looked_ns && now - disk->looked_ns < LOOK_AGAIN)
        return;
    disk->looked_ns = now;
    low = statvfs(core->config->state_dir, &found) == 0
          && (left = (uint64_t)found.f_bavail * found.f_frsize, left < core->config->disk_reserve);
    if (low && !disk->low)
        bh_log(DISK_LOW, BH_U64("left_bytes", left), BH_U64("reserve", core->config->disk_reserve));
    disk->low = low;
}

bh_rc
bh_allowance_check_disk(struct bh_core *core, const struct bh_command *command,
                        struct bh_err *err)
{
    if (core->config->disk_reserve == 0 || command->system || command->people || command->dry_run)
        return BH_OK;
    look_at_disk(core);
    if (!core->disk.low || bh_allowance_is_free(core, &command->caller))
        return BH_OK;
    bh_err_set(err, BH_FULL, "the disk is nearly full: what is left is kept for administrators");
    return bh_err_hint(err, "an administrator makes room on the daemon's disk, or lowers "
                            "disk_reserve in bulkheadd.conf");
}
