#include "api/documents/revision.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"

static const struct bh_field rows[] = {
    BH_F(struct bh_revision, at_ns, BH_FIELD_NS),
    BH_F(struct bh_revision, changes, BH_FIELD_U32),
    BH_F(struct bh_revision, digest, BH_FIELD_HEX),
    BH_F(struct bh_revision, principal, BH_FIELD_U32),
};
const struct bh_fields bh_revision_fields = BH_FIELDS("revision", struct bh_revision, rows);

void
bh_revision_key(uint64_t number, char ret_key[BH_REVISION_KEY_SIZE])
{
    snprintf(ret_key, BH_REVISION_KEY_SIZE, "%020" PRIu64, number);
}

/* The number in a key: zeros before it are no number's to bh_parse_u64. */
static bool
read_key(const char *key, uint64_t *ret_number)
{
    struct bh_err unused;

    while (key[0] == '0' && key[1])
        key++;
    return bh_parse_u64(key, ret_number, &unused) == BH_OK;
}

bool
bh_revision_decode(const struct bh_document_row *row, struct bh_arena *arena,
                   struct bh_revision *ret_revision)
{
    struct bh_err unused;

    return bh_json_decode(row->value, strlen(row->value), &bh_revision_fields, ret_revision, arena, &unused)
               == BH_OK
           && read_key(row->key, &ret_revision->number);
}

bh_rc
bh_revision_read(const struct bh_store *store, uint64_t number, struct bh_arena *arena,
                 struct bh_revision *ret_revision, struct bh_err *err)
{
    char key[BH_REVISION_KEY_SIZE];
    const struct bh_document_key wanted = { BH_DOCUMENT_REVISION, key };
    struct bh_document_row row;
    bh_rc rc;

    bh_revision_key(number, key);
    rc = store->ops->get_document(store->self, &wanted, arena, &row, err);
    if (rc == BH_NOT_FOUND) {
        bh_err_set(err, rc, "no revision %" PRIu64 " of the site file is kept", number);
        return bh_err_hint(err, "`bulkhead site history` lists the last %d", BH_REVISIONS_MAX);
    }
    if (rc != BH_OK)
        return rc;
    if (!bh_revision_decode(&row, arena, ret_revision))
        return bh_err_set(err, BH_BUG, "what the store says of revision %" PRIu64 " is damaged", number);
    return BH_OK;
}

bh_rc
bh_revision_text(const struct bh_store *store, const struct bh_revision *revision, struct bh_arena *arena,
                 const char **ret_text, struct bh_err *err)
{
    struct bh_digest digest;

    memcpy(digest.bytes, revision->digest, sizeof digest.bytes);
    return store->ops->get_text(store->self, &digest, arena, ret_text, err);
}

bh_rc
bh_revision_present_text(const struct bh_store *store, struct bh_arena *arena, const char **ret_text,
                         struct bh_err *err)
{
    struct bh_digest digest;
    const char *hex;
    bh_rc rc = store->ops->get_meta(store->self, "site", arena, &hex, err);

    *ret_text = NULL;
    if (rc != BH_OK)
        return rc == BH_NOT_FOUND ? BH_OK : rc;
    if (!bh_parse_hex(hex, digest.bytes, sizeof digest.bytes))
        return bh_err_set(err, BH_BUG, "the store's site digest is damaged");
    return store->ops->get_text(store->self, &digest, arena, ret_text, err);
}

bh_rc
bh_revision_present_site(const struct bh_store *store, struct bh_arena *arena, struct bh_site *ret_site,
                         struct bh_err *err)
{
    const char *text;
    bh_rc rc = bh_revision_present_text(store, arena, &text, err);

    *ret_site = (struct bh_site){ 0 };
    if (rc != BH_OK || !text)
        return rc;
    return bh_json_decode(text, strlen(text), &bh_site_fields, ret_site, arena, err);
}

bh_rc
bh_revision_present(const struct bh_store *store, struct bh_arena *arena, uint64_t *ret_number,
                    struct bh_err *err)
{
    const char *text;
    bh_rc rc = store->ops->get_meta(store->self, "site_revision", arena, &text, err);

    *ret_number = 0;
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    return rc == BH_OK ? bh_parse_u64(text, ret_number, err) : rc;
}
