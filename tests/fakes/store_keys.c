#include "tests/fakes/store.h"

#include <string.h>

#include "base/assert.h"
#include "tests/fakes/store_state.h"

/* Keys, and making texts disappear: erased rows stay as empty ones. */

bh_rc
bh_memory_put_key(void *self, const struct bh_key_row *row, struct bh_err *err)
{
    return bh_memory_put_row(self, BH_MEMORY_KEYS, row, err);
}

struct key_walk {
    bh_key_sink sink;
    void *self;
};

static bool
emit_key(const void *row, void *context)
{
    const struct key_walk *walk = context;

    return walk->sink(walk->self, row);
}

bh_rc
bh_memory_list_keys(void *self, bh_key_sink sink, void *sink_self, struct bh_err *err)
{
    struct key_walk walk = { sink, sink_self };

    bh_memory_each_row(self, BH_MEMORY_KEYS, NULL, emit_key, &walk);
    return BH_OK;
}

static bh_rc
erase_of_key(struct bh_memory *memory, uint64_t key, const struct bh_memory_text *text, struct bh_err *err)
{
    const struct bh_memory_text row = { .digest = text->digest, .text = "", .gone = true };

    return key > 0 && text->key == key ? bh_memory_put_row(memory, BH_MEMORY_TEXTS, &row, err) : BH_OK;
}

bh_rc
bh_memory_erase_sealed(void *self, uint64_t key, struct bh_err *err)
{
    struct bh_memory *memory = self;
    const struct bh_memory_rows *put = &memory->put[BH_MEMORY_TEXTS], *kept = &memory->kept[BH_MEMORY_TEXTS];
    bh_rc rc = BH_OK;

    /* a put row is replaced in its place, so the positions stand */
    for (size_t i = 0; rc == BH_OK && i < put->count; i++)
        rc = erase_of_key(memory, key, put->at[i], err);
    for (size_t i = 0; rc == BH_OK && i < kept->count; i++)
        if (!bh_memory_find(put, BH_MEMORY_TEXTS, kept->at[i]))
            rc = erase_of_key(memory, key, kept->at[i], err);
    return rc;
}

static bool
memory_keys_is_meant(const struct bh_erasure *which, const struct bh_job_row *job)
{
    return job->tenant_id == which->tenant_id && job->submitted_ns >= which->from_ns
           && job->submitted_ns < which->before_ns;
}

/* Whether a job that is not meant has this text. */
static bool
keys_is_needed(const struct bh_memory_rows *jobs, const struct bh_erasure *which,
               const struct bh_digest *digest)
{
    for (size_t i = 0; i < jobs->count; i++) {
        const struct bh_job_row *job = jobs->at[i];

        if (memcmp(&job->spec, digest, sizeof *digest) == 0 && !memory_keys_is_meant(which, job))
            return true;
    }
    return false;
}

static bh_rc
keys_erase_text(struct bh_memory *memory, const struct bh_erasure *which, const struct bh_digest *digest,
                struct bh_err *err)
{
    struct bh_memory_text row = { .digest = *digest, .text = "", .gone = true };
    const struct bh_memory_text *found = bh_memory_find(&memory->put[BH_MEMORY_TEXTS], BH_MEMORY_TEXTS, &row);

    if (!found)
        found = bh_memory_find(&memory->kept[BH_MEMORY_TEXTS], BH_MEMORY_TEXTS, &row);
    if (!found || found->gone || found->key > 0
        || keys_is_needed(&memory->kept[BH_MEMORY_JOBS], which, digest)
        || keys_is_needed(&memory->put[BH_MEMORY_JOBS], which, digest))
        return BH_OK;
    return bh_memory_put_row(memory, BH_MEMORY_TEXTS, &row, err);
}

static bh_rc
keys_erase_job(struct bh_memory *memory, const struct bh_erasure *which, const struct bh_job_row *job,
               struct bh_err *err)
{
    struct bh_job_row blank = *job;
    bh_rc rc;

    if (!memory_keys_is_meant(which, job))
        return BH_OK;
    rc = keys_erase_text(memory, which, &job->spec, err);
    blank.name = BH_ERASED;
    if (rc != BH_OK)
        return rc;
    if (job->name[0])
        return bh_memory_put_row(memory, BH_MEMORY_JOBS, &blank, err);
    return BH_OK;
}

static bh_rc
keys_drop_replies(struct bh_memory *memory, struct bh_err *err)
{
    const struct bh_memory_rows *replies = &memory->kept[BH_MEMORY_REPLIES];
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && i < replies->count; i++) {
        struct bh_reply_row row = *(const struct bh_reply_row *)replies->at[i];

        row.status = 0;
        row.body = "";
        rc = bh_memory_put_row(memory, BH_MEMORY_REPLIES, &row, err);
    }
    return rc;
}

static bh_rc
keys_erase_name_of(struct bh_memory *memory, const struct bh_name_row *which, const struct bh_job_row *job,
                   struct bh_err *err)
{
    struct bh_job_row blank = *job;

    if (which->kind == BH_NAME_TENANT && job->tenant_id == which->id)
        blank.tenant = BH_ERASED;
    else if (which->kind == BH_NAME_PRINCIPAL && job->principal_id == which->id)
        blank.principal = BH_ERASED;
    else
        return BH_OK;
    return bh_memory_put_row(memory, BH_MEMORY_JOBS, &blank, err);
}

bh_rc
bh_memory_erase_name(void *self, enum bh_name_kind kind, uint32_t id, struct bh_err *err)
{
    const struct bh_name_row which = { .kind = kind, .id = id };
    struct bh_memory *memory = self;
    const struct bh_memory_rows *put = &memory->put[BH_MEMORY_JOBS], *kept = &memory->kept[BH_MEMORY_JOBS];
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && i < put->count; i++)
        rc = keys_erase_name_of(memory, &which, put->at[i], err);
    for (size_t i = 0; rc == BH_OK && i < kept->count; i++)
        if (!bh_memory_find(put, BH_MEMORY_JOBS, kept->at[i]))
            rc = keys_erase_name_of(memory, &which, kept->at[i], err);
    return rc == BH_OK ? keys_drop_replies(memory, err) : rc;
}

bh_rc
bh_memory_erase_jobs(void *self, const struct bh_erasure *which, struct bh_err *err)
{
    struct bh_memory *memory = self;
    const struct bh_memory_rows *put = &memory->put[BH_MEMORY_JOBS], *kept = &memory->kept[BH_MEMORY_JOBS];
    bh_rc rc = BH_OK;

    /* a put row is replaced in its place, so the positions stand */
    for (size_t i = 0; rc == BH_OK && i < put->count; i++)
        rc = keys_erase_job(memory, which, put->at[i], err);
    for (size_t i = 0; rc == BH_OK && i < kept->count; i++)
        if (!bh_memory_find(put, BH_MEMORY_JOBS, kept->at[i]))
            rc = keys_erase_job(memory, which, kept->at[i], err);
    return rc == BH_OK ? keys_drop_replies(memory, err) : rc;
}

bh_rc
bh_memory_scrub(void *self, struct bh_err *err)
{
    const struct bh_memory *memory = self;

    BH_ASSERT(!memory->begun);
    return BH_OK;
}
