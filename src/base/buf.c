#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void
bh_buf_init_fixed(struct bh_buf *buf, void *memory, size_t size)
{
    *buf = (struct bh_buf){ .bytes = memory, .size = size };
}

void
bh_buf_init(struct bh_buf *buf, size_t max)
{
    BH_ASSERT(max > 0);
    *buf = (struct bh_buf){ .max = max };
}

void
bh_buf_fini(struct bh_buf *buf)
{
    if (buf->max)
        free(buf->bytes);
    *buf = (struct bh_buf){ .max = buf->max };
}

/* Room for `extra` more bytes: false sets overflow. */
static bool
buf_reserve(struct bh_buf *buf, size_t extra)
{
    size_t want = buf->length + extra, size = buf->size ? buf->size : 256;

    if (buf->overflow)
        return false;
    if (want >= buf->length && want <= buf->size)
        return true;
    if (want < buf->length || want > buf->max) {
        buf->overflow = true;
        return false;
    }
    while (size < want)
        size *= 2;
    if (size > buf->max)
        size = buf->max;
    buf->bytes = realloc(buf->bytes, size);
    BH_ASSERT(buf->bytes);
    buf->size = size;
    return true;
}

void
bh_buf_put(struct bh_buf *buf, const void *bytes, size_t length)
{
    if (length == 0 || !buf_reserve(buf, length))
        return;
    memcpy(buf->bytes + buf->length, bytes, length);
    buf->length += length;
}

void
bh_buf_puts(struct bh_buf *buf, const char *text)
{
    bh_buf_put(buf, text, strlen(text));
}

void
bh_buf_putc(struct bh_buf *buf, char c)
{
    if (buf_reserve(buf, 1))
        buf->bytes[buf->length++] = c;
}

char *
bh_buf_extend(struct bh_buf *buf, size_t count)
{
    if (!buf_reserve(buf, count))
        return NULL;
    buf->length += count;
    return buf->bytes + buf->length - count;
}

void
bh_buf_put_u64(struct bh_buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    bh_buf_put(buf, digits + at, sizeof digits - at);
}

void
bh_buf_put_i64(struct bh_buf *buf, int64_t value)
{
    if (value < 0) {
        bh_buf_putc(buf, '-');
        bh_buf_put_u64(buf, -(uint64_t)value);
        return;
    }
    bh_buf_put_u64(buf, (uint64_t)value);
}

void
bh_buf_put_hex(struct bh_buf *buf, const void *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *byte = bytes;

    while (length > 0) {
        size_t count = length < 32 ? length : 32;
        char text[64];

        for (size_t i = 0; i < count; i++) {
            text[2 * i] = digits[byte[i] >> 4];
            text[2 * i + 1] = digits[byte[i] & 15];
        }
        bh_buf_put(buf, text, 2 * count);
        byte += count;
        length -= count;
    }
}

void
bh_buf_printf(struct bh_buf *buf, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    BH_ASSERT(n >= 0);
    if (!buf_reserve(buf, (size_t)n + 1))
        return;
    va_start(args, format);
    vsnprintf(buf->bytes + buf->length, (size_t)n + 1, format, args);
    va_end(args);
    buf->length += (size_t)n;
}

void
bh_buf_drop(struct bh_buf *buf, size_t count)
{
    BH_ASSERT(count <= buf->length);
    if (count == 0)
        return;
    buf->length -= count;
    memmove(buf->bytes, buf->bytes + count, buf->length);
}

void
bh_buf_clear(struct bh_buf *buf)
{
    buf->length = 0;
    buf->overflow = false;
}

const char *
bh_buf_text(struct bh_buf *buf)
{
    if (!buf_reserve(buf, 1))
        return NULL;
    buf->bytes[buf->length] = '\0';
    return buf->bytes;
}
