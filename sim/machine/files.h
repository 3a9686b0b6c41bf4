/* Small files and folders below the state directory.
 *
 * Every function returns false on failure and leaves errno as the failing
 * call set it.  Modes are exact: the process's umask is neither used nor
 * changed. */
#ifndef BH_SIM_MACHINE_FILES_H
#define BH_SIM_MACHINE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Write `parts` into a path of at most SIM_PATH_MAX bytes. */
__attribute__((format(printf, 2, 3))) bool sim_path(char *ret_path, const char *format, ...);

/* Make a folder and those above it that are missing. */
bool sim_make_folders(const char *path, mode_t mode);

/* Put a file in place whole: readers see the old content or the new. */
bool sim_put_file(const char *path, mode_t mode, const void *content, size_t length);

/* Make a sparse file of `size` bytes where there is none. */
bool sim_put_sparse(const char *path, mode_t mode, off_t size);

/* Remove a folder with what is in it; true also when there was nothing. */
bool sim_remove_tree(const char *path);

/* Remove what is in a folder and leave the folder.  True when there was none. */
bool sim_empty_folder(const char *path);

#endif
