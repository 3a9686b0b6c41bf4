#include "api/openapi.h"

#include "api/documents/replies.h"
#include "base/json.h"
#include "base/test.h"
#include "policy/operations.h"

static struct bh_arena *arena;
static struct bh_json *json;
static bh_json_value root;

static int
openapi_parse(void **state)
{
    struct bh_err err;
    const char *text;

    arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    text = bh_api_openapi(arena);
    if (!text || bh_json_parse(text, strlen(text), &json, &err) != BH_OK)
        return -1;
    root = bh_json_root(json);
    return 0;
}

static int
openapi_forget(void **state)
{
    bh_json_free(json);
    bh_arena_free(arena);
    return 0;
}

static bh_json_value
operation(const struct bh_operation_row *row)
{
    static const char *const members[] = { "get", "post", "put", "delete" };
    bh_json_value paths = bh_json_get(root, "paths");

    return bh_json_get(bh_json_get(paths, row->path), members[row->method]);
}

static bool
has_parameter(bh_json_value op, const char *name)
{
    bh_json_value list = bh_json_get(op, "parameters");

    for (size_t i = 0; i < bh_json_count(list); i++)
        if (strcmp(bh_json_text(bh_json_get(bh_json_at(list, i), "name"), ""), name) == 0)
            return true;
    return false;
}

static void
every_operation_is_described(void **state)
{
    BH_CHECK_STR("version", bh_json_text(bh_json_get(root, "openapi"), ""), "3.1.0");
    for (int i = 0; i < BH_OPERATIONS; i++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)i);
        bh_json_value op = operation(row), responses = bh_json_get(op, "responses");
        char word[32];

        BH_CHECK(row->name, op);
        BH_CHECK(row->name, bh_json_text(bh_json_get(op, "operationId"), "")[0]);
        BH_CHECK_STR(row->name, bh_json_text(bh_json_get(op, "summary"), ""), row->summary);
        BH_CHECK(row->name, bh_json_get(responses, "200") || bh_json_get(responses, "201")
                                || bh_json_get(responses, "101"));
        BH_CHECK(row->name, bh_json_get(responses, "default"));
        BH_CHECK_EQ(row->name, bh_json_get(op, "requestBody") != NULL, row->has_body);
        BH_CHECK_EQ(row->name, has_parameter(op, "id"), strstr(row->path, "{id}") != NULL);
        BH_CHECK_EQ(row->name, has_parameter(op, "rest"), strstr(row->path, "{rest}") != NULL);
        BH_CHECK_EQ(row->name, has_parameter(op, "Idempotency-Key"), row->kind == BH_OPERATION_MUTATE);
        BH_CHECK_EQ(row->name, bh_json_count(bh_json_get(op, "security")), row->scope != BH_SCOPE_NOBODY);
        for (const char *at = row->query; sscanf(at, "%31s", word) == 1;) {
            BH_CHECK(row->name, has_parameter(op, word));
            at = strstr(at, word) + strlen(word);
        }
    }
    BH_CHECK_DONE();
}

static void
bodies_come_from_the_descriptions(void **state)
{
    bh_json_value schemas = bh_json_get(bh_json_get(root, "components"), "schemas");
    bh_json_value job = bh_json_get(schemas, "job"), properties = bh_json_get(job, "properties");
    bh_json_value count = bh_json_get(properties, "count");

    for (uint32_t i = 0; i < bh_job_spec_fields.count; i++)
        BH_CHECK(bh_job_spec_fields.fields[i].name,
                 bh_json_get(properties, bh_job_spec_fields.fields[i].name));
    BH_CHECK_EQ("maximum", bh_json_number(bh_json_get(count, "maximum"), 0), BH_JOB_COUNT_MAX);
    BH_CHECK("doc", bh_json_text(bh_json_get(count, "description"), "")[0]);
    BH_CHECK_EQ("required", bh_json_count(bh_json_get(job, "required")), 1);
    BH_CHECK("enum", bh_json_count(bh_json_get(bh_json_get(properties, "priority"), "enum")) == 4);
    BH_CHECK("closed", bh_json_get(job, "additionalProperties")
                           && !bh_json_truth(bh_json_get(job, "additionalProperties")));
    BH_CHECK("site", bh_json_get(schemas, "site") && bh_json_get(schemas, "tenant"));
    BH_CHECK("error", bh_json_get(schemas, "error"));
    BH_CHECK_DONE();
}

/* Every "$ref" in the text leads to a schema that is there. */
static void
references_lead_somewhere(void **state)
{
    static const char prefix[] = "\"$ref\":\"#/components/schemas/";
    bh_json_value schemas = bh_json_get(bh_json_get(root, "components"), "schemas");
    const char *at = bh_api_openapi(arena);
    uint32_t found = 0;

    while ((at = strstr(at, prefix))) {
        char name[64];

        at += sizeof prefix - 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\""), at);
        BH_CHECK(name, bh_json_get(schemas, name));
        found++;
    }
    BH_CHECK("many", found > 20);
    BH_CHECK_DONE();
}

/* A schema asks for nothing that it does not have, and each property says what it is. */
static void
schemas_are_whole(void **state)
{
    bh_json_value schemas = bh_json_get(bh_json_get(root, "components"), "schemas"), schema;
    const char *name, *key;
    void *cursor = NULL;

    while (bh_json_next(schemas, &cursor, &name, &schema)) {
        bh_json_value properties = bh_json_get(schema, "properties"), property;
        bh_json_value required = bh_json_get(schema, "required");
        void *at = NULL;

        for (size_t i = 0; i < bh_json_count(required); i++)
            BH_CHECK(name, bh_json_get(properties, bh_json_text(bh_json_at(required, i), "")));
        BH_CHECK(name, bh_json_next(properties, &at, &key, &property));
        do
            BH_CHECK(key, bh_json_get(property, "$ref") || bh_json_get(property, "type"));
        while (bh_json_next(properties, &at, &key, &property));
    }
    BH_CHECK_DONE();
}

/* Every reply is described: none is an object of which nothing is known. */
static void
every_reply_has_a_schema(void **state)
{
    for (int i = 0; i < BH_OPERATIONS; i++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)i);
        bh_json_value responses = bh_json_get(operation(row), "responses");
        bh_json_value reply = bh_json_get(responses, bh_json_get(responses, "101") ? "101" : "200");
        bh_json_value content = bh_json_get(bh_json_get(reply, "content"), "application/json");
        bh_json_value schema = bh_json_get(content, "schema");

        BH_CHECK(row->name, bh_json_get(reply, "content"));
        BH_CHECK(row->name, !content || bh_json_get(schema, "$ref") || row->id == BH_OP_OPENAPI);
    }
    BH_CHECK_DONE();
}

/* Rows of tables/replies.tbl are in order, complete, and say what they are. */
static void
replies_are_described(void **state)
{
    static const struct bh_fields *const replies[] = {
#define BH_REPLY(name) &bh_reply_##name##_fields,
#define BH_R(name, kind, key, when, doc)
#define BH_R_AS(name, kind, member, key, when, doc)
#define BH_R_OF(name, kind, key, of, when, doc)
#define BH_R_JSON(name, key, fields, when, doc)
#define BH_R_ENUM(name, key, names, when, doc)
#define BH_R_OLD(name, kind, key, member)
#define BH_R_OLD_OF(name, kind, key, member, of)
#define BH_REPLY_END(name)
#include "tables/replies.tbl"
    };

    for (size_t i = 0; i < BH_COUNT(replies); i++) {
        BH_CHECK(replies[i]->name, bh_fields_ordered(replies[i]));
        for (uint32_t k = 0; k < replies[i]->count; k++)
            BH_CHECK(replies[i]->fields[k].name, replies[i]->fields[k].doc[0]);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *old, *now;
} renamed[] = {
#define BH_RENAMED_KEY(old, now) { old, now },
#include "tables/renamed_keys.tbl"
#undef BH_RENAMED_KEY
};

/* Whether it is the old key of another property of the schema. */
static bool
openapi_is_renamed(bh_json_value schema, bh_json_value property)
{
    const char *doc = bh_json_text(bh_json_get(property, "description"), "");

    return bh_json_truth(bh_json_get(property, "deprecated")) && strncmp(doc, "now ", 4) == 0
           && bh_json_get(bh_json_get(schema, "properties"), doc + strlen("now "));
}

/* Which row of tables/renamed_keys.tbl the deprecated property is; BH_COUNT(renamed): none. */
static size_t
openapi_find_renamed(const char *key, bh_json_value property)
{
    const char *doc = bh_json_text(bh_json_get(property, "description"), "");

    for (size_t i = 0; i < BH_COUNT(renamed); i++)
        if (strcmp(renamed[i].old, key) == 0 && strcmp(doc + strlen("now "), renamed[i].now) == 0)
            return i;
    return BH_COUNT(renamed);
}

/* Programs leave out the old keys by this table: each of those is in it, and no other. */
static void
renamed_keys_are_the_deprecated_ones(void **state)
{
    bh_json_value schemas = bh_json_get(bh_json_get(root, "components"), "schemas"), schema, property;
    bool found[BH_COUNT(renamed)] = { false };
    void *at_schema = NULL;
    const char *name, *key;

    while (bh_json_next(schemas, &at_schema, &name, &schema)) {
        void *at = NULL;

        while (bh_json_next(bh_json_get(schema, "properties"), &at, &key, &property)) {
            size_t row;

            if (!openapi_is_renamed(schema, property))
                continue;
            row = openapi_find_renamed(key, property);
            BH_CHECK(key, row < BH_COUNT(renamed));
            if (row < BH_COUNT(renamed))
                found[row] = true;
        }
    }
    for (size_t i = 0; i < BH_COUNT(renamed); i++)
        BH_CHECK(renamed[i].old, found[i]);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_operation_is_described),
                                        cmocka_unit_test(bodies_come_from_the_descriptions),
                                        cmocka_unit_test(references_lead_somewhere),
                                        cmocka_unit_test(schemas_are_whole),
                                        cmocka_unit_test(every_reply_has_a_schema),
                                        cmocka_unit_test(replies_are_described),
                                        cmocka_unit_test(renamed_keys_are_the_deprecated_ones) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, openapi_parse, openapi_forget);
}
