#ifndef BH_CLI_AUDIT_AUDIT_VERIFIER_H
#define BH_CLI_AUDIT_AUDIT_VERIFIER_H

#include <limits.h>
#include <sys/types.h>

#include "cli/command/cli.h"

/* bulkhead-audit, the program beside this one that computes: only it loads the
 * cryptography. */
struct bh_verifier {
    pid_t pid;
    int fd; /* its standard input */
};

/* The audit log's public key: as said with --vkey, in the folder of the file `beside` (NULL:
 * none) or of the daemon here.  BH_NOT_FOUND. */
BH_MUST_USE bh_rc bh_verifier_key(const struct bh_cli *cli, const char *sibling, const char *name,
                                  char ret_path[PATH_MAX], struct bh_err *err);

/* Start it with these arguments, NULL-terminated; -o json and yaml are passed on.
 * BH_NOT_FOUND: it is missing. */
BH_MUST_USE bh_rc bh_verifier_start(const struct bh_cli *cli, const char *const *arguments,
                                    struct bh_verifier *ret_verifier, struct bh_err *err);

/* Close its input and wait for the verdict, which becomes the command's status; `rc` says
 * how feeding it went, because one that stopped reading has a verdict already. */
BH_MUST_USE bh_rc bh_verifier_end(struct bh_cli *cli, struct bh_verifier *verifier, bh_rc rc,
                                  struct bh_err *err);

#endif
