#include "shim/calls/ptx.h"

#include <string.h>

static bool
ptx_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
ptx_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
ptx_is_of_word(char c)
{
    return ptx_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'
           || c == '%';
}

/* What stands behind a word that stands by itself; NULL: it is not there. */
static const char *
ptx_find_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        if ((at == text || !ptx_is_of_word(at[-1])) && ptx_is_space(at[length]))
            return at + length;
    return NULL;
}

static const char *
ptx_find_variable(const char *statement)
{
    const char *at = ptx_find_word(statement, ".global");

    return at != NULL ? at : ptx_find_word(statement, ".const");
}

static uint64_t
ptx_times(uint64_t a, uint64_t b)
{
    return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

/* Hexadecimal numbers and octal ones are as good. */
static const char *
ptx_number(const char *at, uint64_t *ret_number)
{
    unsigned base = at[0] != '0' ? 10 : at[1] == 'x' || at[1] == 'X' ? 16 : 8;

    *ret_number = 0;
    for (at += base == 16 ? 2 : 0;; at++) {
        unsigned digit = ptx_is_digit(*at)          ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a' + 10)
                         : *at >= 'A' && *at <= 'F' ? (unsigned)(*at - 'A' + 10)
                                                    : 16;

        if (digit >= base)
            return at;
        *ret_number = ptx_times(*ret_number, base);
        if (__builtin_add_overflow(*ret_number, digit, ret_number))
            *ret_number = UINT64_MAX;
    }
}

/* ".align 4 .v4 .f32 name[2][1024]": bits of the type, vector, dimensions. */
static uint64_t
ptx_declared(const char *at)
{
    uint64_t bits = 0, elements = 1, value;

    while (*at != '\0') {
        if (at[0] == '.' && at[1] == 'v' && ptx_is_digit(at[2])) {
            at = ptx_number(at + 2, &value);
            elements = ptx_times(elements, value);
        } else if (at[0] == '.' && at[1] != '\0' && strchr("bsuf", at[1]) != NULL && ptx_is_digit(at[2])) {
            at = ptx_number(at + 2, &bits);
        } else if (at[0] == '[') {
            for (at++; ptx_is_space(*at);)
                at++;
            at = ptx_number(at, &value);
            elements = ptx_times(elements, value);
        } else {
            at++;
        }
    }
    return bits == 0 ? ptx_times(elements, 8) : ptx_times(elements, (bits + 7) / 8);
}

/* What the statement declares.  A variable of another module has its memory there; a
 * parameter only says where it points. */
static uint64_t
ptx_bytes_of(const char *statement)
{
    const char *at = ptx_find_variable(statement);

    if (at == NULL || ptx_find_word(statement, ".extern") != NULL
        || ptx_find_word(statement, ".param") != NULL)
        return 0;
    return ptx_declared(at);
}

static void
ptx_end_statement(struct bh_ptx *ptx)
{
    ptx->statement[ptx->length] = '\0';
    if (ptx->length > 0
        && __builtin_add_overflow(ptx->variables, ptx_bytes_of(ptx->statement), &ptx->variables))
        ptx->variables = UINT64_MAX;
    ptx->length = ptx->word = 0;
}

/* Names may be longer than what is kept of them. */
static void
ptx_keep(struct bh_ptx *ptx, char c)
{
    enum { WORD_MOST = 32 };

    ptx->word = ptx_is_of_word(c) ? ptx->word + 1 : 0;
    if (ptx->word <= WORD_MOST && ptx->length + 1 < sizeof(ptx->statement))
        ptx->statement[ptx->length++] = c;
}

/* A statement ends where its value begins; what follows until the semicolon is that value.
 * Lines without a variable are directives that have no semicolon, or say nothing. */
static void
ptx_take(struct bh_ptx *ptx, char c)
{
    if (c == ';' || c == '{' || c == '}' || c == '=') {
        if (!ptx->skips)
            ptx_end_statement(ptx);
        ptx->skips = c == '=' || (ptx->skips && c != ';');
        return;
    }
    if (!ptx->skips)
        ptx_keep(ptx, c);
    ptx->statement[ptx->length] = '\0';
    if (c == '\n' && ptx_find_variable(ptx->statement) == NULL)
        ptx->length = ptx->word = 0;
}

bool
bh_ptx_read(struct bh_ptx *ptx, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++, ptx->read++) {
        char c = text[i];

        if (c == '\0')
            return false;
        if (c == '\n')
            ptx->commented = false;
        if (c == '/' && ptx->slash) {
            ptx->commented = true;
            ptx->length -= ptx->length > 0; /* the first slash */
        }
        ptx->slash = c == '/';
        if (!ptx->commented)
            ptx_take(ptx, c);
    }
    return true;
}
