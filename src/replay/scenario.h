#ifndef BH_REPLAY_SCENARIO_H
#define BH_REPLAY_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Scenarios: files of statements, played against the real engine.  docs/scenarios.md
 * is the language. */

/* Where a run of scenarios writes its TAP, and what it counted so far. */
struct bh_tap {
    FILE *out; /* NULL: nothing is written */
    uint32_t count, failed;
    bool broken; /* some failure was a broken invariant or a bad replay: our own bug */
};

/* Play each scenario of a file, one line of TAP a scenario: "ok 1 - name", or "not ok"
 * and why with file and line.  A scenario that fails does not stop the next one. */
void bh_scenario_play_text(struct bh_tap *tap, const char *file, const char *text, size_t length);

/* The same for a file; one that cannot be read is a failed scenario. */
void bh_scenario_play_file(struct bh_tap *tap, const char *path);

/* One line a statement: what it is called and what follows it. */
void bh_scenario_print_statements(FILE *out);

#endif
