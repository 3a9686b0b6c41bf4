#include "lab/load/modes.h"

#include <stdio.h>
#include <unistd.h>

#include "lab/load/modes_internal.h"
#include "lab/load/philly.h"

/* DIR holds the file, or a folder philly that does. */
static void
find_file(const char *folder, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/philly_vc_jobs.csv", folder);
    if (access(ret_path, R_OK) != 0)
        snprintf(ret_path, size, "%s/philly/philly_vc_jobs.csv", folder);
}

static bh_rc
philly_parse(int count, char **words, struct bh_compare *ret_compare, const char **ret_folder,
             struct bh_err *err)
{
    struct bh_flag flags[BH_COMPARE_FLAGS + 1];
    bh_rc rc;

    *ret_compare = bh_compare_default("philly");
    bh_compare_flags(ret_compare, flags);
    flags[BH_COMPARE_FLAGS] = (struct bh_flag){ "--data", BH_FLAG_TEXT, ret_folder };
    rc = bh_flags_parse(flags, BH_COMPARE_FLAGS + 1, count, words, err);
    if (rc != BH_OK)
        return rc;
    if (!*ret_folder)
        return bh_err_set(err, BH_INVALID, "--data DIR says where the jobs are");
    return bh_compare_check(ret_compare, err);
}

int
bh_mode_philly(int count, char **words)
{
    struct bh_compare compare;
    struct bh_load load = { 0 };
    struct bh_err err = { 0 };
    const char *folder = NULL;
    char path[4096];
    bh_rc rc;

    if (philly_parse(count, words, &compare, &folder, &err) != BH_OK)
        return bh_mode_refuse("bulkhead-lab", &err);
    find_file(folder, path, sizeof path);
    rc = bh_philly_read(path, &load, &err);
    if (rc == BH_OK)
        rc = bh_compare_run(&compare, &load, &err);
    bh_load_fini(&load);
    return bh_mode_report("bulkhead-lab", rc, &err);
}
