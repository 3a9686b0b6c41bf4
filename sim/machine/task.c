#include "sim/machine/task.h"

#include <stddef.h>
#include <string.h>

#define NO_CONTEXT SIM_TASK_SLOTS
#define STEPS_MAX (1u << 18) /* of one look: more only with nonsense in the record */

/* Of a record that others write, with the lock or without: what is a place or a count is what was
 * looked at. */
#define READ_ONCE(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

static uint64_t
task_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool
task_is_active(const struct sim_device *device, uint32_t slot)
{
    return (device->active[slot / 64] >> slot % 64 & 1) != 0;
}

static void
task_set_active(struct sim_device *device, uint32_t slot, bool active)
{
    uint64_t bit = 1ull << slot % 64;

    if (active)
        device->active[slot / 64] |= bit;
    else
        device->active[slot / 64] &= ~bit;
}

/* ---- works of one context: what may run ---- */

bool
sim_task_ended(const struct sim_task_slot *slot, uint64_t number)
{
    return number < slot->first || number + SIM_TASK_DEPTH < slot->next
           || (number < slot->next && slot->work[number % SIM_TASK_DEPTH].state == SIM_TASK_DONE);
}

static void
task_end_work(struct sim_task_slot *slot, struct sim_task *work, uint64_t now_ns)
{
    uint16_t *pending = &slot->pending[work->stream % SIM_TASK_STREAMS];

    work->state = SIM_TASK_DONE;
    work->ended_ns = now_ns;
    slot->changed = 1;
    if (*pending > 0 && --*pending == 0 && slot->streams > 0)
        slot->streams--;
}

uint64_t
sim_task_end(const struct sim_task_slot *slot, uint64_t first)
{
    uint64_t next = READ_ONCE(slot->next);

    return next > first && next - first <= SIM_TASK_DEPTH ? next : first;
}

/* By priority, and then by age: what does not fit in is the last. */
static void
task_add_ready(struct sim_task_slot *slot, uint64_t number)
{
    const struct sim_task *work = sim_task_at(slot, number);
    uint32_t engine = READ_ONCE(work->engine) % SIM_ENGINES;
    uint32_t count = READ_ONCE(slot->ready[engine]), at;
    uint16_t *ready = slot->ready_at[engine];

    count = count < SIM_TASK_READY ? count : SIM_TASK_READY;
    at = count;
    if (at == SIM_TASK_READY && sim_task_at(slot, READ_ONCE(ready[--at]))->priority <= work->priority)
        return;
    for (; at > 0 && sim_task_at(slot, READ_ONCE(ready[at - 1]))->priority > work->priority; at--)
        ready[at] = ready[at - 1];
    ready[at] = (uint16_t)(number % SIM_TASK_DEPTH);
    slot->ready[engine] = count < SIM_TASK_READY ? count + 1 : count;
}

/* Nothing holds the work back.  True when it ended at once. */
static bool
task_begin_work(struct sim_task_slot *slot, uint64_t number, uint64_t now_ns)
{
    struct sim_task *work = sim_task_at(slot, number);
    bool ends = false;

    switch ((enum sim_task_kind)work->kind) {
    case SIM_TASK_MARK:
        ends = true;
        break;
    case SIM_TASK_AFTER:
        ends = sim_task_ended(slot, work->after);
        break;
    case SIM_TASK_HOST:
        work->state = SIM_TASK_DUE;
        break;
    case SIM_TASK_RUN:
    default:
        ends = work->cost_ns == 0;
        if (!ends)
            task_add_ready(slot, number);
    }
    if (ends)
        task_end_work(slot, work, now_ns);
    return ends;
}

/* What earlier works that have not ended hold back. */
struct held {
    uint64_t stream[SIM_TASK_STREAMS / 64];
    uint32_t streams;
    bool legacy, blocking;
};

static bool
task_is_held(const struct held *held, const struct sim_task *work)
{
    uint32_t stream = work->stream % SIM_TASK_STREAMS;

    return (held->stream[stream / 64] >> stream % 64 & 1) != 0
           || (work->order == SIM_ORDER_LEGACY && held->blocking)
           || (work->order != SIM_ORDER_FREE && held->legacy);
}

static void
task_hold(struct held *held, const struct sim_task *work)
{
    uint32_t stream = work->stream % SIM_TASK_STREAMS;
    uint64_t bit = 1ull << stream % 64;

    held->streams += (held->stream[stream / 64] & bit) == 0;
    held->stream[stream / 64] |= bit;
    held->legacy = held->legacy || work->order == SIM_ORDER_LEGACY;
    held->blocking = held->blocking || work->order != SIM_ORDER_FREE;
}

/* Find what may run now.  Works only ever wait for earlier ones, so one pass is enough;
 * it stops when every stream is known to wait. */
static void
task_look(struct sim_task_slot *slot, uint64_t now_ns)
{
    uint64_t first = READ_ONCE(slot->first), end = sim_task_end(slot, first);
    struct held held = { 0 };

    slot->changed = 0;
    memset(slot->ready, 0, sizeof(slot->ready));
    for (uint64_t number = first; number < end; number++) {
        struct sim_task *work = sim_task_at(slot, number);

        if (work->state == SIM_TASK_DONE
            || (!task_is_held(&held, work) && task_begin_work(slot, number, now_ns))) {
            slot->first += number == slot->first;
            continue;
        }
        task_hold(&held, work);
        if (held.streams >= slot->streams)
            break;
    }
    slot->changed = 0;
}

/* ---- which context has an engine ---- */

/* The context after `slot` that has something for the engine; NO_CONTEXT: none but itself. */
static uint32_t
task_next_ready(const struct sim_device *device, uint32_t engine, uint32_t slot)
{
    uint32_t start = slot == NO_CONTEXT ? SIM_TASK_SLOTS - 1 : slot;

    for (uint32_t i = 1; i <= SIM_TASK_SLOTS; i++) {
        uint32_t other = (start + i) % SIM_TASK_SLOTS;

        if (other % 64 == 0 && device->active[other / 64] == 0)
            i += 63; /* none in this word */
        else if (other != slot && task_is_active(device, other) && device->slot[other].ready[engine] > 0)
            return other;
    }
    return NO_CONTEXT;
}

static void
task_give_engine(struct sim_device *device, uint32_t engine, uint32_t slot, uint64_t cost_ns)
{
    struct sim_task_engine *e = &device->engine[engine];

    if (engine != SIM_ENGINE_COMPUTE)
        cost_ns = 0;
    e->slot = slot + 1;
    e->contended = 1; /* until its slice ends and none waits */
    e->switched_ns = device->now_ns + cost_ns;
    e->slice_end_ns = e->switched_ns + device->slice_ns;
}

/* A context that works alone keeps its rhythm: one that comes then waits for the slice's end. */
static void
task_contend(struct sim_device *device, struct sim_task_engine *engine)
{
    uint64_t slice_ns = READ_ONCE(device->slice_ns);
    uint64_t late = device->now_ns - engine->slice_end_ns;

    if (engine->contended == 0 && device->now_ns > engine->slice_end_ns && slice_ns > 0)
        engine->slice_end_ns += (late + slice_ns - 1) / slice_ns * slice_ns;
    engine->contended = 1;
}

static void
task_choose(struct sim_device *device, uint32_t engine)
{
    struct sim_task_engine *e = &device->engine[engine];
    uint32_t holder = READ_ONCE(e->slot), other;
    uint32_t current = holder == 0 ? NO_CONTEXT : (holder - 1) % SIM_TASK_SLOTS;
    bool has_work =
        current != NO_CONTEXT && task_is_active(device, current) && device->slot[current].ready[engine] > 0;

    if (e->switched_ns > device->now_ns)
        return;
    other = task_next_ready(device, engine, current);
    if (other == NO_CONTEXT) {
        e->contended = 0;
    } else if (!has_work) {
        task_give_engine(device, engine, other, current == NO_CONTEXT ? 0 : device->handover_ns);
    } else {
        task_contend(device, e);
        if (device->now_ns >= e->slice_end_ns)
            task_give_engine(device, engine, other, device->switch_ns);
    }
}

/* ---- running ---- */

static struct sim_task_slot *
task_runs_on(struct sim_device *device, uint32_t engine)
{
    const struct sim_task_engine *e = &device->engine[engine];
    uint32_t holder = READ_ONCE(e->slot), slot = (holder - 1) % SIM_TASK_SLOTS;

    if (holder == 0 || e->switched_ns > device->now_ns || !task_is_active(device, slot)
        || device->slot[slot].ready[engine] == 0)
        return NULL;
    return &device->slot[slot];
}

/* Call `visit` for what runs: of SM work all that fits, of copies the first. */
static void
task_each_running(struct sim_task_slot *slot, uint32_t engine,
                  void (*visit)(struct sim_task *work, void *self), void *self)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < slot->ready[engine] && i < SIM_TASK_READY; i++) {
        struct sim_task *work = &slot->work[slot->ready_at[engine][i] % SIM_TASK_DEPTH];

        if (i > 0 && (engine != SIM_ENGINE_COMPUTE || used + work->sms > SIM_TASK_ALL_SMS))
            continue;
        used += work->sms;
        visit(work, self);
    }
}

static void
task_take_least(struct sim_task *work, void *self)
{
    uint64_t *cost_ns = self;

    *cost_ns = task_least(*cost_ns, work->cost_ns);
}

struct task_progress {
    struct sim_task_slot *slot;
    uint64_t past_ns, now_ns;
};

static void
task_advance(struct sim_task *work, void *self)
{
    const struct task_progress *p = self;
    uint64_t past = task_least(p->past_ns, work->cost_ns);

    work->cost_ns -= past;
    if (work->engine == SIM_ENGINE_COMPUTE)
        p->slot->left_ns -= task_least(past, p->slot->left_ns);
    if (work->cost_ns == 0)
        task_end_work(p->slot, work, p->now_ns);
}

static uint64_t
task_next_event(struct sim_device *device, uint64_t until_ns)
{
    uint64_t next = until_ns;

    for (uint32_t i = 0; i < SIM_ENGINES; i++) {
        const struct sim_task_engine *engine = &device->engine[i];
        struct sim_task_slot *slot = task_runs_on(device, i);
        uint64_t cost_ns = UINT64_MAX - device->now_ns;

        if (engine->switched_ns > device->now_ns)
            next = task_least(next, engine->switched_ns);
        if (slot == NULL)
            continue;
        task_each_running(slot, i, task_take_least, &cost_ns);
        next = task_least(next, device->now_ns + cost_ns);
        if (engine->contended != 0 && engine->slice_end_ns > device->now_ns)
            next = task_least(next, engine->slice_end_ns);
    }
    return next;
}

/* Take the samples that end until then; all the while the SMs are those of `birth`. */
static void
task_sample(struct sim_device *device, uint64_t until_ns, uint64_t birth)
{
    uint64_t from_ns = device->now_ns, first = until_ns / SIM_TASK_SAMPLE_NS;

    first = first > SIM_TASK_SAMPLES ? (first - SIM_TASK_SAMPLES) * SIM_TASK_SAMPLE_NS : 0;
    if (from_ns < first) { /* the others would be written over */
        from_ns = first;
        device->sampling_ns = 0;
    }
    while (from_ns < until_ns) {
        uint64_t number = from_ns / SIM_TASK_SAMPLE_NS + 1;
        uint64_t end_ns = number * SIM_TASK_SAMPLE_NS;

        device->sampling_ns += birth != 0 ? task_least(end_ns, until_ns) - from_ns : 0;
        from_ns = task_least(end_ns, until_ns);
        if (from_ns < end_ns)
            break;
        device->sample[number % SIM_TASK_SAMPLES] =
            (struct sim_task_sample){ end_ns, birth, device->sampling_ns };
        device->sampling_ns = 0;
    }
}

/* A context has the SMs also while they are switched to it. */
static void
task_note_busy(struct sim_device *device, uint64_t past_ns)
{
    const struct sim_task_engine *engine = &device->engine[SIM_ENGINE_COMPUTE];
    struct sim_task_slot *slot = &device->slot[(engine->slot - 1) % SIM_TASK_SLOTS];
    bool busy = task_runs_on(device, SIM_ENGINE_COMPUTE) != NULL || engine->switched_ns > device->now_ns;

    task_sample(device, device->now_ns + past_ns, busy ? slot->birth : 0);
    if (!busy)
        return;
    device->busy_ns += past_ns;
    slot->busy_ns += past_ns;
}

static void
task_run_until(struct sim_device *device, uint64_t next_ns)
{
    uint64_t past_ns = next_ns - device->now_ns;

    for (uint32_t i = 0; i < SIM_ENGINES; i++) {
        struct sim_task_slot *slot = task_runs_on(device, i);
        struct task_progress p = { slot, past_ns, next_ns };

        if (i == SIM_ENGINE_COMPUTE)
            task_note_busy(device, past_ns);
        if (slot == NULL)
            continue;
        task_each_running(slot, i, task_advance, &p);
    }
    device->now_ns = next_ns;
}

static void
task_settle(struct sim_device *device)
{
    for (uint32_t word = 0; word < SIM_TASK_SLOTS / 64; word++)
        for (uint64_t bits = device->active[word]; bits != 0; bits &= bits - 1) {
            uint32_t at = word * 64 + (uint32_t)__builtin_ctzll(bits);
            struct sim_task_slot *slot = &device->slot[at];

            if (slot->changed != 0)
                task_look(slot, device->now_ns);
            if (slot->first == slot->next)
                task_set_active(device, at, false);
        }
    for (uint32_t i = 0; i < SIM_ENGINES; i++)
        task_choose(device, i);
}

void
sim_task_advance(struct sim_device *device, uint64_t now_ns)
{
    task_settle(device);
    for (uint32_t step = 0; device->now_ns < now_ns && step < STEPS_MAX; step++) {
        task_run_until(device, task_next_event(device, now_ns));
        task_settle(device);
    }
    if (device->now_ns < now_ns)
        device->now_ns = now_ns;
}

/* ---- contexts ---- */

void
sim_task_init(struct sim_device *device)
{
    device->slice_ns = SIM_TASK_SLICE_NS;
    device->switch_ns = SIM_TASK_SWITCH_NS;
    device->handover_ns = SIM_TASK_HANDOVER_NS;
    device->magic = SIM_DEVICE_MAGIC;
}

static void
task_repair_slot(struct sim_task_slot *slot)
{
    slot->streams = 0;
    slot->left_ns = 0;
    slot->changed = 1;
    memset(slot->pending, 0, sizeof(slot->pending));
    memset(slot->ready, 0, sizeof(slot->ready));
    if (slot->first == 0 || slot->next < slot->first || slot->next - slot->first > SIM_TASK_DEPTH)
        slot->first = slot->next = slot->next == 0 ? 1 : slot->next;
    for (uint64_t number = slot->first; number < slot->next; number++) {
        const struct sim_task *work = sim_task_at(slot, number);

        if (work->state == SIM_TASK_DONE)
            continue;
        slot->streams += slot->pending[work->stream % SIM_TASK_STREAMS]++ == 0;
        if (work->engine == SIM_ENGINE_COMPUTE && work->kind == SIM_TASK_RUN)
            slot->left_ns += work->cost_ns;
    }
}

void
sim_task_catch(struct sim_device *device, uint64_t now_ns)
{
    device->now_ns = task_least(device->now_ns, now_ns);
}

void
sim_task_repair(struct sim_device *device, uint64_t now_ns)
{
    sim_task_catch(device, now_ns);
    device->busy_ns = task_least(device->busy_ns, device->now_ns);
    for (uint32_t i = 0; i < SIM_TASK_SLOTS; i++) {
        if (device->slot[i].birth != 0)
            task_repair_slot(&device->slot[i]);
        device->slot[i].busy_ns = task_least(device->slot[i].busy_ns, device->now_ns);
        task_set_active(device, i,
                        device->slot[i].birth != 0 && device->slot[i].first < device->slot[i].next);
    }
}

uint32_t
sim_task_enter(struct sim_device *device, uint32_t user)
{
    uint32_t at = 0;
    struct sim_task_slot *slot;

    while (at < SIM_TASK_SLOTS && device->slot[at].birth != 0)
        at++;
    if (at == SIM_TASK_SLOTS)
        return at;
    slot = &device->slot[at];
    task_set_active(device, at, false);
    memset(slot, 0, offsetof(struct sim_task_slot, work));
    slot->user = user;
    slot->first = slot->next = 1;
    slot->birth = ++device->births;
    return at;
}

void
sim_task_leave(struct sim_device *device, uint32_t slot)
{
    task_set_active(device, slot, false);
    device->slot[slot].birth = 0;
    device->slot[slot].first = device->slot[slot].next;
}

uint64_t
sim_task_submit(struct sim_device *device, uint32_t at, const struct sim_task *work)
{
    struct sim_task_slot *slot = &device->slot[at];
    struct sim_task *added = sim_task_at(slot, slot->next);

    if (slot->next - slot->first >= SIM_TASK_DEPTH)
        return 0;
    *added = *work;
    added->state = SIM_TASK_QUEUED;
    added->stream = work->stream % SIM_TASK_STREAMS;
    if (work->kind == SIM_TASK_RUN && work->engine == SIM_ENGINE_COMPUTE) {
        slot->submitted++;
        slot->left_ns += work->cost_ns;
    }
    slot->streams += slot->pending[added->stream]++ == 0;
    slot->changed = 1;
    task_set_active(device, at, true);
    return slot->next++;
}

void
sim_task_finish(struct sim_device *device, uint32_t at, uint64_t number)
{
    struct sim_task_slot *slot = &device->slot[at];
    struct sim_task *work = sim_task_at(slot, number);

    if (number >= slot->first && number < slot->next && work->state == SIM_TASK_DUE)
        task_end_work(slot, work, device->now_ns);
}

uint64_t
sim_task_find_due(const struct sim_task_slot *slot, uint64_t number)
{
    uint64_t first = READ_ONCE(slot->first), end = sim_task_end(slot, first);

    for (number = number < first ? first : number; number < end; number++)
        if (slot->work[number % SIM_TASK_DEPTH].state == SIM_TASK_DUE)
            return number;
    return 0;
}

/* ---- when ---- */

/* What the stream of `number` still has to do up to it. */
struct ahead {
    const struct sim_task *head; /* the first that has not ended */
    uint64_t cost_ns;
    bool host; /* a HOST work is before it */
};

static struct ahead
task_look_ahead(const struct sim_task_slot *slot, uint64_t number)
{
    const struct sim_task *wanted = &slot->work[number % SIM_TASK_DEPTH];
    uint64_t first = READ_ONCE(slot->first), end = sim_task_end(slot, first);
    struct ahead ahead = { 0 };

    for (uint64_t n = first; n <= number && n < end; n++) {
        const struct sim_task *work = &slot->work[n % SIM_TASK_DEPTH];

        if (work->state == SIM_TASK_DONE || work->stream != wanted->stream)
            continue;
        if (ahead.head == NULL)
            ahead.head = work;
        ahead.host = ahead.host || (work->kind == SIM_TASK_HOST && n < number);
        ahead.cost_ns += work->kind == SIM_TASK_RUN ? work->cost_ns : 0;
    }
    return ahead;
}

static void
task_note_running(struct sim_task *work, void *self)
{
    const struct sim_task **wanted = self;

    if (*wanted == work)
        *wanted = NULL;
}

/* The SMs are another context's: they pass on at the end of its slice, or of its work. */
static uint64_t
task_wait_for_slice(const struct sim_device *device)
{
    const struct sim_task_engine *engine = &device->engine[SIM_ENGINE_COMPUTE];
    const struct sim_task_slot *current = &device->slot[(engine->slot - 1) % SIM_TASK_SLOTS];
    uint64_t end = task_least(engine->slice_end_ns, device->now_ns + current->left_ns);

    if (engine->switched_ns > device->now_ns)
        return engine->switched_ns - device->now_ns;
    return engine->slot == 0 || end < device->now_ns ? 0 : end - device->now_ns;
}

uint64_t
sim_task_earliest(const struct sim_device *device, uint32_t at, uint64_t number)
{
    const struct sim_task_slot *slot = &device->slot[at];
    struct ahead ahead = task_look_ahead(slot, number);
    const struct sim_task *waits = ahead.head;
    const struct sim_task_engine *compute = &device->engine[SIM_ENGINE_COMPUTE];
    uint64_t next_ns = UINT64_MAX;

    if (ahead.host
        || (ahead.head != NULL && ahead.head->kind == SIM_TASK_HOST && ahead.head->state == SIM_TASK_DUE))
        return UINT64_MAX;
    if (waits == NULL)
        return device->now_ns;
    if (compute->slot != at + 1 || compute->switched_ns > device->now_ns)
        return waits->kind == SIM_TASK_RUN && waits->engine != SIM_ENGINE_COMPUTE
                   ? device->now_ns + ahead.cost_ns
                   : device->now_ns + task_wait_for_slice(device) + ahead.cost_ns;
    /* behind what runs now, or running */
    task_each_running((struct sim_task_slot *)slot, SIM_ENGINE_COMPUTE, task_note_running, &waits);
    if (waits == NULL || waits->engine != SIM_ENGINE_COMPUTE)
        return device->now_ns + ahead.cost_ns;
    task_each_running((struct sim_task_slot *)slot, SIM_ENGINE_COMPUTE, task_take_least, &next_ns);
    return device->now_ns + (next_ns == UINT64_MAX ? 0 : next_ns) + ahead.cost_ns;
}
