#ifndef BH_LAB_LOAD_AGENDA_H
#define BH_LAB_LOAD_AGENDA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

/* What is to happen in simulated time: a binary heap.  Of entries due at the same instant
 * the one that was added first comes first, so the same calls give the same order. */
struct bh_agenda;

struct bh_agenda_entry {
    uint64_t due_ns;
    uint64_t subject; /* the caller's: a job, a lease, a partition */
    uint32_t kind;    /* the caller's */
    uint32_t epoch;   /* the caller's: distinguishes a promise from one that was taken back */
};

/* An empty agenda; free(NULL) is fine. */
struct bh_agenda *bh_agenda_new(void);
void bh_agenda_free(struct bh_agenda *agenda);
BH_AUTO_DEFINE(struct bh_agenda *, bh_agenda_free)

void bh_agenda_add(struct bh_agenda *agenda, const struct bh_agenda_entry *entry);

/* When the first entry is due, or UINT64_MAX. */
uint64_t bh_agenda_due_ns(const struct bh_agenda *agenda);

/* Take the first entry; false when there is none. */
bool bh_agenda_take(struct bh_agenda *agenda, struct bh_agenda_entry *ret_entry);

#endif
