#ifndef BH_DAEMON_STATE_ENTRY_H
#define BH_DAEMON_STATE_ENTRY_H

#include "api/request/owner.h"
#include "audit/record.h"

enum {
    BH_ENTRY_NOTE_ITEM_MAX = 4096, /* bytes of a note that one sealed item holds */
    BH_ENTRY_NOTE_MAX = 8 * BH_ENTRY_NOTE_ITEM_MAX
};

/* What the journal says about a change besides the event itself. */
struct bh_entry {
    struct bh_record_actor actor;
    struct bh_record_object obj;
    struct bh_record_decision dec;
    enum bh_phase phase;
    uint32_t tenant;
    uint64_t order;
    const uint8_t *req;  /* 16 bytes, or NULL: made up */
    const uint8_t *text; /* 32 bytes, or NULL */
    const char *verb;
    const char *note;      /* personal text for the leaf, sealed there under the
                              tenant's key of the month; NULL: none.  Beyond
                              BH_ENTRY_NOTE_ITEM_MAX it is divided where lines end;
                              BH_RANGE when that takes over 8 items */
    const char *ev_json;   /* the record's "ev"; NULL: the engine's event, or none */
    const char *jobs_json; /* the record's "jobs"; NULL: what the step says, or none */
    /* for a SUBMIT event's row */
    const struct bh_caller *submitter;
    const char *job_name;
};

/* The beginning of one that the daemon itself makes: { BH_ENTRY_OF_SYSTEM, .verb = "tick" }. */
#define BH_ENTRY_OF_SYSTEM                                                                                   \
    .actor = { .via = BH_VIA_SYSTEM }, .dec = { .allow = true }, .phase = BH_PHASE_EVENT

#endif
