#ifndef BH_MODEL_PATH_H
#define BH_MODEL_PATH_H

#include <stdbool.h>

/* Tenant paths ("acme/vision/train") and file paths as users write them. */

enum { BH_TENANT_PATH_MAX = 119, BH_FILE_PATH_MAX = 4095, BH_SANDBOX_PATH_MAX = 1000 };

/* Whether every part between slashes is a valid name and the whole is short enough. */
bool bh_tenant_path_valid(const char *path);

/* How many tenants stand above: 0 for "acme". */
unsigned bh_tenant_path_depth(const char *path);

/* Whether `parent` is `path` less its last part. */
bool bh_tenant_path_is_parent(const char *parent, const char *path);

/* Why `path` is no absolute file path that stays where it points ("is not absolute",
 * "leads upward with \"..\""), or NULL when it is one. */
const char *bh_file_path_fault(const char *path);

/* Why `path`, which bh_file_path_fault let pass, may be no place inside a sandbox ("is longer than
 * 1000 bytes", "is below /proc, which belongs to the sandbox"), or NULL when it may. */
const char *bh_sandbox_path_fault(const char *path);

/* Whether `path` is `above` or stands below it. */
bool bh_file_path_within(const char *above, const char *path);

#endif
