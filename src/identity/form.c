#include "identity/form.h"

#include <string.h>

#include "base/utf8.h"

static int
form_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Which control characters a value may have. */
enum form_controls { FORM_CONTROLS_NONE, FORM_CONTROLS_LINES };

static bool
form_is_allowed(char c, enum form_controls controls)
{
    if (controls == FORM_CONTROLS_LINES && (c == '\n' || c == '\r' || c == '\t'))
        return true;
    return (unsigned char)c >= 0x20 && c != 0x7f;
}

/* Decode into `ret`, which has room; the length, or SIZE_MAX for what is malformed. */
static size_t
form_decode(const char *text, size_t length, enum form_controls controls, char *ret)
{
    size_t count = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i] == '+' ? ' ' : text[i];

        if (c == '%') {
            int high = length - i > 2 ? form_hex_value(text[i + 1]) : -1;
            int low = length - i > 2 ? form_hex_value(text[i + 2]) : -1;

            if (high < 0 || low < 0)
                return SIZE_MAX;
            c = (char)(unsigned char)(high << 4 | low);
            i += 2;
        }
        if (!form_is_allowed(c, controls))
            return SIZE_MAX;
        if (c != '\r') /* browsers end lines with both */
            ret[count++] = c;
    }
    ret[count] = '\0';
    return count;
}

static bool
form_is_utf8(const char *text, size_t length)
{
    while (length > 0) {
        size_t step = bh_utf8_step(text, length);

        if (step == 0)
            return false;
        text += step;
        length -= step;
    }
    return true;
}

/* One name=value of `length` bytes, decoded at *at, which moves behind it. */
static enum bh_identity_fault
form_add_pair(struct bh_form *form, const char *text, size_t length, enum form_controls controls, char **at)
{
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals ? (size_t)(equals - text) : length;
    char *name = *at, *value;
    size_t count = form_decode(text, name_length, FORM_CONTROLS_NONE, name);

    if (count == SIZE_MAX || count == 0 || form->count == BH_FORM_PAIRS_MAX || !form_is_utf8(name, count))
        return BH_FAULT_FORM;
    value = name + count + 1;
    value[0] = '\0';
    count = equals ? form_decode(equals + 1, length - name_length - 1, controls, value) : 0;
    if (count == SIZE_MAX || !form_is_utf8(value, count))
        return BH_FAULT_FORM;
    if (bh_form_get(form, name))
        return BH_FAULT_FORM_DUPLICATE;
    form->pairs[form->count].name = name;
    form->pairs[form->count++].value = value;
    *at = value + count + 1;
    return BH_FAULT_NONE;
}

static enum bh_identity_fault
form_parse(const char *text, size_t length, enum form_controls controls, struct bh_form *ret_form)
{
    enum bh_identity_fault fault = BH_FAULT_NONE;
    char *at = ret_form->memory;

    ret_form->count = 0;
    if (length >= BH_FORM_BYTES_MAX)
        return BH_FAULT_FORM;
    while (length > 0 && fault == BH_FAULT_NONE) {
        const char *ampersand = memchr(text, '&', length);
        size_t part = ampersand ? (size_t)(ampersand - text) : length;

        fault = form_add_pair(ret_form, text, part, controls, &at);
        part += ampersand != NULL;
        text += part;
        length -= part;
    }
    return fault;
}

enum bh_identity_fault
bh_form_parse(const char *text, size_t length, struct bh_form *ret_form)
{
    return form_parse(text, length, FORM_CONTROLS_NONE, ret_form);
}

enum bh_identity_fault
bh_form_parse_lines(const char *text, size_t length, struct bh_form *ret_form)
{
    return form_parse(text, length, FORM_CONTROLS_LINES, ret_form);
}

const char *
bh_form_get(const struct bh_form *form, const char *name)
{
    for (uint32_t i = 0; i < form->count; i++)
        if (strcmp(form->pairs[i].name, name) == 0)
            return form->pairs[i].value;
    return NULL;
}

static void
form_put_escaped(struct bh_buf *out, const char *plain, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        char code[3] = { '%', hex[c >> 4], hex[c & 15] };

        if (strchr(plain, c))
            bh_buf_putc(out, *text);
        else
            bh_buf_put(out, code, sizeof code);
    }
}

#define UNRESERVED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

void
bh_form_put_encoded(struct bh_buf *out, const char *text)
{
    form_put_escaped(out, UNRESERVED, text);
}

void
bh_form_put_path(struct bh_buf *out, const char *path)
{
    form_put_escaped(out, UNRESERVED "/", path);
}

void
bh_form_put(struct bh_buf *out, const char *name, const char *value)
{
    bool address = (out->length >= 1 && out->bytes[0] == '/')
                   || (out->length >= 4 && memcmp(out->bytes, "http", 4) == 0);
    bool query = out->length > 0 && memchr(out->bytes, '?', out->length);

    if (address && !query)
        bh_buf_putc(out, '?');
    else if (out->length > 0 && out->bytes[out->length - 1] != '?')
        bh_buf_putc(out, '&');
    bh_form_put_encoded(out, name);
    bh_buf_putc(out, '=');
    bh_form_put_encoded(out, value);
}
