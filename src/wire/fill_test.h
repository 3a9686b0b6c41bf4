#ifndef BH_WIRE_FILL_TEST_H
#define BH_WIRE_FILL_TEST_H

/* Values for every field that a description names, and their comparison: for the tests
 * and the fuzz target of descriptions, which must not know each message by hand. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/fields.h"

enum { WIRE_FILL_ITEMS = 3 };

static inline void wire_fill(const struct bh_fields *fields, unsigned char *value, struct bh_arena *arena,
                             uint64_t *seed);

/* A number that differs with every call and uses all its bytes. */
static inline uint64_t
wire_fill_next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed ^ *seed >> 29;
}

static inline void *
wire_fill_alloc(struct bh_arena *arena, size_t bytes)
{
    void *memory = bh_arena_alloc(arena, bytes);

    if (!memory)
        abort();
    return memory;
}

static inline const char *
wire_fill_text(struct bh_arena *arena, uint64_t *seed)
{
    char *text = wire_fill_alloc(arena, 40);

    snprintf(text, 40, "t\xc3\xa4xt %llx\n", (unsigned long long)wire_fill_next(seed));
    return text;
}

static inline void
wire_fill_items(const struct bh_fields *of, unsigned char *items, struct bh_arena *arena, uint64_t *seed)
{
    for (uint32_t i = 0; i < WIRE_FILL_ITEMS; i++)
        wire_fill(of, items + (size_t)i * of->size, arena, seed);
}

static inline void
wire_fill_many(const struct bh_field *field, unsigned char *value, struct bh_arena *arena, uint64_t *seed)
{
    void *place = value + field->offset;

    if (field->kind == BH_FIELD_TEXTS) {
        struct bh_texts *texts = place;

        *texts = (struct bh_texts){ .items = wire_fill_alloc(arena, sizeof(char *) * 3), .count = 3 };
        for (uint32_t i = 0; i < 3; i++)
            texts->items[i] = i == 1 ? "" : wire_fill_text(arena, seed);
    } else if (field->kind == BH_FIELD_LIST) {
        struct bh_list *list = place;

        *list = (struct bh_list){ .items = wire_fill_alloc(arena, (size_t)field->of->size * WIRE_FILL_ITEMS),
                                  .count = WIRE_FILL_ITEMS };
        wire_fill_items(field->of, list->items, arena, seed);
    } else {
        memcpy(value + field->count_offset, &(uint32_t){ WIRE_FILL_ITEMS }, 4);
        wire_fill_items(field->of, place, arena, seed);
    }
}

static inline void
wire_fill_field(const struct bh_field *field, unsigned char *value, struct bh_arena *arena, uint64_t *seed)
{
    unsigned char *place = value + field->offset;
    uint64_t number = wire_fill_next(seed);

    switch (field->kind) {
    case BH_FIELD_BOOL:
        *(bool *)place = true;
        return;
    case BH_FIELD_ENUM:
        memcpy(place, &(uint32_t){ field->name_count - 1 }, 4);
        return;
    case BH_FIELD_U32:
    case BH_FIELD_I32:
        memcpy(place, &number, 4);
        return;
    case BH_FIELD_U64:
    case BH_FIELD_NS:
        memcpy(place, &number, 8);
        return;
    case BH_FIELD_STR: /* to the last byte that fits */
        memset(place, 'a' + (int)(number % 26), field->size - 1);
        return;
    case BH_FIELD_TEXT:
        *(const char **)(void *)place = wire_fill_text(arena, seed);
        return;
    case BH_FIELD_HEX:
        memset(place, (int)(number & 0xff), field->size);
        return;
    case BH_FIELD_STRUCT:
        wire_fill(field->of, place, arena, seed);
        return;
    case BH_FIELD_TEXTS:
    case BH_FIELD_ARRAY:
    case BH_FIELD_LIST:
        wire_fill_many(field, value, arena, seed);
        return;
    case BH_FIELD_POINTER ... BH_FIELD_ROWS: /* not on the wire */
        return;
    }
}

static inline void
wire_fill(const struct bh_fields *fields, unsigned char *value, struct bh_arena *arena, uint64_t *seed)
{
    for (uint32_t i = 0; i < fields->count; i++)
        wire_fill_field(&fields->fields[i], value, arena, seed);
}

/* ---- comparison: NULL and "" are the same text ---- */

static inline bool wire_same(const struct bh_fields *fields, const unsigned char *a, const unsigned char *b);

static inline bool
wire_same_items(const struct bh_fields *of, const void *a, const void *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!wire_same(of, (const unsigned char *)a + (size_t)i * of->size,
                       (const unsigned char *)b + (size_t)i * of->size))
            return false;
    return true;
}

static inline bool
wire_same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static inline bool
wire_same_texts(const struct bh_texts *a, const struct bh_texts *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!wire_same_text(a->items[i], b->items[i]))
            return false;
    return true;
}

static inline bool
wire_same_field(const struct bh_field *field, const unsigned char *a, const unsigned char *b)
{
    const void *left = a + field->offset, *right = b + field->offset;
    const struct bh_list *lists[2] = { left, right };

    switch (field->kind) {
    case BH_FIELD_TEXT:
        return wire_same_text(*(const char *const *)left, *(const char *const *)right);
    case BH_FIELD_TEXTS:
        return wire_same_texts(left, right);
    case BH_FIELD_STR:
        return strcmp(left, right) == 0;
    case BH_FIELD_STRUCT:
        return wire_same(field->of, left, right);
    case BH_FIELD_LIST:
        return lists[0]->count == lists[1]->count
               && wire_same_items(field->of, lists[0]->items, lists[1]->items, lists[0]->count);
    case BH_FIELD_ARRAY: {
        uint32_t count;

        memcpy(&count, a + field->count_offset, 4);
        return memcmp(&count, b + field->count_offset, 4) == 0
               && wire_same_items(field->of, left, right, count);
    }
    case BH_FIELD_BOOL:
    case BH_FIELD_U32:
    case BH_FIELD_I32:
    case BH_FIELD_U64:
    case BH_FIELD_NS:
    case BH_FIELD_ENUM:
    case BH_FIELD_HEX:
        return memcmp(left, right, field->size) == 0;
    case BH_FIELD_POINTER ... BH_FIELD_ROWS:
        break;
    }
    return false;
}

static inline bool
wire_same(const struct bh_fields *fields, const unsigned char *a, const unsigned char *b)
{
    for (uint32_t i = 0; i < fields->count; i++)
        if (!wire_same_field(&fields->fields[i], a, b))
            return false;
    return true;
}

#endif
