/* bulkhead-lab: the engine and its policies on traces, generated loads and tests of others. */
#include <string.h>

#include "base/modes.h"
#include "lab/forecast/forecast.h"
#include "lab/load/modes.h"
#include "lab/mig/mig.h"
#include "lab/openb/openb.h"

static const char program[] = "bulkhead-lab";

static int
run_forecast(int count, char **words)
{
    struct bh_forecast_options options;
    struct bh_err err = { 0 };

    if (bh_forecast_options_parse(count, words, &options, &err) != BH_OK)
        return bh_mode_refuse(program, &err);
    return bh_mode_report(program, bh_forecast_run(&options, stdout, &err), &err);
}

static int
run_mig(int count, char **words)
{
    struct bh_mig_options options;
    struct bh_err err = { 0 };

    if (bh_mig_options_parse(count, words, &options, &err) != BH_OK)
        return bh_mode_refuse(program, &err);
    return bh_mode_report(program, bh_mig_test(&options, stdout, &err), &err);
}

static int run_help(int count, char **words);

static int
run_version(int count, char **words)
{
    return puts("bulkhead-lab " BULKHEAD_VERSION) < 0 ? BH_MODE_FAILED : BH_MODE_OK;
}

/* The words after a mode are its own; docs/lab.md explains each. */
static const struct bh_mode modes[] = {
    { "forecast", "--data PATH [OPTION...]", 1, run_forecast,
      "Try the engine's forecasts on recorded demand: how far the last value was\n"
      "off, and how often what came stayed below each bound.\n" },
    { "openb", "--data DIR [OPTION...]", 0, bh_openb_main,
      "Fill the cluster of the openb trace by a packing policy and say how many of\n"
      "its GPUs are allocated; `openb --help` lists the options.\n" },
    { "mig", "[OPTION...]", 0, run_mig,
      "Try placement policies on a stream of MIG jobs that are placed or refused at\n"
      "once: --mix M|all, --load L|all, --policy P|all, --seeds A-B, --gpus N,\n"
      "--arrivals N, --json, --svg FILE.  Mixes: uniform, skew-small, skew-big,\n"
      "bimodal.  Policies: rr, worst-fit, first-fit, best-fit, best-index, mcc, frag,\n"
      "slice-fit, bulkhead.\n" },
    { "kueue", "[OPTION...]", 0, bh_mode_kueue,
      "Kueue's baseline load: 15,000 workloads of 30 queues in 5 cohorts on 600 GPUs.\n"
      "--json  --svg FILE  --check N  --contract requeue|suspend|never\n"
      "--min-runtime SPAN (no job makes way before)\n"
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

static int
run_help(int count, char **words)
{
    bh_modes_print(program, modes, sizeof modes / sizeof modes[0], stdout);
    fputs("\nOptions of forecast, with their defaults:\n", stdout);
    bh_forecast_print_options(stdout);
    return ferror(stdout) ? BH_MODE_FAILED : BH_MODE_OK;
}

int
main(int argc, char **argv)
{
    return bh_modes_run(program, modes, sizeof modes / sizeof modes[0], argc, argv);
}
