#include "cli/command/setting.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/test.h"

static const struct {
    const char *name, *before, *value, *after; /* value: of https_port before; NULL: not set */
} rows[] = {
    { "in its place", "# a\nhttps_port = 0\nsocket = /s\n", "0", "# a\nhttps_port = 9\nsocket = /s\n" },
    { "without blanks", "https_port=80\n", "80", "https_port = 9\n" },
    { "blanks behind", "https_port = 80 \t\r\na = b\n", "80", "https_port = 9\na = b\n" },
    { "not there", "socket = /s\n", NULL, "socket = /s\nhttps_port = 9\n" },
    { "without a line end", "socket = /s", NULL, "socket = /s\nhttps_port = 9\n" },
    { "a comment", "# https_port = 1\n", NULL, "# https_port = 1\nhttps_port = 9\n" },
    { "another that begins so", "https_port_of = 1\n", NULL, "https_port_of = 1\nhttps_port = 9\n" },
    { "twice", "https_port = 1\na = b\nhttps_port = 2\n", "2", "https_port = 9\na = b\n" },
    { "empty file", "", NULL, "https_port = 9\n" },
};

static void
one_key_is_read_and_written(void **state)
{
    char file[] = "/tmp/bulkhead-setting-XXXXXX", value[32];
    struct bh_err err;

    close(mkstemp(file));
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_buf text;

        assert_int_equal(bh_file_replace(file, rows[i].before, strlen(rows[i].before), 0600, &err), BH_OK);
        BH_CHECK_EQ(rows[i].name, bh_setting_read(file, "https_port", "no", value, sizeof value),
                    rows[i].value != NULL);
        BH_CHECK_STR(rows[i].name, value, rows[i].value ? rows[i].value : "no");
        BH_CHECK_EQ(rows[i].name, bh_setting_write(file, "https_port", "9", &err), BH_OK);
        bh_buf_init(&text, 4096);
        assert_int_equal(bh_file_read(file, 4096, &text, &err), BH_OK);
        BH_CHECK_STR(rows[i].name, bh_buf_text(&text), rows[i].after);
        bh_buf_fini(&text);
    }
    unlink(file);
    BH_CHECK("no file", !bh_setting_read(file, "a", "b", value, sizeof value));
    BH_CHECK_EQ("no file to write", bh_setting_write(file, "a", "b", &err), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(one_key_is_read_and_written) };
BH_TEST_MAIN(tests)
