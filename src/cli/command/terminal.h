#ifndef BH_CLI_COMMAND_TERMINAL_H
#define BH_CLI_COMMAND_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* The terminal of this program, while a remote one uses it. */

/* Pass every key on as it is typed.  However the program ends, the terminal is put back as it
 * was: at exit, and by whatever signal ends it.  Nothing happens where standard input is no
 * terminal. */
void bh_terminal_raw(void);
void bh_terminal_restore(void);

/* Its size; false: it is no terminal, or does not know. */
bool bh_terminal_size(uint16_t *ret_rows, uint16_t *ret_columns);

/* A descriptor that is readable whenever a signal came that is the stream's: a new size,
 * SIGINT, SIGTERM, SIGQUIT, SIGHUP; -1 when there can be none. */
int bh_terminal_signals(void);

/* The next signal that came, or 0. */
int bh_terminal_next_signal(void);

#endif
