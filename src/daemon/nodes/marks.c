#include "daemon/nodes/marks.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/num.h"
#include "daemon/state/core.h"

enum { KEY_SIZE = 32, VALUE_SIZE = 24 };

static void
key_of(bh_node_id node, char ret_key[KEY_SIZE])
{
    snprintf(ret_key, KEY_SIZE, "marks.%" PRIu32, node.v);
}

bh_rc
bh_marks_recorded(const struct bh_core *core, bh_node_id node, uint64_t *ret_marks, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    const char *value;
    char key[KEY_SIZE];
    bh_rc rc;

    key_of(node, key);
    rc = core->store.ops->get_meta(core->store.self, key, arena, &value, err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    rc = bh_parse_u64(rc == BH_OK ? value : "0", ret_marks, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s of the store", key);
}

bh_rc
bh_marks_receive(struct bh_core *core, bh_node_id node, uint64_t changes, uint64_t *marks, struct bh_err *err)
{
    const char *name = bh_catalog_name_of(core->catalog, BH_NAME_NODE, node.v);
    char key[KEY_SIZE], value[VALUE_SIZE];
    bh_rc rc;

    if (changes < *marks)
        bh_log(NODE_PUT_BACK, BH_STR("node", name ? name : ""), BH_U64("reported", *marks),
               BH_U64("known", changes));
    if (changes <= *marks)
        return BH_OK;
    key_of(node, key);
    snprintf(value, sizeof value, "%" PRIu64, changes);
    rc = bh_core_begin(core, err);
    if (rc != BH_OK)
        return rc;
    rc = core->store.ops->put_meta(core->store.self, key, value, err);
    if (rc != BH_OK)
        return rc;
    *marks = changes;
    return BH_OK;
}
