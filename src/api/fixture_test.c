#include "api/fixture_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/documents/replies.h"
#include "api/openapi.h"
#include "api/schema_test.h"
#include "base/assert.h"
#include "base/time.h"
#include "engine/forecast/forecast_series.h"
#include "tests/fakes/store.h"

/* clang-format off */
static const struct bh_dir_tenant fixture_tenants[] = {
    { { 1 }, { 0 }, "acme", BH_TENANT_ORGANIZATION, false },
    { { 2 }, { 1 }, "acme/vision", BH_TENANT_DEPARTMENT, false },
    { { 3 }, { 1 }, "acme/speech", BH_TENANT_DEPARTMENT, false },
    { { 4 }, { 0 }, "other", BH_TENANT_ORGANIZATION, false },
};
/* clang-format on */
static const struct bh_dir_sku fixture_skus[] = {
    { { 1 }, "small", "2", "8Gi", false },
    { { 2 }, "large", NULL, NULL, false, .models = 1ull << BH_GPU_H100_80GB },
    { { 3 }, "tiny", NULL, NULL, .gone = true }
};
static const struct bh_dir_principal fixture_principals[] = {
    { { 1 }, "alice", ALICE, false, false },
    { { 2 }, "bob", BOB, false, false },
    { { 3 }, "carol", CAROL, false, false },
    { { 4 }, "dave", DAVE, false, false },
};
static const struct bh_dir_binding fixture_bindings[] = {
    { BH_ROLE_DEVELOPER, { 1 }, 0, { 2 } },
    { BH_ROLE_DEVELOPER, { 2 }, 0, { 4 } },
    { BH_ROLE_ADMIN, { 3 }, 0, { 0 } },
    { BH_ROLE_VIEWER, { 4 }, 0, { 1 } },
};
static const struct bh_dir_gpu fixture_gpus[] = { { { 1 }, "GPU-a" }, { { 2 }, "GPU-b" } };
static const char *fixture_may[] = { "mount", "read" };
static struct bh_site_dataset_grant fixture_grants[] = {
    { .tenant = "acme/vision", .may = { fixture_may, 2 }, .until = "2030-01-01T00:00:00Z" },
};
static struct bh_site_dataset fixture_site_datasets[] = {
    { .name = "imagenet", .path = "/data/vision", .tenant = "acme/vision", .grants = { fixture_grants, 1 } },
};
static const struct bh_site fixture_site = { .datasets = { fixture_site_datasets, 1 } };
static const struct bh_dir_dataset fixture_dataset_names[] = { { { 1 }, "imagenet", false } };
static const struct bh_dir_mount fixture_mounts[] = { { "/work/data", { 2 }, false } };

static const char fixture_inventory[] =
    "{\"cpus\":8,\"driver\":\"580.159.03\",\"gpus\":[{\"index\":0,\"memory_mib\":81559,"
    "\"power_mw\":70000,\"product\":\"NVIDIA H100 80GB HBM3\",\"temperature_c\":41,"
    "\"utilisation\":255,\"uuid\":\"GPU-a\"}],\"memory_mib\":64000,\"node\":\"n1\","
    "\"runtime\":\"crun 1.8\"}";

/* ---- the owner ---- */

static bh_rc
fixture_command(void *self, const struct bh_command *command, struct bh_arena *arena,
                struct bh_answer *ret_answer, struct bh_err *err)
{
    struct fixture *f = self;

    f->commanded = true;
    f->command = *command;
    if (command->move)
        f->moved = *command->move;
    free(f->command_text);
    f->command_text = command->text ? strdup(command->text) : NULL;
    snprintf(f->command_name, sizeof f->command_name, "%s", command->caller.name);
    snprintf(f->command_tenant, sizeof f->command_tenant, "%s", command->spec ? command->spec->tenant : "");
    *ret_answer = f->answer;
    return f->rc == BH_OK ? BH_OK : bh_err_set(err, f->rc, "%s", f->says ? f->says : "no");
}

static bh_rc
fixture_ask(void *self, bh_question question, void *question_self, struct bh_err *err)
{
    struct fixture *f = self;
    bh_ns begun = bh_time_monotonic(), took;

    question(question_self, f->engine, NOW_S * UINT64_C(1000000000));
    took = bh_time_monotonic() - begun;
    f->asks++;
    f->ask_ns += took;
    f->ask_most_ns = took > f->ask_most_ns ? took : f->ask_most_ns;
    return BH_OK;
}

/* As if the engine had been like this for some slots. */
static bh_rc
fixture_ask_forecast(void *self, bh_forecast_question question, void *question_self, struct bh_err *err)
{
    struct fixture *f = self;
    uint64_t now_ns = NOW_S * BH_NS_PER_S;
    struct bh_forecast_series series = { .max = bh_forecast_series_needed(f->engine),
                                         .slot_ns = BH_NS_PER_S };

    series.rows = calloc(series.max, sizeof *series.rows);
    BH_ASSERT(series.rows);
    for (uint32_t ago = f->slots; ago-- > 0;)
        bh_forecast_series_observe(&series, f->engine, now_ns - ago * BH_NS_PER_S);
    question(question_self, &series, f->engine, now_ns);
    free(series.rows);
    return BH_OK;
}

static void
fixture_refused(void *self, const struct bh_caller *caller, const struct bh_refused_request *attempt,
                const struct bh_err *err)
{
    struct fixture *f = self;

    if (f->refusals < BH_COUNT(f->tried))
        f->tried[f->refusals] = *attempt;
    snprintf(f->target, sizeof f->target, "%s", attempt->target ? attempt->target : "");
    f->refusals++;
    f->refused_rc = err->rc;
    f->refused = *caller;
}

static void
fixture_unauthenticated(void *self, uint64_t token)
{
    struct fixture *f = self;

    f->unauthenticated++;
    f->unauthenticated_token = token;
}

static const struct bh_directory *
fixture_directory_get(void *self)
{
    struct fixture *f = self;

    f->held++;
    return &f->dir;
}

static void
fixture_directory_put(void *self, const struct bh_directory *dir)
{
    struct fixture *f = self;

    f->held--;
}

/* Its watchers begin before the first change. */
static uint64_t
fixture_change_number(void *self)
{
    return 0;
}

static uint32_t
fixture_changes(void *self, uint64_t after, uint64_t wait_ns, struct bh_change *ret_changes, uint32_t max)
{
    struct fixture *f = self;
    uint32_t count = 0;

    for (uint32_t i = 0; i < f->change_count && count < max; i++)
        if (f->changes[i].number > after)
            ret_changes[count++] = f->changes[i];
    if (count == 0)
        bh_time_sleep(wait_ns);
    return count;
}

static bool
fixture_inventory_get(void *self, uint32_t *cursor, struct bh_buf *ret_json)
{
    struct fixture *f = self;
    const char *said[] = { f->inventory, f->inventory_of_second };

    while (*cursor < BH_COUNT(said) && !said[*cursor])
        ++*cursor;
    if (*cursor == BH_COUNT(said))
        return false;
    bh_buf_puts(ret_json, said[(*cursor)++]);
    return true;
}

static uint64_t
fixture_commits(void *self)
{
    return 1;
}

static void
fixture_tally(void *self, uint64_t ret_tally[BH_TALLIES])
{
    struct fixture *f = self;

    memcpy(ret_tally, f->tally, sizeof f->tally);
}

static struct bh_signed
fixture_last_signed(void *self)
{
    return (struct bh_signed){ 0 };
}

static bh_rc
fixture_log_keys(const char *folder, struct bh_buf *ret_keys, struct bh_err *err)
{
    bh_buf_puts(ret_keys, "site+00000000+AQ==\n");
    return BH_OK;
}

static bool
fixture_verdict(void *self, uint64_t request, uint32_t *cursor, struct bh_buf *ret_json)
{
    return false;
}

static const char *
fixture_log_path(void *self, bh_job_id job, uint32_t member, struct bh_arena *arena)
{
    struct fixture *f = self;

    return bh_arena_printf(arena, "%s/%llu.log", f->logs[0] ? f->logs : "/nonexistent",
                           (unsigned long long)job.v + member);
}

static bh_rc
fixture_admit_work(void *self, const struct bh_work *work, struct bh_err *err)
{
    struct fixture *f = self;

    return f->quarantined ? bh_err_set(err, BH_BUG, "it failed before") : BH_OK;
}

static const struct bh_owner_ops fixture_owner = {
    .admit = fixture_admit_work,
    .command = fixture_command,
    .ask = fixture_ask,
    .ask_forecast = fixture_ask_forecast,
    .refused = fixture_refused,
    .unauthenticated = fixture_unauthenticated,
    .directory_get = fixture_directory_get,
    .directory_put = fixture_directory_put,
    .change_number = fixture_change_number,
    .changes = fixture_changes,
    .inventory = fixture_inventory_get,
    .commits = fixture_commits,
    .tally = fixture_tally,
    .last_signed = fixture_last_signed,
    .log_path = fixture_log_path,
    .verdict = fixture_verdict,
};

static uint64_t
fixture_now(void)
{
    return NOW_S * UINT64_C(1000000000);
}

/* ---- the engine ---- */

void
bh_fixture_step(struct fixture *f, struct bh_event event)
{
    static struct bh_step step;
    bh_rc rc;

    event.now_ns = 1000;
    event.seq = ++f->seq;
    rc = bh_engine_step(f->engine, &event, &step);
    BH_ASSERT(rc == BH_OK);
}

void
bh_fixture_answer_orders(struct fixture *f)
{
    struct bh_effect effect;

    while (bh_engine_outstanding(f->engine, (bh_node_id){ 1 }, &effect, 1)) {
        struct bh_event event = { .kind = BH_EV_STARTED, .u.lease.lease = effect.lease };

        if (effect.kind == BH_FX_CARVE)
            event = (struct bh_event){ .kind = BH_EV_CARVED,
                                       .u.partition.partition = effect.partition.partition };
        bh_fixture_step(f, event);
    }
}

static void
fixture_sku(struct fixture *f, uint32_t id, enum bh_grade grade, uint32_t profile)
{
    struct bh_event event = { .kind = BH_EV_SKU };

    event.u.sku = (struct bh_ev_sku){ .sku = { id }, .grade = grade, .model_count = 1 };
    event.u.sku.models[0] = (struct bh_sku_model){ BH_GPU_H100_80GB, profile };
    bh_fixture_step(f, event);
}

void
bh_fixture_submit(struct fixture *f, uint64_t job, uint32_t tenant, uint32_t principal, uint32_t sku)
{
    struct bh_event event = { .kind = BH_EV_SUBMIT };

    event.u.submit = (struct bh_ev_submit){ .job = { job },
                                            .tenant = { tenant },
                                            .principal = { principal },
                                            .sku = { sku },
                                            .count = 1,
                                            .priority = BH_PRIORITY_NORMAL };
    bh_fixture_step(f, event);
}

static void
fixture_fill_engine(struct fixture *f)
{
    struct bh_engine_caps caps = { .tenants = 16,
                                   .skus = 8,
                                   .nodes = 4,
                                   .gpus = 8,
                                   .jobs = 64,
                                   .leases = 64,
                                   .partitions = 64,
                                   .classes = 32,
                                   .metered = 64 };
    size_t size = (bh_engine_size(&caps) + 15) & ~(size_t)15;

    f->engine = bh_engine_init(aligned_alloc(16, size), &caps);
    for (size_t i = 0; i < BH_COUNT(fixture_tenants); i++) {
        struct bh_event event = { .kind = BH_EV_TENANT };

        event.u.tenant = (struct bh_ev_tenant){ .tenant = fixture_tenants[i].id,
                                                .parent = fixture_tenants[i].parent,
                                                .kind = fixture_tenants[i].kind,
                                                .limit = BH_UNLIMITED };
        if (i == 1) {
            event.u.tenant.limit = 6300;
            event.u.tenant.quotas[0] = (struct bh_tenant_quota){ BH_QUOTA_SKU, 1, .limit = 1 };
            event.u.tenant.quota_count = 1;
        }
        if (i == 0)
            fixture_sku(f, 1, BH_GRADE_C, bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v);
        bh_fixture_step(f, event);
    }
    fixture_sku(f, 2, BH_GRADE_B, BH_PROFILE_WHOLE.v);
    bh_fixture_step(f, (struct bh_event){ .kind = BH_EV_NODE, .u.node = { { 1 }, true } });
    for (uint32_t gpu = 1; gpu <= 2; gpu++)
        bh_fixture_step(f, (struct bh_event){ .kind = BH_EV_GPU,
                                              .u.gpu = { .gpu = { gpu },
                                                         .node = { 1 },
                                                         .model = BH_GPU_H100_80GB,
                                                         .managed = true,
                                                         .mig_capable = true } });
}

/* ---- the store ---- */

static void
fixture_open_keys(struct fixture *f)
{
    const struct bh_keys_options options = { f->store, &bh_crypto_openssl, { 1 } };
    struct bh_err err;
    bh_rc rc = bh_keys_open(&options, &f->keys, &err);

    BH_ASSERT(rc == BH_OK);
}

void
bh_fixture_seal(struct fixture *f, uint32_t tenant, const char *plain, struct bh_buf *out)
{
    const struct bh_key_use use = { BH_KEY_AUDIT, { tenant }, fixture_now() };
    struct bh_err err;

    BH_ASSERT(f->store.ops->begin(f->store.self, &err) == BH_OK);
    BH_ASSERT(bh_keys_seal(f->keys, &use, (struct bh_slice){ plain, strlen(plain) }, out, &err) == BH_OK);
    BH_ASSERT(f->store.ops->commit(f->store.self, &err) == BH_OK);
}

void
bh_fixture_shred(struct fixture *f, uint64_t key)
{
    struct bh_err err;

    BH_ASSERT(f->store.ops->begin(f->store.self, &err) == BH_OK);
    BH_ASSERT(bh_keys_shred(f->keys, key, fixture_now(), &err) == BH_OK);
    BH_ASSERT(f->store.ops->commit(f->store.self, &err) == BH_OK);
}

void
bh_fixture_put_job(struct fixture *f, uint64_t job, uint32_t tenant, uint32_t principal, const char *state)
{
    bool ended = strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0;
    struct bh_job_row row = {
        .job = job,
        .tenant_id = tenant,
        .principal_id = principal,
        .count = 1,
        .priority = BH_PRIORITY_NORMAL,
        .name = "name\n\"<x>",
        .sku = "small",
        .kind = "batch",
        .tenant = fixture_tenants[tenant - 1].path,
        .principal = fixture_principals[principal - 1].name,
        .state = state,
        .contract = "requeue",
        .reason = ended ? "exited" : "none",
        .node = "n1",
        .partitions = "",
        .grade = "C",
        .submitted_ns = 1000,
        .ended_ns = ended ? 2000 : 0,
        .exit_status = ended ? 3 : -1,
    };
    static const char spec[] = "{\"args\":[\"sh\"],\"sku\":\"small\"}";
    char memory[400];
    struct bh_buf item;
    struct bh_err err;
    bh_rc rc;

    bh_buf_init_fixed(&item, memory, sizeof memory);
    bh_fixture_seal(f, tenant, spec, &item);
    bh_crypto_openssl.sha256(item.bytes, item.length, "", 0, row.spec.bytes);
    rc = f->store.ops->begin(f->store.self, &err);
    if (rc == BH_OK)
        rc = f->store.ops->put_text(f->store.self,
                                    &(struct bh_text_row){ row.spec, 0, { item.bytes, item.length } }, &err);
    if (rc == BH_OK)
        rc = f->store.ops->put_job(f->store.self, &row, &err);
    if (rc == BH_OK)
        rc = f->store.ops->commit(f->store.self, &err);
    BH_ASSERT(rc == BH_OK);
}

struct renaming {
    struct fixture *f;
    const char *name;
    struct bh_err err;
    bh_rc rc;
};

static bool
fixture_rename(void *self, const struct bh_job_row *found)
{
    struct renaming *renaming = self;
    struct bh_job_row row = *found;

    row.name = renaming->name;
    renaming->rc = renaming->f->store.ops->put_job(renaming->f->store.self, &row, &renaming->err);
    return false;
}

void
bh_fixture_put_sealed_name(struct fixture *f, uint64_t job, uint32_t tenant, const char *name)
{
    char memory[600];
    struct renaming renaming = { .f = f };
    struct bh_buf item;

    bh_buf_init_fixed(&item, memory, sizeof memory);
    bh_fixture_seal(f, tenant, name, &item);
    renaming.name = bh_buf_text(&item);
    BH_ASSERT(f->store.ops->begin(f->store.self, &renaming.err) == BH_OK);
    BH_ASSERT(f->store.ops->get_job(f->store.self, job, fixture_rename, &renaming, &renaming.err) == BH_OK);
    BH_ASSERT(renaming.rc == BH_OK);
    BH_ASSERT(f->store.ops->commit(f->store.self, &renaming.err) == BH_OK);
}

void
bh_fixture_put_token(struct fixture *f, const struct bh_token_row *row)
{
    struct bh_err err;
    bh_rc rc = f->store.ops->begin(f->store.self, &err);

    if (rc == BH_OK)
        rc = f->store.ops->put_token(f->store.self, row, &err);
    if (rc == BH_OK)
        rc = f->store.ops->commit(f->store.self, &err);
    BH_ASSERT(rc == BH_OK);
}

void
bh_fixture_put_meta(struct fixture *f, const char *key, const char *value)
{
    struct bh_err err;
    bh_rc rc = f->store.ops->begin(f->store.self, &err);

    if (rc == BH_OK)
        rc = f->store.ops->put_meta(f->store.self, key, value, &err);
    if (rc == BH_OK)
        rc = f->store.ops->commit(f->store.self, &err);
    BH_ASSERT(rc == BH_OK);
}

void
bh_fixture_put_record(struct fixture *f, uint64_t seq, const char *leaf)
{
    struct bh_err err;
    bh_rc rc = f->store.ops->begin(f->store.self, &err);

    if (rc == BH_OK)
        rc = f->store.ops->put_record(f->store.self, seq, &(struct bh_slice){ leaf, strlen(leaf) }, NULL,
                                      &err);
    if (rc == BH_OK)
        rc = f->store.ops->commit(f->store.self, &err);
    BH_ASSERT(rc == BH_OK);
}

void
bh_fixture_put_node(struct fixture *f, uint32_t id, const char *name)
{
    const struct bh_name_row row = { .kind = BH_NAME_NODE, .id = id, .name = name };
    struct bh_err err;
    bh_rc rc = f->store.ops->begin(f->store.self, &err);

    if (rc == BH_OK)
        rc = f->store.ops->put_name(f->store.self, &row, &err);
    if (rc == BH_OK)
        rc = f->store.ops->commit(f->store.self, &err);
    BH_ASSERT(rc == BH_OK);
}

static const struct bh_site_sign_in fixture_sign_in;

/* ---- streams: allowed to all but bob ---- */

static bh_rc
fixture_check_quota(void *self, bh_job_id job, bh_principal_id principal, struct bh_err *err)
{
    return BH_OK;
}

static bh_rc
fixture_admit(void *self, const struct bh_stream_opening *opening, char ret_ticket[BH_STREAM_TICKET_TEXT + 1],
              struct bh_err *err)
{
    memcpy(ret_ticket, TICKET, sizeof TICKET);
    return BH_OK;
}

static bh_rc
fixture_open(void *self, const struct bh_stream_claim *claim, struct bh_upgrade *ret_upgrade,
             struct bh_err *err)
{
    if (claim->principal.v == 2 || strcmp(claim->ticket, TICKET) != 0)
        return bh_err_set(err, BH_NOT_FOUND, "no such ticket");
    *ret_upgrade = (struct bh_upgrade){ .run = (void (*)(void *, int))(uintptr_t)1,
                                        .drop = claim->permit.end,
                                        .self = claim->permit.self };
    return BH_OK;
}

static const struct bh_streams_ops fixture_streams = { fixture_check_quota, fixture_admit, fixture_open };

static void
fixture_renew_api(struct fixture *f, const uint32_t rates[BH_RATE_CLASSES], bool series)
{
    struct bh_api_options options = { .owner = { &fixture_owner, f },
                                      .streams = { &fixture_streams, f },
                                      .store = f->store,
                                      .series = { series ? &bh_fixture_series : NULL, f },
                                      .keys = f->keys,
                                      .crypto = &bh_crypto_openssl,
                                      .version = "test",
                                      .log_keys = fixture_log_keys,
                                      .job_uid_first = 100000,
                                      .now = fixture_now,
                                      .silence_ns = 50 * BH_NS_PER_MS };

    memcpy(options.rates, rates, sizeof options.rates);
    bh_api_free(f->api);
    f->api = bh_api_new(&options);
}

void
bh_fixture_limit(struct fixture *f, const uint32_t rates[BH_RATE_CLASSES])
{
    fixture_renew_api(f, rates, true);
}

void
bh_fixture_keep_no_series(struct fixture *f)
{
    static const uint32_t no_limits[BH_RATE_CLASSES];

    fixture_renew_api(f, no_limits, false);
}

struct fixture *
bh_fixture_open(void)
{
    static const uint32_t no_limits[BH_RATE_CLASSES];
    struct fixture *f = calloc(1, sizeof *f);
    struct bh_err err;

    BH_ASSERT(f);
    f->dir = (struct bh_directory){
        .tenants = fixture_tenants,
        .tenant_count = BH_COUNT(fixture_tenants),
        .skus = fixture_skus,
        .sku_count = BH_COUNT(fixture_skus),
        .principals = fixture_principals,
        .principal_count = BH_COUNT(fixture_principals),
        .bindings = fixture_bindings,
        .binding_count = BH_COUNT(fixture_bindings),
        .gpus = fixture_gpus,
        .gpu_count = BH_COUNT(fixture_gpus),
        .mounts = fixture_mounts,
        .mount_count = BH_COUNT(fixture_mounts),
        .sign_in = &fixture_sign_in,
        .dataset_names = fixture_dataset_names,
        .dataset_count = 1,
        .datasets = { &fixture_site, f->datasets, 1 },
    };
    BH_ASSERT(bh_dataset_read(fixture_site_datasets, f->datasets, &err) == BH_OK);
    f->inventory = fixture_inventory;
    fixture_fill_engine(f);
    bh_store_memory_open(&bh_crypto_openssl, &f->store);
    bh_fixture_put_node(f, 1, "n1");
    fixture_open_keys(f);
    bh_fixture_limit(f, no_limits);
    return f;
}

void
bh_fixture_close(struct fixture *f)
{
    bh_api_free(f->api);
    bh_keys_close(f->keys);
    f->store.ops->close(f->store.self);
    free(f->engine);
    free(f->command_text);
    free(f);
}

/* ---- a request ---- */

struct pair {
    char name[64], value[192];
};

struct fixture_query {
    struct pair pairs[16];
    uint32_t count;
};

static void
fixture_split(const char *text, struct fixture_query *query)
{
    while (text && *text && query->count < BH_COUNT(query->pairs)) {
        struct pair *pair = &query->pairs[query->count++];
        size_t length = strcspn(text, "&"), name = strcspn(text, "=&");

        snprintf(pair->name, sizeof pair->name, "%.*s", (int)name, text);
        if (name < length)
            snprintf(pair->value, sizeof pair->value, "%.*s", (int)(length - name - 1), text + name + 1);
        text += length + (text[length] == '&');
    }
}

static const char *
fixture_query_find(const struct bh_request *request, const char *name)
{
    struct fixture_query *query = request->server;

    for (uint32_t i = 0; i < query->count; i++)
        if (strcmp(query->pairs[i].name, name) == 0)
            return query->pairs[i].value;
    return NULL;
}

static void
fixture_query_each(const struct bh_request *request,
                   void (*sink)(void *self, const char *name, const char *value), void *self)
{
    struct fixture_query *query = request->server;

    for (uint32_t i = 0; i < query->count; i++)
        sink(self, query->pairs[i].name, query->pairs[i].value);
}

/* A body may hold any byte. */
static void
fixture_keep(const struct bh_buf *body, struct received *ret)
{
    size_t length = body->length < sizeof ret->text ? body->length : sizeof ret->text - 1;

    memcpy(ret->text, body->bytes ? body->bytes : "", length);
    ret->text[length] = '\0';
}

static void
fixture_wake(void *self)
{
}

/* At most `parts` parts of a stream are read. */
static void
fixture_drain(struct bh_reply *reply, struct received *ret, int parts)
{
    const struct bh_stream *stream = &reply->stream;
    size_t length = 0;
    long got;

    stream->begin(stream->self, &(struct bh_waker){ fixture_wake, NULL });
    while (parts > 0 && length + 16384 < sizeof ret->text) {
        bh_ns again, now;

        got = stream->read(stream->self, ret->text + length, 16384, &again);
        if (got < 0)
            break;
        now = bh_time_monotonic();
        if (got == 0 && again > now)
            bh_time_sleep(again - now);
        length += (size_t)got;
        parts -= got > 0;
    }
    ret->text[length] = '\0';
    stream->close(stream->self);
}

/* Every reply of every test is what the OpenAPI document says of it. */
static void
fixture_check_reply(const struct sent *sent, const struct bh_reply *reply)
{
    const struct bh_fields *fields = reply->status >= 400 ? &bh_reply_error_fields : NULL;
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_path_match match;
    struct bh_err err;
    const char *key;

    for (int op = 0; op < BH_OPERATIONS && !fields; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);

        if (row->method == sent->method && bh_path_matches(row->path, sent->path, &match))
            fields = bh_openapi_reply_of(row->id);
    }
    if (!fields || strcmp(reply->content_type, "application/json") != 0 || reply->body.length == 0)
        return;
    if (bh_json_parse(reply->body.bytes, reply->body.length, &json, &err) != BH_OK)
        key = err.msg;
    else if (schema_fits(fields, bh_json_root(json), &key))
        return;
    fprintf(stderr, "%s: %s is not as %s has it: %.*s\n", sent->path, key, fields->name,
            (int)reply->body.length, reply->body.bytes);
    BH_ASSERT(!"a reply that fits its schema");
}

void
bh_fixture_send(struct fixture *f, const struct sent *sent, struct received *ret)
{
    struct bh_transport transport = {
        .unix_socket = !sent->tcp, .uid = sent->uid, .gid = sent->uid, .gids = { sent->uid }, .gid_count = 1
    };
    struct fixture_query query = { .count = 0 };
    struct bh_arena *arena = bh_arena_new(4 << 20);
    char bearer[120];
    struct bh_request request = {
        .method = sent->method,
        .path = sent->path,
        .body = sent->body ? sent->body : "",
        .body_length = sent->body ? strlen(sent->body) : 0,
        .content_type = sent->type,
        .idempotency_key = sent->key,
        .upgrade = sent->upgrade,
        .accept = sent->accept,
        .transport = &transport,
        .arena = arena,
        .query = fixture_query_find,
        .each_query = fixture_query_each,
        .server = &query,
    };
    struct bh_reply reply = { 0 };

    snprintf(bearer, sizeof bearer, "Bearer %.100s", sent->token ? sent->token : "");
    if (sent->token)
        request.authorization = bearer;
    fixture_split(sent->query, &query);
    bh_buf_init(&reply.body, 64 << 20);
    f->commanded = false;
    f->refusals = 0;
    memset(f->tried, 0, sizeof f->tried);
    bh_api_handle(f->api, &request, &reply);
    ret->status = reply.status;
    snprintf(ret->content_type, sizeof ret->content_type, "%s", reply.content_type);
    snprintf(ret->header, sizeof ret->header, "%s", reply.header_count ? reply.headers[0].value : "");
    if (reply.upgrade.run) {
        ret->status = 101;
        reply.upgrade.drop(reply.upgrade.self);
    }
    if (!reply.stream.read && !reply.upgrade.run)
        fixture_check_reply(sent, &reply);
    if (reply.stream.read)
        fixture_drain(&reply, ret, 4);
    else
        fixture_keep(&reply.body, ret);
    bh_buf_fini(&reply.body);
    bh_arena_free(arena);
    BH_ASSERT(f->held == 0);
}
