#include "sim/machine/session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/machine/access.h"
#include "sim/machine/control.h"
#include "sim/machine/files.h"
#include "sim/machine/folder.h"
#include "sim/machine/handle.h"
#include "sim/machine/partition.h"
#include "sim/machine/publish.h"
#include "sim/machine/store.h"
#include "sim/machine/usage.h"

#define DEFAULT_DIR "/run/bulkhead-sim"
#define CONTROL_BYTES_MAX 65536

/* How two versions of the control file differ. */
struct stamp {
    struct timespec changed;
    off_t size;
    ino_t inode;
};

static struct {
    pthread_mutex_t lock;
    unsigned references;
    struct sim_store *store;
    struct stamp stamp;
    struct sim_rules rules;
} session = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Held shared by calls that use the store without session.lock, so that the
 * last shutdown does not take it from under them.  Taken after session.lock. */
static pthread_rwlock_t store_use = PTHREAD_RWLOCK_INITIALIZER;

static bool
session_store_acquire(void)
{
    pthread_rwlock_rdlock(&store_use);
    if (session.store != NULL)
        return true;
    pthread_rwlock_unlock(&store_use);
    return false;
}

static void
session_store_release(void)
{
    pthread_rwlock_unlock(&store_use);
}

/* Copy a part of struct sim_state; zeros where there is no store. */
static void
session_store_copy(size_t offset, size_t length, void *ret_copy)
{
    memset(ret_copy, 0, length);
    if (!session_store_acquire())
        return;
    sim_store_read(session.store, offset, length, ret_copy);
    session_store_release();
}

static void
session_store_drop(void)
{
    pthread_rwlock_wrlock(&store_use);
    sim_store_close(session.store);
    session.store = NULL;
    pthread_rwlock_unlock(&store_use);
}

/* The state directory; a program with raised rights does not take it from its
 * environment. */
static const char *
session_state_dir(void)
{
    const char *dir = secure_getenv("BULKHEAD_SIM_STATE");

    return dir != NULL && dir[0] != '\0' && strlen(dir) < SIM_PATH_MAX - 64 ? dir : DEFAULT_DIR;
}

static bool
session_exists(const char *dir, const char *name)
{
    char path[SIM_PATH_MAX];
    struct stat st;

    return sim_path(path, "%s/%s", dir, name) && (stat(path, &st) == 0 || errno == EACCES);
}

static void
session_publish(void)
{
    uint64_t generation = sim_store_generation(session.store);
    uint64_t published = sim_store_published(session.store);

    /* What cannot be written now stays due: the next change tries again. */
    if (published != generation
        && sim_publish(sim_folder.dir, sim_store_current(session.store), published == 0))
        sim_store_set_published(session.store, generation);
}

static nvmlReturn_t
session_end_change(nvmlReturn_t rc)
{
    if (rc == NVML_SUCCESS)
        sim_store_commit(session.store);
    session_publish();
    sim_store_end(session.store);
    return rc;
}

nvmlReturn_t
sim_change_begin(struct sim_state **ret_draft)
{
    nvmlReturn_t rc;

    if (sim_folder.view)
        return NVML_ERROR_NO_PERMISSION;
    if (!session_store_acquire())
        return NVML_ERROR_UNINITIALIZED;
    rc = sim_store_begin(session.store, ret_draft);
    if (rc != NVML_SUCCESS)
        session_store_release(); /* else sim_change_end does */
    return rc;
}

nvmlReturn_t
sim_change_end(nvmlReturn_t rc)
{
    session_end_change(rc);
    session_store_release();
    return rc;
}

void
sim_session_renew(const struct sim_gpu *gpu)
{
    struct sim_state *draft;

    if (geteuid() != 0 || sim_change_begin(&draft) != NVML_SUCCESS)
        return;
    if (draft->gpu[gpu->index].birth == gpu->birth)
        (void)sim_publish_renew(sim_folder.dir, &draft->gpu[gpu->index]);
    (void)sim_change_end(NVML_ERROR_NO_DATA); /* of the state nothing changes */
}

static nvmlReturn_t
session_open_store(void)
{
    struct sim_state *draft;
    nvmlReturn_t rc;

    if (geteuid() != 0)
        return NVML_ERROR_NO_PERMISSION;
    pthread_rwlock_wrlock(&store_use);
    rc = sim_store_open(sim_folder.dir, &session.store);
    pthread_rwlock_unlock(&store_use);
    if (rc != NVML_SUCCESS || sim_store_published(session.store) == sim_store_generation(session.store))
        return rc;
    rc = sim_store_begin(session.store, &draft);
    if (rc == NVML_SUCCESS)
        session_end_change(NVML_ERROR_NO_DATA); /* nothing to commit, but to write out */
    return rc;
}

static nvmlReturn_t
session_open_anew(void)
{
    sim_usage_forget();
    session.stamp = (struct stamp){ 0 };
    memset(&session.rules, 0, sizeof(session.rules));
    if (strcmp(sim_folder.dir, session_state_dir()) != 0)
        snprintf(sim_folder.dir, sizeof(sim_folder.dir), "%s", session_state_dir());
    sim_folder.view = false;
    if (session_exists(sim_folder.dir, "state") || session_exists(sim_folder.dir, "topology"))
        return session_open_store();
    sim_folder.view = session_exists(sim_folder.dir, "view/view");
    return sim_folder.view ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

nvmlReturn_t
sim_session_open(unsigned flags)
{
    nvmlReturn_t rc = NVML_SUCCESS;

    if ((flags & ~7u) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&session.lock);
    if (session.references == 0)
        rc = session_open_anew();
    session.references += rc == NVML_SUCCESS;
    if (session.references == 0)
        session_store_drop();
    pthread_mutex_unlock(&session.lock);
    return rc;
}

nvmlReturn_t
sim_session_close(void)
{
    nvmlReturn_t rc = NVML_SUCCESS;

    pthread_mutex_lock(&session.lock);
    if (session.references == 0)
        rc = NVML_ERROR_UNINITIALIZED;
    else if (--session.references == 0) {
        sim_handle_retire();
        sim_usage_forget();
        session_store_drop();
    }
    pthread_mutex_unlock(&session.lock);
    return rc;
}

/* Take up a changed control file: its rules, and what they do to GPUs.  It is read when no other
 * may change the state: one that read an older file and comes later would undo what the newer one
 * did, and have what happens once happen again. */
static void
session_refresh(void)
{
    struct stat st = { 0 };
    struct stamp stamp = { 0 };
    struct sim_state *draft;
    char path[SIM_PATH_MAX];
    nvmlReturn_t rc;
    char *text;

    if (sim_folder.view || !sim_path(path, "%s/control", sim_folder.dir))
        return;
    if (stat(path, &st) == 0)
        stamp = (struct stamp){ st.st_mtim, st.st_size, st.st_ino };
    if (memcmp(&stamp, &session.stamp, sizeof(stamp)) == 0)
        return;
    session.stamp = stamp;
    rc = sim_store_begin(session.store, &draft);
    text = sim_read_text(path, CONTROL_BYTES_MAX);
    sim_control_parse(text == NULL ? "" : text, &session.rules);
    free(text);
    if (rc == NVML_SUCCESS)
        session_end_change(sim_control_apply(&session.rules, draft) ? NVML_SUCCESS : NVML_ERROR_NO_DATA);
}

void
sim_session_refresh(void)
{
    pthread_mutex_lock(&session.lock);
    if (session.references > 0)
        session_refresh();
    pthread_mutex_unlock(&session.lock);
}

bool
sim_session_rule(unsigned index, struct sim_rule *ret_rule)
{
    if (index >= session.rules.count)
        return false;
    *ret_rule = session.rules.rule[index];
    return true;
}

uint64_t
sim_session_uses(const struct sim_rule *rule)
{
    struct sim_rule_use uses[SIM_RULES_MAX];

    sim_store_read(session.store, offsetof(struct sim_state, rule), sizeof(uses), uses);
    for (unsigned i = 0; i < SIM_RULES_MAX; i++)
        if (uses[i].key == rule->key)
            return uses[i].uses;
    return 0;
}

/* Find the fault for this call and, for a rule with a count, use one up. */
static bool
session_find_fault(const char *function, uint32_t gpu, struct sim_rule *ret_rule)
{
    struct sim_rule_use uses[SIM_RULES_MAX];
    const struct sim_rule *rule;
    struct sim_state *draft;
    bool mine;

    if (session.rules.count == 0)
        return false;
    sim_store_read(session.store, offsetof(struct sim_state, rule), sizeof(uses), uses);
    rule = sim_control_match(&session.rules, function, gpu, uses);
    if (rule == NULL)
        return false;
    *ret_rule = *rule;
    if (rule->count == 0)
        return true;
    if (sim_store_begin(session.store, &draft) != NVML_SUCCESS)
        return false;
    mine = sim_control_use(draft, rule);
    session_end_change(mine ? NVML_SUCCESS : NVML_ERROR_NO_DATA);
    return mine;
}

static nvmlReturn_t
session_suffer(const struct sim_rule *rule)
{
    struct timespec pause = { 3600, 0 };

    if (rule->kind == SIM_RULE_FAIL)
        return (nvmlReturn_t)rule->value;
    if (rule->kind == SIM_RULE_DELAY) {
        pause = (struct timespec){ (time_t)(rule->value / 1000), (long)(rule->value % 1000) * 1000000 };
        while (nanosleep(&pause, &pause) != 0 && errno == EINTR) {
        }
    }
    while (rule->kind == SIM_RULE_HANG)
        nanosleep(&pause, NULL);
    return NVML_SUCCESS;
}

static nvmlReturn_t
session_enter(const char *function, uint32_t gpu)
{
    struct sim_rule rule = { 0 };
    bool ready, fault = false;

    pthread_mutex_lock(&session.lock);
    ready = session.references > 0;
    if (ready && !sim_folder.view) {
        session_refresh();
        fault = session_find_fault(function, gpu, &rule);
    }
    pthread_mutex_unlock(&session.lock);
    if (!ready)
        return NVML_ERROR_UNINITIALIZED;
    return fault ? session_suffer(&rule) : NVML_SUCCESS;
}

nvmlReturn_t
sim_enter(const char *function)
{
    return session_enter(function, SIM_NO_ID);
}

void
sim_session_system(struct sim_system *ret_system)
{
    struct sim_view view;

    memset(ret_system, 0, sizeof(*ret_system));
    if (!sim_folder.view)
        session_store_copy(offsetof(struct sim_state, system), sizeof(*ret_system), ret_system);
    else if (sim_access_read(sim_folder.dir, &view))
        *ret_system = view.system;
}

unsigned
sim_session_gpus(void)
{
    struct sim_system system;
    struct sim_view view;

    if (sim_folder.view)
        return sim_access_read(sim_folder.dir, &view) && sim_access_allowed(&view) ? 1 : 0;
    sim_session_system(&system);
    return system.gpus;
}

nvmlReturn_t
sim_session_gpu(unsigned index, struct sim_gpu *ret_gpu)
{
    struct sim_system system;
    struct sim_view view;

    if (sim_folder.view) {
        if (index != 0)
            return NVML_ERROR_INVALID_ARGUMENT;
        if (!sim_access_read(sim_folder.dir, &view) || !sim_access_allowed(&view))
            return NVML_ERROR_NO_PERMISSION;
        sim_access_narrow(&view);
        *ret_gpu = view.gpu;
        ret_gpu->index = 0;
        return NVML_SUCCESS;
    }
    sim_session_system(&system);
    if (index >= system.gpus)
        return NVML_ERROR_INVALID_ARGUMENT;
    session_store_copy(offsetof(struct sim_state, gpu) + index * sizeof(*ret_gpu), sizeof(*ret_gpu), ret_gpu);
    return NVML_SUCCESS;
}

/* Point the target at the instance that the handle names: false when it is
 * gone. */
static bool
session_find_instance(const struct sim_handle *handle, struct sim_target *target)
{
    for (unsigned i = 0; i < SIM_GIS_MAX; i++)
        if (handle->gi != 0 && target->gpu.gi[i].birth == handle->gi)
            target->gi = &target->gpu.gi[i];
    for (unsigned i = 0; target->gi != NULL && i < SIM_CIS_MAX; i++)
        if (handle->ci != 0 && target->gi->ci[i].birth == handle->ci)
            target->ci = &target->gi->ci[i];
    return (handle->gi == 0) == (target->gi == NULL) && (handle->ci == 0) == (target->ci == NULL);
}

static nvmlReturn_t
session_check_wants(enum sim_handle_kind kind, unsigned wants, const struct sim_target *target)
{
    static const unsigned accepts[] = { 0, SIM_GPU, SIM_MIG, SIM_GI, SIM_CI };

    if ((wants & accepts[kind]) == 0) {
        bool unsupported = kind == SIM_HANDLE_MIG && (wants & SIM_MIG_INVALID) == 0;
        return unsupported ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
    }
    if (target->gpu.lost && (wants & SIM_LOST_TOO) == 0)
        return NVML_ERROR_GPU_IS_LOST;
    if ((wants & SIM_PRIVILEGED) != 0 && !target->privileged)
        return NVML_ERROR_NO_PERMISSION;
    if ((wants & SIM_MIG_ON) != 0 && target->gpu.mig_current == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if ((wants & SIM_UNDIVIDED) != 0 && target->gpu.mig_current != 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

nvmlReturn_t
sim_open(const char *function, const void *pointer, unsigned wants, struct sim_target *target)
{
    struct sim_handle handle;
    bool known = sim_handle_find(pointer, &handle);
    nvmlReturn_t rc = session_enter(function, known ? handle.gpu : SIM_NO_ID);

    if (rc != NVML_SUCCESS)
        return rc;
    if (!known)
        return NVML_ERROR_INVALID_ARGUMENT;
    target->gi = NULL;
    target->ci = NULL;
    rc = sim_session_gpu(handle.gpu, &target->gpu);
    if (rc != NVML_SUCCESS)
        return rc;
    target->model = sim_model_at(target->gpu.model);
    target->is_mig = handle.kind == SIM_HANDLE_MIG;
    target->privileged = !sim_folder.view && geteuid() == 0;
    if (target->model == NULL || !session_find_instance(&handle, target))
        return NVML_ERROR_INVALID_ARGUMENT;
    return session_check_wants(handle.kind, wants, target);
}

uint64_t
sim_session_event_seq(void)
{
    uint64_t seq = 0;

    if (!sim_folder.view)
        session_store_copy(offsetof(struct sim_state, event_seq), sizeof(seq), &seq);
    return seq;
}

bool
sim_session_next_event(uint64_t *seq, uint64_t mask, uint64_t types, struct sim_event *ret_event)
{
    uint64_t last = sim_session_event_seq();

    if (last > SIM_EVENTS_MAX && *seq < last - SIM_EVENTS_MAX)
        *seq = last - SIM_EVENTS_MAX; /* what was overwritten is lost */
    while (*seq < last) {
        struct sim_event event;
        uint64_t next = ++*seq;

        session_store_copy(offsetof(struct sim_state, event) + next % SIM_EVENTS_MAX * sizeof(event),
                           sizeof(event), &event);
        if (event.seq != next || (mask >> event.gpu & 1) == 0 || (event.type & types) == 0)
            continue;
        *ret_event = event;
        return true;
    }
    return false;
}
