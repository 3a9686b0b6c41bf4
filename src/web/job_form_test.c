/* A specification as a form, as a job file and as a command line, and back. */
#include "web/job_form.h"

#include <string.h>

#include "base/attr.h"
#include "base/test.h"
#include "base/yaml.h"
#include "model/spec.h"
#include "web/job_text.h"

static const struct {
    const char *name, *spec, *command;
} specs[] = {
    { "the least", "{\"sku\":\"small\",\"args\":[\"true\"]}", "bulkhead submit --sku small -- true" },
    { "quotes",
      "{\"sku\":\"small\",\"args\":[\"sh\",\"-c\",\"echo \\\"it's\\\" $HOME; # \\\\n\",\"\",\"a b\"]}",
      "bulkhead submit --sku small -- sh -c 'echo \"it'\\''s\" $HOME; # \\n' '' 'a b'" },
    { "lines", "{\"sku\":\"small\",\"args\":[\"a\\nb\",\"\\tc\"]}",
      "bulkhead submit --sku small -- 'a\nb' '\tc'" },
    { "numbers and flags",
      "{\"tenant\":\"acme/vision\",\"sku\":\"small\",\"args\":[\"-v\"],\"count\":2,\"gang\":3,\"hold\":true,\"pids\":9}",
      "bulkhead submit --tenant acme/vision --sku small --count 2 --gang 3 --pids 9 --hold -- -v" },
    { "mounts",
      "{\"sku\":\"s\",\"args\":[\"x\"],\"mounts\":[{\"dataset\":\"d\"},{\"source\":\"/a b\",\"target\":\"/t\",\"write\":true},"
      "{\"dataset\":\"e\",\"write\":true}]}",
      "bulkhead submit --sku s --mount dataset=d --mount '/a b:/t:rw' --mount dataset=e::rw -- x" },
    { "lists and choices",
      "{\"sku\":\"s\",\"args\":[\"x\"],\"name\":\"true\",\"time_limit\":\"600\",\"network\":\"egress\",\"priority\":\"low\","
      "\"on_preempt\":\"never\",\"env\":[\"A=b c\",\"E=\"],\"labels\":[\"team=v\"],\"deadline\":\"+2h\"}",
      "bulkhead submit --sku s --name true --priority low --time-limit 600 --env 'A=b c' --env E= --label team=v "
      "--network egress --on-preempt never --deadline +2h -- x" },
    { "of an image", "{\"sku\":\"s\",\"image\":\"oci:/i:1\"}", "bulkhead submit --sku s --image oci:/i:1" },
    { "foreign letters", "{\"sku\":\"s\",\"args\":[\"x\"],\"name\":\"\xc3\xa4 \xe2\x82\xac\"}",
      "bulkhead submit --sku s --name '\xc3\xa4 \xe2\x82\xac' -- x" },
};

/* As the API would read it, and write it again: so that equal jobs are equal texts. */
static void
form_test_normalize(const char *json, struct bh_buf *out)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_job_spec spec;
    struct bh_err err;

    if (bh_json_decode(json, strlen(json), &bh_job_spec_fields, &spec, arena, &err) == BH_OK)
        bh_json_encode(out, &bh_job_spec_fields, &spec);
    else
        bh_buf_printf(out, "%s: %s", err.msg, json);
}

static void
form_test_check_same(const char *name, const char *got, const char *want)
{
    BH_AUTO(bh_buf_fini) struct bh_buf a = { .max = 1 << 20 }, b = { .max = 1 << 20 };

    form_test_normalize(got, &a);
    form_test_normalize(want, &b);
    BH_CHECK_STR(name, bh_buf_text(&a), bh_buf_text(&b));
}

static void
a_job_goes_through_the_form(void **state)
{
    for (size_t i = 0; i < BH_COUNT(specs); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
        BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = 1 << 20 };
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        struct bh_job_form form;
        struct bh_err err;

        assert_int_equal(bh_json_parse(specs[i].spec, strlen(specs[i].spec), &json, &err), BH_OK);
        bh_job_form_fill(bh_json_root(json), arena, &form);
        BH_CHECK_EQ(specs[i].name, bh_job_form_put_spec(&out, &form, &err), BH_OK);
        form_test_check_same(specs[i].name, bh_buf_text(&out), specs[i].spec);
    }
    BH_CHECK_DONE();
}

static void
a_job_file_says_the_same(void **state)
{
    for (size_t i = 0; i < BH_COUNT(specs); i++) {
        BH_AUTO(bh_buf_fini) struct bh_buf yaml = { .max = 1 << 20 }, back = { .max = 1 << 20 };
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        struct bh_err err;

        assert_int_equal(bh_json_parse(specs[i].spec, strlen(specs[i].spec), &json, &err), BH_OK);
        bh_job_text_put_yaml(&yaml, bh_json_root(json));
        BH_CHECK_EQ(specs[i].name, bh_yaml_to_json(bh_buf_text(&yaml), yaml.length, &back, &err), BH_OK);
        form_test_check_same(specs[i].name, bh_buf_text(&back), specs[i].spec);
    }
    BH_CHECK_DONE();
}

/* tests/web/jobs.py has a shell and the command line itself read such lines. */
static void
a_command_line_says_the_same(void **state)
{
    for (size_t i = 0; i < BH_COUNT(specs); i++) {
        BH_AUTO(bh_buf_fini) struct bh_buf line = { .max = 1 << 20 };
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        struct bh_err err;

        assert_int_equal(bh_json_parse(specs[i].spec, strlen(specs[i].spec), &json, &err), BH_OK);
        bh_job_text_put_command(&line, bh_json_root(json));
        BH_CHECK_STR(specs[i].name, bh_buf_text(&line), specs[i].command);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *key, *value;
    bh_rc rc;
    const char *says; /* the specification, or the refusal */
} values[] = {
    { "words", "args", " a  'b c'\n\"d \\\"e\\\" \\x\" f\\ g ", BH_OK,
      "{\"args\":[\"a\",\"b c\",\"d \\\"e\\\" \\\\x\",\"f g\"]}" },
    { "empty words", "args", "'' \"\"", BH_OK, "{\"args\":[\"\",\"\"]}" },
    { "parts of one word", "args", "a'b'\"c\"", BH_OK, "{\"args\":[\"abc\"]}" },
    { "a quote is open", "args", "sh -c 'echo", BH_INVALID, "args: a quote is not closed" },
    { "nothing said", "args", " \n ", BH_OK, "{}" },
    { "lines", "env", "A=1\n\n  B=2  \n", BH_OK, "{\"env\":[\"A=1\",\"B=2\"]}" },
    { "a mount that is read", "mounts", "dataset=d:/t:ro", BH_OK,
      "{\"mounts\":[{\"dataset\":\"d\",\"target\":\"/t\"}]}" },
    { "a mount of a strange mode", "mounts", "/a:/b:rx", BH_INVALID, "mounts: \"rx\" is neither rw nor ro" },
    { "a number", "count", "2", BH_OK, "{\"count\":2}" },
    { "no number", "count", "two", BH_OK, "{\"count\":\"two\"}" },
    { "what is taken anyway", "network", "none", BH_OK, "{}" },
    { "a box that is ticked", "hold", "true", BH_OK, "{\"hold\":true}" },
};

static void
values_are_read(void **state)
{
    for (size_t i = 0; i < BH_COUNT(values); i++) {
        BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = 1 << 20 };
        struct bh_job_form form = { { NULL } };
        struct bh_err err = { 0 };
        bh_rc rc;

        for (uint32_t n = 0; n < BH_JOB_FIELDS; n++)
            if (strcmp(bh_job_fields[n].key, values[i].key) == 0)
                form.values[n] = values[i].value;
        rc = bh_job_form_put_spec(&out, &form, &err);
        BH_CHECK_EQ(values[i].name, rc, values[i].rc);
        BH_CHECK_STR(values[i].name, rc == BH_OK ? bh_buf_text(&out) : err.msg, values[i].says);
    }
    BH_CHECK_DONE();
}

/* What a job file can say, the form can say; otherwise "another like this" would lose it. */
static void
every_key_has_a_field(void **state)
{
    BH_CHECK_EQ("as many", bh_job_spec_fields.count, BH_JOB_FIELDS);
    for (uint32_t i = 0; i < bh_job_spec_fields.count; i++) {
        const char *key = bh_job_spec_fields.fields[i].name;
        char message[80];

        snprintf(message, sizeof message, "%s: is wrong", key);
        BH_CHECK(key, bh_job_form_find(message) < BH_JOB_FIELDS);
    }
    BH_CHECK_EQ("an item of a list", strcmp(bh_job_fields[bh_job_form_find("mounts[2]: no")].key, "mounts"),
                0);
    BH_CHECK_EQ("a key that is missing",
                strcmp(bh_job_fields[bh_job_form_find("\"sku\" is missing")].key, "sku"), 0);
    BH_CHECK_EQ("about no field", bh_job_form_find("acme/vision is full"), BH_JOB_FIELDS);
    BH_CHECK_EQ("nor of one's name alone", bh_job_form_find("tenant acme is full"), BH_JOB_FIELDS);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_goes_through_the_form),  cmocka_unit_test(a_job_file_says_the_same),
    cmocka_unit_test(a_command_line_says_the_same), cmocka_unit_test(values_are_read),
    cmocka_unit_test(every_key_has_a_field),
};

int
main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
