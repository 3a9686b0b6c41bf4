#ifndef BH_NODE_INIT_INIT_STREAM_H
#define BH_NODE_INIT_INIT_STREAM_H

#include <stdbool.h>
#include <sys/types.h>

/* Commands and connections that bulkhead-init adds to its job; node/common/init_message.h has the
 * messages.  Static memory, no libraries: it runs in every job. */

/* Ready the socket to the keeper, if there is one, and keep other processes of the job from
 * taking descriptors out of this one. */
void bh_init_streams_open(void);

/* A terminal of the job's own /dev/pts; both ends close on exec. */
bool bh_init_terminal(int *ret_master, int *ret_slave);

/* Report to the keeper that this process waits at the start barrier. */
void bh_init_streams_send_waits(void);

/* Hand the job's terminal to the keeper; the descriptor stays open here. */
void bh_init_streams_give(int master);

/* In a child: make `slave` its controlling terminal and its standard streams. */
void bh_init_terminal_enter(int slave);

/* In a child: become the command, or say on standard error why not, and end. */
_Noreturn void bh_init_become(char **command);

/* Wait until a child may have ended, and serve requests meanwhile.  SIGCHLD is blocked outside of it.  Does
 * not return when the keeper is gone. */
void bh_init_streams_wait(void);

/* The keeper is gone: process 1 ends, and the kernel ends every process of the job with it. */
_Noreturn void bh_init_streams_orphaned(void);

/* A child that is not the job's command has ended with that wait status. */
void bh_init_streams_reaped(pid_t pid, int status);

/* The exit status that a shell shows for a wait status. */
int bh_init_status(int status);

#endif
