/* The walker against the parser: on valid JSON both see the same document, and on
 * junk the walker stays inside its slice (which the sanitizer watches). */
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/slice.h"
#include "tests/fuzz/fuzz.h"

static const char *const keys[] = { "a", "b", "id", "limit", "tenants", "", "a\"b", "\xc3\xa9" };

static void compare(struct bh_slice slice, bh_json_value value);

static void
compare_items(struct bh_slice slice, bh_json_value value)
{
    struct bh_slice item;
    size_t cursor = 0, count = 0;

    while (bh_slice_next_item(slice, &cursor, &item))
        compare(item, bh_json_at(value, count++));
    BH_ASSERT(cursor == BH_SLICE_END);
    BH_ASSERT(count == bh_json_count(value));
}

static void
compare_members(struct bh_slice slice, bh_json_value value)
{
    char first[256];
    const char *key;
    void *cursor = NULL;
    struct bh_slice member;
    bh_json_value part;

    while (bh_json_next(value, &cursor, &key, &part))
        if (bh_slice_get(slice, key, &member))
            compare(member, part);
        else
            BH_ASSERT(strlen(key) >= sizeof first); /* escaped and longer than it reads */
    for (size_t i = 0; i < BH_COUNT(keys); i++)
        BH_ASSERT(bh_slice_get(slice, keys[i], &member) == (bh_json_get(value, keys[i]) != NULL));
    cursor = NULL;
    if (!bh_json_next(value, &cursor, &key, &part))
        BH_ASSERT(!bh_slice_first_key(slice, first, sizeof first, &member));
    else if (bh_slice_first_key(slice, first, sizeof first, &member))
        BH_ASSERT(strcmp(first, key) == 0);
    else
        BH_ASSERT(strlen(key) >= sizeof first);
}

static void
compare_scalar(struct bh_slice slice, bh_json_value value)
{
    char text[256];
    uint64_t number;

    if (bh_slice_str(slice, text, sizeof text))
        BH_ASSERT(strcmp(text, bh_json_text(value, "not a string")) == 0);
    else
        BH_ASSERT(slice.text[0] != '"' || strlen(bh_json_text(value, "")) >= sizeof text);
    if (bh_slice_u64(slice, &number))
        BH_ASSERT(bh_json_number(value, ~number) == number);
    BH_ASSERT(bh_json_truth(value) == (slice.length == 4 && memcmp(slice.text, "true", 4) == 0));
}

static void
compare(struct bh_slice slice, bh_json_value value)
{
    BH_ASSERT(slice.length > 0 && value);
    if (slice.text[0] == '[')
        compare_items(slice, value);
    else if (slice.text[0] == '{')
        compare_members(slice, value);
    else
        compare_scalar(slice, value);
}

/* Every call on text that may be anything. */
static void
walk(struct bh_slice slice)
{
    struct bh_slice part;
    char text[64];
    uint64_t number;
    size_t cursor = 0;

    for (size_t i = 0; i < BH_COUNT(keys); i++)
        if (bh_slice_get(slice, keys[i], &part))
            BH_ASSERT(part.text >= slice.text && part.text + part.length <= slice.text + slice.length);
    while (bh_slice_next_item(slice, &cursor, &part))
        BH_ASSERT(part.length > 0 && cursor <= slice.length);
    if (bh_slice_str(slice, text, sizeof text))
        BH_ASSERT(strlen(text) <= slice.length);
    if (bh_slice_first_key(slice, text, sizeof text, &part))
        BH_ASSERT(part.length < slice.length);
    if (bh_slice_u64(slice, &number))
        BH_ASSERT(slice.length <= 22);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_slice slice = { (const char *)data, size };
    struct bh_err err;

    walk(slice);
    if (bh_json_parse(slice.text, size, &json, &err) != BH_OK)
        return 0;
    while (slice.length && strchr(" \t\r\n", *slice.text)) {
        slice.text++;
        slice.length--;
    }
    compare(slice, bh_json_root(json));
    return 0;
}
