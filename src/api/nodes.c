#include "api/nodes.h"

#include <string.h>

struct node_list {
    struct bh_json_writer w;
    bh_json_value inventory;
    const char *connected;       /* the connected node's name, or "" */
    bool shown;
    uint64_t total;
};

static void
put_node(struct node_list *list, const char *name)
{
    bool up = list->connected[0] && strcmp(list->connected, name) == 0;
    bh_json_value from = up ? list->inventory : NULL;
    struct bh_json_writer *w = &list->w;

    bh_json_open(w, NULL, '{');
    if (from) {
        bh_json_u64(w, "cpus", bh_json_number(bh_json_get(from, "cpus"), 0));
        bh_json_str(w, "driver", bh_json_text(bh_json_get(from, "driver"), ""));
        bh_json_u64(w, "gpus", bh_json_count(bh_json_get(from, "gpus")));
        bh_json_u64(w, "memory_mib", bh_json_number(bh_json_get(from, "memory_mib"), 0));
    }
    bh_json_str(w, "name", name);
    if (from)
        bh_json_str(w, "runtime", bh_json_text(bh_json_get(from, "runtime"), ""));
    bh_json_str(w, "state", up ? "up" : "down");
    bh_json_close(w, '}');
    list->shown = list->shown || up;
    list->total++;
}

static bool
put_known(void *self, const struct bh_name_row *row)
{
    struct node_list *list = self;

    if (row->kind == BH_NAME_NODE && !row->gone)
        put_node(list, row->name);
    return true;
}

bh_rc
bh_nodes_list(struct bh_call *call, struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;
    const struct bh_store *store = &call->api->options.store;
    BH_AUTO(bh_json_free) struct bh_json *inventory = NULL;
    struct node_list list = { .w = bh_call_writer(call), .connected = "" };
    const char *text = owner->ops->inventory(owner->self, call->arena);
    struct bh_err unused;
    bh_rc rc;

    if (text && text[0] == '{'
        && bh_json_parse(text, strlen(text), &inventory, &unused) == BH_OK) {
        list.inventory = bh_json_root(inventory);
        list.connected = bh_json_text(bh_json_get(list.inventory, "node"), "");
    }
    bh_json_open(&list.w, NULL, '{');
    bh_json_open(&list.w, "items", '[');
    rc = store->ops->list_names(store->self, put_known, &list, err);
    if (rc == BH_OK && list.connected[0] && !list.shown)
        put_node(&list, list.connected);
    bh_json_close(&list.w, ']');
    bh_json_u64(&list.w, "total", list.total);
    bh_json_close(&list.w, '}');
    return rc;
}
