/* A simulated GPU at work: what contexts have submitted, and how it runs.
 *
 * One record for each GPU or instance, in a file that all its processes map, so that they
 * contend as they would for the real one.  It is a discrete-event simulation in the time of
 * CLOCK_MONOTONIC: each look brings it up to the moment, under the record's lock, and
 * what has ended since then ended at its exact time.  Everything here is pure: the time is
 * an argument, and any content of the record ends in a bounded number of steps and touches
 * nothing outside it, because tenants can write to it.
 *
 * The cost model, with its sources, is in docs/simdrv.md; its numbers are these. */
#ifndef BH_SIM_MACHINE_TASK_H
#define BH_SIM_MACHINE_TASK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Contexts share the SMs by time slices.  With these two, contexts that never rest lose 9.1 % in
 * total: 8 % were measured on an A100, 10 % on a GV100. */
#define SIM_TASK_SLICE_NS 2000000u
#define SIM_TASK_SWITCH_NS 200000u
/* After a context that has nothing left to save; assumed, no measure is known. */
#define SIM_TASK_HANDOVER_NS 20000u

#define SIM_TASK_SLOTS 128
#define SIM_TASK_DEPTH                                                                                       \
    1024 /* works of one context in flight; more wait to be submitted                                        \
          */
#define SIM_TASK_STREAMS 1024
#define SIM_TASK_READY 16
#define SIM_TASK_ALL_SMS 100 /* per cent */
/* Of how busy the SMs are, as the published kernel part has it
 * (NV2080_CTRL_PERF_GPUMON_PERFMON_UTIL_SAMPLE): so many samples are kept, each of a sixth of a
 * second. */
#define SIM_TASK_SAMPLES 72
#define SIM_TASK_SAMPLE_NS 166666667u

enum sim_engine { SIM_ENGINE_COMPUTE, SIM_ENGINE_COPY_IN, SIM_ENGINE_COPY_OUT, SIM_ENGINES };

enum sim_task_kind {
    SIM_TASK_MARK,  /* ends when it is due */
    SIM_TASK_RUN,   /* uses an engine for its cost */
    SIM_TASK_AFTER, /* ends when work `after` of its context has */
    SIM_TASK_HOST,  /* ends when its process says so */
};

/* How it stands to other streams of its context (CUDA's legacy default stream). */
enum sim_task_order {
    SIM_ORDER_FREE,     /* of a stream that waits for no other */
    SIM_ORDER_BLOCKING, /* after earlier work of the legacy stream */
    SIM_ORDER_LEGACY,   /* after all earlier work but that of free streams */
};

enum sim_task_state { SIM_TASK_QUEUED, SIM_TASK_DUE, SIM_TASK_DONE };

struct sim_task {
    uint64_t cost_ns; /* RUN: what is left of it */
    uint64_t after;
    uint64_t ended_ns;
    uint32_t stream; /* below SIM_TASK_STREAMS; works of one end in their order */
    uint8_t kind, engine, order, state;
    uint8_t sms;     /* per cent; works of one context that fit run together */
    int8_t priority; /* smaller goes first */
    uint8_t pad[2];
};

/* What a context has submitted.  Works are numbered from 1. */
struct sim_task_slot {
    uint64_t birth;   /* 0: free */
    uint32_t user;    /* its process's slot in the ledger of memory */
    uint32_t streams; /* that have work which has not ended */
    uint64_t first, next;
    uint64_t submitted, left_ns; /* of SMs */
    uint64_t busy_ns;            /* with switching to it */
    uint32_t changed;
    uint32_t ready[SIM_ENGINES];
    uint16_t ready_at[SIM_ENGINES][SIM_TASK_READY]; /* places in `work` */
    uint16_t pending[SIM_TASK_STREAMS];
    struct sim_task work[SIM_TASK_DEPTH];
};

struct sim_task_engine {
    uint32_t slot; /* of the context that has it, and 1; 0: none yet */
    uint32_t contended;
    uint64_t slice_end_ns, switched_ns; /* it does nothing until `switched` */
};

/* A sample belongs to one context, even if others worked in its time. */
struct sim_task_sample {
    uint64_t end_ns;  /* a multiple of SIM_TASK_SAMPLE_NS; 0: none yet */
    uint64_t birth;   /* of the context that had the SMs; 0: none */
    uint64_t busy_ns; /* of its time, for any context */
};

struct sim_device {
    uint32_t magic, pad;
    union {
        pthread_mutex_t lock; /* robust, of several processes */
        uint8_t room[64];
    };
    uint64_t slice_ns, switch_ns, handover_ns;
    uint64_t now_ns, busy_ns, reaped_ns, births;
    uint64_t active[SIM_TASK_SLOTS / 64]; /* slots that have work */
    struct sim_task_engine engine[SIM_ENGINES];
    uint64_t sampling_ns;                            /* busy so long since the last sample */
    struct sim_task_sample sample[SIM_TASK_SAMPLES]; /* by their number, from the start of the clock */
    struct sim_task_slot slot[SIM_TASK_SLOTS];
};

#define SIM_DEVICE_MAGIC 0x42484457u

/* Make it a device without work; `device` is zeros.  The lock is left alone. */
void sim_task_init(struct sim_device *device);

/* Whatever stands there becomes consistent, and no moment of its past is later than now: after
 * an owner of the lock has died, or in a copy that was taken without it. */
void sim_task_repair(struct sim_device *device, uint64_t now_ns);

/* A record that is ahead of the clock is set back to it: a job wrote that, and it would stand
 * still until then. */
void sim_task_catch(struct sim_device *device, uint64_t now_ns);

/* Bring it up to `now_ns`; earlier than before is nothing. */
void sim_task_advance(struct sim_device *device, uint64_t now_ns);

/* A slot for a context of this process (its slot in the ledger of memory);
 * SIM_TASK_SLOTS when all are taken. */
uint32_t sim_task_enter(struct sim_device *device, uint32_t user);
/* Its work that has not ended is dropped. */
void sim_task_leave(struct sim_device *device, uint32_t slot);

/* Append a work, of which kind to priority are read.  Its number; 0: there is no room. */
uint64_t sim_task_submit(struct sim_device *device, uint32_t slot, const struct sim_task *work);

/* Has it ended?  Also true of what is so old that its record was used again. */
bool sim_task_ended(const struct sim_task_slot *slot, uint64_t number);

/* Behind the last work that was submitted, from `first` on; `first` where there can be none. */
uint64_t sim_task_end(const struct sim_task_slot *slot, uint64_t first);

/* A HOST work that was due has been carried out. */
void sim_task_finish(struct sim_device *device, uint32_t slot, uint64_t number);

/* The first HOST work from `number` on that is due; 0: none. */
uint64_t sim_task_find_due(const struct sim_task_slot *slot, uint64_t number);

/* No sooner than then has `number` ended, or is a HOST work due.  UINT64_MAX:
 * it waits for a HOST work.  Others that come make it later; others that leave may make it
 * sooner, by a slice at most. */
uint64_t sim_task_earliest(const struct sim_device *device, uint32_t slot, uint64_t number);

static inline struct sim_task *
sim_task_at(struct sim_task_slot *slot, uint64_t number)
{
    return &slot->work[number % SIM_TASK_DEPTH];
}

#endif
