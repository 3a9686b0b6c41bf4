#include "audit/claims.h"

#include <inttypes.h>
#include <string.h>

#include "audit/canonical.h"
#include "audit/claims_internal.h"
#include "base/assert.h"
#include "base/json.h"
#include "base/num.h"
#include "ports/crypto.h"

const char *const bh_claimed_kinds[BH_CLAIMED_KINDS] = {
    [BH_CLAIMED_RECEIPT] = "receipt",
    [BH_CLAIMED_REVISION] = "revision",
    [BH_CLAIMED_IMAGE] = "image",
};

/* What the number of each kind is the number of. */
static const char *const called[BH_CLAIMED_KINDS] = {
    [BH_CLAIMED_RECEIPT] = "receipt of record",
    [BH_CLAIMED_REVISION] = "site revision",
    [BH_CLAIMED_IMAGE] = "image of job",
};

/* ---- the records ---- */

static struct document_claim *
add_document(struct bh_claims *claims, enum bh_claimed_kind kind, uint64_t number,
             const struct bh_record *record)
{
    struct document_claim *document;
    uint8_t key[32];

    bh_claim_key(key, kind, number);
    document = bh_claim_add(claims, &claims->documents, key, sizeof *document);
    if (!document)
        return NULL;
    document->claim.record = record->seq;
    document->kind = kind;
    document->number = number;
    memcpy(document->digest, record->text, sizeof document->digest);
    return document;
}

/* Before version 4 a document named the first of the records names.give that its own took along,
 * instead of that: then it stands under either number. */
static bh_rc
documents_add_other_number(struct bh_claims *claims, struct document_claim *document,
                           const struct bh_record *record, struct bh_err *err)
{
    struct document_claim *other;

    if (record->version >= BH_CLAIMS_ROWS_VERSION || claims->gives == 0)
        return BH_OK;
    other = add_document(claims, document->kind, record->seq - claims->gives, record);
    if (!other)
        return bh_claims_full(err);
    other->principal = document->principal;
    other->nth = document->nth;
    other->optional = document->optional = true;
    return BH_OK;
}

static bh_rc
claims_documents_read_receipt_record(struct bh_claims *claims, const struct bh_record *record,
                                     struct bh_err *err)
{
    struct document_claim *receipt = add_document(claims, BH_CLAIMED_RECEIPT, record->seq, record);

    return receipt ? documents_add_other_number(claims, receipt, record, err) : bh_claims_full(err);
}

static bh_rc
claims_documents_read_image_record(struct bh_claims *claims, const struct bh_record *record,
                                   struct bh_err *err)
{
    return add_document(claims, BH_CLAIMED_IMAGE, record->obj.id, record) ? BH_OK : bh_claims_full(err);
}

static const char site_verb[] = "site.apply", site_type[] = "site";

bool
bh_claims_is_site(const struct bh_record *record)
{
    return record->dec.allow && record->verb && strcmp(record->verb, site_verb) == 0
           && strcmp(record->obj.type, site_type) == 0;
}

bool
bh_claims_is_behind(const struct bh_claims *claims, uint64_t nth)
{
    return claims->revisions - nth >= BH_CLAIMS_REVISIONS_MAX;
}

/* The text of the revision in force goes with the last revision that has it. */
static void
claims_documents_read_site_text(struct bh_claims *claims, const struct bh_record *record)
{
    struct text_claim *text = bh_claim_find(&claims->texts, record->text);

    BH_ASSERT(text);
    text->revision = claims->revisions;
}

/* A file that says what the one in force says is no new revision; before the first record that is
 * left it is unknown what was in force. */
static bh_rc
claims_documents_read_site(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    struct site_claim *site = &claims->site;
    bool same = site->known && memcmp(site->digest, record->text, sizeof site->digest) == 0;
    bool unsure = !site->known && claims->pruned_to > 0;
    struct document_claim *revision;

    site->record = record->seq;
    if (same)
        return BH_OK;
    revision = add_document(claims, BH_CLAIMED_REVISION, record->seq, record);
    if (!revision)
        return bh_claims_full(err);
    revision->principal = record->actor.id;
    revision->nth = ++claims->revisions;
    claims_documents_read_site_text(claims, record);
    /* The store keeps revisions since shortly before version 4. */
    revision->optional = unsure || record->version < BH_CLAIMS_ROWS_VERSION;
    revision->at_ns = record->version < BH_CLAIMS_ROWS_VERSION ? 0 : record->ts_ns;
    site->known = true;
    site->sure = !unsure;
    site->revision = record->seq;
    site->version = record->version;
    memcpy(site->digest, record->text, sizeof site->digest);
    return documents_add_other_number(claims, revision, record, err);
}

static bh_rc
claims_documents_read_by_verb(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    static const struct {
        const char *verb, *type;
        bh_rc (*read)(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err);
    } verbs[] = {
        { "node.scrubbed", "piece", claims_documents_read_receipt_record },
        { "job.image", "job", claims_documents_read_image_record },
        { site_verb, site_type, claims_documents_read_site },
    };

    if (!record->dec.allow || !record->verb || bh_claim_is_zero(record->text))
        return BH_OK;
    for (size_t i = 0; i < BH_COUNT(verbs); i++)
        if (strcmp(verbs[i].verb, record->verb) == 0 && strcmp(verbs[i].type, record->obj.type) == 0)
            return verbs[i].read(claims, record, err);
    return BH_OK;
}

bh_rc
bh_claims_read_documents(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    bool gives = record->verb && strcmp(record->verb, BH_RECORD_NAMES_GIVE) == 0;
    bh_rc rc = claims_documents_read_by_verb(claims, record, err);

    claims->gives = gives ? claims->gives + 1 : 0;
    return rc;
}

/* ---- the rows ---- */

/* What a document says, as far as records say it. */
struct content {
    uint64_t number;
    uint8_t digest[32];
    uint64_t at_ns;
    uint32_t principal;
};

static bool
documents_read_digest(struct bh_slice object, const char *key, uint8_t ret[32])
{
    struct bh_slice value;
    char digits[65];

    return bh_slice_get(object, key, &value) && bh_slice_str(value, digits, sizeof digits)
           && bh_parse_hex(digits, ret, 32);
}

/* A key of 20 digits. */
static bool
claims_documents_read_number(const char *key, uint64_t *ret)
{
    struct bh_err unused;
    size_t zeros = strspn(key, "0");

    if (strlen(key) != 20)
        return false;
    return bh_parse_u64(zeros == 20 ? "0" : key + zeros, ret, &unused) == BH_OK;
}

/* Write it again: the document must have this text and nothing else. */
static bool
documents_is_written(struct bh_buf *wanted, const char *value)
{
    const char *text = bh_buf_text(wanted);

    return text && strcmp(text, value) == 0;
}

/* The same of a beginning, which ends where `end` is. */
static bool
documents_is_written_before(struct bh_buf *wanted, const char *value, const char *end)
{
    const char *text = bh_buf_text(wanted);

    return text && (size_t)(end - value) == strlen(text) && memcmp(value, text, strlen(text)) == 0;
}

static bool
documents_read_receipt(const struct bh_claims *claims, const struct bh_claimed_document *row,
                       struct content *ret)
{
    struct bh_slice whole = { row->value, strlen(row->value) }, receipt;
    char key[48], head[128], tail[48];
    struct bh_buf wanted;

    if (!bh_slice_get(whole, "receipt", &receipt))
        return false;
    claims->crypto->sha256(receipt.text, receipt.length, "", 0, ret->digest);
    ret->number = bh_claim_number(whole, "record");
    bh_buf_init_fixed(&wanted, key, sizeof key);
    bh_buf_printf(&wanted, "%020" PRIu64 "-%020" PRIu64, bh_claim_number(receipt, "order"),
                  bh_claim_number(receipt, "begun_ns"));
    if (!documents_is_written(&wanted, row->key))
        return false;
    bh_buf_init_fixed(&wanted, head, sizeof head);
    bh_buf_puts(&wanted, "{\"digest\":\"");
    bh_buf_put_hex(&wanted, ret->digest, sizeof ret->digest);
    bh_buf_puts(&wanted, "\",\"receipt\":");
    if (!documents_is_written_before(&wanted, whole.text, receipt.text))
        return false;
    bh_buf_init_fixed(&wanted, tail, sizeof tail);
    bh_buf_puts(&wanted, ",\"record\":");
    bh_json_put_u64(&wanted, ret->number);
    bh_buf_putc(&wanted, '}');
    return documents_is_written(&wanted, receipt.text + receipt.length);
}

static bool
documents_read_revision(const struct bh_claims *claims, const struct bh_claimed_document *row,
                        struct content *ret)
{
    struct bh_slice whole = { row->value, strlen(row->value) };

    ret->at_ns = bh_claim_number(whole, "at_ns");
    ret->principal = (uint32_t)bh_claim_number(whole, "principal");
    return claims_documents_read_number(row->key, &ret->number)
           && documents_read_digest(whole, "digest", ret->digest);
}

static bool
documents_read_image(const struct bh_claims *claims, const struct bh_claimed_document *row,
                     struct content *ret)
{
    struct bh_slice whole = { row->value, strlen(row->value) };

    return claims_documents_read_number(row->key, &ret->number)
           && documents_read_digest(whole, "digest", ret->digest);
}

static bool (*const readers[BH_CLAIMED_KINDS])(const struct bh_claims *claims,
                                               const struct bh_claimed_document *row, struct content *ret) = {
    [BH_CLAIMED_RECEIPT] = documents_read_receipt,
    [BH_CLAIMED_REVISION] = documents_read_revision,
    [BH_CLAIMED_IMAGE] = documents_read_image,
};

/* In the one way of writing it, and with what makes it one of its kind. */
static bool
claims_documents_read_content(const struct bh_claims *claims, const struct bh_claimed_document *row,
                              struct content *ret)
{
    size_t length = strlen(row->value);

    return length > 0 && bh_canonical_step(row->value, length) == length
           && readers[row->kind](claims, row, ret);
}

void
bh_claims_document(struct bh_claims *claims, const struct bh_claimed_document *row)
{
    struct document_claim *document;
    struct content content = { .number = 0 };
    uint8_t key[32];

    if (!claims_documents_read_content(claims, row, &content)) {
        bh_claims_report(claims, "%s %.60s: it does not have the form of one", bh_claimed_kinds[row->kind],
                         row->key);
        return;
    }
    bh_claim_key(key, row->kind, content.number);
    document = bh_claim_find(&claims->documents, key);
    if (!document && bh_claims_has_lost(claims)) {
        claims->result.documents.unbound++;
        return;
    }
    if (!document) {
        bh_claims_report(claims, "%s %" PRIu64 " is in the table, and no record speaks of it",
                         called[row->kind], content.number);
        return;
    }
    if (document->claim.seen)
        bh_claims_report(claims, "%s %" PRIu64 " stands twice", called[row->kind], content.number);
    document->claim.seen = true;
    if (memcmp(content.digest, document->digest, sizeof content.digest) != 0
        || content.principal != document->principal || (document->at_ns && content.at_ns != document->at_ns))
        bh_claims_report(claims, "%s %" PRIu64 ": it is not what record %" PRIu64 " says", called[row->kind],
                         content.number, document->claim.record);
    else
        claims->result.documents.good++;
}

void
bh_claims_site(struct bh_claims *claims, const char *digest, const char *revision)
{
    const struct site_claim *site = &claims->site;
    uint8_t found[32] = { 0 };
    uint64_t number = 0;
    struct bh_err unused;

    if (!site->known && claims->pruned_to > 0)
        return;
    if (digest && *digest && !bh_parse_hex(digest, found, sizeof found))
        memset(found, 0xff, sizeof found);
    if (memcmp(found, site->digest, sizeof found) != 0)
        bh_claims_report(claims, "the site file in force is not the one that record %" PRIu64 " put in force",
                         site->record);
    if (revision && *revision && bh_parse_u64(revision, &number, &unused) != BH_OK)
        number = UINT64_MAX;
    if (site->sure && site->version >= BH_CLAIMS_ROWS_VERSION && number != site->revision)
        bh_claims_report(claims,
                         "the site file in force has revision %" PRIu64 ", as the store says; record %" PRIu64
                         " put it in force",
                         number, site->revision);
}

/* ---- what is missing ---- */

/* Only as many revisions are kept; the image of a job that runs is not exported yet. */
static bool
claims_documents_is_wanted(const struct bh_claims *claims, const struct document_claim *document,
                           bool ended_alone)
{
    const struct job_claim *job;
    uint8_t key[32];

    if (document->optional)
        return false;
    if (document->kind == BH_CLAIMED_REVISION)
        return !bh_claims_is_behind(claims, document->nth);
    if (document->kind != BH_CLAIMED_IMAGE)
        return true;
    bh_claim_key(key, document->number, 0);
    job = bh_claim_find(&claims->jobs, key);
    return job && bh_claims_is_wanted(claims, job, ended_alone);
}

void
bh_claims_end_documents(struct bh_claims *claims, bool ended_alone)
{
    for (size_t i = 0; i < claims->documents.capacity; i++) {
        const struct document_claim *document = claims->documents.slots[i];

        if (!document || document->claim.seen || !claims_documents_is_wanted(claims, document, ended_alone))
            continue;
        bh_claims_report(claims, "%s %" PRIu64 " is missing in the table; record %" PRIu64 " speaks of it",
                         called[document->kind], document->number, document->claim.record);
    }
}
