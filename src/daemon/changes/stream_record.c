#include "daemon/changes/stream_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/jobs/jobs.h"
#include "api/jobs/members.h"
#include "base/json.h"
#include "base/slice.h"
#include "daemon/authorization/allowance.h"
#include "daemon/authorization/command.h"
#include "daemon/batch/record.h"
#include "daemon/state/job_owner.h"
#include "daemon/state/texts.h"

/* The record of an end; its object is the stream, whose number is that of the record that it
 * began with.  It is no outcome: those answer orders of the engine. */
#define END "stream.end"

enum { KEY_SIZE = 24, VALUE_SIZE = 160, LOST_AT_ONCE_MAX = 512, COMMAND_BYTES_MAX = 256 << 10 };

/* ---- the beginning ---- */

/* It does not run, and may yet. */
static bh_rc
record_refuse_idle(const struct bh_job_view *view, struct bh_err *err)
{
    bh_err_set(err, BH_CONFLICT, "job %" PRIu64 " is not running: it is %s", view->job.v,
               bh_job_state_names[view->state]);
    return bh_err_hint(err, "`bulkhead wait --for start %" PRIu64 "` waits until it runs", view->job.v);
}

/* The member's lease and node, if it runs. */
static bh_rc
record_find_member(struct bh_core *core, const struct bh_command *command, const struct bh_job_view *view,
                   struct bh_member_view *ret_member, struct bh_err *err)
{
    uint32_t member = command->stream->member;
    const char *state = bh_job_state_names[view->state];
    bh_rc rc = bh_members_check(view->job.v, view->gang, member, err);

    if (rc != BH_OK)
        return rc;
    if (bh_jobs_ended(state))
        return bh_members_refuse_ended(view->job.v, state, err);
    if (!bh_view_member(core->state.engine, view->job, member, ret_member))
        return record_refuse_idle(view, err);
    if (ret_member->done) {
        bh_err_set(err, BH_CONFLICT, "member %" PRIu32 " of job %" PRIu64 " has ended", member, view->job.v);
        return bh_err_hint(err, "`bulkhead logs %" PRIu64 " --member %" PRIu32 "` shows what it wrote",
                           view->job.v, member);
    }
    if (ret_member->state != BH_JOB_RUNNING)
        return record_refuse_idle(view, err);
    if (command->op == BH_OP_JOB_FORWARD && view->kind == BH_JOB_BATCH) {
        bh_err_set(err, BH_CONFLICT, "job %" PRIu64 " is a batch job", view->job.v);
        return bh_err_hint(err, "ports are forwarded to jobs with --kind service or interactive");
    }
    return BH_OK;
}

/* The command as a JSON array, sealed; its digest is what stands in the record. */
static bh_rc
record_seal_command(struct bh_core *core, const struct bh_command *command, bh_tenant_id tenant,
                    struct bh_digest *ret_digest, struct bh_err *err)
{
    const struct bh_texts *args = &command->stream->args;
    BH_AUTO(bh_buf_fini) struct bh_buf item = { .max = 2 * COMMAND_BYTES_MAX };
    BH_AUTO(bh_buf_fini) struct bh_buf plain = { .max = COMMAND_BYTES_MAX };
    struct bh_json_writer w;
    bh_rc rc;

    w = bh_json_begin(&plain);
    bh_json_open(&w, NULL, '[');
    for (uint32_t i = 0; i < args->count; i++)
        bh_json_str(&w, NULL, args->items[i]);
    bh_json_close(&w, ']');
    if (plain.overflow)
        return bh_err_set(err, BH_RANGE, "args: too long");
    rc = bh_core_seal(core, tenant, (struct bh_slice){ plain.bytes, plain.length }, &item, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_allowance_check_text(core, command, tenant, item.length, err);
    if (rc != BH_OK)
        return rc;
    core->crypto->sha256(item.bytes, item.length, "", 0, ret_digest->bytes);
    return bh_texts_put(core, &(struct bh_text_row){ *ret_digest, tenant.v, { item.bytes, item.length } },
                        err);
}

static bh_rc
record_put_open(struct bh_core *core, const struct bh_entry *entry, uint64_t seq, struct bh_err *err)
{
    char key[KEY_SIZE], value[VALUE_SIZE];
    struct bh_document_row row = {
        .kind = BH_DOCUMENT_STREAM, .key = key, .version = 1, .principal_id = entry->actor.id, .value = value
    };

    snprintf(key, sizeof key, "%" PRIu64, seq);
    snprintf(value, sizeof value, "{\"job\":%" PRIu64 ",\"tenant\":%" PRIu32 ",\"verb\":\"%s\"}",
             entry->obj.id, entry->tenant, entry->verb);
    return core->store.ops->put_document(core->store.self, &row, err);
}

static bh_rc
record_begin(struct bh_core *core, const struct bh_command *command, struct bh_entry *entry,
             uint64_t *ret_seq, struct bh_err *err)
{
    struct bh_digest digest;
    bh_rc rc = bh_core_begin(core, err);

    if (rc == BH_OK && command->op == BH_OP_JOB_EXEC) {
        rc = record_seal_command(core, command, (bh_tenant_id){ entry->tenant }, &digest, err);
        entry->text = digest.bytes;
    }
    *ret_seq = core->journal.next_seq;
    if (rc != BH_OK)
        return rc;
    rc = bh_core_record(core, entry, BH_OK, err);
    if (rc != BH_OK)
        return rc;
    return record_put_open(core, entry, *ret_seq, err);
}

/* The verb for the submitter's own job, or for any job. */
static const char *
record_verb_for(const struct bh_command *command, const struct bh_job_owner *whose)
{
    return bh_same(whose->principal, command->caller.subject.principal) ? "job.exec" : "job.exec.any";
}

static bh_rc
stream_record_begin(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                    struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_stream_grant *grant = &ret_answer->stream;
    struct bh_member_view member;
    struct bh_job_view view;
    struct bh_verdict verdict;
    struct bh_job_owner whose;
    struct bh_entry entry;
    bh_rc rc = bh_job_owner_find(core, command->job, &whose, err);

    if (rc != BH_OK)
        return rc;
    *grant = (struct bh_stream_grant){ .tenant = whose.tenant, .verb = record_verb_for(command, &whose) };
    verdict = bh_command_authz(core, command, grant->verb, whose.tenant);
    if (!verdict.allow)
        return bh_command_deny(core, command, whose.tenant,
                               (struct bh_denial){ grant->verb, verdict, BH_REACH_OBJECT }, err);
    if (!bh_view_job(core->state.engine, command->job, &view))
        return bh_err_set(err, BH_CONFLICT, "job %" PRIu64 " is not running", command->job.v);
    rc = record_find_member(core, command, &view, &member, err);
    if (rc != BH_OK)
        return rc;
    grant->lease = member.lease.v;
    grant->socket = core->node_socket ? core->node_socket(core->node_socket_self, member.node, arena) : NULL;
    if (!grant->socket)
        return bh_err_set(err, BH_UNAVAILABLE, "the node of job %" PRIu64 " is not connected", view.job.v);
    entry = bh_command_entry(&command->caller, command->op, view.tenant, verdict);
    entry.obj = (struct bh_record_object){ .type = "job", .id = view.job.v };
    return record_begin(core, command, &entry, &grant->seq, err);
}

/* ---- the end ---- */

static bh_rc
record_end(struct bh_core *core, const struct bh_entry *entry, bh_rc res, struct bh_err *err)
{
    char key[KEY_SIZE];
    struct bh_document_row gone = {
        .kind = BH_DOCUMENT_STREAM, .key = key, .version = 2, .principal_id = entry->actor.id
    };
    bh_rc rc = bh_core_begin(core, err);

    snprintf(key, sizeof key, "%" PRIu64, entry->obj.id);
    if (rc != BH_OK)
        return rc;
    rc = bh_core_record(core, entry, res, err);
    if (rc != BH_OK)
        return rc;
    return core->store.ops->put_document(core->store.self, &gone, err);
}

static bh_rc
stream_record_end(struct bh_core *core, const struct bh_command *command, struct bh_err *err)
{
    const struct bh_stream_end *what = command->stream_end;
    char note[160];
    struct bh_entry entry = {
        BH_ENTRY_OF_SYSTEM,
        .obj = { .type = "stream", .id = what->seq },
        .tenant = what->tenant_id,
        .verb = END,
        .note = note,
    };

    snprintf(note, sizeof note,
             "exit %" PRId32 ", %" PRIu64 " bytes in, %" PRIu64 " bytes out, %" PRIu64 " connections",
             what->status, what->in_bytes, what->out_bytes, what->connections);
    return record_end(core, &entry, what->res, err);
}

bh_rc
bh_stream_record(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                 struct bh_answer *ret_answer, struct bh_err *err)
{
    if (command->stream_end && command->system)
        return stream_record_end(core, command, err);
    if (!command->stream)
        return bh_err_set(err, BH_BUG, "a stream without its request");
    return stream_record_begin(core, command, arena, ret_answer, err);
}

/* ---- after a start ---- */

struct lost {
    struct one {
        uint64_t seq, job;
        uint32_t tenant;
    } items[LOST_AT_ONCE_MAX];
    uint32_t count;
};

static bool
record_take_lost(void *self, const struct bh_document_row *row)
{
    struct lost *lost = self;
    struct one *one = &lost->items[lost->count];

    if (sscanf(row->value, "{\"job\":%" SCNu64 ",\"tenant\":%" SCNu32 "", &one->job, &one->tenant) == 2)
        lost->count++;
    one->seq = strtoull(row->key, NULL, 10);
    return lost->count < LOST_AT_ONCE_MAX;
}

bh_rc
bh_stream_record_lost(struct bh_core *core, struct bh_err *err)
{
    const struct bh_document_filter all = { .kind = BH_DOCUMENT_STREAM };
    struct lost *lost = calloc(1, sizeof *lost);
    bh_rc rc;

    if (!lost)
        return bh_err_set(err, BH_FULL, "out of memory");
    rc = core->store.ops->list_documents(core->store.self, &all, record_take_lost, lost, err);
    for (uint32_t i = 0; i < lost->count && rc == BH_OK; i++) {
        const struct one *one = &lost->items[i];
        struct bh_entry entry = {
            BH_ENTRY_OF_SYSTEM,
            .obj = { .type = "stream", .id = one->seq },
            .tenant = one->tenant,
            .verb = END,
        };

        rc = record_end(core, &entry, BH_UNCERTAIN, err);
    }
    free(lost);
    return rc;
}
