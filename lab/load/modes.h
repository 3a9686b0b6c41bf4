#ifndef BH_LAB_LOAD_MODES_H
#define BH_LAB_LOAD_MODES_H

/* The modes of bulkhead-lab that drive a load through the engine, for base/modes.h. */

int bh_mode_kueue(int count, char **words);
int bh_mode_philly(int count, char **words);
int bh_mode_synth(int count, char **words);

#endif
