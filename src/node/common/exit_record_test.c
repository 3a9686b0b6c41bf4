#include "node/common/exit_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"
#include "model/job.h"

static char folder[] = "/tmp/exit-record-XXXXXX";

static const char *
exit_record_test_path_of(const char *name)
{
    static char path[80];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static ino_t
inode_of(const char *name)
{
    struct stat st;

    return stat(exit_record_test_path_of(name), &st) == 0 ? st.st_ino : 0;
}

static void
test_write(void **state)
{
    const struct bh_msg_ended end = {
        .lease = 7, .cause = BH_END_EXITED, .exit_status = 3, .ended_ns = 12, .why = "so"
    };
    struct bh_msg_ended found = { 0 };
    struct bh_err err;
    ino_t room;

    BH_CHECK_EQ("none yet", bh_exit_record_read(folder, &found, &err), BH_NOT_FOUND);
    BH_CHECK_EQ("room", bh_exit_record_reserve(folder, &err), BH_OK);
    BH_CHECK_EQ("room is no record", bh_exit_record_read(folder, &found, &err), BH_NOT_FOUND);
    room = inode_of("exit.room");
    BH_CHECK_EQ("written", bh_exit_record_write(folder, &end, &err), BH_OK);
    BH_CHECK_EQ("the room became it", inode_of("exit"), room);
    BH_CHECK_EQ("and is gone", inode_of("exit.room"), 0);
    BH_CHECK_EQ("read", bh_exit_record_read(folder, &found, &err), BH_OK);
    BH_CHECK_EQ("lease", found.lease, 7);
    BH_CHECK_EQ("status", found.exit_status, 3);
    BH_CHECK_STR("why", found.why, "so");
    BH_CHECK_EQ("again, without room", bh_exit_record_write(folder, &end, &err), BH_OK);
    BH_CHECK_EQ("read again", bh_exit_record_read(folder, &found, &err), BH_OK);
    unlink(exit_record_test_path_of("exit"));
    BH_CHECK_DONE();
}

static int
set_up(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int
tear_down(void **state)
{
    return rmdir(folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_write) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
