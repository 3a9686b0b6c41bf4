#include "cli/site/receipts.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cli/output/output.h"
#include "cli/output/views.h"

enum { PATH_SIZE = 128 };

/* A job's number, or a GPU's UUID, which has no other letters than these. */
static bh_rc
receipts_put_path(const char *what, char path[PATH_SIZE], struct bh_err *err)
{
    struct bh_err ignored;
    uint64_t job;

    if (bh_parse_u64(what, &job, &ignored) == BH_OK)
        snprintf(path, PATH_SIZE, "/v1/receipts?job=%s", what);
    else if (strncmp(what, "GPU-", 4) == 0 && strlen(what) < 60
             && strspn(what + 4, "0123456789abcdef-") == strlen(what + 4))
        snprintf(path, PATH_SIZE, "/v1/receipts?gpu=%s", what);
    else
        return bh_err_set(err, BH_INVALID, "receipts: \"%.60s\" is neither a job id nor the UUID of a GPU",
                          what);
    return BH_OK;
}

bh_rc
bh_cli_receipts(struct bh_cli *cli, struct bh_err *err)
{
    char path[PATH_SIZE] = "/v1/receipts";
    bh_rc rc = cli->args->count > 0 ? receipts_put_path(cli->args->arguments[0], path, err) : BH_OK;

    return rc == BH_OK ? bh_cli_list(cli, path, true, &bh_view_receipts, err) : rc;
}
