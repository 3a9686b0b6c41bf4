#ifndef BH_DAEMON_FAILING_FIXTURE_TEST_H
#define BH_DAEMON_FAILING_FIXTURE_TEST_H

/* The fixture's core over a store whose writes can be made to fail.  Tests only. */

#include "daemon/batch.h"
#include "daemon/dispatch.h"
#include "daemon/keys_fixture_test.h"

static struct {
    const struct bh_store_ops *real;
    struct bh_store_ops ops;
    uint32_t calls, fails_at;    /* 0: never */
} failing;

static inline bool
fails_now(struct bh_err *err)
{
    if (++failing.calls != failing.fails_at)
        return false;
    bh_err_set(err, BH_IO, "failed on purpose");
    return true;
}

static inline bh_rc
failing_record(void *self, uint64_t seq, const struct bh_slice *leaf, uint8_t ret_hash[32],
               struct bh_err *err)
{
    return fails_now(err) ? BH_IO : failing.real->put_record(self, seq, leaf, ret_hash, err);
}

static inline bh_rc
failing_key(void *self, const struct bh_key_row *row, struct bh_err *err)
{
    return fails_now(err) ? BH_IO : failing.real->put_key(self, row, err);
}

static inline bh_rc
failing_erase(void *self, const struct bh_erasure *which, struct bh_err *err)
{
    return fails_now(err) ? BH_IO : failing.real->erase_jobs(self, which, err);
}

static inline bh_rc
failing_sealed(void *self, uint64_t key, struct bh_err *err)
{
    return fails_now(err) ? BH_IO : failing.real->erase_sealed(self, key, err);
}

static inline bh_rc
failing_prune(void *self, uint64_t first, uint64_t last, struct bh_err *err)
{
    return fails_now(err) ? BH_IO : failing.real->prune_records(self, first, last, err);
}

static inline bh_rc
failing_meta(void *self, const char *key, const char *value, struct bh_err *err)
{
    return fails_now(err) ? BH_IO : failing.real->put_meta(self, key, value, err);
}

static inline bh_rc
failing_commit(void *self, struct bh_err *err)
{
    if (fails_now(err)) {
        failing.real->rollback(self);
        return BH_IO;
    }
    return failing.real->commit(self, err);
}

/* The fixture's core again, over a store whose writes can be made to fail. */
static inline void
open_failing(struct fixture *f)
{
    char path[128];

    close_core(f);
    keys_fixture_must(f, prepare_core(f));
    f->core.hub = bh_hub_new();
    snprintf(path, sizeof path, "%s/bulkhead.db", f->folder);
    keys_fixture_must(f, bh_store_sqlite_open(path, BH_STORE_WRITE, f->core.crypto, &f->core.store, &f->err));
    failing.real = f->core.store.ops;
    failing.ops = *failing.real;
    failing.ops.put_record = failing_record;
    failing.ops.put_key = failing_key;
    failing.ops.erase_jobs = failing_erase;
    failing.ops.erase_sealed = failing_sealed;
    failing.ops.prune_records = failing_prune;
    failing.ops.put_meta = failing_meta;
    failing.ops.commit = failing_commit;
    failing.fails_at = 0;
    f->core.store.ops = &failing.ops;
    keys_fixture_must(f, bh_core_open(&f->core, &f->err));
}

/* One try: the batch is committed, or aborted as the owner would. */
static inline bh_rc
failing_attempt(struct fixture *f, struct bh_command *command)
{
    bh_rc rc = bh_dispatch_run(&f->core, command, f->arena, &f->answer, &f->err);

    if (!bh_core_is_fatal(rc) && bh_core_commit(&f->core, &f->err) != BH_OK)
        rc = BH_IO;
    failing.fails_at = 0;
    if (bh_core_is_fatal(rc))
        assert_true(bh_core_abort(&f->core));
    return rc;
}

#endif
