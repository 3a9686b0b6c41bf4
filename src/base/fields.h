#ifndef BH_BASE_FIELDS_H
#define BH_BASE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* A description of a struct, made once beside it, from which every encoding is
 * derived: canonical JSON (journal, API), binary frames (wire) and the schemas in
 * the OpenAPI document.  A field that is described once cannot drift. */

enum bh_field_kind {
    BH_FIELD_BOOL,   /* bool */
    BH_FIELD_U32,    /* uint32_t */
    BH_FIELD_I32,    /* int32_t */
    BH_FIELD_U64,    /* uint64_t; JSON: a string above 2^53 - 1 */
    BH_FIELD_NS,     /* uint64_t nanoseconds; JSON: always a string */
    BH_FIELD_ENUM,   /* an enum of 4 bytes; JSON: its name in `names` */
    BH_FIELD_STR,    /* char[size], NUL-terminated */
    BH_FIELD_TEXT,   /* const char *, in the decoder's arena; NULL when absent */
    BH_FIELD_TEXTS,  /* struct bh_texts */
    BH_FIELD_HEX,    /* uint8_t[size]; JSON: lower-case hex */
    BH_FIELD_STRUCT, /* another described struct, inline */
    BH_FIELD_ARRAY,  /* described structs inline, `max` of them; count at count_offset */
    BH_FIELD_LIST,   /* struct bh_list of described structs in the decoder's arena */
    /* only written, as JSON: */
    BH_FIELD_POINTER, /* to another described struct; NULL: left out */
    BH_FIELD_I64,     /* int64_t */
    BH_FIELD_LINES,   /* const char *: texts, each with a newline behind it */
    BH_FIELD_U64S,    /* struct bh_list of uint64_t */
    BH_FIELD_SLICE,   /* struct bh_slice, a text */
    BH_FIELD_JSON,    /* struct bh_slice that is JSON already, of `of`; without `of` any object */
    BH_FIELD_JSONS,   /* the same: a list of any objects */
    BH_FIELD_AMOUNT,  /* the same: a number, a text or null */
    BH_FIELD_ROWS,    /* a list that its writer streams; not encoded with the others */
};

enum bh_field_flag {
    BH_FIELD_REQUIRED = 1,    /* decoding fails without it */
    BH_FIELD_ALWAYS = 2,      /* encoded even when zero, as REQUIRED ones are; others are
                                 left out then, a STRUCT when all its fields are zero */
    BH_FIELD_NUMBERS = 4,     /* TEXT: an integer is taken too, as its digits */
    BH_FIELD_POSITIVE = 8,    /* U32: 0 is refused; to leave the key out says nothing */
    BH_FIELD_NULLABLE = 16,   /* a number of BH_UNSET, a pointer of NULL is no value: null where the field
                                 is REQUIRED, else left out; zero is one, and written */
    BH_FIELD_DEPRECATED = 32, /* an old key, of a member that has another */
    BH_FIELD_INPUT = 64,      /* decoded and never encoded */
};

/* A number that is not known: all bits set, of whatever width. */
#define BH_UNSET (-1)

struct bh_texts {
    const char **items;
    uint32_t count;
};

struct bh_list {
    void *items;
    uint32_t count;
};

struct bh_field {
    const char *name; /* JSON key, ASCII */
    enum bh_field_kind kind;
    uint32_t offset, size, flags;
    uint32_t max; /* TEXT: bytes; TEXTS, ARRAY, LIST: items; 0 takes the default */
    uint32_t count_offset;
    uint32_t name_count;        /* ENUM: how many `names` */
    const char *const *names;   /* ENUM: by value; NULL entries are not accepted */
    const struct bh_fields *of; /* STRUCT, ARRAY, LIST */
    const char *doc;            /* one sentence for the API document; may be NULL */
};

/* Fields are listed in byte order of their names: that makes the JSON canonical. */
struct bh_fields {
    const char *name; /* what the struct is called in messages and schemas */
    uint32_t size;
    uint32_t count;
    const struct bh_field *fields;
};

enum { BH_FIELD_TEXT_MAX = 65536, BH_FIELD_ITEMS_MAX = 1024 };

/* The rows of a description:
 *   static const struct bh_field job_fields[] = {
 *       BH_F(struct bh_job_spec, count, BH_FIELD_U32),
 *       BH_F_ENUM(struct bh_job_spec, kind, bh_job_kind_names),
 *   };
 *   const struct bh_fields bh_job_spec_fields = BH_FIELDS("job", struct bh_job_spec, job_fields); */
#define BH_F(type, member, field_kind, ...) BH_F_AS(type, member, #member, field_kind, __VA_ARGS__)
/* Of a member whose name is not the key that stands in JSON. */
#define BH_F_AS(type, member, key, field_kind, ...)                                                          \
    {                                                                                                        \
        .name = key, .kind = field_kind, .offset = offsetof(type, member),                                   \
        .size = sizeof(((type *)0)->member), __VA_ARGS__                                                     \
    }
/* A key of before, which is read for one version more as the member's new one. */
#define BH_F_OLD(type, member, key, field_kind, ...)                                                         \
    BH_F_AS(type, member, key, field_kind, .flags = BH_FIELD_INPUT | BH_FIELD_DEPRECATED | BH_FIELD_NUMBERS, \
            __VA_ARGS__)
#define BH_F_ENUM(type, member, name_table, ...)                                                             \
    {                                                                                                        \
        .name = #member, .kind = BH_FIELD_ENUM, .offset = offsetof(type, member),                            \
        .size = sizeof(((type *)0)->member), .names = name_table,                                            \
        .name_count = sizeof(name_table) / sizeof((name_table)[0]), __VA_ARGS__                              \
    }
#define BH_F_ARRAY(type, member, counter, item_fields, most, ...)                                            \
    BH_F_ARRAY_AS(type, member, #member, counter, item_fields, most, __VA_ARGS__)
#define BH_F_ARRAY_AS(type, member, key, counter, item_fields, most, ...)                                    \
    {                                                                                                        \
        .name = key, .kind = BH_FIELD_ARRAY, .offset = offsetof(type, member),                               \
        .size = sizeof(((type *)0)->member), .of = &(item_fields), .max = most,                              \
        .count_offset = offsetof(type, counter), __VA_ARGS__                                                 \
    }
#define BH_FIELDS(text, type, rows)                                                                          \
    {                                                                                                        \
        .name = text, .size = sizeof(type), .count = sizeof(rows) / sizeof((rows)[0]), .fields = rows        \
    }

/* The field of that name (`length` bytes), or NULL. */
const struct bh_field *bh_fields_find(const struct bh_fields *fields, const char *name, size_t length);

/* "count: 1 to 16; partitions of each member" in at most `size` bytes: the field's sentence and, of a
 * number that has one, its range.  "" where nothing is said of the field. */
void bh_field_describe(const struct bh_field *field, char *ret_text, uint32_t size);

/* Whether the fields, and those of the structs within, stand in order and are
 * complete (ENUM has names, STRUCT has `of`).  For tests. */
bool bh_fields_ordered(const struct bh_fields *fields);

#endif
