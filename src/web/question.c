#include "web/question.h"

#include <string.h>

enum { NAME_MAX = 64, FILLED_MAX = 512 };

/* How long the variable part at `at` is, 0 where none begins there. */
static size_t
question_variable_length(const char *at)
{
    if (strncmp(at, "{id}", 4) == 0)
        return 4;
    return strncmp(at, "{rest}", 6) == 0 ? 6 : 0;
}

static void
question_put_filled(struct bh_buf *out, const char *template, size_t length, const char *id)
{
    const char *end = template + length;

    while (template <end) {
        size_t variable = question_variable_length(template);

        if (variable > 0)
            bh_buf_puts(out, id);
        else
            bh_buf_putc(out, *template);
        template += variable ? variable : 1;
    }
}

void
bh_question_put_text(struct bh_buf *out, const char *template, const char *id)
{
    question_put_filled(out, template, strlen(template), id);
}

struct question_sources {
    const char *id;
    const char *(*parameter)(const void *self, const char *name);
    const void *self;
};

/* What `parameter` finds under a name or, behind its colon, what is meant without it. */
static const char *
question_find(const struct question_sources *from, char name[NAME_MAX])
{
    char *colon = strchr(name, ':');
    const char *value;

    if (colon)
        *colon = '\0';
    value = from->parameter(from->self, name);
    return colon && (!value || !value[0]) ? colon + 1 : value;
}

/* Append the value that stands in a template: a parameter of the page, or a text with variable parts. */
static void
question_put_value(struct bh_buf *out, const struct question_sources *from, const char *value, size_t length)
{
    char name[NAME_MAX];
    const char *found;

    if (length < 4 || length - 3 >= sizeof name || strncmp(value, "{?", 2) != 0) {
        question_put_filled(out, value, length, from->id);
        return;
    }
    memcpy(name, value + 2, length - 3);
    name[length - 3] = '\0';
    found = question_find(from, name);
    bh_buf_puts(out, found ? found : "");
}

/* One parameter, "name=value" of `length` bytes, encoded into `out` as a query. */
static void
question_put_parameter(struct bh_buf *out, const struct question_sources *from, const char *pair,
                       size_t length)
{
    BH_AUTO(bh_buf_fini) struct bh_buf value = { .max = BH_FORM_BYTES_MAX };
    const char *equals = memchr(pair, '=', length);
    size_t name_length = equals ? (size_t)(equals - pair) : length;
    char name[NAME_MAX] = "";

    if (!equals || name_length >= sizeof name)
        return;
    memcpy(name, pair, name_length);
    question_put_value(&value, from, equals + 1, length - name_length - 1);
    if (value.length == 0 || !bh_buf_text(&value))
        return;
    if (out->length > 0)
        bh_buf_putc(out, '&');
    bh_form_put_encoded(out, name);
    bh_buf_putc(out, '=');
    bh_form_put_encoded(out, bh_buf_text(&value));
}

bool
bh_question_fill(const char *template, const char *id,
                 const char *(*parameter)(const void *self, const char *name), const void *self,
                 struct bh_question *ret_question)
{
    const struct question_sources from = { id, parameter, self };
    BH_AUTO(bh_buf_fini) struct bh_buf query = { .max = BH_FORM_BYTES_MAX };
    size_t length = strcspn(template, "?");
    const char *at = template + length;
    struct bh_buf path;

    bh_buf_init_fixed(&path, ret_question->path, sizeof ret_question->path);
    /* "{?name}" stands behind the first '?' alone. */
    question_put_filled(&path, template, length, id);
    while (*at) {
        size_t pair = strcspn(++at, "&");

        question_put_parameter(&query, &from, at, pair);
        at += pair;
    }
    return bh_buf_text(&path)
           && (query.length == 0
                   ? (ret_question->parameters.count = 0, true)
                   : bh_form_parse(query.bytes, query.length, &ret_question->parameters) == BH_FAULT_NONE);
}

const char *
bh_question_parameter(const struct bh_request *request, const char *name)
{
    const struct bh_question *question = request->server;

    return question ? bh_form_get(&question->parameters, name) : NULL;
}

void
bh_question_each_parameter(const struct bh_request *request,
                           void (*sink)(void *self, const char *name, const char *value), void *self)
{
    const struct bh_question *question = request->server;

    for (uint32_t i = 0; question && i < question->parameters.count; i++)
        sink(self, question->parameters.pairs[i].name, question->parameters.pairs[i].value);
}
