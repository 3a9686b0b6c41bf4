/* Whatever YAML is accepted, its JSON is too: nothing is lost between the two
 * readers, and no error without its line. */
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/yaml.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BH_AUTO(bh_json_free) struct bh_json *parsed = NULL;
    struct bh_buf json;
    struct bh_err err = { 0 };

    bh_buf_init(&json, BH_JSON_BYTES_MAX);
    if (bh_yaml_to_json((const char *)data, size, &json, &err) == BH_OK) {
        BH_ASSERT(bh_json_parse(json.bytes, json.length, &parsed, &err) == BH_OK);
        BH_ASSERT(memchr(json.bytes, '\n', json.length) == NULL);
    } else {
        BH_ASSERT(err.rc == BH_FULL || strncmp(err.msg, "line ", 5) == 0);
        BH_ASSERT(json.length == 0 && !json.overflow);
    }
    bh_buf_fini(&json);
    return 0;
}
