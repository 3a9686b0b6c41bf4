#include "cli/login/stored_session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"

enum { FILE_BYTES_MAX = 256 << 10, FORMAT = 1 };

/* What the file holds. */
struct session_file {
    struct bh_list devices;  /* of struct bh_stored_device */
    struct bh_list sessions; /* of struct bh_stored_session */
    uint32_t version;
};

#define NEEDED(type, member, how) BH_F(type, member, how, .flags = BH_FIELD_REQUIRED)

static const struct bh_field stored_rows[] = {
    NEEDED(struct bh_stored_session, address, BH_FIELD_TEXT),
    NEEDED(struct bh_stored_session, expires_ns, BH_FIELD_NS),
    NEEDED(struct bh_stored_session, id, BH_FIELD_TEXT),
    NEEDED(struct bh_stored_session, name, BH_FIELD_TEXT),
    NEEDED(struct bh_stored_session, session, BH_FIELD_TEXT),
};
static const struct bh_fields stored_fields = BH_FIELDS("session", struct bh_stored_session, stored_rows);

static const struct bh_field device_rows[] = {
    NEEDED(struct bh_stored_device, address, BH_FIELD_TEXT),
    NEEDED(struct bh_stored_device, device, BH_FIELD_TEXT),
    NEEDED(struct bh_stored_device, name, BH_FIELD_TEXT),
};
static const struct bh_fields device_fields = BH_FIELDS("device", struct bh_stored_device, device_rows);

static const struct bh_field file_rows[] = {
    BH_F(struct session_file, devices, BH_FIELD_LIST, .of = &device_fields, .max = BH_STORED_SESSIONS_MAX),
    BH_F(struct session_file, sessions, BH_FIELD_LIST, .of = &stored_fields, .max = BH_STORED_SESSIONS_MAX,
         .flags = BH_FIELD_ALWAYS),
    NEEDED(struct session_file, version, BH_FIELD_U32),
};
static const struct bh_fields file_fields = BH_FIELDS("sessions", struct session_file, file_rows);

bh_rc
bh_stored_session_path(char ret_path[BH_STORED_SESSION_PATH_MAX], struct bh_err *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length;

    if (state && *state == '/') {
        length = snprintf(ret_path, BH_STORED_SESSION_PATH_MAX, "%s/bulkhead/sessions", state);
    } else if (home && *home == '/') {
        length = snprintf(ret_path, BH_STORED_SESSION_PATH_MAX, "%s/.local/state/bulkhead/sessions", home);
    } else {
        bh_err_set(err, BH_NOT_FOUND, "no folder to store a session in: HOME is not set");
        return BH_NOT_FOUND;
    }
    return length < BH_STORED_SESSION_PATH_MAX ? BH_OK
                                               : bh_err_set(err, BH_RANGE, "the path in HOME is too long");
}

/* ---- whose it is ---- */

/* `taken`: bits of the mode that other users must not have. */
static bh_rc
session_check_owner(const char *path, const struct stat *found, mode_t taken, struct bh_err *err)
{
    if (found->st_uid != geteuid()) {
        bh_err_set(err, BH_DENIED, "%s belongs to another user, so it is not used", path);
        return bh_err_hint(err, "remove it, or set XDG_STATE_HOME to a folder of your own");
    }
    if (found->st_mode & taken) {
        bh_err_set(err, BH_DENIED, "%s is open to other users, so it is not used", path);
        return bh_err_hint(err, "end its sessions (bulkhead session end), remove it, then "
                                "bulkhead login");
    }
    return BH_OK;
}

static void
session_folder_of(const char *path, char ret_folder[BH_STORED_SESSION_PATH_MAX])
{
    snprintf(ret_folder, BH_STORED_SESSION_PATH_MAX, "%s", path);
    *strrchr(ret_folder, '/') = '\0';
}

/* The folder, opened and found to be the caller's. */
static bh_rc
session_open_folder(const char *path, int *ret_fd, struct bh_err *err)
{
    char folder[BH_STORED_SESSION_PATH_MAX];
    struct stat found;

    session_folder_of(path, folder);
    *ret_fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
        bh_err_set(err, BH_DENIED, "%s is not a folder, so it is not used", folder);
        return BH_DENIED;
    }
    if (*ret_fd < 0 || fstat(*ret_fd, &found) != 0)
        return bh_err_errno(err, "%s", folder);
    return session_check_owner(folder, &found, S_IWGRP | S_IWOTH, err);
}

static bh_rc
stored_session_open_file(int folder, const char *path, int *ret_fd, struct bh_err *err)
{
    struct stat found;

    *ret_fd =
        openat(folder, strrchr(path, '/') + 1, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*ret_fd < 0 && errno == ELOOP)
        return bh_err_set(err, BH_DENIED, "%s is a symbolic link, so it is not used", path);
    if (*ret_fd < 0 || fstat(*ret_fd, &found) != 0)
        return bh_err_errno(err, "%s", path);
    if (!S_ISREG(found.st_mode))
        return bh_err_set(err, BH_DENIED, "%s is not a regular file, so it is not used", path);
    return session_check_owner(path, &found, S_IRWXG | S_IRWXO, err);
}

/* ---- reading and writing ---- */

/* What is wrong with it is not quoted: it might be a secret. */
static bh_rc
stored_session_damaged(const char *path, struct bh_err *err)
{
    bh_err_set(err, BH_INVALID, "%s is damaged", path);
    return bh_err_hint(err, "remove it, then bulkhead login");
}

static bh_rc
stored_session_read_file(int fd, const char *path, struct bh_arena *arena, struct session_file *ret_file,
                         struct bh_err *err)
{
    char *bytes = malloc(FILE_BYTES_MAX);
    size_t length = 0;
    ssize_t got = 0;
    bh_rc rc = BH_OK;

    if (!bytes)
        return bh_err_set(err, BH_FULL, "no memory");
    while (length < FILE_BYTES_MAX && (got = read(fd, bytes + length, FILE_BYTES_MAX - length)) > 0)
        length += (size_t)got;
    if (got < 0)
        rc = bh_err_errno(err, "%s", path);
    else if (length == FILE_BYTES_MAX
             || bh_json_decode(bytes, length, &file_fields, ret_file, arena, err) != BH_OK
             || ret_file->version != FORMAT)
        rc = stored_session_damaged(path, err);
    explicit_bzero(bytes, length);
    free(bytes);
    return rc;
}

/* All sessions of the file; none when there is no file. */
static bh_rc
stored_session_load(int folder, const char *path, struct bh_arena *arena, struct session_file *ret_file,
                    struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = stored_session_open_file(folder, path, &fd, err);

    *ret_file = (struct session_file){ .version = FORMAT };
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    return rc == BH_OK ? stored_session_read_file(fd, path, arena, ret_file, err) : rc;
}

static bh_rc
session_store(const char *path, const struct session_file *file, struct bh_err *err)
{
    char *memory = malloc(FILE_BYTES_MAX);
    struct bh_buf text;
    bh_rc rc;

    if (!memory)
        return bh_err_set(err, BH_FULL, "no memory");
    bh_buf_init_fixed(&text, memory, FILE_BYTES_MAX - 1);
    bh_json_encode(&text, &file_fields, file);
    bh_buf_putc(&text, '\n');
    rc = text.overflow ? bh_err_set(err, BH_FULL, "%s: too many sessions", path)
                       : bh_file_replace(path, text.bytes, text.length, 0600, err);
    explicit_bzero(memory, FILE_BYTES_MAX);
    free(memory);
    return rc;
}

/* One writer at a time: what another one just wrote must not be lost. */
static bh_rc
session_lock_folder(const char *path, int *ret_fd, struct bh_err *err)
{
    bh_rc rc = session_open_folder(path, ret_fd, err);

    if (rc != BH_OK)
        return rc;
    if (flock(*ret_fd, LOCK_EX) != 0)
        return bh_err_errno(err, "locking the folder of %s", path);
    return BH_OK;
}

/* Remove the sessions of `address` (with `id`, unless it is NULL) and those that are over;
 * whether there was one to remove. */
static bool
session_remove_expired(struct session_file *file, const char *address, const char *id, uint64_t now_ns)
{
    struct bh_stored_session *all = file->sessions.items;
    uint32_t left = 0;

    for (uint32_t i = 0; i < file->sessions.count; i++) {
        bool named = strcmp(all[i].address, address) == 0 && (!id || strcmp(all[i].id, id) == 0);

        if (!named && all[i].expires_ns > now_ns)
            all[left++] = all[i];
    }
    if (left == file->sessions.count)
        return false;
    file->sessions.count = left;
    return true;
}

/* All of the file, for reading. */
static bh_rc
read_stored(const char *path, struct bh_arena *arena, struct session_file *ret_file, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int folder = -1;
    bh_rc rc = session_open_folder(path, &folder, err);

    return rc == BH_OK ? stored_session_load(folder, path, arena, ret_file, err) : rc;
}

/* All of the file, for changing, with the folder's lock; makes the folder. */
static bh_rc
session_begin_change(const char *path, struct bh_arena *arena, int *ret_lock, struct session_file *ret_file,
                     struct bh_err *err)
{
    char folder[BH_STORED_SESSION_PATH_MAX];
    bh_rc rc;

    session_folder_of(path, folder);
    rc = bh_dir_make(folder, 0700, err);
    if (rc != BH_OK)
        return rc;
    rc = session_lock_folder(path, ret_lock, err);
    if (rc != BH_OK)
        return rc;
    return stored_session_load(*ret_lock, path, arena, ret_file, err);
}

/* The list with room for one more item, which it leaves to the caller; NULL: no memory. */
static void *
stored_session_grow(struct bh_list *list, size_t size, struct bh_arena *arena)
{
    char *items = bh_arena_alloc(arena, (list->count + 1) * size);

    if (!items)
        return NULL;
    if (list->count > 0)
        memcpy(items, list->items, list->count * size);
    list->items = items;
    return items + size * list->count++;
}

bh_rc
bh_stored_session_find(const char *path, const char *address, struct bh_arena *arena,
                       struct bh_stored_session *ret_stored, struct bh_err *err)
{
    struct session_file file;
    bh_rc rc = read_stored(path, arena, &file, err);

    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < file.sessions.count; i++) {
        const struct bh_stored_session *stored = (const struct bh_stored_session *)file.sessions.items + i;

        if (strcmp(stored->address, address) == 0) {
            *ret_stored = *stored;
            return BH_OK;
        }
    }
    return bh_err_set(err, BH_NOT_FOUND, "you are not signed in at %s", address);
}

bh_rc
bh_stored_session_put(const char *path, const struct bh_stored_session *stored, uint64_t now_ns,
                      struct bh_arena *arena, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int lock = -1;
    struct session_file file;
    struct bh_stored_session *slot = NULL;
    bh_rc rc = session_begin_change(path, arena, &lock, &file, err);

    if (rc != BH_OK)
        return rc;
    session_remove_expired(&file, stored->address, NULL, now_ns);
    if (file.sessions.count < BH_STORED_SESSIONS_MAX)
        slot = stored_session_grow(&file.sessions, sizeof *slot, arena);
    if (!slot)
        return bh_err_set(err, BH_FULL, "%s: too many sessions", path);
    *slot = *stored;
    return session_store(path, &file, err);
}

static bool
session_is_device_of(const struct bh_stored_device *device, const char *address, const char *name)
{
    return strcmp(device->address, address) == 0 && strcasecmp(device->name, name) == 0;
}

bh_rc
bh_stored_device_put(const char *path, const struct bh_stored_device *device, struct bh_arena *arena,
                     struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int lock = -1;
    struct session_file file;
    struct bh_stored_device *all, *slot;
    uint32_t left = 0;
    bh_rc rc = session_begin_change(path, arena, &lock, &file, err);

    if (rc != BH_OK)
        return rc;
    all = file.devices.items;
    for (uint32_t i = 0; i < file.devices.count; i++) /* the oldest goes when there are too many */
        if (!session_is_device_of(&all[i], device->address, device->name)
            && (i > 0 || file.devices.count < BH_STORED_SESSIONS_MAX))
            all[left++] = all[i];
    file.devices.count = left;
    slot = stored_session_grow(&file.devices, sizeof *slot, arena);
    if (!slot)
        return bh_err_set(err, BH_FULL, "no memory");
    *slot = *device;
    return session_store(path, &file, err);
}

const char *
bh_stored_device(const char *path, const char *address, const char *name, struct bh_arena *arena)
{
    struct session_file file;
    struct bh_err unread;

    if (read_stored(path, arena, &file, &unread) != BH_OK)
        return NULL;
    for (uint32_t i = 0; i < file.devices.count; i++) {
        const struct bh_stored_device *device = (const struct bh_stored_device *)file.devices.items + i;

        if (session_is_device_of(device, address, name))
            return device->device;
    }
    return NULL;
}

bh_rc
bh_stored_session_drop(const char *path, const char *address, const char *id, struct bh_arena *arena,
                       struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int lock = -1;
    struct session_file file;
    bh_rc rc = session_lock_folder(path, &lock, err);

    if (rc == BH_NOT_FOUND)
        return BH_OK;
    if (rc == BH_OK)
        rc = stored_session_load(lock, path, arena, &file, err);
    if (rc != BH_OK || !session_remove_expired(&file, address, id, 0))
        return rc;
    return session_store(path, &file, err);
}
