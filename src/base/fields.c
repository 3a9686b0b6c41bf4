#include "base/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct bh_field *
bh_fields_find(const struct bh_fields *fields, const char *name, size_t length)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct bh_field *field = &fields->fields[i];

        if (strlen(field->name) == length && memcmp(field->name, name, length) == 0)
            return field;
    }
    return NULL;
}

void
bh_field_describe(const struct bh_field *field, char *ret_text, uint32_t size)
{
    bool ranged = field->kind == BH_FIELD_U32 && field->max > 0;
    int length;

    ret_text[0] = '\0';
    if (!field->doc)
        return;
    if (ranged && field->flags & BH_FIELD_POSITIVE)
        length = snprintf(ret_text, size, "%s: 1 to %" PRIu32 "; %s", field->name, field->max, field->doc);
    else if (ranged)
        length = snprintf(ret_text, size, "%s: at most %" PRIu32 "; %s", field->name, field->max, field->doc);
    else
        length = snprintf(ret_text, size, "%s: %s", field->name, field->doc);
    if (length >= (int)size && size > 4)
        memcpy(ret_text + size - 4, "...", 4);
}

static bool
complete(const struct bh_field *field)
{
    switch (field->kind) {
    case BH_FIELD_ENUM:
        return field->names && field->name_count && field->size == 4;
    case BH_FIELD_STRUCT:
        return field->of && field->of->size == field->size && bh_fields_ordered(field->of);
    case BH_FIELD_ARRAY:
        return field->of && field->of->size * field->max == field->size && bh_fields_ordered(field->of);
    case BH_FIELD_LIST:
    case BH_FIELD_ROWS:
        return field->of && bh_fields_ordered(field->of);
    case BH_FIELD_BOOL:
        return field->size == sizeof(bool);
    case BH_FIELD_U32:
    case BH_FIELD_I32:
        return field->size == 4;
    case BH_FIELD_U64:
    case BH_FIELD_NS:
    case BH_FIELD_I64:
        return field->size == 8;
    case BH_FIELD_TEXT:
    case BH_FIELD_LINES:
        return field->size == sizeof(char *);
    case BH_FIELD_POINTER:
        return field->size == sizeof(void *) && field->of && bh_fields_ordered(field->of);
    case BH_FIELD_TEXTS:
        return field->size == sizeof(struct bh_texts);
    case BH_FIELD_STR:
    case BH_FIELD_HEX:
        return field->size > 0;
    case BH_FIELD_U64S:
        return field->size == sizeof(struct bh_list);
    case BH_FIELD_SLICE:
    case BH_FIELD_JSON:
    case BH_FIELD_JSONS:
    case BH_FIELD_AMOUNT:
        return field->size == sizeof(struct bh_slice);
    }
    return false;
}

bool
bh_fields_ordered(const struct bh_fields *fields)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        if (!complete(&fields->fields[i]))
            return false;
        if (i > 0 && strcmp(fields->fields[i - 1].name, fields->fields[i].name) >= 0)
            return false;
    }
    return true;
}
