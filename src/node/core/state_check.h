#ifndef BH_NODE_CORE_STATE_CHECK_H
#define BH_NODE_CORE_STATE_CHECK_H

#include "node/core/state.h"

/* What holds of the node's state between two calls.
 *
 * A journal comes from outside: a record of it that this node could not have written is refused when it is
 * read. So what is in memory is the node's own, and is asserted where it is read and where it is changed.
 * Each assert takes the same time however large the state is. */

/* BH_INVALID: no version of this program has written that record. */
BH_MUST_USE bh_rc bh_state_check_record(const struct bh_node_record *record, struct bh_err *err);

/* The tables: as many entries as there is room for, and never more than their most. */
void bh_state_assert(const struct bh_node_state *state);

/* One entry of a table.  `order` and `job` are in the state's tables. */
void bh_state_assert_order(const struct bh_node_state *state, const struct bh_order *order);
void bh_state_assert_job(const struct bh_node_state *state, const struct bh_job *job);
void bh_state_assert_partition(const struct bh_node_partition *partition);
void bh_state_assert_receipt(const struct bh_msg_receipt *receipt);

/* The record of a lease, also of a helper sandbox. */
void bh_state_assert_lease(const struct bh_node_record *lease);

/* A text that fits its array.  A macro: it is about the array. */
#define BH_STATE_ASSERT_TEXT(text) BH_ASSERT((text)[sizeof(text) - 1] == '\0')

#endif
