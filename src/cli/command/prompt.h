#ifndef BH_CLI_COMMAND_PROMPT_H
#define BH_CLI_COMMAND_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Asking a person for what must not be seen: passwords and codes come from the terminal
 * without echo, or from standard input, never from arguments or the environment.  Core
 * dumps of the program are off from the first question on. */

enum { BH_PROMPT_MAX = 1024 }; /* longest answer, with its NUL */

/* Ask on the controlling terminal, whatever standard input and output are; the terminal is
 * as it was afterwards, also when a signal ends the program.  `echo`: what is typed shows.
 *   BH_UNAVAILABLE  there is no terminal
 *   BH_INVALID      too long, or a control character in it
 *   BH_IO           the end of input instead of a line */
BH_MUST_USE bh_rc bh_prompt_ask(const char *question, bool echo, char ret_text[BH_PROMPT_MAX],
                                struct bh_err *err);

/* The same on the terminal `fd`. */
BH_MUST_USE bh_rc bh_prompt_ask_on(int fd, const char *question, bool echo, char ret_text[BH_PROMPT_MAX],
                                   struct bh_err *err);

/* The next line of `fd`, without its end and read byte by byte, so that what follows is
 * left for others; "" at the end of input.  BH_INVALID, BH_IO as above. */
BH_MUST_USE bh_rc bh_prompt_read_line(int fd, char ret_text[BH_PROMPT_MAX], struct bh_err *err);

#endif
