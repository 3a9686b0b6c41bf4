#ifndef BH_API_JOBS_IMAGE_H
#define BH_API_JOBS_IMAGE_H

#include "api/documents/job_document.h"
#include "api/request/call.h"

enum { BH_IMAGE_TEXT_SIZE = 96 };

/* From 64 hexadecimal digits; false: they are none. */
bool bh_image_row_read(const char *hex, struct bh_image_row *ret_row);

/* How far the image of a job that starts is, in words: "fetching 120 of 800 MiB"; "": nobody
 * says, or there is none. */
void bh_image_describe(const struct bh_call *call, uint64_t job, char ret_text[BH_IMAGE_TEXT_SIZE]);

/* Write the members `image` (those words, when `starts`) and `image_digest`, where there are. */
void bh_image_put(const struct bh_call *call, struct bh_json_writer *w, uint64_t job, bool starts);

#endif
