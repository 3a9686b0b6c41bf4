#include "tests/crash/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/attr.h"
#include "base/splitmix.h"

enum { FDS_MAX = 1024, NAMES_MAX = 256, SECTOR = 512, NONE = -1, FOLDER = -2 };

enum call_kind { CALL_WRITE, CALL_CUT, CALL_FLUSH, CALL_NAME, CALL_FLUSH_FOLDER, CALL_MARK };

/* A call that changed something, or a remark. */
struct call {
    enum call_kind kind;
    bool dropped;       /* CALL_FLUSH: the disk lied */
    int file;           /* CALL_NAME: what `name` stands for from now on, or NONE */
    int name, old_name; /* CALL_NAME; old_name goes, or NONE */
    uint64_t at;        /* CALL_WRITE: offset; CALL_CUT: length; CALL_MARK: number */
    size_t length;
    char *bytes; /* CALL_WRITE */
    uint32_t mark;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool recording;
static char folder_path[256];
static int file_of_fd[FDS_MAX]; /* or NONE, or FOLDER */
static bool appends[FDS_MAX];
static uint64_t position_of_fd[FDS_MAX];
static char names[NAMES_MAX][64];
static int name_count;
static int file_of_name[NAMES_MAX]; /* as the program sees it */
static int file_count;
static struct call *calls;
static size_t call_count, call_room;

/* ---- failing ---- */

static _Thread_local struct bh_disk_fault fault;
static _Thread_local uint32_t calls_seen, calls_failed;

void
bh_disk_fail(const struct bh_disk_fault *wanted)
{
    fault = *wanted;
    calls_seen = calls_failed = 0;
}

uint32_t
bh_disk_heal(void)
{
    fault = (struct bh_disk_fault){ 0 };
    return calls_failed;
}

static bool
fails_now(void)
{
    if (fault.number == 0 || ++calls_seen < fault.number || (calls_seen > fault.number && !fault.sticky))
        return false;
    calls_failed++;
    errno = fault.error;
    return true;
}

/* ---- writing down ---- */

static struct call *
add_call(enum call_kind kind)
{
    if (call_count == call_room) {
        call_room = call_room ? 2 * call_room : 1024;
        calls = realloc(calls, call_room * sizeof *calls);
        BH_ASSERT(calls);
    }
    calls[call_count] = (struct call){ .kind = kind, .file = NONE, .name = NONE, .old_name = NONE };
    return &calls[call_count++];
}

/* The name's number when the path is directly in the folder, else NONE. */
static int
name_of(const char *path)
{
    size_t length = strlen(folder_path);
    const char *name = path + length + 1;

    if (!recording || strncmp(path, folder_path, length) != 0 || path[length] != '/' || strchr(name, '/'))
        return NONE;
    for (int i = 0; i < name_count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    BH_ASSERT(name_count < NAMES_MAX && strlen(name) < sizeof names[0]);
    snprintf(names[name_count], sizeof names[0], "%s", name);
    file_of_name[name_count] = NONE;
    return name_count++;
}

static void
set_name(int name, int file, int old_name)
{
    struct call *call = add_call(CALL_NAME);

    call->name = name;
    call->file = file;
    call->old_name = old_name;
    file_of_name[name] = file;
    if (old_name != NONE)
        file_of_name[old_name] = NONE;
}

static void
note_open(int fd, const char *path, int flags)
{
    int name = name_of(path);

    if (fd < 0 || fd >= FDS_MAX)
        return;
    appends[fd] = flags & O_APPEND;
    position_of_fd[fd] = 0;
    file_of_fd[fd] = recording && strcmp(path, folder_path) == 0 ? FOLDER : NONE;
    if (name == NONE || (flags & O_DIRECTORY))
        return;
    if (file_of_name[name] == NONE)
        set_name(name, file_count++, NONE);
    file_of_fd[fd] = file_of_name[name];
    if (flags & O_TRUNC)
        add_call(CALL_CUT)->file = file_of_fd[fd];
}

static int
file_of(int fd)
{
    return recording && fd >= 0 && fd < FDS_MAX ? file_of_fd[fd] : NONE;
}

static void
note_write(int fd, const void *bytes, size_t length, uint64_t at)
{
    struct call *call;

    if (file_of(fd) < 0)
        return;
    call = add_call(CALL_WRITE);
    call->file = file_of(fd);
    call->at = at;
    call->length = length;
    call->bytes = malloc(length + 1);
    BH_ASSERT(call->bytes);
    memcpy(call->bytes, bytes, length);
}

static void
note_flush(int fd)
{
    if (file_of(fd) == FOLDER)
        add_call(CALL_FLUSH_FOLDER);
    else if (file_of(fd) >= 0)
        add_call(CALL_FLUSH)->file = file_of(fd);
}

void
bh_disk_record(const char *folder)
{
    pthread_mutex_lock(&mutex);
    snprintf(folder_path, sizeof folder_path, "%s", folder);
    for (int i = 0; i < FDS_MAX; i++)
        file_of_fd[i] = NONE;
    recording = true;
    pthread_mutex_unlock(&mutex);
}

void
bh_disk_pause(void)
{
    pthread_mutex_lock(&mutex);
    recording = false;
    pthread_mutex_unlock(&mutex);
}

void
bh_disk_mark(uint32_t kind, uint64_t number)
{
    struct call *call;

    pthread_mutex_lock(&mutex);
    if (recording) {
        call = add_call(CALL_MARK);
        call->mark = kind;
        call->at = number;
    }
    pthread_mutex_unlock(&mutex);
}

size_t
bh_disk_length(void)
{
    return call_count;
}

void
bh_disk_marks(size_t point, bh_disk_mark_sink sink, void *self)
{
    for (size_t i = 0; i < point; i++)
        if (calls[i].kind == CALL_MARK)
            sink(self, i, calls[i].mark, calls[i].at);
}

void
bh_disk_drop_flushes(const char *prefix)
{
    int file_name[NAMES_MAX]; /* by file; a file has the name that it was made under */

    for (size_t i = 0; i < call_count; i++) {
        if (calls[i].kind == CALL_NAME && calls[i].file != NONE && calls[i].old_name == NONE)
            file_name[calls[i].file] = calls[i].name;
        if (calls[i].kind == CALL_FLUSH
            && strncmp(names[file_name[calls[i].file]], prefix, strlen(prefix)) == 0)
            calls[i].dropped = true;
    }
}

/* ---- the C library's calls ---- */

BH_EXPORT int bh_disk_open(const char *path, int flags, ...) __asm__("open");
BH_EXPORT int bh_disk_open64(const char *path, int flags, ...) __asm__("open64");
BH_EXPORT int bh_disk_close(int fd) __asm__("close");
BH_EXPORT ssize_t bh_disk_write(int fd, const void *bytes, size_t length) __asm__("write");
BH_EXPORT ssize_t bh_disk_pwrite(int fd, const void *bytes, size_t length, off64_t at) __asm__("pwrite64");
BH_EXPORT int bh_disk_cut(int fd, off64_t length) __asm__("ftruncate64");
BH_EXPORT int bh_disk_fdatasync(int fd) __asm__("fdatasync");
BH_EXPORT int bh_disk_fsync(int fd) __asm__("fsync");
BH_EXPORT int bh_disk_rename(const char *from, const char *to) __asm__("rename");
BH_EXPORT int bh_disk_unlink(const char *path) __asm__("unlink");

static int
open_file(const char *path, int flags, mode_t mode)
{
    int fd;

    if ((flags & O_CREAT) && fails_now())
        return -1;
    pthread_mutex_lock(&mutex);
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    note_open(fd, path, flags);
    pthread_mutex_unlock(&mutex);
    return fd;
}

static mode_t
mode_of(int flags, va_list rest)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

int
bh_disk_open(const char *path, int flags, ...)
{
    va_list rest;
    mode_t mode;

    va_start(rest, flags);
    mode = mode_of(flags, rest);
    va_end(rest);
    return open_file(path, flags, mode);
}

int
bh_disk_open64(const char *path, int flags, ...)
{
    va_list rest;
    mode_t mode;

    va_start(rest, flags);
    mode = mode_of(flags, rest);
    va_end(rest);
    return open_file(path, flags, mode);
}

int
bh_disk_close(int fd)
{
    if (fd >= 0 && fd < FDS_MAX)
        file_of_fd[fd] = NONE;
    return (int)syscall(SYS_close, fd);
}

/* A disk that is full takes what fits. */
static size_t
part_of(size_t length)
{
    return fault.error == ENOSPC ? length / 2 : 0;
}

ssize_t
bh_disk_write(int fd, const void *bytes, size_t length)
{
    ssize_t written;

    if (fd > 2 && fails_now()) {
        if (part_of(length) == 0)
            return -1;
        length = part_of(length);
    }
    pthread_mutex_lock(&mutex);
    written = syscall(SYS_write, fd, bytes, length);
    if (written > 0 && file_of(fd) >= 0) {
        BH_ASSERT(!appends[fd]);
        note_write(fd, bytes, (size_t)written, position_of_fd[fd]);
        position_of_fd[fd] += (uint64_t)written;
    }
    pthread_mutex_unlock(&mutex);
    return written;
}

ssize_t
bh_disk_pwrite(int fd, const void *bytes, size_t length, off64_t at)
{
    ssize_t written;

    if (fails_now()) {
        if (part_of(length) == 0)
            return -1;
        length = part_of(length);
    }
    pthread_mutex_lock(&mutex);
    written = syscall(SYS_pwrite64, fd, bytes, length, at);
    if (written > 0)
        note_write(fd, bytes, (size_t)written, (uint64_t)at);
    pthread_mutex_unlock(&mutex);
    return written;
}

int
bh_disk_cut(int fd, off64_t length)
{
    struct call *call;
    int rc;

    if (fails_now())
        return -1;
    pthread_mutex_lock(&mutex);
    rc = (int)syscall(SYS_ftruncate, fd, length);
    if (rc == 0 && file_of(fd) >= 0) {
        call = add_call(CALL_CUT);
        call->file = file_of(fd);
        call->at = (uint64_t)length;
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* What is flushed in truth does not matter to a test: a crash is played. */
static int
flush(int fd)
{
    if (fails_now())
        return -1;
    pthread_mutex_lock(&mutex);
    note_flush(fd);
    pthread_mutex_unlock(&mutex);
    return 0;
}

int
bh_disk_fdatasync(int fd)
{
    return flush(fd);
}

int
bh_disk_fsync(int fd)
{
    return flush(fd);
}

int
bh_disk_rename(const char *from, const char *to)
{
    int old_name, name, rc;

    if (fails_now())
        return -1;
    pthread_mutex_lock(&mutex);
    rc = (int)syscall(SYS_rename, from, to);
    old_name = name_of(from);
    name = name_of(to);
    if (rc == 0 && old_name != NONE && name != NONE)
        set_name(name, file_of_name[old_name], old_name);
    pthread_mutex_unlock(&mutex);
    return rc;
}

int
bh_disk_unlink(const char *path)
{
    int name, rc;

    if (fails_now())
        return -1;
    pthread_mutex_lock(&mutex);
    rc = (int)syscall(SYS_unlink, path);
    name = name_of(path);
    if (rc == 0 && name != NONE)
        set_name(name, NONE, NONE);
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* ---- playing a crash ---- */

/* What the disk holds for sure up to call `played`, and what is under way. */
struct content {
    char *bytes;
    size_t length, room;
};

static struct content *sure; /* by file */
static int sure_count;
static int sure_name[NAMES_MAX]; /* file by name, as the disk has it for sure */
static size_t played;
static size_t *open_calls; /* calls not flushed yet, in order */
static size_t open_count;

static void
content_reach(struct content *content, size_t length)
{
    if (length > content->room) {
        content->room = 2 * length + 4096;
        content->bytes = realloc(content->bytes, content->room);
        BH_ASSERT(content->bytes);
    }
    if (length > content->length) {
        memset(content->bytes + content->length, 0, length - content->length);
        content->length = length;
    }
}

static void
content_put(struct content *content, uint64_t at, const char *bytes, size_t length)
{
    content_reach(content, at + length);
    memcpy(content->bytes + at, bytes, length);
}

static void
content_cut(struct content *content, size_t length)
{
    if (length < content->length)
        content->length = length;
    else
        content_reach(content, length);
}

static void
name_apply(int table[NAMES_MAX], const struct call *call)
{
    table[call->name] = call->file;
    if (call->old_name != NONE)
        table[call->old_name] = NONE;
}

static void
settle(const struct call *call)
{
    if (call->kind == CALL_WRITE)
        content_put(&sure[call->file], call->at, call->bytes, call->length);
    else if (call->kind == CALL_CUT)
        content_cut(&sure[call->file], call->at);
    else
        name_apply(sure_name, call);
}

/* The calls under way that a flush makes sure, in order; the rest stays under way. */
static void
settle_open(const struct call *flush_call)
{
    size_t left = 0;

    for (size_t i = 0; i < open_count; i++) {
        const struct call *call = &calls[open_calls[i]];
        bool settles = flush_call->kind == CALL_FLUSH_FOLDER
                           ? call->kind == CALL_NAME
                           : call->kind != CALL_NAME && call->file == flush_call->file;

        if (settles)
            settle(call);
        else
            open_calls[left++] = open_calls[i];
    }
    open_count = left;
}

void
bh_disk_rewind(void)
{
    for (int i = 0; i < sure_count; i++)
        free(sure[i].bytes);
    free(sure);
    free(open_calls);
    sure_count = file_count;
    sure = calloc((size_t)file_count + 1, sizeof *sure);
    open_calls = calloc(call_count + 1, sizeof *open_calls);
    BH_ASSERT(sure && open_calls);
    for (int i = 0; i < NAMES_MAX; i++)
        sure_name[i] = NONE;
    played = open_count = 0;
}

static void
play_to(size_t point)
{
    BH_ASSERT(point >= played && point <= call_count);
    for (; played < point; played++) {
        const struct call *call = &calls[played];

        if (call->kind == CALL_FLUSH || call->kind == CALL_FLUSH_FOLDER) {
            if (!call->dropped)
                settle_open(call);
        } else if (call->kind != CALL_MARK) {
            open_calls[open_count++] = played;
        }
    }
}

/* How a crash chose: all of what is under way, nothing, what came first, or each by lot. */
struct luck {
    uint64_t state;
    enum { LUCK_ALL, LUCK_NONE, LUCK_FIRST, LUCK_CALLS, LUCK_SECTORS } kind;
    uint32_t percent;
    size_t first; /* LUCK_FIRST: so many of the calls under way */
};

static struct luck
draw_luck(uint64_t seed)
{
    struct luck luck = { .state = seed };

    luck.kind = bh_splitmix_next(&luck.state) % 5;
    luck.percent = (uint32_t)(bh_splitmix_next(&luck.state) % 101);
    luck.first = bh_splitmix_next(&luck.state) % (open_count + 1);
    return luck;
}

static bool
kept(struct luck *luck, size_t number)
{
    if (luck->kind == LUCK_FIRST)
        return number < luck->first;
    if (luck->kind == LUCK_ALL || luck->kind == LUCK_NONE)
        return luck->kind == LUCK_ALL;
    return bh_splitmix_next(&luck->state) % 100 < luck->percent;
}

/* Sectors come to the disk or not, each for itself; the file may have grown all the same. */
static void
put_sectors(struct luck *luck, struct content *content, const struct call *call)
{
    size_t done = 0;

    if (bh_splitmix_next(&luck->state) % 4 == 0)
        content_reach(content, call->at + call->length);
    while (done < call->length) {
        size_t most = SECTOR - (call->at + done) % SECTOR;
        size_t length = call->length - done < most ? call->length - done : most;

        if (bh_splitmix_next(&luck->state) % 100 < luck->percent)
            content_put(content, call->at + done, call->bytes + done, length);
        done += length;
    }
}

static void
apply_by_luck(struct luck *luck, size_t number, struct content *contents, int table[NAMES_MAX])
{
    const struct call *call = &calls[open_calls[number]];

    if (call->kind == CALL_WRITE && luck->kind == LUCK_SECTORS)
        put_sectors(luck, &contents[call->file], call);
    else if (!kept(luck, number))
        return;
    else if (call->kind == CALL_WRITE)
        content_put(&contents[call->file], call->at, call->bytes, call->length);
    else if (call->kind == CALL_CUT)
        content_cut(&contents[call->file], call->at);
    else
        name_apply(table, call);
}

static bool
in_memory_only(const char *name)
{
    size_t length = strlen(name);

    return (length > 4 && strcmp(name + length - 4, "-shm") == 0)
           || (length > 5 && strcmp(name + length - 5, ".lock") == 0);
}

static void
write_file(const char *folder, const char *name, const struct content *content)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    BH_ASSERT(file);
    if (content->length > 0)
        BH_ASSERT(fwrite(content->bytes, 1, content->length, file) == content->length);
    BH_ASSERT(fchmod(fileno(file), 0600) == 0);
    BH_ASSERT(fclose(file) == 0);
}

/* A copy of what is there for sure, but for files that have no name any more. */
static struct content *
copy_sure(void)
{
    struct content *contents = calloc((size_t)file_count + 1, sizeof *contents);
    bool *named = calloc((size_t)file_count + 1, sizeof *named);

    BH_ASSERT(contents && named);
    for (int i = 0; i < name_count; i++)
        if (sure_name[i] != NONE)
            named[sure_name[i]] = true;
    for (size_t i = 0; i < open_count; i++)
        if (calls[open_calls[i]].kind == CALL_NAME && calls[open_calls[i]].file != NONE)
            named[calls[open_calls[i]].file] = true;
    for (int i = 0; i < file_count; i++)
        if (named[i] && sure[i].length > 0)
            content_put(&contents[i], 0, sure[i].bytes, sure[i].length);
    free(named);
    return contents;
}

void
bh_disk_crash(size_t point, uint64_t seed, const char *folder)
{
    struct content *contents;
    int table[NAMES_MAX];
    struct luck luck;

    BH_ASSERT(!recording);
    play_to(point);
    luck = draw_luck(seed);
    contents = copy_sure();
    memcpy(table, sure_name, sizeof table);
    for (size_t i = 0; i < open_count; i++)
        apply_by_luck(&luck, i, contents, table);
    for (int i = 0; i < name_count; i++)
        if (table[i] != NONE && !in_memory_only(names[i]))
            write_file(folder, names[i], &contents[table[i]]);
    for (int i = 0; i < file_count; i++)
        free(contents[i].bytes);
    free(contents);
}

void
bh_disk_forget(void)
{
    BH_ASSERT(!recording);
    for (size_t i = 0; i < call_count; i++)
        free(calls[i].bytes);
    free(calls);
    calls = NULL;
    name_count = file_count = 0;
    call_count = call_room = 0;
    bh_disk_rewind();
}
