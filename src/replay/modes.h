#ifndef BH_REPLAY_MODES_H
#define BH_REPLAY_MODES_H

#include <stdint.h>

/* The modes of bulkhead-replay that drive a load through the engine.  Each takes its words
 * behind the mode's name and gives the exit status: 0, 1 for a failure (said on stderr), 2
 * for a command line that makes no sense. */

enum { BH_MODE_OK, BH_MODE_FAILED, BH_MODE_USAGE };

int bh_mode_kueue(int count, char **words);
int bh_mode_philly(int count, char **words);
int bh_mode_synth(int count, char **words);

#endif
