#include "node/guest.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/job.h"
#include "node/launch.h"
#include "node/process.h"
#include "node/ranges.h"

#define LOOK_FIRST (10 * BH_NS_PER_MS) /* what was killed is mostly gone by then */
#define LOOK_AGAIN (500 * BH_NS_PER_MS)
#define LAST_PATIENCE (2 * BH_NS_PER_S)
#define LAST_GLANCE (5 * BH_NS_PER_MS)

struct bh_guest {
    bool used;
    bool stuck;        /* over for whoever started it, and does not go */
    bool alone;
    struct bh_job job; /* what its sandbox is built for and held against; not in the state */
    int init_fd;       /* its process 1 (pidfd), once it was inspected; else -1 */
    int output_fd;
    bh_ns again_at;    /* monotonic; when to look whether it has gone, when stuck */
    bh_ns pause;       /* until then; doubles */
};

struct bh_guests {
    struct bh_guest guest[BH_GUESTS_MAX];
};

struct bh_guests *
bh_guests_new(void)
{
    struct bh_guests *guests = calloc(1, sizeof *guests);

    BH_ASSERT(guests);
    return guests;
}

/* ---- who is there ---- */

static struct bh_guest *
find(const struct bh_node *node, uint64_t number)
{
    for (uint32_t i = 0; i < BH_GUESTS_MAX; i++) {
        struct bh_guest *guest = &node->guests->guest[i];

        if (guest->used && guest->job.note.lease == number)
            return guest;
    }
    return NULL;
}

static struct bh_guest *
find_room(const struct bh_node *node)
{
    for (uint32_t i = 0; i < BH_GUESTS_MAX; i++)
        if (!node->guests->guest[i].used)
            return &node->guests->guest[i];
    return NULL;
}

bool
bh_guest_holds(const struct bh_node *node, const struct bh_note_piece *place)
{
    for (uint32_t i = 0; i < BH_GUESTS_MAX; i++) {
        const struct bh_guest *guest = &node->guests->guest[i];

        if (guest->used && guest->alone && bh_job_overlaps(&guest->job.note, place))
            return true;
    }
    return false;
}

const struct bh_note *
bh_guest_note(const struct bh_node *node, uint32_t at)
{
    BH_ASSERT(at < BH_GUESTS_MAX);
    return node->guests->guest[at].used ? &node->guests->guest[at].job.note : NULL;
}

uint32_t
bh_guest_free_slot(const struct bh_node *node)
{
    struct bh_slots taken = { .count = 0 };

    for (uint32_t i = 0; i < BH_GUESTS_MAX; i++) {
        const struct bh_guest *guest = &node->guests->guest[i];

        if (guest->used)
            taken.slot[taken.count++] = guest->job.note.slot;
    }
    return bh_state_free_slot(&node->state, node->conf.uid_ranges, &taken);
}

uint32_t
bh_guests_fds(const struct bh_node *node, int ret_fds[BH_GUESTS_MAX])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < BH_GUESTS_MAX; i++) {
        const struct bh_guest *guest = &node->guests->guest[i];

        if (guest->used && !guest->stuck && guest->job.pidfd >= 0)
            ret_fds[count++] = guest->job.pidfd;
    }
    return count;
}

/* ---- its life ---- */

static bh_rc
open_guest(struct bh_node *node, const struct bh_guest_request *request, struct bh_guest *guest,
           struct bh_err *err)
{
    struct bh_note *note = &guest->job.note;

    *guest = (struct bh_guest){ .used = true, .alone = request->alone, .init_fd = -1, .job.pidfd = -1 };
    note->kind = BH_NOTE_LEASE;
    note->lease = request->start->lease;
    note->slot = BH_NO_SLOT; /* its own does not count when one is looked for */
    note->slot = request->apart ? bh_range_of_probe(&node->conf) : bh_guest_free_slot(node);
    if (request->lent)
        note->lent[note->lent_count++] = *request->lent;
    guest->output_fd = memfd_create("bulkhead-guest", MFD_CLOEXEC);
    if (guest->output_fd < 0)
        return bh_err_errno(err, "make a file for its output");
    if (!request->apart && note->slot == node->conf.uid_ranges)
        return bh_err_set(err, BH_FULL, "all %u ranges of user ids are in use",
                          node->conf.uid_ranges);
    return BH_OK;
}

bh_rc
bh_guest_start(struct bh_node *node, const struct bh_guest_request *request,
               struct bh_guest **ret_guest, struct bh_err *err)
{
    struct bh_guest *guest = find_room(node);
    char folder[BH_NODE_PATH_MAX];
    bh_rc rc;

    if (find(node, request->start->lease))
        return bh_err_set(err, BH_CONFLICT, "the last one has not gone");
    if (!guest)
        return bh_err_set(err, BH_FULL, "%d sandboxes of the node's own run", BH_GUESTS_MAX);
    rc = open_guest(node, request, guest, err);
    if (rc == BH_OK)
        rc = bh_launch_folder(node, request->start->lease, folder, err);
    if (rc == BH_OK)
        rc = bh_launch(node, &(struct bh_launch){ request->start, &guest->job, guest->output_fd,
                                                  BH_GUEST_OUTPUT_MAX - 1 }, err);
    if (rc == BH_OK)
        *ret_guest = guest;
    else
        bh_guest_remove(node, guest);
    return rc;
}

bool
bh_guest_look(struct bh_node *node, struct bh_guest *guest, struct bh_report *ret_report)
{
    pid_t init = 0;
    BH_AUTO(bh_fd_close) int fd = bh_process_first(node, guest->job.note.lease, &init);

    if (fd < 0 || bh_process_first_state(init) != BH_FIRST_WAITS)
        return false;
    bh_inspect(node, &guest->job, init, ret_report);
    bh_fd_close(guest->init_fd);
    guest->init_fd = bh_fd_steal(&fd);
    return true;
}

bh_rc
bh_guest_let_go(struct bh_guest *guest, struct bh_err *err)
{
    BH_ASSERT(guest->init_fd >= 0);
    return syscall(SYS_pidfd_send_signal, guest->init_fd, SIGUSR1, NULL, 0) != 0
               ? bh_err_errno(err, "let it begin") : BH_OK;
}

/* One whose keeper cannot be watched is over at once: nobody would learn of its end. */
bool
bh_guest_has_ended(const struct bh_guest *guest)
{
    struct pollfd ended = { .fd = guest->job.pidfd, .events = POLLIN };

    return guest->job.pidfd < 0 || poll(&ended, 1, 0) > 0;
}

void
bh_guest_read(const struct bh_guest *guest, char ret_text[BH_GUEST_OUTPUT_MAX])
{
    ssize_t length = pread(guest->output_fd, ret_text, BH_GUEST_OUTPUT_MAX - 1, 0);

    ret_text[length > 0 ? length : 0] = '\0';
}

void
bh_guest_kill(struct bh_node *node, const struct bh_guest *guest)
{
    struct bh_err ignored;
    char id[32];

    bh_node_job_id(guest->job.note.lease, id);
    (void)!node->runtime.ops->signal(node->runtime.self, id, SIGKILL, &ignored);
}

static void
reap(struct bh_guest *guest)
{
    siginfo_t reaped;

    if (guest->job.pidfd >= 0)
        waitid(P_PIDFD, (id_t)guest->job.pidfd, &reaped, WEXITED | WNOHANG);
    bh_fd_close(guest->job.pidfd);
    bh_fd_close(guest->output_fd);
    bh_fd_close(guest->init_fd);
    *guest = (struct bh_guest){ .used = false };
}

/* Whether nothing of it runs any more; what does is killed. */
static bool
has_gone(struct bh_node *node, const struct bh_guest *guest)
{
    struct bh_err ignored;
    uint32_t left = 0;
    char id[32];
    pid_t pid;

    bh_guest_kill(node, guest);
    bh_node_job_id(guest->job.note.lease, id);
    return bh_guest_has_ended(guest)
           && node->runtime.ops->processes(node->runtime.self, id, &pid, 1, &left, &ignored)
                  == BH_OK
           && left == 0;
}

static void
keep_back(struct bh_guest *guest)
{
    bool slow = guest->pause == LOOK_AGAIN;

    guest->pause = !guest->stuck                     ? LOOK_FIRST
                   : guest->pause > LOOK_AGAIN / 2 ? LOOK_AGAIN
                                                    : 2 * guest->pause;
    if (!slow && guest->pause == LOOK_AGAIN)
        bh_log(EFFECT_FAILED, BH_STR("what", "a process does not end"),
               BH_U64("lease", guest->job.note.lease));
    guest->stuck = true;
    guest->again_at = bh_time_monotonic() + guest->pause;
}

void
bh_guest_remove(struct bh_node *node, struct bh_guest *guest)
{
    if (has_gone(node, guest) && bh_launch_clear(node, guest->job.note.lease))
        reap(guest);
    else
        keep_back(guest);
}

bh_ns
bh_guests_tick(struct bh_node *node, bh_ns now)
{
    bh_ns next = 0;

    for (uint32_t i = 0; i < BH_GUESTS_MAX; i++) {
        struct bh_guest *guest = &node->guests->guest[i];

        if (guest->used && guest->stuck && guest->again_at <= now)
            bh_guest_remove(node, guest);
        if (guest->used && guest->stuck && (!next || guest->again_at < next))
            next = guest->again_at;
    }
    return next;
}

static uint32_t
remove_all(struct bh_node *node)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < BH_GUESTS_MAX; i++) {
        struct bh_guest *guest = &node->guests->guest[i];

        if (guest->used && has_gone(node, guest)
            && bh_launch_clear(node, guest->job.note.lease))
            reap(guest);
        left += guest->used;
    }
    return left;
}

/* One that is just being made is killed when it stands in its group. */
void
bh_guests_free(struct bh_node *node)
{
    bh_ns until = bh_time_monotonic() + LAST_PATIENCE;

    while (node->guests && remove_all(node) > 0 && bh_time_monotonic() < until)
        bh_time_sleep(LAST_GLANCE);
    free(node->guests);
    node->guests = NULL;
}
