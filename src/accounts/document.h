#ifndef BH_ACCOUNTS_DOCUMENT_H
#define BH_ACCOUNTS_DOCUMENT_H

#include "api/request/owner.h"
#include "base/fields.h"
#include "identity/totp.h"
#include "keys/keys.h"
#include "model/sign_in.h"
#include "ports/store.h"

/* What is kept of users: accounts and sessions as documents of the store. */

/* An account, by its principal's id.  Texts live in the arena that they were read into. */
struct bh_account {
    uint64_t created_ns;
    uint8_t enrol[32]; /* SHA-256 of a one-time code; zeros: none */
    uint64_t enrol_until_ns;
    uint8_t handle[32];                 /* what passkeys know the account by, random; zeros: none yet */
    const char *identity;               /* "corp/SUBJECT"; NULL: a local account */
    const char *password;               /* as identity/password.h keeps it; NULL: none */
    struct bh_texts recovery;           /* BH_RECOVERY_CODES hashes, "" where used; or none */
    uint8_t totp[BH_TOTP_SECRET_BYTES]; /* zeros: none */
    uint64_t totp_step;                 /* the last one accepted */
    /* not in the document: */
    uint32_t principal;
    uint64_t version;  /* 0: there is none yet */
    uint32_t passkeys; /* how many */
};

enum bh_session_kind { BH_SESSION_COMMAND_LINE, BH_SESSION_BROWSER, BH_SESSION_KINDS };

struct bh_session {
    uint8_t certificate[32]; /* SHA-256 of the client's, which each use must show; zeros: none */
    uint64_t created_ns, expires_ns, glass_until_ns;
    struct bh_texts groups; /* of the provider: "corp/ml-admins" */
    const char *host;       /* what it is for, as text */
    const char *identity;   /* "corp/SUBJECT"; NULL: a local account's */
    const char *refresh;    /* the provider's refresh token; NULL: it gave none */
    uint64_t refresh_ns;    /* when the provider is asked again; 0: never */
    const char *sid;        /* the provider's session; NULL: it names none */
    enum bh_session_kind kind;
    enum bh_level level;
    uint8_t secret[32]; /* SHA-256 */
    uint64_t shown_ns;  /* when the level was */
    uint64_t used_ns;
    /* not in the document: */
    const char *id;
    uint32_t principal;
    uint64_t version;
};

/* Where documents are read: accounts and sessions are sealed there by the owner thread
 * (daemon/changes/accounts.h), as they hold what signs in elsewhere. */
struct bh_documents {
    struct bh_store store;
    struct bh_keys *keys;
};

/* Read one.  BH_NOT_FOUND: there is none; an account is then empty, of that principal. */
BH_MUST_USE bh_rc bh_account_read(const struct bh_documents *documents, uint32_t principal,
                                  struct bh_arena *arena, struct bh_account *ret_account, struct bh_err *err);
BH_MUST_USE bh_rc bh_session_read(const struct bh_documents *documents, const char *id,
                                  struct bh_arena *arena, struct bh_session *ret_session, struct bh_err *err);
/* From a row of list_documents. */
BH_MUST_USE bh_rc bh_account_of(const struct bh_documents *documents, const struct bh_document_row *row,
                                struct bh_arena *arena, struct bh_account *ret_account, struct bh_err *err);
BH_MUST_USE bh_rc bh_session_of(const struct bh_documents *documents, const struct bh_document_row *row,
                                struct bh_arena *arena, struct bh_session *ret_session, struct bh_err *err);

/* What writes it, if it is still the version that was read.  BH_FULL: no room in the arena. */
BH_MUST_USE bh_rc bh_account_put(const struct bh_account *account, struct bh_arena *arena,
                                 struct bh_document_put *ret_put, struct bh_err *err);
BH_MUST_USE bh_rc bh_session_put(const struct bh_session *session, struct bh_arena *arena,
                                 struct bh_document_put *ret_put, struct bh_err *err);
/* What removes it. */
BH_MUST_USE bh_rc bh_session_drop(const struct bh_session *session, struct bh_arena *arena,
                                  struct bh_document_put *ret_put, struct bh_err *err);

extern const char *const bh_session_kind_names[BH_SESSION_KINDS];

#endif
