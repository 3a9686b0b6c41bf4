#include "base/log.h"

#include <unistd.h>

#include "base/json.h"
#include "base/test.h"

/* What `event` with `fields` writes to standard error. */
static size_t
log_test_logged(enum bh_log_event event, const struct bh_log_field *fields, char *ret_line, size_t size)
{
    int ends[2], kept = dup(STDERR_FILENO);
    ssize_t got;

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    bh_log_write(event, fields);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    got = read(ends[0], ret_line, size - 1);
    close(ends[0]);
    assert_true(got >= 0);
    ret_line[got] = '\0';
    return (size_t)got;
}

static const struct bh_log_field fields[] = {
    { BH_LOG_STR, "gpu", "GPU-1\n\"x\"", 0 },
    { BH_LOG_STR, "none", NULL, 0 },
    { BH_LOG_U64, "lease", NULL, UINT64_MAX },
    { .kind = BH_LOG_END },
};

static void
test_text_line(void **state)
{
    char line[4096];

    bh_log_setup("test", false, BH_LOG_INFO);
    log_test_logged(BH_EVENT_XID, fields, line, sizeof line);
    BH_CHECK("begins with the time", strlen(line) > 20 && line[19] == 'Z');
    BH_CHECK_STR("the rest", line + 20,
                 " warn test: driver reported an XID gpu=\"GPU-1\\n\\\"x\\\"\" none=\"\" "
                 "lease=18446744073709551615\n");
    BH_CHECK_DONE();
}

static void
test_json_line(void **state)
{
    char line[4096];
    struct bh_json *json = NULL;
    struct bh_err err = { 0 };
    bh_json_value root;
    size_t length;

    bh_log_setup("test", true, BH_LOG_INFO);
    length = log_test_logged(BH_EVENT_XID, fields, line, sizeof line);
    BH_CHECK("one line", length > 0 && strchr(line, '\n') == line + length - 1);
    assert_int_equal(bh_json_parse(line, length, &json, &err), BH_OK);
    root = bh_json_root(json);
    BH_CHECK_STR("event", bh_json_text(bh_json_get(root, "event"), "-"), "xid");
    BH_CHECK_STR("level", bh_json_text(bh_json_get(root, "level"), "-"), "warn");
    BH_CHECK_STR("program", bh_json_text(bh_json_get(root, "program"), "-"), "test");
    BH_CHECK_STR("a text", bh_json_text(bh_json_get(root, "gpu"), "-"), "GPU-1\n\"x\"");
    BH_CHECK_EQ("a number", bh_json_number(bh_json_get(root, "lease"), 0), UINT64_MAX);
    BH_CHECK("time", bh_json_number(bh_json_get(root, "ts"), 0) > 0);
    bh_json_free(json);
    log_test_logged(BH_EVENT_DISK_FULL, &fields[BH_COUNT(fields) - 1], line, sizeof line);
    BH_CHECK("a name of two words", strstr(line, "\"event\":\"disk_full\"}"));
    BH_CHECK_DONE();
}

/* Whatever does not fit, the line stays one whole JSON object. */
static void
test_long_texts_are_cut(void **state)
{
    char text[5000], line[8192];
    const struct bh_log_field longest[] = { { BH_LOG_STR, "why", text, 0 },
                                            { BH_LOG_U64, "job", NULL, 7 },
                                            { .kind = BH_LOG_END } };

    bh_log_setup("test", true, BH_LOG_INFO);
    memset(text, '\n', sizeof text);
    for (size_t length = 0; length < sizeof text; length += 311) {
        struct bh_json *json = NULL;
        struct bh_err err = { 0 };
        size_t got;

        text[length] = '\0';
        got = log_test_logged(BH_EVENT_FAILED, longest, line, sizeof line);
        text[length] = '\n';
        BH_CHECK("within 2 KiB", got <= 2048);
        assert_int_equal(bh_json_parse(line, got, &json, &err), BH_OK);
        BH_CHECK_EQ("what follows is there", bh_json_number(bh_json_get(bh_json_root(json), "job"), 0), 7);
        bh_json_free(json);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    enum bh_log_level level;
    enum bh_log_event event;
    bool shown;
} levels[] = {
    { "error at error", BH_LOG_ERROR, BH_EVENT_FAILED, true },
    { "warning at error", BH_LOG_ERROR, BH_EVENT_XID, false },
    { "warning at warn", BH_LOG_WARN, BH_EVENT_XID, true },
    { "information at warn", BH_LOG_WARN, BH_EVENT_STARTED, false },
    { "information at debug", BH_LOG_DEBUG, BH_EVENT_STARTED, true },
};

static void
test_levels(void **state)
{
    for (size_t i = 0; i < BH_COUNT(levels); i++) {
        char line[4096];
        const struct bh_log_field none = { .kind = BH_LOG_END };

        bh_log_setup("test", false, levels[i].level);
        BH_CHECK_EQ(levels[i].name, log_test_logged(levels[i].event, &none, line, sizeof line) > 0,
                    levels[i].shown);
    }
    bh_log_setup("test", false, BH_LOG_INFO);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_text_line),
    cmocka_unit_test(test_json_line),
    cmocka_unit_test(test_long_texts_are_cut),
    cmocka_unit_test(test_levels),
};

BH_TEST_MAIN(tests)
