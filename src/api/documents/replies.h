#ifndef BH_API_DOCUMENTS_REPLIES_H
#define BH_API_DOCUMENTS_REPLIES_H

#include <stdbool.h>

#include "base/fields.h"

/* What the API answers, from tables/replies.tbl: of each reply its struct, bh_reply_<name>, and the
 * description that the writer and the OpenAPI document follow, bh_reply_<name>_fields.  Texts and
 * lists are borrowed until the reply is written. */

#define BH_REPLY_BOOL(key) bool key
#define BH_REPLY_U32(key) uint32_t key
#define BH_REPLY_I32(key) int32_t key
#define BH_REPLY_U64(key) uint64_t key
#define BH_REPLY_I64(key) int64_t key
#define BH_REPLY_NS(key) uint64_t key
#define BH_REPLY_TEXT(key) const char *key
#define BH_REPLY_TEXTS(key) struct bh_texts key
#define BH_REPLY_LINES(key) const char *key
#define BH_REPLY_HEX(key) uint8_t key[32]
#define BH_REPLY_SLICE(key) struct bh_slice key
#define BH_REPLY_OBJECT(key) struct bh_slice key /* JSON */
#define BH_REPLY_JSONS(key) struct bh_slice key  /* JSON: a list of objects */
#define BH_REPLY_AMOUNT(key) struct bh_slice key /* JSON: a number, a text or null */
#define BH_REPLY_U64S(key) struct bh_list key
#define BH_REPLY_STRUCT(key, of) struct bh_reply_##of key
#define BH_REPLY_POINTER(key, of) const struct bh_reply_##of *key
#define BH_REPLY_LIST(key, of) struct bh_list key
#define BH_REPLY_ROWS(key, of) struct bh_list key

#define BH_REPLY(name) struct bh_reply_##name {
#define BH_R(name, kind, key, when, doc) BH_REPLY_##kind(key);
#define BH_R_AS(name, kind, member, key, when, doc) BH_REPLY_##kind(member);
#define BH_R_OF(name, kind, key, of, when, doc) BH_REPLY_##kind(key, of);
#define BH_R_JSON(name, key, fields, when, doc) struct bh_slice key;
#define BH_R_ENUM(name, key, names, when, doc) uint32_t key;
#define BH_R_OLD(name, kind, key, member)
#define BH_R_OLD_OF(name, kind, key, member, of)
#define BH_REPLY_END(name)                                                                                   \
    }                                                                                                        \
    ;                                                                                                        \
    extern const struct bh_fields bh_reply_##name##_fields;
#include "tables/replies.tbl"
#undef BH_REPLY
#undef BH_R
#undef BH_R_AS
#undef BH_R_OF
#undef BH_R_JSON
#undef BH_R_ENUM
#undef BH_R_OLD
#undef BH_R_OLD_OF
#undef BH_REPLY_END

/* A text as the pair of pointer and length that JSON and long texts have; of NULL none. */
struct bh_slice bh_reply_slice(const char *text);

#endif
