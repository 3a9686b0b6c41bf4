/* The verdicts of audit/verdicts.txt, which says how it is written.  tools/verify_audit_verdicts_test.py
 * judges the same cases with the second verifier; for that `--store FILE` makes an empty store. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/rows.h"
#include "audit/verify.h"
#include "base/test.h"
#include "cli/verifier/verify_rows.h"
#include "ports/crypto.h"
#include "store/compare.h"
#include "store/sqlite.h"

enum { LINES_MAX = 20000, VERDICT_MAX = 16384, CASES_AT_LEAST = 150 };

static const uint32_t every_table = BH_CLAIMS_NAMES | BH_CLAIMS_JOBS | BH_CLAIMS_ENDED | BH_CLAIMS_TEXTS
                                    | BH_CLAIMS_DOCUMENTS | BH_CLAIMS_KEYS;

static const char *path;
static char *lines[LINES_MAX];
static size_t line_count;

struct trial {
    struct bh_audit_verifier verifier;
    struct bh_verify_rows *rows;
    sqlite3 *sql;   /* a store that is being filled; NULL: none */
    char early[80]; /* the verdict before the end; "": none yet */
};

static void
verify_rows_test_begin(struct trial *trial)
{
    static const struct bh_note_key nobody;

    bh_audit_verifier_init(&trial->verifier, &bh_crypto_openssl, &nobody);
    trial->rows = bh_verify_rows_new();
    trial->verifier.claims = bh_verify_rows_claims(trial->rows);
    trial->sql = NULL;
    trial->early[0] = '\0';
}

/* ---- a store ---- */

static char store_path[64];

static void
drop_store(void)
{
    static const char *const beside[] = { "", "-wal", "-shm", ".lock" };
    char file[80];

    for (size_t i = 0; i < BH_COUNT(beside); i++) {
        snprintf(file, sizeof file, "%s%s", store_path, beside[i]);
        unlink(file);
    }
}

static void
make_store(const char *file)
{
    struct bh_store store;
    struct bh_err err = { 0 };

    if (bh_store_sqlite_open(file, BH_STORE_WRITE, &bh_crypto_openssl, &store, &err) != BH_OK)
        fail_msg("%s", err.msg);
    store.ops->close(store.self);
}

static void
add_sql(struct trial *trial, const char *statement)
{
    if (!trial->sql) {
        snprintf(store_path, sizeof store_path, "/tmp/verify_rows.%ld.db", (long)getpid());
        drop_store();
        make_store(store_path);
        assert_int_equal(sqlite3_open(store_path, &trial->sql), SQLITE_OK);
        sqlite3_exec(trial->sql, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    }
    if (sqlite3_exec(trial->sql, statement, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", statement, sqlite3_errmsg(trial->sql));
}

/* False: the verdict is there. */
static bool
compare_store(struct trial *trial, struct bh_claims_result *ret_result, struct bh_buf *verdict)
{
    struct bh_store store;
    struct bh_err err = { 0 };
    bh_rc rc;

    sqlite3_close(trial->sql);
    rc = bh_store_sqlite_open(store_path, BH_STORE_SNAPSHOT, &bh_crypto_openssl, &store, &err);
    assert_int_equal(rc, BH_OK);
    rc = bh_store_compare(&store, &bh_crypto_openssl, trial->verifier.claims, ret_result, &err);
    store.ops->close(store.self);
    drop_store();
    if (rc != BH_OK)
        bh_buf_printf(verdict, "%s\n", err.msg);
    return rc == BH_OK;
}

/* What stands behind the word, or NULL. */
static const char *
verify_rows_test_behind(const char *line, const char *word)
{
    size_t length = strlen(word);

    return strncmp(line, word, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

static void
add_record(struct trial *trial, const char *leaf)
{
    struct bh_audit_verifier *verifier = &trial->verifier;
    static const uint8_t hash[32];
    struct bh_err err = { 0 };
    bh_rc rc = leaf ? bh_audit_verifier_record(verifier, leaf, strlen(leaf), NULL, &err)
                    : bh_audit_verifier_hash(verifier, hash, &err);

    if (rc != BH_OK)
        snprintf(trial->early, sizeof trial->early, "bad record %d\n", (int)verifier->bad_first);
}

/* There are no more records. */
static void
check_whole(struct trial *trial)
{
    if (!trial->early[0] && bh_audit_verifier_lacks(&trial->verifier))
        snprintf(trial->early, sizeof trial->early, "missing records\n");
}

/* A line of a table's file: its name, a blank and the row. */
static void
verify_rows_test_add_row(struct trial *trial, const char *line)
{
    size_t word = strcspn(line, " ");
    struct bh_err err = { 0 };
    char table[16];

    snprintf(table, sizeof table, "%.*s", (int)word, line);
    line += word + (line[word] == ' ');
    check_whole(trial);
    if (!trial->early[0] && bh_verify_rows_add(trial->rows, table, line, strlen(line), &err) != BH_OK)
        snprintf(trial->early, sizeof trial->early, "malformed %s\n", table);
}

/* A line of a case; after the first fault none matters. */
static void
verify_rows_test_read_line(struct trial *trial, const char *line)
{
    const char *log = verify_rows_test_behind(line, "with");

    if (trial->early[0])
        return;
    if (!log && verify_rows_test_behind(line, "sql"))
        add_sql(trial, verify_rows_test_behind(line, "sql"));
    else if (!log && strcmp(line, "pruned") == 0)
        add_record(trial, NULL);
    else if (!log && verify_rows_test_behind(line, "record"))
        add_record(trial, verify_rows_test_behind(line, "record"));
    else if (!log)
        verify_rows_test_add_row(trial, line);
    for (size_t i = 0; log && i < line_count; i++) {
        const char *name = verify_rows_test_behind(lines[i], "log");

        if (!name || strcmp(name, log) != 0)
            continue;
        while (++i < line_count && *lines[i])
            verify_rows_test_read_line(trial, lines[i]);
        return;
    }
    BH_CHECK(line, !log);
}

static int
by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void
put_sorted(struct bh_buf *verdict, const char *differing)
{
    char *copy = strdup(differing), *rest = copy, *line, *sentences[100];
    size_t count = 0;

    while ((line = strsep(&rest, "\n")) && count < BH_COUNT(sentences))
        if (*line)
            sentences[count++] = line;
    qsort(sentences, count, sizeof *sentences, by_text);
    for (size_t i = 0; i < count; i++)
        bh_buf_printf(verdict, "%s\n", sentences[i]);
    free(copy);
}

static void
verify_rows_test_put_count(struct bh_buf *verdict, const char *table, const struct bh_claims_count *count)
{
    const struct {
        const char *what;
        uint64_t number;
    } parts[] = { { "good", count->good }, { "erased", count->erased }, { "not bound", count->unbound } };
    const char *before = table, *between = ": ";

    for (size_t i = 0; i < BH_COUNT(parts); i++)
        if (parts[i].number) {
            bh_buf_printf(verdict, "%s%s%d %s", before, between, (int)parts[i].number, parts[i].what);
            before = "";
            between = ", ";
        }
    if (before != table)
        bh_buf_putc(verdict, '\n');
}

/* In the words of audit/verdicts.txt. */
static void
verify_rows_test_end(struct trial *trial, struct bh_buf *verdict)
{
    struct bh_claims_result result;

    check_whole(trial);
    bh_buf_puts(verdict, trial->early);
    if (!trial->early[0] && !trial->sql)
        bh_claims_end(trial->verifier.claims, every_table, &result);
    if (!trial->early[0] && (!trial->sql || compare_store(trial, &result, verdict))) {
        put_sorted(verdict, result.differing);
        verify_rows_test_put_count(verdict, BH_ROWS_NAMES, &result.names);
        verify_rows_test_put_count(verdict, BH_ROWS_JOBS, &result.jobs);
        verify_rows_test_put_count(verdict, BH_ROWS_TEXTS, &result.texts);
        verify_rows_test_put_count(verdict, BH_ROWS_DOCUMENTS, &result.documents);
        verify_rows_test_put_count(verdict, BH_ROWS_KEYS, &result.keys);
        verify_rows_test_put_count(verdict, "tokens", &result.tokens);
    }
    bh_verify_rows_free(trial->rows);
}

/* The case whose first line is `at`; the line behind its last. */
static size_t
judge_case(size_t at)
{
    char memory[VERDICT_MAX], wanted_memory[VERDICT_MAX];
    const char *what = lines[at];
    struct bh_buf verdict, wanted;
    static struct trial trial;

    bh_buf_init_fixed(&verdict, memory, sizeof memory);
    bh_buf_init_fixed(&wanted, wanted_memory, sizeof wanted_memory);
    verify_rows_test_begin(&trial);
    for (at++; at < line_count && *lines[at]; at++)
        if (verify_rows_test_behind(lines[at], ">"))
            bh_buf_printf(&wanted, "%s\n", verify_rows_test_behind(lines[at], ">"));
        else
            verify_rows_test_read_line(&trial, lines[at]);
    verify_rows_test_end(&trial, &verdict);
    BH_CHECK_STR(what, bh_buf_text(&verdict), bh_buf_text(&wanted));
    return at;
}

/* A line alone, of a log of its own: whether it has its form. */
static void
judge_line(const char *what, const char *line, bool good)
{
    static struct trial trial;

    verify_rows_test_begin(&trial);
    verify_rows_test_read_line(&trial, line);
    BH_CHECK_EQ(what, !trial.early[0], good);
    bh_verify_rows_free(trial.rows);
}

static void
verdicts(void **state)
{
    int cases = 0;

    for (size_t i = 0; i < line_count; i++) {
        const char *good = verify_rows_test_behind(lines[i], "good"),
                   *bad = verify_rows_test_behind(lines[i], "bad");

        cases += good || bad || verify_rows_test_behind(lines[i], "case");
        if (verify_rows_test_behind(lines[i], "case"))
            i = judge_case(i);
        else if (good || bad)
            judge_line(lines[i], good ? good : bad, good);
        else
            BH_CHECK(lines[i], !*lines[i] || *lines[i] == '#' || verify_rows_test_behind(lines[i], "log")
                                   || verify_rows_test_behind(lines[i], "record")
                                   || verify_rows_test_behind(lines[i], "sql")
                                   || strcmp(lines[i], "pruned") == 0);
    }
    printf("# %d cases\n", cases);
    BH_CHECK("all of them", cases >= CASES_AT_LEAST);
    BH_CHECK_DONE();
}

static void
read_lines(void)
{
    FILE *in = fopen(path, "re");
    size_t size = 0;
    ssize_t length;

    assert_non_null(in);
    while (line_count < LINES_MAX && (length = getline(&lines[line_count], &size, in)) > 0) {
        lines[line_count][strcspn(lines[line_count], "\n")] = '\0';
        line_count++;
        size = 0;
    }
    assert_true(line_count < LINES_MAX);
    free(lines[line_count]);
    fclose(in);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(verdicts) };
    int failed;

    if (argc == 3 && strcmp(argv[1], "--store") == 0) {
        make_store(argv[2]);
        return 0;
    }
    assert_int_equal(argc, 2);
    path = argv[1];
    read_lines();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    while (line_count > 0)
        free(lines[--line_count]);
    return failed;
}
