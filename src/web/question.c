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

/* The value that stands in a template: itself, a variable part, or a parameter of the page; as long as
 * `name`. */
static const char *
question_value(const struct question_sources *from, const char *value, size_t length, char name[NAME_MAX])
{

    if (question_variable_length(value) == length && length > 0)
        return from->id;
    if (length < 4 || length - 3 >= NAME_MAX || strncmp(value, "{?", 2) != 0)
        return NULL;
    memcpy(name, value + 2, length - 3);
    name[length - 3] = '\0';
    return question_find(from, name);
}

/* "gpu/{id}": what stands before the variable part stays; NULL: too long. */
static const char *
question_fill_within(const struct question_sources *from, const char *text, char filled[FILLED_MAX])
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, filled, FILLED_MAX);
    question_put_filled(&out, text, strlen(text), from->id);
    return bh_buf_text(&out);
}

/* One parameter, "name=value" of `length` bytes, encoded into `out` as a query. */
static void
question_put_parameter(struct bh_buf *out, const struct question_sources *from, const char *pair,
                       size_t length)
{
    const char *equals = memchr(pair, '=', length);
    char name[NAME_MAX] = "", text[NAME_MAX] = "", found[NAME_MAX], filled[FILLED_MAX];
    const char *value = NULL;
    size_t name_length = equals ? (size_t)(equals - pair) : length, value_length;

    if (!equals || name_length >= sizeof name || length - name_length - 1 >= sizeof text)
        return;
    value_length = length - name_length - 1;
    memcpy(name, pair, name_length);
    memcpy(text, equals + 1, value_length);
    value = text[0] == '{' ? question_value(from, text, value_length, found)
                           : question_fill_within(from, text, filled);
    if (!value || !value[0])
        return;
    if (out->length > 0)
        bh_buf_putc(out, '&');
    bh_form_put_encoded(out, name);
    bh_buf_putc(out, '=');
    bh_form_put_encoded(out, value);
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
