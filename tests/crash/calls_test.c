/* Each call that changes a file fails, in turn: once, or from then on; by a broken disk or a full one.
 * Meanwhile the daemon's core carries out one command, with a checkpoint due, and a snapshot, too, for the
 * first.  No effect may be without its record:
 *
 *   what failed has left nothing: no record, no token, no tenant gone, nothing for the node;
 *   what a crash then leaves is the state before or the state after, whole, and the former
 *     when the answer was that it failed, the latter when the answer was that it is done;
 *   the same command succeeds once the disk works again. */

#include "tests/crash/left.h"

#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "daemon/batch/record.h"
#include "daemon/nodes/inventory.h"
#include "tests/crash/disk.h"

enum { CALLS_MAX = 400, IMAGES = 2 };

static const char site_with_old_yaml[] =
    "tenants:\n"
    "  - {name: acme, kind: organization}\n"
    "  - {name: acme/vision, kind: department}\n"
    "  - {name: acme/vision/train, kind: project, quotas: [{sku: small, limit: 2}]}\n"
    "  - {name: acme/old, kind: department}\n"
    "skus:\n"
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"
    "principals:\n"
    "  - {name: alice, uid: 2001}\n"
    "bindings:\n"
    "  - {role: developer, principal: alice, tenant: acme/vision/train}\n"
    "gpus: [{uuid: all, managed: true}]\n";

static struct fixture f, left;

/* ---- the commands ---- */

static bh_rc
append_record(void)
{
    const struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                    .phase = BH_PHASE_EVENT,
                                    .verb = "test.note" };

    return bh_core_record(&f.core, &entry, BH_OK, &f.err);
}

static bh_rc
issue_token(void)
{
    struct bh_token_request request = { .scopes = "job.submit", .lifetime = "1d" };
    struct bh_command command = { .op = BH_OP_TOKEN_CREATE,
                                  .token = &request,
                                  .caller = caller_named(&f, "alice") };

    return bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err);
}

static bh_rc
delete_tenant(void)
{
    struct bh_command command = apply_command(&f, site_yaml);

    return bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err);
}

static bh_rc
submit_job(void)
{
    struct bh_command command = submit_command(&f, alice_small);

    return bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err);
}

static const struct {
    const char *name;
    bh_rc (*run)(void);
} commands[] = {
    { "append", append_record },
    { "token issue", issue_token },
    { "tenant delete", delete_tenant },
    { "submit", submit_job },
};

/* ---- what there is ---- */

struct census {
    uint64_t records, jobs, tokens, effects;
    bool tenant;
    uint8_t digest[32]; /* of the engine's state */
};

static bool
count_token(void *self, const struct bh_token_row *row)
{
    ++*(uint64_t *)self;
    return row->id[0] != '\0';
}

static struct census
count_all(struct fixture *fixture)
{
    const struct bh_job_filter all = { 0 };
    const struct bh_token_filter every_token = { 0 };
    const struct bh_store *store = &fixture->core.store;
    const struct bh_directory *dir = bh_catalog_get(fixture->core.catalog);
    struct census census = { .effects = fixture->core.effect_count,
                             .tenant = bh_directory_tenant_named(dir, "acme/old") };
    uint64_t last;

    bh_catalog_put(fixture->core.catalog, dir);
    assert_int_equal(store->ops->last_record(store->self, &last, &fixture->err), BH_OK);
    census.records = last + 1;
    assert_int_equal(fixture->core.journal.next_seq, last + 1);
    assert_int_equal(store->ops->count_jobs(store->self, &all, &census.jobs, &fixture->err), BH_OK);
    assert_int_equal(
        store->ops->list_tokens(store->self, &every_token, count_token, &census.tokens, &fixture->err),
        BH_OK);
    bh_state_digest(&fixture->core.state, fixture->core.crypto, census.digest);
    return census;
}

/* A core that was started again has sent nothing yet. */
static bool
same(const struct census *a, const struct census *b, bool running)
{
    return a->records == b->records && a->jobs == b->jobs && a->tokens == b->tokens && a->tenant == b->tenant
           && (!running || a->effects == b->effects) && memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

/* ---- one trial ---- */

struct trial {
    size_t command;
    struct bh_disk_fault fault;
    char name[80];
    struct census before, after;
    bh_rc rc;
    uint32_t failed; /* calls */
};

/* A node with a GPU, so that a submission has effects. */
static void
add_node(void)
{
    struct bh_msg_gpu gpu = { .model = "H100-80GB", .uuid = "GPU-1", .mig_capable = true, .allowed = true };
    struct bh_msg_inventory inventory = { .node = "n1", .gpus = { &gpu, 1 } };
    uint32_t node;

    assert_int_equal(bh_core_begin(&f.core, &f.err), BH_OK);
    assert_int_equal(bh_catalog_name(f.core.catalog, BH_NAME_NODE, "n1", &node, &f.err), BH_OK);
    f.core.catalog_changed = true;
    assert_int_equal(
        bh_inventory_node(&f.core, (bh_node_id){ node }, &(struct bh_node_offer){ 0, 0 }, &f.err), BH_OK);
    assert_int_equal(bh_inventory_apply(&f.core, (bh_node_id){ node }, &inventory, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    bh_core_released(&f.core);
}

static void
set_up(size_t command)
{
    left_make_folder(f.folder);
    f.config.snapshot_every = UINT32_MAX;
    bh_disk_record(f.folder);
    assert_int_equal(open_core(&f), BH_OK);
    assert_int_equal(fixture_apply(&f, site_with_old_yaml), BH_OK);
    add_node();
    assert_int_equal(issue_token(), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    f.config.snapshot_every = command == 0 ? 1 : UINT32_MAX; /* large: once is enough */
    f.core.journal.asked_ns = 0;
}

static void
take_down(void)
{
    bh_disk_pause();
    close_core(&f);
    left_remove(f.folder);
    bh_disk_forget();
    bh_arena_reset(f.arena);
}

/* As the owner thread does it: a batch that fails is thrown away. */
static bh_rc
run_batch(size_t command)
{
    bh_rc rc = commands[command].run();

    if (rc == BH_OK)
        rc = bh_core_commit(&f.core, &f.err);
    if (rc == BH_OK || rc == BH_UNCERTAIN)
        return rc;
    assert_true(bh_core_is_fatal(rc));
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK);
    return rc;
}

/* The state that the command leads to: found out without a fault. */
static struct census
clean_run(size_t command)
{
    struct census after;

    set_up(command);
    assert_int_equal(run_batch(command), BH_OK);
    after = count_all(&f);
    take_down();
    return after;
}

static void
check_running(const struct trial *t)
{
    struct census now = count_all(&f);

    if (t->rc == BH_OK)
        BH_CHECK(t->name, now.records == t->after.records && now.tokens == t->after.tokens);
    else
        BH_CHECK(t->name, same(&now, &t->before, true) && now.effects == 0);
}

/* What is on the disk now, or what a crash now would leave of it. */
static void
check_left(const struct trial *t)
{
    struct census now;

    BH_CHECK_EQ(t->name, left_open(&left), BH_OK);
    if (!left.core.store.ops)
        return;
    now = count_all(&left);
    if (t->rc == BH_OK)
        BH_CHECK(t->name, now.records == t->after.records && now.tokens == t->after.tokens
                              && now.jobs == t->after.jobs && now.tenant == t->after.tenant);
    else if (t->rc != BH_UNCERTAIN || now.records == t->before.records)
        BH_CHECK(t->name, same(&now, &t->before, false));
    else
        BH_CHECK_EQ(t->name, now.records, t->after.records);
    BH_CHECK(t->name, left_verifies(&left));
    left_close(&left);
    left_empty(left.folder);
}

static void
check_crashes(const struct trial *t)
{
    bh_disk_rewind();
    for (uint64_t seed = 0; seed < IMAGES; seed++) {
        bh_disk_crash(bh_disk_length(), t->fault.number * 100 + seed, left.folder);
        check_left(t);
    }
}

/* False when no call failed: there were fewer. */
static bool
fail_call(struct trial *t)
{
    set_up(t->command);
    t->before = count_all(&f);
    bh_disk_fail(&t->fault);
    t->rc = run_batch(t->command);
    t->failed = bh_disk_heal();
    bh_disk_pause();
    snprintf(t->name, sizeof t->name, "%s, call %" PRIu32 "%s: %s", commands[t->command].name,
             t->fault.number, t->fault.sticky ? " and all after" : "", bh_rc_name(t->rc));
    if (t->rc != BH_UNCERTAIN)
        check_running(t);
    check_crashes(t);
    if (t->rc != BH_OK && t->rc != BH_UNCERTAIN) {
        BH_CHECK_EQ(t->name, run_batch(t->command), BH_OK);
        BH_CHECK_EQ(t->name, count_all(&f).records, t->after.records);
    }
    take_down();
    return t->failed > 0;
}

static struct bh_arena *config_arena;

static int
prepare(void **state)
{
    config_arena = bh_arena_new(1 << 20);
    bh_log_setup("calls_test", false, BH_LOG_ERROR);
    assert_int_equal(bh_params_parse(&bh_daemon_params, "", &f.config, config_arena, &f.err), BH_OK);
    f.config.checkpoint_interval = UINT64_C(3600) * 1000000000;
    left.config = f.config;
    f.config.state_dir = f.folder;
    left.config.state_dir = left.folder;
    f.arena = bh_arena_new(8 << 20);
    left_make_folder(left.folder);
    return 0;
}

static int
clean(void **state)
{
    left_remove(left.folder);
    bh_arena_free(f.arena);
    bh_arena_free(config_arena);
    return 0;
}

static void
no_effect_without_its_record(void **state)
{
    static const struct bh_disk_fault faults[] = {
        { .error = EIO },
        { .error = EIO, .sticky = true },
        { .error = ENOSPC },
        { .error = ENOSPC, .sticky = true },
    };
    uint32_t trials = 0, kept = 0, refused = 0, uncertain = 0;

    for (size_t i = 0; i < BH_COUNT(commands) * BH_COUNT(faults); i++) {
        struct trial t = { .command = i / BH_COUNT(faults), .fault = faults[i % BH_COUNT(faults)] };

        t.after = clean_run(t.command);
        do {
            t.fault.number++;
            trials++;
            BH_CHECK("it ends", t.fault.number < CALLS_MAX);
            if (!fail_call(&t))
                break;
            kept += t.rc == BH_OK;
            uncertain += t.rc == BH_UNCERTAIN;
            refused += t.rc != BH_OK && t.rc != BH_UNCERTAIN;
        } while (t.fault.number < CALLS_MAX);
        BH_CHECK(commands[t.command].name, t.fault.number > 8);
    }
    BH_CHECK_DONE();
    print_message("# %" PRIu32 " trials: %" PRIu32 " refused, %" PRIu32 " kept all the same, "
                  "%" PRIu32 " uncertain\n",
                  trials, refused, kept, uncertain);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_effect_without_its_record),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, prepare, clean);
}
