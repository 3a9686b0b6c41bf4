#ifndef BH_API_ERROR_H
#define BH_API_ERROR_H

#include "api/request/call.h"

/* Replace the reply by the error shape with the code's status:
 *   {"error":{"code","message","next","operands"?,"reason"}}
 * `reason` is the engine's reason code, "none" where it has no part in it. */
void bh_error_write(struct bh_call *call, const struct bh_err *err);

/* The same for a method that a path does not have: 405 with the allowed ones. */
void bh_error_write_method(struct bh_call *call, const char *allowed);

#endif
