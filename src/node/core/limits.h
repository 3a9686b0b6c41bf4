#ifndef BH_NODE_CORE_LIMITS_H
#define BH_NODE_CORE_LIMITS_H

#include "node/common/conf.h"
#include "ports/runtime.h"
#include "wire/message.h"

/* The limits of a job on the machine's processes, memory, CPU time and disks: what its START asks for, within
 * node.conf. */

/* BH_RANGE: it asks for more than node.conf gives, or for less CPU time than can be kept to. */
BH_MUST_USE bh_rc bh_limits_check(const struct bh_conf *conf, const struct bh_msg_start *start,
                                  struct bh_err *err);

/* Which disk the sandbox reads and writes so many bytes a second of, where node.conf limits it.
 * Results of bh_disk_of. */
BH_MUST_USE bh_rc bh_limits_io(const struct bh_conf *conf, struct bh_sandbox *sandbox, struct bh_err *err);

/* The rest, of a START that was checked. */
void bh_limits_put(const struct bh_conf *conf, const struct bh_msg_start *start, struct bh_sandbox *sandbox);

/* The most bytes of memory that one job may ask for. */
uint64_t bh_limits_memory_max(const struct bh_conf *conf);

#endif
