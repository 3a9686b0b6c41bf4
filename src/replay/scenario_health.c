#include "replay/scenario_run.h"

#include "engine/read/view.h"

/* Faults of GPUs, and operators who keep work off them. */

/* fault gpu1/0 reset gpu: what is to be done, and whose leases end */
static bh_rc
play_fault(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_choice thens = { "remedy", bh_fault_then_names, BH_FAULT_THENS };
    static const struct bh_choice ends = { "whose leases", bh_fault_ends_names, BH_FAULT_ENDS };
    struct bh_event event = { .kind = BH_EV_HEALTH };
    struct bh_gpu_view view;
    uint32_t then, whose = BH_ENDS_NOBODY;
    bh_rc rc = bh_scenario_run_gpu(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_word_choose(&thens, words->at[2], &then, err);
    if (rc != BH_OK)
        return rc;
    if (words->count > 3)
        rc = bh_word_choose(&ends, words->at[3], &whose, err);
    if (rc != BH_OK)
        return rc;
    event.u.health = (struct bh_ev_health){ .gpu = view.gpu,
                                            .then = (enum bh_fault_then)then,
                                            .ends = (enum bh_fault_ends)whose };
    return bh_scenario_run_send(run, &event, err);
}

/* hit a reset_idle: the instance that the job has, and no other */
static bh_rc
play_hit(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_choice thens = { "remedy", bh_fault_then_names, BH_FAULT_THENS };
    struct bh_event event = { .kind = BH_EV_HEALTH };
    struct bh_job_view view;
    uint32_t then;
    bh_rc rc = bh_scenario_run_job(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_word_choose(&thens, words->at[2], &then, err);
    if (rc != BH_OK)
        return rc;
    if (view.partition_count == 0)
        return bh_err_set(err, BH_CONFLICT, "%s has no partition", words->at[1]);
    event.u.health = (struct bh_ev_health){ .gpu = view.partitions[0].gpu,
                                            .partition = view.partitions[0].partition,
                                            .then = (enum bh_fault_then)then,
                                            .ends = BH_ENDS_INSTANCE };
    return bh_scenario_run_send(run, &event, err);
}

/* hold gpu1/0 drain_now; hold gpu1 cordon; hold gpu1/0 no clear-fault */
static bh_rc
play_hold(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_choice ways = { "way to hold", bh_held_names, BH_HELDS };
    struct bh_event event = { .kind = BH_EV_CORDON };
    struct bh_gpu_view view;
    struct bh_err ignored;
    uint32_t held;
    bh_rc rc = bh_word_choose(&ways, words->at[2], &held, err);

    if (rc != BH_OK)
        return rc;
    event.u.cordon.held = (enum bh_held)held;
    if (bh_scenario_run_gpu(run, words->at[1], &view, &ignored) == BH_OK)
        event.u.cordon.gpu = view.gpu;
    else
        rc = bh_names_find(run->names, BH_NAMED_NODE, words->at[1], &event.u.cordon.node.v, err);
    if (rc != BH_OK)
        return rc;
    if (words->count > 3) {
        static const char *const clears[] = { "clear-fault" };
        static const struct bh_choice choice = { "word", clears, 1 };
        uint32_t which;

        rc = bh_word_choose(&choice, words->at[3], &which, err);
        event.u.cordon.clear_fault = rc == BH_OK;
    }
    if (rc != BH_OK)
        return rc;
    return bh_scenario_run_send(run, &event, err);
}

/* expect-health gpu1/0 burn_in */
static bh_rc
play_expect_health(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_choice states = { "health", bh_gpu_health_names, BH_HEALTHS };
    struct bh_gpu_view view;
    uint32_t wanted;
    bh_rc rc = bh_scenario_run_gpu(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_word_choose(&states, words->at[2], &wanted, err);
    if (rc != BH_OK || view.health == wanted)
        return rc;
    return bh_err_set(err, BH_CONFLICT, "%s is %s", words->at[1], bh_gpu_health_names[view.health]);
}

const struct bh_statement bh_health_statements[] = {
    { "fault", 2, 3, "GPU watch|reset_idle|drain|reset|reboot|retire|mended|count [gpu]", play_fault },
    { "hit", 2, 2, "JOB watch|reset_idle|drain|reset|count", play_hit },
    { "hold", 2, 3, "GPU|NODE no|cordon|drain|drain_now [clear-fault]", play_hold },
    { "expect-health", 2, 2, "GPU STATE", play_expect_health },
    { NULL, 0, 0, NULL, NULL },
};
