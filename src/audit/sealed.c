#include "audit/sealed.h"

#include <string.h>

enum { COMMITMENT_TEXT = 44, NONCE_TEXT = 32, KEY_DIGITS_MAX = 16 };

static bool
step_over(struct bh_slice *rest, const char *literal)
{
    size_t length = strlen(literal);

    if (rest->length < length || memcmp(rest->text, literal, length) != 0)
        return false;
    rest->text += length;
    rest->length -= length;
    return true;
}

static bool
is_digit64(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

/* What stands up to the next quote; decoding is stricter about the last bits. */
static bool
parse_base64(struct bh_slice *rest, size_t length, struct bh_slice *ret)
{
    size_t count = 0, digits;

    while (count < rest->length && is_digit64(rest->text[count]))
        count++;
    digits = count;
    while (count < digits + 2 && count < rest->length && rest->text[count] == '=')
        count++;
    if (digits < 2 || count % 4 != 0
        || (length > 0 && (count != length || digits != (length == NONCE_TEXT ? 32 : 43))))
        return false;
    *ret = (struct bh_slice){ rest->text, count };
    rest->text += count;
    rest->length -= count;
    return true;
}

static bool
sealed_parse_number(struct bh_slice *rest, uint64_t *ret)
{
    size_t count = 0;

    while (count < rest->length && rest->text[count] >= '0' && rest->text[count] <= '9')
        count++;
    if (count > KEY_DIGITS_MAX || !bh_slice_u64((struct bh_slice){ rest->text, count }, ret))
        return false;
    rest->text += count;
    rest->length -= count;
    return true;
}

bool
bh_sealed_read(struct bh_slice text, struct bh_sealed *ret)
{
    struct bh_sealed sealed;

    if (!step_over(&text, "{\"c\":\"") || !parse_base64(&text, 0, &sealed.cipher)
        || !step_over(&text, "\",\"h\":\"") || !parse_base64(&text, COMMITMENT_TEXT, &sealed.commitment)
        || !step_over(&text, "\",\"k\":\"") || !sealed_parse_number(&text, &sealed.key)
        || !step_over(&text, "\",\"n\":\"") || !parse_base64(&text, NONCE_TEXT, &sealed.nonce)
        || !step_over(&text, "\"}") || text.length > 0)
        return false;
    *ret = sealed;
    return true;
}

bool
bh_sealed_is_list(struct bh_slice array)
{
    struct bh_slice item;
    struct bh_sealed sealed;
    size_t cursor = 0;
    int count = 0;

    while (bh_slice_next_item(array, &cursor, &item))
        if (++count > BH_SEALED_ITEMS_MAX || item.length > BH_SEALED_ITEM_BYTES_MAX
            || !bh_sealed_read(item, &sealed))
            return false;
    return cursor == BH_SLICE_END && count > 0;
}
