#ifndef BH_IMAGE_USERS_H
#define BH_IMAGE_USERS_H

#include <stdint.h>

#include "base/err.h"

/* The user that an image names: "", "1000", "1000:1000", "app", "app:staff". */

enum { BH_USERS_ID_MAX = 65535, BH_USERS_ROOT_ID = 1000 };

struct bh_user {
    uint32_t uid, gid;
};

/* A number is taken as it is; a name is looked up in etc/passwd and etc/group below the
 * folder `root_fd`, through no link that leaves it.  "" and root are 1000: nothing of a job
 * is root. BH_DENIED     an id that is over BH_USERS_ID_MAX BH_NOT_FOUND  no such name
 * there BH_INVALID    no user at all */
BH_MUST_USE bh_rc bh_user_find(int root_fd, const char *text, struct bh_user *ret_user, struct bh_err *err);

#endif
