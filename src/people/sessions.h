#ifndef BH_PEOPLE_SESSIONS_H
#define BH_PEOPLE_SESSIONS_H

#include "people/people_internal.h"

/* The resources of sessions. */

bh_rc bh_serve_sessions(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_session_end(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_sign_out(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_prove(struct bh_people *people, struct bh_call *call, struct bh_err *err);
bh_rc bh_serve_glass(struct bh_people *people, struct bh_call *call, struct bh_err *err);

#endif
