#include "api/documents/replies.h"

#include <string.h>

#include "api/documents/receipt.h"
#include "base/err.h"
#include "engine/state/reason.h"
#include "model/site.h"
#include "model/spec.h"
#include "wire/message.h"

/* By enum bh_rc. */
static const char *const reply_error_codes[] = {
#define BH_ERROR(code, name, http, exit, retryable, documentation) [BH_##code] = name,
#include "tables/errors.tbl"
#undef BH_ERROR
};

#define ALWAYS BH_FIELD_REQUIRED
#define MAYBE 0
#define GIVEN BH_FIELD_NULLABLE
#define OR_NULL (BH_FIELD_REQUIRED | BH_FIELD_NULLABLE)
#define OLD (BH_FIELD_REQUIRED | BH_FIELD_DEPRECATED)

#define BH_FIELD_OBJECT BH_FIELD_JSON

/* Rows of a description; pages and arenas limit texts and lists. */
#define ROW(reply, member, key, kind, ...)                                                                   \
    BH_F_AS(struct bh_reply_##reply, member, key, BH_FIELD_##kind, .max = UINT32_MAX, __VA_ARGS__),
#define BH_REPLY(name) static const struct bh_field name##_rows[] = {
#define BH_R(name, kind, key, when, text) ROW(name, key, #key, kind, .flags = (when), .doc = text)
#define BH_R_AS(name, kind, member, key, when, text)                                                         \
    ROW(name, member, key, kind, .flags = (when), .doc = text)
#define BH_R_OF(name, kind, key, of_name, when, text)                                                        \
    ROW(name, key, #key, kind, .of = &bh_reply_##of_name##_fields, .flags = (when), .doc = text)
#define BH_R_JSON(name, key, fields_of, when, text)                                                          \
    ROW(name, key, #key, JSON, .of = &(fields_of), .flags = (when), .doc = text)
#define BH_R_ENUM(name, key, table, when, text)                                                              \
    BH_F_ENUM(struct bh_reply_##name, key, table, .flags = (when), .doc = text),
#define BH_R_OLD(name, kind, key, member) ROW(name, member, #key, kind, .flags = OLD, .doc = "now " #member)
#define BH_R_OLD_OF(name, kind, key, member, of_name)                                                        \
    ROW(name, member, #key, kind, .of = &bh_reply_##of_name##_fields, .flags = OLD, .doc = "now " #member)
#define BH_REPLY_END(reply)                                                                                  \
    }                                                                                                        \
    ;                                                                                                        \
    const struct bh_fields bh_reply_##reply##_fields =                                                       \
        BH_FIELDS(#reply, struct bh_reply_##reply, reply##_rows);
#include "tables/replies.tbl"

struct bh_slice
bh_reply_slice(const char *text)
{
    return (struct bh_slice){ text, text ? strlen(text) : 0 };
}
