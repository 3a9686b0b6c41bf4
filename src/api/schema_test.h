#ifndef BH_API_SCHEMA_TEST_H
#define BH_API_SCHEMA_TEST_H

#include <string.h>

#include "base/fields.h"
#include "base/json.h"

/* Whether a reply is what its description says: no key is unknown, and none is missing.  The first
 * key that is wrong is in *ret_key. */

static inline bool schema_fits(const struct bh_fields *fields, bh_json_value value, const char **ret_key);

static inline bool
schema_items_fit(const struct bh_field *field, bh_json_value list, const char **ret_key)
{
    bool fits = bh_json_kind(list) == BH_JSON_ARRAY;

    for (size_t i = 0; i < bh_json_count(list) && fits; i++)
        fits = field->of ? schema_fits(field->of, bh_json_at(list, i), ret_key)
                         : bh_json_kind(bh_json_at(list, i))
                               == (field->kind == BH_FIELD_U64S    ? BH_JSON_INTEGER
                                   : field->kind == BH_FIELD_JSONS ? BH_JSON_OBJECT
                                                                   : BH_JSON_STRING);
    return fits;
}

static inline bool
schema_value_fits(const struct bh_field *field, bh_json_value value, const char **ret_key)
{
    enum bh_json_kind kind = bh_json_kind(value);

    switch (field->kind) {
    case BH_FIELD_BOOL:
        return kind == BH_JSON_BOOL;
    case BH_FIELD_U32:
    case BH_FIELD_I32:
    case BH_FIELD_I64:
        return kind == BH_JSON_INTEGER || (field->flags & BH_FIELD_NULLABLE && kind == BH_JSON_NULL);
    case BH_FIELD_U64:
        return kind == BH_JSON_INTEGER || kind == BH_JSON_STRING;
    case BH_FIELD_ENUM:
    case BH_FIELD_STR:
    case BH_FIELD_TEXT:
    case BH_FIELD_SLICE:
    case BH_FIELD_HEX:
    case BH_FIELD_NS:
        return kind == BH_JSON_STRING || (field->flags & BH_FIELD_NULLABLE && kind == BH_JSON_NULL)
               || (field->flags & BH_FIELD_NUMBERS && kind == BH_JSON_INTEGER);
    case BH_FIELD_STRUCT:
    case BH_FIELD_POINTER:
        return schema_fits(field->of, value, ret_key);
    case BH_FIELD_JSON:
        return field->of ? schema_fits(field->of, value, ret_key) : kind == BH_JSON_OBJECT;
    case BH_FIELD_AMOUNT:
        return kind == BH_JSON_INTEGER || kind == BH_JSON_STRING || kind == BH_JSON_NULL;
    case BH_FIELD_TEXTS:
    case BH_FIELD_LINES:
    case BH_FIELD_JSONS:
    case BH_FIELD_U64S:
    case BH_FIELD_ARRAY:
    case BH_FIELD_LIST:
    case BH_FIELD_ROWS:
        return schema_items_fit(field, value, ret_key);
    }
    return false;
}

static inline bool
schema_fits(const struct bh_fields *fields, bh_json_value value, const char **ret_key)
{
    bh_json_value member;
    const char *key;
    void *cursor = NULL;

    *ret_key = fields->name;
    if (bh_json_kind(value) != BH_JSON_OBJECT)
        return false;
    while (bh_json_next(value, &cursor, &key, &member)) {
        const struct bh_field *field = bh_fields_find(fields, key, strlen(key));

        *ret_key = key;
        if (!field || !schema_value_fits(field, member, ret_key))
            return false;
    }
    for (uint32_t i = 0; i < fields->count; i++) {
        *ret_key = fields->fields[i].name;
        if (fields->fields[i].flags & BH_FIELD_REQUIRED && !bh_json_get(value, *ret_key))
            return false;
    }
    return true;
}

#endif
