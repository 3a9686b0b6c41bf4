/* node.conf, which bounds what root does: whatever is read keeps within the table. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/common/conf.h"
#include "tests/fuzz/fuzz.h"

static void
check_text(const char *text, bool path)
{
    BH_ASSERT(strlen(text) <= BH_CONF_PATH_MAX && !strchr(text, '\n'));
    BH_ASSERT(!path || !*text || *text == '/');
}

static void
check(const struct bh_conf *conf)
{
    check_text(conf->state_dir, true);
    check_text(conf->run_dir, true);
    check_text(conf->cgroup_parent, true);
    for (uint32_t i = 0; i < conf->mount_roots.count; i++)
        check_text(conf->mount_roots.items[i], true);
    for (uint32_t i = 0; i < conf->driver_env.count; i++)
        check_text(conf->driver_env.items[i], false);
    BH_ASSERT(conf->uid_base >= 65536 && conf->uid_ranges >= 1 && conf->uid_ranges <= 4096);
    BH_ASSERT(conf->write_uid_min >= 1 && conf->sample_interval_ms >= 100);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_conf conf;
    struct bh_err err = { 0 };
    char *text = bh_fuzz_text(data, size);

    if (bh_conf_parse("node.conf", text, arena, &conf, &err) == BH_OK)
        check(&conf);
    else
        BH_ASSERT(strncmp(err.msg, "node.conf: ", 11) == 0);
    free(text);
    return 0;
}
