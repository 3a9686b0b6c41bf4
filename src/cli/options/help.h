#ifndef BH_CLI_OPTIONS_HELP_H
#define BH_CLI_OPTIONS_HELP_H

#include "base/buf.h"
#include "cli/options/options.h"

/* Texts made from tables/commands.tbl. */

/* `bulkhead --help`: all commands and the global options. */
void bh_help_overview(struct bh_buf *out);

/* `bulkhead COMMAND --help` */
void bh_help_command(struct bh_buf *out, enum bh_command_id command);

/* The completion script for bash. */
void bh_help_completion(struct bh_buf *out);

#endif
