#ifndef BH_REPLAY_SCENARIO_OPTION_H
#define BH_REPLAY_SCENARIO_OPTION_H

#include "base/words.h"
#include "replay/scenario_run.h"

struct bh_scenario_option;

/* Reads an option's values into what the statement fills. */
typedef bh_rc bh_scenario_reader(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                                 const char *const *values, void *into, struct bh_err *err);

/* Options of a statement: a word followed by its values, read into a field of a struct. */
struct bh_scenario_option {
    const char *word;
    uint32_t values; /* how many follow the word */
    bh_scenario_reader *read;
    size_t offset;                  /* of the field that bh_scenario_read_* fill */
    uint32_t least, most;           /* of a number */
    uint32_t unit;                  /* of an amount: the parts of 1 */
    const struct bh_choice *choice; /* of a word */
};
struct bh_scenario_options {
    uint32_t first; /* the first word that is an option */
    const struct bh_scenario_option *rows;
    uint32_t count;
};

/* Read all options of a statement into `into`.  BH_INVALID: an unknown word, a value that is
 * missing. */
BH_MUST_USE bh_rc bh_scenario_options_read(struct bh_scenario_run *run, const struct bh_words *words,
                                           const struct bh_scenario_options *options, void *into,
                                           struct bh_err *err);

extern bh_scenario_reader bh_scenario_read_number; /* uint32_t, within least..most */
extern bh_scenario_reader bh_scenario_read_amount; /* uint64_t, in parts */
extern bh_scenario_reader bh_scenario_read_limit;  /* uint64_t, in parts; "none" is BH_UNLIMITED */
extern bh_scenario_reader bh_scenario_read_span;   /* uint64_t, nanoseconds */
extern bh_scenario_reader bh_scenario_read_word;   /* an enum */
extern bh_scenario_reader bh_scenario_read_switch; /* bool: on or off; without a value on */

/* "2.5" in parts, `unit` to 1; "none" is BH_UNLIMITED. */
BH_MUST_USE bh_rc bh_scenario_parse_limit(const char *text, uint32_t unit, uint64_t *ret_limit,
                                          struct bh_err *err);

#endif
