#include "base/params.h"

#include "base/test.h"

struct config {
    const char *listen, *name;
    uint32_t port, any;
    uint64_t patience, memory;
    bool quiet;
    struct bh_param_list roots;
};
#define ROW(text, member, k, ...)                                                                            \
    {                                                                                                        \
        .name = text, .kind = k, .offset = offsetof(struct config, member), .doc = "says " text, __VA_ARGS__ \
    }
static const struct bh_param rows[] = {
    ROW("listen", listen, BH_PARAM_TEXT, .standard = "/run/x"),
    ROW("name", name, BH_PARAM_TEXT),
    ROW("port", port, BH_PARAM_U32, .low = 1, .high = 65535, .standard = "8080"),
    ROW("any", any, BH_PARAM_U32),
    ROW("patience", patience, BH_PARAM_SPAN, .low = 1000000, .standard = "5s"),
    ROW("memory", memory, BH_PARAM_BYTES, .standard = "64Mi"),
    ROW("quiet", quiet, BH_PARAM_BOOL),
    ROW("root", roots, BH_PARAM_LIST, .standard = "/images"),
};
static const struct bh_params params = { rows, BH_COUNT(rows) };

/* The whole configuration as one text. */
static const char *
params_test_show(const struct config *config)
{
    static char text[256];
    int used = snprintf(text, sizeof text, "%s %s %u %u %llu %llu %d", config->listen,
                        config->name ? config->name : "-", config->port, config->any,
                        (unsigned long long)config->patience / 1000000,
                        (unsigned long long)config->memory >> 20, config->quiet);

    for (uint32_t i = 0; i < config->roots.count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %s", config->roots.items[i]);
    return text;
}

static const struct {
    const char *name, *text, *config;
} accepted[] = {
    { "defaults", "", "/run/x - 8080 0 5000 64 0 /images" },
    { "comments and blanks", "# port = 1\n\n  \t\n", "/run/x - 8080 0 5000 64 0 /images" },
    { "every kind", "listen = /a b\nname=n\nport=1\nany=4294967295\npatience=250ms\nmemory=1Gi\nquiet=true\n",
      "/a b n 1 4294967295 250 1024 1 /images" },
    { "false", "quiet = false", "/run/x - 8080 0 5000 64 0 /images" },
    { "no last line break", "port=2", "/run/x - 2 0 5000 64 0 /images" },
    { "line ends of Windows", "port = 2\r\nname = n\r\n", "/run/x n 2 0 5000 64 0 /images" },
    { "equals in the value", "name = a=b", "/run/x a=b 8080 0 5000 64 0 /images" },
    { "empty text", "listen =", " - 8080 0 5000 64 0 /images" },
    { "a list replaces its default", "root=/a\nroot=/b", "/run/x - 8080 0 5000 64 0 /a /b" },
};

static void
test_accepted(void **state)
{
    for (size_t i = 0; i < BH_COUNT(accepted); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        struct config config;
        struct bh_err err = { 0 };

        memset(&config, 0xff, sizeof config);
        BH_CHECK_EQ(accepted[i].name, bh_params_parse(&params, accepted[i].text, &config, arena, &err),
                    BH_OK);
        BH_CHECK_STR(accepted[i].name, err.msg, "");
        BH_CHECK_STR(accepted[i].name, params_test_show(&config), accepted[i].config);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text;
    bh_rc rc;
    const char *message;
} refused[] = {
    { "unknown key", "\nprot = 1", BH_INVALID, "line 2: unknown key \"prot\"" },
    { "beginning of a key", "por = 1", BH_INVALID, "line 1: unknown key \"por\"" },
    { "no value", "port", BH_INVALID, "line 1: expected `key = value`, not \"port\"" },
    { "twice", "port=1\nname=n\nport=2", BH_INVALID, "line 3: port is set twice" },
    { "too low", "port=0", BH_RANGE, "line 1: port: 0 is not between 1 and 65535" },
    { "too high", "port=65536", BH_RANGE, "line 1: port: 65536 is not between 1 and 65535" },
    { "past 32 bits", "any=4294967296", BH_RANGE, "line 1: any: 4294967296 is not between 0 and 4294967295" },
    { "not a number", "port=http", BH_INVALID, "line 1: port: \"http\" is not a number" },
    { "short span", "patience=0", BH_RANGE,
      "line 1: patience: 0 is not between 1000000 and 18446744073709551615" },
    { "unit", "memory=1GB", BH_INVALID, "line 1: memory: \"1GB\" has no known unit" },
    { "neither truth", "quiet=yes", BH_INVALID, "line 1: quiet: \"yes\" is neither true nor false" },
};

static void
test_refused(void **state)
{
    for (size_t i = 0; i < BH_COUNT(refused); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        struct config config;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(refused[i].name, bh_params_parse(&params, refused[i].text, &config, arena, &err),
                    refused[i].rc);
        BH_CHECK_STR(refused[i].name, err.msg, refused[i].message);
    }
    BH_CHECK_DONE();
}

static void
test_limits(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    BH_AUTO(bh_arena_free) struct bh_arena *small = bh_arena_new(64);
    struct config config = { 0 };
    struct bh_err err = { 0 };
    char line[5000];

    for (int i = 0; i < BH_PARAM_LIST_MAX; i++)
        BH_CHECK_EQ("list", bh_params_set(&params, "root=/x", &config, arena, &err), BH_OK);
    BH_CHECK_EQ("one more", bh_params_set(&params, "root=/x", &config, arena, &err), BH_FULL);
    BH_CHECK_STR("one more", err.msg, "root: more than 32 entries");
    memset(line, 'x', sizeof line);
    memcpy(line, "name=", 5);
    line[sizeof line - 1] = '\0';
    BH_CHECK_EQ("long line", bh_params_parse(&params, line, &config, arena, &err), BH_RANGE);
    line[100] = '\0';
    BH_CHECK_EQ("small arena", bh_params_parse(&params, line, &config, small, &err), BH_FULL);
    BH_CHECK_DONE();
}

static void
test_help_shows_every_row(void **state)
{
    char memory[1024];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_params_help(&params, &out);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char want[128];

        snprintf(want, sizeof want, "%s = %s\n    says %s\n", rows[i].name,
                 rows[i].standard ? rows[i].standard : "", rows[i].name);
        BH_CHECK(rows[i].name, strstr(bh_buf_text(&out), want));
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_accepted),
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_help_shows_every_row),
};

BH_TEST_MAIN(tests)
