#include "daemon/changes/shred.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/binding.h"
#include "audit/claims.h"
#include "base/assert.h"
#include "base/time.h"
#include "daemon/authorization/command.h"
#include "daemon/batch/record.h"

enum { TOKEN_BYTES = 8, TOKEN_TEXT = 2 * TOKEN_BYTES + 1, META_KEY = 32, TEXT_BYTES_MAX = 8 << 20 };

static const uint64_t lifetime_ns = UINT64_C(24) * 3600 * BH_NS_PER_S;

/* What is to be destroyed. */
struct shredding {
    struct bh_core *core;
    const struct bh_command *command;
    uint32_t tenant; /* 0: the site's own texts */
    uint32_t month;  /* 0: all */
    struct bh_erasure erasure;
    uint64_t *ids; /* in `arena` */
    uint32_t count, capacity;
    char meta[META_KEY]; /* where the proposal is kept */
    bool of_name;        /* a name, not keys: `ids` has `name` alone, for the token */
    enum bh_name_kind kind;
    uint32_t name;
};

/* ---- what is meant ---- */

/* The name's id, also when it is gone. */
static bool
shred_find_tenant(const struct bh_core *core, const char *path, uint32_t *ret_id)
{
    const char *known;

    *ret_id = 0;
    if (strcmp(path, "*") == 0)
        return true;
    for (uint32_t id = 1; (known = bh_catalog_name_of(core->catalog, BH_NAME_TENANT, id)); id++)
        if (strcmp(known, path) == 0) {
            *ret_id = id;
            return true;
        }
    return false;
}

static uint64_t
shred_begin_of_month(unsigned year, unsigned month)
{
    struct tm date = { .tm_year = (int)year - 1900, .tm_mon = (int)month - 1, .tm_mday = 1 };

    return (uint64_t)timegm(&date) * BH_NS_PER_S; /* month 13 is the next January */
}

static bool
shred_is_digits(const char *text, size_t count)
{
    return strspn(text, "0123456789") >= count;
}

/* "2026-11" or "all". */
static bool
shred_read_month(const char *text, uint32_t *ret_month, struct bh_erasure *erasure)
{
    unsigned year, month;

    *ret_month = 0;
    *erasure = (struct bh_erasure){ .before_ns = UINT64_MAX };
    if (strcmp(text, "all") == 0)
        return true;
    if (strlen(text) != 7 || !shred_is_digits(text, 4) || text[4] != '-' || !shred_is_digits(text + 5, 2))
        return false;
    year = (unsigned)((text[0] - '0') * 1000 + (text[1] - '0') * 100 + (text[2] - '0') * 10 + text[3] - '0');
    month = (unsigned)((text[5] - '0') * 10 + text[6] - '0');
    if (year < 1970 || year > 2200 || month < 1 || month > 12)
        return false;
    *ret_month = year * 100 + month;
    erasure->from_ns = shred_begin_of_month(year, month);
    erasure->before_ns = shred_begin_of_month(year, month + 1);
    return true;
}

/* The identities' key hangs below the site's own: that one stays.  So does the site's of
 * the present month, which seals the reason. */
static bool
shred_is_meant(const struct shredding *s, const struct bh_key_row *row)
{
    if (row->tenant_id != s->tenant || row->shredded_ns > 0
        || (s->tenant == 0 && row->month == bh_time_month(bh_core_now(s->core))))
        return false;
    if (row->kind == BH_KEY_KIND_TENANT)
        return s->month == 0 && s->tenant != 0;
    return row->kind == BH_KEY_KIND_AUDIT && (s->month == 0 || row->month == s->month);
}

static bool
shred_add_key(void *self, const struct bh_key_row *row)
{
    struct shredding *s = self;

    if (s->ids && shred_is_meant(s, row))
        s->ids[s->count] = row->id;
    s->count += shred_is_meant(s, row);
    return true;
}

/* Names of what is no person's stand in rows of jobs besides, and are not erased. */
static bool
shred_may_be_erased(uint32_t kind)
{
    return kind == BH_NAME_TENANT || kind == BH_NAME_PRINCIPAL || kind == BH_NAME_GROUP
           || kind == BH_NAME_DATASET;
}

/* "principal:bob". */
static bool
shred_read_name(struct shredding *s, const char *text)
{
    const char *colon = strchr(text, ':'), *known;
    char kind[16];

    if (!colon)
        return false;
    snprintf(kind, sizeof kind, "%.*s", (int)(colon - text), text);
    if (!shred_may_be_erased(bh_binding_kind(kind)))
        return false;
    s->kind = (enum bh_name_kind)bh_binding_kind(kind);
    for (s->name = 1; (known = bh_catalog_name_of(s->core->catalog, s->kind, s->name)); s->name++)
        if (strcmp(known, colon + 1) == 0 && strcmp(known, BH_ERASED) != 0)
            return true;
    return false;
}

static bh_rc
shred_find_name(struct shredding *s, struct bh_arena *arena, struct bh_err *err)
{
    const char *text = s->command->shred->name;

    s->of_name = true;
    if (!shred_read_name(s, text)) {
        bh_err_set(err, BH_NOT_FOUND, "name: no such name: \"%.80s\"", text);
        return bh_err_hint(err, "write tenant:, principal:, group: or dataset:NAME");
    }
    if (bh_catalog_find(s->core->catalog, s->kind, strchr(text, ':') + 1)) {
        bh_err_set(err, BH_CONFLICT, "\"%.80s\" is in use", text);
        return bh_err_hint(err, "remove it from the site file first");
    }
    snprintf(s->meta, sizeof s->meta, "shred.name.%d.%" PRIu32, (int)s->kind, s->name);
    s->ids = bh_arena_alloc(arena, sizeof *s->ids);
    BH_ASSERT(s->ids);
    s->ids[0] = (uint64_t)s->kind << 32 | s->name;
    s->count = 1;
    s->erasure = (struct bh_erasure){ .before_ns = UINT64_MAX };
    return BH_OK;
}

struct readable {
    const struct shredding *s;
    struct bh_arena *arena; /* of one text, and then of the next */
    bool found;
};

static bool
shred_find_readable(void *self, const struct bh_job_row *row)
{
    struct readable *readable = self;
    const struct shredding *s = readable->s;
    struct bh_err ignored;
    const char *text;

    bh_arena_reset(readable->arena);
    readable->found =
        row->submitted_ns >= s->erasure.from_ns && row->submitted_ns < s->erasure.before_ns
        && bh_keys_get_text(s->core->ring.keys, &row->spec, readable->arena, &text, &ignored) == BH_OK;
    return !readable->found;
}

/* Whether jobs of that time can be read although there is no key: they are from before
 * texts were sealed. */
static bool
shred_has_plain(const struct shredding *s)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(TEXT_BYTES_MAX);
    const struct bh_job_filter filter = { .tenants = &s->tenant, .tenant_count = 1, .limit = UINT32_MAX };
    struct readable readable = { s, arena, false };
    struct bh_err ignored;

    return s->core->store.ops->list_jobs(s->core->store.self, &filter, shred_find_readable, &readable,
                                         &ignored)
               == BH_OK
           && readable.found;
}

static bh_rc
shred_find_keys(struct shredding *s, struct bh_arena *arena, struct bh_err *err)
{
    const struct bh_shred_request *request = s->command->shred;

    if (!shred_find_tenant(s->core, request->tenant, &s->tenant))
        return bh_err_set(err, BH_NOT_FOUND, "tenant: no tenant was ever named \"%.80s\"", request->tenant);
    if (!shred_read_month(request->month, &s->month, &s->erasure))
        return bh_err_set(err, BH_INVALID,
                          "month: \"%.20s\" is neither a month such as "
                          "2026-11 nor \"all\"",
                          request->month);
    s->erasure.tenant_id = s->tenant;
    snprintf(s->meta, sizeof s->meta, "shred.%" PRIu32, s->tenant);
    bh_keys_each(s->core->ring.keys, shred_add_key, s);
    if (s->count == 0 && !shred_has_plain(s))
        return bh_err_set(err, BH_NOT_FOUND, "%.80s has no key of %s to destroy", request->tenant,
                          s->month ? request->month : "any month");
    s->ids = bh_arena_alloc(arena, (s->count + 1) * sizeof *s->ids);
    if (!s->ids)
        return bh_err_set(err, BH_RANGE, "%" PRIu32 " keys are too many at once", s->count);
    s->count = 0;
    bh_keys_each(s->core->ring.keys, shred_add_key, s);
    return BH_OK;
}

/* ---- what stands against it ---- */

/* Whether the tenant's path is that of `above` or stands below it. */
static bool
shred_is_within(const char *above, const char *path)
{
    size_t length = strlen(above);

    return strncmp(above, path, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static bh_rc
shred_check_hold(const struct shredding *s, struct bh_err *err)
{
    const struct bh_site *site = bh_catalog_site(s->core->catalog);
    const struct bh_site_tenant *tenants = site->tenants.items;

    for (uint32_t i = 0; i < site->tenants.count; i++)
        if (tenants[i].legal_hold
            && (s->of_name || shred_is_within(tenants[i].name, s->command->shred->tenant))) {
            bh_err_set(err, BH_CONFLICT, "%.80s is under a legal hold", tenants[i].name);
            return bh_err_hint(err, "legal_hold in the site file sets it");
        }
    return BH_OK;
}

bh_rc
bh_hold_check(const struct bh_core *core, const struct bh_site *fresh, struct bh_err *err)
{
    const struct bh_site *site = bh_catalog_site(core->catalog);
    const struct bh_site_tenant *now = site->tenants.items, *then = fresh->tenants.items;

    for (uint32_t i = 0; i < site->tenants.count; i++) {
        bool stays = !now[i].legal_hold;

        for (uint32_t k = 0; k < fresh->tenants.count && !stays; k++)
            stays = strcmp(now[i].name, then[k].name) == 0;
        if (!stays)
            return bh_err_set(err, BH_CONFLICT, "%.80s is under a legal hold and cannot be removed",
                              now[i].name);
    }
    return BH_OK;
}

static bool
shred_is_of(const struct shredding *s, const struct bh_job_view *view)
{
    if (s->of_name)
        return (s->kind == BH_NAME_TENANT && view->tenant.v == s->name)
               || (s->kind == BH_NAME_PRINCIPAL && view->principal.v == s->name);
    return view->tenant.v == s->tenant;
}

/* A job that has not ended reads its specification when it starts again.  It was sealed a
 * moment before it was submitted, so one of just after the month may be of it. */
static bh_rc
shred_check_jobs(const struct shredding *s, struct bh_err *err)
{
    struct bh_job_view view;
    uint32_t cursor = 0, count = 0;

    while (bh_view_next_job(s->core->state.engine, &cursor, &view))
        count += shred_is_of(s, &view) && view.state < BH_JOB_COMPLETED
                 && view.submitted_ns >= s->erasure.from_ns
                 && (view.submitted_ns < s->erasure.before_ns
                     || view.submitted_ns - s->erasure.before_ns < BH_CLAIMS_MOMENT_NS);
    if (count == 0)
        return BH_OK;
    bh_err_set(err, BH_CONFLICT, "%" PRIu32 " jobs of that time have not ended", count);
    return bh_err_hint(err, "cancel them, or wait for them");
}

/* ---- two persons ---- */

static bool
shred_could_confirm(const struct bh_directory *dir, const struct bh_subject *subject)
{
    return bh_authz_check(dir, subject, "key.shred", (bh_tenant_id){ 0 }).allow;
}

/* Whether a principal other than the caller holds the verb.  A group counts as one; root on the machine's
 * socket does not: it can do all that there is by itself. */
static bool
shred_has_another(const struct shredding *s)
{
    const struct bh_directory *dir = bh_catalog_get(s->core->catalog);
    uint32_t caller = s->command->caller.subject.principal.v;
    bool found = false;

    for (uint32_t i = 0; i < dir->principal_count && !found; i++) {
        const struct bh_dir_principal *p = &dir->principals[i];
        struct bh_subject subject = { .principal = p->id, .uid = UINT32_MAX };

        found = !p->gone && p->id.v != caller && shred_could_confirm(dir, &subject);
    }
    for (uint32_t i = 0; i < dir->binding_count && !found; i++) {
        const struct bh_dir_binding *binding = &dir->bindings[i];

        found = binding->principal.v == 0 && binding->tenant.v == 0
                && bh_authz_role_grants(binding->role, "key.shred");
    }
    bh_catalog_put(s->core->catalog, dir);
    return found;
}

struct proposal {
    uint32_t principal, month;
    uint64_t asked_ns;
};

/* It names who asked, when, and exactly which keys. */
static void
shred_make_token(const struct shredding *s, const struct proposal *proposal, char ret_text[TOKEN_TEXT])
{
    struct bh_sha256 hash;
    uint8_t digest[32];
    char head[120];
    struct bh_buf text;

    snprintf(head, sizeof head, "shred %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64, s->tenant,
             proposal->month, proposal->principal, proposal->asked_ns);
    s->core->crypto->sha256_begin(&hash);
    s->core->crypto->sha256_put(&hash, head, strlen(head));
    s->core->crypto->sha256_put(&hash, s->ids, s->count * sizeof *s->ids);
    s->core->crypto->sha256_finish(&hash, digest);
    bh_buf_init_fixed(&text, ret_text, TOKEN_TEXT);
    bh_buf_put_hex(&text, digest, TOKEN_BYTES);
    BH_ASSERT(bh_buf_text(&text));
}

static bh_rc
shred_record(const struct shredding *s, const struct bh_entry *like, const char *verb, struct bh_err *err)
{
    const struct bh_shred_request *request = s->command->shred;
    struct bh_entry entry = *like;
    char text[BH_ENTRY_NOTE_ITEM_MAX];

    snprintf(text, sizeof text, "%s, %s, %" PRIu32 " keys: %s", request->tenant, request->month, s->count,
             request->reason);
    entry.verb = verb;
    entry.obj = (struct bh_record_object){ .type = "tenant", .id = s->tenant };
    if (s->of_name) { /* which is said by its id alone */
        snprintf(text, sizeof text, "%s", request->reason);
        snprintf(entry.obj.type, sizeof entry.obj.type, "%s", bh_binding_kinds[s->kind]);
        entry.obj.id = s->name;
    }
    entry.note = text;
    return bh_core_record(s->core, &entry, BH_OK, err);
}

static bh_rc
shred_ask(const struct shredding *s, const struct bh_entry *entry, struct bh_arena *arena,
          struct bh_answer *ret_answer, struct bh_err *err)
{
    const struct proposal proposal = { s->command->caller.subject.principal.v, s->month,
                                       bh_core_now(s->core) };
    char value[80], token[TOKEN_TEXT];
    bh_rc rc = shred_record(s, entry, s->of_name ? "name.erase.ask" : "key.shred.ask", err);

    shred_make_token(s, &proposal, token);
    snprintf(value, sizeof value, "%" PRIu32 " %" PRIu32 " %" PRIu64, proposal.principal, proposal.month,
             proposal.asked_ns);
    if (rc == BH_OK)
        rc = s->core->store.ops->put_meta(s->core->store.self, s->meta, value, err);
    ret_answer->shred_token = bh_arena_strdup(arena, token);
    ret_answer->expires_ns = proposal.asked_ns + lifetime_ns;
    return rc;
}

static bh_rc
shred_find_proposal(const struct shredding *s, struct bh_arena *arena, struct proposal *ret,
                    struct bh_err *err)
{
    const char *value;
    bh_rc rc = s->core->store.ops->get_meta(s->core->store.self, s->meta, arena, &value, err);

    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    if (rc == BH_OK
        && sscanf(value, "%" SCNu32 " %" SCNu32 " %" SCNu64, &ret->principal, &ret->month, &ret->asked_ns)
               == 3)
        return BH_OK;
    return bh_err_set(err, BH_NOT_FOUND, "no such request is pending");
}

/* Nor does root confirm, unless it is a principal of the site that holds the verb as such. */
static bh_rc
shred_check_person(const struct shredding *s, struct bh_err *err)
{
    const struct bh_directory *dir = bh_catalog_get(s->core->catalog);
    struct bh_subject subject = s->command->caller.subject;
    bool may;

    subject.root = false;
    may = subject.principal.v && shred_could_confirm(dir, &subject);
    bh_catalog_put(s->core->catalog, dir);
    if (may)
        return BH_OK;
    bh_err_set(err, BH_DENIED, "root cannot confirm as the second administrator");
    return bh_err_hint(err, "a second administrator of the site must confirm, with a role of their own");
}

static bh_rc
shred_check_confirmation(const struct shredding *s, struct bh_arena *arena, struct bh_err *err)
{
    struct proposal proposal;
    char token[TOKEN_TEXT];
    bh_rc rc = shred_find_proposal(s, arena, &proposal, err);

    if (rc != BH_OK)
        return rc;
    if (bh_core_now(s->core) - proposal.asked_ns > lifetime_ns)
        return bh_err_set(err, BH_CONFLICT, "the request is more than a day old");
    shred_make_token(s, &proposal, token);
    if (proposal.month != s->month || strcmp(token, s->command->shred->token) != 0)
        return bh_err_set(err, BH_CONFLICT, "the token is for different keys, or from an earlier request");
    if (proposal.principal == s->command->caller.subject.principal.v) {
        bh_err_set(err, BH_DENIED, "the administrator who requested it cannot confirm it");
        return bh_err_hint(err, "a second administrator of the site must confirm");
    }
    return shred_check_person(s, err);
}

/* ---- doing it ---- */

/* The row has the record's time: a verifier of an export compares them. */
static bh_rc
shred_destroy_key(const struct shredding *s, const struct bh_entry *like, uint64_t id, struct bh_err *err)
{
    struct bh_entry entry = *like;
    bh_rc rc;

    entry.verb = "key.destroyed";
    entry.phase = BH_PHASE_EVENT;
    entry.tenant = s->tenant;
    entry.obj = (struct bh_record_object){ .type = "key", .id = id };
    rc = bh_core_record(s->core, &entry, BH_OK, err);
    if (rc != BH_OK)
        return rc;
    return bh_keys_shred(s->core->ring.keys, id, s->core->journal.last_ts_ns, err);
}

/* The record says who and why; key and name go in the same transaction. */
static bh_rc
shred_erase_name(const struct shredding *s, const struct bh_entry *entry, struct bh_err *err)
{
    const struct bh_store *store = &s->core->store;
    bh_rc rc = shred_record(s, entry, BH_RECORD_NAME_ERASE, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_catalog_erase(s->core->catalog, s->kind, s->name, s->core->journal.next_seq - 1, err);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->erase_name(store->self, s->kind, s->name, err);
    if (rc != BH_OK)
        return rc;
    s->core->catalog_changed = true;
    return BH_OK;
}

static bh_rc
shred_destroy_keys(const struct shredding *s, const struct bh_entry *entry, struct bh_err *err)
{
    const struct bh_store *store = &s->core->store;
    bh_rc rc = shred_record(s, entry, "key.shred", err);

    for (uint32_t i = 0; i < s->count && rc == BH_OK; i++)
        rc = shred_destroy_key(s, entry, s->ids[i], err);
    s->core->text_counts.dropped = true;
    bh_same_specs_forget(&s->core->same_specs); /* the store has them no more */
    return rc == BH_OK ? store->ops->erase_jobs(store->self, &s->erasure, err) : rc;
}

static bh_rc
shred_destroy(const struct shredding *s, const struct bh_entry *entry, struct bh_err *err)
{
    const struct bh_store *store = &s->core->store;
    bh_rc rc = s->of_name ? shred_erase_name(s, entry, err) : shred_destroy_keys(s, entry, err);

    if (rc == BH_OK)
        rc = store->ops->put_meta(store->self, s->meta, "", err);
    s->core->ring.scrub_due = true;
    s->core->ring.scrub_after_ns = 0;
    return rc == BH_OK || bh_core_is_fatal(rc) ? rc : bh_err_set(err, BH_IO, "%.200s", err->msg);
}

bh_rc
bh_shred_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
             struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_verdict verdict = bh_command_authz(core, command, "key.shred", (bh_tenant_id){ 0 });
    struct shredding s = { .core = core, .command = command };
    struct bh_entry entry;
    bh_rc rc;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ "key.shred", verdict, BH_REACH_OBJECT }, err);
    rc = command->shred->name ? shred_find_name(&s, arena, err) : shred_find_keys(&s, arena, err);
    if (rc != BH_OK)
        return rc;
    rc = shred_check_hold(&s, err);
    if (rc != BH_OK)
        return rc;
    rc = shred_check_jobs(&s, err);
    if (rc != BH_OK)
        return rc;
    if (command->shred->token)
        rc = shred_check_confirmation(&s, arena, err);
    if (rc != BH_OK)
        return rc;
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    ret_answer->keys = s.count;
    if (!command->shred->token && shred_has_another(&s))
        return shred_ask(&s, &entry, arena, ret_answer, err);
    return shred_destroy(&s, &entry, err);
}
