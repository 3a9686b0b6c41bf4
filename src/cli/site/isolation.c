#include "cli/site/isolation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/output/output.h"

static uint64_t
isolation_number(bh_json_value object, const char *key)
{
    return bh_json_number(bh_json_get(object, key), 0);
}

static const char *
isolation_text(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

/* Of a check or a verdict: "pass", "inconclusive" or "fail". */
static bool
isolation_passes(bh_json_value object)
{
    return strcmp(isolation_text(object, "result"), "pass") == 0;
}

static bool
is_inconclusive(bh_json_value object)
{
    return strcmp(isolation_text(object, "result"), "inconclusive") == 0;
}

/* "POST /v1/jobs/3/verify", "POST /v1/verify?node=gpu1" */
static bh_rc
name_request(const struct bh_cli *cli, char *ret_what, size_t size, struct bh_err *err)
{
    const char *target = cli->args->arguments[0] ? cli->args->arguments[0] : "all";

    if (strspn(target, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") != strlen(target)
        || strlen(target) > 80)
        return bh_err_set(err, BH_INVALID, "verify: \"%.80s\" is neither a job nor a node", target);
    if (strspn(target, "0123456789") == strlen(target))
        snprintf(ret_what, size, "POST /v1/jobs/%s/verify", target);
    else if (strcmp(target, "all") == 0)
        snprintf(ret_what, size, "POST /v1/verify");
    else
        snprintf(ret_what, size, "POST /v1/verify?node=%s", target);
    return BH_OK;
}

static bool
print_verdict(bh_json_value verdict, bool each)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    uint64_t again_ns = isolation_number(verdict, "again_ns");
    bool passed = isolation_passes(verdict);
    bh_json_value checks = bh_json_get(verdict, "checks");
    struct bh_err unwritten;

    for (size_t i = 0; i < bh_json_count(checks); i++) {
        bh_json_value check = bh_json_at(checks, i);
        if (each || !isolation_passes(check))
            bh_buf_printf(&out, "%-12s %-20s %s\n", isolation_text(check, "result"),
                          isolation_text(check, "name"), isolation_text(check, "answer"));
    }
    if (isolation_number(verdict, "lease"))
        bh_buf_printf(&out, "lease %" PRIu64 " on ", isolation_number(verdict, "lease"));
    bh_buf_printf(&out, "%s: %s: %" PRIu64 " tried, %" PRIu64 " not possible here\n",
                  isolation_text(verdict, "node"),
                  passed                     ? "all isolation checks pass"
                  : is_inconclusive(verdict) ? "an isolation check is inconclusive"
                                             : "AN ISOLATION CHECK FAILS",
                  isolation_number(verdict, "tried"), isolation_number(verdict, "skipped"));
    if (again_ns > isolation_number(verdict, "at_ns"))
        bh_buf_printf(&out, "%s: repeats it in %" PRIu64 " s\n", isolation_text(verdict, "node"),
                      (again_ns - isolation_number(verdict, "at_ns") + 999999999) / 1000000000);
    (void)!bh_output_write(&out, &unwritten); /* the verdict is the exit status, seen or not */
    return passed;
}

bh_rc
bh_cli_verify(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bool passed = true, failed = false, printed;
    bh_json_value verdicts;
    char what[160];
    bh_rc rc = name_request(cli, what, sizeof what, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_cli_change(cli, what, NULL, &json, err);
    if (rc != BH_OK)
        return rc;
    printed = bh_cli_print_document(cli, bh_json_root(json), &rc, err);
    verdicts = bh_json_get(bh_json_root(json), "verdicts");
    for (size_t i = 0; i < bh_json_count(verdicts); i++) {
        bh_json_value verdict = bh_json_at(verdicts, i);
        bool its =
            printed ? isolation_passes(verdict) : print_verdict(verdict, bh_cli_output(cli) == BH_OUT_WIDE);

        passed = passed && its;
        failed = failed || (!its && !is_inconclusive(verdict));
    }
    if (bh_json_count(verdicts) < isolation_number(bh_json_root(json), "asked"))
        return bh_err_set(err, BH_UNAVAILABLE, "%zu of %" PRIu64 " answered", bh_json_count(verdicts),
                          isolation_number(bh_json_root(json), "asked"));
    if (bh_json_count(verdicts) == 0)
        return bh_err_set(err, BH_UNAVAILABLE, "no node is connected");
    if (passed)
        return rc;
    return bh_err_set(err, BH_UNAVAILABLE, "%s",
                      failed ? "an isolation check fails" : "an isolation check is inconclusive");
}
