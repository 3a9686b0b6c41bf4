#include "node/common/party.h"

#include "base/test.h"

static void
test_party(void **state)
{
    static const struct {
        const char *tenant, *party;
    } rows[] = {
        { "evil", "evil" },
        { "evil/x", "evil" },
        { "evil/x/y", "evil" },
        { "evil2/x", "evil2" },
        { "", "" },
        { "/x", "" },
        { "../x", "" },
        { "123456789012345678901234567890123456789012345678901234567890123/x",
          "123456789012345678901234567890123456789012345678901234567890123" },
        { "1234567890123456789012345678901234567890123456789012345678901234/x", "" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char party[BH_PARTY_SIZE];

        bh_party_of(rows[i].tenant, party);
        BH_CHECK_STR(rows[i].tenant, party, rows[i].party);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_party) };
BH_TEST_MAIN(tests)
