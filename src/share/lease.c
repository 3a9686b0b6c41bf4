#include "share/lease.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/time.h"
#include "bulkhead/share_socket.h"
#include "share/pages.h"

/* Connections beyond the slots are of processes that were not answered yet. */
enum { PROCESSES_MAX = BH_SHARE_SLOTS_MAX + 64, LISTEN_BACKLOG = 128, OUTSIDERS_MAX = 16 };
#define MORE_NOTICE_BYTES (UINT64_C(64) << 20) /* contexts and modules differ by less */
enum { MORE_STATES = 4 };                      /* of a second each: 3 s */
#define OUTSIDE_NOTICE_NS UINT64_C(3000000000)
#define OUTSIDE_GONE_NS UINT64_C(2500000000) /* not seen for so long: the process has none */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

struct lease_process {
    struct lease_process *next;
    struct bh_share_lease *lease;
    struct bh_share_watch talk, life;
    int fd, pidfd; /* -1: no longer connected; not known yet */
    uint32_t pid;
    int slot;           /* -1: has not sent its hello */
    bool active;        /* sent WANT once: answers each time slice's end */
    bool drained, idle; /* sent for the present time slice */
};

/* A process with GPU memory and no slot. */
struct outsider {
    uint32_t pid; /* 0: free */
    uint64_t since_ns, seen_ns;
    bool notified;
};

struct bh_share_lease {
    const struct bh_share_site *site;
    struct bh_share_open open;
    struct bh_share_pages *pages;
    struct bh_share_watch listener;
    int listener_fd;
    uint32_t entity, count;
    bool joined, stuck;
    uint64_t more[BH_SHARE_DEVICES_MAX];        /* than was reserved, as the driver last reported */
    uint32_t more_states[BH_SHARE_DEVICES_MAX]; /* in a row with much more */
    struct outsider outsiders[OUTSIDERS_MAX];
    uint64_t measured_ns, measured_granted_ns; /* when it was measured, and the GPU time until then */
    uint32_t permille;                         /* of the second before */
    uint32_t gpus;
    uint64_t driver[BH_SHARE_DEVICES_MAX]; /* bytes, as it last reported */
    struct lease_process *processes;
};

static void
lease_notify(const struct bh_share_lease *lease, enum bh_share_notice_kind kind, uint32_t pid)
{
    lease->site->notice(lease->site->self, lease->open.lease, kind, pid);
}

static int
lease_watch(const struct bh_share_lease *lease, int fd, struct bh_share_watch *watch)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = watch };

    return epoll_ctl(lease->site->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* ---- processes that go ---- */

static void
lease_unlink_process(struct lease_process *process)
{
    struct lease_process **at = &process->lease->processes;

    while (*at != process)
        at = &(*at)->next;
    *at = process->next;
    process->lease->count--;
    bh_fd_close(process->fd);
    bh_fd_close(process->pidfd);
    free(process);
}

/* All processes that must answer have answered. */
static bool
lease_all(const struct bh_share_lease *lease, bool idle)
{
    for (const struct lease_process *p = lease->processes; p != NULL; p = p->next)
        if (p->active && !(idle ? p->idle : p->drained))
            return false;
    return true;
}

/* Nothing comes in this time slice from any of them. */
static bool
lease_is_finished(const struct bh_share_lease *lease)
{
    for (const struct lease_process *p = lease->processes; p != NULL; p = p->next)
        if (p->active && !p->drained && !p->idle)
            return false;
    return true;
}

static void
lease_check_done(struct bh_share_lease *lease, uint64_t now_ns)
{
    enum bh_time_slice slice = bh_time_slices_state(lease->site->slices, lease->entity);

    if (slice == BH_TIME_SLICE_ENDING && lease_all(lease, false))
        bh_time_slices_drained(lease->site->slices, now_ns, lease->entity);
    else if ((slice == BH_TIME_SLICE_CONTENDED || slice == BH_TIME_SLICE_OPEN) && lease_all(lease, true))
        bh_time_slices_idle(lease->site->slices, now_ns, lease->entity);
    else if (slice == BH_TIME_SLICE_CONTENDED && lease_is_finished(lease))
        bh_time_slices_finish(lease->site->slices, now_ns, lease->entity);
}

static void
lease_remove_process(struct lease_process *process, uint64_t now_ns)
{
    struct bh_share_lease *lease = process->lease;

    if (process->slot >= 0 && !bh_share_pages_reap(lease->pages, (uint32_t)process->slot))
        lease_notify(lease, BH_SHARE_NOTICE_FORGED, process->pid);
    lease_unlink_process(process);
    lease_check_done(lease, now_ns);
}

static void
lease_life_ready(void *of, uint64_t now_ns)
{
    lease_remove_process(of, now_ns);
}

/* It closed the connection but lives: it began another program, or will come again. */
static void
lease_disconnect(struct lease_process *process, uint64_t now_ns)
{
    bh_fd_close(process->fd);
    process->fd = -1;
    if (process->slot < 0 || !bh_share_is_mapped(process->pid))
        lease_remove_process(process, now_ns);
}

/* ---- what they send ---- */

static void
lease_answer(const struct lease_process *process, enum bh_share_answer answer)
{
    struct bh_share_welcome welcome = {
        .magic = BH_SHARE_MAGIC,
        .version = BH_SHARE_VERSION,
        .answer = answer,
        .slot = process->slot,
    };
    const struct bh_share_pages *pages = process->lease->pages;
    int fds[2] = { bh_share_pages_limits_fd(pages), bh_share_pages_usage_fd(pages) };
    union {
        char bytes[CMSG_SPACE(sizeof(fds))];
        struct cmsghdr align;
    } control = { 0 };
    struct iovec iov = { &welcome, sizeof(welcome) };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (answer == BH_SHARE_WELCOME) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(fds)),
            .cmsg_level = SOL_SOCKET,
            .cmsg_type = SCM_RIGHTS,
        };
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, sizeof(fds));
    }
    /* The end of one that is not read from shows by itself. */
    (void)!sendmsg(process->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The entry of the same process that has this slot. */
static struct lease_process *
lease_find_slot_owner(const struct lease_process *process, int slot)
{
    for (struct lease_process *p = process->lease->processes; p != NULL; p = p->next)
        if (p != process && p->pid == process->pid && p->slot == slot)
            return p;
    return NULL;
}

static bool
lease_is_connected(const struct lease_process *process)
{
    char byte;

    return process->fd >= 0 && recv(process->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

/* What the process had before it began another program goes.  A connection that stands is a
 * second library's in one process (dlmopen), which has a slot of its own; so is memory that is
 * still mapped, whose connection was another bulkhead-share's. */
static void
lease_release_slot_before(const struct lease_process *process, uint64_t now_ns)
{
    enum { UNKNOWN, NO, YES } mapped = UNKNOWN; /* read once: the list may be as long as it likes */

    for (struct lease_process *p = process->lease->processes, *next; p != NULL; p = next) {
        next = p->next;
        if (p == process || p->pid != process->pid || p->slot < 0 || lease_is_connected(p))
            continue;
        if (mapped == UNKNOWN)
            mapped = bh_share_is_mapped(p->pid) ? YES : NO;
        if (mapped == NO)
            lease_remove_process(p, now_ns);
    }
}

static enum bh_share_answer
lease_slot_reassign(struct lease_process *process, int slot, const struct bh_share_owner *me)
{
    struct bh_share_owner owner;
    struct lease_process *before = lease_find_slot_owner(process, slot);

    if (slot >= BH_SHARE_SLOTS_MAX)
        return BH_SHARE_STRANGER;
    owner = bh_share_pages_owner(process->lease->pages, (uint32_t)slot);
    if (owner.pid != me->pid || owner.started != me->started)
        return BH_SHARE_STRANGER;
    process->slot = slot;
    process->active = true; /* it may have been; then it answers as one that is */
    if (before != NULL)
        lease_unlink_process(before);
    return BH_SHARE_WELCOME;
}

static enum bh_share_answer
lease_slot_assign(struct lease_process *process, const struct bh_share_hello *hello,
                  const struct bh_share_owner *me, uint64_t now_ns)
{
    if (hello->magic == BH_SHARE_MAGIC && hello->slot == -1)
        lease_release_slot_before(process, now_ns);
    if (hello->magic != BH_SHARE_MAGIC || hello->version != BH_SHARE_VERSION
        || bh_share_pages_are_outdated(process->lease->pages))
        return BH_SHARE_BAD_VERSION;
    if (hello->slot == BH_SHARE_STATIC)
        return BH_SHARE_STRANGER;
    if (hello->slot == BH_SHARE_OBSERVE)
        return BH_SHARE_WELCOME;
    if (hello->slot >= 0)
        return lease_slot_reassign(process, hello->slot, me);
    process->slot = bh_share_pages_assign(process->lease->pages, *me);
    return process->slot < 0 ? BH_SHARE_FULL : BH_SHARE_WELCOME;
}

/* A process that cannot be read cannot be identified: it is not accused, and may connect again. */
static void
lease_receive_hello(struct lease_process *process, const struct bh_share_hello *hello, uint64_t now_ns)
{
    struct bh_share_owner me = { .pid = process->pid };
    bool outdated = bh_share_pages_are_outdated(process->lease->pages);
    enum bh_share_answer reply;
    struct bh_err ignored;

    if (bh_share_started(me.pid, &me.started, &ignored) != BH_OK) {
        lease_disconnect(process, now_ns);
        return;
    }
    reply = lease_slot_assign(process, hello, &me, now_ns);
    lease_answer(process, reply);
    if (reply == BH_SHARE_WELCOME || (outdated && hello->slot >= 0))
        return; /* the latter is one of those that were reported when the lease was opened */
    lease_notify(process->lease,
                 outdated                         ? BH_SHARE_NOTICE_OUTDATED
                 : reply == BH_SHARE_FULL         ? BH_SHARE_NOTICE_FULL
                 : hello->slot == BH_SHARE_STATIC ? BH_SHARE_NOTICE_STATIC
                                                  : BH_SHARE_NOTICE_STRANGER,
                 process->pid);
}

static void
lease_receive(struct lease_process *process, const struct bh_share_client_message *message, uint64_t now_ns)
{
    struct bh_share_lease *lease = process->lease;
    bool present = message->slice == bh_share_pages_slice(lease->pages);

    if (message->word == BH_SHARE_WANT) {
        process->active = true;
        process->idle = false;
        bh_time_slices_want(lease->site->slices, now_ns, lease->entity);
    } else if (present && message->word == BH_SHARE_DRAINED) {
        process->drained = true;
        lease_check_done(lease, now_ns);
    } else if (present && message->word == BH_SHARE_IDLE) {
        process->idle = true;
        lease_check_done(lease, now_ns);
    }
}

static void
lease_talk_ready(void *of, uint64_t now_ns)
{
    struct lease_process *process = of;
    union {
        struct bh_share_hello hello;
        struct bh_share_client_message message;
    } reply = { 0 };
    ssize_t got = recv(process->fd, &reply, sizeof(reply), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got == sizeof(reply.hello) && process->slot < 0)
        lease_receive_hello(process, &reply.hello, now_ns);
    else if (got == sizeof(reply.message) && process->slot >= 0)
        lease_receive(process, &reply.message, now_ns);
    else
        lease_disconnect(process, now_ns);
}
_Static_assert(sizeof(struct bh_share_hello) == sizeof(struct bh_share_client_message), "one size");

/* ---- the socket ---- */

static int
lease_pidfd_of(int fd, uint32_t pid)
{
    int pidfd = -1;
    socklen_t size = sizeof(pidfd);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
        return pidfd;
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool
lease_admit(struct bh_share_lease *lease, int fd)
{
    struct lease_process *process = calloc(1, sizeof(*process));
    struct ucred peer = { 0 };
    socklen_t size = sizeof(peer);

    BH_ASSERT(process != NULL);
    *process = (struct lease_process){ .lease = lease, .fd = fd, .pidfd = -1, .slot = -1 };
    process->talk = (struct bh_share_watch){ lease_talk_ready, process };
    process->life = (struct bh_share_watch){ lease_life_ready, process };
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0) {
        process->pid = (uint32_t)peer.pid;
        process->pidfd = lease_pidfd_of(fd, process->pid);
    }
    process->next = lease->processes;
    lease->processes = process;
    lease->count++;
    if (process->pidfd >= 0 && lease_watch(lease, process->pidfd, &process->life) == 0
        && lease_watch(lease, fd, &process->talk) == 0)
        return true;
    lease_unlink_process(process);
    return false;
}

static void
lease_listener_ready(void *of, uint64_t now_ns)
{
    struct bh_share_lease *lease = of;
    int fd = accept4(lease->listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (lease->count >= PROCESSES_MAX) {
        close(fd);
        lease_notify(lease, BH_SHARE_NOTICE_FULL, 0);
        return;
    }
    lease_admit(lease, fd);
}

static bh_rc
lease_open_listener(struct bh_share_lease *lease, struct bh_err *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char folder[BH_SHARE_PATH_MAX + 8];
    int length;

    snprintf(folder, sizeof(folder), "%s/door", lease->open.folder);
    length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/share.sock", folder);
    if ((size_t)length >= sizeof(address.sun_path))
        return bh_err_set(err, BH_INVALID, "path of a socket is too long: %s", folder);
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        return bh_err_errno(err, "socket in %s", folder);
    unlink(address.sun_path);
    lease->listener_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Every user may connect: it is bound into the sandboxes of its lease alone. */
    if (lease->listener_fd < 0 || bind(lease->listener_fd, (struct sockaddr *)&address, sizeof(address)) != 0
        || chmod(address.sun_path, 0666) != 0 || listen(lease->listener_fd, LISTEN_BACKLOG) != 0
        || lease_watch(lease, lease->listener_fd, &lease->listener) != 0)
        return bh_err_errno(err, "socket in %s", folder);
    return BH_OK;
}

/* ---- the lease ---- */

/* Slots of processes that died while bulkhead-share was not running; the others are known by their pid until
 * they come again. */
static void
lease_find_survivors(struct bh_share_lease *lease)
{
    for (uint32_t s = 0; s < BH_SHARE_SLOTS_MAX; s++) {
        struct bh_share_owner owner = bh_share_pages_owner(lease->pages, s);
        struct lease_process *process;
        struct bh_err ignored;

        if (owner.pid == 0)
            continue;
        process = calloc(1, sizeof(*process));
        BH_ASSERT(process != NULL);
        *process = (struct lease_process){
            .lease = lease, .fd = -1, .pid = owner.pid, .slot = (int)s, .next = lease->processes
        };
        process->life = (struct bh_share_watch){ lease_life_ready, process };
        process->pidfd = (int)syscall(SYS_pidfd_open, owner.pid, 0);
        lease->processes = process;
        lease->count++;
        if (process->pidfd < 0 || bh_share_check_owner(&owner, &ignored) == BH_NOT_FOUND
            || lease_watch(lease, process->pidfd, &process->life) != 0) {
            if (!bh_share_pages_reap(lease->pages, s))
                lease_notify(lease, BH_SHARE_NOTICE_FORGED, owner.pid);
            lease_unlink_process(process);
        }
    }
}

static bh_rc
lease_join(struct bh_share_lease *lease, uint64_t now_ns, struct bh_err *err)
{
    struct bh_time_slices_member member = { .weight = lease->open.weight,
                                            .hard = lease->open.hard,
                                            .latency = lease->open.latency,
                                            .quantum_ns = lease->open.quantum_ns };
    bh_rc rc;

    for (uint32_t d = 0; d < lease->open.gpu_count; d++)
        member.gpus |= lease->open.gpus[d].gpu < 32 ? 1u << lease->open.gpus[d].gpu : 0;
    lease->gpus = member.gpus;
    rc = bh_time_slices_join(lease->site->slices, now_ns, &member, &lease->entity, err);
    lease->joined = rc == BH_OK;
    return rc;
}

static void
lease_dispose(struct bh_share_lease *lease)
{
    while (lease->processes != NULL)
        lease_unlink_process(lease->processes);
    bh_fd_close(lease->listener_fd);
    bh_share_pages_free(lease->pages);
    free(lease);
}

bh_rc
bh_share_lease_open(const struct bh_share_site *site, const struct bh_share_open *open, uint64_t now_ns,
                    struct bh_share_lease **ret_lease, struct bh_err *err)
{
    struct bh_share_lease *lease = calloc(1, sizeof(*lease));
    bh_rc rc;

    BH_ASSERT(lease != NULL);
    *lease = (struct bh_share_lease){ .site = site, .open = *open, .listener_fd = -1 };
    lease->listener = (struct bh_share_watch){ lease_listener_ready, lease };
    rc = bh_share_pages_open(open, &lease->pages, err);
    if (rc == BH_OK)
        rc = lease_join(lease, now_ns, err);
    if (rc == BH_OK)
        rc = lease_open_listener(lease, err);
    if (rc != BH_OK) {
        if (lease->joined)
            bh_time_slices_leave(site->slices, now_ns, lease->entity);
        lease_dispose(lease);
        return bh_err_wrap(err, "share of lease %llu", (unsigned long long)open->lease);
    }
    lease_find_survivors(lease);
    if (bh_share_pages_are_outdated(lease->pages))
        lease_notify(lease, BH_SHARE_NOTICE_OUTDATED, 0);
    if (lease->processes != NULL)
        bh_time_slices_want(site->slices, now_ns, lease->entity);
    bh_share_lease_allow(lease, now_ns,
                         &(struct bh_share_allow){ open->lease, open->paused, open->throttled });
    *ret_lease = lease;
    return BH_OK;
}

static void
lease_remove_files(const struct bh_share_lease *lease)
{
    static const char *const names[] = { "limits", "slots", "door/share.sock" };
    char path[BH_SHARE_PATH_MAX + 32];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", lease->open.folder, names[i]);
        unlink(path);
    }
}

void
bh_share_lease_close(struct bh_share_lease *lease, uint64_t now_ns)
{
    bh_time_slices_leave(lease->site->slices, now_ns, lease->entity);
    lease_remove_files(lease);
    lease_dispose(lease);
}

uint64_t
bh_share_lease_id(const struct bh_share_lease *lease)
{
    return lease->open.lease;
}

void
bh_share_lease_overhead(struct bh_share_lease *lease, uint32_t device, uint64_t bytes)
{
    uint64_t used = bh_share_pages_used_bytes(lease->pages, device);
    uint64_t more = bytes > used ? bytes - used : 0, before;

    if (device >= lease->open.gpu_count)
        return;
    /* The driver was asked a moment ago: what was freed since is no overhead. */
    lease->driver[device] = bytes;
    if (bh_share_pages_are_outdated(lease->pages))
        return; /* what they reserved stands in a page that cannot be read */
    before = lease->more[device];
    lease->more[device] = more;
    bh_share_pages_overhead(lease->pages, device, more < before ? more : before);
    if (more <= MORE_NOTICE_BYTES)
        lease->more_states[device] = 0;
    else if (lease->more_states[device] < MORE_STATES && ++lease->more_states[device] == MORE_STATES)
        lease_notify(lease, BH_SHARE_NOTICE_MORE, 0);
}

static bool
lease_has_slot(const struct bh_share_lease *lease, uint32_t pid)
{
    for (const struct lease_process *p = lease->processes; p != NULL; p = p->next)
        if (p->pid == pid && p->slot >= 0)
            return true;
    return false;
}

/* Its entry in the table, or a free one, or that of a process that is gone; NULL: none. */
static struct outsider *
lease_outsider_of(struct bh_share_lease *lease, uint64_t now_ns, uint32_t pid)
{
    struct outsider *found = NULL;

    for (uint32_t i = 0; i < OUTSIDERS_MAX; i++) {
        struct outsider *at = &lease->outsiders[i];

        if (at->pid != 0 && now_ns - at->seen_ns > OUTSIDE_GONE_NS)
            *at = (struct outsider){ 0 };
        if (at->pid == pid)
            return at;
        if (at->pid == 0)
            found = at;
    }
    if (found != NULL)
        *found = (struct outsider){ .pid = pid, .since_ns = now_ns };
    return found;
}

void
bh_share_lease_holder(struct bh_share_lease *lease, uint64_t now_ns, uint32_t pid)
{
    struct outsider *outsider;

    if (pid == 0 || lease_has_slot(lease, pid))
        return;
    outsider = lease_outsider_of(lease, now_ns, pid);
    if (outsider == NULL)
        return; /* so many are reported already */
    outsider->seen_ns = now_ns;
    if (outsider->notified || now_ns - outsider->since_ns < OUTSIDE_NOTICE_NS)
        return;
    outsider->notified = true;
    lease_notify(lease, BH_SHARE_NOTICE_BYPASS, pid);
}

void
bh_share_lease_allow(struct bh_share_lease *lease, uint64_t now_ns, const struct bh_share_allow *allow)
{
    if (allow->paused)
        bh_time_slices_pause(lease->site->slices, now_ns, lease->entity);
    else
        bh_time_slices_resume(lease->site->slices, now_ns, lease->entity);
    bh_time_slices_throttle(lease->site->slices, now_ns, lease->entity, allow->throttled);
}

static uint32_t
lease_mib_of(uint64_t bytes)
{
    return bytes >> 20 < UINT32_MAX ? (uint32_t)(bytes >> 20) : UINT32_MAX;
}

struct bh_share_lease_state
bh_share_lease_state(const struct bh_share_lease *lease)
{
    struct bh_share_lease_state state = {
        .lease = lease->open.lease,
        .gpu_ns = bh_time_slices_used_ns(lease->site->slices, lease->entity),
        .granted_ns = lease->measured_granted_ns,
        .at_ns = lease->measured_ns,
        .permille = lease->permille,
        .weight = lease->open.weight,
        .slice = bh_time_slices_state(lease->site->slices, lease->entity),
        .stuck = bh_time_slices_is_stuck(lease->site->slices, lease->entity),
        .outdated = bh_share_pages_are_outdated(lease->pages),
        .processes = lease->count,
        .seen_kind = bh_share_pages_seen_kind(lease->pages),
    };

    for (uint32_t d = 0; d < lease->open.gpu_count; d++) {
        state.used_bytes[d] = bh_share_pages_used_bytes(lease->pages, d);
        state.seen_mib[d] = lease_mib_of(bh_share_pages_seen_bytes(lease->pages, d));
        state.driver_mib[d] = lease_mib_of(lease->driver[d]);
    }
    return state;
}

struct bh_share_measured
bh_share_lease_measure(struct bh_share_lease *lease, uint64_t now_ns)
{
    uint64_t granted_ns = bh_time_slices_granted_ns(lease->site->slices, now_ns, lease->entity);
    struct bh_share_measured measured = { lease->gpus, lease->measured_ns,
                                          granted_ns - lease->measured_granted_ns };

    lease->measured_ns = now_ns;
    lease->measured_granted_ns = granted_ns;
    return measured;
}

void
bh_share_lease_publish(struct bh_share_lease *lease, uint64_t now_ns,
                       const struct bh_share_measured *measured, bool others)
{
    uint64_t elapsed_ns = now_ns - measured->since_ns, permille;
    bool open = bh_time_slices_state(lease->site->slices, lease->entity) == BH_TIME_SLICE_OPEN;

    if (measured->since_ns == 0 || elapsed_ns == 0)
        return;
    permille = measured->granted_ns * 1000 / elapsed_ns;
    lease->permille = permille < 1000 ? (uint32_t)permille : 1000;
    bh_share_pages_busy(lease->pages, lease->measured_granted_ns,
                        now_ns / BH_NS_PER_S << 32 | BH_SHARE_BUSY_KNOWN
                            | (open && !others ? BH_SHARE_BUSY_FREE : 0) | lease->permille);
}

bool
bh_share_lease_follow(struct bh_share_lease *lease, uint64_t now_ns)
{
    static const uint32_t flags[] = {
        [BH_TIME_SLICE_NONE] = BH_SHARE_SHUT,
        [BH_TIME_SLICE_OPEN] = 0,
        [BH_TIME_SLICE_CONTENDED] = BH_SHARE_CONTENDED,
        [BH_TIME_SLICE_ENDING] = BH_SHARE_SHUT,
    };
    enum bh_time_slice slice = bh_time_slices_state(lease->site->slices, lease->entity);
    bool stuck = bh_time_slices_is_stuck(lease->site->slices, lease->entity);
    uint64_t until_ns = bh_time_slices_until_ns(lease->site->slices, lease->entity);

    if (stuck && !lease->stuck)
        lease_notify(lease, BH_SHARE_NOTICE_STUCK, 0);
    lease->stuck = stuck;
    if ((bh_share_pages_slice(lease->pages) & (BH_SHARE_SLICE_STEP - 1)) != flags[slice]
        || bh_share_pages_until_ns(lease->pages) != until_ns) {
        bh_share_pages_set_slice(lease->pages, flags[slice], until_ns);
        if (slice != BH_TIME_SLICE_NONE) /* else they finished, and sleep until their next time slice */
            bh_share_pages_wake(lease->pages);
        for (struct lease_process *p = lease->processes; p != NULL; p = p->next)
            p->drained = p->idle = false;
    }
    if (slice != BH_TIME_SLICE_ENDING || !lease_all(lease, false))
        return false;
    bh_time_slices_drained(lease->site->slices, now_ns, lease->entity);
    return true;
}
