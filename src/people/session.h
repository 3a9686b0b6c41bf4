#ifndef BH_PEOPLE_SESSION_H
#define BH_PEOPLE_SESSION_H

#include "people/people_internal.h"

/* Opening, identifying and ending sessions. */

struct bh_opened {
    char secret[72], id[13];
    const char *name;
    const char *device;              /* keep and send it the next time */
    enum bh_level level;
    uint64_t expires_ns;
};

/* A session is bound to the certificate of the connection that it is opened over, if there is
 * one, and never to another.
 *
 * Open a session from a draft (level, kind, host, groups, ...) with what must be written
 * besides; draws its secret.  A draft without the moment when its level was shown, or its end,
 * gets them from now.  Results of bh_people_commit. */
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
/* Whom a session's secret belongs to.  BH_UNAUTHENTICATED: it is over, or it is bound and this
 * connection shows another certificate or none. */
BH_MUST_USE bh_rc bh_session_identify(struct bh_people *people, const char *secret,
                                      struct bh_call *call, struct bh_err *err);
/* Who shows a session at an operation that is open to anybody; untouched when nobody does. */
void bh_session_of_request(struct bh_people *people, struct bh_call *call,
                           struct bh_caller *ret_caller);
/* End sessions of a principal: all, but the one with the id `spare` (NULL: none). */
BH_MUST_USE bh_rc bh_sessions_end(struct bh_people *people, struct bh_call *call,
                                  uint32_t principal, const char *spare, struct bh_err *err);
/* Remove those that are over. */
void bh_sessions_sweep(struct bh_people *people);

/* Whether the caller has shown lately who he is, so that he may change his account.
 * BH_UNAUTHENTICATED: he is asked again. */
BH_MUST_USE bh_rc bh_people_fresh(const struct bh_people *people, const struct bh_call *call,
                                  struct bh_err *err);

/* The reply that tells of a session. */
void bh_put_opened(struct bh_call *call, const struct bh_opened *opened);

#endif
