#include "web/job_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/attr.h"

static const char text_letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* ---- YAML ---- */

/* Words that YAML reads as something else than a text. */
static bool
text_is_reserved(const char *text)
{
    static const char *const words[] = { "true", "false", "null", "yes", "no", "on",
                                         "off",  "y",     "n",    "nan", "inf" };

    for (size_t i = 0; i < BH_COUNT(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* Plain words need no quotes; all others get those of JSON, which YAML reads as well. */
static void
text_put_scalar(struct bh_buf *out, bh_json_value value)
{
    const char *text = bh_json_text(value, NULL);

    if (bh_json_kind(value) == BH_JSON_BOOL)
        bh_buf_puts(out, bh_json_truth(value) ? "true" : "false");
    else if (!text)
        bh_buf_printf(out, "%" PRId64, bh_json_integer(value, 0));
    else if (strchr(text_letters, text[0]) && text[0]
             && text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-")]
                    == '\0'
             && !text_is_reserved(text))
        bh_buf_puts(out, text);
    else
        bh_json_put_str(out, text);
}

static void
text_put_items(struct bh_buf *out, bh_json_value list)
{
    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_json_value item = bh_json_at(list, i), member;
        const char *before = "  - ", *key;
        void *cursor = NULL;

        if (bh_json_kind(item) != BH_JSON_OBJECT) {
            bh_buf_puts(out, before);
            text_put_scalar(out, item);
            bh_buf_putc(out, '\n');
        }
        for (; bh_json_next(item, &cursor, &key, &member); before = "    ") {
            bh_buf_printf(out, "%s%s: ", before, key);
            text_put_scalar(out, member);
            bh_buf_putc(out, '\n');
        }
    }
}

void
bh_job_text_put_yaml(struct bh_buf *out, bh_json_value spec)
{
    bh_json_value value;
    void *cursor = NULL;
    const char *key;

    while (bh_json_next(spec, &cursor, &key, &value)) {
        bool list = bh_json_kind(value) == BH_JSON_ARRAY;

        if (list && bh_json_count(value) == 0)
            continue;
        bh_buf_printf(out, list ? "%s:\n" : "%s: ", key);
        if (list) {
            text_put_items(out, value);
        } else {
            text_put_scalar(out, value);
            bh_buf_putc(out, '\n');
        }
    }
}

/* ---- the command line ---- */

void
bh_job_text_put_word(struct bh_buf *out, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";

    if (word[0] && word[strspn(word, plain)] == '\0') {
        bh_buf_puts(out, word);
        return;
    }
    bh_buf_putc(out, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            bh_buf_puts(out, "'\\''");
        else
            bh_buf_putc(out, *word);
    }
    bh_buf_putc(out, '\'');
}

enum text_kind { TEXT_FLAG, TEXT_TEXT, TEXT_NUMBER, TEXT_SPAN, TEXT_TEXTS, TEXT_CHOICE };

static const struct text_option {
    const char *name, *key;
    enum text_kind kind;
} text_options[] = {
#define BH_OPTION(id, name, letter, kind, value, key, doc) { name, key, TEXT_##kind },
#include "tables/commands.tbl"
#undef BH_OPTION
};

/* "dataset=imagenet:/data:rw". */
static void
text_put_mount(struct bh_buf *out, bh_json_value mount)
{
    BH_AUTO(bh_buf_fini) struct bh_buf word = { .max = BH_JOB_TEXT_MAX };
    const char *dataset = bh_json_text(bh_json_get(mount, "dataset"), NULL);
    const char *target = bh_json_text(bh_json_get(mount, "target"), "");
    bool write = bh_json_truth(bh_json_get(mount, "write"));

    bh_buf_puts(&word, dataset ? "dataset=" : "");
    bh_buf_puts(&word, dataset ? dataset : bh_json_text(bh_json_get(mount, "source"), ""));
    if (target[0] || write)
        bh_buf_printf(&word, ":%s", target);
    if (write)
        bh_buf_puts(&word, ":rw");
    bh_job_text_put_word(out, bh_buf_text(&word) ? bh_buf_text(&word) : "");
}

static void
text_put_option(struct bh_buf *out, const struct text_option *option, bh_json_value value)
{
    if (bh_json_kind(value) == BH_JSON_BOOL) {
        if (bh_json_truth(value))
            bh_buf_printf(out, " --%s", option->name);
        return;
    }
    bh_buf_printf(out, " --%s ", option->name);
    if (bh_json_kind(value) == BH_JSON_OBJECT)
        text_put_mount(out, value);
    else if (bh_json_text(value, NULL))
        bh_job_text_put_word(out, bh_json_text(value, ""));
    else
        bh_buf_printf(out, "%" PRIu64, bh_json_number(value, 0));
}

static void
text_put_options(struct bh_buf *out, const struct text_option *option, bh_json_value value)
{
    if (option->kind != TEXT_TEXTS) {
        text_put_option(out, option, value);
        return;
    }
    for (size_t i = 0; i < bh_json_count(value); i++)
        text_put_option(out, option, bh_json_at(value, i));
}

void
bh_job_text_put_command(struct bh_buf *out, bh_json_value spec)
{
    bh_json_value args = bh_json_get(spec, "args");

    bh_buf_puts(out, "bulkhead submit");
    for (size_t i = 0; i < BH_COUNT(text_options); i++) {
        bh_json_value value = text_options[i].key[0] ? bh_json_get(spec, text_options[i].key) : NULL;

        if (value)
            text_put_options(out, &text_options[i], value);
    }
    if (bh_json_count(args) > 0)
        bh_buf_puts(out, " --");
    for (size_t i = 0; i < bh_json_count(args); i++) {
        bh_buf_putc(out, ' ');
        bh_job_text_put_word(out, bh_json_text(bh_json_at(args, i), ""));
    }
}
