/* How fast the audit log takes records durably, and how fast it is verified.
 *
 *   audit_bench [FOLDER [RECORDS]]   (default: a folder of its own in /tmp, 1,000,000)
 *
 * The writing end is the daemon's own (src/daemon/journal/journal.h) over the SQLite store.  N
 * callers wait for one record each; a commit takes all N and answers them, and each calls
 * again at once: the time of a commit is what its callers waited.  Checkpoints are signed
 * each second as in the daemon, by a signer of its own. */

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/clock.h"
#include "audit/verify.h"
#include "base/num.h"
#include "base/time.h"
#include "daemon/journal/journal.h"
#include "store/audit.h"
#include "store/sqlite.h"

enum { COMMITS_MAX = 1 << 20, CHECKPOINT_S = 1 };

static struct bh_journal journal;
static bh_ns commits_ns[COMMITS_MAX];

static void
must(bh_rc rc, const struct bh_err *err)
{
    if (rc == BH_OK)
        return;
    fprintf(stderr, "audit_bench: %s\n", err->msg);
    exit(1);
}

/* What the daemon writes for a submission. */
static void
append(void)
{
    struct bh_record record = {
        .actor = { 7, BH_VIA_PEER, 1000, "" },
        .dec = { true, 3 },
        .ev_json = "{\"submit\":{\"count\":1,\"job\":1000,\"kind\":\"batch\",\"principal\":7,"
                   "\"priority\":\"normal\",\"sku\":2,\"tenant\":12}}",
        .obj = { "job", journal.next_seq },
        .req = { 1, 2, 3 },
        .res = "ok",
        .tenant = 12,
        .ts_ns = bh_time_now(),
        .verb = "job.submit",
    };
    struct bh_err err;

    if (record.ts_ns < journal.last_ts_ns)
        record.ts_ns = journal.last_ts_ns;
    must(bh_journal_append(&journal, &record, &err), &err);
}

static void
commit_batch(uint32_t callers)
{
    const struct bh_store *store = &journal.store;
    uint64_t now = bh_time_now();
    struct bh_err err;

    bh_journal_ask(&journal, now, CHECKPOINT_S * BH_NS_PER_S);
    must(store->ops->begin(store->self, &err), &err);
    for (uint32_t i = 0; i < callers; i++)
        append();
    if (bh_journal_signed(&journal))
        must(bh_journal_checkpoint(&journal, &err), &err);
    must(store->ops->commit(store->self, &err), &err);
    bh_journal_committed(&journal);
}

static int
by_size(const void *a, const void *b)
{
    bh_ns x = *(const bh_ns *)a, y = *(const bh_ns *)b;

    return (x > y) - (x < y);
}

static void
measure_appends(uint32_t callers, bh_ns span)
{
    bh_ns start = bh_time_monotonic(), now = start, cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID);
    uint64_t first = journal.next_seq, records;
    uint32_t count = 0;

    while (now - start < span && count < COMMITS_MAX) {
        bh_ns before = now;

        commit_batch(callers);
        now = bh_time_monotonic();
        commits_ns[count++] = now - before;
    }
    records = journal.next_seq - first;
    qsort(commits_ns, count, sizeof *commits_ns, by_size);
    printf("%4u callers  %7" PRIu64 " records/s  %4.1f us of CPU each  answered in (ms) "
           "median %.2f  p99 %.2f  slowest %.2f\n",
           callers, records * BH_NS_PER_S / (now - start),
           (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)records / 1e3,
           (double)commits_ns[count / 2] / 1e6, (double)commits_ns[count * 99 / 100] / 1e6,
           (double)commits_ns[count - 1] / 1e6);
}

static void
measure_verify(uint64_t records)
{
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    bh_ns start, cpu;
    struct bh_err err;

    while (journal.next_seq < records)
        commit_batch(256);
    bh_audit_verifier_init(verifier, journal.crypto, &journal.key);
    start = bh_time_monotonic();
    cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID);
    must(bh_store_audit(&journal.store, verifier, &err), &err);
    printf("%" PRIu64 " records with %" PRIu64 " checkpoints verified in %.2f s of CPU, "
           "%.2f s by the clock\n",
           verifier->frontier.size, verifier->checkpoints,
           (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - cpu) / 1e9,
           (double)(bh_time_monotonic() - start) / 1e9);
    free(verifier);
}

static void
remove_folder(const char *folder)
{
    static const char *const files[] = { "store.db",   "store.db.lock", "audit.key",
                                         "audit.vkey", "audit.signed",  "audit.checkpoint" };
    char path[4200];

    for (size_t i = 0; i < BH_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        (void)unlink(path);
    }
    if (rmdir(folder) != 0)
        fprintf(stderr, "audit_bench: cannot remove %s\n", folder);
}

int
main(int argc, char **argv)
{
    static const uint32_t callers[] = { 1, 16, 64, 256 };
    char own[] = "/tmp/audit-bench-XXXXXX", path[4096], signer[4096];
    const char *folder = argc > 1 ? argv[1] : mkdtemp(own);
    struct bh_daemon_config config = {
        .site_name = "bench.example/audit", .state_dir = folder, .signer = signer, .signer_socket = ""
    };
    struct bh_signing_process *signing;
    uint64_t records = 1000000;
    struct bh_err err;

    if (argc > 2)
        must(bh_parse_u64(argv[2], &records, &err), &err);
    snprintf(path, sizeof path, "%s/store.db", folder);
    journal.crypto = &bh_crypto_openssl;
    journal.boot = 1;
    must(bh_store_sqlite_open(path, BH_STORE_WRITE, journal.crypto, &journal.store, &err), &err);
    snprintf(signer, sizeof signer, "%s/../src/signer/bulkhead-signer", dirname(argv[0]));
    signing = bh_signing_process_new(&config);
    journal.checkpoints.signing = bh_signing_process_port(signing);
    must(bh_journal_open(&journal, &config, &err), &err);
    must(bh_journal_check_signed(&journal, &err), &err);
    for (size_t i = 0; i < BH_COUNT(callers); i++)
        measure_appends(callers[i], 3 * BH_NS_PER_S);
    measure_verify(records);
    bh_signing_process_free(signing);
    journal.store.ops->close(journal.store.self);
    if (argc == 1)
        remove_folder(folder);
    return 0;
}
