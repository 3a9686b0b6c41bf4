#ifndef BH_WEB_QUESTION_H
#define BH_WEB_QUESTION_H

#include "identity/form.h"
#include "ports/http.h"

/* What a panel asks the API (tables/panels.tbl), filled in for one visit: a path and its parameters.
 * Pure. */
struct bh_question {
    char path[1024];
    struct bh_form parameters;
};

/* Fill the template in: "{id}" and "{rest}" stand for `id`, also within a value, a parameter whose value is
 * "{?name}" for what `parameter` finds under that name (NULL or "": the parameter is left out, or for
 * "{?name:text}" it is that text).  False: too long. */
bool bh_question_fill(const char *template, const char *id,
                      const char *(*parameter)(const void *self, const char *name), const void *self,
                      struct bh_question *ret_question);

/* Append a text of tables/panels.tbl with `id` in the place of "{id}" or "{rest}". */
void bh_question_put_text(struct bh_buf *out, const char *template, const char *id);

/* The query of a request within the process, whose `server` is a bh_question. */
const char *bh_question_parameter(const struct bh_request *request, const char *name);
void bh_question_each_parameter(const struct bh_request *request,
                                void (*sink)(void *self, const char *name, const char *value), void *self);

#endif
