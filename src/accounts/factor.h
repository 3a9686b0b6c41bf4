#ifndef BH_ACCOUNTS_FACTOR_H
#define BH_ACCOUNTS_FACTOR_H

#include "accounts/accounts_internal.h"

/* What an account shows, and the resources that change it: app and recovery codes. */

/* Whether `password` is the account's; NULL takes as long.  No more than BH_HASHES_AT_ONCE at
 * a time. */
bool bh_password_right(struct bh_accounts *accounts, const struct bh_account *account, const char *password);
/* Set a new one.  BH_INVALID: too short or too long. */
BH_MUST_USE bh_rc bh_password_new(struct bh_accounts *accounts, struct bh_call *call, const char *password,
                                  struct bh_account *account, struct bh_err *err);
/* Whether `code` is a one-time code, or a recovery code, that the account accepts now; it is
 * used up in `account`, which must be written before a session opens. */
bool bh_code_right(struct bh_accounts *accounts, struct bh_account *account, const char *code);
bool bh_account_has_factor(const struct bh_account *account);
bool bh_account_has_totp(const struct bh_account *account);

/* The caller's account, empty when there is none yet, if it may be changed now: results of
 * bh_session_check_fresh, which a session of before there was a factor does not pass. */
BH_MUST_USE bh_rc bh_own_account(struct bh_accounts *accounts, struct bh_call *call,
                                 struct bh_account *ret_account, struct bh_err *err);

/* Give an account new recovery codes; as the texts of a reply, which borrow them. */
BH_MUST_USE bh_rc bh_recovery_new(struct bh_accounts *accounts, struct bh_call *call,
                                  struct bh_account *account,
                                  char ret_codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT], struct bh_err *err);
void bh_recovery_texts(char codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT],
                       const char *ret_texts[BH_RECOVERY_CODES]);

bh_rc bh_serve_totp_begin(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_totp_confirm(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_totp_remove(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_recovery(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);

#endif
