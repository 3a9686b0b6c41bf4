/* bulkhead-replay: plays scenarios and journals over again, and tries forecasts. */
#include <stdio.h>
#include <string.h>

#include "replay/forecast.h"
#include "replay/journal.h"
#include "replay/modes.h"
#include "replay/scenario.h"

enum { EXIT_OK, EXIT_FAILED, EXIT_USAGE };

static const char usage_text[] =
    "usage: bulkhead-replay scenario FILE...\n"
    "       bulkhead-replay journal STORE\n"
    "       bulkhead-replay forecast --data PATH [OPTION...]\n"
    "       bulkhead-replay kueue | philly --data DIR | synth [OPTION...]\n"
    "       bulkhead-replay --help | --version\n"
    "\n"
    "scenario  Play scenarios against the scheduling engine and a model of the nodes.\n"
    "          Writes TAP.  Exit status 0 when all is as expected, else 1.\n"
    "journal   Apply every record of a store (bulkheadd's SQLite file) to an empty\n"
    "          state, with the decisions that were recorded, and compare the digest\n"
    "          at each snapshot.  Only reads; the daemon may run.  Exit status 0 when\n"
    "          all match, else 1.\n"
    "forecast  Try the engine's forecasts on recorded demand (docs/replay.md): how far the\n"
    "          last value was off, and how often what came stayed below each bound.\n";

static int
print_help(FILE *out)
{
    fputs(usage_text, out);
    fputs(bh_mode_courses_help, out);
    fputs("\nOptions of forecast, with their defaults:\n", out);
    bh_forecast_print_options(out);
    fputs("\nStatements of a scenario (docs/scenarios.md):\n", out);
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

static int
run_forecast(int count, char **words)
{
    struct bh_forecast_options options;
    struct bh_err err = { 0 };
    int status = EXIT_USAGE;

    if (bh_forecast_options_parse(count, (const char *const *)words, &options, &err) == BH_OK) {
        status = EXIT_FAILED;
        if (bh_forecast_run(&options, stdout, &err) == BH_OK)
            return ferror(stdout) ? EXIT_FAILED : EXIT_OK;
    }
    fflush(stdout);
    fprintf(stderr, "bulkhead-replay: %s\n", err.msg);
    return status;
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
    { "forecast", 1, 1 << 20, run_forecast },
    { "kueue", 0, 1 << 10, bh_mode_kueue },
    { "philly", 0, 1 << 10, bh_mode_philly },
    { "synth", 0, 1 << 10, bh_mode_synth },
    { "--help", 0, 0, run_help },
    { "-h", 0, 0, run_help },
    { "--version", 0, 0, run_version },
};

int
main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].word, argv[1]) == 0 && argc - 2 >= modes[i].least
            && argc - 2 <= modes[i].most)
            return modes[i].run(argc - 2, argv + 2);
    fputs("usage: bulkhead-replay scenario FILE... | journal STORE | forecast --data PATH |\n"
          "                       kueue | philly --data DIR | synth | --help | --version\n",
          stderr);
    return EXIT_USAGE;
}
