/* The contract of ports/store.h:  store_contract BACK_END   (memory, sqlite) */
#include "ports/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/merkle.h"
#include "base/test.h"
#include "ports/crypto.h"
#include "store/memory.h"
#include "store/sqlite.h"

enum { ARENA = 1 << 20, MANY = 20000, TENANTS = 7, PRINCIPALS = 5 };

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

/* ---- back ends ---- */

struct fixture {
    struct bh_store store;
    struct bh_arena *arena;
    struct bh_err err;
    char folder[32];
};

static void
open_memory(struct fixture *f)
{
    bh_store_memory_open(crypto, &f->store);
}

static void
open_sqlite(struct fixture *f)
{
    char path[64];

    snprintf(path, sizeof path, "%s/store.db", f->folder);
    if (bh_store_sqlite_open(path, BH_STORE_WRITE, crypto, &f->store, &f->err) != BH_OK)
        fail_msg("%s", f->err.msg);
}

static const struct back_end {
    const char *name;
    void (*open)(struct fixture *f);
} back_ends[] = {
    { "memory", open_memory },
    { "sqlite", open_sqlite },
};

static const struct back_end *back_end;

static int
set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    memcpy(f->folder, "/tmp/bh-store-XXXXXX", 21);
    if (!mkdtemp(f->folder))
        return -1;
    f->arena = bh_arena_new(ARENA);
    back_end->open(f);
    return strcmp(f->store.ops->name, back_end->name);
}

static int
tear_down(void **state)
{
    static const char *const files[] = { "store.db", "store.db.lock", "store.db-wal",
                                         "store.db-shm" };
    struct fixture *f = *state;
    char path[64];

    f->store.ops->close(f->store.self);
    for (size_t i = 0; i < BH_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", f->folder, files[i]);
        unlink(path);
    }
    rmdir(f->folder);
    bh_arena_free(f->arena);
    free(f);
    return 0;
}

/* A call of the store with the fixture's error, such as CALL(f, last_record, &seq). */
#define CALL(f, slot, ...) ((f)->store.ops->slot((f)->store.self, __VA_ARGS__, &(f)->err))
#define MUST(f, slot, ...) must(f, CALL(f, slot, __VA_ARGS__))

static void
must(const struct fixture *f, bh_rc rc)
{
    if (rc != BH_OK)
        fail_msg("%s: %s", bh_rc_name(rc), f->err.msg);
}

static void
begin(struct fixture *f)
{
    must(f, f->store.ops->begin(f->store.self, &f->err));
}

static void
commit(struct fixture *f)
{
    must(f, f->store.ops->commit(f->store.self, &f->err));
}

/* ---- transactions ---- */

static const char *
meta(struct fixture *f, const char *key)
{
    const char *value;
    bh_rc rc = CALL(f, get_meta, key, f->arena, &value);

    if (rc == BH_NOT_FOUND)
        return "(none)";
    must(f, rc);
    return value;
}

static void
shows_only_what_was_committed(void **state)
{
    struct fixture *f = *state;

    BH_CHECK_STR("at first", meta(f, "boot"), "(none)");
    begin(f);
    MUST(f, put_meta, "boot", "1");
    BH_CHECK_STR("before commit", meta(f, "boot"), "(none)");
    commit(f);
    BH_CHECK_STR("after commit", meta(f, "boot"), "1");
    begin(f);
    MUST(f, put_meta, "boot", "2");
    MUST(f, put_meta, "site", "x");
    f->store.ops->rollback(f->store.self);
    BH_CHECK_STR("rolled back", meta(f, "boot"), "1");
    BH_CHECK_STR("rolled back", meta(f, "site"), "(none)");
    f->store.ops->rollback(f->store.self); /* of nothing */
    begin(f);
    commit(f); /* of nothing */
    begin(f);
    MUST(f, put_meta, "boot", "3");
    MUST(f, put_meta, "boot", "4");
    commit(f);
    BH_CHECK_STR("last of two", meta(f, "boot"), "4");
    BH_CHECK_DONE();
}

/* After one refused write nothing of its transaction is kept, whatever else is put. */
static void
keeps_all_or_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t seq;

    begin(f);
    MUST(f, put_record, 0, "{}", 2);
    commit(f);
    begin(f);
    MUST(f, put_meta, "a", "1");
    BH_CHECK_EQ("same number", CALL(f, put_record, 0, "[]", 2), BH_IO);
    BH_CHECK_EQ("later write", CALL(f, put_meta, "b", "1"), BH_IO);
    BH_CHECK_EQ("commit", f->store.ops->commit(f->store.self, &f->err), BH_IO);
    BH_CHECK_STR("before the failure", meta(f, "a"), "(none)");
    BH_CHECK_STR("after the failure", meta(f, "b"), "(none)");
    begin(f);
    MUST(f, put_record, 1, "{}", 2);
    BH_CHECK_EQ("twice in one", CALL(f, put_record, 1, "{}", 2), BH_IO);
    f->store.ops->rollback(f->store.self);
    MUST(f, last_record, &seq);
    BH_CHECK_EQ("last", seq, 0);
    begin(f);
    MUST(f, put_meta, "a", "2");
    commit(f);
    BH_CHECK_STR("usable again", meta(f, "a"), "2");
    BH_CHECK_DONE();
}

/* ---- records ---- */

struct seen {
    uint64_t first, count, most;
    struct fixture *f;
    bool wrong;
};

static size_t
make_leaf(uint64_t seq, char leaf[64])
{
    return (size_t)snprintf(leaf, 64, "{\"seq\":%llu,\"z\":\"\xc3\xbc'%%\"}",
                            (unsigned long long)seq);
}

static bool
see_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct seen *seen = self;
    char want[64];

    seen->wrong |= seq != seen->first + seen->count || length != make_leaf(seq, want)
                   || memcmp(leaf, want, length) != 0;
    return ++seen->count < seen->most;
}

static bool
see_hash(void *self, uint64_t seq, const struct bh_digest *hash)
{
    struct seen *seen = self;
    uint8_t want[32];
    char leaf[64];

    bh_merkle_leaf(crypto, leaf, make_leaf(seq, leaf), want);
    seen->wrong |= seq != seen->first + seen->count || memcmp(hash->bytes, want, 32) != 0;
    return ++seen->count < seen->most;
}

static void
lists_records(void **state)
{
    static const struct {
        const char *name;
        uint64_t first, last, most, want;
    } rows[] = {
        { "all", 0, UINT64_MAX, UINT64_MAX, 300 },
        { "stopped", 0, UINT64_MAX, 7, 7 },
        { "middle", 100, 199, UINT64_MAX, 100 },
        { "one", 299, 299, UINT64_MAX, 1 },
        { "over the end", 290, 400, UINT64_MAX, 10 },
        { "behind the end", 300, 400, UINT64_MAX, 0 },
        { "backwards", 20, 10, UINT64_MAX, 0 },
        { "far away", UINT64_MAX, UINT64_MAX, UINT64_MAX, 0 },
    };
    struct fixture *f = *state;
    char leaf[64];
    uint64_t seq = 99;

    BH_CHECK_EQ("empty", CALL(f, last_record, &seq), BH_NOT_FOUND);
    BH_CHECK_EQ("untouched", seq, 99);
    for (uint64_t i = 0; i < 300; i++) {
        if (i % 100 == 0)
            begin(f);
        MUST(f, put_record, i, leaf, make_leaf(i, leaf));
        if (i % 100 == 99)
            commit(f);
    }
    MUST(f, last_record, &seq);
    BH_CHECK_EQ("last", seq, 299);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct seen seen = { .first = rows[i].first, .most = rows[i].most };

        MUST(f, list_records, rows[i].first, rows[i].last, see_record, &seen);
        BH_CHECK_EQ(rows[i].name, seen.count, rows[i].want);
        BH_CHECK(rows[i].name, !seen.wrong);
        seen = (struct seen){ .first = rows[i].first, .most = rows[i].most };
        MUST(f, list_hashes, rows[i].first, see_hash, &seen);
        BH_CHECK(rows[i].name, rows[i].last < 299 || seen.count == rows[i].want);
        BH_CHECK(rows[i].name, !seen.wrong);
    }
    BH_CHECK_DONE();
}

/* ---- texts and values ---- */

static void
keeps_texts(void **state)
{
    static const char *const texts[] = { "", "plain", "it's \"quoted\"; DROP TABLE jobs;--",
                                         "\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x84 \n\t%s" };
    struct fixture *f = *state;
    struct bh_digest unknown = { { 9 } };
    const char *text = "untouched";
    BH_AUTO(bh_arena_free) struct bh_arena *small = bh_arena_new(100);
    char large[4096];

    memset(large, 'x', sizeof large);
    begin(f);
    for (uint8_t i = 0; i < BH_COUNT(texts); i++) {
        struct bh_digest digest = { { i, 0, 1 } };

        MUST(f, put_text, &digest, texts[i], strlen(texts[i]));
        MUST(f, put_text, &digest, texts[i], strlen(texts[i]));
        MUST(f, put_meta, texts[i], texts[i]);
    }
    MUST(f, put_text, &(struct bh_digest){ { 77 } }, large, sizeof large);
    commit(f);
    begin(f);
    MUST(f, put_text, &(struct bh_digest){ { 0, 0, 1 } }, "", 0); /* known already */
    commit(f);
    BH_CHECK_EQ("unknown", CALL(f, get_text, &unknown, f->arena, &text), BH_NOT_FOUND);
    BH_CHECK_EQ("no room", CALL(f, get_text, &(struct bh_digest){ { 77 } }, small, &text), BH_FULL);
    BH_CHECK_STR("failed", text, "untouched");
    for (uint8_t i = 0; i < BH_COUNT(texts); i++) {
        struct bh_digest digest = { { i, 0, 1 } };

        MUST(f, get_text, &digest, f->arena, &text);
        BH_CHECK_STR("text", text, texts[i]);
        BH_CHECK_STR("value", meta(f, texts[i]), texts[i]);
    }
    MUST(f, get_text, &(struct bh_digest){ { 77 } }, f->arena, &text);
    BH_CHECK_EQ("large", strlen(text), sizeof large);
    BH_CHECK_DONE();
}

/* ---- names, tokens, checkpoints, replies ---- */

static bool
print_name(void *self, const struct bh_name_row *row)
{
    bh_buf_printf(self, "%u.%u %s%s;", (unsigned)row->kind, row->id, row->name, row->gone ? " gone" : "");
    return true;
}

static bool
print_token(void *self, const struct bh_token_row *row)
{
    bh_buf_printf(self, "%s %02x%02x %u \"%s\" \"%s\" %llu %llu %llu%s;", row->id,
                  row->secret.bytes[0], row->secret.bytes[31], row->principal_id, row->scopes,
                  row->note, (unsigned long long)row->created_ns,
                  (unsigned long long)row->expires_ns, (unsigned long long)row->last_used_ns,
                  row->revoked ? " revoked" : "");
    return true;
}

static bool
print_checkpoint(void *self, const struct bh_checkpoint_row *row)
{
    bh_buf_printf(self, "%llu %s;", (unsigned long long)row->size, row->note);
    return true;
}

static bool
print_and_stop(void *self, const struct bh_name_row *row)
{
    print_name(self, row);
    return false;
}

static void
keeps_names(void **state)
{
    struct fixture *f = *state;
    const struct bh_name_row rows[] = {
        { BH_NAME_NODE, 1, "n1", false },   { BH_NAME_TENANT, 2, "b", false },
        { BH_NAME_TENANT, 1, "a", false },  { BH_NAME_GPU, 4294967295u, "GPU-1", false },
        { BH_NAME_TENANT, 2, "b'2", true },
    };
    char text[256];
    struct bh_buf out;

    begin(f);
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        MUST(f, put_name, &rows[i]);
    commit(f);
    bh_buf_init_fixed(&out, text, sizeof text);
    MUST(f, list_names, print_name, &out);
    BH_CHECK_STR("all", bh_buf_text(&out), "0.1 a;0.2 b'2 gone;3.1 n1;4.4294967295 GPU-1;");
    bh_buf_clear(&out);
    MUST(f, list_names, print_and_stop, &out);
    BH_CHECK_STR("first", bh_buf_text(&out), "0.1 a;");
    BH_CHECK_DONE();
}

static void
keeps_tokens(void **state)
{
    struct fixture *f = *state;
    struct bh_token_row token = { "tok-b", { { 0xab, [31] = 0xcd } }, 3, "jobs:read", "ci \"x\"",
                                  1, UINT64_C(1795170000000000001), 0, false };
    char text[256];
    struct bh_buf out;

    begin(f);
    MUST(f, put_token, &token);
    token.revoked = true;
    token.last_used_ns = 5;
    MUST(f, put_token, &token);
    memcpy(token.id, "tok-a", 6);
    token.scopes = token.note = NULL;
    MUST(f, put_token, &token);
    commit(f);
    bh_buf_init_fixed(&out, text, sizeof text);
    MUST(f, list_tokens, print_token, &out);
    BH_CHECK_STR("all", bh_buf_text(&out),
                 "tok-a abcd 3 \"\" \"\" 1 1795170000000000001 5 revoked;"
                 "tok-b abcd 3 \"jobs:read\" \"ci \"x\"\" 1 1795170000000000001 5 revoked;");
    BH_CHECK_DONE();
}

static void
keeps_checkpoints(void **state)
{
    struct fixture *f = *state;
    const struct bh_checkpoint_row rows[] = { { 20, "twenty" }, { 0, "zero" }, { 7, "seven" } };
    char text[256];
    struct bh_buf out;

    begin(f);
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        MUST(f, put_checkpoint, &rows[i]);
    commit(f);
    bh_buf_init_fixed(&out, text, sizeof text);
    MUST(f, list_checkpoints, 0, print_checkpoint, &out);
    BH_CHECK_STR("all", bh_buf_text(&out), "0 zero;7 seven;20 twenty;");
    bh_buf_clear(&out);
    MUST(f, list_checkpoints, 7, print_checkpoint, &out);
    BH_CHECK_STR("from 7", bh_buf_text(&out), "7 seven;20 twenty;");
    bh_buf_clear(&out);
    MUST(f, list_checkpoints, 21, print_checkpoint, &out);
    BH_CHECK_STR("from 21", bh_buf_text(&out), "");
    BH_CHECK_DONE();
}

static void
keeps_replies(void **state)
{
    struct fixture *f = *state;
    const struct bh_reply_row reply = { 3, "key-1", { { 1, [31] = 2 } }, 201, "{\"job\":7}", 99 };
    struct bh_reply_row read = { .status = 5 };

    begin(f);
    MUST(f, put_reply, &reply);
    commit(f);
    BH_CHECK_EQ("other principal", CALL(f, get_reply, 4, "key-1", f->arena, &read), BH_NOT_FOUND);
    BH_CHECK_EQ("other key", CALL(f, get_reply, 3, "key-2", f->arena, &read), BH_NOT_FOUND);
    BH_CHECK_EQ("untouched", read.status, 5);
    MUST(f, get_reply, 3, "key-1", f->arena, &read);
    BH_CHECK_EQ("principal", read.principal_id, 3);
    BH_CHECK_STR("key", read.key, "key-1");
    BH_CHECK("request", memcmp(&read.request, &reply.request, sizeof read.request) == 0);
    BH_CHECK_EQ("status", read.status, 201);
    BH_CHECK_STR("body", read.body, "{\"job\":7}");
    BH_CHECK_EQ("at", read.at_ns, 99);
    BH_CHECK_DONE();
}

/* ---- jobs ---- */

static struct bh_job_row
job_row(uint64_t job)
{
    static const char *const states[] = { "pending", "running", "ended", "held" };
    bool ended = job % 4 == 2;

    return (struct bh_job_row){
        .job = job, .tenant_id = (uint32_t)(job * job % TENANTS),
        .principal_id = 1 + (uint32_t)(job / 3 % PRINCIPALS), .count = 1, .name = "n",
        .tenant = "t", .principal = "p", .sku = "small", .kind = "batch",
        .state = states[job % 4], .submitted_ns = job, .ended_ns = ended ? job + 5 : 0,
        .exit_status = ended ? 0 : -1,
    };
}

static void
put_many(struct fixture *f, uint64_t count)
{
    begin(f);
    /* Not in order of their numbers. */
    for (uint64_t i = 0; i < count; i++) {
        struct bh_job_row row = job_row(1 + i * 7919 % count);

        MUST(f, put_job, &row);
    }
    commit(f);
}

static bool
check_whole_job(void *self, const struct bh_job_row *row)
{
    const struct bh_job_row *want = self;

    BH_CHECK("job", row->job == want->job && row->lease == want->lease);
    BH_CHECK_EQ("tenant_id", row->tenant_id, want->tenant_id);
    BH_CHECK_EQ("principal_id", row->principal_id, want->principal_id);
    BH_CHECK_EQ("count", row->count, want->count);
    BH_CHECK_EQ("priority", row->priority, want->priority);
    BH_CHECK_EQ("restarts", row->restarts, want->restarts);
    BH_CHECK_STR("name", row->name, want->name);
    BH_CHECK_STR("tenant", row->tenant, want->tenant);
    BH_CHECK_STR("principal", row->principal, want->principal);
    BH_CHECK_STR("sku", row->sku, want->sku);
    BH_CHECK_STR("kind", row->kind, want->kind);
    BH_CHECK_STR("state", row->state, want->state);
    BH_CHECK_STR("contract", row->contract, want->contract);
    BH_CHECK_STR("reason", row->reason, "");
    BH_CHECK_STR("node", row->node, want->node);
    BH_CHECK_STR("pieces", row->pieces, want->pieces);
    BH_CHECK_STR("grade", row->grade, want->grade);
    BH_CHECK("submitted", row->submitted_ns == want->submitted_ns);
    BH_CHECK("started", row->started_ns == want->started_ns);
    BH_CHECK("ended", row->ended_ns == want->ended_ns);
    BH_CHECK("limit", row->time_limit_ns == want->time_limit_ns);
    BH_CHECK_EQ("exit", row->exit_status, want->exit_status);
    BH_CHECK("spec", memcmp(&row->spec, &want->spec, sizeof row->spec) == 0);
    return true;
}

static void
keeps_a_whole_job(void **state)
{
    struct fixture *f = *state;
    struct bh_job_row row = {
        .job = (UINT64_C(1) << 62) + 1, .lease = UINT64_MAX, .tenant_id = 4294967295u,
        .principal_id = 3, .count = 16, .priority = 2, .restarts = 1,
        .name = "\xc3\xbc'\";--", .tenant = "a/b", .principal = "ada", .sku = "small",
        .kind = "batch", .state = "running", .contract = "preemptible", .reason = NULL,
        .node = "n1", .pieces = "GPU-1:1g.10gb@0", .grade = "C",
        .submitted_ns = UINT64_C(1795170000000000001), .started_ns = 2, .ended_ns = UINT64_MAX,
        .time_limit_ns = 4, .exit_status = -1, .spec = { { 5, [31] = 6 } },
    };

    begin(f);
    MUST(f, put_job, &row);
    commit(f);
    MUST(f, get_job, row.job, check_whole_job, &row);
    row.state = "ended";
    row.exit_status = 137;
    begin(f);
    MUST(f, put_job, &row);
    commit(f);
    MUST(f, get_job, row.job, check_whole_job, &row);
    BH_CHECK_EQ("unknown", CALL(f, get_job, 1, check_whole_job, &row), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

struct job_page {
    uint64_t last;
    uint32_t count;
    bool wrong;
    const struct bh_job_filter *filter;
};

/* What the filter says, said again in the plainest way. */
static bool
matches(const struct bh_job_filter *filter, uint64_t job)
{
    struct bh_job_row row = job_row(job);
    bool tenant = !filter->tenants;

    for (uint32_t i = 0; i < filter->tenant_count; i++)
        tenant |= filter->tenants[i] == row.tenant_id;
    return tenant && (!filter->principal_id || filter->principal_id == row.principal_id)
           && (!filter->active_only || row.ended_ns == 0)
           && (!filter->state || strcmp(filter->state, row.state) == 0);
}

static bool
see_job(void *self, const struct bh_job_row *row)
{
    struct job_page *page = self;

    page->wrong |= row->job <= page->last || !matches(page->filter, row->job);
    page->last = row->job;
    page->count++;
    return true;
}

/* Every filter, in pages: each matching job comes exactly once, in order. */
static void
lists_jobs(void **state)
{
    static const uint32_t some[] = { 4, 1, 4 }, none[] = { 77 };
    static const struct {
        const char *name;
        struct bh_job_filter filter;
    } rows[] = {
        { "all", { .limit = 1000 } },
        { "all at once", { .limit = UINT32_MAX } },
        { "odd pages", { .limit = 777 } },
        { "large pages", { .limit = 5000 } },
        { "active", { .active_only = true, .limit = 1000 } },
        { "state", { .state = "held", .limit = 1000 } },
        { "ended", { .state = "ended", .limit = 1000 } },
        { "active but ended", { .state = "ended", .active_only = true, .limit = 1000 } },
        { "no such state", { .state = "it's", .limit = 1000 } },
        { "principal", { .principal_id = 2, .limit = 1000 } },
        { "principal's running", { .principal_id = 2, .state = "running", .limit = 100 } },
        { "no such principal", { .principal_id = 99, .limit = 1000 } },
        { "tenants", { .tenants = some, .tenant_count = 3, .limit = 1000 } },
        { "tenants' active", { .tenants = some, .tenant_count = 3, .active_only = true, .limit = 99 } },
        { "tenants and principal",
          { .tenants = some, .tenant_count = 3, .principal_id = 5, .limit = 100 } },
        { "everything",
          { .tenants = some, .tenant_count = 3, .principal_id = 5, .active_only = true,
            .state = "pending", .limit = 10 } },
        { "no such tenant", { .tenants = none, .tenant_count = 1, .limit = 1000 } },
        { "no tenant", { .tenants = none, .tenant_count = 0, .limit = 1000 } },
    };
    struct fixture *f = *state;

    put_many(f, MANY);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_job_filter filter = rows[i].filter;
        struct job_page page = { .filter = &filter };
        uint32_t before, want = 0;
        uint64_t count = 0;

        for (uint64_t job = 1; job <= MANY; job++)
            want += matches(&filter, job);
        MUST(f, count_jobs, &filter, &count);
        BH_CHECK_EQ(rows[i].name, count, want);
        do {
            before = page.count;
            MUST(f, list_jobs, &filter, see_job, &page);
            BH_CHECK(rows[i].name, page.count - before <= filter.limit);
            filter.after = page.last;
        } while (page.count > before);
        BH_CHECK_EQ(rows[i].name, page.count, want);
        BH_CHECK(rows[i].name, !page.wrong);
        MUST(f, count_jobs, &filter, &count);
        BH_CHECK_EQ("none after the last", count, 0);
    }
    BH_CHECK_DONE();
}

static bool
stop_at_once(void *self, const struct bh_job_row *row)
{
    (void)row;
    ++*(uint32_t *)self;
    return false;
}

static void
pages_of_100_unless_told(void **state)
{
    struct fixture *f = *state;
    struct bh_job_filter filter = { 0 };
    struct job_page page = { .filter = &filter };
    uint32_t calls = 0;

    put_many(f, 250);
    MUST(f, list_jobs, &filter, see_job, &page);
    BH_CHECK_EQ("default", page.count, 100);
    MUST(f, list_jobs, &filter, stop_at_once, &calls);
    BH_CHECK_EQ("stopped", calls, 1);
    filter.after = UINT64_MAX;
    MUST(f, list_jobs, &filter, stop_at_once, &calls);
    BH_CHECK_EQ("after all", calls, 1);
    BH_CHECK_DONE();
}

/* ---- threads ---- */

struct reader {
    struct fixture *f;
    pthread_barrier_t *start;
    atomic_bool *stop;
    uint64_t reads, wrong;
};

static bool
sum_job(void *self, const struct bh_job_row *row)
{
    *(uint64_t *)self += row->count;
    return true;
}

/* Each transaction moves counts between two jobs, so every view has the same sum and as
 * many records as the value says. */
static void *
read_on(void *self)
{
    struct reader *reader = self;
    struct bh_store *store = &reader->f->store;
    const struct bh_job_filter filter = { 0 };
    struct bh_err err;

    pthread_barrier_wait(reader->start);
    do {
        uint64_t sum = 0, seq;

        if (store->ops->list_jobs(store->self, &filter, sum_job, &sum, &err) != BH_OK
            || store->ops->last_record(store->self, &seq, &err) != BH_OK || sum != 1000)
            reader->wrong++;
        reader->reads++;
    } while (!atomic_load(reader->stop));
    return NULL;
}

static void
put_pair(struct fixture *f, uint64_t seq)
{
    struct bh_job_row left = job_row(1), right = job_row(2);
    char leaf[64];

    left.count = (uint32_t)(seq % 1000);
    right.count = 1000 - left.count;
    begin(f);
    MUST(f, put_record, seq, leaf, make_leaf(seq, leaf));
    MUST(f, put_job, &left);
    MUST(f, put_job, &right);
    commit(f);
}

static void
reads_beside_the_writer(void **state)
{
    enum { READERS = 12, WRITES = 200 }; /* more than there are connections */
    struct fixture *f = *state;
    struct reader readers[READERS];
    pthread_t threads[READERS];
    pthread_barrier_t start;
    atomic_bool stop = false;

    put_pair(f, 0);
    pthread_barrier_init(&start, NULL, READERS + 1);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){ .f = f, .start = &start, .stop = &stop };
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
    }
    pthread_barrier_wait(&start);
    for (uint64_t seq = 1; seq <= WRITES; seq++)
        put_pair(f, seq);
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        BH_CHECK_EQ("views torn", readers[i].wrong, 0);
        BH_CHECK("read at all", readers[i].reads > 0);
    }
    pthread_barrier_destroy(&start);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(shows_only_what_was_committed),
        TEST(keeps_all_or_nothing),
        TEST(lists_records),
        TEST(keeps_texts),
        TEST(keeps_names),
        TEST(keeps_tokens),
        TEST(keeps_checkpoints),
        TEST(keeps_replies),
        TEST(keeps_a_whole_job),
        TEST(lists_jobs),
        TEST(pages_of_100_unless_told),
        TEST(reads_beside_the_writer),
    };

    for (size_t i = 0; argc == 2 && i < BH_COUNT(back_ends); i++)
        if (strcmp(argv[1], back_ends[i].name) == 0)
            back_end = &back_ends[i];
    if (!back_end) {
        fprintf(stderr, "usage: store_contract memory|sqlite\n");
        return 2;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
