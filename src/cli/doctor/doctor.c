#include "cli/doctor/doctor.h"

#include "cli/output/output.h"
#include "cli/output/views.h"

static const char *const verdict_names[] = { "ok", "warn", "fail" };

enum { REPORT_MAX = 64 << 10 };

static void
put_findings(const struct bh_cli *cli, struct bh_json_writer *w, enum bh_verdict_kind *ret_worst)
{
    *ret_worst = BH_CHECK_OK;
    bh_json_open(w, NULL, '{');
    bh_json_open(w, "items", '[');
    for (size_t i = 0; i < bh_doctor_check_count; i++) {
        struct bh_finding finding = { .verdict = BH_CHECK_OK };

        bh_doctor_checks[i].progress(cli, &finding);
        if (finding.verdict > *ret_worst)
            *ret_worst = finding.verdict;
        bh_json_open(w, NULL, '{');
        bh_json_str(w, "check", bh_doctor_checks[i].name);
        bh_json_str(w, "result", verdict_names[finding.verdict]);
        bh_json_str(w, "found", finding.found);
        bh_json_str(w, "fix", finding.fix);
        bh_json_close(w, '}');
    }
    bh_json_close(w, ']');
    bh_json_str(w, "result", verdict_names[*ret_worst]);
    bh_json_close(w, '}');
}

static bh_rc
print_table(const struct bh_cli *cli, bh_json_value root, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    struct bh_view_style style = { .headers = !bh_cli_flag(cli, BH_OPT_NO_HEADERS) };

    bh_view_table(&out, &bh_view_checks, &style, bh_json_get(root, "items"));
    return bh_output_write(&out, err);
}

bh_rc
bh_cli_doctor(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf report = { .max = REPORT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_json_writer w;
    enum bh_verdict_kind worst;
    bh_rc rc;

    w = bh_json_begin(&report);
    put_findings(cli, &w, &worst);
    rc = report.overflow ? bh_err_set(err, BH_FULL, "the report is too large")
                         : bh_json_parse(report.bytes, report.length, &json, err);
    cli->status = worst == BH_CHECK_FAIL;
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    return print_table(cli, bh_json_root(json), err);
}
