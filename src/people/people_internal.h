#ifndef BH_PEOPLE_PEOPLE_INTERNAL_H
#define BH_PEOPLE_PEOPLE_INTERNAL_H

#include <pthread.h>

#include "api/call.h"
#include "base/time.h"
#include "base/json.h"
#include "identity/fault.h"
#include "identity/lockout.h"
#include "identity/password.h"
#include "people/document.h"
#include "people/people.h"
#include "people/use.h"

/* What the files of this folder share. */

enum { BH_PENDING_MAX = 1024, BH_PENDING_TEXT = 256, BH_HASHES_AT_ONCE = 4,
       BH_FRESH_S = 600 /* how lately somebody who changes his account has signed in */ };

/* Something begun that another request ends; in memory, for minutes. */
enum bh_pending_kind { BH_PENDING_NONE, BH_PENDING_TOTP, BH_PENDING_PASSKEY,
                       BH_PENDING_CHALLENGE /* anybody's */ };

struct bh_pending {
    enum bh_pending_kind kind;
    char id[33];
    uint32_t principal;
    bh_ns expires;
    char secret[BH_PENDING_TEXT];
};

struct bh_people {
    struct bh_people_options options;
    struct bh_password_cost cost;
    uint8_t device_key[32];
    pthread_mutex_t mutex;           /* over all that follows */
    struct bh_lockout lockout, kept; /* counts, and as they are in the store */
    struct bh_pending pending[BH_PENDING_MAX];
    struct bh_uses uses;
    uint8_t first_code[32];          /* SHA-256 of the first admin's code */
    bool first_offered;
    pthread_cond_t hash_freed;
    uint32_t hashing;
};

bh_ns bh_people_now(const struct bh_people *people);

/* Hand a change to the owner under the call's operation; results of bh_owner_ops.command.
 * `change` may be of a caller who is not known yet. */
BH_MUST_USE bh_rc bh_people_commit(struct bh_people *people, struct bh_call *call,
                                   const struct bh_people_change *change,
                                   struct bh_answer *ret_answer, struct bh_err *err);

/* Random bytes as hex: `ret_text` holds 2 * bytes + 1. */
BH_MUST_USE bh_rc bh_people_random_hex(const struct bh_people *people, size_t bytes,
                                       char *ret_text, struct bh_err *err);

/* Something begun: a copy of `draft` with an id of its own.  BH_FULL: too much is under
 * way. */
BH_MUST_USE bh_rc bh_pending_put(struct bh_people *people, const struct bh_pending *draft,
                                 char ret_id[33], struct bh_err *err);
/* Take it out: true once.  By its id, or NULL and its principal. */
bool bh_pending_take(struct bh_people *people, enum bh_pending_kind kind, const char *id,
                     uint32_t principal, struct bh_pending *ret_pending);

/* ---- counts.c: attempts (identity/lockout.h), kept in the store ---- */

struct bh_door {
    const char *account;             /* as typed */
    const char *source;              /* address, or the Unix user */
    const char *device;              /* one that signed in before, or NULL */
    uint32_t principal;              /* whose account; 0: nobody's */
};

/* A text to keep on a device that an account signs in from; NULL: no room. */
const char *bh_device_make(const struct bh_people *people, struct bh_arena *arena,
                           uint32_t principal);

/* Fill the source from the connection, in the call's arena. */
struct bh_door bh_door_of(const struct bh_people *people, struct bh_call *call,
                          const char *account, const char *device, uint32_t principal);

/* Count an attempt, durably, before anything is compared.  BH_UNAUTHENTICATED: not now; says
 * until when. */
BH_MUST_USE bh_rc bh_attempt_begin(struct bh_people *people, struct bh_call *call,
                                   const struct bh_door *door, struct bh_err *err);
/* It failed: record that, and the one answer for every way to fail. */
bh_rc bh_attempt_failed(struct bh_people *people, struct bh_call *call,
                        const struct bh_door *door, struct bh_err *err);
/* It succeeded: what is to be written with what it leads to.  Room for BH_COUNT_PUTS. */
enum { BH_COUNT_PUTS = 3 };
BH_MUST_USE bh_rc bh_attempt_succeeded(struct bh_people *people, struct bh_call *call,
                                       const struct bh_door *door,
                                       struct bh_document_put *ret_puts, uint32_t *ret_count,
                                       struct bh_err *err);
/* Read the counts at the start. */
BH_MUST_USE bh_rc bh_counts_load(struct bh_people *people, struct bh_err *err);

/* ---- factor.c: what an account shows ---- */

/* Whether `password` is the account's; NULL takes as long.  No more than BH_HASHES_AT_ONCE at
 * a time. */
bool bh_password_right(struct bh_people *people, const struct bh_account *account,
                       const char *password);
/* Set a new one.  BH_INVALID: too short or too long. */
BH_MUST_USE bh_rc bh_password_new(struct bh_people *people, struct bh_call *call,
                                  const char *password, struct bh_account *account,
                                  struct bh_err *err);
/* Whether `code` is a one-time code, or a recovery code, that the account accepts now; it is
 * used up in `account`, which must be written before anybody is let in. */
bool bh_code_right(struct bh_people *people, struct bh_account *account, const char *code);
bool bh_account_has_factor(const struct bh_account *account);
bool bh_account_has_totp(const struct bh_account *account);
/* The caller's account, empty when there is none yet, if he may change it now. */
BH_MUST_USE bh_rc bh_own_account(struct bh_people *people, struct bh_call *call,
                                 struct bh_account *ret_account, struct bh_err *err);
/* Give an account new recovery codes, and write them under the name "recovery". */
BH_MUST_USE bh_rc bh_recovery_new(struct bh_people *people, struct bh_call *call,
                                  struct bh_account *account,
                                  char ret_codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT],
                                  struct bh_err *err);
void bh_recovery_put(struct bh_json_writer *w, char codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT]);

/* ---- session.c ---- */

struct bh_opened {
    char secret[72], id[13];
    const char *name;
    const char *device;              /* keep and send it the next time */
    enum bh_level level;
    uint64_t expires_ns;
};

/* Open a session from a draft (level, kind, host, groups, ...) with what must be written
 * besides; draws its secret.  Results of bh_people_commit. */
struct bh_opening {
    struct bh_session session;
    uint32_t principal;
    const char *person;              /* a principal's name to make; NULL: `principal` */
    const char *name;                /* for people */
    const struct bh_document_put *puts;
    uint32_t put_count;
};
BH_MUST_USE bh_rc bh_session_open(struct bh_people *people, struct bh_call *call,
                                  const struct bh_opening *opening, struct bh_opened *ret_opened,
                                  struct bh_err *err);
BH_MUST_USE bh_rc bh_session_identify(struct bh_people *people, const char *secret,
                                      struct bh_call *call, struct bh_err *err);
/* End sessions of a principal: all, but the one with the id `spare` (NULL: none). */
BH_MUST_USE bh_rc bh_sessions_end(struct bh_people *people, struct bh_call *call,
                                  uint32_t principal, const char *spare, struct bh_err *err);
/* Remove those that are over. */
void bh_sessions_sweep(struct bh_people *people);

/* Whether the caller has shown lately who he is, so that he may change his account.
 * BH_UNAUTHENTICATED: he is asked again. */
BH_MUST_USE bh_rc bh_people_fresh(const struct bh_people *people, const struct bh_call *call,
                                  struct bh_err *err);

/* ---- first.c ---- */

/* Offer a code where nobody can sign in. */
BH_MUST_USE bh_rc bh_first_offer(struct bh_people *people, struct bh_err *err);

/* ---- resources: one operation each ---- */

typedef bh_rc (*bh_people_resource_fn)(struct bh_people *people, struct bh_call *call,
                                       struct bh_err *err);

bh_rc bh_serve_ways(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_sign_in(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_first(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_prove(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_glass(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_sign_out(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_sessions(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_session_end(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_account(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_password(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_totp_begin(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_totp_confirm(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_totp_remove(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_recovery(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_accounts(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_enrol(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_reset(struct bh_people *people, struct bh_call *call, struct bh_err *err);

/* The reply that tells of a session. */
void bh_put_opened(struct bh_call *call, const struct bh_opened *opened);

#endif
