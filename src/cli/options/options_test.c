#include "cli/options/options.h"

#include "base/test.h"

enum { WORDS_MAX = 12 };

static int
options_test_split(char *line, char **words)
{
    char *rest;
    int count = 0;

    for (char *word = strtok_r(line, " ", &rest); word && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    words[count] = NULL;
    return count;
}

static const struct {
    const char *name, *line;
    bh_rc rc;
    enum bh_command_id command;
    const char *arguments; /* joined by blanks */
    bool program;
    /* clang-format off */
} lines[] = {
    { "a command alone", "bulkhead ps", BH_OK, BH_CMD_PS, "", false },
    { "two words", "bulkhead audit verify", BH_OK, BH_CMD_AUDIT_VERIFY, "", false },
    { "global option in front", "bulkhead -o json ps", BH_OK, BH_CMD_PS, "", false },
    { "value behind =", "bulkhead ps --output=yaml", BH_OK, BH_CMD_PS, "", false },
    { "letters together", "bulkhead ps -Aw", BH_OK, BH_CMD_PS, "", false },
    { "value in the letter's word", "bulkhead ps -ojson", BH_OK, BH_CMD_PS, "", false },
    { "option behind an argument", "bulkhead logs 12 -f", BH_OK, BH_CMD_LOGS, "12", false },
    { "-f means what the command says", "bulkhead apply -f site.yaml", BH_OK, BH_CMD_APPLY, "", false },
    { "a program keeps its options", "bulkhead run -s small python -u x.py", BH_OK, BH_CMD_RUN,
      "python -u x.py", false },
    { "-- begins a program", "bulkhead submit -s small -- ls -l", BH_OK, BH_CMD_SUBMIT, "ls -l", true },
    { "a job file may stand before it", "bulkhead submit job.yaml -s small -- ls -l", BH_OK, BH_CMD_SUBMIT,
      "job.yaml ls -l", true },
    { "help needs no arguments", "bulkhead logs --help", BH_OK, BH_CMD_LOGS, "", false },
    { "a dash is an argument", "bulkhead submit -", BH_OK, BH_CMD_SUBMIT, "-", false },
    { "nothing", "bulkhead", BH_INVALID, BH_COMMANDS, NULL, false },
    { "no such command", "bulkhead frobnicate", BH_INVALID, BH_COMMANDS, NULL, false },
    { "a group that is a command too", "bulkhead token", BH_OK, BH_CMD_TOKENS, "", false },
    { "and its help", "bulkhead token --help", BH_OK, BH_CMD_TOKENS, "", false },
    { "a wrong second word", "bulkhead audit frob", BH_INVALID, BH_COMMANDS, NULL, false },
    { "half of two words", "bulkhead audit", BH_INVALID, BH_COMMANDS, NULL, false },
    { "no such option", "bulkhead ps --frob", BH_INVALID, BH_CMD_PS, NULL, false },
    { "another command's option", "bulkhead ps --note x", BH_INVALID, BH_CMD_PS, NULL, false },
    { "no such letter", "bulkhead ps -Z", BH_INVALID, BH_CMD_PS, NULL, false },
    { "a flag with a value", "bulkhead ps --watch=yes", BH_INVALID, BH_CMD_PS, NULL, false },
    { "a missing value", "bulkhead ps --state", BH_INVALID, BH_CMD_PS, NULL, false },
    { "a limit of nothing", "bulkhead ps -n 0", BH_RANGE, BH_CMD_PS, NULL, false },
    { "no number", "bulkhead ps --limit many", BH_INVALID, BH_CMD_PS, NULL, false },
    { "a negative number", "bulkhead ps --limit -3", BH_INVALID, BH_CMD_PS, NULL, false },
    { "a number too large", "bulkhead ps --limit 18446744073709551616", BH_RANGE, BH_CMD_PS, NULL, false },
    { "no such choice", "bulkhead ps -o xml", BH_INVALID, BH_CMD_PS, NULL, false },
    { "a choice is a whole word", "bulkhead ps -o js", BH_INVALID, BH_CMD_PS, NULL, false },
    { "no span", "bulkhead wait 1 --wait soon", BH_INVALID, BH_CMD_WAIT_FOR, NULL, false },
    { "missing argument", "bulkhead why", BH_INVALID, BH_CMD_WHY, NULL, false },
    { "a name in Latin-1", "bulkhead submit --name a\xff" "b -s small true", BH_INVALID, BH_COMMANDS, NULL, false },
    { "an argument in Latin-1", "bulkhead run -s small echo \xe4", BH_INVALID, BH_COMMANDS, NULL, false },
    { "the version as elsewhere", "bulkhead --version", BH_OK, BH_CMD_VERSION, "", false },
    { "and by letter", "bulkhead -V", BH_OK, BH_CMD_VERSION, "", false },
    { "and by the small one", "bulkhead -v", BH_OK, BH_CMD_VERSION, "", false },
    { "unexpected argument", "bulkhead why 1 2", BH_INVALID, BH_CMD_WHY, NULL, false },
};
/* clang-format on */

static void
check_arguments(const char *name, const struct bh_args *args, const char *want)
{
    char joined[256] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < args->count; i++)
        used +=
            (size_t)snprintf(joined + used, sizeof joined - used, "%s%s", i ? " " : "", args->arguments[i]);
    BH_CHECK_STR(name, joined, want);
}

static void
test_lines(void **state)
{
    for (size_t i = 0; i < BH_COUNT(lines); i++) {
        char line[256], *words[WORDS_MAX + 1];
        struct bh_err err = { 0 };
        struct bh_args args;
        bh_rc rc;

        snprintf(line, sizeof line, "%s", lines[i].line);
        rc = bh_args_parse(options_test_split(line, words), words, &args, &err);
        BH_CHECK_EQ(lines[i].name, rc, lines[i].rc);
        BH_CHECK_EQ(lines[i].name, args.command, lines[i].command);
        BH_CHECK_EQ(lines[i].name, rc == BH_OK || *err.msg, 1);
        if (rc == BH_OK)
            check_arguments(lines[i].name, &args, lines[i].arguments);
        if (rc == BH_OK)
            BH_CHECK_EQ(lines[i].name, args.program, lines[i].program);
        bh_args_fini(&args);
    }
    BH_CHECK_DONE();
}

static void
test_values(void **state)
{
    char line[] = "bulkhead run -n 3 --wait 1h -e A=1 --env=B=2 --hold -- true";
    char *words[WORDS_MAX + 3];
    struct bh_err err;
    struct bh_args args;

    assert_int_equal(bh_args_parse(options_test_split(line, words), words, &args, &err), BH_OK);
    BH_CHECK_EQ("number", args.options[BH_OPT_COUNT].number, 3);
    BH_CHECK_EQ("span", args.options[BH_OPT_WAIT].number, 3600000000000);
    BH_CHECK_EQ("repeated", args.options[BH_OPT_ENV].count, 2);
    BH_CHECK_STR("repeated", args.options[BH_OPT_ENV].texts[0], "A=1");
    BH_CHECK_STR("repeated", args.options[BH_OPT_ENV].texts[1], "B=2");
    BH_CHECK("flag", args.options[BH_OPT_HOLD].given);
    BH_CHECK("not given", !args.options[BH_OPT_TENANT].given);
    bh_args_fini(&args);
    BH_CHECK_DONE();
}

static void
test_too_many_texts(void **state)
{
    char *words[2 * BH_OPTION_TEXTS_MAX + 8];
    char program[] = "bulkhead", run[] = "run", option[] = "-e", value[] = "A=1", what[] = "true";
    struct bh_err err;
    struct bh_args args;
    int count = 0;

    words[count++] = program;
    words[count++] = run;
    for (int i = 0; i <= BH_OPTION_TEXTS_MAX; i++) {
        words[count++] = option;
        words[count++] = value;
    }
    words[count++] = what;
    assert_int_equal(bh_args_parse(count, words, &args, &err), BH_INVALID);
    bh_args_fini(&args);
}

/* ---- the table itself ---- */

static const char *const operations[] = {
#define BH_OPERATION(id, method, path, verb, scope, kind, request, query, handler, runner, reply, summary)   \
#id,
#include "tables/operations.tbl"
#undef BH_OPERATION
};

static bool
is_reachable(const char *operation)
{
    for (uint32_t i = 0; i < BH_COMMANDS; i++)
        if (bh_words_have(bh_cli_commands[i].operations, ' ', operation, strlen(operation)))
            return true;
    return false;
}

/* What is said by others: programs, the pages that `login` and `account passkey add` send a
 * browser to, issuers. */
static bool
is_for_others(const char *operation)
{
    return bh_words_have("OPENAPI SIGN_IN_CHALLENGE SIGN_IN_ISSUER SIGN_IN_RETURN SIGN_IN_GRANT "
                         "SIGN_IN_LOGOUT PASSKEY_BEGIN PASSKEY_ADD GPU_GET NODE_GET",
                         ' ', operation, strlen(operation));
}

/* Everything else that the API can do can be done from the command line. */
static void
test_operations_reachable(void **state)
{
    for (size_t i = 0; i < BH_COUNT(operations); i++)
        BH_CHECK(operations[i], is_reachable(operations[i]) != is_for_others(operations[i]));
    BH_CHECK_DONE();
}

static bool
is_operation(const char *name, size_t length)
{
    for (size_t i = 0; i < BH_COUNT(operations); i++)
        if (strlen(operations[i]) == length && strncmp(operations[i], name, length) == 0)
            return true;
    return false;
}

/* Words that a command names stand in their tables. */
static void
test_words_known(void **state)
{
    for (uint32_t i = 0; i < BH_COMMANDS; i++) {
        const char *word = bh_cli_commands[i].operations;

        for (size_t length; *word; word += length + (word[length] == ' ')) {
            length = strcspn(word, " ");
            BH_CHECK(bh_cli_commands[i].name, is_operation(word, length));
        }
        word = bh_cli_commands[i].options;
        for (size_t length; *word; word += length + (word[length] == ' ')) {
            bool found = false;

            length = strcspn(word, " ");
            for (uint32_t o = 0; o < BH_OPTIONS; o++)
                found = found
                        || (strlen(bh_cli_options[o].name) == length
                            && strncmp(bh_cli_options[o].name, word, length) == 0);
            BH_CHECK(bh_cli_commands[i].name, found);
        }
    }
    BH_CHECK_DONE();
}

/* No command has two options of one letter. */
static void
test_letters_distinct(void **state)
{
    for (uint32_t c = 0; c < BH_COMMANDS; c++) {
        uint8_t seen[128] = { 0 };

        for (uint32_t o = 0; o < BH_OPTIONS; o++) {
            char letter = bh_cli_options[o].letter;

            if (letter && bh_command_takes((enum bh_command_id)c, (enum bh_option_id)o))
                BH_CHECK_EQ(bh_cli_commands[c].name, seen[(uint8_t)letter]++, 0);
        }
    }
    BH_CHECK_DONE();
}

/* Every option is some command's. */
static void
test_options_used(void **state)
{
    for (uint32_t o = 0; o < BH_OPTIONS; o++) {
        bool used = false;

        for (uint32_t c = 0; c < BH_COMMANDS; c++)
            used = used || bh_command_takes((enum bh_command_id)c, (enum bh_option_id)o);
        BH_CHECK(bh_cli_options[o].name, used);
    }
    BH_CHECK_DONE();
}

/* Options of Slurm and kubectl are refused with Bulkhead's own in the hint. */
static void
test_habits(void **state)
{
    static const struct {
        const char *line, *hint;
        /* clang-format off */
    } cases[] = {
        { "bulkhead squeue", "bulkhead ps" },
        { "bulkhead delete 12", "bulkhead cancel JOB" },
        { "bulkhead undrain gpu-node-1", "bulkhead uncordon" },
        { "bulkhead whatif layout", "a second word is missing: submit, cancel, quota, drain, apply" },
        { "bulkhead audit", "a second word is missing: tail, show, log, size, search, verify, prove, check, consistency, export" },
        { "bulkhead passwd", "bulkhead account password" },
        { "bulkhead account", "a second word is missing: show, password, totp, recovery, passkey, list, enrol, reset" },
        { "bulkhead frobnicate", "bulkhead help lists the commands" },
        { "bulkhead sumbit", "did you mean bulkhead submit?" },
        { "bulkhead sku", "bulkhead get skus" },
        { "bulkhead submit --time 5", "--time-limit SPAN" },
        { "bulkhead submit --mem=512", "--memory BYTES" },
        { "bulkhead submit -p hgih true", "did you mean --priority high?" },
        { "bulkhead wait 3 --for runing", "--for: what to wait for; default end" },
        { "bulkhead submit --on-preempt kill true", "what preemption by a higher job does to it" },
        { "bulkhead apply my.yaml", "bulkhead apply -f my.yaml" },
        { "bulkhead submit --array 3", "submit in a loop" },
        { "bulkhead submit --dependency 3", "bulkhead wait JOB" },
        { "bulkhead submit --check USR1", "did you mean --checkpoint-signal?" },
        { "bulkhead submit --meomry 1Gi", "did you mean --memory?" },
        { "bulkhead ps -u root", "ps --mine" },
        { "bulkhead ps --frobnicate", "bulkhead ps --help lists the options" },
        { "bulkhead submit --name a\xff", "convert it with iconv" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char line[64], *words[WORDS_MAX + 1];
        struct bh_args args;
        struct bh_err err = { .rc = BH_OK };

        snprintf(line, sizeof line, "%s", cases[i].line);
        BH_CHECK_EQ(cases[i].line, bh_args_parse(options_test_split(line, words), words, &args, &err),
                    BH_INVALID);
        if (!strstr(err.hint, cases[i].hint))
            BH_CHECK_STR(cases[i].line, err.hint, cases[i].hint);
        bh_args_fini(&args);
    }
    BH_CHECK_DONE();
}

/* A habit that is a command would never be heard, and its hint must fit. */
static void
test_habits_are_no_commands(void **state)
{
    static const struct {
        const char *words, *hint;
    } habits[] = {
#define BH_HABIT(words, hint) { words, hint },
#include "tables/commands.tbl"
    };
    const struct bh_err err = { .rc = BH_OK };

    for (size_t i = 0; i < BH_COUNT(habits); i++) {
        for (uint32_t k = 0; k < BH_COMMANDS; k++)
            BH_CHECK(bh_cli_commands[k].name, !bh_words_have(habits[i].words, ' ', bh_cli_commands[k].name,
                                                             strlen(bh_cli_commands[k].name)));
        BH_CHECK(habits[i].words, strlen(habits[i].hint) < sizeof err.hint);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lines),
    cmocka_unit_test(test_values),
    cmocka_unit_test(test_too_many_texts),
    cmocka_unit_test(test_operations_reachable),
    cmocka_unit_test(test_words_known),
    cmocka_unit_test(test_letters_distinct),
    cmocka_unit_test(test_options_used),
    cmocka_unit_test(test_habits),
    cmocka_unit_test(test_habits_are_no_commands),
};
BH_TEST_MAIN(tests)
