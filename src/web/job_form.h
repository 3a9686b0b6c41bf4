#ifndef BH_WEB_JOB_FORM_H
#define BH_WEB_JOB_FORM_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

/* A job's specification as the fields of a form, and back: pure. */

enum bh_job_field_kind {
    BH_JOB_FIELD_TEXT,
    BH_JOB_FIELD_NUMBER,
    BH_JOB_FIELD_WORDS,  /* a command line, in shell words: nothing in them is expanded */
    BH_JOB_FIELD_LINES,  /* a text a line */
    BH_JOB_FIELD_MOUNTS, /* SOURCE[:TARGET[:rw]] a line, as of `bulkhead submit --mount` */
    BH_JOB_FIELD_CHOICE,
    BH_JOB_FIELD_FLAG,
    BH_JOB_FIELD_TENANT, /* a choice of what the API lists */
    BH_JOB_FIELD_SKU,
};

/* Where on the form. */
enum bh_job_field_group { BH_JOB_GROUP_WHAT, BH_JOB_GROUP_HOW, BH_JOB_GROUP_MORE, BH_JOB_GROUPS };

struct bh_job_field {
    const char *key; /* of the specification, and the field's name */
    const char *label, *hint;
    enum bh_job_field_kind kind;
    enum bh_job_field_group group;
    const char *const *choices; /* of a CHOICE; the first is what is taken when none is */
    uint32_t choice_count;
};

/* In the order of the form; every key of a job has one. */
enum { BH_JOB_FIELDS = 27 };
extern const struct bh_job_field bh_job_fields[BH_JOB_FIELDS];

/* What the fields hold, in their order: texts, "" for nothing. */
struct bh_job_form {
    const char *values[BH_JOB_FIELDS];
};

/* Write the specification that the form says, as the body of POST /v1/jobs.
 *   BH_INVALID  what the API could not judge, as a quote that is not closed; the message begins with the key
 */
BH_MUST_USE bh_rc bh_job_form_put_spec(struct bh_buf *out, const struct bh_job_form *form,
                                       struct bh_err *err);

/* The form that says this specification, in the arena; "" where that is full. */
void bh_job_form_fill(bh_json_value spec, struct bh_arena *arena, struct bh_job_form *ret_form);

/* Which field a refusal is about: "mounts[0]: ..." is about mounts, "\"sku\" is missing" about sku.
 * BH_JOB_FIELDS: none. */
uint32_t bh_job_form_find(const char *message);

#endif
