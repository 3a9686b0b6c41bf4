#ifndef BH_ACCOUNTS_ACCOUNTS_H
#define BH_ACCOUNTS_ACCOUNTS_H

#include "api/accounts/accounts.h"
#include "api/request/owner.h"
#include "base/attr.h"
#include "keys/keys.h"
#include "ports/crypto.h"
#include "ports/https.h"
#include "ports/store.h"

/* Signing in, accounts and sessions, behind api/accounts/accounts.h.
 *
 * Workers of the HTTP server run it: they read documents from the store, decide with what
 * src/identity has, and hand the owner thread a change that holds only if what was decided on
 * is still so (struct bh_accounts_change).  So passwords are hashed and providers asked outside
 * the owner thread, and yet nothing happens twice and nothing without its record.  What is in
 * memory alone, logins under way and the newest uses, is of minutes. */
struct bh_accounts;

struct bh_accounts_options {
    struct bh_owner owner;
    struct bh_store store;
    struct bh_keys *keys; /* that accounts and sessions are sealed with */
    const struct bh_crypto_ops *crypto;
    struct bh_https https;   /* asks providers; without operations: there are none */
    const char *secrets_dir; /* files that issuers' client_secret names */
    const char *state_dir;   /* device.key, and first-admin.code while there is one */
    uint64_t (*now)(void);   /* NULL: the wall clock */
    uint32_t hash_kib;       /* memory of a password's hash; 0: identity's, tests take less */
};

/* Read the stored accounts, and offer a first admin's code while no account can sign in yet.  Failures of
 * files and of the owner. */
BH_MUST_USE bh_rc bh_accounts_open(const struct bh_accounts_options *options,
                                   struct bh_accounts **ret_accounts, struct bh_err *err);
void bh_accounts_close(struct bh_accounts *accounts);
BH_AUTO_DEFINE(struct bh_accounts *, bh_accounts_close)

struct bh_accounts_port bh_accounts_port(struct bh_accounts *accounts);

/* What is due: uses are written down, sessions that are over are removed.  Called now and
 * then, by one thread. */
void bh_accounts_maintain(struct bh_accounts *accounts);

#endif
