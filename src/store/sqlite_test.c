#include "store/sqlite.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "audit/verify.h"
#include "base/fd.h"
#include "base/test.h"
#include "base/time.h"
#include "ports/crypto.h"
#include "store/audit.h"
#include "store/sqlite_internal.h"

/* What is SQLite's own: files that outlive the program, crashes, full disks, locks.
 * What every store does is in tests/contract/store_contract.c. */

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

struct fixture {
    char folder[32], path[64];
    struct bh_store store;
    struct bh_err err;
};

static int
sqlite_set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    memcpy(f->folder, "/tmp/bh-sqlite-XXXXXX", 22);
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/store.db", f->folder);
    return 0;
}

static void
remove_files(const char *path)
{
    static const char *const endings[] = { "", ".lock", "-wal", "-shm" };
    char name[96];

    for (size_t i = 0; i < BH_COUNT(endings); i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
}

static int
sqlite_tear_down(void **state)
{
    struct fixture *f = *state;

    remove_files(f->path);
    rmdir(f->folder);
    free(f);
    return 0;
}

static void
sqlite_test_must(const struct fixture *f, bh_rc rc)
{
    if (rc != BH_OK)
        fail_msg("%s: %s", bh_rc_name(rc), f->err.msg);
}

static void
open_store(struct fixture *f, enum bh_store_mode mode)
{
    sqlite_test_must(f, bh_store_sqlite_open(f->path, mode, crypto, &f->store, &f->err));
}

static void
close_store(struct fixture *f)
{
    f->store.ops->close(f->store.self);
}

/* One record with a text of its number, in one transaction of its own. */
static bh_rc
put_one(struct bh_store *store, uint64_t seq, const char *text, struct bh_err *err)
{
    struct bh_record record = { .seq = seq, .ts_ns = 1 + seq, .boot = 1, .verb = "test.record" };
    struct bh_digest digest = { { (uint8_t)seq, (uint8_t)(seq >> 8), (uint8_t)(seq >> 16) } };
    char leaf[256];
    struct bh_buf out;
    bh_rc rc = store->ops->begin(store->self, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&out, leaf, sizeof leaf);
    bh_record_encode(&out, &record);
    rc = store->ops->put_record(store->self, seq, &(struct bh_slice){ leaf, out.length }, NULL, err);
    if (rc == BH_OK)
        rc = store->ops->put_text(store->self, &(struct bh_text_row){ digest, 0, { text, strlen(text) } },
                                  err);
    if (rc == BH_OK)
        return store->ops->commit(store->self, err);
    store->ops->rollback(store->self);
    return rc;
}

static void
put_some(struct fixture *f, uint64_t first, uint64_t count)
{
    for (uint64_t seq = first; seq < first + count; seq++)
        sqlite_test_must(f, put_one(&f->store, seq, "text", &f->err));
}

static uint64_t
last_record(struct fixture *f)
{
    uint64_t seq;

    sqlite_test_must(f, f->store.ops->last_record(f->store.self, &seq, &f->err));
    return seq;
}

static void
outlives_the_program(void **state)
{
    static const struct bh_slice empty = { "{}", 2 };
    struct fixture *f = *state;

    open_store(f, BH_STORE_WRITE);
    put_some(f, 0, 5);
    sqlite_test_must(f, f->store.ops->begin(f->store.self, &f->err));
    sqlite_test_must(f, f->store.ops->put_record(f->store.self, 5, &empty, NULL, &f->err));
    close_store(f); /* with a transaction open */
    open_store(f, BH_STORE_WRITE);
    assert_int_equal(last_record(f), 4);
    put_some(f, 5, 1);
    close_store(f);
    open_store(f, BH_STORE_READ);
    assert_int_equal(last_record(f), 5);
    assert_int_equal(f->store.ops->begin(f->store.self, &f->err), BH_UNAVAILABLE);
    assert_int_equal(f->store.ops->put_record(f->store.self, 6, &empty, NULL, &f->err), BH_UNAVAILABLE);
    f->store.ops->rollback(f->store.self);
    close_store(f);
}

/* ---- one writer, and readers beside it ---- */

static void
one_program_writes(void **state)
{
    struct fixture *f = *state, other = *f;

    assert_int_equal(bh_store_sqlite_open(f->path, BH_STORE_READ, crypto, &f->store, &f->err), BH_NOT_FOUND);
    open_store(f, BH_STORE_WRITE);
    put_some(f, 0, 1);
    assert_int_equal(bh_store_sqlite_open(other.path, BH_STORE_WRITE, crypto, &other.store, &other.err),
                     BH_UNAVAILABLE);
    assert_non_null(strstr(other.err.msg, "is in use by process"));
    open_store(&other, BH_STORE_READ);
    assert_int_equal(last_record(&other), 0);
    put_some(f, 1, 1);
    assert_int_equal(last_record(&other), 1);
    close_store(f);
    open_store(f, BH_STORE_WRITE); /* beside a reader */
    put_some(f, 2, 1);
    assert_int_equal(last_record(&other), 2);
    close_store(&other);
    close_store(f);
}

static void
run_sql(const struct fixture *f, const char *text)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void
refuses_what_it_does_not_know(void **state)
{
    struct fixture *f = *state;

    open_store(f, BH_STORE_WRITE);
    close_store(f);
    run_sql(f, "PRAGMA user_version = 99");
    for (int mode = BH_STORE_WRITE; mode <= BH_STORE_READ; mode++) {
        assert_int_equal(bh_store_sqlite_open(f->path, (enum bh_store_mode)mode, crypto, &f->store, &f->err),
                         BH_CONFLICT);
        assert_non_null(strstr(f->err.msg, "version 99"));
    }
    sqlite_test_must(
        f, bh_file_replace(f->path, "this is no database, it is a letter to you", 42, 0600, &f->err));
    assert_int_equal(bh_store_sqlite_open(f->path, BH_STORE_WRITE, crypto, &f->store, &f->err), BH_IO);
    assert_int_equal(f->err.sys_kind, BH_SYS_SQL);
    assert_int_equal(f->err.sys & 0xff, SQLITE_NOTADB);
}

static bool
is_without_deadline(void *self, const struct bh_job_row *row)
{
    assert_int_equal(row->job, 7);
    assert_true(row->deadline_ns == 0 && row->checkpoint_signal == 0 && row->gang == 0);
    assert_true(row->ended_by == 0);
    assert_string_equal(row->sku, "small");
    return true;
}

/* What version 9 added to texts. */
#define FORGET_KEYS "DROP INDEX texts_by_key; ALTER TABLE texts DROP COLUMN key;"

/* As the first version wrote it: a store without what was added to jobs since. */
static void
an_older_store_is_brought_up_to_date(void **state)
{
    struct fixture *f = *state;
    struct bh_job_row row = {
        .job = 7,
        .tenant_id = 6,
        .name = "",
        .tenant = "acme",
        .principal = "ada",
        .sku = "small",
        .kind = "batch",
        .state = "running",
        .contract = "never",
        .reason = "",
        .node = "",
        .partitions = "",
        .grade = "",
        .deadline_ns = 5,
        .checkpoint_signal = 10,
        .gang = 3,
        .ended_by = 4,
    };
    const struct bh_text_row text = { row.spec, 0, { "spec", 4 } };
    uint64_t bytes = 0;

    open_store(f, BH_STORE_WRITE);
    sqlite_test_must(f, f->store.ops->begin(f->store.self, &f->err));
    sqlite_test_must(f, f->store.ops->put_job(f->store.self, &row, &f->err));
    sqlite_test_must(f, f->store.ops->put_text(f->store.self, &text, &f->err));
    sqlite_test_must(f, f->store.ops->commit(f->store.self, &f->err));
    close_store(f);
    run_sql(f, FORGET_KEYS "ALTER TABLE jobs DROP COLUMN deadline_ns; DROP INDEX texts_by_tenant;"
                           "ALTER TABLE texts DROP COLUMN tenant_id; ALTER TABLE texts DROP COLUMN bytes;"
                           "ALTER TABLE jobs DROP COLUMN checkpoint_signal;"
                           "ALTER TABLE jobs DROP COLUMN gang; DROP TABLE documents; DROP TABLE keys;"
                           "DROP INDEX tokens_by_principal; ALTER TABLE names DROP COLUMN key;"
                           "ALTER TABLE names DROP COLUMN record; ALTER TABLE jobs DROP COLUMN ended_by;"
                           "PRAGMA user_version = 1");
    assert_int_equal(bh_store_sqlite_open(f->path, BH_STORE_READ, crypto, &f->store, &f->err), BH_CONFLICT);
    assert_non_null(strstr(f->err.hint, "start bulkheadd on it once"));
    open_store(f, BH_STORE_WRITE);
    sqlite_test_must(f, f->store.ops->get_job(f->store.self, row.job, is_without_deadline, f, &f->err));
    sqlite_test_must(f, f->store.ops->count_texts(f->store.self, row.tenant_id, &bytes, &f->err));
    assert_int_equal(bytes, 4); /* of the tenant whose job has it */
    close_store(f);
}

static void
put_sealed(struct fixture *f, uint32_t tenant, const char *key, bool job)
{
    struct bh_job_row row = { .job = strtoull(key, NULL, 10),
                              .tenant_id = tenant,
                              .tenant = "acme",
                              .principal = "ada",
                              .sku = "small",
                              .kind = "batch",
                              .state = "completed",
                              .spec = { { (uint8_t)*key, (uint8_t)tenant } } };
    char text[160];
    struct bh_buf item;

    bh_buf_init_fixed(&item, text, sizeof text);
    bh_buf_printf(&item, "{\"c\":\"AAAA\",\"h\":\"%s=\",\"k\":\"%s\",\"n\":\"%s\"}",
                  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", key, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    if (job)
        sqlite_test_must(f, f->store.ops->put_job(f->store.self, &row, &f->err));
    sqlite_test_must(f, f->store.ops->put_text(
                            f->store.self,
                            &(struct bh_text_row){ row.spec, tenant, { item.bytes, item.length } }, &f->err));
}

/* Keys 2 and 3 of tenant 6, of which 2 was destroyed, each with a job's specification; and a sealed text that
 * counts against no tenant. */
static void
put_keys_and_texts(struct fixture *f)
{
    const struct bh_key_row keys[] = {
        { .id = 2, .kind = BH_KEY_KIND_AUDIT, .tenant_id = 6, .shredded_ns = 5 },
        { .id = 3, .kind = BH_KEY_KIND_AUDIT, .tenant_id = 6, .wrapped = { 1 } },
    };

    open_store(f, BH_STORE_WRITE);
    sqlite_test_must(f, f->store.ops->begin(f->store.self, &f->err));
    for (size_t i = 0; i < BH_COUNT(keys); i++)
        sqlite_test_must(f, f->store.ops->put_key(f->store.self, &keys[i], &f->err));
    put_sealed(f, 6, "2", true);
    put_sealed(f, 6, "3", true);
    put_sealed(f, 0, "2", false);
    sqlite_test_must(f, f->store.ops->commit(f->store.self, &f->err));
    close_store(f);
}

static uint64_t
sqlite_stored_of(struct fixture *f, uint32_t tenant)
{
    uint64_t bytes = 0;

    sqlite_test_must(f, f->store.ops->count_texts(f->store.self, tenant, &bytes, &f->err));
    return bytes;
}

static bool
count_text(void *self, uint64_t number, const struct bh_digest *digest, const char *text, size_t length)
{
    ++*(uint32_t *)self;
    return true;
}

static uint32_t
texts_of(struct fixture *f)
{
    uint32_t count = 0;

    sqlite_test_must(f, f->store.ops->list_texts(f->store.self, 0, count_text, &count, &f->err));
    return count;
}

/* What destroyed keys left behind goes, of stores that counted it and of those from before; and what
 * other keys sealed goes with them later. */
static void
an_older_store_loses_what_cannot_be_read(void **state)
{
    static const char *const olds[] = {
        FORGET_KEYS "PRAGMA user_version = 8",
        FORGET_KEYS "DROP INDEX texts_by_tenant; ALTER TABLE texts DROP COLUMN tenant_id;"
                    "ALTER TABLE texts DROP COLUMN bytes; PRAGMA user_version = 7",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < BH_COUNT(olds); i++) {
        uint64_t before;

        put_keys_and_texts(f);
        open_store(f, BH_STORE_WRITE);
        before = sqlite_stored_of(f, 6);
        BH_CHECK_EQ("before", texts_of(f), 3);
        close_store(f);
        run_sql(f, olds[i]);
        open_store(f, BH_STORE_WRITE);
        BH_CHECK_EQ("counted", sqlite_stored_of(f, 6), before / 2);
        BH_CHECK_EQ("kept", texts_of(f), 2);
        sqlite_test_must(f, f->store.ops->begin(f->store.self, &f->err));
        sqlite_test_must(f, f->store.ops->erase_sealed(f->store.self, 3, &f->err));
        sqlite_test_must(f, f->store.ops->commit(f->store.self, &f->err));
        BH_CHECK_EQ("nothing is counted", sqlite_stored_of(f, 6), 0);
        BH_CHECK_EQ("what is nobody's stays", texts_of(f), 1);
        close_store(f);
        remove_files(f->path);
    }
    BH_CHECK_DONE();
}

/* ---- crashes ---- */

/* In the child: commit until killed, telling each durable number. */
static void
commit_for_ever(const struct fixture *f, uint64_t first, int out)
{
    struct bh_store store;
    struct bh_err err;

    if (bh_store_sqlite_open(f->path, BH_STORE_WRITE, crypto, &store, &err) != BH_OK)
        _exit(1);
    for (uint64_t seq = first;; seq++)
        if (put_one(&store, seq, "text", &err) != BH_OK || write(out, &seq, sizeof seq) != sizeof seq)
            _exit(2);
}

/* The last number that the child reported before it was killed after `delay`. */
static uint64_t
kill_while_committing(const struct fixture *f, uint64_t first, bh_ns delay)
{
    uint64_t told = UINT64_MAX, seq;
    int pipes[2], status;
    pid_t child;

    assert_int_equal(pipe(pipes), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        commit_for_ever(f, first, pipes[1]);
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &seq, sizeof seq), sizeof seq);
    told = seq;
    bh_time_sleep(delay);
    kill(child, SIGKILL);
    while (read(pipes[0], &seq, sizeof seq) == sizeof seq)
        told = seq;
    close(pipes[0]);
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    return told;
}

struct prefix {
    uint64_t next;
    bool wrong;
};

static bool
sqlite_read_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct prefix *prefix = self;

    prefix->wrong |= seq != prefix->next || length == 0;
    prefix->next = seq + 1;
    return true;
}

/* What was reported is there, and nothing has a gap: at most one more that was not reported. */
static void
survives_kills(void **state)
{
    struct fixture *f = *state;
    uint64_t first = 0;

    for (int round = 0; round < 12; round++) {
        uint64_t told = kill_while_committing(f, first, (bh_ns)(round * 3 + 1) * BH_NS_PER_MS);
        struct prefix prefix = { 0 };

        open_store(f, BH_STORE_WRITE);
        sqlite_test_must(f, f->store.ops->list_records(f->store.self, 0, UINT64_MAX, sqlite_read_record,
                                                       &prefix, &f->err));
        close_store(f);
        BH_CHECK("no gap", !prefix.wrong);
        BH_CHECK("all told are kept", prefix.next > told);
        BH_CHECK("at most one more", prefix.next <= told + 2);
        first = prefix.next;
    }
    BH_CHECK_DONE();
}

/* ---- full disks ---- */

/* Write until the disk is full: the failure is named, nothing of it is kept, reads go
 * on. */
static uint64_t
sqlite_fill(struct fixture *f)
{
    static char text[20000];
    uint64_t seq = 0;
    bh_rc rc = BH_OK;

    memset(text, 'x', sizeof text - 1);
    for (; rc == BH_OK && seq < 10000; seq++)
        rc = put_one(&f->store, seq, text, &f->err);
    BH_CHECK_EQ(f->err.msg, rc, BH_FULL);
    BH_CHECK_EQ("kept", last_record(f), seq - 2);
    BH_CHECK_EQ("still full", put_one(&f->store, seq - 1, text, &f->err), BH_FULL);
    BH_CHECK_EQ("kept", last_record(f), seq - 2);
    return seq - 1;
}

static void
limits_the_size_of_files(void **state)
{
    struct fixture *f = *state;
    struct rlimit old, small;
    uint64_t next;

    open_store(f, BH_STORE_WRITE);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){ 1 << 20, old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    next = sqlite_fill(f);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    put_some(f, next, 3);
    close_store(f);
    open_store(f, BH_STORE_READ);
    BH_CHECK_EQ("all there", last_record(f), next + 2);
    close_store(f);
    BH_CHECK_DONE();
}

static void
fills_the_disk(void **state)
{
    struct fixture *f = *state;
    uint64_t next;

    if (mount("none", f->folder, "tmpfs", 0, "size=1m,mode=700") != 0) {
        print_message("# cannot mount a small disk, left out\n");
        return;
    }
    open_store(f, BH_STORE_WRITE);
    next = sqlite_fill(f);
    BH_CHECK_EQ("larger disk", mount("none", f->folder, NULL, MS_REMOUNT, "size=16m"), 0);
    put_some(f, next, 3);
    close_store(f);
    open_store(f, BH_STORE_READ);
    BH_CHECK_EQ("all there", last_record(f), next + 2);
    close_store(f);
    BH_CHECK_EQ("unmount", umount(f->folder), 0);
    BH_CHECK_DONE();
}

/* ---- look-ups ---- */

/* How SQLite would run a statement of the store's own: the first step of its plan. */
static void
plan_of(struct fixture *f, struct bh_sql *sql, enum bh_sql_statement which, struct bh_buf *plan)
{
    struct bh_sql_use use;
    sqlite3_stmt *explained;
    char text[2048];

    sqlite_test_must(f, bh_sql_use(sql, which, &use, &f->err));
    snprintf(text, sizeof text, "EXPLAIN QUERY PLAN %s", sqlite3_sql(use.statement));
    bh_sql_done(&use);
    assert_int_equal(sqlite3_prepare_v2(sql->db, text, -1, &explained, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(explained), SQLITE_ROW);
    bh_buf_printf(plan, "%s", (const char *)sqlite3_column_text(explained, 3));
    sqlite3_finalize(explained);
}

/* Every request with a token looks for it, each new one counts its owner's, and a destroyed key's
 * texts are looked for between requests: thousands of others must not make that longer. */
static void
rows_are_found_by_an_index(void **state)
{
    static const struct {
        const char *name, *plan;
        enum bh_sql_statement which;
    } rows[] = {
        { "by id", "SEARCH tokens USING PRIMARY KEY (id=?)", BH_SQL_GET_TOKEN },
        { "by owner", "SEARCH tokens USING INDEX tokens_by_principal (principal_id=?)",
          BH_SQL_LIST_TOKENS_OF },
        { "by key", "SEARCH texts USING INDEX texts_by_key (key=?)", BH_SQL_ERASE_SEALED },
    };
    struct fixture *f = *state;
    const struct bh_sql_options options = { SQLITE_OPEN_READONLY, 100 };
    struct bh_sql *sql;

    open_store(f, BH_STORE_WRITE);
    close_store(f);
    sqlite_test_must(f, bh_sql_open(f->path, &options, &sql, &f->err));
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char memory[256];
        struct bh_buf plan;

        bh_buf_init_fixed(&plan, memory, sizeof memory);
        plan_of(f, sql, rows[i].which, &plan);
        BH_CHECK_STR(rows[i].name, bh_buf_text(&plan), rows[i].plan);
    }
    bh_sql_close(sql);
    BH_CHECK_DONE();
}

/* ---- the audit of a changed store ---- */

enum { RECORDS = 50, EVERY = 20 };

static void
sign_checkpoint(struct fixture *f, struct bh_merkle_frontier *frontier, const uint8_t private_key[32])
{
    struct bh_checkpoint checkpoint = { .origin = "log.example/a", .size = frontier->size };
    char note[1024];
    struct bh_buf out;

    bh_merkle_frontier_root(frontier, crypto, checkpoint.root);
    bh_buf_init_fixed(&out, note, sizeof note);
    sqlite_test_must(f, bh_checkpoint_sign(crypto, &checkpoint, private_key, &out, &f->err));
    sqlite_test_must(f, f->store.ops->begin(f->store.self, &f->err));
    sqlite_test_must(
        f, f->store.ops->put_checkpoint(
               f->store.self, &(struct bh_checkpoint_row){ frontier->size, bh_buf_text(&out) }, &f->err));
    sqlite_test_must(f, f->store.ops->commit(f->store.self, &f->err));
}

static bool
add_hash(void *self, uint64_t seq, const struct bh_digest *hash)
{
    bh_merkle_frontier_add(self, crypto, hash->bytes);
    return true;
}

static struct bh_note_key
make_journal(struct fixture *f)
{
    struct bh_merkle_frontier frontier = { 0 };
    uint8_t private_key[32] = { 3 }, public_key[32];
    struct bh_note_key key;

    sqlite_test_must(f, crypto->public_of(private_key, public_key, &f->err));
    sqlite_test_must(f, bh_note_key_make(crypto, "log.example/a", public_key, &key, &f->err));
    open_store(f, BH_STORE_WRITE);
    sign_checkpoint(f, &frontier, private_key);
    for (uint64_t seq = 0; seq < RECORDS; seq++) {
        put_some(f, seq, 1);
        sqlite_test_must(f, f->store.ops->list_hashes(f->store.self, seq, add_hash, &frontier, &f->err));
        if (frontier.size % EVERY == 0)
            sign_checkpoint(f, &frontier, private_key);
    }
    close_store(f);
    return key;
}

static void
audits(void **state)
{
    static const struct {
        const char *name, *sql;
        bh_rc rc;
        uint64_t first, last;
    } rows[] = {
        { "good", "SELECT 1", BH_OK, 0, 0 },
        { "leaf",
          "UPDATE records SET leaf = CAST(replace(leaf, 'test', 'tesd') AS BLOB) "
          "WHERE seq = 17",
          BH_CONFLICT, 17, 17 },
        { "hash", "UPDATE records SET hash = zeroblob(32) WHERE seq = 33", BH_CONFLICT, 33, 33 },
        { "removed", "DELETE FROM records WHERE seq = 9", BH_CONFLICT, 9, 9 },
        { "cut behind a checkpoint", "DELETE FROM records WHERE seq >= 40", BH_OK, 0, 0 },
        { "cut", "DELETE FROM records WHERE seq >= 31", BH_CONFLICT, 31, 39 },
        { "all gone", "DELETE FROM records", BH_CONFLICT, 0, 39 },
        { "swapped notes",
          "UPDATE checkpoints SET note = (SELECT note FROM checkpoints WHERE "
          "size = 20) WHERE size = 40",
          BH_CONFLICT, 20, 39 },
        { "first note spoilt", "UPDATE checkpoints SET note = 'x' WHERE size = 0", BH_CONFLICT, 0, 0 },
    };
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    struct fixture *f = *state;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_note_key key = make_journal(f);

        run_sql(f, rows[i].sql);
        open_store(f, BH_STORE_READ);
        bh_audit_verifier_init(verifier, crypto, &key);
        BH_CHECK_EQ(rows[i].name, bh_store_audit(&f->store, verifier, &f->err), rows[i].rc);
        BH_CHECK_EQ(rows[i].name, verifier->bad_first, rows[i].first);
        BH_CHECK_EQ(rows[i].name, verifier->bad_last, rows[i].last);
        close_store(f);
        remove_files(f->path);
    }
    free(verifier);
    BH_CHECK_DONE();
}

/* In a thread: write on while the audit walks. */
static void *
write_on(void *self)
{
    struct fixture *f = self;

    for (uint64_t seq = RECORDS; seq < RECORDS + 300; seq++)
        if (put_one(&f->store, seq, "text", &f->err) != BH_OK)
            return f;
    return NULL;
}

static void
audits_beside_the_writer(void **state)
{
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    struct fixture *f = *state, reader = *f;
    struct bh_note_key key = make_journal(f);
    pthread_t thread;
    void *failed;

    open_store(f, BH_STORE_WRITE);
    assert_int_equal(pthread_create(&thread, NULL, write_on, f), 0);
    open_store(&reader, BH_STORE_READ);
    for (int i = 0; i < 20; i++) {
        bh_audit_verifier_init(verifier, crypto, &key);
        BH_CHECK_EQ(reader.err.msg, bh_store_audit(&reader.store, verifier, &reader.err), BH_OK);
        BH_CHECK("all", verifier->frontier.size >= RECORDS);
    }
    pthread_join(thread, &failed);
    BH_CHECK("written", !failed);
    close_store(&reader);
    close_store(f);
    free(verifier);
    BH_CHECK_DONE();
}

static bool
file_holds(const struct fixture *f, const char *ending, const char *text)
{
    char path[96];
    struct bh_buf bytes;
    struct bh_err err;
    bool holds;

    snprintf(path, sizeof path, "%s%s", f->path, ending);
    bh_buf_init(&bytes, 16 << 20);
    holds = bh_file_read(path, 16 << 20, &bytes, &err) == BH_OK && bytes.length > 0
            && memmem(bytes.bytes, bytes.length, text, strlen(text));
    bh_buf_fini(&bytes);
    return holds;
}

/* Not in the database, not in its log: neither a name or text that was erased, nor the
 * bytes of a key. */
static void
erased_bytes_are_nowhere(void **state)
{
    static const char name[] = "canary-name", text[] = "{\"plain\":\"canary-text\"}";
    struct fixture *f = *state;
    struct bh_key_row key = { .id = 1, .wrapped = "canary-key" };
    const struct bh_job_row job = { .job = 1,
                                    .tenant_id = 1,
                                    .name = name,
                                    .tenant = "t",
                                    .principal = "p",
                                    .sku = "s",
                                    .kind = "k",
                                    .state = "s",
                                    .submitted_ns = 5,
                                    .spec = { { 1 } } };

    open_store(f, BH_STORE_WRITE);
    for (uint8_t pass = 0; pass < 2; pass++) { /* erased from the log and from the database */
        sqlite_test_must(f, f->store.ops->begin(f->store.self, &f->err));
        sqlite_test_must(f, f->store.ops->put_job(f->store.self, &job, &f->err));
        sqlite_test_must(
            f, f->store.ops->put_text(f->store.self,
                                      &(struct bh_text_row){ job.spec, 0, { text, strlen(text) } }, &f->err));
        memcpy(key.wrapped, "canary-key", 10);
        sqlite_test_must(f, f->store.ops->put_key(f->store.self, &key, &f->err));
        sqlite_test_must(f, f->store.ops->commit(f->store.self, &f->err));
        if (pass == 1)
            sqlite_test_must(f, f->store.ops->scrub(f->store.self, &f->err));
        BH_CHECK("there", file_holds(f, pass ? "" : "-wal", "canary-name")
                              && file_holds(f, pass ? "" : "-wal", "canary-text")
                              && file_holds(f, pass ? "" : "-wal", "canary-key"));
        sqlite_test_must(f, f->store.ops->begin(f->store.self, &f->err));
        memset(key.wrapped, 0, sizeof key.wrapped);
        sqlite_test_must(f, f->store.ops->put_key(f->store.self, &key, &f->err));
        sqlite_test_must(
            f, f->store.ops->erase_jobs(f->store.self, &(struct bh_erasure){ 1, 0, UINT64_MAX }, &f->err));
        sqlite_test_must(f, f->store.ops->commit(f->store.self, &f->err));
        sqlite_test_must(f, f->store.ops->scrub(f->store.self, &f->err));
        BH_CHECK("database", !file_holds(f, "", "canary"));
        BH_CHECK("log", !file_holds(f, "-wal", "canary"));
    }
    f->store.ops->close(f->store.self);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, sqlite_set_up, sqlite_tear_down)
    TEST(erased_bytes_are_nowhere),
    TEST(outlives_the_program),
    TEST(one_program_writes),
    TEST(refuses_what_it_does_not_know),
    TEST(an_older_store_is_brought_up_to_date),
    TEST(an_older_store_loses_what_cannot_be_read),
    TEST(rows_are_found_by_an_index),
    TEST(survives_kills),
    TEST(limits_the_size_of_files),
    TEST(fills_the_disk),
    TEST(audits),
    TEST(audits_beside_the_writer),
};
BH_TEST_MAIN(tests)
