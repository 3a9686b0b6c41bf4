#ifndef BH_CLI_COMMAND_PICK_H
#define BH_CLI_COMMAND_PICK_H

#include "base/err.h"
#include "base/json.h"
#include "cli/command/cli.h"

enum { BH_PICK_NAME_MAX = 128 };

/* Which object of a list of the API is meant by a word of the command line.
 *
 * GPUs are named as `bulkhead gpu` and `bulkhead ps` show them: by UUID or the only one that
 * begins so ("GPU-3f2a", 8 bytes at least), by number ("1", "gpu1"), and behind a node's name and
 * a slash ("gpu1/0", "gpu1/GPU-3f2a"). */

/* BH_NOT_FOUND: none is meant; BH_INVALID: several are, and the hint shows how they differ. */
BH_MUST_USE bh_rc bh_pick_gpu(bh_json_value gpus, const char *word, bh_json_value *ret_gpu,
                              struct bh_err *err);

/* What names an object: its kind, for users, and its members. */
struct bh_pick_by {
    const char *kind, *key, *also;
};

/* The object whose member `key`, or `also`, is the word.  BH_NOT_FOUND: none; the hint has the
 * name that was probably meant. */
BH_MUST_USE bh_rc bh_pick_named(bh_json_value items, const struct bh_pick_by *by, const char *word,
                                bh_json_value *ret_object, struct bh_err *err);

/* The first argument as a node's name or a GPU's UUID, by the GPUs that the daemon has; what is
 * meant by neither stays as it is, for the daemon to find.  BH_INVALID: several GPUs are meant. */
BH_MUST_USE bh_rc bh_pick_target(const struct bh_cli *cli, char ret_name[BH_PICK_NAME_MAX],
                                 struct bh_err *err);

#endif
