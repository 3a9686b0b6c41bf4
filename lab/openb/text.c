#include "lab/openb/text.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

enum { CHUNK = 1 << 16 };

static void
close_gz_auto(gzFile *file)
{
    if (*file)
        gzclose(*file);
}

static bh_rc
read_all(gzFile file, struct bh_openb_text *text, struct bh_err *err)
{
    char chunk[CHUNK];
    int count;

    while ((count = gzread(file, chunk, sizeof chunk)) > 0)
        bh_buf_put(&text->buf, chunk, (size_t)count);
    if (count < 0 || gzclose(file) != Z_OK)
        return bh_err_set(err, BH_INVALID, "%s: cannot be read, or is damaged", text->path);
    if (text->buf.overflow)
        return bh_err_set(err, BH_FULL, "%s: over %d bytes", text->path, BH_OPENB_TEXT_MAX);
    if (memchr(text->buf.bytes ? text->buf.bytes : "", '\0', text->buf.length))
        return bh_err_set(err, BH_INVALID, "%s: holds a NUL, so it is no text", text->path);
    return BH_OK;
}

bh_rc
bh_openb_text_open(const char *path, struct bh_openb_text *ret_text, struct bh_err *err)
{
    BH_AUTO(bh_openb_text_close)
    struct bh_openb_text text = { .path = path };
    BH_AUTO(close_gz)
    gzFile file = gzopen(path, "rb");
    bh_rc rc;

    bh_buf_init(&text.buf, BH_OPENB_TEXT_MAX);
    if (!file)
        return bh_err_errno(err, "cannot open %s", path);
    rc = read_all(bh_steal(&file), &text, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_putc(&text.buf, '\0');
    *ret_text = text;
    memset(&text, 0, sizeof text);
    return BH_OK;
}

void
bh_openb_text_close(struct bh_openb_text *text)
{
    bh_buf_fini(&text->buf);
}

char *
bh_openb_text_next(struct bh_openb_text *text)
{
    char *line = text->buf.bytes + text->at, *end;

    if (*line == '\0')
        return NULL;
    end = strchr(line, '\n');
    text->at += (end ? (size_t)(end - line) + 1 : strlen(line));
    if (end)
        *end = '\0';
    text->line++;
    return line;
}

uint32_t
bh_openb_text_lines(const struct bh_openb_text *text)
{
    uint32_t lines = 0;

    for (const char *at = text->buf.bytes + text->at; *at; lines++) {
        const char *end = strchr(at, '\n');

        at = end ? end + 1 : at + strlen(at);
    }
    return lines;
}

uint32_t
bh_openb_split(char *line, char separator, char **ret_fields, uint32_t max)
{
    uint32_t count = 0;

    for (char *field = line; field;) {
        char *end = strchr(field, separator);

        if (end)
            *end++ = '\0';
        if (count < max)
            ret_fields[count] = field;
        count++;
        field = end;
    }
    return count;
}

bh_rc
bh_openb_text_wrap(const struct bh_openb_text *text, struct bh_err *err)
{
    return bh_err_wrap(err, "%s:%u", text->path, text->line);
}
