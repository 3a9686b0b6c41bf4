/* Which slot has which page of an instance's memory, exactly and at every instant.
 *
 * The ledger lies in the files of the memory (sim/machine/vram.h): for each page the number of
 * the slot that has it, and for each slot how many it has.  A page changes hands by one
 * compare-and-swap; nothing waits for a lock.
 *
 * A slot is a process's, or an object's that several processes share.  It lives while
 * a process holds a read lock on its byte of the first unit's file: one that dies, in
 * whatever way, holds none, and its pages are free for the next one that looks.  A lock is
 * an open file's: a shared object's can be passed on, and it outlives the process that
 * made it, as memory that was exported does. */
#ifndef BH_SIM_MACHINE_LEDGER_H
#define BH_SIM_MACHINE_LEDGER_H

#include "sim/machine/vram.h"

/* A word of a file that jobs write, as it is now.  It is read once, and what was read is bounded
 * before it is a place, a count or a time: the next look may find another there. */
#define SIM_READ(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)

enum sim_slot_kind { SIM_SLOT_FREE, SIM_SLOT_PROCESS, SIM_SLOT_SHARED };

/* Runs of pages; zeros: none. */
struct sim_extents {
    uint32_t count, room;
    struct sim_extent first;
    struct sim_extent *more; /* all of them when there are several */
};

enum {
    SIM_TAKE_CLEAR = 1, /* what they hold is cleared, as the driver does */
    SIM_TAKE_TOP = 2,   /* the highest ones, not the lowest */
};

static inline struct sim_extent *
sim_extents_at(struct sim_extents *extents, uint32_t index)
{
    return extents->more != NULL ? &extents->more[index] : &extents->first;
}

/* Take a slot for this process.  False: errno (ENOSPC: there is none). */
bool sim_ledger_join(struct sim_vram *vram);

/* The slot that it took. */
uint32_t sim_ledger_own(const struct sim_vram *vram);

/* Take `count` free pages for it.  False, and none is taken: so many are not free
 * (ENOMEM). */
bool sim_ledger_take(struct sim_vram *vram, uint32_t count, unsigned how, struct sim_extents *ret_extents);

/* Give back what slot `slot` has of them, and empty the list. */
void sim_ledger_release(struct sim_vram *vram, uint32_t slot, struct sim_extents *extents);

/* Make pages of this process another slot's, and empty the list. */
void sim_ledger_give(struct sim_vram *vram, uint32_t slot, struct sim_extents *extents);

/* How many pages a list has. */
uint32_t sim_extents_pages(struct sim_extents *extents);

/* Add one page to a list, as the next.  False: out of memory. */
bool sim_extents_add(const struct sim_vram *vram, struct sim_extents *extents, uint32_t page);

/* Make pages of this process a shared object's of their own, for as long as the returned
 * file is open anywhere.  Its offset in the file is the number of the slot.  -1: errno. */
int sim_ledger_share(struct sim_vram *vram, struct sim_extents *extents, uint64_t bytes, uint32_t location,
                     uint32_t *ret_slot);

/* The slot that such a file stands for; 0: it is none of this memory. */
uint32_t sim_ledger_shared_slot(struct sim_vram *vram, int fd);

/* Open the shared object in `slot`, if it is still the one of that generation.  -1: it is
 * not. */
int sim_ledger_reopen(struct sim_vram *vram, uint32_t slot, uint32_t generation);

/* The pages of a slot, the lowest first.  False: out of memory. */
bool sim_ledger_pages(struct sim_vram *vram, uint32_t slot, struct sim_extents *ret_extents);

/* Free what the dead had. */
void sim_ledger_reap(struct sim_vram *vram);

/* A slot's record: shared by all processes, so read (SIM_READ) and written by atomic accesses. */
struct sim_slot *sim_ledger_slot(struct sim_vram *vram, uint32_t slot);

/* How many pages it says that it has: never more than the memory. */
uint32_t sim_ledger_held(struct sim_vram *vram, uint32_t slot);

/* Pages that all slots had at one instant, after the dead were reaped, and never more than
 * there are; by slot in `ret_pages`, which has room for SIM_SLOTS_MAX, or is NULL.  Each of
 * these is bounded so, and not their sum. */
uint64_t sim_ledger_snapshot(struct sim_vram *vram, uint32_t *ret_pages);

/* In a child of fork: what the parent had open is not the child's to hold. */
void sim_ledger_abandon(struct sim_vram *vram);

#endif
