#include "model/unmanaged.h"

#include <inttypes.h>

void
bh_unmanaged_add(struct bh_unmanaged *unmanaged, const struct bh_unmanaged_instance *one)
{
    if (unmanaged->count < BH_UNMANAGED_INSTANCES_MAX)
        unmanaged->instances[unmanaged->count++] = *one;
}

/* Several compute instances of one GPU instance are one. */
static bool
is_repeated(const struct bh_unmanaged *unmanaged, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (unmanaged->instances[i].gi == unmanaged->instances[at].gi)
            return true;
    return false;
}

static void
put_instances(struct bh_buf *out, const struct bh_unmanaged *unmanaged)
{
    bh_buf_puts(out, "it has MIG instances that are not in its node's journal: ");
    for (uint32_t i = 0; i < unmanaged->count; i++)
        if (!is_repeated(unmanaged, i))
            bh_buf_printf(out, "%s%s at %" PRIu32 " (GPU instance %" PRIu32 ")", i ? ", " : "",
                          unmanaged->instances[i].profile, unmanaged->instances[i].start,
                          unmanaged->instances[i].gi);
}

static void
put_command(struct bh_buf *out, const struct bh_unmanaged *unmanaged, const char *what)
{
    bh_buf_printf(out, "nvidia-smi mig -%s -gi ", what);
    for (uint32_t i = 0; i < unmanaged->count; i++)
        if (!is_repeated(unmanaged, i))
            bh_buf_printf(out, "%s%" PRIu32, i ? "," : "", unmanaged->instances[i].gi);
    bh_buf_printf(out, " -i %s", unmanaged->gpu);
}

bool
bh_unmanaged_put(const struct bh_unmanaged *unmanaged, struct bh_buf *why, struct bh_buf *fix)
{
    if (!unmanaged->in_site) {
        bh_buf_puts(why, "the site file does not declare it managed");
        bh_buf_printf(fix, "gpus: [{uuid: %s, managed: true}] in the site file", unmanaged->gpu);
    } else if (!unmanaged->allowed && unmanaged->scrub_off) {
        bh_buf_puts(why, "its driver does not clear freed memory");
        bh_buf_puts(fix, "docs/scrub.md, driver_scrub_off");
    } else if (!unmanaged->allowed) {
        bh_buf_printf(why, "node.conf of %s does not name it", unmanaged->node);
        bh_buf_printf(fix, "gpus = %s in node.conf, and restart bulkhead-node", unmanaged->gpu);
    } else if (unmanaged->count > 0) {
        put_instances(why, unmanaged);
        put_command(fix, unmanaged, "dci");
        bh_buf_puts(fix, " && ");
        put_command(fix, unmanaged, "dgi");
    }
    return !unmanaged->in_site || !unmanaged->allowed || unmanaged->count > 0;
}
