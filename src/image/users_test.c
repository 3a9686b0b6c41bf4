#include "image/users.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

static char folder[] = "/tmp/bh-users-XXXXXX";

static void
users_test_write_file(const char *name, const char *text)
{
    char path[64];
    struct bh_err err;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(bh_file_replace(path, text, strlen(text), 0644, &err), BH_OK);
}

static void
test_users(void **state)
{
    static const struct {
        const char *text;
        bh_rc rc;
        uint32_t uid, gid;
    } cases[] = {
        { "", BH_OK, 1000, 1000 },
        { "0", BH_OK, 1000, 1000 },
        { "root", BH_OK, 1000, 1000 },
        { "0:7", BH_OK, 1000, 7 },
        { "12", BH_OK, 12, 12 },
        { "12:34", BH_OK, 12, 34 },
        { "65535", BH_OK, 65535, 65535 },
        { "65536", BH_DENIED, 0, 0 },
        { "4294967295", BH_DENIED, 0, 0 },
        { "18446744073709551616", BH_INVALID, 0, 0 },
        { "app", BH_OK, 1234, 2345 },
        { "app:staff", BH_OK, 1234, 50 },
        { "app:none", BH_NOT_FOUND, 0, 0 },
        { "short", BH_NOT_FOUND, 0, 0 },
        { "toor", BH_OK, 1000, 1000 },
        { "absurd", BH_DENIED, 0, 0 },
        { "a b", BH_INVALID, 0, 0 },
        { "app:", BH_INVALID, 0, 0 },
        { "-1", BH_NOT_FOUND, 0, 0 },
    };
    int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_user user = { 0, 0 };
        struct bh_err err;

        BH_CHECK_EQ(cases[i].text, bh_user_find(root, cases[i].text, &user, &err), cases[i].rc);
        BH_CHECK_EQ(cases[i].text, user.uid, cases[i].uid);
        BH_CHECK_EQ(cases[i].text, user.gid, cases[i].gid);
    }
    close(root);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_users) };
    char path[64];
    int failed;

    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/etc", folder);
    mkdir(path, 0755);
    users_test_write_file("etc/passwd", "root:x:0:0:::\nshort:x\napp:x:1234:2345:::\ntoor:x:0:0\n"
                                        "absurd:x:4294967295:0::\n");
    users_test_write_file("etc/group", "root:x:0:\nstaff:x:50:\n");
    cmocka_set_message_output(CM_OUTPUT_TAP);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(path, sizeof path, "%s/etc/passwd", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/etc/group", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/etc", folder);
    rmdir(path);
    rmdir(folder);
    return failed;
}
