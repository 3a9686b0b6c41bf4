#include "node/core/driver_scrub.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "node/common/path.h"

static const char *const switches[] = { "RMDisableScrubOnFree", "RMDisableFastScrubber",
                                        "RMDisableAsyncSysmemScrub" };

/* Whether a line of registry words, "A=1;B=0x2", sets that one to other than 0. */
static bool
driver_scrub_is_set(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = text; (at = strstr(at, name)); at += length) {
        if (at[length] == '=' && strtoul(at + length + 1, NULL, 0) != 0)
            return true;
    }
    return false;
}

enum bh_driver_scrub
bh_driver_scrub_read(const struct bh_node *node)
{
    char path[BH_NODE_PATH_MAX];
    enum bh_driver_scrub found = BH_DRIVER_SCRUB_UNKNOWN;
    struct bh_err ignored;
    struct bh_buf text;

    bh_path_format(path, sizeof path, "%s/driver/nvidia/params", node->conf.proc_root);
    bh_buf_init(&text, 64 << 10);
    if (bh_file_read(path, (64 << 10) - 1, &text, &ignored) == BH_OK && text.length > 0) {
        found = BH_DRIVER_SCRUB_ON;
        for (size_t i = 0; i < BH_COUNT(switches); i++) {
            if (driver_scrub_is_set(bh_buf_text(&text), switches[i]))
                found = BH_DRIVER_SCRUB_OFF;
        }
    }
    bh_buf_fini(&text);
    return found;
}

bh_rc
bh_driver_scrub_check(const struct bh_node *node, struct bh_err *err)
{
    if (node->conf.driver_scrub_off || bh_driver_scrub_read(node) != BH_DRIVER_SCRUB_OFF)
        return BH_OK;
    bh_err_set(err, BH_DENIED, "the driver's own clearing of freed memory is switched off");
    return bh_err_hint(
        err,
        "remove RMDisableScrubOnFree and similar keys from NVreg_RegistryDwords, or set driver_scrub_off = "
        "1 in node.conf");
}
