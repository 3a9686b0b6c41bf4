#include "node/common/exit_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"

enum { RECORD_MAX = 4096 };

static bh_rc
path_in(const char *folder, char *ret_path, size_t size, struct bh_err *err)
{
    if (snprintf(ret_path, size, "%s/exit", folder) >= (int)size)
        return bh_err_set(err, BH_INVALID, "path is too long: %.60s", folder);
    return BH_OK;
}

/* A file of the size of a record and its folder entry, which becomes the record. */
static bh_rc
reserve_path(const char *folder, char *ret_path, size_t size, struct bh_err *err)
{
    if (snprintf(ret_path, size, "%s/exit.room", folder) >= (int)size)
        return bh_err_set(err, BH_INVALID, "path is too long: %.60s", folder);
    return BH_OK;
}

bh_rc
bh_exit_record_reserve(const char *folder, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    char path[512];
    bh_rc rc = reserve_path(folder, path, sizeof path, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_file_open(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600, &fd, err);
    if (rc != BH_OK)
        return rc;
    if (fallocate(fd, 0, 0, RECORD_MAX) != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
        return bh_err_errno(err, "allocate space for %s", path);
    return BH_OK;
}

/* The room becomes the record; BH_NOT_FOUND: there is none. */
static bh_rc
write_reserved(const char *folder, const char *path, const struct bh_buf *text, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1, parent = -1;
    char reserved[512];
    bh_rc rc = reserve_path(folder, reserved, sizeof reserved, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_file_open(reserved, O_WRONLY | O_NOFOLLOW, 0, &fd, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_fd_write_all(fd, text->bytes, text->length, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "write %s", reserved);
    if (ftruncate(fd, (off_t)text->length) != 0 || fsync(fd) != 0 || rename(reserved, path) != 0)
        return bh_err_errno(err, "replace %s", path);
    parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return parent < 0 || fsync(parent) != 0 ? bh_err_errno(err, "sync %s", folder) : BH_OK;
}

bh_rc
bh_exit_record_write(const char *folder, const struct bh_msg_ended *end, struct bh_err *err)
{
    char path[512], memory[RECORD_MAX];
    struct bh_buf text;
    bh_rc rc = path_in(folder, path, sizeof path, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_json_encode(&text, bh_message_fields(BH_MSG_ENDED), end);
    if (text.overflow)
        return bh_err_set(err, BH_FULL, "exit record is too long");
    rc = write_reserved(folder, path, &text, err);
    return rc == BH_NOT_FOUND ? bh_file_replace(path, text.bytes, text.length, 0600, err) : rc;
}

bh_rc
bh_exit_record_read(const char *folder, struct bh_msg_ended *ret_end, struct bh_err *err)
{
    char path[512], memory[RECORD_MAX];
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_buf text;
    bh_rc rc = path_in(folder, path, sizeof path, err);

    bh_buf_init_fixed(&text, memory, sizeof memory);
    if (rc != BH_OK)
        return rc;
    rc = bh_file_read(path, sizeof memory - 1, &text, err);
    if (rc != BH_OK)
        return rc;
    return bh_json_decode(text.bytes, text.length, bh_message_fields(BH_MSG_ENDED), ret_end, arena, err);
}
