#include "fetch/cache_control.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"

static bool
cache_control_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool
cache_control_is_word(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && strncasecmp(text, word, length) == 0;
}

/* Digits, also within quotes; UINT64_MAX when it is something else. */
static uint64_t
seconds(const char *text, size_t length)
{
    uint64_t value = 0;

    if (length >= 2 && text[0] == '"' && text[length - 1] == '"') {
        text++;
        length -= 2;
    }
    if (length == 0)
        return UINT64_MAX;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return UINT64_MAX;
        value = value * 10 + (uint64_t)(text[i] - '0');
        if (value > UINT32_MAX)
            value = UINT32_MAX;
    }
    return value;
}

/* What one directive says; UINT64_MAX: nothing about this. */
static uint64_t
directive_age(const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : length;
    uint64_t age;

    if (cache_control_is_word(text, name, "no-store") || cache_control_is_word(text, name, "no-cache"))
        return 0;
    if (!equals || !cache_control_is_word(text, name, "max-age"))
        return UINT64_MAX;
    age = seconds(equals + 1, length - name - 1);
    return age == UINT64_MAX ? 0 : age;
}

uint32_t
bh_cache_control_max_age(const char *value, size_t length)
{
    uint64_t least = UINT64_MAX;

    for (size_t at = 0; at < length; at++) {
        size_t from = at, to, last;
        uint64_t age;

        while (at < length && value[at] != ',')
            at++;
        to = at;
        for (; from < to && cache_control_is_blank(value[from]); from++)
            continue;
        for (last = to; last > from && cache_control_is_blank(value[last - 1]); last--)
            continue;
        age = directive_age(value + from, last - from);
        least = age < least ? age : least;
    }
    return least == UINT64_MAX ? 0 : (uint32_t)least;
}
