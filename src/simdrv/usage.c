#include "simdrv/usage.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "simdrv/geometry.h"
#include "simdrv/publish.h"
#include "simdrv/session.h"

#define SCAN_LIFE_NS 50000000u
#define INTERVAL_LEAST_NS 100000000u
#define CONTEXTS_MAX 1024
#define WHOLE 15 /* the place of the whole GPU beside those of GI ids 0..14 */

/* How an instance's memory file shows in maps, and its last utilisation. */
struct place {
    uint64_t birth;
    struct sim_mapping file;
    uint64_t asked_ns, cpu_ns;
    unsigned percent;
    bool known;
};

static struct {
    pthread_mutex_t lock;
    uint64_t scanned_ns;
    size_t count;
    struct sim_context context[CONTEXTS_MAX];
    struct place place[SIM_GPUS_MAX][WHOLE + 1];
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
    memset(usage.place, 0, sizeof(usage.place));
    usage.scanned_ns = 0;
    pthread_mutex_unlock(&usage.lock);
}

static void
scan(bool fresh)
{
    uint64_t now = sim_boot_ns();

    if (!fresh && usage.scanned_ns != 0 && now - usage.scanned_ns < SCAN_LIFE_NS)
        return;
    usage.count = sim_contexts_scan(usage.context, CONTEXTS_MAX);
    usage.scanned_ns = now;
}

/* The place of an instance; NULL when its memory file is not there. */
static struct place *
find_place(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    struct place *place = &usage.place[gpu->minor % SIM_GPUS_MAX][gi == NULL ? WHOLE : gi->id % WHOLE];
    uint64_t birth = gi == NULL ? gpu->birth : gi->birth;
    char path[SIM_PATH_MAX];

    if (place->known && place->birth == birth)
        return place;
    memset(place, 0, sizeof(*place));
    place->birth = birth;
    place->known = sim_session_memory_path(gpu, gi, path) && sim_mapping_find(path, &place->file);
    return place->known ? place : NULL;
}

static uint32_t
first_ci(const struct sim_gi *gi)
{
    for (unsigned i = 0; gi != NULL && i < SIM_CIS_MAX; i++)
        if (gi->ci[i].birth != 0)
            return gi->ci[i].id;
    return SIM_NO_ID;
}

static void
add_users(const struct sim_gpu *gpu, const struct sim_gi *gi, struct sim_users *users)
{
    const struct place *place = find_place(gpu, gi);

    for (size_t i = 0; place != NULL && i < usage.count && users->count < SIM_USERS_MAX; i++) {
        const struct sim_context *context = &usage.context[i];

        if (context->file.device != place->file.device || context->file.inode != place->file.inode)
            continue;
        users->user[users->count++] = (struct sim_user){
            .context = *context, .gi = gi == NULL ? SIM_NO_ID : gi->id, .ci = first_ci(gi)
        };
    }
}

void
sim_users_find(const struct sim_gpu *gpu, const struct sim_gi *gi, bool fresh,
               struct sim_users *ret_users)
{
    ret_users->count = 0;
    pthread_mutex_lock(&usage.lock);
    scan(fresh);
    if (gi != NULL || gpu->mig_current == 0)
        add_users(gpu, gi, ret_users);
    for (unsigned i = 0; gi == NULL && i < SIM_GIS_MAX; i++)
        if (gpu->gi[i].birth != 0)
            add_users(gpu, &gpu->gi[i], ret_users);
    pthread_mutex_unlock(&usage.lock);
}

bool
sim_users_any(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    struct sim_users users;

    sim_users_find(gpu, gi, true, &users);
    return users.count > 0;
}

uint64_t
sim_used_bytes(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    uint64_t used = 0, total = sim_memory_bytes(gpu, gi);
    struct sim_users users;

    sim_users_find(gpu, gi, false, &users);
    for (size_t i = 0; i < users.count; i++)
        used += users.user[i].context.bytes;
    return used < total ? used : total;
}

static uint64_t
sum_cpu(const struct sim_users *users)
{
    uint64_t cpu_ns = 0;

    for (size_t i = 0; i < users->count; i++)
        cpu_ns += users->user[i].context.cpu_ns;
    return cpu_ns;
}

uint64_t
sim_cpu_ns(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    struct sim_users users;

    sim_users_find(gpu, gi, false, &users);
    return sum_cpu(&users);
}

static unsigned
share(uint64_t cpu_ns, uint64_t span_ns)
{
    uint64_t percent = span_ns == 0 ? 0 : cpu_ns * 100 / span_ns;

    return percent > 100 ? 100 : (unsigned)percent;
}

/* Share since the oldest of the processes started. */
static unsigned
share_of_life(const struct sim_users *users, uint64_t cpu_ns, uint64_t now)
{
    uint64_t oldest = now;

    for (size_t i = 0; i < users->count; i++)
        if (users->user[i].context.started_ns < oldest)
            oldest = users->user[i].context.started_ns;
    return share(cpu_ns, now - oldest);
}

static void
update(struct place *place, const struct sim_users *users)
{
    uint64_t now = sim_boot_ns(), cpu_ns = sum_cpu(users);
    uint64_t grown = cpu_ns > place->cpu_ns ? cpu_ns - place->cpu_ns : 0;

    if (place->asked_ns != 0 && now - place->asked_ns < INTERVAL_LEAST_NS)
        return;
    place->percent = place->asked_ns == 0 ? share_of_life(users, cpu_ns, now)
                                          : share(grown, now - place->asked_ns);
    place->asked_ns = now;
    place->cpu_ns = cpu_ns;
}

unsigned
sim_utilization(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    struct place *place = &usage.place[gpu->minor % SIM_GPUS_MAX][gi == NULL ? WHOLE : gi->id % WHOLE];
    struct sim_users users;
    unsigned percent;

    sim_users_find(gpu, gi, false, &users);
    pthread_mutex_lock(&usage.lock);
    update(place, &users);
    percent = place->percent;
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
