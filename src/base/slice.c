#include "base/slice.h"

#include <string.h>

#include "base/num.h"
#include "base/utf8.h"

/* A position that moves forward: nothing from `end` on is ever read. */
struct slice_walk {
    const char *at, *end;
};

static struct slice_walk
slice_walk_of(struct bh_slice slice)
{
    return (struct slice_walk){ slice.text, slice.text + slice.length };
}

static bool
slice_is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void
slice_skip_blanks(struct slice_walk *w)
{
    while (w->at < w->end && slice_is_blank(*w->at))
        w->at++;
}

/* Steps over `c`, blanks before it included. */
static bool
slice_consume(struct slice_walk *w, char c)
{
    slice_skip_blanks(w);
    if (w->at == w->end || *w->at != c)
        return false;
    w->at++;
    return true;
}

/* Whether an odd number of backslashes stands before `at`, as far as `start`. */
static bool
slice_is_escaped(const char *start, const char *at)
{
    const char *first = at;

    while (first > start && first[-1] == '\\')
        first--;
    return (at - first) % 2 != 0;
}

/* Most of a log is strings, so quotes are looked for many bytes at a time. */
static bool
slice_skip_string(struct slice_walk *w)
{
    const char *start, *quote = w->at;

    if (w->at == w->end || *w->at != '"')
        return false;
    start = w->at + 1;
    do {
        quote = memchr(quote + 1, '"', (size_t)(w->end - quote - 1));
    } while (quote && slice_is_escaped(start, quote));
    if (quote)
        w->at = quote + 1;
    return quote;
}

/* One bracket or any other character between strings; `open` has a bit per level,
 * set for an object. */
static bool
slice_step_bracket(char c, uint64_t *open, uint32_t *depth)
{
    if (c == '{' || c == '[') {
        if (*depth == BH_SLICE_DEPTH_MAX)
            return false;
        *open = *open << 1 | (c == '{');
        ++*depth;
    } else if (c == '}' || c == ']') {
        if ((*open & 1) != (c == '}'))
            return false;
        *open >>= 1;
        --*depth;
    }
    return true;
}

static bool
slice_skip_nested(struct slice_walk *w)
{
    uint64_t open = 0;
    uint32_t depth = 0;

    while (w->at < w->end) {
        if (*w->at == '"') {
            if (!slice_skip_string(w))
                return false;
            continue;
        }
        if (!slice_step_bracket(*w->at++, &open, &depth))
            return false;
        if (depth == 0)
            return true;
    }
    return false;
}

/* true, false, null or a number, as far as its characters show. */
static bool
slice_skip_word(struct slice_walk *w)
{
    const char *start = w->at;

    while (w->at < w->end
           && ((*w->at >= '0' && *w->at <= '9') || (*w->at >= 'a' && *w->at <= 'z') || *w->at == '-'
               || *w->at == '+' || *w->at == '.' || *w->at == 'E'))
        w->at++;
    return w->at > start;
}

static bool
slice_parse_value(struct slice_walk *w, struct bh_slice *ret)
{
    const char *start;
    bool found;

    slice_skip_blanks(w);
    start = w->at;
    if (w->at == w->end)
        return false;
    if (*w->at == '"')
        found = slice_skip_string(w);
    else
        found = *w->at == '{' || *w->at == '[' ? slice_skip_nested(w) : slice_skip_word(w);
    if (found)
        *ret = (struct bh_slice){ start, (size_t)(w->at - start) };
    return found;
}

static bool
slice_parse_member(struct slice_walk *w, struct bh_slice *ret_key, struct bh_slice *ret_value)
{
    slice_skip_blanks(w);
    ret_key->text = w->at;
    if (!slice_skip_string(w))
        return false;
    ret_key->length = (size_t)(w->at - ret_key->text);
    return slice_consume(w, ':') && slice_parse_value(w, ret_value);
}

/* Whether a quoted key says `name`; escapes are rare and cost a copy. */
static bool
slice_key_is(struct bh_slice key, const char *name)
{
    size_t length = strlen(name);
    char plain[256];

    if (!memchr(key.text, '\\', key.length))
        return key.length == length + 2 && memcmp(key.text + 1, name, length) == 0;
    return bh_slice_str(key, plain, sizeof plain) && strcmp(plain, name) == 0;
}

bool
bh_slice_get(struct bh_slice object, const char *key, struct bh_slice *ret)
{
    struct slice_walk w = slice_walk_of(object);
    struct bh_slice name, value;

    if (!slice_consume(&w, '{'))
        return false;
    do {
        if (!slice_parse_member(&w, &name, &value))
            return false;
        if (slice_key_is(name, key)) {
            *ret = value;
            return true;
        }
    } while (slice_consume(&w, ','));
    return false;
}

bool
bh_slice_first_key(struct bh_slice object, char *ret_key, size_t size, struct bh_slice *ret_value)
{
    struct slice_walk w = slice_walk_of(object);
    struct bh_slice name, value;

    if (!slice_consume(&w, '{') || !slice_parse_member(&w, &name, &value)
        || !bh_slice_str(name, ret_key, size))
        return false;
    *ret_value = value;
    return true;
}

bool
bh_slice_next_item(struct bh_slice array, size_t *cursor, struct bh_slice *ret_item)
{
    struct slice_walk w = slice_walk_of(array);
    bool first = *cursor == 0;

    if (*cursor >= array.length)
        return false;
    w.at += *cursor;
    if (first && !slice_consume(&w, '['))
        return false;
    if (slice_consume(&w, ']')) {
        *cursor = BH_SLICE_END;
        return false;
    }
    if ((!first && !slice_consume(&w, ',')) || !slice_parse_value(&w, ret_item))
        return false;
    *cursor = (size_t)(w.at - array.text);
    return true;
}

bool
bh_slice_u64(struct bh_slice value, uint64_t *ret)
{
    struct slice_walk w = slice_walk_of(value);
    uint64_t number = 0;

    if (value.length > 2 && w.at[0] == '"' && w.end[-1] == '"') {
        w.at++;
        w.end--;
    }
    if (w.at == w.end || (*w.at == '0' && w.end - w.at > 1))
        return false;
    for (; w.at < w.end; w.at++)
        if (*w.at < '0' || *w.at > '9' || !bh_mul_u64(number, 10, &number)
            || !bh_add_u64(number, (uint64_t)(*w.at - '0'), &number))
            return false;
    *ret = number;
    return true;
}

static int
slice_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
slice_parse_hex4(struct slice_walk *w, uint32_t *ret_code)
{
    uint32_t code = 0;

    if (w->end - w->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        int digit = slice_hex_value(*w->at++);

        if (digit < 0)
            return false;
        code = code << 4 | (uint32_t)digit;
    }
    *ret_code = code;
    return true;
}

/* What follows \u: a character, or the two halves of one. */
static bool
slice_parse_unicode(struct slice_walk *w, uint32_t *ret_code)
{
    uint32_t high, low;

    if (!slice_parse_hex4(w, &high) || high == 0 || (high >= 0xdc00 && high <= 0xdfff))
        return false;
    *ret_code = high;
    if (high < 0xd800 || high > 0xdbff)
        return true;
    if (w->end - w->at < 6 || *w->at++ != '\\' || *w->at++ != 'u' || !slice_parse_hex4(w, &low)
        || low < 0xdc00 || low > 0xdfff)
        return false;
    *ret_code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* What follows a backslash, as UTF-8: its length, 0 when malformed. */
static size_t
slice_parse_escape(struct slice_walk *w, char ret_bytes[4])
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *name;
    uint32_t code;

    if (w->at == w->end || !*w->at)
        return 0;
    name = strchr(names, *w->at);
    if (name) {
        w->at++;
        ret_bytes[0] = meant[name - names];
        return 1;
    }
    if (*w->at++ != 'u' || !slice_parse_unicode(w, &code))
        return 0;
    return bh_utf8_encode(code, ret_bytes);
}

bool
bh_slice_str(struct bh_slice value, char *ret, size_t size)
{
    struct slice_walk w = slice_walk_of(value);
    size_t used = 0;

    if (value.length < 2 || *w.at++ != '"' || *--w.end != '"')
        return false;
    while (w.at < w.end) {
        char bytes[4] = { *w.at++ };
        size_t count = 1;

        if ((unsigned char)bytes[0] < 0x20 || bytes[0] == '"')
            return false;
        if (bytes[0] == '\\')
            count = slice_parse_escape(&w, bytes);
        if (count == 0 || count >= size - used)
            return false;
        memcpy(ret + used, bytes, count);
        used += count;
    }
    if (used >= size)
        return false;
    ret[used] = '\0';
    return true;
}
