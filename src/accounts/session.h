#ifndef BH_ACCOUNTS_SESSION_H
#define BH_ACCOUNTS_SESSION_H

#include "accounts/accounts_internal.h"

/* Opening, identifying and ending sessions. */

/* A session is bound to the certificate of the connection that it is opened over, if there is
 * one, and never to another.
 *
 * Open a session from a draft (level, kind, host, groups, ...) with what must be written
 * besides, and answer the call with its secret.  A draft without the moment when its level was shown, or its
 * end, gets them from now.  Results of bh_accounts_commit. */
struct bh_session_opening {
    struct bh_session session;
    uint32_t principal;
    const char *person; /* a principal's name to make; NULL: `principal` */
    const char *name;   /* as text */
    const struct bh_document_put *puts;
    uint32_t put_count;
};
BH_MUST_USE bh_rc bh_session_open(struct bh_accounts *accounts, struct bh_call *call,
                                  const struct bh_session_opening *opening, struct bh_err *err);
/* The account that a session's secret belongs to.  BH_UNAUTHENTICATED: the session is over, or it is bound
 * and this connection shows another certificate or none. */
BH_MUST_USE bh_rc bh_session_identify(struct bh_accounts *accounts, const char *secret, struct bh_call *call,
                                      struct bh_err *err);
/* The caller of the session that comes with an open operation; untouched without one. */
void bh_session_of_request(struct bh_accounts *accounts, struct bh_call *call, struct bh_caller *ret_caller);
/* End sessions of a principal: all, but the one with the id `spare` (NULL: none). */
BH_MUST_USE bh_rc bh_sessions_end(struct bh_accounts *accounts, struct bh_call *call, uint32_t principal,
                                  const char *except, struct bh_err *err);
/* Remove those that are over, 200 at most; `call` is the daemon's own. */
BH_MUST_USE bh_rc bh_sessions_sweep(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err);

/* The caller's own session.  BH_CONFLICT: there is none. */
BH_MUST_USE bh_rc bh_session_own(struct bh_accounts *accounts, struct bh_call *call,
                                 struct bh_session *ret_session, struct bh_err *err);
/* The caller has just shown a factor of that level, or made it: appends the change of the
 * session, where it is one and it has not shown more. */
BH_MUST_USE bh_rc bh_session_raise(struct bh_accounts *accounts, struct bh_call *call, enum bh_level level,
                                   struct bh_puts *puts, struct bh_err *err);
/* Whether the caller has shown a factor lately, so that the account may be changed.
 * BH_UNAUTHENTICATED: a factor is needed again. */
BH_MUST_USE bh_rc bh_session_check_fresh(const struct bh_accounts *accounts, const struct bh_call *call,
                                         struct bh_err *err);

#endif
