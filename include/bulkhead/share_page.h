/* What bulkhead-share on the node and libbulkhead-cuda in a job's processes have in common:
 * two partitions of memory for each lease of shares of GPUs.
 *
 * `struct bh_share_limits` is written by bulkhead-share alone; a job has it mapped read-only.
 * `struct bh_share_usage` is written by the job's processes, and by bulkhead-share for those
 * that died.  What a job writes there can hurt no job but itself: it has no more than this
 * lease, and bulkhead-share compares it with what the driver says.
 *
 * Memory is counted in units of 2 MiB, the driver's granule.  `total` is what all processes of
 * the lease have reserved on a device, `held` what one of them has.  No lock guards them: a
 * reservation is one compare-and-swap of `total`, which names the slot that made it, the
 * difference and the slot's sequence number.  The next change of `total` first settles what
 * it names in that slot's `held`.  So a process that is killed between the two leaves
 * nothing half done, and what it held is known to the unit: reaping it is one more change.
 *
 *   total   20 bits units | 21 bits difference, signed | 10 bits slot | 13 bits sequence
 *   held    20 bits units | 44 bits sequence
 *
 * Of the long sequence `total` has the low bits: enough, as a slot is never more than one
 * behind it. */
#ifndef BULKHEAD_SHARE_PAGE_H
#define BULKHEAD_SHARE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BH_SHARE_MAGIC 0x42485348u /* "BHSH" */
/* Of both pages and of the messages on the socket: a new number with each change of one of them
 * that the other side must know.  The limits begin with magic and version in each. */
#define BH_SHARE_VERSION 3u /* 2: the usage has more than slots; 3: managed memory, ends of time slices */
#define BH_SHARE_UNIT_BYTES (UINT64_C(2) << 20)

enum {
    BH_SHARE_DEVICES_MAX = 16,
    BH_SHARE_SLOTS_MAX = 512, /* processes of a lease at once */
    BH_SHARE_UNITS_MAX = (1 << 20) - 1,
};

/* A device's time slice changes with each grant and each end of one, and when a time slice gets another
 * end: its low bits say what holds, the rest counts.
 * A futex: a process that waits for a time slice waits for a change of the value. */
enum {
    BH_SHARE_SHUT = 1u,      /* submit nothing; answer when all that was submitted is done */
    BH_SHARE_CONTENDED = 2u, /* others wait: submit little ahead, say when idle */
    BH_SHARE_SLICE_STEP = 4u,
};

struct bh_share_device {
    uint8_t uuid[16];                /* as cuDeviceGetUuid says it */
    uint32_t cap_units;              /* of memory; the lease's share */
    uint32_t context_units;          /* what a context takes, charged when it is made */
    _Atomic uint32_t overhead_units; /* what the driver holds beyond what was charged */
    _Atomic uint32_t slice;
    uint64_t memory_bytes;     /* what the device reports to programs */
    _Atomic uint64_t used_ns;  /* of its time: what time slices took, to the last second */
    _Atomic uint64_t busy;     /* how much of the last second that was; see below */
    _Atomic uint64_t until_ns; /* CLOCK_MONOTONIC: when the CONTENDED time slice shall end, for
                                  its holder to plan for; 0: not known */
};
_Static_assert(sizeof(struct bh_share_device) == 64, "a cache line each");

/* `busy`: 0 while nothing was measured, else
 *
 *   32 bits CLOCK_MONOTONIC in seconds, when it was measured | flags | thousandths of the second
 *
 * While no other lease wants the device the gate is open, and a time slice says nothing about work. */
enum {
    BH_SHARE_BUSY_KNOWN = 1 << 17,
    BH_SHARE_BUSY_FREE = 1 << 16, /* open all the while, and no other lease had a time slice: what the
                                     whole device did is the lease's own */
    BH_SHARE_BUSY_PERMILLE = 0xffff,
};

/* What managed memory is of this lease; it may lie on a device or in main memory. */
enum bh_share_managed {
    BH_SHARE_MANAGED_CHARGED, /* memory as any other; also what an older page says */
    BH_SHARE_MANAGED_FREE,    /* not counted */
    BH_SHARE_MANAGED_NONE,    /* there is none */
};

struct bh_share_limits {
    uint32_t magic, version;
    uint64_t lease;
    uint32_t device_count;
    uint32_t managed; /* enum bh_share_managed */
    uint8_t reserved[40];
    struct bh_share_device device[BH_SHARE_DEVICES_MAX];
};

struct bh_share_total {
    _Alignas(64) _Atomic uint64_t word;
};

struct bh_share_slot {
    _Atomic uint64_t held[BH_SHARE_DEVICES_MAX];
};

/* By device, in grains of 64 KiB, rounded up: a cache line for a process. */
#define BH_SHARE_SEEN_BYTES (UINT64_C(64) << 10)
struct bh_share_seen {
    _Alignas(64) _Atomic uint32_t grains[BH_SHARE_DEVICES_MAX];
};

enum bh_share_seen_kind {
    BH_SHARE_SEEN_NOT,    /* it has not said */
    BH_SHARE_SEEN_ABSENT, /* the driver's library goes another way to the kernel */
    BH_SHARE_SEEN_PARTLY, /* some of it could not be counted */
    BH_SHARE_SEEN_WHOLE,
};

struct bh_share_usage {
    struct bh_share_total total[BH_SHARE_DEVICES_MAX];
    struct bh_share_slot slot[BH_SHARE_SLOTS_MAX];
    /* Who has it, as the process itself says and in its own namespace: for the job's people
     * alone, nothing is decided by it.  0: no process, or none yet. */
    _Atomic uint32_t pid[BH_SHARE_SLOTS_MAX];
    /* What the driver's library of the process asked the kernel for: another count of the same
     * memory, for comparing alone. */
    struct bh_share_seen seen[BH_SHARE_SLOTS_MAX];
    _Atomic uint32_t seen_kind[BH_SHARE_SLOTS_MAX]; /* enum bh_share_seen_kind */
};

/* ---- the words ---- */

static inline uint32_t
bh_share_units(uint64_t word)
{
    return (uint32_t)(word >> 44);
}

static inline int32_t
bh_share_difference(uint64_t total)
{
    return (int32_t)((int64_t)(total << 20) >> 43);
}

static inline uint32_t
bh_share_slot_of(uint64_t total)
{
    return (uint32_t)(total >> 13) & 0x3ff;
}

static inline uint64_t
bh_share_total_pack(uint32_t units, int32_t difference, uint32_t slot, uint64_t sequence)
{
    return (uint64_t)units << 44 | ((uint64_t)difference & 0x1fffff) << 23 | (uint64_t)slot << 13
           | (sequence & 0x1fff);
}

static inline uint64_t
bh_share_held_pack(uint32_t units, uint64_t sequence)
{
    return (uint64_t)units << 44 | (sequence & 0xfffffffffff);
}

/* ---- reserving ---- */

/* Do for its slot what `total` names, if that was not done.  Nothing else may be put in the
 * place of `total` before. */
static inline void
bh_share_settle(struct bh_share_usage *usage, uint32_t device, uint64_t total)
{
    _Atomic uint64_t *at = &usage->slot[bh_share_slot_of(total) % BH_SHARE_SLOTS_MAX].held[device];
    uint64_t held = atomic_load(at);
    uint32_t units = bh_share_units(held) + (uint32_t)bh_share_difference(total);

    if (((held ^ total) & 0x1fff) == 0)
        return;
    /* Only while it is the current one can the slot be one behind it, and no more. */
    if (atomic_load(&usage->total[device].word) == total)
        atomic_compare_exchange_strong(at, &held, bh_share_held_pack(units, held + 1));
}

enum bh_share_tried { BH_SHARE_DONE, BH_SHARE_REFUSED, BH_SHARE_AGAIN };

/* Try once to change what `slot` has by `difference`, as long as the total stays at or below
 * `most` units.  REFUSED: it would not, or `slot` has not so much to give back; AGAIN: others
 * were quicker.  Nothing changed then. */
static inline enum bh_share_tried
bh_share_try(struct bh_share_usage *usage, uint32_t device, uint32_t slot, int32_t difference, uint32_t most)
{
    _Atomic uint64_t *word = &usage->total[device].word;
    uint64_t total = atomic_load(word), held, next;
    int64_t units = (int64_t)bh_share_units(total) + difference;

    bh_share_settle(usage, device, total);
    held = atomic_load(&usage->slot[slot].held[device]);
    if (difference > 0 ? units > most : units < 0 || (int64_t)bh_share_units(held) + difference < 0)
        return atomic_load(word) == total ? BH_SHARE_REFUSED : BH_SHARE_AGAIN;
    next = bh_share_total_pack((uint32_t)units, difference, slot, held + 1);
    if (!atomic_compare_exchange_strong(word, &total, next))
        return BH_SHARE_AGAIN;
    bh_share_settle(usage, device, next);
    return BH_SHARE_DONE;
}

/* As bh_share_try, until it is done or refused.  Any thread, also in a signal handler.  In
 * each round some other process of the lease got what it wanted: a process that must not wait for them
 * (bulkhead-share) tries a number of times. */
static inline bool
bh_share_change(struct bh_share_usage *usage, uint32_t device, uint32_t slot, int32_t difference,
                uint32_t most)
{
    enum bh_share_tried tried;

    do
        tried = bh_share_try(usage, device, slot, difference, most);
    while (tried == BH_SHARE_AGAIN);
    return tried == BH_SHARE_DONE;
}

/* What the lease has reserved on a device, in units. */
static inline uint32_t
bh_share_used(const struct bh_share_usage *usage, uint32_t device)
{
    return bh_share_units(atomic_load(&usage->total[device].word));
}

/* What a slot has, in units; whole only when no process changes it meanwhile. */
static inline uint32_t
bh_share_held(struct bh_share_usage *usage, uint32_t device, uint32_t slot)
{
    bh_share_settle(usage, device, atomic_load(&usage->total[device].word));
    return bh_share_units(atomic_load(&usage->slot[slot].held[device]));
}

#endif
