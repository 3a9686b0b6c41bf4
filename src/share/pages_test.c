/* Pages of another version, which processes of before an update have, or which are forged. */
#include "share/pages.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, USAGE = sizeof(struct bh_share_usage) };

#define PAGE_OF(number) "bulkhead-usage-" #number
#define PAGE_NOW PAGE_OF(3)
_Static_assert(BH_SHARE_VERSION == 3, "the version that the cases speak of");

/* What the process that has a slot has mapped, when bulkhead-share is started anew. */
static const struct {
    const char *name, *page;
    int bytes, seals, protection;
    bool outdated, mapped;
} cases[] = {
    { "version 1", "bulkhead-usage", 67 << 10, SEALS, PROT_READ | PROT_WRITE, true, true },
    { "the next one, as large", PAGE_OF(4), USAGE, SEALS, PROT_READ | PROT_WRITE, true, true },
    { "a longer number", PAGE_OF(33), USAGE, SEALS, PROT_READ | PROT_WRITE, true, true },
    { "this one, too short", PAGE_NOW, 4096, SEALS, PROT_READ | PROT_WRITE, true, true },
    { "this one, too long", PAGE_NOW, USAGE + 4096, SEALS, PROT_READ | PROT_WRITE, true, true },
    { "this one, not sealed", PAGE_NOW, USAGE, 0, PROT_READ | PROT_WRITE, true, true },
    { "this one", PAGE_NOW, USAGE, SEALS, PROT_READ | PROT_WRITE, false, true },
    { "only looked at", "bulkhead-usage", 67 << 10, SEALS, PROT_READ, false, false },
    { "something else", "other", USAGE, SEALS, PROT_READ | PROT_WRITE, false, false },
};

static pid_t
start_process(size_t row)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        int fd = memfd_create(cases[row].page, MFD_ALLOW_SEALING);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (ftruncate(fd, cases[row].bytes) != 0
            || (cases[row].seals != 0 && fcntl(fd, F_ADD_SEALS, cases[row].seals) != 0)
            || mmap(NULL, (size_t)cases[row].bytes, cases[row].protection, MAP_SHARED, fd, 0) == MAP_FAILED)
            _exit(1);
        (void)!write(ready[1], "r", 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static struct bh_share_open
make_lease(char *folder)
{
    struct bh_share_open open = { .lease = 1, .gpu_count = 1 };

    assert_non_null(mkdtemp(folder));
    snprintf(open.folder, sizeof(open.folder), "%s", folder);
    open.gpus[0] = (struct bh_share_gpu){ .uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff",
                                          .cap_bytes = UINT64_C(1) << 30 };
    return open;
}

static void
remove_lease(const struct bh_share_open *open)
{
    char path[sizeof(open->folder) + 8];

    snprintf(path, sizeof(path), "%s/limits", open->folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/slots", open->folder);
    unlink(path);
    assert_int_equal(rmdir(open->folder), 0);
}

static void
test_found_again(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char folder[] = "/tmp/bh-pages-XXXXXX";
        struct bh_share_open open = make_lease(folder);
        struct bh_share_pages *pages = NULL;
        struct bh_err err = { 0 };
        pid_t pid = start_process(i);
        struct bh_share_owner owner = { .pid = (uint32_t)pid };

        assert_int_equal(bh_share_started(owner.pid, &owner.started, &err), BH_OK);
        assert_int_equal(bh_share_pages_open(&open, &pages, &err), BH_OK);
        BH_CHECK(cases[i].name, !bh_share_pages_are_outdated(pages));
        assert_int_equal(bh_share_pages_assign(pages, owner), 0);
        BH_CHECK("what is new is not looked for", !bh_share_pages_are_outdated(pages));
        bh_share_pages_free(pages);
        assert_int_equal(bh_share_pages_open(&open, &pages, &err), BH_OK);
        BH_CHECK_EQ(cases[i].name, bh_share_pages_are_outdated(pages), cases[i].outdated);
        BH_CHECK_EQ(cases[i].name, bh_share_is_mapped(owner.pid), cases[i].mapped);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        BH_CHECK_EQ("gone", bh_share_check_owner(&owner, &err), BH_NOT_FOUND);
        BH_CHECK("reaped", bh_share_pages_reap(pages, 0));
        BH_CHECK("and so over", !bh_share_pages_are_outdated(pages));
        bh_share_pages_free(pages);
        remove_lease(&open);
    }
    BH_CHECK_DONE();
}

/* A process that cannot be read is neither gone nor another. */
static void
test_inconclusive(void **state)
{
    struct bh_share_owner me = { .pid = (uint32_t)getpid() };
    struct rlimit before, none;
    struct bh_err err;
    bh_rc rc;

    assert_int_equal(bh_share_started(me.pid, &me.started, &err), BH_OK);
    BH_CHECK_EQ("it lives", bh_share_check_owner(&me, &err), BH_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 0, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rc = bh_share_check_owner(&me, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    BH_CHECK("without a descriptor", rc != BH_OK && rc != BH_NOT_FOUND);
    me.started++;
    BH_CHECK_EQ("another", bh_share_check_owner(&me, &err), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

/* Limits of another version stay with their readers, and this version's are made beside them. */
static void
test_limits(void **state)
{
    static const struct {
        const char *name;
        uint32_t words[2];
        bool kept;
    } rows[] = {
        { "the version before", { BH_SHARE_MAGIC, BH_SHARE_VERSION - 1 }, false },
        { "the next one", { BH_SHARE_MAGIC, BH_SHARE_VERSION + 1 }, false },
        { "nonsense", { 7, BH_SHARE_VERSION }, false },
        { "this one", { BH_SHARE_MAGIC, BH_SHARE_VERSION }, true },
        { "not filled yet", { 0, 0 }, true },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char folder[] = "/tmp/bh-pages-XXXXXX", path[64];
        struct bh_share_open open_it = make_lease(folder);
        BH_AUTO(bh_share_pages_free) struct bh_share_pages *pages = NULL;
        BH_AUTO(bh_fd_close) int fd = -1;
        struct bh_err err = { 0 };
        struct stat found;
        uint32_t words[2] = { 0 };

        snprintf(path, sizeof(path), "%s/limits", folder);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, rows[i].words, sizeof(rows[i].words)), sizeof(rows[i].words));
        assert_int_equal(bh_share_pages_open(&open_it, &pages, &err), BH_OK);
        assert_int_equal(fstat(fd, &found), 0);
        BH_CHECK_EQ(rows[i].name, found.st_nlink == 1, rows[i].kept);
        assert_int_equal(pread(fd, words, sizeof(words), 0), sizeof(words));
        BH_CHECK(rows[i].name, rows[i].kept || memcmp(words, rows[i].words, sizeof(words)) == 0);
        assert_int_equal(pread(bh_share_pages_limits_fd(pages), words, sizeof(words), 0), sizeof(words));
        BH_CHECK_EQ(rows[i].name, words[1], BH_SHARE_VERSION);
        remove_lease(&open_it);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_again),
        cmocka_unit_test(test_inconclusive),
        cmocka_unit_test(test_limits),
    };

    if (geteuid() != 0)
        return 77; /* looks into other processes' memory maps */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
