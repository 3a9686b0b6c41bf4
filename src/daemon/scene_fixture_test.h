#ifndef BH_DAEMON_SCENE_FIXTURE_TEST_H
#define BH_DAEMON_SCENE_FIXTURE_TEST_H

/* A core with nodes that a test plays, turn by turn as the owner's loop would. */

#include "daemon/batch.h"
#include "daemon/gpu_fixture_test.h"
#include "daemon/peer_fixture_test.h"

#include "base/time.h"

/* As one turn of the owner's loop. */
static inline void
scene_step(struct scene *s)
{
    struct bh_err *err = &s->f.err;

    bh_node_links_connect(s->links);
    for (int i = 0; i < NODES_MAX; i++)
        peer_step(s, &s->peers[i]);
    assert_int_equal(bh_node_links_report_down(s->links, err), BH_OK);
    assert_int_equal(bh_node_links_receive(s->links, err), BH_OK);
    assert_int_equal(bh_core_commit(&s->f.core, err), BH_OK);
    bh_node_links_release(s->links);
}

static inline uint32_t
scene_connected(struct scene *s)
{
    uint32_t cursor = 0, count = 0;
    struct bh_buf json;

    bh_buf_init(&json, 1 << 20);
    while (bh_node_links_inventory(s->links, &cursor, &json))
        count++;
    bh_buf_fini(&json);
    return count;
}

/* Connections come after a pause of some milliseconds; then everything is said at once. */
static inline void
scene_step_until(struct scene *s, uint32_t nodes)
{
    for (int n = 0; n < 3000 && scene_connected(s) != nodes; n++) {
        scene_step(s);
        bh_time_sleep(BH_NS_PER_MS);
    }
    assert_int_equal(scene_connected(s), nodes);
    for (int n = 0; n < STEPS; n++)
        scene_step(s);
}

static inline void
close_scene(struct scene *s)
{
    bh_node_links_free(s->links);
    for (int i = 0; i < NODES_MAX; i++)
        if (s->peers[i].listener >= 0)
            peer_close(s, &s->peers[i]);
    assert_int_equal(rmdir(s->folder), 0);
    fixture_teardown(&s->f);
}

static inline void
open_scene(struct scene *s, uint32_t nodes)
{
    static const struct peer peers[NODES_MAX] = {
        { .file = "a.sock", .name = "node-a", .gpu = "GPU-a", .listener = -1 },
        { .file = "b.sock", .name = "node-b", .gpu = "GPU-b", .listener = -1 },
        { .file = "c.sock", .name = "node-a", .gpu = "GPU-c", .listener = -1 },
    };

    memset(s, 0, sizeof *s);
    fixture_setup(&s->f);
    snprintf(s->folder, sizeof s->folder, "/tmp/bh-links-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    s->f.config.node_socket = s->folder;
    assert_int_equal(fixture_apply(&s->f, whole_yaml), BH_OK);
    memcpy(s->peers, peers, sizeof s->peers);
    s->links = bh_node_links_new(&s->f.core);
    for (uint32_t i = 0; i < nodes; i++)
        peer_open(s, &s->peers[i]);
    scene_step_until(s, nodes);
}

static inline enum bh_job_state
state_of(const struct scene *s, uint64_t job)
{
    struct bh_job_view view = { 0 };

    assert_true(bh_view_job(s->f.core.state.engine, (bh_job_id){ job }, &view));
    return view.state;
}

static inline struct peer *
peer_of_job(struct scene *s, uint64_t job)
{
    struct bh_job_view view = { 0 };
    const char *name;

    assert_true(bh_view_job(s->f.core.state.engine, (bh_job_id){ job }, &view));
    name = bh_catalog_name_of(s->f.core.catalog, BH_NAME_NODE, view.node.v);
    assert_non_null(name);
    return strcmp(name, "node-a") == 0 ? &s->peers[0] : &s->peers[1];
}

#endif
