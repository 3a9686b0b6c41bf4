#ifndef BH_DAEMON_AUTHORIZATION_OBJECTS_H
#define BH_DAEMON_AUTHORIZATION_OBJECTS_H

#include "daemon/state/core.h"

/* What commands name, and what records call it. */

/* The node of that name, or the GPU of that UUID or the only one whose UUID begins so: sets one of
 * the two in `ret_cordon`.
 *   BH_NOT_FOUND  neither, with the name that was probably meant
 *   BH_INVALID    several GPUs begin so */
BH_MUST_USE bh_rc bh_objects_find_target(const struct bh_core *core, const char *target,
                                         struct bh_ev_cordon *ret_cordon, struct bh_err *err);
struct bh_record_object bh_objects_of_target(const struct bh_ev_cordon *cordon);

/* What records call the token of that id; no type: there is none. */
struct bh_record_object bh_objects_of_token(const struct bh_core *core, const char *id);

/* What a refused request named and there is, by its number; what was typed and there is not stays
 * out. */
struct bh_record_object bh_objects_of_request(const struct bh_core *core,
                                              const struct bh_refused_request *refused);

#endif
