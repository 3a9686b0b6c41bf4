#ifndef BH_CLI_JOBS_JOBSPEC_H
#define BH_CLI_JOBS_JOBSPEC_H

#include "cli/command/cli.h"

/* The job file that a command line names, alone or before "--"; NULL: it has the
 * program alone.
 *   BH_INVALID  several words that are no program, or none behind "--" */
BH_MUST_USE bh_rc bh_jobspec_file(const struct bh_args *args, const char **ret_file, struct bh_err *err);

/* Where the error speaks of a line, say whose: of the job file.  Returns err->rc. */
bh_rc bh_jobspec_explain(const char *file, struct bh_err *err);

/* The body of a submission, from options, a command line and a file.
 *
 * `file` is a job file's path, "-" or NULL.  A file without options goes to the server
 * as it is, so that the server judges it and records what it refuses; options, and a
 * program behind "--", replace what the file says.  Release ret_document->text with bh_buf_fini on every
 * outcome. BH_INVALID names the option; failures of reading the file. */
BH_MUST_USE bh_rc bh_jobspec_build(const struct bh_args *args, const char *file, struct bh_arena *arena,
                                   struct bh_document *ret_document, struct bh_err *err);

#endif
