#ifndef BH_PEOPLE_FIRST_H
#define BH_PEOPLE_FIRST_H

#include "people/people_internal.h"

/* The first admin. */

/* Offer a code where nobody can sign in. */
BH_MUST_USE bh_rc bh_first_offer(struct bh_people *people, struct bh_err *err);

bh_rc bh_serve_first(struct bh_people *people, struct bh_call *call, struct bh_err *err);

#endif
