#ifndef BH_API_JOBS_IMAGE_H
#define BH_API_JOBS_IMAGE_H

#include "api/documents/job_document.h"
#include "api/documents/replies.h"
#include "api/request/call.h"

enum { BH_IMAGE_TEXT_SIZE = 96 };

/* From 64 hexadecimal digits; false: they are none. */
bool bh_image_row_read(const char *hex, struct bh_image_row *ret_row);

/* How far the image of a job that starts is, in words: "fetching 120 of 800 MiB"; "": not
 * known, or there is none. */
void bh_image_describe(const struct bh_call *call, uint64_t job, char ret_text[BH_IMAGE_TEXT_SIZE]);

/* Fill `image` (those words, when `starts`) and `image_digest`, where they are known. */
void bh_image_fill(const struct bh_call *call, uint64_t job, bool starts, struct bh_reply_job_shown *ret);

#endif
