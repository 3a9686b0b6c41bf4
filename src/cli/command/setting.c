#include "cli/command/setting.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"

enum { FILE_BYTES_MAX = 64 << 10 };

/* The value in a line that sets `name`; NULL: it does not. */
static const char *
value_in(const char *line, const char *name)
{
    size_t length = strlen(name);

    line += strspn(line, " \t");
    if (strncmp(line, name, length) != 0)
        return NULL;
    line += length + strspn(line + length, " \t");
    return *line == '=' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

/* Without the blanks at its end, as base/params reads it. */
static size_t
trimmed(const char *value, size_t length)
{
    while (length > 0 && strchr(" \t\r", value[length - 1]))
        length--;
    return length;
}

bool
bh_setting_read(const char *file, const char *name, const char *standard, char *ret_value, size_t size)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = FILE_BYTES_MAX };
    struct bh_err ignored;
    const char *line = "";
    bool found = false;

    snprintf(ret_value, size, "%s", standard);
    if (bh_file_read(file, FILE_BYTES_MAX - 1, &text, &ignored) == BH_OK && text.length > 0)
        line = bh_buf_text(&text);
    for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *value = value_in(line, name);

        if (!value)
            continue;
        snprintf(ret_value, size, "%.*s", (int)trimmed(value, strcspn(value, "\n")), value);
        found = true;
    }
    return found;
}

static void
setting_put_lines(struct bh_buf *out, const char *text, const char *name, const char *value)
{
    bool set = false;

    for (size_t length; *text; text += length) {
        length = strcspn(text, "\n");
        length += text[length] == '\n';
        if (!value_in(text, name)) {
            bh_buf_put(out, text, length);
            continue;
        }
        if (!set)
            bh_buf_printf(out, "%s = %s\n", name, value);
        set = true;
    }
    if (set)
        return;
    if (out->length > 0 && out->bytes[out->length - 1] != '\n')
        bh_buf_putc(out, '\n');
    bh_buf_printf(out, "%s = %s\n", name, value);
}

bh_rc
bh_setting_write(const char *file, const char *name, const char *value, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf before = { .max = FILE_BYTES_MAX };
    BH_AUTO(bh_buf_fini) struct bh_buf after = { .max = 2 * FILE_BYTES_MAX };
    bh_rc rc;

    rc = bh_file_read(file, FILE_BYTES_MAX - 1, &before, err);
    if (rc == BH_OK) {
        setting_put_lines(&after, bh_buf_text(&before) ? bh_buf_text(&before) : "", name, value);
        rc = after.overflow ? bh_err_set(err, BH_FULL, "%s is too long", file)
                            : bh_file_replace(file, after.bytes, after.length, 0644, err);
    }
    return rc;
}
