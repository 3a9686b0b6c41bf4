/* The modes as people call them: exit status, messages, JSON, charts. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "base/json.h"

enum { OUTPUT_MAX = 65536, WORDS_MAX = 16 };

static const char *program;
static char output[OUTPUT_MAX];

/* Standard output and error into one file, which is read back. */
static void
read_back(int fd)
{
    ssize_t length = pread(fd, output, sizeof output - 1, 0);

    assert_true(length >= 0);
    output[length] = '\0';
    close(fd);
}

/* The program's exit status for words that stand between blanks. */
static int
run(const char *line)
{
    char path[] = "/tmp/bulkhead-modes-XXXXXX", copy[300], *words[WORDS_MAX + 1], *rest;
    int fd = mkstemp(path), status = 0, count = 0;
    pid_t child;

    assert_true(fd >= 0);
    unlink(path);
    snprintf(copy, sizeof copy, "bulkhead-lab %s", line);
    for (char *at = copy; count < WORDS_MAX && (words[count] = strtok_r(at, " ", &rest)); at = NULL)
        count++;
    words[count] = NULL;
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execv(program, words);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    read_back(fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
test_status(void **state)
{
    static const struct {
        const char *line;
        int status;
        const char *said;
    } rows[] = {
        { "kueue --what", 2, "bulkhead-lab: unknown option --what" },
        { "kueue --contract maybe", 2, "--contract" },
        { "philly", 2, "--data DIR says where the jobs are" },
        { "philly --data /tmp/bulkhead-none-at-all", 1, "/philly/philly_vc_jobs.csv" },
        { "philly --data . --order lifo", 2, "lifo" },
        { "synth --jobs 1", 2, "--jobs" },
        { "synth --load 1 --svg x.svg", 2, "--svg draws one load in one order" },
        { "synth --order drf --svg /tmp/bulkhead-none-at-all/x.svg --jobs 20", 1, "x.svg" },
        { "synth --jobs 50 --nodes 1 -v --check 1", 0, "50 jobs of 8 tenants on 8 GPUs" },
        { "synth --jobs 50 --limits", 0, "1.00 fifo" },
        { "synth --jobs 50 --lending forecast", 0, "1.00 fifo" },
        { "synth --jobs 50 --mig --preshape --carve-s 5", 0, "1.00 fifo" },
        { "synth --jobs 50 --lending all,forecast", 2, "" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        BH_CHECK_EQ(rows[i].line, run(rows[i].line), rows[i].status);
        if (!strstr(output, rows[i].said))
            BH_CHECK_STR(rows[i].line, output, rows[i].said);
    }
    BH_CHECK_DONE();
}

/* All ended jobs are in the JSON, and the same seed says the same. */
static void
test_json(void **state)
{
    struct bh_json *json;
    struct bh_err err = { 0 };
    bh_json_value one;
    uint64_t mean_ms, steps;

    assert_int_equal(run("synth --json --order drf --jobs 300 --nodes 2 --tenants 3 --seed 5"), 0);
    assert_int_equal(bh_json_parse(output, strlen(output), &json, &err), BH_OK);
    assert_int_equal(bh_json_count(bh_json_get(bh_json_root(json), "runs")), 1);
    one = bh_json_at(bh_json_get(bh_json_root(json), "runs"), 0);
    BH_CHECK_EQ("jobs", bh_json_number(bh_json_get(bh_json_get(one, "all"), "jobs"), 0), 300);
    BH_CHECK_EQ("tenants", bh_json_count(bh_json_get(one, "tenants")), 3);
    BH_CHECK_STR("order", bh_json_text(bh_json_get(one, "order"), ""), "drf");
    mean_ms = bh_json_number(bh_json_get(bh_json_get(one, "all"), "wait_mean_ms"), 0);
    steps = bh_json_number(bh_json_get(one, "steps"), 0);
    bh_json_free(json);
    assert_int_equal(run("synth --json --order drf --jobs 300 --nodes 2 --tenants 3 --seed 5"), 0);
    assert_int_equal(bh_json_parse(output, strlen(output), &json, &err), BH_OK);
    one = bh_json_at(bh_json_get(bh_json_root(json), "runs"), 0);
    BH_CHECK_EQ("same steps", bh_json_number(bh_json_get(one, "steps"), 0), steps);
    BH_CHECK_EQ("same wait", bh_json_number(bh_json_get(bh_json_get(one, "all"), "wait_mean_ms"), 0),
                mean_ms);
    bh_json_free(json);
    BH_CHECK_DONE();
}

static void
test_chart(void **state)
{
    char path[] = "/tmp/bulkhead-chart-XXXXXX", line[200], head[5] = "";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    snprintf(line, sizeof line, "synth --order fifo --jobs 100 --nodes 1 --svg %s", path);
    assert_int_equal(run(line), 0);
    assert_int_equal(pread(fd, head, 4, 0), 4);
    assert_string_equal(head, "<svg");
    close(fd);
    unlink(path);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_chart),
    };

    program = argc > 1 ? argv[1] : "bulkhead-lab";
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
