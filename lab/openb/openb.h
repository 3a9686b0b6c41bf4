#ifndef BH_LAB_OPENB_OPENB_H
#define BH_LAB_OPENB_OPENB_H

/* `bulkhead-lab openb`: with the words behind the mode's.  Returns the exit status: 0; 1 a
 * failure, or figures that are not the artifact's; 2 wrong arguments. */
int bh_openb_main(int count, char **words);

#endif
