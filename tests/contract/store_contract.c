/* The contract of ports/store.h:  store_contract BACK_END   (memory, sqlite) */
#include "ports/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/merkle.h"
#include "base/test.h"
#include "ports/crypto.h"
#include "tests/fakes/store.h"
#include "store/sqlite.h"
#include "tests/contract/store_contract.h"

enum { ARENA = 1 << 20 };

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

/* ---- back ends ---- */

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
    static const char *const files[] = { "store.db", "store.db.lock", "store.db-wal", "store.db-shm" };
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
    MUST(f, put_record, 0, &(struct bh_slice){ "{}", 2 }, NULL);
    commit(f);
    begin(f);
    MUST(f, put_meta, "a", "1");
    BH_CHECK_EQ("same number", CALL(f, put_record, 0, &(struct bh_slice){ "[]", 2 }, NULL), BH_IO);
    BH_CHECK_EQ("later write", CALL(f, put_meta, "b", "1"), BH_IO);
    BH_CHECK_EQ("commit", f->store.ops->commit(f->store.self, &f->err), BH_IO);
    BH_CHECK_STR("before the failure", meta(f, "a"), "(none)");
    BH_CHECK_STR("after the failure", meta(f, "b"), "(none)");
    begin(f);
    MUST(f, put_record, 1, &(struct bh_slice){ "{}", 2 }, NULL);
    BH_CHECK_EQ("twice in one", CALL(f, put_record, 1, &(struct bh_slice){ "{}", 2 }, NULL), BH_IO);
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
    return (size_t)snprintf(leaf, 64, "{\"seq\":%llu,\"z\":\"\xc3\xbc'%%\"}", (unsigned long long)seq);
}

static bool
see_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct seen *seen = self;
    char want[64];

    seen->wrong |=
        seq != seen->first + seen->count || length != make_leaf(seq, want) || memcmp(leaf, want, length) != 0;
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
        { "all", 0, UINT64_MAX, UINT64_MAX, 300 },    { "stopped", 0, UINT64_MAX, 7, 7 },
        { "middle", 100, 199, UINT64_MAX, 100 },      { "one", 299, 299, UINT64_MAX, 1 },
        { "over the end", 290, 400, UINT64_MAX, 10 }, { "behind the end", 300, 400, UINT64_MAX, 0 },
        { "backwards", 20, 10, UINT64_MAX, 0 },       { "far away", UINT64_MAX, UINT64_MAX, UINT64_MAX, 0 },
    };
    struct fixture *f = *state;
    uint8_t hash[32], want[32];
    char leaf[64];
    uint64_t seq = 99, count = 99;

    MUST(f, count_rows, BH_STORE_RECORDS, &count);
    BH_CHECK_EQ("none", count, 0);
    BH_CHECK_EQ("empty", CALL(f, last_record, &seq), BH_NOT_FOUND);
    BH_CHECK_EQ("untouched", seq, 99);
    for (uint64_t i = 0; i < 300; i++) {
        if (i % 100 == 0)
            begin(f);
        MUST(f, put_record, i, &(struct bh_slice){ leaf, make_leaf(i, leaf) }, hash);
        bh_merkle_leaf(crypto, leaf, strlen(leaf), want);
        BH_CHECK("hash", memcmp(hash, want, sizeof hash) == 0);
        if (i % 100 == 99)
            commit(f);
    }
    MUST(f, last_record, &seq);
    BH_CHECK_EQ("last", seq, 299);
    MUST(f, count_rows, BH_STORE_RECORDS, &count);
    BH_CHECK_EQ("count", count, 300);
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

/* Pruned: what is left of a record is its hash. */
static void
prunes_records(void **state)
{
    static const struct {
        const char *name;
        uint64_t first, last, want_first, want;
    } rows[] = {
        { "all that are left", 0, UINT64_MAX, 6, 4 },
        { "pruned ones", 0, 5, 0, 0 },
        { "from within", 4, 7, 6, 2 },
        { "behind them", 7, 9, 7, 3 },
    };
    struct fixture *f = *state;
    struct seen seen = { .most = UINT64_MAX };
    uint64_t count = 0;
    char leaf[64];

    begin(f);
    for (uint64_t i = 0; i < 10; i++)
        MUST(f, put_record, i, &(struct bh_slice){ leaf, make_leaf(i, leaf) }, NULL);
    commit(f);
    begin(f);
    MUST(f, prune_records, 0, 8);
    f->store.ops->rollback(f->store.self);
    MUST(f, list_records, 0, UINT64_MAX, see_record, &seen);
    BH_CHECK_EQ("taken back", seen.count, 10);
    begin(f);
    MUST(f, prune_records, 0, 3);
    MUST(f, prune_records, 4, 5);
    commit(f);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        seen = (struct seen){ .first = rows[i].want_first, .most = UINT64_MAX };
        MUST(f, list_records, rows[i].first, rows[i].last, see_record, &seen);
        BH_CHECK_EQ(rows[i].name, seen.count, rows[i].want);
        BH_CHECK(rows[i].name, !seen.wrong);
    }
    seen = (struct seen){ .most = UINT64_MAX };
    MUST(f, list_hashes, 0, see_hash, &seen);
    BH_CHECK_EQ("hashes", seen.count, 10);
    MUST(f, count_rows, BH_STORE_RECORDS, &count);
    BH_CHECK_EQ("rows", count, 10);
    BH_CHECK("are what they were", !seen.wrong);
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

        MUST(f, put_text, &(struct bh_text_row){ digest, 0, { texts[i], strlen(texts[i]) } });
        MUST(f, put_text, &(struct bh_text_row){ digest, 0, { texts[i], strlen(texts[i]) } });
        MUST(f, put_meta, texts[i], texts[i]);
    }
    MUST(f, put_text, &(struct bh_text_row){ { { 77 } }, 0, { large, sizeof large } });
    commit(f);
    begin(f);
    MUST(f, put_text, &(struct bh_text_row){ { { 0, 0, 1 } }, 0, { "", 0 } }); /* known already */
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
    begin(f);
    MUST(f, drop_text, &(struct bh_digest){ { 77 } });
    MUST(f, drop_text, &unknown);
    MUST(f, get_text, &(struct bh_digest){ { 77 } }, f->arena, &text); /* until the commit */
    commit(f);
    BH_CHECK_EQ("dropped", CALL(f, get_text, &(struct bh_digest){ { 77 } }, f->arena, &text), BH_NOT_FOUND);
    begin(f);
    MUST(f, put_text, &(struct bh_text_row){ { { 77 } }, 0, { "again", 5 } });
    commit(f);
    MUST(f, get_text, &(struct bh_digest){ { 77 } }, f->arena, &text);
    BH_CHECK_STR("again", text, "again");
    BH_CHECK_DONE();
}

static bool
print_text(void *self, uint64_t number, const struct bh_digest *digest, const char *text, size_t length)
{
    bh_buf_printf(self, "%llu %02x %.*s;", (unsigned long long)number, digest->bytes[0], (int)length, text);
    return length < 3;
}

static void
lists_texts(void **state)
{
    struct fixture *f = *state;
    const struct bh_digest first = { { 1 } }, second = { { 2 } }, third = { { 3 } };
    char text[256];
    struct bh_buf out;

    begin(f);
    MUST(f, put_text, &(struct bh_text_row){ first, 0, { "a", 1 } });
    MUST(f, put_text, &(struct bh_text_row){ second, 0, { "bb", 2 } });
    MUST(f, put_text, &(struct bh_text_row){ third, 0, { "ccc", 3 } });
    commit(f);
    bh_buf_init_fixed(&out, text, sizeof text);
    MUST(f, list_texts, 0, print_text, &out);
    BH_CHECK_STR("all", bh_buf_text(&out), "1 01 a;2 02 bb;3 03 ccc;");
    bh_buf_clear(&out);
    MUST(f, list_texts, 2, print_text, &out);
    BH_CHECK_STR("the last", bh_buf_text(&out), "3 03 ccc;");
    BH_CHECK_DONE();
}

/* ---- names, tokens, checkpoints, replies ---- */

static bool
print_name(void *self, const struct bh_name_row *row)
{
    bh_buf_printf(self, "%u.%u %s%s %02x%02x %llu;", (unsigned)row->kind, row->id, row->name,
                  row->gone ? " gone" : "", row->key.bytes[0], row->key.bytes[31],
                  (unsigned long long)row->record);
    return true;
}

static bool
print_token(void *self, const struct bh_token_row *row)
{
    bh_buf_printf(self, "%s %02x%02x %u \"%s\" \"%s\" %llu %llu %llu%s;", row->id, row->secret.bytes[0],
                  row->secret.bytes[31], row->principal_id, row->scopes, row->note,
                  (unsigned long long)row->created_ns, (unsigned long long)row->expires_ns,
                  (unsigned long long)row->last_used_ns, row->revoked ? " revoked" : "");
    return true;
}

static bool
print_token_id(void *self, const struct bh_token_row *row)
{
    bh_buf_printf(self, "%s;", row->id);
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
        { BH_NAME_NODE, 1, "n1", false, { { 0 } }, 0 },
        { BH_NAME_TENANT, 2, "b", false, { { 7 } }, 1 },
        { BH_NAME_TENANT, 1, "a", false, { { 1, [31] = 2 } }, INT64_MAX },
        { BH_NAME_GPU, 4294967295u, "GPU-1", false, { { 0 } }, 0 },
        { BH_NAME_TENANT, 2, "b'2", true, { { 8 } }, 3 },
    };
    char text[512];
    struct bh_buf out;

    begin(f);
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        MUST(f, put_name, &rows[i]);
    commit(f);
    bh_buf_init_fixed(&out, text, sizeof text);
    MUST(f, list_names, print_name, &out);
    BH_CHECK_STR("all", bh_buf_text(&out),
                 "0.1 a 0102 9223372036854775807;0.2 b'2 gone 0800 3;3.1 n1 0000 0;"
                 "4.4294967295 GPU-1 0000 0;");
    bh_buf_clear(&out);
    MUST(f, list_names, print_and_stop, &out);
    BH_CHECK_STR("first", bh_buf_text(&out), "0.1 a 0102 9223372036854775807;");
    BH_CHECK_DONE();
}

static void
finds_tokens(struct fixture *f)
{
    static const struct {
        const char *name;
        struct bh_token_filter filter;
        const char *found;
    } cases[] = {
        { "one", { .id = "tok-b" }, "tok-b;" },
        { "none of that name", { .id = "tok" }, "" },
        { "of a principal", { .principal_id = 3 }, "tok-a;tok-b;" },
        { "of another", { .principal_id = 4 }, "" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char text[64];
        struct bh_buf out;

        bh_buf_init_fixed(&out, text, sizeof text);
        MUST(f, list_tokens, &cases[i].filter, print_token_id, &out);
        BH_CHECK_STR(cases[i].name, bh_buf_text(&out), cases[i].found);
    }
}

static void
keeps_tokens(void **state)
{
    struct fixture *f = *state;
    struct bh_token_row token = { "tok-b", { { 0xab, [31] = 0xcd } },     3, "jobs:read", "ci \"x\"",
                                  1,       UINT64_C(1795170000000000001), 0, false };
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
    MUST(f, list_tokens, &(struct bh_token_filter){ 0 }, print_token, &out);
    BH_CHECK_STR("all", bh_buf_text(&out),
                 "tok-a abcd 3 \"\" \"\" 1 1795170000000000001 5 revoked;"
                 "tok-b abcd 3 \"jobs:read\" \"ci \"x\"\" 1 1795170000000000001 5 revoked;");
    finds_tokens(f);
    begin(f);
    MUST(f, drop_token, "tok-a");
    MUST(f, drop_token, "tok-none");
    commit(f);
    bh_buf_init_fixed(&out, text, sizeof text);
    MUST(f, list_tokens, &(struct bh_token_filter){ 0 }, print_token_id, &out);
    BH_CHECK("one is forgotten", !strstr(bh_buf_text(&out), "tok-a") && strstr(bh_buf_text(&out), "tok-b"));
    BH_CHECK_DONE();
}

static bool
print_document(void *self, const struct bh_document_row *row)
{
    bh_buf_printf(self, "%u %s v%llu of %u %s;", (unsigned)row->kind, row->key,
                  (unsigned long long)row->version, row->principal_id, row->value);
    return true;
}

static void
keeps_documents(void **state)
{
    struct fixture *f = *state;
    /* clang-format off */
    const struct bh_document_row rows[] = {
        { BH_DOCUMENT_SESSION, "s2", 1, 7, "{}" }, { BH_DOCUMENT_SESSION, "s1", 1, 8, "{\"a\":1}" },
        { BH_DOCUMENT_ACCOUNT, "s1", 1, 7, "x" },  { BH_DOCUMENT_SESSION, "s1", 2, 8, "new" },
        { BH_DOCUMENT_PASSKEY, "p", 1, 7, "gone" }, { BH_DOCUMENT_PASSKEY, "p", 2, 7, NULL },
    };
    /* clang-format on */
    struct bh_document_row row;
    struct bh_err err;
    char text[256];
    struct bh_buf out;

    begin(f);
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        MUST(f, put_document, &rows[i]);
    commit(f);
    bh_buf_init_fixed(&out, text, sizeof text);
    MUST(f, list_documents, &(struct bh_document_filter){ BH_DOCUMENT_SESSION, 0 }, print_document, &out);
    BH_CHECK_STR("all", bh_buf_text(&out), "2 s1 v2 of 8 new;2 s2 v1 of 7 {};");
    bh_buf_clear(&out);
    MUST(f, list_documents, &(struct bh_document_filter){ BH_DOCUMENT_SESSION, 7 }, print_document, &out);
    BH_CHECK_STR("whose", bh_buf_text(&out), "2 s2 v1 of 7 {};");
    bh_buf_clear(&out);
    MUST(f, list_documents, &(struct bh_document_filter){ BH_DOCUMENT_SESSION, 0, "s1" }, print_document,
         &out);
    BH_CHECK_STR("behind one", bh_buf_text(&out), "2 s2 v1 of 7 {};");
    MUST(f, get_document, &(struct bh_document_key){ BH_DOCUMENT_ACCOUNT, "s1" }, f->arena, &row);
    BH_CHECK_STR("one", row.value, "x");
    BH_CHECK_EQ("removed",
                f->store.ops->get_document(f->store.self,
                                           &(struct bh_document_key){ BH_DOCUMENT_PASSKEY, "p" }, f->arena,
                                           &row, &err),
                BH_NOT_FOUND);
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
    struct bh_job_row left = bh_contract_job_row(1), right = bh_contract_job_row(2);
    char leaf[64];

    left.count = (uint32_t)(seq % 1000);
    right.count = 1000 - left.count;
    begin(f);
    MUST(f, put_record, seq, &(struct bh_slice){ leaf, make_leaf(seq, leaf) }, NULL);
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
        TEST(prunes_records),
        TEST(keeps_texts),
        TEST(lists_texts),
        TEST(keeps_names),
        TEST(keeps_tokens),
        TEST(keeps_documents),
        TEST(keeps_checkpoints),
        TEST(keeps_replies),
        TEST(bh_contract_keeps_a_whole_job),
        TEST(bh_contract_changes_a_job),
        TEST(bh_contract_lists_jobs),
        TEST(bh_contract_lists_newest_jobs),
        TEST(bh_contract_counts_reasons),
        TEST(bh_contract_pages_of_100_unless_told),
        TEST(bh_contract_keeps_keys),
        TEST(bh_contract_erases_jobs),
        TEST(bh_contract_erases_sealed_texts),
        TEST(bh_contract_erases_names),
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
