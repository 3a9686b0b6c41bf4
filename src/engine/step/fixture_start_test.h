#ifndef BH_ENGINE_STEP_FIXTURE_START_TEST_H
#define BH_ENGINE_STEP_FIXTURE_START_TEST_H

#include "engine/step/fixture_test.h"

/* The oldest order that is not answered must be a START, and fails: for what `why` says of it. */
static inline void
bh_fixture_fail_start(struct bh_fixture *fixture, struct bh_ev_lease why)
{
    struct bh_effect effect;
    struct bh_event event;

    do {
        assert_true(bh_fixture_next_effect(fixture, &effect));
        event = bh_fixture_answer(&effect, effect.kind == BH_FX_START ? BH_OUTCOME_FAILED : BH_OUTCOME_OK);
        if (effect.kind == BH_FX_START) {
            event.u.lease.elsewhere = true;
            event.u.lease.refused = why.refused;
            event.u.lease.scratch = why.scratch;
        }
        bh_fixture_must_send(fixture, &event);
    } while (effect.kind != BH_FX_START);
}

#endif
