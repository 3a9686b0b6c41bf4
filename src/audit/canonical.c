#include "audit/canonical.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

#define INTEGER_MAX ((UINT64_C(1) << 53) - 1)

/* A position that moves forward: nothing from `end` on is ever read. */
struct canonical_walk {
    const char *at, *end;
};

static bool
canonical_accept(struct canonical_walk *w, char c)
{
    if (w->at == w->end || *w->at != c)
        return false;
    w->at++;
    return true;
}

static bool
canonical_parse_word(struct canonical_walk *w, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(w->end - w->at) < length || memcmp(w->at, word, length) != 0)
        return false;
    w->at += length;
    return true;
}

static bool
canonical_parse_integer(struct canonical_walk *w)
{
    bool negative = canonical_accept(w, '-');
    const char *first = w->at;
    uint64_t value = 0;

    while (w->at < w->end && *w->at >= '0' && *w->at <= '9') {
        value = value * 10 + (uint64_t)(*w->at - '0');
        if (value > INTEGER_MAX)
            return false;
        w->at++;
    }
    if (w->at == first || (*first == '0' && (negative || w->at - first > 1)))
        return false;
    return true;
}

/* What follows a backslash: a short escape, or \u00xx for the control characters that
 * have none. */
static bool
canonical_parse_escape(struct canonical_walk *w)
{
    static const char digits[] = "0123456789abcdef";
    const char *low;

    if (w->at < w->end && *w->at && strchr("\"\\bfnrt", *w->at)) {
        w->at++;
        return true;
    }
    if (w->end - w->at < 5 || memcmp(w->at, "u00", 3) != 0 || w->at[3] < '0' || w->at[3] > '1')
        return false;
    low = memchr(digits, w->at[4], sizeof digits - 1);
    if (!low || (w->at[3] == '0' && strchr("89acd", *low)) || memcmp(w->at, "u0000", 5) == 0)
        return false;
    w->at += 5;
    return true;
}

static bool
canonical_parse_string(struct canonical_walk *w)
{
    if (!canonical_accept(w, '"'))
        return false;
    while (w->at < w->end) {
        unsigned char c = (unsigned char)*w->at;
        size_t step = 1;

        if (c == '"') {
            w->at++;
            return true;
        }
        if (c < 0x20)
            return false;
        if (c == '\\') {
            w->at++;
            if (!canonical_parse_escape(w))
                return false;
            continue;
        }
        if (c >= 0x80)
            step = bh_utf8_step(w->at, (size_t)(w->end - w->at));
        if (step == 0)
            return false;
        w->at += step;
    }
    return false;
}

/* Keys are compared as they are written; ASCII keys without escapes compare as they
 * read.  Others are refused. */
static bool
canonical_parse_key(struct canonical_walk *w, const char **last, size_t *last_length)
{
    const char *key = w->at + 1;
    size_t length, common;
    int order;

    if (!canonical_parse_string(w))
        return false;
    length = (size_t)(w->at - key) - 1;
    for (size_t i = 0; i < length; i++)
        if (key[i] == '\\' || (unsigned char)key[i] >= 0x80)
            return false;
    if (*last) {
        common = length < *last_length ? length : *last_length;
        order = memcmp(*last, key, common);
        if (order > 0 || (order == 0 && *last_length >= length))
            return false;
    }
    *last = key;
    *last_length = length;
    return canonical_accept(w, ':');
}

static bool canonical_parse_value(struct canonical_walk *w, unsigned depth);

static bool
canonical_parse_object(struct canonical_walk *w, unsigned depth)
{
    const char *last = NULL;
    size_t last_length = 0;

    if (canonical_accept(w, '}'))
        return true;
    do {
        if (!canonical_parse_key(w, &last, &last_length) || !canonical_parse_value(w, depth))
            return false;
    } while (canonical_accept(w, ','));
    return canonical_accept(w, '}');
}

static bool
canonical_parse_array(struct canonical_walk *w, unsigned depth)
{
    if (canonical_accept(w, ']'))
        return true;
    do {
        if (!canonical_parse_value(w, depth))
            return false;
    } while (canonical_accept(w, ','));
    return canonical_accept(w, ']');
}

static bool
canonical_parse_value(struct canonical_walk *w, unsigned depth)
{
    if (w->at == w->end || depth == BH_CANONICAL_DEPTH_MAX)
        return false;
    switch (*w->at) {
    case '{':
        w->at++;
        return canonical_parse_object(w, depth + 1);
    case '[':
        w->at++;
        return canonical_parse_array(w, depth + 1);
    case '"':
        return canonical_parse_string(w);
    case 't':
        return canonical_parse_word(w, "true");
    case 'f':
        return canonical_parse_word(w, "false");
    case 'n':
        return canonical_parse_word(w, "null");
    default:
        return canonical_parse_integer(w);
    }
}

size_t
bh_canonical_step(const char *text, size_t length)
{
    struct canonical_walk w = { text, text + length };

    return canonical_parse_value(&w, 0) ? (size_t)(w.at - text) : 0;
}
