/* The texts that records name, and which of them may be missing: those whose key was destroyed. */
#include <inttypes.h>
#include <string.h>

#include "audit/claims_internal.h"
#include "base/assert.h"

/* Since this version of records each text but the site's own is sealed. */
enum { SEALED_VERSION = 2 };

/* ---- the records ---- */

/* What "text" of these verbs is the digest of does not stand in the table of texts. */
static bool
names_a_text(const char *verb)
{
    static const char *const others[] = { "job.image", "key.make", "node.scrubbed", "snapshot" };

    for (size_t i = 0; i < BH_COUNT(others); i++)
        if (strcmp(others[i], verb) == 0)
            return false;
    return true;
}

/* A record about a dataset names the specification of a job, which was submitted before. */
static void
texts_name(const struct bh_claims *claims, struct text_claim *text, const struct bh_record *record)
{
    text->named = true;
    text->claim.record = record->seq;
    text->at_ns = record->ts_ns;
    text->tenant = record->tenant;
    text->older = record->version < SEALED_VERSION;
    text->elsewhere = claims->pruned_to > 0 && strcmp(record->obj.type, "dataset") == 0;
}

bh_rc
bh_claims_read_text(struct bh_claims *claims, const struct bh_record *record, const uint8_t digest[32],
                    bool for_ever, struct bh_err *err)
{
    struct text_claim *text;

    if (bh_claim_is_zero(digest))
        return BH_OK;
    text = bh_claim_add(claims, &claims->texts, digest, sizeof *text);
    if (!text)
        return bh_claims_full(err);
    if (!text->named)
        texts_name(claims, text, record);
    text->for_ever = text->for_ever || for_ever;
    return BH_OK;
}

bh_rc
bh_claims_read_texts(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    if (!names_a_text(record->verb ? record->verb : ""))
        return BH_OK;
    return bh_claims_read_text(claims, record, record->text, !bh_claims_is_site(record), err);
}

/* ---- the rows ---- */

static void
texts_put_digest(char ret_text[17], const uint8_t digest[32])
{
    struct bh_buf text;

    bh_buf_init_fixed(&text, ret_text, 17);
    bh_buf_put_hex(&text, digest, 8);
    ret_text[16] = '\0';
}

/* Texts that came after the last record of an export are known at its end.  A log that was pruned, or that
 * began with imported records, may have texts that no record names. */
static void
claims_texts_add_unnamed(struct bh_claims *claims, const struct bh_claimed_text *row)
{
    char shown[17];

    if (claims->pruned_to > 0 || claims->older)
        return;
    if (!row->exported) {
        texts_put_digest(shown, row->digest);
        bh_claims_report(claims, "text %s... is in the table, and no record names it", shown);
    } else if (claims->unnamed_text == 0 || row->number < claims->unnamed_text) {
        claims->unnamed_text = row->number;
        memcpy(claims->unnamed, row->digest, sizeof claims->unnamed);
    }
}

void
bh_claims_text(struct bh_claims *claims, const struct bh_claimed_text *row)
{
    struct text_claim *text = bh_claim_find(&claims->texts, row->digest);
    char shown[17];

    if (!text) {
        claims_texts_add_unnamed(claims, row);
        return;
    }
    texts_put_digest(shown, row->digest);
    if (text->claim.seen)
        bh_claims_report(claims, "text %s... stands twice", shown);
    text->claim.seen = true;
    if (row->number > claims->last_text)
        claims->last_text = row->number;
    if (memcmp(row->digest, row->found, 32) == 0)
        claims->result.texts.good++;
    else
        bh_claims_report(claims, "text %s...: it does not have the digest that record %" PRIu64 " names",
                         shown, text->claim.record);
}

/* ---- what is missing ---- */

struct months {
    uint32_t first, last;
};

/* In which the text of a record was sealed, or the key that it speaks of made. */
static struct months
texts_months_of(uint64_t record_ns)
{
    uint64_t before_ns = record_ns > BH_CLAIMS_MOMENT_NS ? record_ns - BH_CLAIMS_MOMENT_NS : 0;

    return (struct months){ bh_time_month(before_ns), bh_time_month(record_ns) };
}

/* In which the key sealed.  Where no bound row says it, the time of its record does: a key is made
 * when it is first needed.  One whose record was pruned sealed before the first that is left. */
static struct months
texts_months_of_key(const struct bh_claims *claims, const struct key_claim *key)
{
    if (key->dated)
        return (struct months){ key->month, key->month };
    if (key->made)
        return texts_months_of(key->made_ns);
    return (struct months){ 0, bh_time_month(claims->first_ts_ns) };
}

static bool
texts_is_common(struct months a, struct months b)
{
    return a.first <= b.last && b.first <= a.last;
}

static bool
texts_is_destroyed_after(const struct key_claim *key, uint64_t record)
{
    return key->destroyed_since || (key->destroyed && key->destroyed_by > record);
}

/* The site's own texts are its files, which nothing seals.  Those of before sealing went with any
 * month of their tenant, as far as records say. */
bool
bh_claims_is_erased(const struct bh_claims *claims, const struct text_claim *text)
{
    const struct months sealed = texts_months_of(text->at_ns);
    const struct tenant_claim *tenant;
    uint8_t of[32];

    bh_claim_key(of, text->tenant, 0);
    tenant = bh_claim_find(&claims->tenants, of);
    if (!tenant || text->tenant == 0)
        return false;
    if (text->older && tenant->shredded && tenant->claim.record > text->claim.record)
        return true;
    for (const struct key_claim *key = tenant->keys; key; key = key->next)
        if (texts_is_destroyed_after(key, text->claim.record)
            && (text->older || texts_is_common(sealed, texts_months_of_key(claims, key))))
            return true;
    return false;
}

/* The store drops the oldest revisions with their texts. */
static bool
texts_is_behind(const struct bh_claims *claims, const struct text_claim *text)
{
    return !text->for_ever && text->revision > 0 && bh_claims_is_behind(claims, text->revision);
}

void
bh_claims_end_texts(struct bh_claims *claims)
{
    if (claims->unnamed_text && claims->unnamed_text < claims->last_text) {
        char shown[17];

        texts_put_digest(shown, claims->unnamed);
        bh_claims_report(claims, "text %s... is in the table, and no record names it", shown);
    }
    for (size_t i = 0; i < claims->texts.capacity; i++) {
        const struct text_claim *text = claims->texts.slots[i];
        char shown[17];

        if (!text || text->claim.seen || texts_is_behind(claims, text))
            continue;
        BH_ASSERT(text->named);
        if (text->elsewhere) {
            claims->result.texts.unbound++;
            continue;
        }
        if (bh_claims_is_erased(claims, text)) {
            claims->result.texts.erased++;
            continue;
        }
        texts_put_digest(shown, text->claim.key);
        bh_claims_report(claims, "text %s... of record %" PRIu64 " is missing, and no record erased it",
                         shown, text->claim.record);
    }
}
