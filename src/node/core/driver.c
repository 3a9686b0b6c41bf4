#include "node/core/driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "node/common/path.h"

enum { COPY_MOST = 1 << 30 };
#define MARKER "libcuda.so.1" /* a folder without it has no driver */

static const char *const usual[] = { "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                     "/usr/lib" };
static const char *const stems[] = {
#define DRIVER_LIBRARY(stem) stem,
#include "tables/driver_libraries.tbl"
#undef DRIVER_LIBRARY
};

static void
driver_list_places(const struct bh_conf *conf, struct bh_driver_places *ret_places)
{
    struct bh_driver_places places = { .count = 0 };

    for (uint32_t i = 0;
         i < conf->driver_search.count && places.count < BH_DRIVER_PLACES_MAX - BH_COUNT(usual); i++)
        places.items[places.count++] = conf->driver_search.items[i];
    for (size_t i = 0; i < BH_COUNT(usual); i++)
        places.items[places.count++] = usual[i];
    *ret_places = places;
}

static bool
is_drivers(const char *name)
{
    for (size_t i = 0; i < BH_COUNT(stems); i++) {
        size_t length = strlen(stems[i]);

        if (strncmp(name, stems[i], length) == 0 && strncmp(name + length, ".so", 3) == 0
            && (name[length + 3] == '\0' || name[length + 3] == '.'))
            return true;
    }
    return false;
}

/* ---- one file ---- */

/* Beside and renamed: a job may look at the folder. */
static bh_rc
driver_copy(const char *source, const char *target, struct bh_err *err)
{
    char made[BH_NODE_PATH_MAX];
    BH_AUTO(bh_fd_close) int from = -1;
    BH_AUTO(bh_fd_close) int to = -1;
    ssize_t n = 1;
    bh_rc rc = bh_file_open(source, O_RDONLY, 0, &from, err);

    bh_path_format(made, sizeof made, "%.500s.part", target);
    if (rc == BH_OK)
        rc = bh_file_open(made, O_WRONLY | O_CREAT | O_TRUNC, 0644, &to, err);
    if (rc != BH_OK)
        return rc;
    while (n > 0)
        n = sendfile(to, from, NULL, COPY_MOST);
    if (n == 0 && fchmod(to, 0644) == 0 && fsync(to) == 0 && rename(made, target) == 0)
        return BH_OK;
    bh_err_errno(err, "copy %s to %s", source, target);
    (void)unlink(made);
    return err->rc;
}

/* Names of one file stay that: a link to the longest of them, which is the file. */
static bh_rc
driver_add(const char *place, const char *name, const char *folder, struct bh_err *err)
{
    char source[BH_NODE_PATH_MAX], target[BH_NODE_PATH_MAX], real[PATH_MAX];
    const char *own;

    bh_path_format(source, sizeof source, "%.400s/%.100s", place, name);
    bh_path_format(target, sizeof target, "%.400s/%.100s", folder, name);
    if (!realpath(source, real)) /* a link to nothing */
        return BH_OK;
    own = strrchr(real, '/') + 1;
    if (strcmp(own, name) != 0 && is_drivers(own)) {
        if (symlink(own, target) != 0)
            return bh_err_errno(err, "make link %s", target);
        bh_path_format(target, sizeof target, "%.400s/%.100s", folder, own);
    }
    if (access(target, F_OK) == 0 || link(real, target) == 0)
        return BH_OK;
    return driver_copy(real, target, err);
}

/* ---- the folder ---- */

static bh_rc
driver_fill(const char *place, const char *folder, struct bh_err *err)
{
    DIR *dir = opendir(place);
    bh_rc rc = dir ? BH_OK : bh_err_errno(err, "open %s", place);

    for (const struct dirent *entry; rc == BH_OK && (entry = readdir(dir));) {
        char target[BH_NODE_PATH_MAX];
        struct stat st;

        if (!is_drivers(entry->d_name) || strlen(entry->d_name) > 100)
            continue;
        bh_path_format(target, sizeof target, "%.400s/%.100s", folder, entry->d_name);
        if (lstat(target, &st) != 0) /* else a name of a file that had another before */
            rc = driver_add(place, entry->d_name, folder, err);
    }
    if (dir)
        closedir(dir);
    return rc;
}

static void
driver_remove_others(const char *parent, const char *keep)
{
    DIR *dir = opendir(parent);
    char path[BH_NODE_PATH_MAX];

    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, keep) == 0)
            continue;
        bh_path_format(path, sizeof path, "%.300s/%.200s", parent, entry->d_name);
        bh_path_remove_tree(path);
    }
    if (dir)
        closedir(dir);
}

/* Built beside and renamed, so that it is whole or not there. */
static bh_rc
driver_make_folder(const char *place, const char *folder, struct bh_err *err)
{
    char made[BH_NODE_PATH_MAX];
    bh_rc rc;

    if (access(folder, F_OK) == 0) /* what was installed since */
        return driver_fill(place, folder, err);
    bh_path_format(made, sizeof made, "%.500s.new", folder);
    bh_path_remove_tree(made);
    rc = bh_dir_make(made, 0755, err);
    if (rc == BH_OK)
        rc = driver_fill(place, made, err);
    if (rc == BH_OK && rename(made, folder) != 0)
        rc = bh_err_errno(err, "rename %s", made);
    if (rc != BH_OK)
        bh_path_remove_tree(made);
    return rc;
}

bh_rc
bh_driver_gather(const struct bh_driver_places *places, const char *parent, char ret_folder[BH_NODE_PATH_MAX],
                 struct bh_err *err)
{
    for (uint32_t i = 0; i < places->count; i++) {
        char path[BH_NODE_PATH_MAX], folder[BH_NODE_PATH_MAX], real[PATH_MAX];
        bh_rc rc;

        bh_path_format(path, sizeof path, "%.400s/" MARKER, places->items[i]);
        if (!realpath(path, real))
            continue;
        bh_path_format(folder, sizeof folder, "%.300s/%.200s", parent, strrchr(real, '/') + 1);
        rc = driver_make_folder(places->items[i], folder, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "collect the driver's libraries");
        driver_remove_others(parent, strrchr(real, '/') + 1);
        bh_path_format(ret_folder, BH_NODE_PATH_MAX, "%s", folder);
        return BH_OK;
    }
    return bh_err_set(err, BH_NOT_FOUND, "no folder has a " MARKER);
}

void
bh_driver_read_places(struct bh_node *node)
{
    struct bh_driver_places places;
    char parent[BH_NODE_PATH_MAX];
    struct bh_err err;
    bh_rc rc;

    if (strcmp(node->conf.driver_lib_dir, "none") == 0)
        node->conf.driver_lib_dir = "";
    else if (node->conf.driver_lib_dir[0] == '\0') {
        driver_list_places(&node->conf, &places);
        bh_path_format(parent, sizeof parent, "%.300s/driver", node->conf.state_dir);
        rc = bh_driver_gather(&places, parent, node->driver_folder, &err);
        if (rc == BH_OK)
            node->conf.driver_lib_dir = node->driver_folder;
        else if (rc != BH_NOT_FOUND)
            bh_log(EFFECT_FAILED, BH_STR("what", "driver"), BH_ERRLOG(&err));
    }
}

void
bh_node_driver_find(const struct bh_conf *conf, const char *name, struct bh_driver_paths *ret_paths)
{
    struct bh_driver_places places;

    ret_paths->count = 0;
    driver_list_places(conf, &places);
    for (uint32_t i = 0; i < places.count; i++) {
        char path[BH_NODE_PATH_MAX], real[PATH_MAX];
        uint32_t at = 0;

        bh_path_format(path, sizeof path, "%.400s/%.100s", places.items[i], name);
        if (!realpath(path, real) || strlen(real) >= BH_NODE_PATH_MAX)
            continue;
        while (at < ret_paths->count && strcmp(ret_paths->items[at], real) != 0)
            at++;
        if (at < ret_paths->count)
            continue;
        bh_path_format(ret_paths->items[ret_paths->count++], BH_NODE_PATH_MAX, "%s", real);
    }
}

const char *
bh_driver_shim(const struct bh_node *node)
{
    return node->conf.shim_dir[0] != '\0' ? node->conf.shim_dir : BH_SHIM_DIR;
}

bh_rc
bh_driver_cover(const struct bh_node *node, struct bh_arena *arena,
                struct bh_sandbox_mount ret_mounts[BH_DRIVER_COVERS_MAX], uint32_t *ret_count,
                struct bh_err *err)
{
    static const char *const names[] = { "libcuda.so.1", "libnvidia-ml.so.1" };
    struct bh_driver_paths found;
    uint32_t count = 0;

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        bh_node_driver_find(&node->conf, names[i], &found);
        for (uint32_t n = 0; n < found.count; n++) {
            struct bh_sandbox_mount cover = { bh_arena_printf(arena, "%s/%s", bh_driver_shim(node), names[i]),
                                              bh_arena_strdup(arena, found.items[n]), false };

            if (!cover.source || !cover.target)
                return bh_err_set(err, BH_FULL, "the order is too long");
            ret_mounts[count++] = cover;
        }
    }
    *ret_count = count;
    return BH_OK;
}
