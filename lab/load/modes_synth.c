#include "lab/load/modes.h"

#include "lab/load/modes_internal.h"
#include "lab/load/synth.h"

static bh_rc
synth_parse(int count, char **words, struct bh_compare *ret_compare, struct bh_synth *ret_synth,
            struct bh_err *err)
{
    struct bh_flag flags[BH_COMPARE_FLAGS + 5];
    const struct bh_flag own[] = {
        { "--nodes", BH_FLAG_NUMBER, &ret_synth->nodes, 1, 2000 },
        { "--jobs", BH_FLAG_NUMBER, &ret_synth->jobs, 2, 10000000 },
        { "--tenants", BH_FLAG_NUMBER, &ret_synth->tenants, 1, 1000 },
        { "--seed", BH_FLAG_SEED, &ret_synth->seed },
        { "--mig", BH_FLAG_ON, &ret_synth->mig },
    };
    bh_rc rc;

    *ret_compare = bh_compare_default("synth");
    ret_compare->loads = (struct bh_flag_list){ { 1000 }, 1 };
    *ret_synth = (struct bh_synth){ .nodes = 16, .jobs = 4000, .tenants = 8, .seed = 1 };
    bh_compare_flags(ret_compare, flags);
    for (int i = 0; i < 5; i++)
        flags[BH_COMPARE_FLAGS + i] = own[i];
    rc = bh_flags_parse(flags, BH_COMPARE_FLAGS + 5, count, words, err);
    return rc == BH_OK ? bh_compare_check(ret_compare, err) : rc;
}

int
bh_mode_synth(int count, char **words)
{
    struct bh_compare compare;
    struct bh_synth synth;
    struct bh_load load = { 0 };
    struct bh_err err = { 0 };
    bh_rc rc;

    if (synth_parse(count, words, &compare, &synth, &err) != BH_OK)
        return bh_mode_refuse("bulkhead-lab", &err);
    bh_synth_make(&synth, &load);
    rc = bh_compare_run(&compare, &load, &err);
    bh_load_fini(&load);
    return bh_mode_report("bulkhead-lab", rc, &err);
}
