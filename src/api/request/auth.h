#ifndef BH_API_REQUEST_AUTH_H
#define BH_API_REQUEST_AUTH_H

#include "api/request/call.h"

/* The caller: by bearer token where one is sent, else by the credentials of the unix socket's peer.
 *
 * Fills call->caller.  uid 0 is local root.  Unix ids of jobs, 65534 and ids that no principal has are
 * refused: BH_UNAUTHENTICATED, and the hint names the line that the site file lacks.  For the record of the
 * refusal: call->unproven where credentials were sent, with the token's number where there is one of their
 * id; else on the socket call->caller has the uid alone.  A token must exist, be neither revoked nor expired,
 * and belong to a principal that is not gone. */
BH_MUST_USE bh_rc bh_auth_identify(struct bh_call *call, struct bh_err *err);

/* A fresh request id for call->caller. */
BH_MUST_USE bh_rc bh_auth_number(struct bh_call *call, struct bh_err *err);

#endif
