#ifndef BH_BASE_JSON_H
#define BH_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fields.h"

/* JSON in both directions.
 *
 * Reading is strict: UTF-8, no duplicate keys, nesting at most BH_JSON_DEPTH_MAX,
 * no floating point anywhere, no NUL or control characters in strings, unknown
 * keys refused by name.  Writing is canonical (the RFC 8785 subset with ASCII
 * keys in byte order, integers and strings only), so equal values have equal
 * bytes and equal digests. */

enum { BH_JSON_DEPTH_MAX = 32, BH_JSON_BYTES_MAX = 1 << 20 };

/* Fill the struct that `fields` describes from `length` bytes of JSON.
 *
 * Texts and lists live in `arena`.  On failure `ret_struct` holds nothing of use
 * and the result is
 *   BH_INVALID  not JSON, or a key or type is wrong; the message names the place,
 *               as in `tenants[2].limit: expected an integer`
 *   BH_RANGE    a number or a length outside its range
 *   BH_FULL     larger than BH_JSON_BYTES_MAX or than the arena allows */
BH_MUST_USE bh_rc bh_json_decode(const char *text, size_t length, const struct bh_fields *fields,
                                 void *ret_struct, struct bh_arena *arena, struct bh_err *err);

/* Write the struct as canonical JSON. */
void bh_json_encode(struct bh_buf *out, const struct bh_fields *fields, const void *value);

/* Write one JSON string with its quotes, escaped as RFC 8785 says; bytes that are no
 * UTF-8 become U+FFFD, so that the result is always JSON. */
void bh_json_put_str(struct bh_buf *out, const char *text);
void bh_json_put_strn(struct bh_buf *out, const char *text, size_t length);

/* Write a u64: a number up to 2^53 - 1, a string above. */
void bh_json_put_u64(struct bh_buf *out, uint64_t value);

/* A writer for documents that no struct describes: objects and arrays are opened
 * and closed, commas come by themselves.  `key` is NULL inside arrays. */
struct bh_json_writer {
    struct bh_buf *out;
    uint32_t depth;
    uint64_t filled; /* bit d: something stands already at depth d */
};

struct bh_json_writer bh_json_begin(struct bh_buf *out);
void bh_json_open(struct bh_json_writer *w, const char *key, char bracket);
void bh_json_close(struct bh_json_writer *w, char bracket);
void bh_json_str(struct bh_json_writer *w, const char *key, const char *text);
void bh_json_strn(struct bh_json_writer *w, const char *key, const char *text, size_t length);
void bh_json_u64(struct bh_json_writer *w, const char *key, uint64_t value);
void bh_json_i64(struct bh_json_writer *w, const char *key, int64_t value);
void bh_json_ns(struct bh_json_writer *w, const char *key, uint64_t value);
void bh_json_bool(struct bh_json_writer *w, const char *key, bool value);
/* The members of the struct, into the object that is open. */
void bh_json_members(struct bh_json_writer *w, const struct bh_fields *fields, const void *value);
void bh_json_struct(struct bh_json_writer *w, const char *key, const struct bh_fields *fields,
                    const void *value);
/* `text` is JSON already. */
void bh_json_raw(struct bh_json_writer *w, const char *key, const char *text);

/* A parsed document to walk, for clients that read what they did not describe
 * (the CLI's tables).  Values borrow from the document.  bh_json_parse fails as
 * bh_json_decode does. */
struct bh_json;
typedef const void *bh_json_value;

BH_MUST_USE bh_rc bh_json_parse(const char *text, size_t length, struct bh_json **ret_json,
                                struct bh_err *err);
void bh_json_free(struct bh_json *json);
BH_AUTO_DEFINE(struct bh_json *, bh_json_free)
bh_json_value bh_json_root(const struct bh_json *json);
bh_json_value bh_json_get(bh_json_value object, const char *key); /* NULL when absent */
size_t bh_json_count(bh_json_value array);                        /* 0 for others */
bh_json_value bh_json_at(bh_json_value array, size_t index);
const char *bh_json_text(bh_json_value value, const char *fallback); /* strings only */
uint64_t bh_json_number(bh_json_value value, uint64_t fallback);     /* numbers, digit strings */
int64_t bh_json_integer(bh_json_value value, int64_t fallback);      /* numbers only */
bool bh_json_truth(bh_json_value value);

enum bh_json_kind {
    BH_JSON_NULL,
    BH_JSON_BOOL,
    BH_JSON_INTEGER,
    BH_JSON_STRING,
    BH_JSON_ARRAY,
    BH_JSON_OBJECT
};
enum bh_json_kind bh_json_kind(bh_json_value value); /* NULL is BH_JSON_NULL */

/* The next member of an object, in the order of the text; start with *cursor = NULL.
 * False after the last, and for what is no object. */
bool bh_json_next(bh_json_value object, void **cursor, const char **ret_key, bh_json_value *ret_value);

#endif
