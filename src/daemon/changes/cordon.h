#ifndef BH_DAEMON_CHANGES_CORDON_H
#define BH_DAEMON_CHANGES_CORDON_H

#include "daemon/authorization/command.h"

/* CORDON, UNCORDON and DRAIN: what operators say of new work on a GPU or a node.  The target
 * is a node's name, a GPU's UUID, or the beginning of one that no other GPU has.
 *   BH_NOT_FOUND  there is none of that name
 *   BH_INVALID    several GPUs begin so
 *   BH_CONFLICT   the GPU whose fault is to be cleared is being reset or tested */
BH_MUST_USE bh_rc bh_cordon_run(struct bh_core *core, const struct bh_command *command,
                                struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

#endif
