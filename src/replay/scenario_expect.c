/* Statements on what must be true now. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/time.h"
#include "policy/explain.h"
#include "replay/scenario_run.h"

static const struct bh_choice states = { "state", bh_job_state_names, BH_JOB_STATES };
static const struct bh_choice reasons = { "reason", bh_reason_names, BH_REASONS };

/* ---- jobs ---- */

/* Why it is so: the end cause of an ended job, else what `bulkhead why` says. */
static const char *
expect_reason_of(const struct bh_scenario_run *run, const struct bh_job_view *view)
{
    struct bh_reason reason;

    if (view->state >= BH_JOB_COMPLETED)
        return bh_end_cause_names[view->cause];
    bh_engine_why(bh_world_engine(run->world), view->job, bh_world_now_ns(run->world), &reason);
    return bh_reason_names[reason.code];
}

static bh_rc
expect_check_job(struct bh_scenario_run *run, const char *name, const struct bh_words *words,
                 struct bh_err *err)
{
    struct bh_job_view view;
    const char *state, *reason;
    bh_rc rc = bh_scenario_run_job(run, name, &view, err);

    if (rc != BH_OK)
        return rc;
    state = bh_job_state_names[view.state];
    reason = expect_reason_of(run, &view);
    if (strcmp(state, words->at[2]) == 0 && (words->count < 4 || strcmp(reason, words->at[3]) == 0))
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT, "job %s is %s (%s), expected %s%s%s", name, state, reason,
                      words->at[2], words->count > 3 ? " " : "", words->count > 3 ? words->at[3] : "");
}

static bh_rc
play_expect(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    char name[BH_WORD_MAX];
    uint32_t cursor = 0, state;
    bh_rc rc = bh_word_choose(&states, words->at[2], &state, err);

    while (rc == BH_OK && bh_word_next_name(words->at[1], &cursor, name))
        rc = expect_check_job(run, name, words, err);
    return rc;
}

static bh_rc
play_expect_refused(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    uint32_t code;
    bh_rc rc = bh_word_choose(&reasons, words->at[1], &code, err);

    if (rc != BH_OK)
        return rc;
    snprintf(run->expected_refusal, sizeof run->expected_refusal, "%s", words->at[1]);
    return BH_OK;
}

/* What `bulkhead why` says, both sentences. */
static bh_rc
expect_explain(struct bh_scenario_run *run, const char *name, struct bh_buf *out, struct bh_err *err)
{
    struct bh_explain how = { .dir = bh_names_directory(run->names),
                              .all = true,
                              .now_ns = bh_world_now_ns(run->world) };
    struct bh_job_view view, holder;
    struct bh_reason reason;
    bh_rc rc = bh_scenario_run_job(run, name, &view, err);

    if (rc != BH_OK)
        return rc;
    bh_engine_why(bh_world_engine(run->world), view.job, how.now_ns, &reason);
    if (bh_view_job(bh_world_engine(run->world), reason.job, &holder))
        how.holder_tenant = holder.tenant;
    bh_explain_sentence(out, &how, &reason);
    bh_buf_puts(out, "; ");
    bh_explain_next(out, &how, &reason);
    return BH_OK;
}

/* why c contains "text", why c lacks "text" */
static bh_rc
expect_play_why(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    bool wanted = strcmp(words->at[2], "contains") == 0;
    char text[1024];
    struct bh_buf buf;
    bh_rc rc;

    bh_buf_init_fixed(&buf, text, sizeof text);
    if (!wanted && strcmp(words->at[2], "lacks") != 0)
        return bh_err_set(err, BH_INVALID, "expected: why JOB contains TEXT, or lacks");
    rc = expect_explain(run, words->at[1], &buf, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_buf_text(&buf))
        return bh_err_set(err, BH_FULL, "the explanation is too long");
    for (uint32_t at = 3; at < words->count; at++)
        if ((strstr(text, words->at[at]) != NULL) != wanted)
            return bh_err_set(err, BH_CONFLICT, "why %s says \"%s\", %s \"%s\"", words->at[1], text,
                              wanted ? "without" : "with", words->at[at]);
    return BH_OK;
}

/* expect-restarts a 1; expect-suspensions a 2 */
static bh_rc
play_expect_count(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    bool restarts = strcmp(words->at[0], "expect-restarts") == 0;
    struct bh_job_view view;
    uint32_t wanted, count;
    bh_rc rc = bh_scenario_run_job(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_u32(words->at[2], 0, UINT32_MAX, &wanted, err);
    if (rc != BH_OK)
        return rc;
    count = restarts ? view.restarts : view.suspensions;
    if (count == wanted)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT, "job %s has %u, expected %u", words->at[1], count, wanted);
}

static bh_rc
play_expect_grade(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_job_view view;
    bh_rc rc = bh_scenario_run_job(run, words->at[1], &view, err);

    if (rc != BH_OK || strcmp(bh_grade_names[view.grade], words->at[2]) == 0)
        return rc;
    return bh_err_set(err, BH_CONFLICT, "job %s has grade %s, expected %s", words->at[1],
                      bh_grade_names[view.grade], words->at[2]);
}

static bh_rc
play_expect_status(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_job_view view;
    uint32_t wanted;
    bh_rc rc = bh_scenario_run_job(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_u32(words->at[2], 0, 255, &wanted, err);
    if (rc != BH_OK || view.exit_status == (int32_t)wanted)
        return rc;
    return bh_err_set(err, BH_CONFLICT, "job %s ended with %d, expected %u", words->at[1], view.exit_status,
                      wanted);
}

/* expect-reserved big 2h; expect-reserved big none */
static bh_rc
play_expect_reserved(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    uint64_t now_ns = bh_world_now_ns(run->world), span_ns = 0;
    bool none = strcmp(words->at[2], "none") == 0;
    struct bh_job_view view;
    bh_rc rc = bh_scenario_run_job(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    if (!none)
        rc = bh_parse_span(words->at[2], &span_ns, err);
    if (rc != BH_OK || (none ? view.reserved_ns == 0 : view.reserved_ns == now_ns + span_ns))
        return rc;
    if (view.reserved_ns == 0)
        return bh_err_set(err, BH_CONFLICT, "nothing is reserved for job %s", words->at[1]);
    return bh_err_set(err, BH_CONFLICT, "room is reserved for job %s in %" PRIu64 " ms", words->at[1],
                      (view.reserved_ns - now_ns) / BH_NS_PER_MS);
}

/* ---- gangs ---- */

/* expect-nodes a 2: its members are on so many nodes */
static bh_rc
play_expect_nodes(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    bh_node_id nodes[BH_JOB_GANG_MAX];
    struct bh_member_view member;
    struct bh_job_view view;
    uint32_t wanted, count = 0;
    bh_rc rc = bh_scenario_run_job(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_u32(words->at[2], 0, BH_JOB_GANG_MAX, &wanted, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; bh_view_member(bh_world_engine(run->world), view.job, i, &member); i++) {
        uint32_t k = 0;

        while (k < count && !bh_same(nodes[k], member.node))
            k++;
        if (k == count)
            nodes[count++] = member.node;
    }
    if (count == wanted)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT, "job %s is on %u nodes, expected %u", words->at[1], count, wanted);
}

/* expect-member a 2 running [gpu1]: a member's state and node; "done" when it has ended */
static bh_rc
play_expect_member(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_member_view member;
    struct bh_job_view view;
    const char *state, *node;
    uint32_t number;
    bh_rc rc = bh_scenario_run_job(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_u32(words->at[2], 0, BH_JOB_GANG_MAX - 1, &number, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_view_member(bh_world_engine(run->world), view.job, number, &member))
        return bh_err_set(err, BH_CONFLICT, "job %s is %s and has no member %u", words->at[1],
                          bh_job_state_names[view.state], number);
    state = member.done ? "done" : bh_job_state_names[member.state];
    node = bh_names_text(run->names, BH_NAMED_NODE, member.node.v);
    if (strcmp(state, words->at[3]) == 0 && (words->count < 5 || strcmp(node, words->at[4]) == 0))
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT, "member %u of job %s is %s on %s", number, words->at[1], state, node);
}

/* ---- places ---- */

static bh_rc
expect_partitions_of(struct bh_scenario_run *run, const char *name, struct bh_job_view *ret_view,
                     struct bh_err *err)
{
    bh_rc rc = bh_scenario_run_job(run, name, ret_view, err);

    if (rc != BH_OK)
        return rc;
    if (ret_view->partition_count == 0)
        return bh_err_set(err, BH_CONFLICT, "job %s is %s and has no partition", name,
                          bh_job_state_names[ret_view->state]);
    return BH_OK;
}

static bool
expect_share_gpu(const struct bh_job_view *a, const struct bh_job_view *b)
{
    for (uint32_t i = 0; i < a->partition_count; i++)
        for (uint32_t k = 0; k < b->partition_count; k++)
            if (bh_same(a->partitions[i].gpu, b->partitions[k].gpu))
                return true;
    return false;
}

static bh_rc
expect_check_pair(struct bh_scenario_run *run, const char *statement, const char *const pair[2],
                  struct bh_err *err)
{
    bool wanted = !strstr(statement, "-not-"), by_gpu = strstr(statement, "gpu"), together;
    struct bh_job_view a, b;
    bh_rc rc = expect_partitions_of(run, pair[0], &a, err);

    if (rc != BH_OK)
        return rc;
    rc = expect_partitions_of(run, pair[1], &b, err);
    if (rc != BH_OK)
        return rc;
    together = by_gpu ? expect_share_gpu(&a, &b) : bh_same(a.node, b.node);
    if (together == wanted)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT, "jobs %s and %s %s", pair[0], pair[1],
                      wanted ? "are apart" : "are together");
}

/* expect-same-gpu, expect-not-same-gpu, expect-same-node, expect-not-same-node: every two of the jobs */
static bh_rc
play_expect_same(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 1; i < words->count; i++)
        for (uint32_t k = i + 1; k < words->count && rc == BH_OK; k++)
            rc = expect_check_pair(run, words->at[0], (const char *const[]){ words->at[i], words->at[k] },
                                   err);
    return rc;
}

/* ---- GPUs ---- */

enum { GPU_PARTITIONS_MAX = 32 };

/* "1g.10gb@4=a", "whole@0=a", "1g.10gb@0=idle" */
static void
expect_describe(const struct bh_scenario_run *run, const struct bh_partition_view *view, struct bh_buf *out)
{
    struct bh_gpu_view gpu = { 0 };
    char name[BH_PARTITION_NAME_MAX];

    (void)bh_view_gpu(bh_world_engine(run->world), view->partition.gpu, &gpu);
    bh_partition_name((enum bh_gpu_model)gpu.model, view->partition.profile, name);
    bh_buf_printf(out, "%s@%u=%s", name, view->partition.start,
                  view->job.v ? bh_names_text(run->names, BH_NAMED_JOB, (uint32_t)view->job.v)
                              : bh_partition_state_names[view->state]);
}

/* Whether what is expected ("1g.10gb=a", with or without a start) is this partition. */
static bool
expect_is_described(const char *wanted, const char *partition)
{
    const char *at = strchr(partition, '@'), *holder = strchr(partition, '=');
    size_t profile = (size_t)(at - partition);

    if (strcmp(wanted, partition) == 0)
        return true;
    return strncmp(wanted, partition, profile) == 0 && strcmp(wanted + profile, holder) == 0;
}

static uint32_t
expect_describe_gpu(const struct bh_scenario_run *run, bh_gpu_id gpu,
                    char ret_partitions[GPU_PARTITIONS_MAX][BH_WORD_MAX])
{
    struct bh_partition_view view;
    uint32_t cursor = 0, count = 0;

    while (count < GPU_PARTITIONS_MAX
           && bh_view_next_partition(bh_world_engine(run->world), &cursor, &view)) {
        struct bh_buf buf;

        if (!bh_same(view.partition.gpu, gpu))
            continue;
        bh_buf_init_fixed(&buf, ret_partitions[count], BH_WORD_MAX);
        expect_describe(run, &view, &buf);
        if (bh_buf_text(&buf))
            count++;
    }
    return count;
}

/* Take the partition that the word describes out of the list. */
static bool
expect_strike(char partitions[GPU_PARTITIONS_MAX][BH_WORD_MAX], uint32_t *count, const char *wanted)
{
    for (uint32_t i = 0; i < *count; i++)
        if (expect_is_described(wanted, partitions[i])) {
            memmove(partitions[i], partitions[i + 1], (--*count - i) * sizeof partitions[0]);
            return true;
        }
    return false;
}

static bh_rc
expect_mismatch(const struct bh_scenario_run *run, const char *name, bh_gpu_id gpu, struct bh_err *err)
{
    char partitions[GPU_PARTITIONS_MAX + 1][BH_WORD_MAX], list[200];
    uint32_t count = expect_describe_gpu(run, gpu, partitions);
    struct bh_buf buf;

    bh_buf_init_fixed(&buf, list, sizeof list);
    for (uint32_t i = 0; i < count; i++)
        bh_buf_printf(&buf, " %s", partitions[i]);
    return bh_err_set(err, BH_CONFLICT, "GPU %s has:%s", name,
                      !bh_buf_text(&buf) ? " many partitions"
                      : count            ? list
                                         : " nothing");
}

/* expect-gpu gpu1/0 3g.40gb@0=a 1g.10gb=idle; expect-gpu gpu1/0 empty */
static bh_rc
play_expect_gpu(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    char partitions[GPU_PARTITIONS_MAX + 1][BH_WORD_MAX];
    struct bh_gpu_view view;
    uint32_t count;
    bh_rc rc = bh_scenario_run_gpu(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    count = expect_describe_gpu(run, view.gpu, partitions);
    for (uint32_t at = 2; at < words->count; at++)
        if (strcmp(words->at[at], "empty") != 0 && !expect_strike(partitions, &count, words->at[at]))
            return expect_mismatch(run, words->at[1], view.gpu, err);
    return count == 0 ? BH_OK : expect_mismatch(run, words->at[1], view.gpu, err);
}

/* ---- tenants ---- */

static bh_rc
play_expect_usage(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_tenant_view view;
    uint64_t parts;
    bh_rc rc = bh_scenario_run_tenant(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_parts(words->at[2], BH_GPU_PARTS, &parts, err);
    if (rc != BH_OK || view.used == parts)
        return rc;
    return bh_err_set(err, BH_CONFLICT,
                      "tenant %s uses %" PRIu64 " parts, expected %" PRIu64 " (a GPU is %d parts)",
                      words->at[1], view.used, parts, BH_GPU_PARTS);
}

/* expect-metered acme/vision 1/7 10m: its own jobs used that much compute for that long */
static bh_rc
play_expect_metered(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_tenant_view view;
    uint64_t parts, span_ns;
    char metered[40];
    bh_rc rc = bh_scenario_run_tenant(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_parts(words->at[2], BH_GPU_PARTS, &parts, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_parse_span(words->at[3], &span_ns, err);
    if (rc != BH_OK || view.compute_ns == (bh_part_ns)parts * span_ns)
        return rc;
    bh_part_ns_format(view.compute_ns / 1000000000 / (parts ? parts : 1), metered);
    return bh_err_set(err, BH_CONFLICT, "tenant %s was metered %s s of that, expected %s", words->at[1],
                      metered, words->at[3]);
}

const struct bh_statement bh_expect_statements[] = {
    { "expect", 2, 3, "JOB STATE [REASON]", play_expect },
    { "expect-refused", 1, 1, "REASON (of the next statement)", play_expect_refused },
    { "why", 3, 8, "JOB contains|lacks TEXT...", expect_play_why },
    { "expect-restarts", 2, 2, "JOB N", play_expect_count },
    { "expect-suspensions", 2, 2, "JOB N", play_expect_count },
    { "expect-grade", 2, 2, "JOB A..G", play_expect_grade },
    { "expect-status", 2, 2, "JOB STATUS", play_expect_status },
    { "expect-reserved", 2, 2, "JOB SPAN|none", play_expect_reserved },
    { "expect-nodes", 2, 2, "JOB N", play_expect_nodes },
    { "expect-member", 3, 4, "JOB MEMBER STATE|done [NODE]", play_expect_member },
    { "expect-same-gpu", 2, 16, "JOB JOB...", play_expect_same },
    { "expect-not-same-gpu", 2, 16, "JOB JOB...", play_expect_same },
    { "expect-same-node", 2, 16, "JOB JOB...", play_expect_same },
    { "expect-not-same-node", 2, 16, "JOB JOB...", play_expect_same },
    { "expect-gpu", 2, 34, "GPU PROFILE[@START]=JOB|idle|carving|clearing... | empty", play_expect_gpu },
    { "expect-usage", 2, 2, "TENANT GPUS", play_expect_usage },
    { "expect-metered", 3, 3, "TENANT GPUS SPAN", play_expect_metered },
    { NULL, 0, 0, NULL, NULL },
};
