#ifndef BH_WEB_JOB_TEXT_H
#define BH_WEB_JOB_TEXT_H

#include "base/buf.h"
#include "base/json.h"

/* A job's specification, as the API takes it, in the forms that people keep: pure. */

enum { BH_JOB_TEXT_MAX = 64 << 10 };

/* Append it as a job file. */
void bh_job_text_put_yaml(struct bh_buf *out, bh_json_value spec);

/* Append the command line that submits the same: "bulkhead submit --sku small -- sh -c 'echo 1'", a line
 * that any POSIX shell reads.  An empty list stands for none. */
void bh_job_text_put_command(struct bh_buf *out, bh_json_value spec);

/* Append one word, quoted where a shell needs it. */
void bh_job_text_put_word(struct bh_buf *out, const char *word);

#endif
