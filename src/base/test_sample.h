#ifndef BH_BASE_TEST_SAMPLE_H
#define BH_BASE_TEST_SAMPLE_H

/* A struct with a field of every kind, for tests and fuzz targets. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"

enum zoo_colour { ZOO_RED, ZOO_GREEN, ZOO_RETIRED, ZOO_BLUE };
static const char *const sample_colors[] = { "red", "green", NULL, "blue" };

struct sample_tenant {
    uint32_t id;
    uint64_t limit;
};
static const struct bh_field sample_tenant_rows[] = {
    BH_F(struct sample_tenant, id, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F(struct sample_tenant, limit, BH_FIELD_U64),
};
static const struct bh_fields sample_tenant_fields =
    BH_FIELDS("tenant", struct sample_tenant, sample_tenant_rows);

enum { SAMPLE_SLOTS_MAX = 3, SAMPLE_TAGS_MAX = 4, SAMPLE_TENANTS_MAX = 8, SAMPLE_TEXT_MAX = 16 };

struct sample {
    uint64_t at, big;
    enum zoo_colour colour;
    uint32_t count;
    int32_t delta;
    uint8_t digest[4];
    bool flag;
    char name[8];
    struct sample_tenant nested;
    struct sample_tenant slots[SAMPLE_SLOTS_MAX];
    uint32_t slot_count;
    struct bh_texts tags;
    struct bh_list tenants;
    const char *text;
};
static const struct bh_field sample_rows[] = {
    BH_F(struct sample, at, BH_FIELD_NS),
    BH_F(struct sample, big, BH_FIELD_U64),
    BH_F_ENUM(struct sample, colour, sample_colors),
    BH_F(struct sample, count, BH_FIELD_U32, .flags = BH_FIELD_ALWAYS),
    BH_F(struct sample, delta, BH_FIELD_I32),
    BH_F(struct sample, digest, BH_FIELD_HEX),
    BH_F(struct sample, flag, BH_FIELD_BOOL),
    BH_F(struct sample, name, BH_FIELD_STR),
    BH_F(struct sample, nested, BH_FIELD_STRUCT, .of = &sample_tenant_fields),
    BH_F_ARRAY(struct sample, slots, slot_count, sample_tenant_fields, SAMPLE_SLOTS_MAX),
    BH_F(struct sample, tags, BH_FIELD_TEXTS, .max = SAMPLE_TAGS_MAX),
    BH_F(struct sample, tenants, BH_FIELD_LIST, .of = &sample_tenant_fields, .max = SAMPLE_TENANTS_MAX),
    BH_F(struct sample, text, BH_FIELD_TEXT, .max = SAMPLE_TEXT_MAX),
};
static const struct bh_fields sample_fields = BH_FIELDS("zoo", struct sample, sample_rows);

#endif
