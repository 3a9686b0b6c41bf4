#ifndef BH_DAEMON_KEYS_FIXTURE_TEST_H
#define BH_DAEMON_KEYS_FIXTURE_TEST_H

/* A core whose people write canaries, for the tests of sealing, destroying and rotating.
 * Tests only. */

#include "base/time.h"
#include "daemon/fixture_test.h"

#define TENANTS(hold)                                                                      \
    "tenants:\n"                                                                           \
    "  - {name: acme, kind: organization" hold "}\n"                                       \
    "  - {name: acme/vision, kind: department}\n"                                          \
    "  - {name: other, kind: organization}\n"                                              \
    "skus:\n"                                                                              \
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"        \
    "principals:\n"                                                                        \
    "  - {name: alice, uid: 2001}\n"                                                       \
    "  - {name: carol, uid: 2003}\n"                                                       \
    "  - {name: dan, uid: 2004}\n"                                                         \
    "bindings:\n"                                                                          \
    "  - {role: developer, principal: alice, tenant: '*'}\n"                               \
    "  - {role: admin, principal: carol, tenant: '*'}\n"                                   \
    "  - {role: admin, principal: dan, tenant: 'acme'}\n"
#define SECOND "  - {role: admin, principal: dan, tenant: '*'}\n"

__attribute__((unused)) static const char two_admins[] = TENANTS("") SECOND;
__attribute__((unused)) static const char one_admin[] = TENANTS("");
__attribute__((unused)) static const char held[] = TENANTS(", legal_hold: true") SECOND;

__attribute__((unused)) static const char command_canary[] = "canary-command", name_canary[] = "canary-name";

/* A job whose program and name are canaries; it waits, for there is no GPU. */
static inline uint64_t
submit_keyed(struct fixture *f, const char *tenant, const char *key)
{
    const char *args[] = { command_canary };
    struct bh_job_spec spec = { .args = { args, 1 }, .tenant = tenant, .sku = "small",
                                .name = name_canary };
    struct bh_command command = { .op = BH_OP_JOB_SUBMIT, .caller = caller_named(f, "alice"),
                                  .spec = &spec };
    struct bh_buf text;

    assert_int_equal(bh_spec_check(&spec, &command.numbers, &f->err), BH_OK);
    bh_buf_init(&text, 1 << 16);
    bh_json_encode(&text, &bh_job_spec_fields, &spec);
    command.text = bh_buf_text(&text);
    command.text_length = text.length;
    command.caller.idempotency_key = key;
    if (fixture_run(f, &command) != BH_OK)
        fail_msg("%s", f->err.msg);
    bh_buf_fini(&text);
    return f->answer.job.v;
}

static inline uint64_t
submit_canary(struct fixture *f, const char *tenant)
{
    return submit_keyed(f, tenant, NULL);
}

static inline void
keys_fixture_cancel(struct fixture *f, uint64_t job)
{
    struct bh_command command = { .op = BH_OP_JOB_CANCEL, .caller = caller_named(f, "alice"),
                                  .job = { job } };

    assert_int_equal(fixture_run(f, &command), BH_OK);
}

static inline bh_rc
keys_fixture_shred(struct fixture *f, const char *who, struct bh_shred_request request)
{
    struct bh_command command = { .op = BH_OP_KEY_SHRED, .caller = caller_named(f, who),
                                  .shred = &request };

    if (!request.reason)
        request.reason = "canary-reason";
    return fixture_run(f, &command);
}

static inline const char *
this_month(struct fixture *f)
{
    static char text[32];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_time_put_utc(&out, bh_core_now(&f->core));
    text[7] = '\0';
    return text;
}

static inline bool
keys_fixture_read_row(void *self, const struct bh_job_row *row)
{
    struct bh_job_row *kept = self;
    static char name[64];

    *kept = *row;
    snprintf(name, sizeof name, "%s", row->name);
    kept->name = name;
    return true;
}

static inline struct bh_job_row
keys_fixture_row_of(struct fixture *f, uint64_t job)
{
    struct bh_job_row row = { 0 };

    assert_int_equal(f->core.store.ops->get_job(f->core.store.self, job, keys_fixture_read_row, &row, &f->err),
                     BH_OK);
    return row;
}

/* What the job was submitted as, or why that cannot be read. */
static inline const char *
spec_of(struct fixture *f, uint64_t job)
{
    struct bh_job_row row = keys_fixture_row_of(f, job);
    const char *text;

    return bh_keys_get_text(f->core.ring.keys, &row.spec, f->arena, &text, &f->err) == BH_OK
               ? text
               : f->err.msg;
}

/* Whether any file of the store holds the bytes. */
static inline bool
is_in_files(const struct fixture *f, const void *bytes, size_t length)
{
    static const char *const endings[] = { "", "-wal" };
    bool found = false;

    for (size_t i = 0; i < BH_COUNT(endings) && !found; i++) {
        struct bh_buf file;
        struct bh_err err;
        char path[160];

        snprintf(path, sizeof path, "%s/bulkhead.db%s", f->folder, endings[i]);
        bh_buf_init(&file, 64 << 20);
        found = bh_file_read(path, 64 << 20, &file, &err) == BH_OK
                && file.length > 0 && memmem(file.bytes, file.length, bytes, length);
        bh_buf_fini(&file);
    }
    return found;
}

static inline bool
keys_fixture_has_text(const struct fixture *f, const char *text)
{
    return is_in_files(f, text, strlen(text));
}

static inline bool
read_living(void *self, const struct bh_key_row *row)
{
    if (row->kind == BH_KEY_KIND_AUDIT && row->tenant_id && !row->shredded_ns)
        *(struct bh_key_row *)self = *row;
    return true;
}

static inline void
keys_fixture_must(const struct fixture *f, bh_rc rc)
{
    if (rc != BH_OK)
        fail_msg("%s: %s", bh_rc_name(rc), f->err.msg);
}

static inline void
reopen(struct fixture *f)
{
    close_core(f);
    keys_fixture_must(f, open_core(f));
}

struct seen {
    const char *verb;
    uint32_t count, leaks;       /* leaves of that verb that say ok; of all those with a canary */
    char leaf[2048];             /* the last */
};

static inline bool
read_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct seen *seen = self;
    char verb[64];

    (void)seq;
    snprintf(verb, sizeof verb, "\"verb\":\"%s\"", seen->verb);
    if (memmem(leaf, length, verb, strlen(verb)) && memmem(leaf, length, "\"res\":\"ok\"", 10)) {
        seen->count++;
        snprintf(seen->leaf, sizeof seen->leaf, "%.*s", (int)length, leaf);
    }
    seen->leaks += memmem(leaf, length, "canary", 6) != NULL;
    return true;
}

static inline struct seen
leaves(struct fixture *f, const char *verb)
{
    struct seen seen = { .verb = verb };

    keys_fixture_must(f, f->core.store.ops->list_records(f->core.store.self, 0, INT64_MAX, read_leaf, &seen,
                                            &f->err));
    return seen;
}

#endif
