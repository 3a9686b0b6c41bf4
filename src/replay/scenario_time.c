/* Statements on what happens: time, delays, failures, crashes. */
#include <string.h>

#include "api/whatif/proposal.h"
#include "base/num.h"
#include "base/time.h"
#include "replay/scenario_option.h"

static const char *const effects[BH_FX_JOB] = {
    [BH_FX_CARVE] = "carve",     [BH_FX_DESTROY] = "destroy", [BH_FX_START] = "start",
    [BH_FX_SUSPEND] = "suspend", [BH_FX_RESUME] = "resume",   [BH_FX_STOP] = "stop",
    [BH_FX_RESET] = "reset",     [BH_FX_TEST] = "test",
};
static const struct bh_choice effect_choice = { "effect", effects, BH_FX_JOB };

static bh_rc
play_advance(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_ev_settings settings;
    uint64_t span_ns = 0, step_ns;
    bh_rc rc = bh_parse_span(words->at[1], &span_ns, err);

    bh_view_settings(bh_world_engine(run->world), &settings);
    if (rc != BH_OK || settings.defrag.mode != BH_DEFRAG_ON)
        return rc == BH_OK ? bh_world_advance(run->world, span_ns, err) : rc;
    for (; rc == BH_OK && span_ns > 0; span_ns -= step_ns) {
        step_ns = span_ns < BH_PROPOSAL_EVERY_NS ? span_ns : BH_PROPOSAL_EVERY_NS;
        rc = bh_world_advance(run->world, step_ns, err);
        if (rc == BH_OK)
            rc = bh_scenario_run_defragment(run, err);
    }
    return rc;
}

static bh_rc
play_delay(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    uint32_t kind;
    uint64_t span_ns;
    bh_rc rc = bh_word_choose(&effect_choice, words->at[1], &kind, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_span(words->at[2], &span_ns, err);
    if (rc != BH_OK)
        return rc;
    if (span_ns > BH_NODE_MODEL_DELAY_MAX_NS)
        return bh_err_set(err, BH_RANGE, "a delay is at most 4h");
    bh_node_model_delay(bh_world_node_model(run->world), (enum bh_effect_kind)kind, span_ns);
    return BH_OK;
}

static bh_rc
read_gpu(struct bh_scenario_run *run, const struct bh_scenario_option *option, const char *const *values,
         void *into, struct bh_err *err)
{
    return bh_names_find(run->names, BH_NAMED_GPU, values[0], &((struct bh_node_model_fault *)into)->gpu.v,
                         err);
}

/* fail next carve; fail next carve times 3 on gpu1/0 */
static bh_rc
play_fail(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_option rows[] = {
        { "times", 1, bh_scenario_read_number, offsetof(struct bh_node_model_fault, times), .least = 1,
          .most = 1000000 },
        { "on", 1, read_gpu },
    };
    static const struct bh_scenario_options options = { 3, rows, BH_COUNT(rows) };
    struct bh_node_model_fault fault = { .times = 1 };
    uint32_t kind;
    bh_rc rc;

    if (strcmp(words->at[1], "next") != 0)
        return bh_err_set(err, BH_INVALID, "expected: fail next EFFECT");
    rc = bh_word_choose(&effect_choice, words->at[2], &kind, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_scenario_options_read(run, words, &options, &fault, err);
    if (rc != BH_OK)
        return rc;
    fault.kind = (enum bh_effect_kind)kind;
    return bh_node_model_fail(bh_world_node_model(run->world), &fault, err);
}

/* The GPU instances under a job vanish, as when an operator destroys them by hand. */
static bh_rc
play_lose_partitions(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_job_view view;
    bh_rc rc = bh_scenario_run_job(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    if (view.partition_count == 0)
        return bh_err_set(err, BH_NOT_FOUND, "job %s holds no partition", words->at[1]);
    for (uint32_t i = 0; i < view.partition_count; i++) {
        struct bh_event event = { .kind = BH_EV_PARTITION_GONE,
                                  .u.partition = { view.partitions[i].partition, BH_OUTCOME_FAILED, 0 } };

        if (!bh_node_model_has_partition(bh_world_node_model(run->world), view.partitions[i].partition))
            return bh_err_set(err, BH_NOT_FOUND, "the partitions of job %s are not carved yet", words->at[1]);
        bh_node_model_lose_partition(bh_world_node_model(run->world), view.partitions[i].partition);
        rc = bh_scenario_run_send(run, &event, err);
        if (rc != BH_OK)
            return rc;
    }
    return BH_OK;
}

static bh_rc
play_daemon_down(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    bh_world_stop_daemon(run->world);
    return BH_OK;
}

static bh_rc
play_daemon_up(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    return bh_world_start_daemon(run->world, err);
}

static bh_rc
play_crash(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    bh_world_stop_daemon(run->world);
    return bh_world_start_daemon(run->world, err);
}

const struct bh_statement bh_time_statements[] = {
    { "advance", 1, 1, "SPAN", play_advance },
    { "delay", 2, 2, "EFFECT SPAN", play_delay },
    { "fail", 2, 6, "next EFFECT [times N] [on GPU]", play_fail },
    { "lose-partitions", 1, 1, "JOB", play_lose_partitions },
    { "crash", 0, 0, "", play_crash },
    { "daemon-down", 0, 0, "", play_daemon_down },
    { "daemon-up", 0, 0, "", play_daemon_up },
    { NULL, 0, 0, NULL, NULL },
};
