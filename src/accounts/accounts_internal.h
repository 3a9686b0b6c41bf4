#ifndef BH_ACCOUNTS_ACCOUNTS_INTERNAL_H
#define BH_ACCOUNTS_ACCOUNTS_INTERNAL_H

#include "accounts/accounts.h"
#include "accounts/document.h"
#include "accounts/issuer.h"
#include "accounts/use.h"
#include "api/request/call.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/time.h"
#include "identity/device.h"
#include "identity/fault.h"
#include "identity/lockout.h"
#include "identity/logout.h"
#include "identity/password.h"
#include "identity/secret.h"

/* What the files of this folder share. */

#define BH_ANY_PRINCIPAL UINT32_MAX

enum {
    BH_PENDING_MAX = 1024,
    BH_PENDING_TEXT = 256,
    BH_HASHES_AT_ONCE = 4,
    BH_FRESH_S = 600 /* how recent the sign-in must be to change an account */
};

/* Something begun that another request ends; in memory, for minutes. */
enum bh_pending_kind {
    BH_PENDING_NONE,
    BH_PENDING_TOTP,    /* an app's secret, until it gave a code */
    BH_PENDING_ISSUER,  /* a browser is at the provider */
    BH_PENDING_DEVICE,  /* a user types a code at the provider */
    BH_PENDING_PASSKEY, /* a browser makes one */
    BH_PENDING_GRANT    /* a command line may come for its session */
};

struct bh_pending {
    enum bh_pending_kind kind;
    char id[33];
    uint32_t principal;
    bh_ns expires;
    char issuer[64], host[128]; /* where it began; what the session is for */
    char session[16];           /* the session that confirms its user; "": none yet */
    union {
        char secret[BH_PENDING_TEXT]; /* TOTP: in hex; GRANT: the challenge */
        struct bh_login login;
        struct bh_device_login device;
    };
};

/* A passkey's challenge that was answered well (accounts/challenge.h). */
enum { BH_ANSWERED_MAX = 4096 };
struct bh_answered {
    char id[33]; /* "": free */
    bh_ns until; /* when it can no longer be answered */
};

struct bh_accounts {
    struct bh_accounts_options options;
    struct bh_documents documents;
    struct bh_password_cost cost;
    uint8_t device_key[32];
    char challenge_key[BH_SECRET_TEXT]; /* of this process alone */
    struct bh_mutex mutex;              /* over all that follows */
    struct bh_lockout lockout, kept;    /* counts, and as they are in the store */
    struct bh_pending pending[BH_PENDING_MAX];
    struct bh_uses uses;
    struct bh_answered answered[BH_ANSWERED_MAX];
    struct bh_issuer issuers[BH_ISSUERS_MAX];
    struct bh_logout_replay logouts;
    uint8_t first_code[32]; /* SHA-256 of the first admin's code */
    bool first_offered;
    struct bh_condition hash_freed;
    uint32_t hashing;
};

/* ---- accounts_common.c ---- */

/* By the options' clock. */
bh_ns bh_accounts_now(const struct bh_accounts *accounts);

/* Random bytes as hex: `ret_text` holds 2 * bytes + 1. */
BH_MUST_USE bh_rc bh_accounts_random_hex(const struct bh_accounts *accounts, size_t bytes, char *ret_text,
                                         struct bh_err *err);

/* Hand a change to the owner under the call's operation; results of bh_owner_ops.command.  The caller of
 * `change` may be unknown yet. */
BH_MUST_USE bh_rc bh_accounts_commit(struct bh_accounts *accounts, struct bh_call *call,
                                     const struct bh_accounts_change *change, struct bh_answer *ret_answer,
                                     struct bh_err *err);

/* An operation's resource. */
typedef bh_rc (*bh_accounts_resource_fn)(struct bh_accounts *accounts, struct bh_call *call,
                                         struct bh_err *err);

/* What is written together. */
enum { BH_PUTS_MAX = 8 };
struct bh_puts {
    struct bh_document_put items[BH_PUTS_MAX];
    uint32_t count;
};

/* ---- accounts_pending.c ---- */

/* Something begun: a copy of `draft` with an id of its own.  BH_FULL: too much is under
 * way. */
BH_MUST_USE bh_rc bh_pending_put(struct bh_accounts *accounts, const struct bh_pending *draft,
                                 char ret_id[33], struct bh_err *err);
/* Take it out: true once.  By its id, NULL is any, and its principal. */
bool bh_pending_consume(struct bh_accounts *accounts, enum bh_pending_kind kind, const char *id,
                        uint32_t principal, struct bh_pending *ret_pending);

#endif
