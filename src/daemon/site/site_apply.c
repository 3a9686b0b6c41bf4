#include "daemon/site/site_apply.h"

#include <string.h>

#include "daemon/authorization/command.h"
#include "daemon/authorization/grants.h"
#include "daemon/batch/access.h"
#include "daemon/batch/record.h"
#include "daemon/batch/step.h"
#include "daemon/site/apply.h"
#include "daemon/site/removals.h"
#include "daemon/site/revisions.h"
#include "daemon/site/site_warnings.h"

enum {
    REMOVALS_BYTES_MAX = 256 << 10,
    NOTE_LINE_MAX = 1000,          /* bytes of a line in the record; longer ones are cut */
    NOTE_CHANGES_BYTES = 16 << 10, /* of the difference */
    NOTE_LINES_BYTES = 20 << 10    /* of all: less than BH_ENTRY_NOTE_MAX, whatever is lost where
                                      it is divided */
};

/* The engine keeps what has ended until its next step: a tenant that was removed and whose
 * last job is gone can be declared again only after it. */
static bh_rc
apply_reap_ended(struct bh_core *core, struct bh_err *err)
{
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = "tick" };
    struct bh_event event = { .kind = BH_EV_TICK };

    return bh_core_step(core, &entry, &event, err);
}

/* ---- what is removed ---- */

/* The tenants that go, in the arena. */
static bh_rc
apply_find_tenants(struct bh_core *core, const struct bh_apply_plan *plan, struct bh_arena *arena,
                   struct bh_removal *ret_removal, struct bh_err *err)
{
    uint32_t cursor = 0, count = 0, id;
    enum bh_name_kind kind;
    uint32_t *tenants;

    while (bh_plan_next_removal(plan, core, &cursor, &kind, &id))
        count += kind == BH_NAME_TENANT;
    tenants = bh_arena_alloc(arena, (count + 1) * sizeof *tenants);
    if (!tenants)
        return bh_err_set(err, BH_FULL, "the file removes more tenants at once than can be listed");
    *ret_removal = (struct bh_removal){ .tenants = tenants };
    for (cursor = 0; bh_plan_next_removal(plan, core, &cursor, &kind, &id);)
        if (kind == BH_NAME_TENANT)
            tenants[ret_removal->tenant_count++] = id;
    return BH_OK;
}

static bh_rc
apply_find_removals(struct bh_core *core, const struct bh_apply_plan *plan, struct bh_arena *arena,
                    const char **ret_removals, struct bh_err *err)
{
    struct bh_removal removal;
    uint32_t cursor = 0;
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = REMOVALS_BYTES_MAX };
    bh_rc rc = apply_find_tenants(core, plan, arena, &removal, err);

    while (rc == BH_OK && bh_plan_next_removal(plan, core, &cursor, &removal.kind, &removal.id))
        rc = bh_removal_put(core, &removal, &text, err);
    if (rc != BH_OK)
        return rc;
    *ret_removals = "";
    if (text.length > 0)
        *ret_removals = bh_buf_text(&text) ? bh_arena_strdup(arena, bh_buf_text(&text)) : NULL;
    if (!*ret_removals)
        return bh_err_set(err, BH_RANGE, "the file removes more names at once than can be listed");
    return BH_OK;
}

static bh_rc
apply_ask_for_prune(const char *removals, struct bh_err *err)
{
    size_t first = strcspn(removals, "\n"), count = 0;

    for (const char *at = removals; (at = strchr(at, '\n')); at++)
        count++;
    bh_err_set(err, BH_CONFLICT, "%zu name%s would be removed that ha%s something: %.*s%s", count,
               count == 1 ? "" : "s", count == 1 ? "s" : "ve", first < 120 ? (int)first : 120, removals,
               count > 1 || first > 120 ? "..." : "");
    return bh_err_hint(err, "apply --dry-run lists them; --prune removes them");
}

/* ---- the record ---- */

static void
site_apply_put_line(struct bh_buf *note, const char *line, size_t length)
{
    size_t kept = length < NOTE_LINE_MAX ? length : NOTE_LINE_MAX;

    while (kept < length && kept > 0 && ((unsigned char)line[kept] & 0xc0) == 0x80)
        kept--; /* no half of a character */
    bh_buf_put(note, line, kept);
    bh_buf_puts(note, kept < length ? "...\n" : "\n");
}

/* Lines of `text` while the note is shorter than `most`; returns how many were left out. */
static uint32_t
site_apply_put_lines(struct bh_buf *note, const char *prefix, const char *text, size_t most)
{
    uint32_t left = 0;

    for (size_t length; *text; text += length + 1) {
        length = strcspn(text, "\n");
        if (left > 0 || note->length + strlen(prefix) + length > most) {
            left++;
            continue;
        }
        bh_buf_puts(note, prefix);
        site_apply_put_line(note, text, length);
    }
    return left;
}

/* What the record says: the difference, then which names were removed that had something; where
 * that is longer than a record bears, how much more there is, and the digest of all lines. */
static const char *
apply_note_of(const struct bh_answer *answer, struct bh_arena *arena)
{
    const struct bh_site_changes *changes = &answer->changes;
    uint32_t left = changes->count - changes->listed;
    BH_AUTO(bh_buf_fini) struct bh_buf note = { .max = BH_ENTRY_NOTE_MAX };
    const char *copy;

    left += site_apply_put_lines(&note, "", changes->lines ? changes->lines : "", NOTE_CHANGES_BYTES);
    if (left > 0) {
        bh_buf_printf(&note, "%u more; sha256 of all %u lines: ", left, changes->count);
        bh_buf_put_hex(&note, changes->digest, sizeof changes->digest);
        bh_buf_putc(&note, '\n');
    }
    left = site_apply_put_lines(&note, "removed ", answer->removes, NOTE_LINES_BYTES);
    if (left > 0)
        bh_buf_printf(&note, "removed %u more that had something\n", left);
    if (note.length == 0)
        bh_buf_puts(&note, "no change\n");
    copy = bh_buf_text(&note) ? bh_arena_strdup(arena, bh_buf_text(&note)) : NULL;
    return copy;
}

struct applying {
    struct bh_core *core;
    const struct bh_command *command;
    struct bh_answer *answer;
    struct bh_entry entry;
};

/* The record that names the file, and the file itself: a new revision, unless it says what the
 * one in force says. */
static bh_rc
put_site(struct applying *a, struct bh_err *err)
{
    struct bh_core *core = a->core;
    const char *text = a->command->text;
    struct bh_revision revision = { .changes = a->answer->changes.count,
                                    .principal = a->command->caller.subject.principal.v };
    struct bh_digest digest;
    bh_rc rc;

    core->crypto->sha256(text, strlen(text), "", 0, digest.bytes);
    memcpy(revision.digest, digest.bytes, sizeof revision.digest);
    a->entry.text = digest.bytes;
    a->entry.note = apply_note_of(a->answer, core->arena);
    rc = bh_core_record(core, &a->entry, BH_OK, err);
    if (rc != BH_OK || strcmp(text, bh_catalog_site_text(core->catalog)) == 0)
        return rc;
    revision.number = core->journal.next_seq - 1; /* records of new names came before it */
    revision.at_ns = core->journal.last_ts_ns;
    rc = bh_revision_put(core, &revision, err);
    if (rc != BH_OK)
        return rc;
    a->answer->revision = revision.number;
    return bh_catalog_set_site(core->catalog, text, &digest, revision.number, err);
}

static bh_rc
site_apply_run(struct applying *a, struct bh_apply_plan *plan, struct bh_err *err)
{
    bh_rc rc = bh_plan_run(plan, a->core, &a->entry, err);

    if (rc == BH_OK)
        rc = put_site(a, err);
    a->core->catalog_changed = a->core->access->site_changed = true;
    if (rc != BH_OK && !bh_core_is_fatal(rc)) /* some of it is in the batch: all must go */
        return bh_err_set(err, BH_IO, "the site file could not be applied whole: %.160s", err->msg);
    return rc;
}

bh_rc
bh_site_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
            struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_verdict verdict = bh_command_authz(core, command, "site.apply", (bh_tenant_id){ 0 });
    BH_AUTO(bh_plan_free) struct bh_apply_plan *plan = NULL;
    struct applying applying = { core, command, ret_answer, { .verb = NULL } };
    bh_rc rc;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ "site.apply", verdict, BH_REACH_OBJECT }, err);
    rc = bh_grants_check_site(core, command, err);
    if (rc != BH_OK)
        return rc;
    if (command->guarded)
        rc = bh_revision_guard(core, command->revision, err);
    if (rc != BH_OK)
        return rc;
    if (!command->dry_run && bh_site_revives(core, command->site))
        rc = apply_reap_ended(core, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_plan_make(core, command->site, &plan, err);
    if (rc != BH_OK)
        return rc;
    rc = apply_find_removals(core, plan, arena, &ret_answer->removes, err);
    if (rc != BH_OK)
        return rc;
    bh_site_changes_find(core->crypto, bh_catalog_site(core->catalog), command->site, arena,
                         &ret_answer->changes);
    ret_answer->revision = bh_catalog_revision(core->catalog);
    ret_answer->warnings = bh_site_warnings(core, command->site, arena);
    if (!ret_answer->warnings)
        return bh_err_set(err, BH_FULL, "the file's warnings are too long");
    if (command->dry_run) {
        ret_answer->events = bh_plan_events(plan, arena, &ret_answer->event_count);
        return BH_OK;
    }
    if (ret_answer->removes[0] && !command->prune)
        return apply_ask_for_prune(ret_answer->removes, err);
    applying.entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    applying.entry.obj = (struct bh_record_object){ .type = "site" };
    return site_apply_run(&applying, plan, err);
}
