#ifndef BH_API_AUDIT_RECORD_WORDS_H
#define BH_API_AUDIT_RECORD_WORDS_H

#include "base/err.h"

/* Verbs and types of objects that records of this program, or of an older one, may have:
 * tables/record_words.tbl. A search for any other would find nothing and seem to have looked. */

/* BH_INVALID: no record has such a verb; the hint names one that is like it. */
BH_MUST_USE bh_rc bh_record_words_check_verb(const char *verb, struct bh_err *err);

/* The same of the type of an object. */
BH_MUST_USE bh_rc bh_record_words_check_object(const char *type, struct bh_err *err);

#endif
