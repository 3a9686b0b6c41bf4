#include "image/users.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"

enum { FILE_MAX = 1 << 20, NAME_MAX_BYTES = 64, COLUMNS = 4 };

/* A file of the image's, in memory of the caller's. */
static bool
users_read_file(int root_fd, const char *path, char *memory)
{
    struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    BH_AUTO(bh_fd_close)
    int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    struct stat st;
    size_t used = 0;

    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    for (ssize_t n = 1; n > 0 && used<FILE_MAX; used += n> 0 ? (size_t)n : 0)
        n = read(fd, memory + used, FILE_MAX - used);
    memory[used] = '\0';
    return true;
}

static bh_rc
users_read_id(const char *text, uint32_t *ret_id, struct bh_err *err)
{
    uint64_t id;

    if (bh_parse_u64(text, &id, err) != BH_OK)
        return bh_err_set(err, BH_INVALID, "user \"%.40s\" is neither a number nor a name", text);
    if (id <= BH_USERS_ID_MAX) {
        *ret_id = (uint32_t)id;
        return BH_OK;
    }
    bh_err_set(err, BH_DENIED, "user %" PRIu64 " is not within a job's range", id);
    return bh_err_hint(err, "a job has the ids 0 to %d: USER 1000 in the image", BH_USERS_ID_MAX);
}

/* The columns of a line "name:x:uid:gid:..."; how many there are. */
static size_t
users_split(char *line, char *columns[COLUMNS])
{
    size_t count = 0;

    for (char *at = line; at && count < COLUMNS; count++) {
        columns[count] = at;
        at = strchr(at, ':');
        if (at)
            *at++ = '\0';
    }
    return count;
}

static bh_rc
users_find_line(int root_fd, const char *path, const char *name, char *columns[COLUMNS], struct bh_err *err)
{
    static char text[FILE_MAX + 1];
    size_t wanted = strcmp(path, "etc/passwd") == 0 ? 4 : 3;

    if (users_read_file(root_fd, path, text)) {
        for (char *line = text, *next; line; line = next) {
            next = strchr(line, '\n');
            if (next)
                *next++ = '\0';
            if (users_split(line, columns) >= wanted && strcmp(columns[0], name) == 0)
                return BH_OK;
        }
    }
    bh_err_set(err, BH_NOT_FOUND, "its user \"%.40s\" is not in the image's /%s", name, path);
    return bh_err_hint(err, "write the number: USER 1000 in the image");
}

static bool
users_is_name(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return length > 0 && text[length] == '\0' && length <= NAME_MAX_BYTES;
}

static bool
users_is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static bh_rc
find_user(int root_fd, const char *name, struct bh_user *user, struct bh_err *err)
{
    char *columns[COLUMNS];
    bh_rc rc;

    if (users_is_number(name)) {
        rc = users_read_id(name, &user->uid, err);
        user->gid = user->uid;
        return rc;
    }
    rc = users_find_line(root_fd, "etc/passwd", name, columns, err);
    if (rc != BH_OK)
        return rc;
    rc = users_read_id(columns[2], &user->uid, err);
    if (rc != BH_OK)
        return rc;
    return users_read_id(columns[3], &user->gid, err);
}

static bh_rc
users_find_group(int root_fd, const char *name, uint32_t *ret_gid, struct bh_err *err)
{
    char *columns[COLUMNS];
    bh_rc rc;

    if (users_is_number(name))
        return users_read_id(name, ret_gid, err);
    rc = users_find_line(root_fd, "etc/group", name, columns, err);
    return rc == BH_OK ? users_read_id(columns[2], ret_gid, err) : rc;
}

bh_rc
bh_user_find(int root_fd, const char *text, struct bh_user *ret_user, struct bh_err *err)
{
    struct bh_user user = { 0, 0 };
    char name[2 * NAME_MAX_BYTES + 2], *group;
    bh_rc rc;

    snprintf(name, sizeof name, "%s", text);
    group = strchr(name, ':');
    if (group)
        *group++ = '\0';
    if (*text && (strlen(text) >= sizeof name || !users_is_name(name) || (group && !users_is_name(group))))
        return bh_err_set(err, BH_INVALID, "user \"%.60s\" is neither a number nor a name", text);
    if (*text && strcmp(name, "root") != 0) {
        rc = find_user(root_fd, name, &user, err);
        if (rc == BH_OK && group)
            rc = users_find_group(root_fd, group, &user.gid, err);
        if (rc != BH_OK)
            return rc;
    }
    if (user.uid == 0)
        user.uid = BH_USERS_ROOT_ID;
    if (user.gid == 0)
        user.gid = BH_USERS_ROOT_ID;
    *ret_user = user;
    return BH_OK;
}
