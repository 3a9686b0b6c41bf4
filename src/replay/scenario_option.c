#include "replay/scenario_option.h"

#include <string.h>

#include "base/num.h"

static const struct bh_scenario_option *
find_option(const struct bh_scenario_options *options, const char *word)
{
    for (uint32_t i = 0; i < options->count; i++)
        if (strcmp(options->rows[i].word, word) == 0)
            return &options->rows[i];
    return NULL;
}

bh_rc
bh_scenario_options_read(struct bh_scenario_run *run, const struct bh_words *words,
                         const struct bh_scenario_options *options, void *into, struct bh_err *err)
{
    for (uint32_t at = options->first; at < words->count;) {
        const struct bh_scenario_option *option = find_option(options, words->at[at]);
        bh_rc rc;

        if (!option)
            return bh_err_set(err, BH_INVALID, "unknown option %.80s", words->at[at]);
        if (words->count - at - 1 < option->values)
            return bh_err_set(err, BH_INVALID, "%s wants %u values", option->word, option->values);
        rc = option->read(run, option, &words->at[at + 1], into, err);
        if (rc != BH_OK)
            return rc;
        at += 1 + option->values;
    }
    return BH_OK;
}

static void *
field_of(const struct bh_scenario_option *option, void *into)
{
    return (char *)into + option->offset;
}

bh_rc
bh_scenario_read_number(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                        const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_u32(values[0], option->least, option->most, field_of(option, into), err);
}

bh_rc
bh_scenario_read_amount(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                        const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_parts(values[0], option->unit, field_of(option, into), err);
}

bh_rc
bh_scenario_parse_limit(const char *text, uint32_t unit, uint64_t *ret_limit, struct bh_err *err)
{
    if (strcmp(text, "none") != 0)
        return bh_parse_parts(text, unit, ret_limit, err);
    *ret_limit = BH_UNLIMITED;
    return BH_OK;
}

bh_rc
bh_scenario_read_limit(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                       const char *const *values, void *into, struct bh_err *err)
{
    return bh_scenario_parse_limit(values[0], option->unit, field_of(option, into), err);
}

bh_rc
bh_scenario_read_span(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                      const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_span(values[0], field_of(option, into), err);
}

bh_rc
bh_scenario_read_word(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                      const char *const *values, void *into, struct bh_err *err)
{
    return bh_word_choose(option->choice, values[0], field_of(option, into), err);
}

bh_rc
bh_scenario_read_switch(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                        const char *const *values, void *into, struct bh_err *err)
{
    bool on = option->values == 0 || strcmp(values[0], "on") == 0;

    if (!on && strcmp(values[0], "off") != 0)
        return bh_err_set(err, BH_INVALID, "%.40s: expected on or off", values[0]);
    *(bool *)field_of(option, into) = on;
    return BH_OK;
}
