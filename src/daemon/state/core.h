#ifndef BH_DAEMON_STATE_CORE_H
#define BH_DAEMON_STATE_CORE_H

#include "api/request/owner.h"
#include "api/state/state.h"
#include "base/disk_space.h"
#include "daemon/journal/clock.h"
#include "daemon/journal/config.h"
#include "daemon/journal/epoch.h"
#include "daemon/journal/journal.h"
#include "daemon/journal/open_orders.h"
#include "daemon/names/catalog.h"
#include "daemon/state/hub.h"
#include "daemon/state/keyring.h"
#include "daemon/state/quarantine.h"
#include "daemon/state/refusals.h"
#include "daemon/state/same_spec.h"
#include "daemon/state/tally.h"

/* What the owner thread owns: engine, journal, names and query tables, changed together.
 *
 * Changes are made inside a batch (daemon/batch/batch.h): the first bh_core_step (daemon/batch/step.h) or
 * bh_core_record (daemon/batch/record.h) opens a transaction, bh_core_commit makes all durable at once,
 * and only then may effects be released (bh_core_effects) and answers given.  When anything in a
 * batch fails, bh_core_abort throws the whole batch away and rebuilds the state from snapshot and
 * journal. */

enum { BH_CORE_EFFECTS_MAX = 65536, BH_CORE_CHANGES_MAX = 8192 };

/* How many records of a kind were made within an hour. */
struct bh_fault_count {
    uint64_t began_ns;
    uint32_t count;
};

/* Faults of applications, by tenant: as many tenants as had some lately. */
enum { BH_FAULT_TENANTS_MAX = 256 };
struct bh_tenant_faults {
    uint32_t tenant; /* 0: free */
    struct bh_fault_count faults;
};

/* What a node last said of a GPU and the engine does not keep. */
struct bh_gpu_facts {
    bool seen;
    bool unread; /* its node could not read it in its last inventory */
    bool usable; /* node.conf allows it, and no other program carved it */
    bool mig_capable;
    uint8_t logged_health;       /* enum bh_gpu_health, in the daemon's log */
    uint64_t cause_ns;           /* the last fault that others may follow from */
    struct bh_fault_count minor; /* of faults that change little */
};

/* A node whose isolation, or that of a lease on it, is to be checked. */
struct bh_verify_order {
    bh_node_id node;
    uint64_t lease;   /* 0: the node's own */
    uint64_t request; /* number of the record that asked */
    uint64_t job;     /* 0: none */
    uint32_t tenant;
    uint8_t req[16];    /* request id of the wish, for the verdict's record */
    uint32_t principal; /* the first that asked; 0: an administrator */
    uint64_t asked_ns;  /* 0: answered */
};
enum { BH_CORE_VERIFIES_MAX = 256, BH_CORE_CHECKS_MAX = 64 };

struct bh_check {
    bh_node_id node;          /* 0: none */
    uint64_t retry_at, pause; /* monotonic ns */
};

/* What the disk of the state folder had when it was looked at, and what commands since then take of
 * it at most. */
struct bh_disk {
    uint64_t checked_ns; /* monotonic; 0: never */
    struct bh_disk_space capacity;
    uint64_t taken; /* bytes */
    bool low;       /* it was nearly full then */
};

/* Bytes of texts that the store keeps for tenants (daemon/state/texts.h); by tenant's id. */
struct bh_text_counts {
    struct bh_text_count {
        uint64_t bytes;
        bool known;
    } * items;
    uint32_t capacity;
    bool dropped; /* the open batch dropped some: forgotten with its end */
};

struct bh_core {
    const struct bh_daemon_config *config;
    struct bh_store store;
    const struct bh_crypto_ops *crypto;
    struct bh_clock clock;
    uint64_t as_of_ns; /* engine time stands there, for what is known to have been; 0: it runs */
    struct bh_epochs epochs;
    struct bh_journal journal;
    struct bh_keyring ring;
    struct bh_state state;
    struct bh_catalog *catalog;
    struct bh_hub *hub;
    const struct bh_quarantine *quarantine; /* what failed an assert lately; NULL: nothing */
    const struct bh_event *stepping;        /* the event in hand, for a failed assert; NULL: none */
    struct bh_step step;                    /* of the last event */
    uint64_t recorded_by[BH_EFFECTS_MAX];   /* of its effects on jobs: the record that says so */
    uint64_t recorded;                      /* the number of the record that the last entry became */
    struct bh_arena *arena;                 /* reset at every commit */
    struct bh_batch_reply *replies;         /* of the open batch, in `arena` */
    struct bh_batch_document *documents;    /* the same */
    struct bh_batch_created *taken;         /* likewise: jobs and tokens that were made */
    bool tokens_changed;                    /* in the open batch */
    struct bh_refusals refusals;            /* that repeat */
    struct bh_verdict decided;              /* on the command that runs; false: nothing yet */
    struct bh_disk disk;
    struct bh_access *access;          /* of jobs to datasets; daemon/batch/access.h */
    struct bh_open_orders open_orders; /* in the log without an outcome */
    struct bh_same_specs same_specs;   /* sealed of late */
    struct bh_text_counts text_counts;
    bool open;                       /* a transaction is open */
    bool catalog_changed, start_due; /* the latter: daemon/owner/start.h */
    uint64_t snapshot_seq;           /* records that the last snapshot covers */
    uint64_t stale_snapshot;         /* its file goes when the next one is durable */
    uint64_t next_job;               /* number of the next job */
    uint64_t steps;                  /* for sampling the invariants */
    _Atomic uint64_t commits;        /* since the start; read by any thread */
    struct bh_tallies tally;
    _Atomic uint64_t signed_records, signed_ns; /* the newest checkpoint's; likewise */
    struct bh_effect *effects;                  /* of the batch, for the node, in order */
    uint32_t effect_count;
    struct bh_gpu_facts *gpu_facts; /* by GPU id; what only the node knows */
    uint32_t gpu_facts_count;
    struct bh_tenant_faults tenant_faults[BH_FAULT_TENANTS_MAX];
    uint64_t health_logged;        /* bh_view_health_moves when the log last said them */
    struct bh_effect *scratch;     /* BH_CORE_EFFECTS_MAX of them, for looking through */
    struct bh_shown *shown;        /* reasons that rows show; by job modulo its size */
    struct bh_reason added_reason; /* why the job submitted last waits, or not */
    uint32_t refresh_cursor;       /* where the sweep over waiting jobs stands */
    bool reasons_stale;            /* something happened that may change reasons */
    /* The socket of the node, in the arena, while it is connected; NULL: there are no nodes. */
    const char *(*node_socket)(void *self, bh_node_id node, struct bh_arena *arena);
    void *node_socket_self;
    struct bh_verify_order verifies[BH_CORE_VERIFIES_MAX]; /* of the batch, for the nodes */
    uint32_t verify_count;
    struct bh_verify_order verifies_asked[BH_CORE_VERIFIES_MAX]; /* the last, in a ring */
    uint32_t verifies_next;
    struct bh_check checks[BH_CORE_CHECKS_MAX]; /* of nodes that are put aside (daemon/nodes/checks.h) */
    struct bh_change *changes;                  /* of the batch, for watchers */
    uint32_t change_count;
};

/* The reason that a waiting job's row was last written with. */
struct bh_shown {
    uint32_t job; /* low half of its number */
    enum bh_reason_code code;
};
enum { BH_SHOWN_MAX = 1 << 17 };

/* An answer remembered in the open batch: readers of the store do not see it yet. */
struct bh_batch_reply {
    struct bh_batch_reply *next;
    struct bh_reply_row row;
};

/* A document put in the open batch, the same way. */
struct bh_batch_document {
    struct bh_batch_document *next;
    struct bh_document_row row;
};

/* A job or a token that was made in the open batch, the same way. */
struct bh_batch_created {
    struct bh_batch_created *next;
    uint32_t principal;
    bool token;
};

/* Engine time (daemon/journal/clock.h): never behind the last record. */
uint64_t bh_core_now(const struct bh_core *core);

/* Whether a result means that the batch must be aborted. */
bool bh_core_is_fatal(bh_rc rc);

/* Begin the batch's transaction if none is open: for changes of tables that come with a record. */
BH_MUST_USE bh_rc bh_core_begin(struct bh_core *core, struct bh_err *err);

/* Seal a personal text of the tenant under its key of this month and append the item to
 * `out`.  The key may be made; bh_core_commit has that recorded.  Results of
 * bh_keys_seal. */
BH_MUST_USE bh_rc bh_core_seal(struct bh_core *core, bh_tenant_id tenant, struct bh_slice plain,
                               struct bh_buf *out, struct bh_err *err);

#endif
