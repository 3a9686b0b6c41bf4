#ifndef BH_CLI_OPTIONS_MAN_H
#define BH_CLI_OPTIONS_MAN_H

#include "base/buf.h"

/* Manual pages in troff (man macros), each whole, made from the tables and from the
 * descriptions of the site and the job file. */
void bh_man_bulkhead(struct bh_buf *out);       /* 1: every command */
void bh_man_bulkheadd(struct bh_buf *out);      /* 8 */
void bh_man_node(struct bh_buf *out);           /* 8 */
void bh_man_bulkheadd_conf(struct bh_buf *out); /* 5 */
void bh_man_node_conf(struct bh_buf *out);      /* 5 */
void bh_man_site(struct bh_buf *out);           /* 5 */
void bh_man_job(struct bh_buf *out);            /* 5 */

/* Example configurations: every parameter with its sentence, commented out. */
void bh_man_example_bulkheadd(struct bh_buf *out);
void bh_man_example_node(struct bh_buf *out);

#endif
