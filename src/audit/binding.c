#include "audit/binding.h"

#include <inttypes.h>
#include <string.h>

#include "audit/items.h"
#include "base/assert.h"
#include "base/num.h"
#include "ports/crypto.h"

const char *const bh_binding_kinds[BH_BINDING_KINDS] = { "tenant", "sku",   "principal", "node",
                                                         "gpu",    "group", "dataset" };

uint32_t
bh_binding_kind(const char *text)
{
    uint32_t kind = 0;

    while (kind < BH_BINDING_KINDS && strcmp(bh_binding_kinds[kind], text) != 0)
        kind++;
    return kind;
}

void
bh_binding_commit(const struct bh_crypto_ops *crypto, struct bh_binding *binding,
                  const uint8_t key[BH_BINDING_KEY_BYTES], const char *name)
{
    uint8_t digest[32];
    char memory[100];
    struct bh_buf message;

    crypto->sha256(name, strlen(name), "", 0, digest);
    bh_buf_init_fixed(&message, memory, sizeof memory);
    bh_buf_printf(&message, "bulkhead name 1\n%s %" PRIu32 "\n", bh_binding_kinds[binding->kind],
                  binding->id);
    bh_buf_put(&message, digest, sizeof digest);
    BH_ASSERT(!message.overflow);
    crypto->hmac(key, BH_BINDING_KEY_BYTES, message.bytes, message.length, binding->commitment);
}

void
bh_binding_put(struct bh_buf *list, const struct bh_binding *binding)
{
    BH_ASSERT(binding->kind < BH_BINDING_KINDS && binding->id > 0);
    bh_item_begin(list);
    bh_buf_puts(list, "{\"c\":\"");
    bh_buf_put_hex(list, binding->commitment, sizeof binding->commitment);
    bh_buf_puts(list, "\",\"id\":");
    bh_buf_put_u64(list, binding->id);
    bh_buf_puts(list, ",\"kind\":\"");
    bh_buf_puts(list, bh_binding_kinds[binding->kind]);
    bh_buf_puts(list, "\"}");
}

static bool
read_item(struct bh_slice item, void *self)
{
    struct bh_binding *ret = self;
    char digits[2 * BH_BINDING_BYTES + 1], kind[16];
    struct bh_slice value;
    uint64_t id;

    if (!bh_slice_get(item, "c", &value) || !bh_slice_str(value, digits, sizeof digits)
        || !bh_parse_hex(digits, ret->commitment, sizeof ret->commitment))
        return false;
    if (!bh_slice_get(item, "id", &value) || !bh_slice_u64(value, &id) || id == 0 || id > UINT32_MAX)
        return false;
    ret->id = (uint32_t)id;
    if (!bh_slice_get(item, "kind", &value) || !bh_slice_str(value, kind, sizeof kind))
        return false;
    ret->kind = bh_binding_kind(kind);
    return ret->kind < BH_BINDING_KINDS;
}

static void
binding_put_item(struct bh_buf *list, const void *item)
{
    bh_binding_put(list, item);
}

static const struct bh_item_kind binding_items = { read_item, binding_put_item };

bool
bh_binding_next(struct bh_slice list, size_t *cursor, struct bh_binding *ret)
{
    return bh_items_next(&binding_items, list, cursor, ret);
}

bool
bh_binding_is_list(struct bh_slice list)
{
    struct bh_binding binding;

    return bh_items_are_list(&binding_items, list, &binding);
}
