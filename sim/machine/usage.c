#include "sim/machine/usage.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/machine/folder.h"
#include "sim/machine/gauge.h"
#include "sim/machine/geometry.h"
#include "sim/machine/meter.h"
#include "sim/machine/publish.h"
#include "sim/machine/queue.h"
#include "sim/machine/session.h"

#define SCAN_LIFE_NS 50000000u
#define INTERVAL_LEAST_NS 100000000u
#define CONTEXTS_LEAST 1024
#define CONTEXTS_MAX (64 * 1024) /* past any limit on a job's processes */
#define WHOLE 15                 /* the entry of the whole GPU beside those of GI ids 0..14 */

/* How an instance's memory file shows in maps, and its last utilisation. */
struct usage_entry {
    uint64_t birth;
    struct sim_mapping file;
    uint64_t asked_ns, cpu_ns;
    unsigned percent;
    bool known;
};

static struct {
    pthread_mutex_t lock;
    uint64_t scanned_ns;
    size_t count, room;
    struct sim_context *context;
    struct sim_meter_reading reading; /* of the instance that is visited */
    struct usage_entry entry[SIM_GPUS_MAX][WHOLE + 1];
} usage = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint64_t
sim_boot_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void
sim_usage_forget(void)
{
    pthread_mutex_lock(&usage.lock);
    memset(usage.entry, 0, sizeof(usage.entry));
    free(usage.context);
    usage.context = NULL;
    usage.room = usage.count = 0;
    usage.scanned_ns = 0;
    pthread_mutex_unlock(&usage.lock);
}

/* Make the table larger; false when it is as large as it may be. */
static bool
usage_grow(void)
{
    size_t room = usage.room == 0 ? CONTEXTS_LEAST : usage.room * 2;
    struct sim_context *context;

    if (room > CONTEXTS_MAX)
        return false;
    context = realloc(usage.context, room * sizeof(*context));
    if (context == NULL)
        return false;
    usage.context = context;
    usage.room = room;
    return true;
}

/* The memory files that are known. */
static size_t
usage_list_files(struct sim_mapping files[SIM_GPUS_MAX * (WHOLE + 1)])
{
    size_t count = 0;

    for (unsigned gpu = 0; gpu < SIM_GPUS_MAX; gpu++)
        for (unsigned at = 0; at <= WHOLE; at++)
            if (usage.entry[gpu][at].known)
                files[count++] = usage.entry[gpu][at].file;
    return count;
}

/* A full table may have left some out: a tenant with many processes must not
 * hide those of another. */
static void
usage_scan(bool fresh)
{
    struct sim_mapping files[SIM_GPUS_MAX * (WHOLE + 1)];
    size_t file_count = usage_list_files(files);
    uint64_t now = sim_boot_ns();

    if (!fresh && usage.scanned_ns != 0 && now - usage.scanned_ns < SCAN_LIFE_NS)
        return;
    if (usage.room == 0 && !usage_grow())
        return;
    do
        usage.count = sim_contexts_scan(files, file_count, usage.context, usage.room);
    while (usage.count == usage.room && usage_grow());
    usage.scanned_ns = sim_boot_ns();
}

/* The entry of an instance; NULL when its memory file is not there.  What was scanned before it
 * was known shows nothing of it. */
static struct usage_entry *
usage_find_entry(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    struct usage_entry *entry = &usage.entry[gpu->minor % SIM_GPUS_MAX][gi == NULL ? WHOLE : gi->id % WHOLE];
    uint64_t birth = gi == NULL ? gpu->birth : gi->birth;
    char path[SIM_PATH_MAX];

    if (entry->known && entry->birth == birth)
        return entry;
    memset(entry, 0, sizeof(*entry));
    entry->birth = birth;
    entry->known = sim_folder_memory_path(gpu, gi, path) && sim_mapping_find(path, &entry->file);
    if (entry->known)
        usage.scanned_ns = 0;
    return entry->known ? entry : NULL;
}

static uint32_t
usage_first_ci(const struct sim_gi *gi)
{
    for (unsigned i = 0; gi != NULL && i < SIM_CIS_MAX; i++)
        if (gi->ci[i].birth != 0)
            return gi->ci[i].id;
    return SIM_NO_ID;
}

struct visitor {
    void (*visit)(void *self, const struct sim_user *user);
    void *self;
};

/* The meter of an instance's ledger; NULL where its files are not to be seen, as in a job
 * that was given none. */
static struct sim_meter *
usage_open_meter(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    char folder[SIM_PATH_MAX];

    return sim_folder_vram_path(gpu, gi, folder) ? sim_meter_open(folder, gpu, sim_memory_bytes(gpu, gi))
                                                 : NULL;
}

/* Once for all users of an instance: a job has as many processes as it likes. */
static struct sim_meter *
usage_look(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    struct sim_meter *meter = usage_open_meter(gpu, gi);

    usage.reading.users = 0;
    if (meter != NULL)
        sim_meter_read(meter, &usage.reading);
    return meter;
}

static struct sim_gauge *
usage_open_gauge(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    char folder[SIM_PATH_MAX];

    return sim_folder_vram_path(gpu, gi, folder) ? sim_gauge_open(folder) : NULL;
}

/* A moment that a gauge counts from, on the clock of scans. */
static uint64_t
usage_boot_ns_of(const struct sim_gauge *gauge)
{
    return sim_boot_ns() - (sim_queue_now() - sim_gauge_at(gauge));
}

/* What stands in the ledger and in the record of work for the process: instead of CPU time,
 * how long the GPU worked for it, if ever, and up to when. */
static void
usage_measure(struct sim_user *user, const struct sim_gauge *gauge)
{
    user->context.bytes += sim_meter_slot(&usage.reading, user->context.slot);
    if (gauge != NULL && sim_gauge_busy(gauge, user->context.slot, &user->context.cpu_ns))
        user->at_ns = usage_boot_ns_of(gauge);
}

static void
usage_visit_instance(const struct sim_gpu *gpu, const struct sim_gi *gi, const struct visitor *visitor)
{
    const struct usage_entry *entry = usage_find_entry(gpu, gi);
    struct sim_meter *meter = NULL;
    struct sim_gauge *gauge = NULL;
    bool looked = false;

    for (size_t i = 0; entry != NULL && i < usage.count; i++) {
        const struct sim_context *context = &usage.context[i];
        struct sim_user user = { *context, gi == NULL ? SIM_NO_ID : gi->id, usage_first_ci(gi),
                                 usage.scanned_ns, NULL };

        if (context->file.device != entry->file.device || context->file.inode != entry->file.inode)
            continue;
        if (context->slot != 0 && !looked) {
            looked = true;
            meter = usage_look(gpu, gi);
            gauge = usage_open_gauge(gpu, gi);
        }
        if (context->slot != 0 && meter != NULL && sim_meter_is_away(meter, context->slot))
            continue; /* the driver lists it no more */
        if (context->slot != 0)
            usage_measure(&user, gauge);
        user.gauge = context->slot != 0 ? gauge : NULL;
        visitor->visit(visitor->self, &user);
    }
    sim_gauge_close(gauge);
    sim_meter_close(meter);
}

static bool
usage_may_have_users(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    char path[SIM_PATH_MAX];

    return sim_folder_memory_path(gpu, gi, path) && sim_contexts_any(path);
}

/* What is meant: an instance, or with `gi` NULL all on the GPU, of which NULL is the whole. */
static unsigned
usage_list_instances(const struct sim_gpu *gpu, const struct sim_gi *gi,
                     const struct sim_gi *ret_instances[SIM_GIS_MAX + 1])
{
    unsigned count = 0;

    if (gi != NULL || gpu->mig_current == 0)
        ret_instances[count++] = gi;
    for (unsigned i = 0; gi == NULL && i < SIM_GIS_MAX; i++)
        if (gpu->gi[i].birth != 0)
            ret_instances[count++] = &gpu->gi[i];
    return count;
}

uint64_t
sim_users_each(const struct sim_gpu *gpu, const struct sim_gi *gi, bool fresh,
               void (*visit)(void *self, const struct sim_user *user), void *self)
{
    const struct sim_gi *instances[SIM_GIS_MAX + 1];
    unsigned count = usage_list_instances(gpu, gi, instances);
    const struct visitor visitor = { visit, self };
    uint64_t scanned_ns;
    bool any = false;

    for (unsigned i = 0; i < count && !any; i++)
        any = usage_may_have_users(gpu, instances[i]);
    if (!any)
        return sim_boot_ns();
    pthread_mutex_lock(&usage.lock);
    for (unsigned i = 0; i < count; i++)
        (void)usage_find_entry(gpu, instances[i]);
    usage_scan(fresh);
    for (unsigned i = 0; i < count; i++)
        usage_visit_instance(gpu, instances[i], &visitor);
    scanned_ns = usage.scanned_ns;
    pthread_mutex_unlock(&usage.lock);
    return scanned_ns;
}

/* What a device's users amount to. */
struct total {
    uint64_t users, bytes, cpu_ns, oldest_ns, at_ns; /* at: when cpu_ns was so much */
};

static void
usage_add_user(void *self, const struct sim_user *user)
{
    struct total *total = self;

    if (total->users++ == 0 || user->context.started_ns < total->oldest_ns)
        total->oldest_ns = user->context.started_ns;
    total->bytes += user->context.bytes;
    total->cpu_ns += user->context.cpu_ns;
    if (user->at_ns > total->at_ns)
        total->at_ns = user->at_ns;
}

static struct total
usage_sum_users(const struct sim_gpu *gpu, const struct sim_gi *gi, bool fresh)
{
    struct total total = { 0 };
    uint64_t scanned_ns = sim_users_each(gpu, gi, fresh, usage_add_user, &total);

    if (total.users == 0)
        total.at_ns = scanned_ns;
    return total;
}

bool
sim_users_any(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    return usage_sum_users(gpu, gi, true).users > 0;
}

/* What processes mapped, and what the ledger says now. */
static uint64_t
usage_used_on(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    struct sim_meter *meter = usage_open_meter(gpu, gi);
    uint64_t used = meter == NULL ? 0 : sim_meter_used(meter);

    sim_meter_close(meter);
    return used;
}

static void
usage_add_mapped(void *self, const struct sim_user *user)
{
    if (user->context.slot == 0)
        *(uint64_t *)self += user->context.bytes;
}

uint64_t
sim_used_bytes(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    const struct sim_gi *instances[SIM_GIS_MAX + 1];
    unsigned count = usage_list_instances(gpu, gi, instances);
    uint64_t used = 0, total = sim_memory_bytes(gpu, gi);

    sim_users_each(gpu, gi, false, usage_add_mapped, &used);
    for (unsigned i = 0; i < count; i++)
        used += usage_used_on(gpu, instances[i]);
    return used < total ? used : total;
}

uint64_t
sim_cpu_ns(const struct sim_gpu *gpu, const struct sim_gi *gi, uint64_t *ret_now_ns)
{
    struct total total = usage_sum_users(gpu, gi, true);

    *ret_now_ns = total.at_ns;
    return total.cpu_ns;
}

static unsigned
usage_share(uint64_t cpu_ns, uint64_t span_ns)
{
    uint64_t percent = span_ns == 0 ? 0 : cpu_ns * 100 / span_ns;

    return percent > 100 ? 100 : (unsigned)percent;
}

/* At first, the share since the oldest of the processes started. */
static void
usage_update(struct usage_entry *entry, const struct total *total)
{
    uint64_t now = total->at_ns;
    uint64_t grown = total->cpu_ns > entry->cpu_ns ? total->cpu_ns - entry->cpu_ns : 0;

    if (entry->asked_ns != 0 && now < entry->asked_ns + INTERVAL_LEAST_NS)
        return;
    if (entry->asked_ns != 0)
        entry->percent = usage_share(grown, now - entry->asked_ns);
    else
        entry->percent = now > total->oldest_ns ? usage_share(total->cpu_ns, now - total->oldest_ns) : 0;
    entry->asked_ns = now;
    entry->cpu_ns = total->cpu_ns;
}

unsigned
sim_utilization(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    struct usage_entry *entry = &usage.entry[gpu->minor % SIM_GPUS_MAX][gi == NULL ? WHOLE : gi->id % WHOLE];
    struct total total = usage_sum_users(gpu, gi, false);
    unsigned percent;

    pthread_mutex_lock(&usage.lock);
    usage_update(entry, &total);
    percent = entry->percent;
    pthread_mutex_unlock(&usage.lock);
    return percent;
}

unsigned
sim_power_mw(const struct sim_gpu *gpu)
{
    unsigned board_mw = sim_model_at(gpu->model)->board_w * 1000;
    unsigned wanted = board_mw / 100 * (15 + 75 * sim_utilization(gpu, NULL) / 100);

    return wanted < gpu->power_limit_mw ? wanted : gpu->power_limit_mw;
}

unsigned
sim_temperature_c(const struct sim_gpu *gpu)
{
    return 32 + 42 * sim_utilization(gpu, NULL) / 100;
}
