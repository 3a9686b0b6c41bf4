#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/utf8.h"

static const struct {
    const char *name, *doc;
    int http, exit_status;
    bool retryable;
} codes[] = {
#define BH_ERROR(code, name, http, exit_status, retryable, doc)                                              \
    [BH_##code] = { name, doc, http, exit_status, retryable },
#include "tables/errors.tbl"
#undef BH_ERROR
};

/* What was too long ends behind a word, with "...". */
static void
err_end_at_word(char *text, size_t size)
{
    static const char ending[] = " ...";
    size_t last = size - sizeof ending, at = last;

    while (at > last / 2 && text[at] != ' ')
        at--;
    memcpy(text + (text[at] == ' ' ? at : last), ending, sizeof ending);
}

static void BH_PRINTF(3, 0) err_format(char *text, size_t size, const char *format, va_list args)
{
    if (vsnprintf(text, size, format, args) >= (int)size)
        err_end_at_word(text, size);
    bh_utf8_scrub(text);
}

static void
err_append(struct bh_err *err, const char *text)
{
    size_t used = strlen(err->msg), left = sizeof err->msg - used;

    if (snprintf(err->msg + used, left, ": %s", text) >= (int)left)
        err_end_at_word(err->msg, sizeof err->msg);
    bh_utf8_scrub(err->msg);
}

/* Messages quote untrusted input, cut at any byte: what is left must be fit for a terminal and for JSON. */
static void BH_PRINTF(2, 0) err_fill(struct bh_err *err, const char *format, va_list args)
{
    err_format(err->msg, sizeof err->msg, format, args);
    err->hint[0] = '\0';
}

bh_rc
bh_err_set(struct bh_err *err, bh_rc rc, const char *format, ...)
{
    va_list args;

    err->rc = rc;
    err->sys_kind = BH_SYS_NONE;
    err->sys = 0;
    va_start(args, format);
    err_fill(err, format, args);
    va_end(args);
    return rc;
}

bh_rc
bh_err_sys(struct bh_err *err, bh_rc rc, enum bh_sys kind, int number, const char *format, ...)
{
    va_list args;

    err->rc = rc;
    err->sys_kind = kind;
    err->sys = number;
    va_start(args, format);
    err_fill(err, format, args);
    va_end(args);
    return rc;
}

static bh_rc
errno_rc(int number)
{
    switch (number) {
    case EPERM:
    case EACCES:
        return BH_DENIED;
    case ENOENT:
        return BH_NOT_FOUND;
    case ENOSPC:
    case EDQUOT:
        return BH_FULL;
    case ETIMEDOUT:
        return BH_TIMEOUT;
    case ECONNREFUSED:
        return BH_UNAVAILABLE;
    default:
        return BH_IO;
    }
}

bh_rc
bh_err_errno(struct bh_err *err, const char *format, ...)
{
    int number = errno;
    va_list args;

    err->rc = errno_rc(number);
    err->sys_kind = BH_SYS_ERRNO;
    err->sys = number;
    va_start(args, format);
    err_fill(err, format, args);
    va_end(args);
    err_append(err, strerror(number));
    return err->rc;
}

bh_rc
bh_err_wrap(struct bh_err *err, const char *format, ...)
{
    char inner[sizeof err->msg];
    va_list args;

    memcpy(inner, err->msg, sizeof inner);
    va_start(args, format);
    err_format(err->msg, sizeof err->msg, format, args);
    va_end(args);
    err_append(err, inner);
    return err->rc;
}

bh_rc
bh_err_hint(struct bh_err *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_format(err->hint, sizeof err->hint, format, args);
    va_end(args);
    return err->rc;
}

const char *
bh_rc_name(bh_rc rc)
{
    return (size_t)rc < BH_COUNT(codes) ? codes[rc].name : "bug";
}

bh_rc
bh_rc_find(const char *name)
{
    for (size_t i = 0; i < BH_COUNT(codes); i++)
        if (strcmp(codes[i].name, name) == 0)
            return (bh_rc)i;
    return BH_BUG;
}

int
bh_rc_http(bh_rc rc)
{
    BH_ASSERT((size_t)rc < BH_COUNT(codes));
    return codes[rc].http;
}

int
bh_rc_exit(bh_rc rc)
{
    BH_ASSERT((size_t)rc < BH_COUNT(codes));
    return codes[rc].exit_status;
}

bool
bh_rc_retryable(bh_rc rc)
{
    BH_ASSERT((size_t)rc < BH_COUNT(codes));
    return codes[rc].retryable;
}

const char *
bh_rc_doc(bh_rc rc)
{
    BH_ASSERT((size_t)rc < BH_COUNT(codes));
    return codes[rc].doc;
}
