#ifndef BH_FETCH_TRANSFER_H
#define BH_FETCH_TRANSFER_H

#include <curl/curl.h>

#include "fetch/message.h"
#include "fetch/settings.h"

/* One question under way: a libcurl transfer with this house's rules. */
struct bh_transfer;

/* A question, not yet asked: add bh_transfer_easy to a multi handle.  `settings` must live
 * as long.  NULL when it cannot be asked at all, for `ret_cause`: URL, CERTIFICATE. */
BH_MUST_USE struct bh_transfer *bh_transfer_new(const struct bh_fetch_settings *settings,
                                                const struct bh_fetch_request *ask,
                                                enum bh_https_cause *ret_cause);
void bh_transfer_free(struct bh_transfer *transfer); /* take it from the multi handle first */

/* Its handle, whose CURLOPT_PRIVATE is the question. */
CURL *bh_transfer_easy(struct bh_transfer *transfer);

/* The transfer ended with `result`: the answer.  Its text lives as long as the question. */
void bh_transfer_finish(struct bh_transfer *transfer, CURLcode result, struct bh_fetch_response *ret_answer);

#endif
