#include <string.h>

#include "model/layout.h"
#include "replay/scenario_run.h"

/* Declared layouts of GPUs, and drivers that must not carve beside other tenants. */

/* driver gpu1/0 old */
static bh_rc
play_driver(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    enum { FIXED, OLD, DRIVERS };
    static const char *const drivers[DRIVERS] = { "fixed", "old" };
    static const struct bh_choice choice = { "driver", drivers, DRIVERS };
    struct bh_event event;
    uint32_t driver;
    bh_rc rc = bh_scenario_run_report(run, words->at[1], &event, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_word_choose(&choice, words->at[2], &driver, err);
    if (rc != BH_OK)
        return rc;
    event.u.gpu.lone_carve = driver == OLD;
    return bh_scenario_run_send(run, &event, err);
}

/* declare gpu1/0 3g.40gb@4 1g.10gb 1g.10gb, or declare gpu1/0 nothing */
static bh_rc
play_declare(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    const char *partitions[BH_LAYOUT_PARTITIONS_MAX];
    struct bh_texts texts = { partitions, 0 };
    struct bh_event event = { .kind = BH_EV_LAYOUT };
    struct bh_ev_layout *gpu_layout = &event.u.gpu_layout;
    struct bh_layout_plan plan;
    struct bh_gpu_view view;
    bh_rc rc = bh_scenario_run_gpu(run, words->at[1], &view, err);

    for (uint32_t i = 2; i < words->count && strcmp(words->at[i], "nothing") != 0; i++)
        partitions[texts.count++] = words->at[i];
    if (rc != BH_OK)
        return rc;
    rc = bh_layout_plan_partitions((enum bh_gpu_model)view.model, &texts, &plan, err);
    if (rc != BH_OK)
        return rc;
    *gpu_layout = (struct bh_ev_layout){ .gpu = view.gpu,
                                         .mode = BH_LAYOUT_DECLARED,
                                         .apply = bh_view_applied(bh_world_engine(run->world)) + 1,
                                         .partition_count = plan.count };
    for (uint32_t i = 0; i < plan.count; i++)
        gpu_layout->partitions[i] =
            (struct bh_ev_layout_partition){ plan.partitions[i].profile->id.v, plan.partitions[i].start };
    return bh_scenario_run_send(run, &event, err);
}

static bh_rc
expect_layout(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_layout_view gpu_layout;
    struct bh_gpu_view view;
    bh_rc rc = bh_scenario_run_gpu(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_view_layout(bh_world_engine(run->world), view.gpu, &gpu_layout)
        || strcmp(bh_layout_state_names[gpu_layout.state], words->at[2]) != 0)
        return bh_err_set(err, BH_CONFLICT, "the layout of %s is %s", words->at[1],
                          bh_layout_state_names[gpu_layout.state]);
    return BH_OK;
}

const struct bh_statement bh_layout_statements[] = {
    { "driver", 2, 2, "GPU fixed|old", play_driver },
    { "declare", 2, 1 + BH_LAYOUT_PARTITIONS_MAX, "GPU PROFILE[@START]... | nothing", play_declare },
    { "expect-layout", 2, 2, "GPU none|applying|stands|undoing|undone|failed", expect_layout },
    { NULL, 0, 0, NULL, NULL },
};
