/* A site file from YAML to the check: what is accepted encodes to JSON that is accepted
 * again and encodes to the same bytes; what is refused says why in one line. */
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/yaml.h"
#include "model/site.h"
#include "model/site_edits.h"
#include "tests/fuzz/fuzz.h"

static bh_rc
read_site(const char *json, size_t length, struct bh_arena *arena, struct bh_site *ret_site,
          struct bh_err *err)
{
    bh_rc rc = bh_json_decode(json, length, &bh_site_fields, ret_site, arena, err);

    return rc == BH_OK ? bh_site_check(ret_site, err) : rc;
}

static void
take_line(void *self, const char *text, size_t length)
{
    BH_ASSERT(length <= BH_EDIT_LINE_MAX && !memchr(text, '\n', length));
    ++*(uint32_t *)self;
}

/* What says the same is no change; each entry of a file beside an empty one is. */
static void
check_changes(const struct bh_site *site, const struct bh_site *again)
{
    static const struct bh_site empty;
    uint32_t same = 0, all = 0;

    bh_site_edits(site, again, take_line, &same);
    bh_site_edits(&empty, site, take_line, &all);
    BH_ASSERT(same == 0);
    BH_ASSERT(all >= site->bindings.count + site->tenants.count + site->mounts.count);
}

static void
check_twice(const struct bh_site *site, struct bh_arena *arena)
{
    struct bh_buf first, second;
    struct bh_site again;
    struct bh_err err = { 0 };
    bh_rc rc;

    bh_buf_init(&first, BH_JSON_BYTES_MAX);
    bh_buf_init(&second, BH_JSON_BYTES_MAX);
    bh_json_encode(&first, &bh_site_fields, site);
    if (!first.overflow) {
        rc = read_site(first.bytes, first.length, arena, &again, &err);
        BH_ASSERT(rc == BH_OK || rc == BH_FULL);
        if (rc == BH_OK) {
            bh_json_encode(&second, &bh_site_fields, &again);
            BH_ASSERT(first.length == second.length);
            BH_ASSERT(memcmp(first.bytes, second.bytes, first.length) == 0);
            check_changes(site, &again);
        }
    }
    bh_buf_fini(&first);
    bh_buf_fini(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(8 << 20);
    struct bh_err err = { 0 };
    struct bh_site site;
    struct bh_buf json;

    bh_buf_init(&json, BH_JSON_BYTES_MAX);
    if (bh_yaml_to_json((const char *)data, size, &json, &err) == BH_OK) {
        if (read_site(json.bytes, json.length, arena, &site, &err) == BH_OK)
            check_twice(&site, arena);
        else
            BH_ASSERT(err.msg[0] && !strchr(err.msg, '\n'));
    }
    bh_buf_fini(&json);
    return 0;
}
