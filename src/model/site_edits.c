#include "model/site_edits.h"

/* What one entry is known by where that is not its `name`. */
static const struct bh_edit_key keys[] = {
    { "binding", "role principal group gid tenant" },
    { "dataset_grant", "tenant principal role label" },
    { "gpu", "uuid" },
    { "policy_partitions", "sku" },
    { "quota", "sku model" },
    { "site_mount", "path tenant" },
    { "sku_model", "model profile share" },
    { "step_up", "verb" },
};

bool
bh_site_edits_known(void)
{
    const struct bh_edits edits = { .keys = keys, .key_count = sizeof keys / sizeof keys[0] };

    return bh_edits_known(&edits, &bh_site_fields);
}

void
bh_site_edits(const struct bh_site *from, const struct bh_site *to,
              void (*line)(void *self, const char *text, size_t length), void *self)
{
    const struct bh_edits edits = { keys, sizeof keys / sizeof keys[0], line, self };

    bh_edits_find(&edits, &bh_site_fields, from, to);
}
