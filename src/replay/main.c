/* bulkhead-replay: plays scenarios, and journals over again. */
#include <stdio.h>
#include <string.h>

#include "replay/journal.h"
#include "replay/openb.h"
#include "replay/scenario.h"

enum { EXIT_OK, EXIT_FAILED, EXIT_USAGE };

static const char usage_text[] =
    "usage: bulkhead-replay scenario FILE...\n"
    "       bulkhead-replay journal STORE\n"
    "       bulkhead-replay openb --data DIR [OPTION...]\n"
    "       bulkhead-replay --help | --version\n"
    "\n"
    "scenario  Play scenarios against the scheduling engine and a model of the nodes.\n"
    "          Writes TAP.  Exit status 0 when all is as expected, else 1.\n"
    "journal   Apply every record of a store (bulkheadd's SQLite file) to an empty\n"
    "          state, with the decisions that were recorded, and compare the digest\n"
    "          at each snapshot.  Only reads; the daemon may run.  Exit status 0 when\n"
    "          all match, else 1.\n"
    "openb     Fill the cluster of the openb trace by a packing policy and say how many\n"
    "          of its GPUs are allocated (docs/replay.md; openb --help).\n"
    "\n"
    "Statements of a scenario (docs/scenarios.md):\n";

static int
print_help(FILE *out)
{
    fputs(usage_text, out);
    bh_scenario_print_statements(out);
    return ferror(out) ? EXIT_FAILED : EXIT_OK;
}

static int
run_scenarios(int count, char **paths)
{
    struct bh_tap tap = { .out = stdout };

    for (int i = 0; i < count; i++)
        bh_scenario_play_file(&tap, paths[i]);
    printf("1..%u\n", tap.count);
    return tap.failed || ferror(stdout) ? EXIT_FAILED : EXIT_OK;
}

static int
run_journal(int count, char **paths)
{
    struct bh_err err = { 0 };

    (void)count;
    if (bh_journal_replay(paths[0], stdout, &err) == BH_OK)
        return ferror(stdout) ? EXIT_FAILED : EXIT_OK;
    fflush(stdout);
    fprintf(stderr, "bulkhead-replay: %s\n", err.msg);
    return EXIT_FAILED;
}

/* The mode reads its own options, from its word on. */
static int
run_openb(int count, char **arguments)
{
    return bh_openb_main(count + 1, arguments - 1);
}

static int
run_help(int count, char **paths)
{
    (void)count, (void)paths;
    return print_help(stdout);
}

static int
run_version(int count, char **paths)
{
    (void)count, (void)paths;
    return puts("bulkhead-replay " BULKHEAD_VERSION) < 0 ? EXIT_FAILED : EXIT_OK;
}

static const struct mode {
    const char *word;
    int least, most;
    int (*run)(int count, char **paths);
} modes[] = {
    { "scenario", 1, 1 << 20, run_scenarios },
    { "journal", 1, 1, run_journal },
    { "openb", 0, 1 << 20, run_openb },
    { "--help", 0, 0, run_help },
    { "-h", 0, 0, run_help },
    { "--version", 0, 0, run_version },
};

int
main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].word, argv[1]) == 0 && argc - 2 >= modes[i].least &&
            argc - 2 <= modes[i].most)
            return modes[i].run(argc - 2, argv + 2);
    fputs("usage: bulkhead-replay scenario FILE... | journal STORE | openb OPTION... |\n"
          "                       --help | --version\n",
          stderr);
    return EXIT_USAGE;
}
