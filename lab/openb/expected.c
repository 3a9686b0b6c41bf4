#include "lab/openb/expected.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "lab/openb/text.h"

enum { WORKLOAD, POLICY, TUNE, SEED, TOTAL, POINT, COLUMNS = POINT + BH_OPENB_POINTS };

static const char *const policies[BH_PACK_POLICIES] = {
    [BH_PACK_BESTFIT] = "05-BestFit",
    [BH_PACK_FGD] = "06-FGD",
};

bool
bh_openb_expected_has(enum bh_pack_policy policy)
{
    return policies[policy] != NULL;
}

static bh_rc
read_points(char **fields, double *ret_point, struct bh_err *err)
{
    for (int i = 0; i < BH_OPENB_POINTS; i++) {
        char *end;

        ret_point[i] = strtod(fields[POINT + i], &end);
        if (end == fields[POINT + i] || *end)
            return bh_err_set(err, BH_INVALID, "point %d is no number", i);
    }
    return BH_OK;
}

static bh_rc
find_run(struct bh_openb_text *text, const char *prefix, double *ret_point, struct bh_err *err)
{
    char *line, *fields[COLUMNS];

    while ((line = bh_openb_text_next(text))) {
        uint32_t count;

        if (strncmp(line, prefix, strlen(prefix)) != 0)
            continue;
        count = bh_openb_split(line, ',', fields, COLUMNS);
        if (count != COLUMNS)
            return bh_err_set(err, BH_INVALID, "%u fields, not %d", count, COLUMNS);
        return read_points(fields, ret_point, err);
    }
    return bh_err_set(err, BH_NOT_FOUND, "no run \"%s\"", prefix);
}

bh_rc
bh_openb_expected_read(const char *data, const struct bh_openb_name *name, double ret_point[BH_OPENB_POINTS],
                       struct bh_err *err)
{
    BH_AUTO(bh_openb_text_close)
    struct bh_openb_text text = { 0 };
    char path[1200], prefix[160];
    bh_rc rc;

    snprintf(path, sizeof path, "%s/expected/analysis_allo_discrete.csv", data);
    snprintf(prefix, sizeof prefix, "openb_pod_list_%s,%s,1.3,%" PRIu64 ",", name->variant,
             policies[name->policy], name->seed);
    rc = bh_openb_text_open(path, &text, err);
    if (rc != BH_OK)
        return rc;
    if (find_run(&text, prefix, ret_point, err) != BH_OK)
        return bh_openb_text_wrap(&text, err);
    return BH_OK;
}
