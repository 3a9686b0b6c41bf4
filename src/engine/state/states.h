#ifndef BH_ENGINE_STATE_STATES_H
#define BH_ENGINE_STATE_STATES_H

#include <stdint.h>

/* What rows hold and views show. */

/* Why no job can use parts of a GPU. */
enum bh_unusable {
    BH_UNUSABLE_GEOMETRY, /* free, and no partition fits there */
    BH_UNUSABLE_CARVING,  /* a partition is being carved or destroyed */
    BH_UNUSABLE_FAULT,    /* it does not answer, or its health keeps work off it */
    BH_UNUSABLE_CORDONED, /* by the site file, or by an operator */
    BH_UNUSABLE_AWAY,     /* its node is down, or needs a reboot; or it is not managed */
    BH_UNUSABLE_RESERVE,  /* of a shared GPU: the driver's, and the contexts' of its slots */
    BH_UNUSABLE_UNHEARD,  /* leased, on a node that is down: whose it was is known when that node
                             says so.  The only sum that falls */
    BH_UNUSABLES
};

/* How a change of what shall stand on a GPU is getting on. */
enum bh_layout_state {
    BH_LAYOUT_NONE,     /* nothing is declared */
    BH_LAYOUT_APPLYING, /* partitions are made and destroyed, or wait for leases to end */
    BH_LAYOUT_READY,    /* what is declared stood when it was made */
    BH_LAYOUT_UNDOING,  /* something failed: it goes back to what was before */
    BH_LAYOUT_UNDONE,   /* it is back */
    BH_LAYOUT_FAILED,   /* and not even that could be made: nothing is declared */
    BH_LAYOUT_STATES
};

enum bh_partition_state {
    BH_PARTITION_CARVING,
    BH_PARTITION_IDLE, /* carved and free; kept for its last tenant */
    BH_PARTITION_LEASED,
    BH_PARTITION_CLEARING,
    BH_PARTITION_QUARANTINED, /* views only: clearing, and its memory is not clean */
    BH_PARTITION_STATES
};

/* Partitions asked for lately of a model that can be carved, by shape (engine/state/mig.h): what room
 * is priced by.  False when no such GPU was seen, or too many other models were. */
struct bh_demand_view {
    uint32_t shapes;
    uint32_t partitions[8]; /* BH_MIG_SHAPES_MAX */
    uint32_t profiles[8];   /* the first of the table that has the shape */
};

#endif
