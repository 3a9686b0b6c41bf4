#include "sim/machine/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/machine/files.h"
#include "sim/machine/sim.h"

#define FILE_MODE 0666                 /* the folder is what is closed, as with the bytes */
#define SLICE_MOST_NS (UINT64_MAX / 4) /* which leaves room for adding it to a time */
#define REAP_NS 10000000u
#define SPIN_NS 4000u
#define NAP_LEAST_NS 20000u
#define NAP_MOST_NS 20000000u
#define HOST_WORKS_LOOKED_AT 8

/* What this process remembers of a work. */
struct queue_note {
    void (*act)(void *self);
    bool (*poll)(void *self);
    void (*ended)(void *self, uint64_t ended_ns);
    void *self;
};

struct sim_queue {
    struct sim_queue *next; /* of all of this process, for a fork */
    struct sim_device *device;
    int fd;
    uint32_t slot;
    _Atomic bool foreign;
    /* under the device's lock */
    uint64_t reported; /* works before this one were reported as ended */
    bool closing, has_thread;
    pthread_t thread;
    struct queue_note note[SIM_TASK_DEPTH];
    /* changes with everything that only this process knows of */
    uint32_t bell;
};

static struct {
    pthread_mutex_t lock;
    struct sim_queue *first;
    bool watches_forks;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint64_t
sim_queue_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct sim_task_slot *
queue_slot_of(const struct sim_queue *queue)
{
    return &queue->device->slot[queue->slot];
}

/* ---- sleeping ---- */

static void
queue_ring(struct sim_queue *queue)
{
    __atomic_fetch_add(&queue->bell, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &queue->bell, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void
queue_nap(struct sim_queue *queue, uint32_t bell, uint64_t until_ns)
{
    struct timespec until = { (time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u) };

    syscall(SYS_futex, &queue->bell, FUTEX_WAIT_BITSET_PRIVATE, bell, &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* Until `when`, at the latest NAP_MOST; never so short that waiting becomes work: at least
 * a sixteenth of the time already waited. */
static void
queue_sleep_until(struct sim_queue *queue, uint32_t bell, uint64_t began_ns, uint64_t when_ns)
{
    uint64_t now = sim_queue_now(), least = NAP_LEAST_NS + (now - began_ns) / 16;

    if (when_ns <= now + SPIN_NS && now - began_ns < SPIN_NS) {
        while (sim_queue_now() < when_ns) {
        }
        return;
    }
    least = least < NAP_MOST_NS ? least : NAP_MOST_NS;
    if (when_ns > now + NAP_MOST_NS)
        when_ns = now + NAP_MOST_NS;
    queue_nap(queue, bell, when_ns > now + least ? when_ns : now + least);
}

/* A thread that waits for the GPU wants to be woken in time; others keep what they have. */
static int
queue_sharpen(void)
{
    int slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    return slack_ns;
}

static void
queue_blunt(int slack_ns)
{
    prctl(PR_SET_TIMERSLACK, slack_ns > 0 ? slack_ns : 0, 0, 0, 0);
}

/* ---- the record, locked ---- */

static struct flock
queue_life_of(uint32_t slot, short type)
{
    return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1 };
}

bool
sim_queue_is_alive(int fd, uint32_t slot)
{
    struct flock life = queue_life_of(slot, F_WRLCK);

    return fcntl(fd, F_OFD_GETLK, &life) != 0 || life.l_type != F_UNLCK;
}

/* Contexts whose process has died hold no lock on their byte. */
static void
queue_reap(struct sim_queue *queue)
{
    for (uint32_t i = 0; i < SIM_TASK_SLOTS; i++)
        if (i != queue->slot && queue->device->slot[i].birth != 0 && !sim_queue_is_alive(queue->fd, i))
            sim_task_leave(queue->device, i);
}

static void
queue_report_ended(struct sim_queue *queue)
{
    struct sim_task_slot *slot = queue_slot_of(queue);
    uint64_t first = __atomic_load_n(&slot->first, __ATOMIC_RELAXED);

    if (first > queue->reported && first - queue->reported > SIM_TASK_DEPTH) /* there are no more notes */
        queue->reported = first - SIM_TASK_DEPTH;
    for (; queue->reported < first; queue->reported++) {
        struct queue_note *note = &queue->note[queue->reported % SIM_TASK_DEPTH];

        if (note->ended != NULL)
            note->ended(note->self, sim_task_at(slot, queue->reported)->ended_ns);
        note->ended = NULL;
    }
}

static void
queue_lock_device(struct sim_device *device)
{
    if (pthread_mutex_lock(&device->lock) != EOWNERDEAD)
        return;
    sim_task_repair(device, sim_queue_now());
    pthread_mutex_consistent(&device->lock);
}

static void
queue_catch_up(struct sim_queue *queue)
{
    uint64_t now = sim_queue_now();

    sim_task_catch(queue->device, now);
    sim_task_advance(queue->device, now);
    if (now - queue->device->reaped_ns > REAP_NS) {
        queue->device->reaped_ns = now;
        queue_reap(queue);
        sim_task_advance(queue->device, now);
    }
    queue_report_ended(queue);
}

void
sim_queue_lock(struct sim_queue *queue)
{
    queue_lock_device(queue->device);
    queue_catch_up(queue);
}

void
sim_queue_unlock(struct sim_queue *queue)
{
    pthread_mutex_unlock(&queue->device->lock);
}

/* ---- making and opening it ---- */

static bool
queue_slice_path(char *ret_path, const char *folder)
{
    return sim_path(ret_path, "%s.slice", folder);
}

/* Not what the record before says: a job can write there. */
static void
queue_read_slice(const char *folder, uint64_t *slice_ns)
{
    char path[SIM_PATH_MAX];
    uint64_t kept;
    int fd = queue_slice_path(path, folder) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;

    if (fd < 0)
        return;
    if (read(fd, &kept, sizeof(kept)) == sizeof(kept))
        *slice_ns = kept;
    close(fd);
}

bool
sim_queue_forget_slice(const char *folder)
{
    char path[SIM_PATH_MAX];

    return queue_slice_path(path, folder) && (unlink(path) == 0 || errno == ENOENT);
}

bool
sim_queue_publish(const char *folder)
{
    static const size_t head = offsetof(struct sim_device, engine);
    /* Of which the head is touched.  The heap would have it cleared, all of it, each time. */
    struct sim_device *device = mmap(NULL, sizeof(*device), PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char path[SIM_PATH_MAX];
    pthread_mutexattr_t kind;
    bool made = device != MAP_FAILED && sim_path(path, "%s/" SIM_TASK_FILE, folder);

    if (made && pthread_mutexattr_init(&kind) == 0) {
        pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&device->lock, &kind);
        pthread_mutexattr_destroy(&kind);
        sim_task_init(device);
        queue_read_slice(folder, &device->slice_ns);
        made = sim_put_file(path, FILE_MODE, device, head)
               && sim_put_sparse(path, FILE_MODE, sizeof(struct sim_device));
    }
    if (device != MAP_FAILED)
        munmap(device, sizeof(*device));
    return made;
}

bool
sim_queue_set_slice(const char *folder, uint64_t slice_ns)
{
    char path[SIM_PATH_MAX], slice[SIM_PATH_MAX];
    int fd = sim_path(path, "%s/" SIM_TASK_FILE, folder) ? open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    uint64_t kept = slice_ns < SLICE_MOST_NS ? slice_ns : SLICE_MOST_NS;
    bool written = fd >= 0 && queue_slice_path(slice, folder)
                   && sim_put_file(slice, 0600, &kept, sizeof(kept))
                   && pwrite(fd, &kept, sizeof(kept), offsetof(struct sim_device, slice_ns)) == sizeof(kept);

    if (fd >= 0)
        close(fd);
    return written;
}

static bool
queue_map_device(struct sim_queue *queue, const char *folder)
{
    char path[SIM_PATH_MAX];
    struct stat st;
    void *map;

    queue->fd =
        sim_path(path, "%s/" SIM_TASK_FILE, folder) ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (queue->fd < 0 || fstat(queue->fd, &st) != 0)
        return false;
    if ((size_t)st.st_size < sizeof(struct sim_device)) {
        errno = EINVAL;
        return false;
    }
    map = mmap(NULL, sizeof(struct sim_device), PROT_READ | PROT_WRITE, MAP_SHARED, queue->fd, 0);
    if (map == MAP_FAILED)
        return false;
    queue->device = map;
    return queue->device->magic == SIM_DEVICE_MAGIC;
}

/* A record that is not in use may be from before the machine was started again. */
static void
queue_renew(struct sim_device *device)
{
    for (uint32_t i = 0; i < SIM_TASK_SLOTS; i++)
        if (device->slot[i].birth != 0)
            return;
    memset(device->engine, 0, sizeof(device->engine));
    device->now_ns = device->reaped_ns = 0;
}

static bool
queue_enter_device(struct sim_queue *queue, uint32_t user)
{
    struct flock life;
    uint64_t now;

    queue_lock_device(queue->device);
    queue->slot = SIM_TASK_SLOTS;
    queue_reap(queue);
    queue_renew(queue->device);
    now = sim_queue_now();
    sim_task_catch(queue->device, now);
    sim_task_advance(queue->device, now);
    queue->slot = sim_task_enter(queue->device, user);
    life = queue_life_of(queue->slot, F_WRLCK);
    if (queue->slot < SIM_TASK_SLOTS && fcntl(queue->fd, F_OFD_SETLK, &life) != 0) {
        sim_task_leave(queue->device, queue->slot);
        queue->slot = SIM_TASK_SLOTS;
    }
    sim_queue_unlock(queue);
    errno = queue->slot < SIM_TASK_SLOTS ? 0 : EBUSY;
    return queue->slot < SIM_TASK_SLOTS;
}

/* A child has nothing of its parent's contexts: it must not keep their locks alive. */
static void
queue_after_fork(void)
{
    for (struct sim_queue *queue = all.first; queue != NULL; queue = queue->next) {
        close(queue->fd);
        queue->fd = -1;
        queue->foreign = true;
    }
    pthread_mutex_init(&all.lock, NULL);
}

static void
register_queue(struct sim_queue *queue)
{
    pthread_mutex_lock(&all.lock);
    if (!all.watches_forks)
        all.watches_forks = pthread_atfork(NULL, NULL, queue_after_fork) == 0;
    queue->next = all.first;
    all.first = queue;
    pthread_mutex_unlock(&all.lock);
}

static void
forget_queue(struct sim_queue *queue)
{
    pthread_mutex_lock(&all.lock);
    for (struct sim_queue **link = &all.first; *link != NULL; link = &(*link)->next)
        if (*link == queue) {
            *link = queue->next;
            break;
        }
    pthread_mutex_unlock(&all.lock);
}

static void
free_queue(struct sim_queue *queue)
{
    if (queue->device != NULL)
        munmap(queue->device, sizeof(*queue->device));
    if (queue->fd >= 0)
        close(queue->fd);
    free(queue);
}

struct sim_queue *
sim_queue_open(const char *folder, uint32_t user)
{
    struct sim_queue *queue = calloc(1, sizeof(*queue));
    int number;

    if (queue == NULL)
        return NULL;
    queue->fd = -1;
    queue->reported = 1;
    if (queue_map_device(queue, folder) && queue_enter_device(queue, user)) {
        register_queue(queue);
        return queue;
    }
    number = errno;
    free_queue(queue);
    errno = number;
    return NULL;
}

bool
sim_queue_is_foreign(const struct sim_queue *queue)
{
    return queue->foreign;
}

void
sim_queue_close(struct sim_queue *queue)
{
    struct sim_task_slot *slot;
    uint64_t first, end;
    bool joins;

    if (queue == NULL)
        return;
    forget_queue(queue);
    if (queue->foreign) {
        free_queue(queue);
        return;
    }
    sim_queue_lock(queue);
    queue->closing = true;
    joins = queue->has_thread && !pthread_equal(queue->thread, pthread_self());
    sim_queue_unlock(queue);
    queue_ring(queue);
    if (joins)
        pthread_join(queue->thread, NULL);
    sim_queue_lock(queue);
    slot = queue_slot_of(queue);
    first = __atomic_load_n(&slot->first, __ATOMIC_RELAXED);
    end = sim_task_end(slot, first);
    for (uint64_t n = first; n < end; n++)
        if (sim_task_at(slot, n)->state != SIM_TASK_DONE)
            sim_task_at(slot, n)->ended_ns = queue->device->now_ns;
    sim_task_leave(queue->device, queue->slot);
    queue_report_ended(queue);
    sim_queue_unlock(queue);
    free_queue(queue);
}

/* ---- what belongs to the host ---- */

/* The first HOST work that is due and that can be ended; 0: none.  Those that are
 * asked are asked without the lock. */
static uint64_t
queue_find_host_work(struct sim_queue *queue, struct queue_note *ret_note)
{
    uint64_t number = sim_task_find_due(queue_slot_of(queue), 1);

    for (; number != 0; number = sim_task_find_due(queue_slot_of(queue), number + 1)) {
        *ret_note = queue->note[number % SIM_TASK_DEPTH];
        if (ret_note->poll == NULL)
            return number;
        sim_queue_unlock(queue);
        bool ended = ret_note->poll(ret_note->self);
        sim_queue_lock(queue);
        if (ended || queue->closing)
            return number;
    }
    return 0;
}

static uint64_t
queue_next_host_work_ns(struct sim_queue *queue)
{
    const struct sim_task_slot *slot = queue_slot_of(queue);
    uint64_t first = __atomic_load_n(&slot->first, __ATOMIC_RELAXED);
    uint64_t end = sim_task_end(slot, first), when = UINT64_MAX;
    unsigned looked_at = 0;

    for (uint64_t n = first; n < end && looked_at < HOST_WORKS_LOOKED_AT; n++) {
        const struct sim_task *work = &slot->work[n % SIM_TASK_DEPTH];
        uint64_t earliest;

        if (work->kind != SIM_TASK_HOST || work->state == SIM_TASK_DONE)
            continue;
        looked_at++;
        earliest = work->state == SIM_TASK_DUE ? 0 : sim_task_earliest(queue->device, queue->slot, n);
        when = earliest < when ? earliest : when;
    }
    return when;
}

static void *
queue_run_thread(void *self)
{
    struct sim_queue *queue = self;
    uint64_t began = sim_queue_now();
    struct queue_note note;

    queue_sharpen();
    sim_queue_lock(queue);
    while (!queue->closing) {
        uint32_t bell = __atomic_load_n(&queue->bell, __ATOMIC_ACQUIRE);
        uint64_t number = queue_find_host_work(queue, &note), when;

        if (number == 0) {
            when = queue_next_host_work_ns(queue);
            sim_queue_unlock(queue);
            queue_sleep_until(queue, bell, began, when);
            sim_queue_lock(queue);
            continue;
        }
        sim_queue_unlock(queue);
        if (note.poll == NULL && note.act != NULL)
            note.act(note.self);
        sim_queue_lock(queue);
        sim_task_finish(queue->device, queue->slot, number);
        began = sim_queue_now();
        queue_ring(queue);
    }
    sim_queue_unlock(queue);
    return NULL;
}

/* No signal of the program's lands on it. */
static void
queue_start_thread(struct sim_queue *queue)
{
    sigset_t none, before;

    sigfillset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    queue->has_thread = pthread_create(&queue->thread, NULL, queue_run_thread, queue) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- submitting and waiting ---- */

uint64_t
sim_queue_submit(struct sim_queue *queue, const struct sim_order *order)
{
    uint64_t began = 0, number, when;
    bool is_host = order->work.kind == SIM_TASK_HOST;
    uint32_t bell;

    for (;;) {
        sim_queue_lock(queue);
        number = sim_task_submit(queue->device, queue->slot, &order->work);
        if (number != 0)
            break;
        bell = __atomic_load_n(&queue->bell, __ATOMIC_ACQUIRE);
        when = sim_task_earliest(queue->device, queue->slot, queue_slot_of(queue)->first);
        sim_queue_unlock(queue);
        began = began == 0 ? sim_queue_now() : began;
        queue_sleep_until(queue, bell, began, when);
    }
    queue->note[number % SIM_TASK_DEPTH] =
        (struct queue_note){ order->act, order->poll, order->ended, order->self };
    if (order->begun != NULL)
        order->begun(order->self, number);
    if (is_host && !queue->has_thread)
        queue_start_thread(queue);
    sim_queue_unlock(queue);
    if (is_host)
        queue_ring(queue);
    return number;
}

bool
sim_queue_ended(struct sim_queue *queue, uint64_t number, uint64_t *ret_ended_ns)
{
    bool ended;

    sim_queue_lock(queue);
    ended = sim_task_ended(queue_slot_of(queue), number);
    if (ended && number >= queue->reported && ret_ended_ns != NULL)
        *ret_ended_ns = sim_task_at(queue_slot_of(queue), number)->ended_ns;
    sim_queue_unlock(queue);
    return ended;
}

void
sim_queue_wait(struct sim_queue *queue, uint64_t number)
{
    uint64_t began = sim_queue_now(), when;
    uint32_t bell;
    int slack_ns = 0;
    bool sharp = false;

    for (;;) {
        sim_queue_lock(queue);
        if (sim_task_ended(queue_slot_of(queue), number))
            break;
        bell = __atomic_load_n(&queue->bell, __ATOMIC_ACQUIRE);
        when = sim_task_earliest(queue->device, queue->slot, number);
        sim_queue_unlock(queue);
        if (!sharp)
            slack_ns = queue_sharpen();
        sharp = true;
        queue_sleep_until(queue, bell, began, when);
    }
    sim_queue_unlock(queue);
    if (sharp)
        queue_blunt(slack_ns);
}

void
sim_queue_drain(struct sim_queue *queue)
{
    uint64_t last;

    sim_queue_lock(queue);
    last = queue_slot_of(queue)->next;
    sim_queue_unlock(queue);
    if (last > 1)
        sim_queue_wait(queue, last - 1);
    /* streams may overtake each other */
    for (uint64_t first = 0; first < last;) {
        sim_queue_lock(queue);
        first = queue_slot_of(queue)->first;
        sim_queue_unlock(queue);
        if (first < last)
            sim_queue_wait(queue, first);
    }
}

uint64_t
sim_queue_depth(struct sim_queue *queue)
{
    uint64_t depth;

    sim_queue_lock(queue);
    depth = queue_slot_of(queue)->next - queue_slot_of(queue)->first;
    sim_queue_unlock(queue);
    return depth;
}
