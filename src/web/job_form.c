#include "web/job_form.h"

#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "base/num.h"
#include "web/job_text.h"

#define CHOICES(...)                                                                                         \
    .choices = (const char *const[]){ __VA_ARGS__ },                                                         \
    .choice_count = sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *)
#define HOW_CHOICES(...) BH_JOB_FIELD_CHOICE, HOW, CHOICES(__VA_ARGS__)
#define WHAT .group = BH_JOB_GROUP_WHAT
#define HOW .group = BH_JOB_GROUP_HOW
#define MORE .group = BH_JOB_GROUP_MORE

const struct bh_job_field bh_job_fields[BH_JOB_FIELDS] = {
    { "tenant", "Tenant", NULL, BH_JOB_FIELD_TENANT, WHAT },
    { "sku", "Size (SKU)", NULL, BH_JOB_FIELD_SKU, WHAT },
    { "args", "Command",
      "Words as in a shell, with quotes; nothing is expanded. For pipes and variables: sh -c '\xe2\x80\xa6'",
      BH_JOB_FIELD_WORDS, WHAT },
    { "image", "Image", "host, dir:PATH, oci:PATH:TAG or docker://HOST/NAME:TAG; empty: host",
      BH_JOB_FIELD_TEXT, WHAT },
    { "mounts", "Datasets and folders",
      "One a line: dataset=NAME, or a folder of the node; then :TARGET, and :rw to let the job write",
      BH_JOB_FIELD_MOUNTS, WHAT },
    { "name", "Name", "For people; may be empty", BH_JOB_FIELD_TEXT, HOW },
    { "count", "Partitions", "Of that size for each member, all on one node; empty: 1", BH_JOB_FIELD_NUMBER,
      HOW },
    { "gang", "Members", "Runs of the command that start and end together; empty: 1", BH_JOB_FIELD_NUMBER,
      HOW },
    { "time_limit", "Time limit", "90s, 2h, 1-00:00:00; empty: none", BH_JOB_FIELD_TEXT, HOW },
    { "network", "Network",
      "tenant: the tenant's other jobs on its node; egress: outward as the policy allows",
      HOW_CHOICES("none", "tenant", "egress") },
    { "priority", "Priority", "high and urgent need a role", HOW_CHOICES("normal", "low", "high", "urgent") },
    { "on_preempt", "When a higher job needs its place", NULL,
      HOW_CHOICES("requeue", "suspend", "checkpoint", "never") },
    { "hold", "Hold it until it is released", NULL, BH_JOB_FIELD_FLAG, HOW },
    { "kind", "Kind", NULL, BH_JOB_FIELD_CHOICE, MORE, CHOICES("batch", "service", "interactive") },
    { "env", "Environment", "NAME=VALUE, one a line", BH_JOB_FIELD_LINES, MORE },
    { "labels", "Labels", "NAME=VALUE, one a line", BH_JOB_FIELD_LINES, MORE },
    { "cwd", "Working directory", "/tmp, /, or a folder of the node; empty: the image's own, or /tmp",
      BH_JOB_FIELD_TEXT, MORE },
    { "cpu", "Cores", "2, 0.5; empty: the SKU's share", BH_JOB_FIELD_TEXT, MORE },
    { "memory", "Main memory", "8Gi; empty: the SKU's share", BH_JOB_FIELD_TEXT, MORE },
    { "scratch", "Disk at /scratch", "20Gi; removed with the job; empty: none", BH_JOB_FIELD_TEXT, MORE },
    { "pids", "Most processes", "Empty: the node's default", BH_JOB_FIELD_NUMBER, MORE },
    { "bandwidth", "Bandwidth", "100Mbit each way, with a network only", BH_JOB_FIELD_TEXT, MORE },
    { "deadline", "Deadline", "+2h after it is submitted, or 2026-11-20T09:27:00Z", BH_JOB_FIELD_TEXT, MORE },
    { "grace", "Grace", "Between SIGTERM and SIGKILL; empty: 10s", BH_JOB_FIELD_TEXT, MORE },
    { "checkpoint_signal", "Checkpoint signal",
      "HUP, INT, QUIT, USR1, USR2 or TERM; with on preemption checkpoint only", BH_JOB_FIELD_TEXT, MORE },
    { "input", "Input comes from an attached client", NULL, BH_JOB_FIELD_FLAG, MORE },
    { "tty", "It runs in a terminal", NULL, BH_JOB_FIELD_FLAG, MORE },
};

/* ---- from the form ---- */

struct form_writing {
    struct bh_json_writer *json;
    const char *key;
    struct bh_err *err;
};

static bool
form_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Append what a quote encloses; `at` is behind it, moves behind the other.  False: there is none. */
static bool
form_take_quoted(const char **at, char quote, struct bh_buf *word)
{
    for (; **at && **at != quote; (*at)++) {
        if (quote == '"' && **at == '\\' && (*at)[1] && strchr("\"\\$`", (*at)[1]))
            (*at)++;
        bh_buf_putc(word, **at);
    }
    return **at && (*at)++;
}

/* The next word of a command line; false: a quote is not closed. */
static bool
form_take_word(const char **at, struct bh_buf *word)
{
    bh_buf_clear(word);
    while (**at && !form_is_blank(**at)) {
        char c = *(*at)++;

        if (c == '\'' || c == '"') {
            if (!form_take_quoted(at, c, word))
                return false;
        } else if (c == '\\' && **at) {
            bh_buf_putc(word, *(*at)++);
        } else {
            bh_buf_putc(word, c);
        }
    }
    return true;
}

static bh_rc
form_put_words(const struct form_writing *w, const char *text)
{
    BH_AUTO(bh_buf_fini) struct bh_buf word = { .max = BH_JOB_TEXT_MAX };

    bh_json_open(w->json, w->key, '[');
    for (;;) {
        while (form_is_blank(*text))
            text++;
        if (!*text)
            break;
        if (!form_take_word(&text, &word)) {
            bh_err_set(w->err, BH_INVALID, "%s: a quote is not closed", w->key);
            return bh_err_hint(w->err, "close it, or write \\' for a quote that is part of a word");
        }
        bh_json_strn(w->json, NULL, word.bytes ? word.bytes : "", word.length);
    }
    bh_json_close(w->json, ']');
    return BH_OK;
}

/* "SOURCE[:TARGET[:rw]]" */
static bh_rc
form_put_mount(const struct form_writing *w, const char *text, size_t length)
{
    bool dataset = length > 8 && strncmp(text, "dataset=", 8) == 0;
    const char *end = text + length, *target = memchr(text, ':', length);
    const char *mode = target ? memchr(target + 1, ':', (size_t)(end - target - 1)) : NULL;
    const char *source = text + (dataset ? 8 : 0), *source_end = target ? target : end;

    if (mode && strncmp(mode, ":rw", (size_t)(end - mode)) != 0
        && strncmp(mode, ":ro", (size_t)(end - mode)) != 0) {
        bh_err_set(w->err, BH_INVALID, "%s: \"%.*s\" is neither rw nor ro", w->key,
                   (int)(end - mode - 1 < 40 ? end - mode - 1 : 40), mode + 1);
        return bh_err_hint(w->err, "write SOURCE, SOURCE:TARGET or SOURCE:TARGET:rw");
    }
    bh_json_open(w->json, NULL, '{');
    bh_json_strn(w->json, dataset ? "dataset" : "source", source, (size_t)(source_end - source));
    if (target && (mode ? mode : end) > target + 1)
        bh_json_strn(w->json, "target", target + 1, (size_t)((mode ? mode : end) - target - 1));
    if (mode && strncmp(mode, ":rw", 3) == 0)
        bh_json_bool(w->json, "write", true);
    bh_json_close(w->json, '}');
    return BH_OK;
}

static bh_rc
form_put_line(const struct form_writing *w, const char *text, size_t length)
{
    bh_json_strn(w->json, NULL, text, length);
    return BH_OK;
}

/* Each line that is not blank. */
static bh_rc
form_put_lines(const struct form_writing *w, const char *text,
               bh_rc (*put)(const struct form_writing *, const char *, size_t))
{
    bh_rc rc = BH_OK;

    bh_json_open(w->json, w->key, '[');
    while (*text && rc == BH_OK) {
        size_t line = strcspn(text, "\n"), begin = strspn(text, " \t"), end = line;

        while (end > begin && form_is_blank(text[end - 1]))
            end--;
        if (end > begin)
            rc = put(w, text + begin, end - begin);
        text += line + (text[line] == '\n');
    }
    bh_json_close(w->json, ']');
    return rc;
}

/* What is no number goes as it is: the API says what it expects. */
static void
form_put_number(const struct form_writing *w, const char *text)
{
    struct bh_err unused;
    uint64_t number;

    if (bh_parse_u64(text, &number, &unused) == BH_OK)
        bh_json_u64(w->json, w->key, number);
    else
        bh_json_str(w->json, w->key, text);
}

static bh_rc
form_put_value(const struct form_writing *w, const struct bh_job_field *field, const char *value)
{
    switch (field->kind) {
    case BH_JOB_FIELD_WORDS:
        return form_put_words(w, value);
    case BH_JOB_FIELD_LINES:
        return form_put_lines(w, value, form_put_line);
    case BH_JOB_FIELD_MOUNTS:
        return form_put_lines(w, value, form_put_mount);
    case BH_JOB_FIELD_NUMBER:
        form_put_number(w, value);
        return BH_OK;
    case BH_JOB_FIELD_FLAG:
        bh_json_bool(w->json, w->key, true);
        return BH_OK;
    case BH_JOB_FIELD_TEXT:
    case BH_JOB_FIELD_CHOICE:
    case BH_JOB_FIELD_TENANT:
    case BH_JOB_FIELD_SKU:
        bh_json_str(w->json, w->key, value);
        return BH_OK;
    }
    return BH_OK;
}

/* What is taken when nothing is said need not be said. */
static bool
form_says(const struct bh_job_field *field, const char *value)
{
    return value && value[strspn(value, " \t\n")]
           && !(field->choices && strcmp(field->choices[0], value) == 0);
}

bh_rc
bh_job_form_put_spec(struct bh_buf *out, const struct bh_job_form *form, struct bh_err *err)
{
    struct bh_json_writer json = bh_json_begin(out);
    bh_rc rc = BH_OK;

    bh_json_open(&json, NULL, '{');
    for (uint32_t i = 0; i < BH_JOB_FIELDS && rc == BH_OK; i++)
        if (form_says(&bh_job_fields[i], form->values[i]))
            rc = form_put_value(&(struct form_writing){ &json, bh_job_fields[i].key, err }, &bh_job_fields[i],
                                form->values[i]);
    bh_json_close(&json, '}');
    if (rc != BH_OK)
        return rc;
    return bh_buf_text(out) ? BH_OK : bh_err_set(err, BH_FULL, "the job is too large");
}

/* ---- to the form ---- */

static void
form_fill_mount(struct bh_buf *out, bh_json_value mount)
{
    const char *dataset = bh_json_text(bh_json_get(mount, "dataset"), NULL);
    const char *target = bh_json_text(bh_json_get(mount, "target"), "");
    bool write = bh_json_truth(bh_json_get(mount, "write"));

    bh_buf_puts(out, dataset ? "dataset=" : "");
    bh_buf_puts(out, dataset ? dataset : bh_json_text(bh_json_get(mount, "source"), ""));
    if (target[0] || write)
        bh_buf_printf(out, ":%s", target);
    bh_buf_puts(out, write ? ":rw" : "");
}

static void
form_fill_list(struct bh_buf *out, const struct bh_job_field *field, bh_json_value list)
{
    bool words = field->kind == BH_JOB_FIELD_WORDS;

    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_json_value item = bh_json_at(list, i);

        if (i > 0)
            bh_buf_putc(out, words ? ' ' : '\n');
        if (words)
            bh_job_text_put_word(out, bh_json_text(item, ""));
        else if (field->kind == BH_JOB_FIELD_MOUNTS)
            form_fill_mount(out, item);
        else
            bh_buf_puts(out, bh_json_text(item, ""));
    }
}

static void
form_fill_value(struct bh_buf *out, const struct bh_job_field *field, bh_json_value value)
{
    switch (bh_json_kind(value)) {
    case BH_JSON_ARRAY:
        form_fill_list(out, field, value);
        break;
    case BH_JSON_BOOL:
        bh_buf_puts(out, bh_json_truth(value) ? "true" : "");
        break;
    case BH_JSON_INTEGER:
        bh_buf_printf(out, "%" PRId64, bh_json_integer(value, 0));
        break;
    case BH_JSON_STRING:
        bh_buf_puts(out, bh_json_text(value, ""));
        break;
    case BH_JSON_NULL:
    case BH_JSON_OBJECT:
        break;
    }
}

void
bh_job_form_fill(bh_json_value spec, struct bh_arena *arena, struct bh_job_form *ret_form)
{
    for (uint32_t i = 0; i < BH_JOB_FIELDS; i++) {
        BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_JOB_TEXT_MAX };
        const char *copy = NULL;

        form_fill_value(&text, &bh_job_fields[i], bh_json_get(spec, bh_job_fields[i].key));
        if (bh_buf_text(&text))
            copy = bh_arena_strdup(arena, bh_buf_text(&text));
        ret_form->values[i] = copy ? copy : "";
    }
}

uint32_t
bh_job_form_find(const char *message)
{
    const char *key = message + (message[0] == '"'); /* "sku" is missing */
    size_t length = strcspn(key, "\":[. ");
    uint32_t i = 0;

    while (i < BH_JOB_FIELDS
           && (strlen(bh_job_fields[i].key) != length || strncmp(bh_job_fields[i].key, key, length) != 0))
        i++;
    return key[length] && key[length] != ' ' ? i : BH_JOB_FIELDS;
}
