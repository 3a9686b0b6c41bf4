#include "sim/machine/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/machine/topology.h"

#define STATE_MAGIC 0x42485354u
#define LOCK_WAIT_S 30
#define TOPOLOGY_BYTES_MAX 65536

struct store_image {
    uint32_t magic, layout;
    uint64_t bytes;
    pthread_mutex_t lock;
    _Atomic uint64_t generation; /* its lowest bit names the current half */
    _Atomic uint64_t published;
    struct sim_state half[2];
};

struct sim_store {
    struct store_image *image;
};

char *
sim_read_text(const char *path, size_t limit)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : malloc(limit + 1);
    size_t length = 0;
    ssize_t got = 1;

    while (text != NULL && length < limit && got > 0) {
        got = read(fd, text + length, limit - length);
        if (got > 0)
            length += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    if (text == NULL)
        return NULL;
    text[length] = '\0';
    return text;
}

static nvmlReturn_t
store_from_errno(int number)
{
    if (number == EACCES || number == EPERM)
        return NVML_ERROR_NO_PERMISSION;
    return number == ENOENT ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_ERROR_OPERATING_SYSTEM;
}

static struct store_image *
store_map_image(int fd)
{
    void *map = mmap(NULL, sizeof(struct store_image), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return map == MAP_FAILED ? NULL : map;
}

static void
store_init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void
store_init_image(struct store_image *image, const struct sim_state *state)
{
    struct timespec now;

    image->half[0] = *state;
    clock_gettime(CLOCK_REALTIME, &now);
    image->half[0].system.created_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (getrandom(&image->half[0].system.nonce, sizeof(uint64_t), 0) != sizeof(uint64_t))
        image->half[0].system.nonce = image->half[0].system.created_ns;
    store_init_lock(&image->lock);
    image->generation = 2;
    image->bytes = sizeof(*image);
    image->layout = SIM_LAYOUT;
    image->magic = STATE_MAGIC;
}

/* Write a complete state file under a name of its own. */
static nvmlReturn_t
store_write_draft(const char *path, const struct sim_state *state)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct store_image *image = NULL;

    if (fd < 0)
        return store_from_errno(errno);
    if (ftruncate(fd, sizeof(struct store_image)) == 0)
        image = store_map_image(fd);
    close(fd);
    if (image == NULL) {
        unlink(path);
        return NVML_ERROR_OPERATING_SYSTEM;
    }
    store_init_image(image, state);
    munmap(image, sizeof(*image));
    return NVML_SUCCESS;
}

static bool
store_path_in(char path[SIM_PATH_MAX], const char *dir, const char *name)
{
    int length = snprintf(path, SIM_PATH_MAX, "%s/%s", dir, name);

    return length > 0 && length < SIM_PATH_MAX;
}

/* A name that no other thread or process uses. */
static bool
store_draft_path(char path[SIM_PATH_MAX], const char *dir)
{
    char name[64];
    uint64_t unique = 0;

    if (getrandom(&unique, sizeof(unique), 0) != sizeof(unique))
        return false;
    snprintf(name, sizeof(name), ".state.%016llx", (unsigned long long)unique);
    return store_path_in(path, dir, name);
}

nvmlReturn_t
sim_store_replace(const char *dir, const struct sim_state *state)
{
    char draft[SIM_PATH_MAX], path[SIM_PATH_MAX];
    nvmlReturn_t rc;

    if (!store_draft_path(draft, dir) || !store_path_in(path, dir, "state"))
        return NVML_ERROR_OPERATING_SYSTEM;
    rc = store_write_draft(draft, state);
    if (rc != NVML_SUCCESS)
        return rc;
    if (rename(draft, path) == 0)
        return NVML_SUCCESS;
    unlink(draft);
    return NVML_ERROR_OPERATING_SYSTEM;
}

/* Create the file from the topology; harmless when another process was first. */
static nvmlReturn_t
store_create_from_topology(const char *dir)
{
    char draft[SIM_PATH_MAX], path[SIM_PATH_MAX];
    struct sim_state *state = calloc(1, sizeof(*state));
    char *text = store_path_in(path, dir, "topology") ? sim_read_text(path, TOPOLOGY_BYTES_MAX) : NULL;
    nvmlReturn_t rc = NVML_ERROR_DRIVER_NOT_LOADED;

    if (state != NULL && text != NULL && sim_topology_parse(text, state) == 0 && store_draft_path(draft, dir)
        && store_path_in(path, dir, "state"))
        rc = store_write_draft(draft, state);
    if (rc == NVML_SUCCESS) {
        if (link(draft, path) != 0 && errno != EEXIST)
            rc = store_from_errno(errno);
        unlink(draft);
    }
    free(text);
    free(state);
    return rc;
}

static nvmlReturn_t
store_open_existing(const char *path, struct sim_store **ret_store)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct store_image *image = NULL;
    struct stat st = { 0 };

    if (fd < 0)
        return store_from_errno(errno);
    if (fstat(fd, &st) == 0 && st.st_size == (off_t)sizeof(*image))
        image = store_map_image(fd);
    close(fd);
    if (image == NULL)
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    struct sim_store *store = calloc(1, sizeof(*store));
    if (store == NULL || image->magic != STATE_MAGIC || image->layout != SIM_LAYOUT) {
        munmap(image, sizeof(*image));
        free(store);
        return store == NULL ? NVML_ERROR_MEMORY : NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    }
    store->image = image;
    *ret_store = store;
    return NVML_SUCCESS;
}

nvmlReturn_t
sim_store_open(const char *dir, struct sim_store **ret_store)
{
    char path[SIM_PATH_MAX];
    nvmlReturn_t rc;

    if (!store_path_in(path, dir, "state"))
        return NVML_ERROR_OPERATING_SYSTEM;
    rc = store_open_existing(path, ret_store);
    if (rc != NVML_ERROR_DRIVER_NOT_LOADED)
        return rc;
    rc = store_create_from_topology(dir);
    return rc == NVML_SUCCESS ? store_open_existing(path, ret_store) : rc;
}

void
sim_store_close(struct sim_store *store)
{
    if (store == NULL)
        return;
    munmap(store->image, sizeof(*store->image));
    free(store);
}

uint64_t
sim_store_generation(const struct sim_store *store)
{
    return atomic_load_explicit(&store->image->generation, memory_order_acquire);
}

const struct sim_state *
sim_store_current(const struct sim_store *store)
{
    return &store->image->half[sim_store_generation(store) & 1];
}

/* The half being copied is rewritten only after one more commit; a copy during
 * which none happened is whole. */
__attribute__((no_sanitize("thread"))) void
sim_store_read(const struct sim_store *store, size_t offset, size_t length, void *ret_copy)
{
    uint64_t before, after;

    do {
        before = sim_store_generation(store);
        memcpy(ret_copy, (const char *)&store->image->half[before & 1] + offset, length);
        atomic_thread_fence(memory_order_acquire);
        after = sim_store_generation(store);
    } while (before != after);
}

static int
store_take_lock(pthread_mutex_t *lock)
{
#ifdef __SANITIZE_THREAD__ /* it does not know clocklock */
    return pthread_mutex_lock(lock);
#else
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOCK_WAIT_S;
    return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until);
#endif
}

nvmlReturn_t
sim_store_begin(struct sim_store *store, struct sim_state **ret_draft)
{
    struct store_image *image = store->image;
    uint64_t generation;
    int rc = store_take_lock(&image->lock);

    if (rc == EOWNERDEAD)
        /* The holder died.  Its draft was never current, so nothing needs
         * repair; what it had not yet written out is found by `published`. */
        rc = pthread_mutex_consistent(&image->lock);
    if (rc != 0)
        return rc == ETIMEDOUT ? NVML_ERROR_TIMEOUT : NVML_ERROR_OPERATING_SYSTEM;
    generation = sim_store_generation(store);
    /* A reader that meets what is written below must also meet `generation`. */
    atomic_thread_fence(memory_order_seq_cst);
    image->half[~generation & 1] = image->half[generation & 1];
    *ret_draft = &image->half[~generation & 1];
    return NVML_SUCCESS;
}

void
sim_store_commit(struct sim_store *store)
{
    atomic_fetch_add_explicit(&store->image->generation, 1, memory_order_release);
}

void
sim_store_end(struct sim_store *store)
{
    pthread_mutex_unlock(&store->image->lock);
}

uint64_t
sim_store_published(const struct sim_store *store)
{
    return atomic_load_explicit(&store->image->published, memory_order_acquire);
}

void
sim_store_set_published(struct sim_store *store, uint64_t generation)
{
    atomic_store_explicit(&store->image->published, generation, memory_order_release);
}
