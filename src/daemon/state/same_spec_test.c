#include "daemon/state/same_spec.h"

#include <string.h>

#include "base/test.h"

static struct bh_same_spec
same_spec_make(uint64_t key, uint32_t tenant, uint32_t principal, const char *plain)
{
    uint8_t bytes[32] = { 0 };

    memcpy(bytes, plain, strlen(plain));
    return bh_same_spec_of(key, (bh_tenant_id){ tenant }, (bh_principal_id){ principal }, bytes);
}

static void
test_find(void **state)
{
    static const struct {
        const char *name;
        uint64_t key;
        uint32_t tenant, principal;
        const char *plain;
        bool found;
    } cases[] = {
        { "the same", 7, 3, 12, "train", true },
        { "after the key was destroyed", 8, 3, 12, "train", false },
        { "no key yet", 0, 3, 12, "train", false },
        { "to another tenant", 7, 4, 12, "train", false },
        { "by another person", 7, 3, 13, "train", false },
        { "another text", 7, 3, 12, "trail", false },
    };
    static struct bh_same_specs specs;
    struct bh_same_spec kept = same_spec_make(7, 3, 12, "train");

    memset(kept.sealed, 9, sizeof kept.sealed);
    bh_same_specs_put(&specs, &kept);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_same_spec spec =
            same_spec_make(cases[i].key, cases[i].tenant, cases[i].principal, cases[i].plain);

        BH_CHECK_EQ(cases[i].name, bh_same_specs_find(&specs, &spec), cases[i].found);
        BH_CHECK_EQ(cases[i].name, spec.sealed[31], cases[i].found ? 9 : 0);
    }
    bh_same_specs_forget(&specs);
    BH_CHECK("forgotten", !bh_same_specs_find(&specs, &kept));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_find) };
BH_TEST_MAIN(tests)
