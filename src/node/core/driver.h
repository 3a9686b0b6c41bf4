#ifndef BH_NODE_CORE_DRIVER_H
#define BH_NODE_CORE_DRIVER_H

#include "node/core/node.h"

/* The driver's libraries of this machine, for jobs.
 *
 * Distributions put them among all others; a job, whose C library may be another, needs them
 * alone.  So they are gathered into a folder of their own below state_dir, by the names that
 * tables/driver_libraries.tbl has: hard links where the file system allows it, else copies.  The
 * folder carries the driver's version; libraries that are installed later come in at the next
 * start, folders of other versions go. */

enum { BH_DRIVER_PLACES_MAX = 8 };

/* The folders that are searched for libraries of the driver, best first: those that node.conf adds
 * (`driver_search`), then the usual ones.  Texts live as long as `conf`. */
struct bh_driver_places {
    const char *items[BH_DRIVER_PLACES_MAX];
    uint32_t count;
};

/* Gather what the first place that has a libcuda.so.1 has, below `parent`.
 * BH_NOT_FOUND: no place has one.  BH_IO, BH_FULL (no room): no folder was made. */
BH_MUST_USE bh_rc bh_driver_gather(const struct bh_driver_places *places, const char *parent,
                                   char ret_folder[BH_NODE_PATH_MAX], struct bh_err *err);

/* Settle conf.driver_lib_dir: as node.conf says; "none" is nothing; where it says nothing, what
 * was gathered, or nothing.  Never fails: a failure is logged, and jobs get no libraries. */
void bh_driver_read_places(struct bh_node *node);

/* The real paths of `name` (libcuda.so.1) in all places, each once: where a job on this
 * machine's root file system would find it past /usr/local/nvidia/lib. */
struct bh_driver_paths {
    char items[BH_DRIVER_PLACES_MAX][BH_NODE_PATH_MAX];
    uint32_t count;
};
void bh_node_driver_find(const struct bh_conf *conf, const char *name, struct bh_driver_paths *ret_paths);

/* Mounts of the shim over each of the driver's libraries that this machine's root file system shows outside
 * the folder where jobs search for them, so that no environment variable avoids the shim.  Texts live in
 * `arena`.  BH_FULL: it is full. */
enum { BH_DRIVER_COVERS_MAX = 2 * BH_DRIVER_PLACES_MAX };
BH_MUST_USE bh_rc bh_driver_cover(const struct bh_node *node, struct bh_arena *arena,
                                  struct bh_sandbox_mount ret_mounts[BH_DRIVER_COVERS_MAX],
                                  uint32_t *ret_count, struct bh_err *err);

/* The folder with the shim's libcuda.so.1, which replaces the driver's. */
const char *bh_driver_shim(const struct bh_node *node);

#endif
