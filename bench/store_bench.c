/* How fast the SQLite store takes submissions and answers questions.
 *
 *   store_bench [FOLDER [SPAN]]      (default: a folder of its own in /tmp, 2s)
 *
 * A submission is what the owner thread writes for one job: its record, its text and
 * its row.  Figures are of this machine's disk; FOLDER says which. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/clock.h"
#include "audit/record.h"
#include "base/num.h"
#include "base/time.h"
#include "ports/crypto.h"
#include "store/sqlite.h"

enum { TENANTS = 1000, PENDING = 100000 };

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;
static struct bh_store store;

static void
must(bh_rc rc, const struct bh_err *err)
{
    if (rc == BH_OK)
        return;
    fprintf(stderr, "store_bench: %s\n", err->msg);
    exit(1);
}

static void
put_record(uint64_t number, const struct bh_digest *digest, struct bh_err *err)
{
    struct bh_record record = {
        .actor = { 7, BH_VIA_PEER, 1000, "" },
        .boot = 1,
        .dec = { true, 3 },
        .ev_json = "{\"submit\":{\"count\":1,\"job\":1000,\"kind\":\"batch\",\"principal\":7,"
                   "\"priority\":\"normal\",\"sku\":2,\"tenant\":12}}",
        .obj = { "job", number },
        .req = { 1, 2, 3 },
        .res = "ok",
        .seq = number,
        .tenant = 12,
        .ts_ns = UINT64_C(1795170000000000000) + number,
        .verb = "job.submit",
    };
    char leaf[2048];
    struct bh_buf out;

    memcpy(record.text, digest->bytes, sizeof record.text);
    bh_buf_init_fixed(&out, leaf, sizeof leaf);
    bh_record_encode(&out, &record);
    must(store.ops->put_record(store.self, number, &(struct bh_slice){ leaf, out.length }, NULL, err), err);
}

static void
put_job(uint64_t number, const struct bh_digest *digest, struct bh_err *err)
{
    const struct bh_job_row row = {
        .job = number + 1,
        .tenant_id = 1 + (uint32_t)(number % TENANTS),
        .principal_id = 7,
        .count = 1,
        .name = "train",
        .tenant = "acme/research/vision",
        .principal = "ada",
        .sku = "small",
        .kind = "batch",
        .state = "pending",
        .contract = "preemptible",
        .reason = "no_room",
        .submitted_ns = UINT64_C(1795170000000000000) + number,
        .exit_status = -1,
        .spec = *digest,
    };

    must(store.ops->put_job(store.self, &row, err), err);
}

static void
submit(uint64_t number, struct bh_err *err)
{
    struct bh_digest digest;
    char text[512];
    int length = snprintf(text, sizeof text,
                          "{\"args\":[\"python\",\"train.py\",\"--seed\",\"%" PRIu64 "\"],"
                          "\"cwd\":\"/home/ada\",\"env\":[\"HOME=/home/ada\",\"LANG=C.UTF-8\"],"
                          "\"image\":\"/srv/images/pytorch-2.7\",\"sku\":\"small\"}",
                          number);

    crypto->sha256(text, (size_t)length, NULL, 0, digest.bytes);
    put_record(number, &digest, err);
    must(store.ops->put_text(store.self, &(struct bh_text_row){ digest, 1, { text, (size_t)length } }, err),
         err);
    put_job(number, &digest, err);
}

static uint64_t
submit_batch(uint64_t number, uint32_t batch)
{
    struct bh_err err;

    must(store.ops->begin(store.self, &err), &err);
    for (uint32_t i = 0; i < batch; i++)
        submit(number++, &err);
    must(store.ops->commit(store.self, &err), &err);
    return number;
}

static uint64_t
measure_batches(uint64_t number, uint32_t batch, bh_ns span)
{
    bh_ns start = bh_time_monotonic(), now = start, worst = 0, cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID);
    uint64_t first = number;

    while (now - start < span) {
        bh_ns before = now;

        number = submit_batch(number, batch);
        now = bh_time_monotonic();
        if (now - before > worst)
            worst = now - before;
    }
    printf("batches of %3u  %8" PRIu64 " submissions/s  %5.1f us of CPU each  "
           "slowest commit %5.1f ms\n",
           batch, (number - first) * BH_NS_PER_S / (now - start),
           (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)(number - first) / 1e3,
           (double)worst / 1e6);
    return number;
}

static bool
ignore_job(void *self, const struct bh_job_row *row)
{
    ++*(uint32_t *)self;
    return true;
}

static void
measure_list(const char *name, struct bh_job_filter filter)
{
    enum { ROUNDS = 20 };
    uint32_t rows = 0;
    uint64_t count = 0;
    bh_ns start, listed, counted;
    struct bh_err err;

    start = bh_time_monotonic();
    for (int i = 0; i < ROUNDS; i++)
        must(store.ops->list_jobs(store.self, &filter, ignore_job, &rows, &err), &err);
    listed = bh_time_monotonic();
    must(store.ops->count_jobs(store.self, &filter, &count, &err), &err);
    counted = bh_time_monotonic();
    printf("%-34s %5u rows in %6.2f ms, counted %6" PRIu64 " in %6.2f ms\n", name, rows / ROUNDS,
           (double)(listed - start) / ROUNDS / 1e6, count, (double)(counted - listed) / 1e6);
}

static void
measure_lists(void)
{
    static uint32_t tenants[TENANTS];

    for (uint32_t i = 0; i < TENANTS; i++)
        tenants[i] = i + 1;
    measure_list("all", (struct bh_job_filter){ 0 });
    measure_list("active", (struct bh_job_filter){ .active_only = true });
    measure_list("pending", (struct bh_job_filter){ .state = "pending" });
    measure_list("running (none)", (struct bh_job_filter){ .state = "running" });
    measure_list("principal", (struct bh_job_filter){ .principal_id = 7 });
    measure_list("principal, running (none)",
                 (struct bh_job_filter){ .principal_id = 7, .state = "running" });
    measure_list("one tenant", (struct bh_job_filter){ .tenants = tenants, .tenant_count = 1 });
    measure_list("100 tenants", (struct bh_job_filter){ .tenants = tenants, .tenant_count = 100 });
    measure_list("1000 tenants, active",
                 (struct bh_job_filter){ .tenants = tenants, .tenant_count = TENANTS, .active_only = true });
    measure_list("1000 tenants, principal",
                 (struct bh_job_filter){ .tenants = tenants, .tenant_count = TENANTS, .principal_id = 7 });
    measure_list("last page", (struct bh_job_filter){ .after = PENDING - 100 });
}

/* What a store in a folder of our own leaves behind after it was closed. */
static void
remove_folder(const char *folder, const char *path)
{
    char lock[4200];

    snprintf(lock, sizeof lock, "%s.lock", path);
    if (unlink(path) != 0 || unlink(lock) != 0 || rmdir(folder) != 0)
        fprintf(stderr, "store_bench: cannot remove %s\n", folder);
}

int
main(int argc, char **argv)
{
    char folder[] = "/tmp/store-bench-XXXXXX", path[4096];
    static const uint32_t batches[] = { 1, 8, 64, 256 };
    uint64_t number = 0;
    bh_ns span = 2 * BH_NS_PER_S;
    struct bh_err err;

    if (argc > 2)
        must(bh_parse_span(argv[2], &span, &err), &err);
    snprintf(path, sizeof path, "%s/store.db", argc > 1 ? argv[1] : mkdtemp(folder));
    must(bh_store_sqlite_open(path, BH_STORE_WRITE, crypto, &store, &err), &err);
    for (size_t i = 0; i < BH_COUNT(batches); i++)
        number = measure_batches(number, batches[i], span);
    while (number < PENDING)
        number = submit_batch(number, 64);
    printf("%" PRIu64 " jobs, all pending:\n", number);
    measure_lists();
    store.ops->close(store.self);
    if (argc == 1)
        remove_folder(folder, path);
    return 0;
}
