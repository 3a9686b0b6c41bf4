#ifndef BH_CLI_DOCTOR_DOCTOR_H
#define BH_CLI_DOCTOR_DOCTOR_H

#include "cli/command/cli.h"

/* `bulkhead doctor`: what this machine offers, what is missing, and how to mend it. */
bh_rc bh_cli_doctor(struct bh_cli *cli, struct bh_err *err);

/* A message, and the UUID or the path that it is about; two commands with a UUID each. */
enum { BH_FINDING_BYTES_MAX = 512 };
enum bh_verdict_kind { BH_CHECK_OK, BH_CHECK_WARN, BH_CHECK_FAIL };

struct bh_finding {
    enum bh_verdict_kind verdict;
    char found[BH_FINDING_BYTES_MAX];
    char fix[BH_FINDING_BYTES_MAX]; /* "" when nothing has to be done */
};

struct bh_doctor_check {
    const char *name;
    void (*progress)(const struct bh_cli *cli, struct bh_finding *ret_finding);
};

/* The checks, in the order in which one would mend things. */
extern const struct bh_doctor_check bh_doctor_checks[];
extern const size_t bh_doctor_check_count;

/* Known holes of a crun version: NULL when there are none. */
const char *bh_doctor_crun_holes(uint32_t major, uint32_t minor, uint32_t patch);

#endif
