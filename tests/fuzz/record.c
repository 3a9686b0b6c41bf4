/* A leaf that the decoder accepts is written back with the same bytes: there is one way
 * to write a record.  And nothing of it lies outside the scratch. */
#include <stdlib.h>
#include <string.h>

#include "audit/record.h"
#include "base/assert.h"
#include "tests/fuzz/fuzz.h"

static void
check_within(const char *text, const char *scratch, size_t size)
{
    BH_ASSERT(!text || (text >= scratch && text + strlen(text) < scratch + size));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *scratch = malloc(size + 64), *again = malloc(size + 64);
    struct bh_record record;
    struct bh_err err = { 0 };
    struct bh_buf out;

    BH_ASSERT(scratch && again);
    if (bh_record_decode((const char *)data, size, scratch, &record, &err) == BH_OK) {
        check_within(record.do_json, scratch, size + 64);
        check_within(record.ev_json, scratch, size + 64);
        check_within(record.res, scratch, size + 64);
        check_within(record.verb, scratch, size + 64);
        bh_buf_init_fixed(&out, again, size + 64);
        bh_record_encode(&out, &record);
        BH_ASSERT(!out.overflow && out.length == size);
        BH_ASSERT(memcmp(again, data, size) == 0);
    } else {
        BH_ASSERT(err.rc == BH_INVALID && err.msg[0]);
    }
    free(scratch);
    free(again);
    return 0;
}
