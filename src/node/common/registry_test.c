#include "node/common/registry.h"

#include <stdio.h>
#include <string.h>

#include "base/test.h"

static void
test_parse(void **state)
{
    static const struct {
        const char *entry, *host;
        uint32_t port;
        const char *repository;
        bool plain;
        const char *message; /* when it cannot be read */
    } cases[] = {
        { "nvcr.io", "nvcr.io", 443, "", false, NULL },
        { "registry.corp:5000", "registry.corp", 5000, "", false, NULL },
        { "registry.corp/ml/vision", "registry.corp", 443, "ml/vision", false, NULL },
        { "localhost:5000", "localhost", 5000, "", false, NULL },
        { "http:127.0.0.1:5000", "127.0.0.1", 5000, "", true, NULL },
        { "http:127.0.0.1:5000/a", "127.0.0.1", 5000, "a", true, NULL },
        { "", .message = "\"\" names no registry" },
        { "nvcr", .message = "\"nvcr\" names no registry" },
        { "http:registry.corp:5000", .message = "\"http:registry.corp:5000\" is without TLS" },
        { "http:10.0.0.1:5000", .message = "\"http:10.0.0.1:5000\" is without TLS" },
        { "http:localhost:5000", .message = "\"http:localhost:5000\" is without TLS" },
        { "http://127.0.0.1:5000", .message = "\"http://127.0.0.1:5000\" names no registry" },
        { "https://nvcr.io", .message = "\"https://nvcr.io\" has an invalid port" },
        { "10.0.0.1:5000", .message = "\"10.0.0.1:5000\" is an address" },
        { "127.0.0.1:5000", .message = "\"127.0.0.1:5000\" is an address" },
        { "nvcr.io/", .message = "\"nvcr.io/\" has an invalid repository" },
        { "nvcr.io/../a", .message = "\"nvcr.io/../a\" has an invalid repository" },
        { "*.nvcr.io", .message = "\"*.nvcr.io\" has an invalid registry" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_registry registry = { .port = 0 };
        struct bh_err err = { 0 };
        bh_rc rc = bh_registry_parse(cases[i].entry, true, &registry, &err);

        BH_CHECK_EQ(cases[i].entry, rc, cases[i].message ? BH_INVALID : BH_OK);
        BH_CHECK_EQ(cases[i].entry, registry.port, cases[i].port);
        if (cases[i].message) {
            BH_CHECK(cases[i].entry, strncmp(err.msg, cases[i].message, strlen(cases[i].message)) == 0);
            continue;
        }
        BH_CHECK_STR(cases[i].entry, registry.host, cases[i].host);
        BH_CHECK_STR(cases[i].entry, registry.repository, cases[i].repository);
        BH_CHECK_EQ(cases[i].entry, registry.plain, cases[i].plain);
    }
    BH_CHECK_DONE();
}

static void
test_has(void **state)
{
    static const struct {
        const char *entry, *path;
        bool has;
    } cases[] = {
        { "nvcr.io", "nvcr.io/nvidia/pytorch", true },
        { "nvcr.io", "nvcr.io:443/nvidia/pytorch", true },
        { "nvcr.io:443", "nvcr.io/nvidia/pytorch", true },
        { "nvcr.io", "nvcr.io:444/nvidia/pytorch", false },
        { "nvcr.io", "xnvcr.io/nvidia/pytorch", false },
        { "nvcr.io", "nvcr.io.evil.net/nvidia/pytorch", false },
        { "nvcr.io", "evil.net/nvcr.io/pytorch", false },
        { "nvcr.io/nvidia", "nvcr.io/nvidia/pytorch", true },
        { "nvcr.io/nvidia", "nvcr.io/nvidia", true },
        { "nvcr.io/nvidia", "nvcr.io/nvidiax/pytorch", false },
        { "nvcr.io/nvidia", "nvcr.io/x/nvidia", false },
        { "http:127.0.0.1:5000", "127.0.0.1:5000/a", true },
        { "http:127.0.0.1:5000", "127.0.0.1:5001/a", false },
        { "http:127.0.0.1:5000", "127.0.0.2:5000/a", false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_registry registry;
        struct bh_err err;

        assert_int_equal(bh_registry_parse(cases[i].entry, true, &registry, &err), BH_OK);
        BH_CHECK_EQ(cases[i].path, bh_registry_has(&registry, cases[i].path), cases[i].has);
    }
    BH_CHECK_DONE();
}

static void
test_conf(void **state)
{
    static const struct {
        const char *name, *text;
        bh_rc rc;
        const char *message;
    } cases[] = {
        { "none", "", BH_DENIED, "registries in node.conf is empty" },
        { "another", "registries = docker.io\n", BH_DENIED, "registries in node.conf lists" },
        { "a host is no registry", "registry_hosts = nvcr.io\n", BH_DENIED, "is empty" },
        { "the second", "registries = docker.io\nregistries = nvcr.io/nvidia\n", BH_OK, "" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        struct bh_registry registry;
        struct bh_err err = { 0 };
        struct bh_conf conf;

        assert_int_equal(bh_conf_parse("f", cases[i].text, arena, &conf, &err), BH_OK);
        BH_CHECK_EQ(cases[i].name, bh_registries_check(&conf, &err), BH_OK);
        BH_CHECK_EQ(cases[i].name, bh_registries_find(&conf, "nvcr.io/nvidia/pytorch", &registry, &err),
                    cases[i].rc);
        BH_CHECK(cases[i].name, strstr(err.hint, cases[i].message) != NULL);
    }
    BH_CHECK_DONE();
}

static void
test_lines_that_are_wrong(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "registries = nvcr\n", "registries: \"nvcr\" names no registry" },
        { "registry_hosts = nvcr.io/a\n", "registry_hosts: \"nvcr.io/a\" has a repository" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        struct bh_err err = { 0 };
        struct bh_conf conf;

        assert_int_equal(bh_conf_parse("f", cases[i].text, arena, &conf, &err), BH_OK);
        BH_CHECK_EQ(cases[i].text, bh_registries_check(&conf, &err), BH_INVALID);
        BH_CHECK(cases[i].text, strstr(err.msg, cases[i].message) == err.msg);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_parse),
    cmocka_unit_test(test_has),
    cmocka_unit_test(test_conf),
    cmocka_unit_test(test_lines_that_are_wrong),
};
BH_TEST_MAIN(tests)
