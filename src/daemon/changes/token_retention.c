#include "daemon/changes/token_retention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/batch/record.h"

enum { FORGOTTEN_AT_ONCE_MAX = 256 };

struct expired {
    char id[sizeof((struct bh_token_row *)NULL)->id];
    uint64_t created_ns;
};

/* Where more are left over, from before this was kept, the others go with the next tokens; among
 * them the order is of their ids. */
struct forgetting {
    uint64_t now_ns;
    uint32_t count;
    struct expired expired[BH_TOKENS_EXPIRED_MAX + FORGOTTEN_AT_ONCE_MAX];
};

static bool
add_expired(void *self, const struct bh_token_row *row)
{
    struct forgetting *forgetting = self;
    struct expired *expired;

    if (!row->revoked && row->expires_ns > forgetting->now_ns)
        return true;
    expired = &forgetting->expired[forgetting->count++];
    memcpy(expired->id, row->id, sizeof expired->id);
    expired->created_ns = row->created_ns;
    return forgetting->count < BH_COUNT(forgetting->expired);
}

/* The oldest first; those of one moment by their id. */
static int
compare_expired(const void *a, const void *b)
{
    const struct expired *left = a, *right = b;

    if (left->created_ns != right->created_ns)
        return left->created_ns < right->created_ns ? -1 : 1;
    return strcmp(left->id, right->id);
}

static bh_rc
token_retention_record(struct bh_core *core, uint32_t principal, uint32_t count, struct bh_err *err)
{
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .obj = { .type = "account", .id = principal },
                              .verb = "token.forget" };
    char note[80];

    snprintf(note, sizeof note, "%u tokens that were revoked or had expired", count);
    entry.note = note;
    return bh_core_record(core, &entry, BH_OK, err);
}

bh_rc
bh_tokens_forget(struct bh_core *core, uint32_t principal, struct bh_err *err)
{
    const struct bh_token_filter filter = { .principal_id = principal };
    struct forgetting *forgetting = bh_arena_alloc(core->arena, sizeof *forgetting);
    uint32_t count;
    bh_rc rc;

    if (!forgetting)
        return bh_err_set(err, BH_FULL, "no room to forget tokens");
    forgetting->now_ns = bh_core_now(core);
    forgetting->count = 0;
    rc = core->store.ops->list_tokens(core->store.self, &filter, add_expired, forgetting, err);
    if (rc != BH_OK || forgetting->count <= BH_TOKENS_EXPIRED_MAX)
        return rc;
    count = forgetting->count - BH_TOKENS_EXPIRED_MAX;
    qsort(forgetting->expired, forgetting->count, sizeof forgetting->expired[0], compare_expired);
    rc = token_retention_record(core, principal, count, err);
    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = core->store.ops->drop_token(core->store.self, forgetting->expired[i].id, err);
    return rc;
}
