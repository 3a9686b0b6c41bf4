#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "replay/scenario_run.h"

/* Shares of GPUs. */

bh_rc
bh_scenario_parse_share(enum bh_gpu_model model, const char *text, uint32_t *ret_profile, struct bh_err *err)
{
    char words[60], *mode, *memory;
    struct bh_share_words share = { .share = words, .rounding = BH_ROUNDING_UP };
    struct bh_share size;
    bh_rc rc;

    if (model && !strpbrk(text, "/%"))
        return bh_err_set(err, BH_INVALID, "%s has no profile %.40s", bh_model_facts(model)->name, text);
    if (strlen(text) >= sizeof words)
        return bh_err_set(err, BH_INVALID, "%.60s is no share", text);
    memcpy(words, text, strlen(text) + 1);
    mode = strchr(words, '+');
    if (mode)
        *mode++ = '\0';
    memory = strchr(words, ',');
    if (memory)
        *memory++ = '\0';
    share.memory = memory;
    while (mode && share.mode < BH_SHARE_MODES && strcmp(bh_share_mode_names[share.mode], mode) != 0)
        share.mode++;
    if (share.mode == BH_SHARE_MODES)
        return bh_err_set(err, BH_INVALID, "%.60s: no such kind of share", text);
    rc = bh_share_parse(model, &share, &size, err);
    if (rc != BH_OK)
        return rc;
    *ret_profile = bh_share_profile(&size).v;
    return BH_OK;
}

/* share gpu1/0 100%: jobs may have shares of it, of so much compute together; 0: none */
static bh_rc
play_share(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event;
    char number[8] = "";
    size_t length = strlen(words->at[2]);
    uint32_t percent;
    bh_rc rc = bh_scenario_run_report(run, words->at[1], &event, err);

    if (rc != BH_OK)
        return rc;
    if (length < 2 || length > 6 || words->at[2][length - 1] != '%')
        return bh_err_set(err, BH_INVALID, "%.40s: expected a percentage", words->at[2]);
    memcpy(number, words->at[2], length - 1);
    rc = bh_parse_u32(number, 0, 100 * BH_SHARE_OVERSUBSCRIBE_MAX, &percent, err);
    if (rc != BH_OK)
        return rc;
    event.u.gpu.share_limit = BH_GPU_PARTS / 100 * percent;
    return bh_scenario_run_send(run, &event, err);
}

/* expect-parts gpu1/0 memory 950 3197 53 */
static bh_rc
expect_parts(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_gpu_view view;
    uint64_t wanted[3], have[3];
    bh_rc rc = bh_scenario_run_gpu(run, words->at[1], &view, err);
    bool memory = strcmp(words->at[2], "memory") == 0;
    if (rc != BH_OK)
        return rc;

    if (!memory && strcmp(words->at[2], "compute") != 0)
        return bh_err_set(err, BH_INVALID, "%.40s is no dimension", words->at[2]);
    for (int i = 0; i < 3; i++) {
        rc = bh_parse_u64(words->at[3 + i], &wanted[i], err);
        if (rc != BH_OK)
            return rc;
    }
    have[0] = memory ? view.used.memory : view.used.compute;
    have[1] = memory ? view.idle.memory : view.idle.compute;
    have[2] = memory ? view.unusable.memory : view.unusable.compute;
    if (memcmp(wanted, have, sizeof have) == 0)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT,
                      "%s has %" PRIu64 " parts used, %" PRIu64 " idle, %" PRIu64 " unusable", words->at[1],
                      have[0], have[1], have[2]);
}

const struct bh_statement bh_share_statements[] = {
    { "share", 2, 2, "GPU PERCENT%", play_share },
    { "expect-parts", 5, 5, "GPU compute|memory USED IDLE UNUSABLE", expect_parts },
    { NULL, 0, 0, NULL, NULL },
};
