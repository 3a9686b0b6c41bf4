#include "accounts/document.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "identity/login.h"

const char *const bh_session_kind_names[BH_SESSION_KINDS] = { "command-line", "browser" };

static const struct bh_field account_rows[] = {
    BH_F(struct bh_account, created_ns, BH_FIELD_NS),
    BH_F(struct bh_account, enrol, BH_FIELD_HEX),
    BH_F(struct bh_account, enrol_until_ns, BH_FIELD_NS),
    BH_F(struct bh_account, handle, BH_FIELD_HEX),
    BH_F(struct bh_account, identity, BH_FIELD_TEXT, .max = 400),
    BH_F(struct bh_account, password, BH_FIELD_TEXT, .max = 200),
    BH_F(struct bh_account, recovery, BH_FIELD_TEXTS, .max = BH_RECOVERY_CODES),
    BH_F(struct bh_account, totp, BH_FIELD_HEX),
    BH_F(struct bh_account, totp_step, BH_FIELD_U64),
};
static const struct bh_fields account_fields = BH_FIELDS("account", struct bh_account, account_rows);

static const struct bh_field session_rows[] = {
    BH_F(struct bh_session, certificate, BH_FIELD_HEX),
    BH_F(struct bh_session, created_ns, BH_FIELD_NS),
    BH_F(struct bh_session, expires_ns, BH_FIELD_NS),
    BH_F(struct bh_session, glass_until_ns, BH_FIELD_NS),
    BH_F(struct bh_session, groups, BH_FIELD_TEXTS, .max = 1000),
    BH_F(struct bh_session, host, BH_FIELD_TEXT, .max = 200),
    BH_F(struct bh_session, identity, BH_FIELD_TEXT, .max = 400),
    BH_F_ENUM(struct bh_session, kind, bh_session_kind_names),
    BH_F_ENUM(struct bh_session, level, bh_level_names),
    BH_F(struct bh_session, refresh, BH_FIELD_TEXT, .max = BH_TOKEN_TEXT_MAX),
    BH_F(struct bh_session, refresh_ns, BH_FIELD_NS),
    BH_F(struct bh_session, secret, BH_FIELD_HEX),
    BH_F(struct bh_session, shown_ns, BH_FIELD_NS),
    BH_F(struct bh_session, sid, BH_FIELD_TEXT, .max = 255),
    BH_F(struct bh_session, used_ns, BH_FIELD_NS),
};
static const struct bh_fields session_fields = BH_FIELDS("session", struct bh_session, session_rows);

static bh_rc
document_damaged(const char *what, struct bh_err *err)
{
    bh_rc rc = bh_err_set(err, BH_CONFLICT, "the store's %s is damaged: %.120s", what, err->msg);

    return rc;
}

struct decoding {
    const struct bh_fields *fields;
    void *ret_struct;
    struct bh_arena *arena;
};

static bh_rc
document_open_value(const struct bh_documents *documents, const struct bh_document_row *row,
                    const struct decoding *decoding, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf plain = { .max = BH_DOCUMENT_VALUE_MAX + 1 };
    const struct bh_slice item = { row->value, strlen(row->value) };
    bh_rc rc;

    rc = bh_keys_unseal(documents->keys, item, &plain, err);
    if (rc == BH_OK)
        rc = bh_json_decode(plain.bytes, plain.length, decoding->fields, decoding->ret_struct,
                            decoding->arena, err);
    if (plain.bytes)
        explicit_bzero(plain.bytes, plain.length);
    return rc;
}

bh_rc
bh_account_of(const struct bh_documents *documents, const struct bh_document_row *row, struct bh_arena *arena,
              struct bh_account *ret_account, struct bh_err *err)
{
    struct decoding decoding = { &account_fields, ret_account, arena };
    bh_rc rc = document_open_value(documents, row, &decoding, err);

    if (rc != BH_OK)
        return document_damaged("account", err);
    ret_account->principal = row->principal_id;
    ret_account->version = row->version;
    ret_account->passkeys = 0;
    return BH_OK;
}

static bool
document_count_passkey(void *self, const struct bh_document_row *row)
{
    ++*(uint32_t *)self;
    return true;
}

bh_rc
bh_account_read(const struct bh_documents *documents, uint32_t principal, struct bh_arena *arena,
                struct bh_account *ret_account, struct bh_err *err)
{
    const struct bh_store *store = &documents->store;
    struct bh_document_filter filter = { BH_DOCUMENT_PASSKEY, principal };
    struct bh_document_row row;
    uint32_t passkeys = 0;
    char key[16];
    bh_rc rc = store->ops->list_documents(store->self, &filter, document_count_passkey, &passkeys, err);

    *ret_account = (struct bh_account){ .principal = principal, .passkeys = passkeys };
    snprintf(key, sizeof key, "%" PRIu32, principal);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->get_document(store->self, &(struct bh_document_key){ BH_DOCUMENT_ACCOUNT, key }, arena,
                                  &row, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_account_of(documents, &row, arena, ret_account, err);
    ret_account->passkeys = passkeys;
    return rc;
}

bh_rc
bh_session_of(const struct bh_documents *documents, const struct bh_document_row *row, struct bh_arena *arena,
              struct bh_session *ret_session, struct bh_err *err)
{
    struct decoding decoding = { &session_fields, ret_session, arena };
    bh_rc rc = document_open_value(documents, row, &decoding, err);

    if (rc != BH_OK)
        return document_damaged("session", err);
    ret_session->id = bh_arena_strdup(arena, row->key);
    ret_session->principal = row->principal_id;
    ret_session->version = row->version;
    return ret_session->id ? BH_OK : bh_err_set(err, BH_FULL, "no room for a session");
}

bh_rc
bh_session_read(const struct bh_documents *documents, const char *id, struct bh_arena *arena,
                struct bh_session *ret_session, struct bh_err *err)
{
    const struct bh_store *store = &documents->store;
    struct bh_document_row row;
    bh_rc rc = store->ops->get_document(store->self, &(struct bh_document_key){ BH_DOCUMENT_SESSION, id },
                                        arena, &row, err);

    return rc == BH_OK ? bh_session_of(documents, &row, arena, ret_session, err) : rc;
}

static bh_rc
document_encode(const struct bh_fields *fields, const void *value, struct bh_arena *arena,
                const char **ret_text, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_DOCUMENT_VALUE_MAX };

    bh_json_encode(&text, fields, value);
    *ret_text = bh_buf_text(&text) ? bh_arena_strdup(arena, bh_buf_text(&text)) : NULL;
    if (text.bytes)
        explicit_bzero(text.bytes, text.length);
    return *ret_text ? BH_OK : bh_err_set(err, BH_FULL, "no room for a document");
}

bh_rc
bh_account_put(const struct bh_account *account, struct bh_arena *arena, struct bh_document_put *ret_put,
               struct bh_err *err)
{
    *ret_put = (struct bh_document_put){ .row = {
                                             .kind = BH_DOCUMENT_ACCOUNT,
                                             .version = account->version,
                                             .principal_id = account->principal,
                                             .key = bh_arena_printf(arena, "%" PRIu32, account->principal),
                                         } };
    if (!ret_put->row.key)
        return bh_err_set(err, BH_FULL, "no room for a document");
    return document_encode(&account_fields, account, arena, &ret_put->row.value, err);
}

bh_rc
bh_session_drop(const struct bh_session *session, struct bh_arena *arena, struct bh_document_put *ret_put,
                struct bh_err *err)
{
    *ret_put = (struct bh_document_put){ .row = {
                                             .kind = BH_DOCUMENT_SESSION,
                                             .version = session->version,
                                             .principal_id = session->principal,
                                             .key = bh_arena_strdup(arena, session->id),
                                         } };
    return ret_put->row.key ? BH_OK : bh_err_set(err, BH_FULL, "no room for a document");
}

bh_rc
bh_session_put(const struct bh_session *session, struct bh_arena *arena, struct bh_document_put *ret_put,
               struct bh_err *err)
{
    bh_rc rc = bh_session_drop(session, arena, ret_put, err);

    return rc == BH_OK ? document_encode(&session_fields, session, arena, &ret_put->row.value, err) : rc;
}
