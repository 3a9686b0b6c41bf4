#ifndef BH_FETCH_QUESTION_H
#define BH_FETCH_QUESTION_H

#include <curl/curl.h>

#include "fetch/message.h"
#include "fetch/settings.h"

/* One question under way: a libcurl transfer with this house's rules. */
struct bh_question;

/* A question, not yet asked: add bh_question_easy to a multi handle.  `settings` must live
 * as long.  NULL when it cannot be asked at all, for `ret_cause`: URL, CERTIFICATE. */
BH_MUST_USE struct bh_question *bh_question_new(const struct bh_fetch_settings *settings,
                                                const struct bh_fetch_ask *ask,
                                                enum bh_https_cause *ret_cause);
void
bh_question_free(struct bh_question *question); /* take it from the multi handle first */

/* Its handle, whose CURLOPT_PRIVATE is the question. */
CURL *bh_question_easy(struct bh_question *question);

/* The transfer ended with `result`: the answer.  Its text lives as long as the question. */
void bh_question_finish(struct bh_question *question, CURLcode result,
                        struct bh_fetch_answer *ret_answer);

#endif
