#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* One word: its end, or NULL when its quote stays open. */
static char *
take_word(char *at, const char **ret_word)
{
    bool quoted = *at == '"';

    *ret_word = quoted ? ++at : at;
    while (*at && (quoted ? *at != '"' : !is_blank(*at)))
        at++;
    if (quoted && !*at)
        return NULL;
    if (*at)
        *at++ = '\0';
    return at;
}

bh_rc
bh_words_split(const char *line, size_t length, struct bh_words *ret_words, struct bh_err *err)
{
    char *at = ret_words->text;

    ret_words->count = 0;
    if (length > BH_LINE_MAX)
        return bh_err_set(err, BH_RANGE, "the line is longer than %d bytes", BH_LINE_MAX);
    memcpy(ret_words->text, line, length);
    ret_words->text[length] = '\0';
    for (;;) {
        while (is_blank(*at))
            at++;
        if (!*at || *at == '#')
            return BH_OK;
        if (ret_words->count == BH_WORDS_MAX)
            return bh_err_set(err, BH_RANGE, "more than %d words", BH_WORDS_MAX);
        at = take_word(at, &ret_words->at[ret_words->count]);
        if (!at)
            return bh_err_set(err, BH_INVALID, "a quote is not closed");
        ret_words->count++;
    }
}

bh_rc
bh_word_choose(const struct bh_choice *choice, const char *word, uint32_t *ret_value, struct bh_err *err)
{
    char list[200];
    struct bh_buf buf;

    bh_buf_init_fixed(&buf, list, sizeof list);
    for (uint32_t i = 0; i < choice->count; i++) {
        if (!choice->names[i])
            continue;
        if (strcmp(choice->names[i], word) == 0) {
            *ret_value = i;
            return BH_OK;
        }
        bh_buf_printf(&buf, " %s", choice->names[i]);
    }
    return bh_err_set(err, BH_INVALID, "%s %.40s: expected one of%s", choice->what, word,
                      bh_buf_text(&buf) ? list : " many");
}

/* Where the digits at the end begin. */
static size_t
digits_at(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] >= '0' && text[length - 1] <= '9')
        length--;
    return length;
}

/* "s1..s7" as prefix length, first and last number. */
static bool
parse_range(const char *word, size_t *ret_prefix, unsigned long *ret_first, unsigned long *ret_last)
{
    const char *dots = strstr(word, "..");
    size_t prefix, length;

    if (!dots)
        return false;
    length = (size_t)(dots - word);
    prefix = digits_at(word, length);
    if (prefix == length || prefix >= BH_WORD_MAX - 12 || strncmp(word, dots + 2, prefix) != 0
        || digits_at(dots + 2, strlen(dots + 2)) != prefix || !dots[2 + prefix])
        return false;
    *ret_prefix = prefix;
    *ret_first = strtoul(word + prefix, NULL, 10);
    *ret_last = strtoul(dots + 2 + prefix, NULL, 10);
    return *ret_first <= *ret_last && *ret_last - *ret_first < 1000;
}

bool
bh_word_next_name(const char *word, uint32_t *cursor, char ret_name[BH_WORD_MAX])
{
    unsigned long first, last;
    size_t prefix;

    if (!parse_range(word, &prefix, &first, &last)) {
        snprintf(ret_name, BH_WORD_MAX, "%s", word);
        return (*cursor)++ == 0;
    }
    if (first + *cursor > last)
        return false;
    snprintf(ret_name, BH_WORD_MAX, "%.*s%lu", (int)prefix, word, first + (*cursor)++);
    return true;
}
