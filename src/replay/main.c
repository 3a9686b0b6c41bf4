/* bulkhead-replay: scenarios and journals, played without a daemon or a GPU. */
#include <string.h>

#include "base/modes.h"
#include "base/num.h"
#include "replay/journal.h"
#include "replay/scenario.h"

static const char program[] = "bulkhead-replay";

static int
run_scenario(int count, char **paths)
{
    struct bh_tap tap = { .out = stdout };

    for (int i = 0; i < count; i++)
        bh_scenario_play_file(&tap, paths[i]);
    printf("1..%u\n", tap.count);
    return tap.failed || ferror(stdout) ? BH_MODE_FAILED : BH_MODE_OK;
}

/* What follows the store: pairs of an option and its value. */
static bool
read_journal_options(int count, char **words, struct bh_journal_options *ret_options)
{
    struct bh_err err;

    for (int i = 0; i < count; i += 2) {
        if (i + 1 < count && strcmp(words[i], "--whatif") == 0)
            ret_options->whatif = words[i + 1];
        else if (i + 1 == count || strcmp(words[i], "--until") != 0
                 || bh_parse_u64(words[i + 1], &ret_options->until, &err) != BH_OK)
            return false;
    }
    return true;
}

static int
run_journal(int count, char **words)
{
    struct bh_journal_options options = { .until = UINT64_MAX };
    struct bh_err err = { 0 };

    if (!read_journal_options(count - 1, words + 1, &options)) {
        bh_err_set(&err, BH_INVALID, "journal STORE [--until RECORD] [--whatif CHANGE]");
        return bh_mode_refuse(program, &err);
    }
    return bh_mode_report(program, bh_journal_replay(words[0], &options, stdout, &err), &err);
}

static int run_help(int count, char **words);

static int
run_version(int count, char **words)
{
    return puts("bulkhead-replay " BULKHEAD_VERSION) < 0 ? BH_MODE_FAILED : BH_MODE_OK;
}

/* The words after a mode are its own; docs/scenarios.md explains each. */
static const struct bh_mode modes[] = {
    { "scenario", "FILE...", 1, run_scenario,
      "Play scenarios against the scheduling engine and a model of the nodes.\n"
      "Writes TAP.  Exit status 0 when all is as expected, else 1.\n" },
    { "journal", "STORE [--until RECORD] [--whatif CHANGE]", 1, run_journal,
      "Apply every record of a store (bulkheadd's SQLite file) to an empty state,\n"
      "with the decisions that were recorded, and compare the digest at each\n"
      "snapshot.  Only reads; the daemon may run.  Exit status 0 when all match,\n"
      "else 1.  --until stops behind that record; --whatif supposes a change then\n"
      "and says for which jobs it is different: drain=NODE, drain=GPU, cancel=JOB,\n"
      "limit=TENANT:GPUS, guarantee=TENANT:GPUS.  Also spelt --journal.\n" },
    { "--journal", NULL, 1, run_journal, NULL },
    { "--help", NULL, 0, run_help, NULL },
    { "-h", NULL, 0, run_help, NULL },
    { "--version", NULL, 0, run_version, NULL },
};

static int
run_help(int count, char **words)
{
    bh_modes_print(program, modes, sizeof modes / sizeof modes[0], stdout);
    fputs("\nStatements of a scenario (docs/scenarios.md):\n", stdout);
    bh_scenario_print_statements(stdout);
    return ferror(stdout) ? BH_MODE_FAILED : BH_MODE_OK;
}

int
main(int argc, char **argv)
{
    return bh_modes_run(program, modes, sizeof modes / sizeof modes[0], argc, argv);
}
