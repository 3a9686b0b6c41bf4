#ifndef BH_BASE_TEST_ZOO_H
#define BH_BASE_TEST_ZOO_H

/* A struct with a field of every kind, for tests and fuzz targets. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"

enum zoo_colour { ZOO_RED, ZOO_GREEN, ZOO_RETIRED, ZOO_BLUE };
static const char *const zoo_colours[] = { "red", "green", NULL, "blue" };

struct zoo_tenant {
    uint32_t id;
    uint64_t limit;
};
static const struct bh_field zoo_tenant_rows[] = {
    BH_F(struct zoo_tenant, id, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F(struct zoo_tenant, limit, BH_FIELD_U64),
};
static const struct bh_fields zoo_tenant_fields =
    BH_FIELDS("tenant", struct zoo_tenant, zoo_tenant_rows);

enum { ZOO_SLOTS_MAX = 3, ZOO_TAGS_MAX = 4, ZOO_TENANTS_MAX = 8, ZOO_TEXT_MAX = 16 };

struct zoo {
    uint64_t at, big;
    enum zoo_colour colour;
    uint32_t count;
    int32_t delta;
    uint8_t digest[4];
    bool flag;
    char name[8];
    struct zoo_tenant nested;
    struct zoo_tenant slots[ZOO_SLOTS_MAX];
    uint32_t slot_count;
    struct bh_texts tags;
    struct bh_list tenants;
    const char *text;
};
static const struct bh_field zoo_rows[] = {
    BH_F(struct zoo, at, BH_FIELD_NS),
    BH_F(struct zoo, big, BH_FIELD_U64),
    BH_F_ENUM(struct zoo, colour, zoo_colours),
    BH_F(struct zoo, count, BH_FIELD_U32, .flags = BH_FIELD_ALWAYS),
    BH_F(struct zoo, delta, BH_FIELD_I32),
    BH_F(struct zoo, digest, BH_FIELD_HEX),
    BH_F(struct zoo, flag, BH_FIELD_BOOL),
    BH_F(struct zoo, name, BH_FIELD_STR),
    BH_F(struct zoo, nested, BH_FIELD_STRUCT, .of = &zoo_tenant_fields),
    BH_F_ARRAY(struct zoo, slots, slot_count, zoo_tenant_fields, ZOO_SLOTS_MAX),
    BH_F(struct zoo, tags, BH_FIELD_TEXTS, .max = ZOO_TAGS_MAX),
    BH_F(struct zoo, tenants, BH_FIELD_LIST, .of = &zoo_tenant_fields, .max = ZOO_TENANTS_MAX),
    BH_F(struct zoo, text, BH_FIELD_TEXT, .max = ZOO_TEXT_MAX),
};
static const struct bh_fields zoo_fields = BH_FIELDS("zoo", struct zoo, zoo_rows);

#endif
