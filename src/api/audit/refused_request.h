#ifndef BH_API_AUDIT_REFUSED_REQUEST_H
#define BH_API_AUDIT_REFUSED_REQUEST_H

#include "api/request/call.h"

/* What the record of a request says that was turned away here: the deed that it asked about, and
 * what it names of what there is, also when it was refused before its body was looked at.  Names
 * that only the owner resolves are the target.  Texts live as long as the call. */
struct bh_refused_request bh_refused_request_of(struct bh_call *call);

#endif
