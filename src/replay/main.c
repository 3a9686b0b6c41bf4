/* bulkhead-replay: what can be tried of the engine without a daemon or a GPU. */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "replay/forecast.h"
#include "replay/journal.h"
#include "replay/mig.h"
#include "replay/modes.h"
#include "replay/openb.h"
#include "replay/scenario.h"

enum { EXIT_OK, EXIT_FAILED, EXIT_USAGE };

/* A run that can fail: its message goes to stderr. */
static int
report(bh_rc rc, const struct bh_err *err)
{
    if (rc == BH_OK)
        return ferror(stdout) ? EXIT_FAILED : EXIT_OK;
    fflush(stdout);
    fprintf(stderr, "bulkhead-replay: %s\n", err->msg);
    return EXIT_FAILED;
}

static int
refuse(const struct bh_err *err)
{
    report(BH_INVALID, err);
    return EXIT_USAGE;
}

static int
run_scenario(int count, char **paths)
{
    struct bh_tap tap = { .out = stdout };

    for (int i = 0; i < count; i++)
        bh_scenario_play_file(&tap, paths[i]);
    printf("1..%u\n", tap.count);
    return tap.failed || ferror(stdout) ? EXIT_FAILED : EXIT_OK;
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
        return refuse(&err);
    }
    return report(bh_journal_replay(words[0], &options, stdout, &err), &err);
}

static int
run_forecast(int count, char **words)
{
    struct bh_forecast_options options;
    struct bh_err err = { 0 };

    if (bh_forecast_options_parse(count, (const char *const *)words, &options, &err) != BH_OK)
        return refuse(&err);
    return report(bh_forecast_run(&options, stdout, &err), &err);
}

static int
run_mig(int count, char **words)
{
    struct bh_mig_options options;
    struct bh_err err = { 0 };

    if (bh_mig_options_parse(count, (const char **)words, &options, &err) != BH_OK)
        return refuse(&err);
    return report(bh_mig_test(&options, stdout, &err), &err);
}

/* The mode reads its own options, from its word on. */
static int
run_openb(int count, char **words)
{
    return bh_openb_main(count + 1, words - 1);
}

static int run_help(int count, char **words);

static int
run_version(int count, char **words)
{
    (void)count, (void)words;
    return puts("bulkhead-replay " BULKHEAD_VERSION) < 0 ? EXIT_FAILED : EXIT_OK;
}

/* What it can do.  The words after a mode are its own; docs/replay.md tells of each. */
static const struct mode {
    const char *word, *arguments;
    int least;
    int (*run)(int count, char **words);
    const char *help;
} modes[] = {
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
    { "forecast", "--data PATH [OPTION...]", 1, run_forecast,
      "Try the engine's forecasts on recorded demand: how far the last value was\n"
      "off, and how often what came stayed below each bound.\n" },
    { "openb", "--data DIR [OPTION...]", 0, run_openb,
      "Fill the cluster of the openb trace by a packing policy and say how many of\n"
      "its GPUs are allocated; `openb --help` tells the options.\n" },
    { "mig", "[OPTION...]", 0, run_mig,
      "Try placement policies on a stream of MIG jobs that are placed or refused at\n"
      "once: --mix M|all, --load L|all, --policy P|all, --seeds A-B, --gpus N,\n"
      "--arrivals N, --json, --svg FILE.  Mixes: uniform, skew-small, skew-big,\n"
      "bimodal.  Policies: rr, worst-fit, first-fit, best-fit, best-index, mcc, frag,\n"
      "slice-fit, bulkhead.\n" },
    { "kueue", "[OPTION...]", 0, bh_mode_kueue,
      "Kueue's baseline load: 15,000 workloads of 30 queues in 5 cohorts on 600 GPUs.\n"
      "--json  --svg FILE  --check N  --contract requeue|suspend|never\n"
      "--min-runtime SPAN (nobody makes way before)\n"
      "--together (workloads of 5 units on one node, harder than Kueue's)\n" },
    { "philly", "--data DIR [OPTION...]", 0, bh_mode_philly,
      "Microsoft's Philly jobs of 15 virtual clusters on 64 nodes of 8 GPUs, at\n"
      "several loads and in several orders.\n"
      "--data DIR (with philly_vc_jobs.csv, or philly/ with it)\n"
      "--load 0.8,1.0,1.2  --order fair_tree,fifo,drf  --guarantee 0..1000\n"
      "(thousandths)  --limits  -v  --json  --svg FILE (of one load and order)\n"
      "--lending all|forecast  --preshape  --slot-min 1..1440  --carve-s 0..3600\n"
      "--check N (all invariants of the engine after every N steps)\n" },
    { "synth", "[OPTION...]", 0, bh_mode_synth,
      "The same with jobs made by a generator: --nodes N  --jobs N  --tenants N\n"
      "--seed S  --mig (one MIG instance each), and philly's but --data.\n" },
    { "--help", NULL, 0, run_help, NULL },
    { "-h", NULL, 0, run_help, NULL },
    { "--version", NULL, 0, run_version, NULL },
};

static void
print_usage(FILE *out)
{
    const char *lead = "usage:";

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (!modes[i].arguments)
            continue;
        fprintf(out, "%-6s bulkhead-replay %s %s\n", lead, modes[i].word, modes[i].arguments);
        lead = "";
    }
    fputs("       bulkhead-replay --help | --version\n", out);
}

/* Under the mode's word, each line moved in. */
static void
print_mode(const struct mode *mode)
{
    const char *line = mode->help;

    printf("\n%s\n", mode->word);
    while (*line) {
        int length = (int)strcspn(line, "\n");

        printf("    %.*s\n", length, line);
        line += length + 1;
    }
}

static int
run_help(int count, char **words)
{
    (void)count, (void)words;
    print_usage(stdout);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (modes[i].help)
            print_mode(&modes[i]);
    fputs("\nOptions of forecast, with their defaults:\n", stdout);
    bh_forecast_print_options(stdout);
    fputs("\nStatements of a scenario (docs/scenarios.md):\n", stdout);
    bh_scenario_print_statements(stdout);
    return ferror(stdout) ? EXIT_FAILED : EXIT_OK;
}

int
main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].word, argv[1]) == 0 && argc - 2 >= modes[i].least)
            return modes[i].run(argc - 2, argv + 2);
    print_usage(stderr);
    return EXIT_USAGE;
}
