#ifndef BH_CLI_COMMAND_SETTING_H
#define BH_CLI_COMMAND_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* One key of a program's configuration file (base/params.h), which this program does not know all
 * of. */

/* The value of the last line that sets `name`, cut to `size`; `standard` where none does, or there is
 * no such file.  True: a line sets it. */
bool bh_setting_read(const char *file, const char *name, const char *standard, char *ret_value, size_t size);

/* Replace the file by one in which one line sets `name`: in the place of the first that did, else at
 * the end.  All other lines stay.  As bh_file_read and bh_file_replace. */
BH_MUST_USE bh_rc bh_setting_write(const char *file, const char *name, const char *value, struct bh_err *err);

#endif
