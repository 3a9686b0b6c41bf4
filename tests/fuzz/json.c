/* Whatever the decoder accepts, the encoder writes so that it is accepted again and
 * gives the same bytes: what is in the journal can be read back. */
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/test_sample.h"
#include "tests/fuzz/fuzz.h"

static bh_rc
recode(const char *text, size_t length, struct bh_buf *ret_json, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct sample sample;
    bh_rc rc = bh_json_decode(text, length, &sample_fields, &sample, arena, err);

    if (rc == BH_OK)
        bh_json_encode(ret_json, &sample_fields, &sample);
    return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_buf first, second;
    struct bh_err err = { 0 };

    bh_buf_init(&first, BH_JSON_BYTES_MAX);
    bh_buf_init(&second, BH_JSON_BYTES_MAX);
    if (recode((const char *)data, size, &first, &err) == BH_OK) {
        BH_ASSERT(!first.overflow);
        BH_ASSERT(recode(first.bytes, first.length, &second, &err) == BH_OK);
        BH_ASSERT(first.length == second.length);
        BH_ASSERT(memcmp(first.bytes, second.bytes, first.length) == 0);
    } else {
        BH_ASSERT(err.rc == BH_INVALID || err.rc == BH_RANGE || err.rc == BH_FULL);
        BH_ASSERT(err.msg[0]);
    }
    bh_buf_fini(&first);
    bh_buf_fini(&second);
    return 0;
}
