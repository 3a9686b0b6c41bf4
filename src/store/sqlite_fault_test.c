#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "ports/crypto.h"

/* Every call that writes or flushes fails once, in turn: what commit then says must hold,
 * both in the running store and in what a crash at that moment would leave behind. */

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

/* ---- failing calls: to the linker these are the C library's ---- */

BH_EXPORT int bh_fault_fdatasync(int fd) __asm__("fdatasync");
BH_EXPORT int bh_fault_fsync(int fd) __asm__("fsync");
BH_EXPORT ssize_t bh_fault_pwrite(int fd, const void *bytes, size_t length, off64_t at) __asm__("pwrite64");

static _Thread_local bool armed; /* only the owner thread's calls count */
static int calls_left, calls_failed;
static bool fail_for_ever; /* not once, but from then on */

static bool
fails_now(void)
{
    if (!armed || --calls_left > 0 || (calls_left < 0 && !fail_for_ever))
        return false;
    calls_failed++;
    errno = EIO;
    return true;
}

int
bh_fault_fdatasync(int fd)
{
    return fails_now() ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int
bh_fault_fsync(int fd)
{
    return fails_now() ? -1 : (int)syscall(SYS_fsync, fd);
}

ssize_t
bh_fault_pwrite(int fd, const void *bytes, size_t length, off64_t at)
{
    return fails_now() ? -1 : syscall(SYS_pwrite64, fd, bytes, length, at);
}

/* ---- the sweep ---- */

struct fixture {
    char folder[32], path[64], image[64];
    struct bh_store store;
    struct bh_err err;
};

static void
sqlite_fault_must(const struct fixture *f, bh_rc rc)
{
    if (rc != BH_OK)
        fail_msg("%s: %s", bh_rc_name(rc), f->err.msg);
}

static void
remove_files(const char *path)
{
    static const char *const endings[] = { "", ".lock", "-wal", "-shm" };
    char name[96];

    for (size_t i = 0; i < BH_COUNT(endings); i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
}

static bh_rc
put_one(struct fixture *f, uint64_t seq)
{
    const struct bh_store *store = &f->store;
    bh_rc rc = store->ops->begin(store->self, &f->err);

    if (rc != BH_OK)
        return rc;
    rc = store->ops->put_record(store->self, seq, &(struct bh_slice){ "{}", 2 }, NULL, &f->err);
    if (rc == BH_OK)
        return store->ops->commit(store->self, &f->err);
    store->ops->rollback(store->self);
    return rc;
}

static uint64_t
last_record(struct fixture *f, const struct bh_store *store)
{
    uint64_t seq;

    sqlite_fault_must(f, store->ops->last_record(store->self, &seq, &f->err));
    return seq;
}

static void
copy_file(struct fixture *f, const char *ending)
{
    char from[96], to[96];
    struct bh_buf bytes;

    snprintf(from, sizeof from, "%s%s", f->path, ending);
    snprintf(to, sizeof to, "%s%s", f->image, ending);
    bh_buf_init(&bytes, 64 << 20);
    sqlite_fault_must(f, bh_file_read(from, 64 << 20, &bytes, &f->err));
    sqlite_fault_must(f, bh_file_replace(to, bytes.bytes, bytes.length, 0600, &f->err));
    bh_buf_fini(&bytes);
}

/* The newest record in what a crash now would leave. */
static uint64_t
last_after_crash(struct fixture *f)
{
    struct bh_store image;
    uint64_t seq;

    copy_file(f, "");
    copy_file(f, "-wal");
    sqlite_fault_must(f, bh_store_sqlite_open(f->image, BH_STORE_WRITE, crypto, &image, &f->err));
    seq = last_record(f, &image);
    image.ops->close(image.self);
    remove_files(f->image);
    return seq;
}

/* One round; false when there is no such call. */
static bool
fail_call(struct fixture *f, int number)
{
    char name[32];
    bh_rc rc;

    snprintf(name, sizeof name, "call %d", number);
    sqlite_fault_must(f, bh_store_sqlite_open(f->path, BH_STORE_WRITE, crypto, &f->store, &f->err));
    for (uint64_t seq = 0; seq < 3; seq++)
        sqlite_fault_must(f, put_one(f, seq));
    calls_left = number;
    calls_failed = 0;
    armed = true;
    rc = put_one(f, 3);
    armed = false;
    BH_CHECK_EQ(name, rc, calls_failed ? BH_IO : BH_OK);
    BH_CHECK_EQ(name, last_record(f, &f->store), rc == BH_OK ? 3 : 2);
    BH_CHECK_EQ(name, last_after_crash(f), rc == BH_OK ? 3 : 2);
    if (rc != BH_OK)
        sqlite_fault_must(f, put_one(f, 3));
    sqlite_fault_must(f, put_one(f, 4));
    BH_CHECK_EQ(name, last_after_crash(f), 4);
    f->store.ops->close(f->store.self);
    remove_files(f->path);
    return calls_failed > 0;
}

static void
each_call_fails_once(void **state)
{
    /* A record on one page: its frame's head, the page, the flush. */
    enum { CALLS_LEAST = 3 };
    struct fixture f = { .folder = "/tmp/bh-fault-XXXXXX" };
    int number = 1;

    assert_non_null(mkdtemp(f.folder));
    snprintf(f.path, sizeof f.path, "%s/store.db", f.folder);
    snprintf(f.image, sizeof f.image, "%s/image.db", f.folder);
    while (number < 1000 && fail_call(&f, number))
        number++;
    BH_CHECK("all calls", number > CALLS_LEAST);
    rmdir(f.folder);
    BH_CHECK_DONE();
}

/* A disk that stays broken: it is unknown what a crash would leave, and the result says so. */
static void
broken_disk_is_uncertain(void **state)
{
    struct fixture f = { .folder = "/tmp/bh-fault-XXXXXX" };

    assert_non_null(mkdtemp(f.folder));
    snprintf(f.path, sizeof f.path, "%s/store.db", f.folder);
    sqlite_fault_must(&f, bh_store_sqlite_open(f.path, BH_STORE_WRITE, crypto, &f.store, &f.err));
    sqlite_fault_must(&f, put_one(&f, 0));
    calls_left = 3;
    armed = fail_for_ever = true;
    BH_CHECK_EQ("flush", put_one(&f, 1), BH_UNCERTAIN);
    BH_CHECK_EQ("next", put_one(&f, 1), BH_IO);
    armed = fail_for_ever = false;
    BH_CHECK_EQ("seen", last_record(&f, &f.store), 0);
    sqlite_fault_must(&f, put_one(&f, 1));
    f.store.ops->close(f.store.self);
    remove_files(f.path);
    rmdir(f.folder);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_call_fails_once),
    cmocka_unit_test(broken_disk_is_uncertain),
};
BH_TEST_MAIN(tests)
