#include "daemon/nodes/links.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/batch/batch.h"
#include "daemon/nodes/inventory.h"
#include "daemon/nodes/link.h"

enum { READY_MAX = 256, MESSAGE_ARENA_MAX = 8 << 20 };

static const bh_ns scan_pause_ns = 1000 * BH_NS_PER_MS;
static const bh_ns scan_pause_empty_ns = 50 * BH_NS_PER_MS; /* nothing found yet */
static const char suffix[] = ".sock";

struct bh_node_links {
    /* owner thread */
    struct bh_links_shared shared;
    bh_ns scan_ns;      /* the folder is not read again before */
    bool reported_down; /* the engine believes no node up that is not */
    bool logged_full;
    /* read by any thread under shared.mutex, written by the owner thread under it */
    struct bh_node_link **items; /* in the order of their paths */
    uint32_t count;
};

struct bh_node_links *
bh_node_links_new(struct bh_core *core)
{
    struct bh_node_links *links = calloc(1, sizeof *links);

    BH_ASSERT(links);
    links->shared.core = core;
    links->shared.arena = bh_arena_new(MESSAGE_ARENA_MAX);
    links->shared.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    BH_ASSERT(links->shared.epoll_fd >= 0);
    bh_mutex_init(&links->shared.mutex, BH_LOCK_LINKS);
    return links;
}

void
bh_node_links_free(struct bh_node_links *links)
{
    if (!links)
        return;
    bh_node_links_reset(links);
    for (uint32_t i = 0; i < links->count; i++)
        bh_node_link_free(links->items[i]);
    free(links->items);
    free(links->shared.of_node);
    close(links->shared.epoll_fd);
    bh_arena_free(links->shared.arena);
    bh_mutex_fini(&links->shared.mutex);
    free(links);
}

/* ---- which sockets there are ---- */

struct paths {
    char *items[BH_NODE_LINKS_MAX];
    uint32_t count;
    bool full;
};

static void
links_add_path(struct paths *paths, const char *folder, const char *name)
{
    char path[4096];

    if (paths->count == BH_NODE_LINKS_MAX) {
        paths->full = true;
        return;
    }
    if (snprintf(path, sizeof path, "%s%s%s", folder, name[0] ? "/" : "", name) >= (int)sizeof path)
        return;
    paths->items[paths->count] = strdup(path);
    BH_ASSERT(paths->items[paths->count]);
    paths->count++;
}

static int
links_compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The sockets of the folder in order, or the one socket when `place` is no folder. */
static struct paths *
links_find_sockets(const char *place)
{
    struct paths *paths = calloc(1, sizeof *paths);
    DIR *folder = opendir(place);
    struct dirent *entry;

    BH_ASSERT(paths);
    if (!folder) {
        links_add_path(paths, place, "");
        return paths;
    }
    while ((entry = readdir(folder))) {
        size_t length = strlen(entry->d_name);

        if (length >= sizeof suffix && strcmp(entry->d_name + length - (sizeof suffix - 1), suffix) == 0)
            links_add_path(paths, place, entry->d_name);
    }
    closedir(folder);
    qsort(paths->items, paths->count, sizeof paths->items[0], links_compare_paths);
    return paths;
}

static void
links_free_paths(struct paths *paths)
{
    for (uint32_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths);
}

/* A list of links in the making. */
struct kept {
    struct bh_node_link **items;
    uint32_t count;
};

/* Links before `path` (all, for NULL) whose socket is gone: kept while connected. */
static void
links_pass_gone(struct bh_node_links *links, uint32_t *at, const char *path, struct kept *kept)
{
    for (; *at < links->count; ++*at) {
        struct bh_node_link *link = links->items[*at];

        if (path && strcmp(bh_node_link_path(link), path) >= 0)
            return;
        if (bh_node_link_is_connected(link))
            kept->items[kept->count++] = link;
        else
            bh_node_link_free(link);
    }
}

/* Both lists are in order: one pass over them. */
static void
links_merge(struct bh_node_links *links, const struct paths *paths)
{
    size_t most = (size_t)links->count + paths->count + 1;
    struct kept kept = { calloc(most, sizeof(struct bh_node_link *)), 0 };
    uint32_t at = 0;

    BH_ASSERT(kept.items);
    for (uint32_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];

        links_pass_gone(links, &at, path, &kept);
        if (at < links->count && strcmp(bh_node_link_path(links->items[at]), path) == 0)
            kept.items[kept.count++] = links->items[at++];
        else if (kept.count + links->count - at < BH_NODE_LINKS_MAX)
            kept.items[kept.count++] = bh_node_link_new(&links->shared, path);
    }
    links_pass_gone(links, &at, NULL, &kept);
    free(links->items);
    links->items = kept.items;
    links->count = kept.count;
}

static void
links_scan(struct bh_node_links *links)
{
    const char *place = links->shared.core->config->node_socket;
    struct paths *paths = links_find_sockets(place);

    if (paths->full && !links->logged_full)
        bh_log(NODE_REFUSED, BH_STR("folder", place), BH_U64("most", BH_NODE_LINKS_MAX));
    links->logged_full = paths->full;
    bh_mutex_lock(&links->shared.mutex);
    links_merge(links, paths);
    bh_mutex_unlock(&links->shared.mutex);
    links_free_paths(paths);
    links->scan_ns = bh_time_monotonic() + (links->count ? scan_pause_ns : scan_pause_empty_ns);
}

/* ---- all of them ---- */

void
bh_node_links_connect(struct bh_node_links *links)
{
    bh_ns now = bh_time_monotonic();

    if (now < bh_node_links_connect_ns(links))
        return;
    if (now >= links->scan_ns)
        links_scan(links);
    links->shared.connect_ns = UINT64_MAX;
    for (uint32_t i = 0; i < links->count; i++)
        bh_node_link_connect(links->items[i]);
}

uint64_t
bh_node_links_connect_ns(const struct bh_node_links *links)
{
    return links->scan_ns < links->shared.connect_ns ? links->scan_ns : links->shared.connect_ns;
}

int
bh_node_links_fd(const struct bh_node_links *links)
{
    return links->shared.epoll_fd;
}

bh_rc
bh_node_links_receive(struct bh_node_links *links, struct bh_err *err)
{
    struct epoll_event ready[READY_MAX];
    int count = epoll_wait(links->shared.epoll_fd, ready, READY_MAX, 0);
    const struct bh_work before = *bh_work_get();
    bh_rc rc = BH_OK;

    for (int i = 0; i < count && rc == BH_OK; i++) {
        bh_work_set(bh_node_link_work(ready[i].data.ptr));
        rc = bh_node_link_receive(ready[i].data.ptr, err);
    }
    bh_work_set(before);
    return rc;
}

bh_rc
bh_node_links_report_down(struct bh_node_links *links, struct bh_err *err)
{
    bh_rc rc = links->reported_down ? BH_OK : bh_inventory_lose_all(links->shared.core, 0, err);

    links->reported_down = rc == BH_OK;
    if (rc != BH_OK || !links->shared.down_pending)
        return rc;
    for (uint32_t i = 0; i < links->count && rc == BH_OK; i++)
        rc = bh_node_link_report_down(links->items[i], err);
    links->shared.down_pending = rc != BH_OK;
    return rc;
}

static struct bh_node_link *
link_of(const struct bh_node_links *links, bh_node_id node)
{
    return node.v < links->shared.of_node_count ? links->shared.of_node[node.v] : NULL;
}

const char *
bh_node_links_socket(const struct bh_node_links *links, bh_node_id node, struct bh_arena *arena)
{
    const struct bh_node_link *link = link_of(links, node);

    return link ? bh_arena_strdup(arena, bh_node_link_path(link)) : NULL;
}

void
bh_node_links_release(struct bh_node_links *links)
{
    struct bh_links_shared *shared = &links->shared;
    const struct bh_work before = *bh_work_get();
    uint32_t count;
    const struct bh_effect *effects = bh_core_effects(shared->core, &count);

    for (struct bh_node_link *link = shared->touched; link;) {
        bh_work_set(bh_node_link_work(link));
        link = bh_node_link_acknowledge(link);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct bh_node_link *link = link_of(links, effects[i].node);

        if (!link || !bh_node_link_accepts_orders(link))
            continue;
        bh_work_set(bh_node_link_work(link));
        bh_node_link_order(link, &effects[i]);
    }
    for (uint32_t i = 0; i < shared->core->verify_count; i++) {
        struct bh_node_link *link = link_of(links, shared->core->verifies[i].node);

        if (link)
            bh_node_link_verify(link, &shared->core->verifies[i]);
    }
    for (struct bh_node_link *link = shared->touched; link;) {
        bh_work_set(bh_node_link_work(link));
        link = bh_node_link_finish(link);
    }
    bh_work_set(before);
    shared->touched = NULL;
    bh_core_released(shared->core);
}

void
bh_node_links_reset(struct bh_node_links *links)
{
    for (uint32_t i = 0; i < links->count; i++)
        bh_node_link_reset(links->items[i]);
    links->shared.touched = NULL;
    links->shared.down_pending = links->reported_down = false;
}

bool
bh_node_links_inventory(struct bh_node_links *links, uint32_t *cursor, struct bh_buf *ret_json)
{
    bool found = false;

    bh_mutex_lock(&links->shared.mutex);
    while (!found && *cursor < links->count)
        found = bh_node_link_inventory(links->items[(*cursor)++], ret_json);
    bh_mutex_unlock(&links->shared.mutex);
    return found;
}

bool
bh_node_links_verdict(struct bh_node_links *links, uint64_t request, uint32_t *cursor,
                      struct bh_buf *ret_json)
{
    bool found = false;

    bh_mutex_lock(&links->shared.mutex);
    for (; !found && *cursor < links->count * BH_NODE_VERDICTS; ++*cursor)
        found = bh_node_link_verdict(links->items[*cursor / BH_NODE_VERDICTS], *cursor % BH_NODE_VERDICTS,
                                     request, ret_json);
    bh_mutex_unlock(&links->shared.mutex);
    return found;
}
