#include "cli/site/receipts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cli/command/pick.h"
#include "cli/output/output.h"
#include "cli/output/views.h"

enum { PATH_SIZE = 128, UUID_LENGTH = 40 };

/* A job's number, or a GPU as `bulkhead ps` and `bulkhead gpu` show it; a whole UUID may be that of a GPU
 * that is gone. */
static bh_rc
receipts_put_path(const struct bh_cli *cli, char path[PATH_SIZE], struct bh_err *err)
{
    char gpu[BH_PICK_NAME_MAX];
    struct bh_err ignored;
    uint64_t job;
    bh_rc rc;

    if (bh_parse_u64(cli->args->arguments[0], &job, &ignored) == BH_OK) {
        snprintf(path, PATH_SIZE, "/v1/receipts?job=%" PRIu64, job);
        return BH_OK;
    }
    rc = bh_pick_target(cli, gpu, err);
    if (rc != BH_OK)
        return rc;
    if (strlen(gpu) != UUID_LENGTH || strncmp(gpu, "GPU-", 4) != 0
        || strspn(gpu + 4, "0123456789abcdef-") != UUID_LENGTH - 4)
        return bh_err_set(err, BH_INVALID, "receipts: \"%.60s\" is neither a job id nor a GPU",
                          cli->args->arguments[0]);
    snprintf(path, PATH_SIZE, "/v1/receipts?gpu=%s", gpu);
    return BH_OK;
}

bh_rc
bh_cli_receipts(struct bh_cli *cli, struct bh_err *err)
{
    char path[PATH_SIZE] = "/v1/receipts";
    bh_rc rc = cli->args->count > 0 ? receipts_put_path(cli, path, err) : BH_OK;

    return rc == BH_OK ? bh_cli_list(cli, path, true, &bh_view_receipts, err) : rc;
}
