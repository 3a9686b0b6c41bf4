#include "node/sandbox/network_hosts.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

static void
test_names(void **state)
{
    static const struct bh_network_host hosts[] = {
        { 0x0ad50002, 12, 0, 0, "train", "acme/vision" },
        { 0x0ad50003, 13, 2, 0, "Big", "acme/vision" },
        { 0x0ad50004, 13, 2, 1, "Big", "acme/vision" },
        { 0x0ad50005, 14, 1, 0, "no host\n10.0.0.1 job-12", "acme/vision" },
        { 0x0ad50006, 15, 1, 0, "job-12", "acme/vision" },
        { 0x0ad50007, 16, 1, 0, "-x", "acme/vision" },
    };
    char memory[4096];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_network_hosts_put(&out, hosts, BH_COUNT(hosts));
    BH_CHECK_STR("all", bh_buf_text(&out),
                 "127.0.0.1 localhost\n::1 localhost\n"
                 "10.213.0.2 job-12.acme.vision job-12\n"
                 "10.213.0.3 job-13-0.acme.vision job-13-0 job-13.acme.vision job-13\n"
                 "10.213.0.4 job-13-1.acme.vision job-13-1\n"
                 "10.213.0.5 job-14.acme.vision job-14\n"
                 "10.213.0.6 job-15.acme.vision job-15\n"
                 "10.213.0.7 job-16.acme.vision job-16\n"
                 "10.213.0.2 train.acme.vision train\n"
                 "10.213.0.3 big-0.acme.vision big-0 big.acme.vision big\n"
                 "10.213.0.4 big-1.acme.vision big-1\n"
                 "10.213.0.6 job-12.acme.vision job-12\n"); /* behind the one that is it */
    BH_CHECK_DONE();
}

static void
test_write(void **state)
{
    static const char *const texts[] = { "first\n", "a longer one\n", "x\n", "" };
    char path[] = "/tmp/bh-hosts-XXXXXX", memory[64];
    int fd = mkstemp(path);
    struct bh_err err;
    struct bh_buf text;

    for (size_t i = 0; i < BH_COUNT(texts); i++) {
        BH_CHECK_EQ(texts[i], bh_network_hosts_write(path, texts[i], strlen(texts[i]), &err), BH_OK);
        bh_buf_init_fixed(&text, memory, sizeof memory);
        BH_CHECK_EQ(texts[i], bh_file_read(path, sizeof memory - 1, &text, &err), BH_OK);
        BH_CHECK_STR(texts[i], bh_buf_text(&text), texts[i]);
        BH_CHECK_EQ("the same file", lseek(fd, 0, SEEK_END), strlen(texts[i]));
    }
    close(fd);
    unlink(path);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_write) };
BH_TEST_MAIN(tests)
