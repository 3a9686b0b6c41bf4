#include "daemon/owner/owner.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/authorization/allowance.h"
#include "daemon/authorization/command.h"
#include "daemon/batch/abandoned_orders.h"
#include "daemon/batch/access.h"
#include "daemon/batch/batch.h"
#include "daemon/batch/record.h"
#include "daemon/batch/rows.h"
#include "daemon/batch/snapshot.h"
#include "daemon/batch/step.h"
#include "daemon/nodes/checks.h"
#include "daemon/nodes/links.h"
#include "daemon/nodes/orders.h"
#include "daemon/owner/dispatch.h"
#include "daemon/owner/forecaster.h"
#include "daemon/owner/pause.h"
#include "daemon/owner/queued_refusal.h"
#include "daemon/owner/start.h"
#include "daemon/owner/unauthenticated.h"
#include "wire/message.h"

/* One thing that a worker wants; lives on the worker's stack until it is done. */
struct owner_request {
    struct owner_request *next;
    /* a command */
    const struct bh_command *command;
    struct bh_arena *arena;
    struct bh_answer *answer;
    /* or a question */
    bh_question question;
    void *question_self;
    /* of either */
    struct bh_work work; /* of the worker */
    /* the result */
    struct bh_err *err;
    bh_rc rc;
    sem_t finished;
};

/* Of the owner thread, where no request asked for it. */
static const struct bh_work own_work = { .kind = BH_WORK_OWN, .owner = true };

static const bh_ns abandon_after_ns = 60 * BH_NS_PER_S;
static const bh_ns refresh_pause_ns = 200 * BH_NS_PER_MS;

enum { REFUSALS_MAX = 1024, UNKNOWN_MAX = 64, IDLE_POLL_MS = 1000 };

struct bh_owner_thread {
    /* owner thread */
    struct bh_core *core;
    struct bh_node_links *links;
    struct bh_forecaster *forecaster;
    struct bh_pause pause;
    struct bh_err failure; /* that ended the thread */
    bool by_request;       /* the batch in hand failed by what a request asked for */
    bh_ns refresh_ns;      /* reasons in rows are not refreshed before */
    uint64_t abandon_ns;   /* orders that nothing waits for are not looked for before */
    struct bh_queued_refusal *taken;
    uint64_t taken_more;
    struct bh_unauthenticated taken_unauthenticated;
    /* shared, under mutex */
    struct bh_mutex mutex;
    struct owner_request *first, **last;
    struct bh_queued_refusal *refusals;
    uint32_t refusal_count, unknown_count;     /* the latter are of unknown users */
    uint64_t unknown_more;                     /* that found no room */
    struct bh_unauthenticated unauthenticated; /* wrong credentials */
    bool stopping;
    /* fixed */
    int wake_fd;
    pthread_t thread;
    atomic_bool failed;
};

/* ---- the workers' side ---- */

static void
owner_wake(struct bh_owner_thread *owner)
{
    uint64_t one = 1;

    if (write(owner->wake_fd, &one, sizeof one) < 0)
        return; /* the counter is full: it is awake */
}

static bh_rc
owner_wait_for(struct bh_owner_thread *owner, struct owner_request *request)
{
    sem_init(&request->finished, 0, 0);
    request->rc = bh_err_set(request->err, BH_UNAVAILABLE, "the daemon is stopping");
    request->work = *bh_work_get();
    request->work.owner = true;
    bh_mutex_lock(&owner->mutex);
    if (owner->stopping) {
        sem_post(&request->finished);
    } else {
        bool was_empty = !owner->first;

        *owner->last = request;
        owner->last = &request->next;
        if (was_empty)
            owner_wake(owner);
    }
    bh_mutex_unlock(&owner->mutex);
    while (sem_wait(&request->finished) != 0)
        ;
    sem_destroy(&request->finished);
    return request->rc;
}

static bh_rc
owner_port_command(void *self, const struct bh_command *command, struct bh_arena *arena,
                   struct bh_answer *ret_answer, struct bh_err *err)
{
    struct owner_request request = { .command = command, .arena = arena, .answer = ret_answer, .err = err };

    return owner_wait_for(self, &request);
}

static bh_rc
owner_port_ask(void *self, bh_question question, void *question_self, struct bh_err *err)
{
    struct owner_request request = { .question = question, .question_self = question_self, .err = err };

    return owner_wait_for(self, &request);
}

/* A question to the forecasts is one to the engine that knows where they are. */
struct forecast_request {
    const struct bh_owner_thread *owner;
    bh_forecast_question question;
    void *self;
};

static void
owner_run_forecast_question(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    const struct forecast_request *request = self;

    request->question(request->self, bh_forecaster_series(request->owner->forecaster), engine, now_ns);
}

static bh_rc
owner_port_ask_forecast(void *self, bh_forecast_question question, void *question_self, struct bh_err *err)
{
    struct forecast_request request = { self, question, question_self };

    return owner_port_ask(self, owner_run_forecast_question, &request, err);
}

/* The kernel gives the Unix user of an unknown caller on the socket, and that is recorded.  Over HTTPS there
 * is an address at most, which no record holds: so there is none.  Nor is there one of an unknown caller's
 * request that came too often, so that the caller's rate bounds these records, too. */
static bool
owner_is_for_a_record(const struct bh_caller *caller, bh_rc rc)
{
    return caller->subject.principal.v != 0 || (caller->via == BH_VIA_PEER && rc == BH_UNAUTHENTICATED);
}

static void
owner_port_refused(void *self, const struct bh_caller *caller, const struct bh_refused_request *attempt,
                   const struct bh_err *err)
{
    struct bh_owner_thread *owner = self;
    const struct bh_counted_refusal what = { *attempt, err->rc, 1 };
    bool unknown_caller = caller->subject.principal.v == 0;
    struct bh_queued_refusal *last;

    if (!owner_is_for_a_record(caller, err->rc))
        return;
    bh_mutex_lock(&owner->mutex);
    last = owner->refusal_count > 0 ? &owner->refusals[owner->refusal_count - 1] : NULL;
    if (last && bh_queued_refusal_is(last, caller, &what)) {
        last->what.times++;
    } else if (unknown_caller && owner->unknown_count == UNKNOWN_MAX) {
        owner->unknown_more++; /* they leave room for known callers */
    } else if (owner->refusal_count < REFUSALS_MAX && !owner->stopping) {
        bh_queued_refusal_set(&owner->refusals[owner->refusal_count++], caller, &what);
        owner->unknown_count += unknown_caller;
        owner_wake(owner);
    }
    bh_mutex_unlock(&owner->mutex);
}

static void
owner_port_unauthenticated(void *self, uint64_t token)
{
    struct bh_owner_thread *owner = self;

    bh_mutex_lock(&owner->mutex);
    if (!owner->stopping && !bh_unauthenticated_add(&owner->unauthenticated, token))
        owner_wake(owner);
    bh_mutex_unlock(&owner->mutex);
}

static const struct bh_directory *
owner_port_directory_get(void *self)
{
    struct bh_owner_thread *owner = self;

    return bh_catalog_get(owner->core->catalog);
}

static void
owner_port_directory_put(void *self, const struct bh_directory *dir)
{
    struct bh_owner_thread *owner = self;

    bh_catalog_put(owner->core->catalog, dir);
}

static uint64_t
owner_port_change_number(void *self)
{
    struct bh_owner_thread *owner = self;

    return bh_hub_number(owner->core->hub);
}

static uint32_t
owner_port_changes(void *self, uint64_t after, uint64_t wait_ns, struct bh_change *ret_changes, uint32_t max)
{
    struct bh_owner_thread *owner = self;

    return bh_hub_wait(owner->core->hub, after, wait_ns, ret_changes, max);
}

static bool
owner_port_inventory(void *self, uint32_t *cursor, struct bh_buf *ret_json)
{
    struct bh_owner_thread *owner = self;

    return bh_node_links_inventory(owner->links, cursor, ret_json);
}

static bool
owner_port_verdict(void *self, uint64_t request, uint32_t *cursor, struct bh_buf *ret_json)
{
    struct bh_owner_thread *owner = self;

    return bh_node_links_verdict(owner->links, request, cursor, ret_json);
}

static uint64_t
owner_port_commits(void *self)
{
    struct bh_owner_thread *owner = self;

    return atomic_load(&owner->core->commits);
}

static void
owner_port_tally(void *self, uint64_t ret_tally[BH_TALLIES])
{
    struct bh_owner_thread *owner = self;

    bh_tally_read(&owner->core->tally, ret_tally);
}

static struct bh_signed
owner_port_last_signed(void *self)
{
    struct bh_owner_thread *owner = self;

    return (struct bh_signed){ atomic_load(&owner->core->signed_records),
                               atomic_load(&owner->core->signed_ns) };
}

static bh_rc
owner_port_admit(void *self, const struct bh_work *work, struct bh_err *err)
{
    struct bh_owner_thread *owner = self;

    return bh_quarantine_check(owner->core->quarantine, work, bh_time_now(), err);
}

static const char *
owner_port_log_path(void *self, bh_job_id job, uint32_t member, struct bh_arena *arena)
{
    struct bh_owner_thread *owner = self;
    char name[BH_LOG_NAME_MAX];

    bh_job_log_name(job.v, member, bh_epochs_of_job(&owner->core->epochs, job.v), name);
    return bh_arena_printf(arena, "%s/%s", owner->core->config->log_dir, name);
}

static const struct bh_owner_ops port_ops = {
    .command = owner_port_command,
    .ask = owner_port_ask,
    .ask_forecast = owner_port_ask_forecast,
    .refused = owner_port_refused,
    .unauthenticated = owner_port_unauthenticated,
    .directory_get = owner_port_directory_get,
    .directory_put = owner_port_directory_put,
    .change_number = owner_port_change_number,
    .changes = owner_port_changes,
    .inventory = owner_port_inventory,
    .verdict = owner_port_verdict,
    .commits = owner_port_commits,
    .tally = owner_port_tally,
    .last_signed = owner_port_last_signed,
    .log_path = owner_port_log_path,
    .admit = owner_port_admit,
};

struct bh_owner
bh_owner_port(struct bh_owner_thread *owner)
{
    return (struct bh_owner){ &port_ops, owner };
}

/* ---- the owner's side ---- */

/* Takes up to batch_max wishes and all refusals; the rest stays queued. */
static struct owner_request *
owner_dequeue_requests(struct bh_owner_thread *owner, uint32_t *ret_refusals, bool *ret_stopping)
{
    struct owner_request *first, **end;
    bool later = bh_pause_is_on(&owner->pause);

    bh_mutex_lock(&owner->mutex);
    first = owner->first;
    end = &owner->first;
    for (uint32_t n = 0; *end && n < owner->core->config->batch_max; n++)
        end = &(*end)->next;
    owner->first = *end;
    *end = NULL;
    if (!owner->first)
        owner->last = &owner->first;
    else
        owner_wake(owner);
    if (end == &owner->first)
        first = NULL;
    *ret_refusals = later ? 0 : owner->refusal_count;
    memcpy(owner->taken, owner->refusals, *ret_refusals * sizeof *owner->taken);
    owner->refusal_count -= *ret_refusals;
    owner->taken_more = later ? 0 : owner->unknown_more;
    owner->taken_unauthenticated = later ? (struct bh_unauthenticated){ 0 } : owner->unauthenticated;
    if (!later) {
        owner->unknown_more = owner->unknown_count = 0;
        owner->unauthenticated = (struct bh_unauthenticated){ 0 };
    }
    *ret_stopping = owner->stopping;
    bh_mutex_unlock(&owner->mutex);
    return first;
}

/* Each has a semaphore of its own: threads that wake want no lock that is held here. */
static void
owner_finish_requests(struct owner_request *request)
{
    while (request) {
        struct owner_request *next = request->next; /* it is gone once its worker wakes */

        sem_post(&request->finished);
        request = next;
    }
}

/* False, with the reason in `ret_why`, when the batch must be aborted. */
static bool
owner_run_commands(struct bh_owner_thread *owner, struct owner_request *request, struct bh_err *ret_why)
{
    for (; request; request = request->next) {
        if (!request->command)
            continue;
        request->rc = bh_allowance_check_disk(owner->core, request->command, request->err);
        if (request->rc != BH_OK)
            continue;
        bh_work_set(request->work);
        request->rc =
            bh_dispatch_run(owner->core, request->command, request->arena, request->answer, request->err);
        bh_work_set(own_work);
        if (bh_core_is_fatal(request->rc)) {
            *ret_why = *request->err;
            owner->by_request = true;
            return false;
        }
    }
    return true;
}

static bh_rc
owner_record_more_unknown(struct bh_owner_thread *owner)
{
    const struct bh_caller several = { .via = BH_VIA_PEER, .subject.uid = BH_RECORD_UID_SEVERAL };
    const struct bh_counted_refusal what = { { .op = BH_OP_STATUS, .verb = BH_RECORD_CALLER_UNKNOWN },
                                             BH_UNAUTHENTICATED,
                                             owner->taken_more };

    return owner->taken_more ? bh_command_refused(owner->core, &several, &what) : BH_OK;
}

static bool
owner_run_refusals(struct bh_owner_thread *owner, uint32_t count, struct bh_err *ret_why)
{
    ret_why->rc = BH_OK;
    for (uint32_t i = 0; i < count; i++) {
        struct bh_queued_refusal *refusal = &owner->taken[i];

        bh_queued_refusal_point(refusal);
        ret_why->rc = bh_command_refused(owner->core, &refusal->caller, &refusal->what);
        if (ret_why->rc != BH_OK)
            break;
    }
    if (ret_why->rc == BH_OK)
        ret_why->rc = owner_record_more_unknown(owner);
    if (ret_why->rc == BH_OK)
        ret_why->rc = bh_unauthenticated_record(owner->core, &owner->taken_unauthenticated, ret_why);
    if (ret_why->rc != BH_OK)
        bh_err_set(ret_why, ret_why->rc, "a refusal could not be recorded");
    return ret_why->rc == BH_OK;
}

/* Time limits that have come, and decisions that a step had no room for. */
static bh_rc
owner_run_ticks(struct bh_owner_thread *owner, struct bh_err *err)
{
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = "tick" };
    bh_rc rc = BH_OK;

    for (int n = 0; n < 64 && rc == BH_OK; n++) {
        struct bh_event event = { .kind = BH_EV_TICK };

        if (!owner->core->step.more
            && bh_engine_next_tick_ns(owner->core->state.engine) > bh_core_now(owner->core))
            break;
        rc = bh_core_step(owner->core, &entry, &event, err);
    }
    return rc == BH_OK ? bh_checks_ask(owner->core, err) : rc;
}

static void
owner_answer_questions(struct bh_owner_thread *owner, struct owner_request *request)
{
    for (; request; request = request->next) {
        if (!request->question)
            continue;
        bh_work_set(request->work);
        request->question(request->question_self, owner->core->state.engine, bh_core_now(owner->core));
        bh_work_set(own_work);
        request->rc = BH_OK;
    }
}

/* A request that fails is no reason to keep the next one waiting; own work is tried again. */
static void
owner_pause(struct bh_owner_thread *owner, const struct bh_err *why)
{
    bool by_request = owner->by_request;

    owner->by_request = false;
    if (why->rc == BH_FULL) {
        if (bh_pause_on_full(&owner->pause))
            bh_log(DISK_FULL, BH_ERRLOG(why));
        return;
    }
    bh_log(COMMIT_FAILED, BH_ERRLOG(why), BH_STR("next", why->hint));
    if (!by_request)
        bh_pause_on_failure(&owner->pause, why, atomic_load(&owner->core->commits));
}

/* main says why when all has stopped. */
static void
owner_end_daemon(struct bh_owner_thread *owner, const struct bh_err *why)
{
    owner->failure = *why;
    atomic_store(&owner->failed, true);
    kill(getpid(), SIGTERM); /* wakes main, which ends the program */
}

static void
owner_fail_batch(struct bh_owner_thread *owner, struct owner_request *requests, const struct bh_err *why)
{
    struct bh_err lost;

    owner_pause(owner, why);
    for (struct owner_request *request = requests; request; request = request->next) {
        request->rc = why->rc;
        *request->err = *why;
        if (request->answer)
            *request->answer = (struct bh_answer){ 0 };
    }
    bh_node_links_reset(owner->links);
    /* Whether an uncertain commit was kept, and what a damaged store has, is known only after a fresh
     * start. */
    if (why->rc == BH_UNCERTAIN)
        owner_end_daemon(owner, why);
    else if (bh_core_abort(owner->core, &lost) != BH_OK)
        owner_end_daemon(owner, &lost);
    else
        owner_answer_questions(owner, requests);
}

static bh_rc
owner_change_all(struct bh_owner_thread *owner, struct owner_request *requests, uint32_t refusals,
                 bool nodes_speak, struct bh_err *err)
{
    bh_rc rc = bh_start_settle(owner->core, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_node_links_report_down(owner->links, err);
    if (rc != BH_OK)
        return rc;
    if (nodes_speak)
        rc = bh_node_links_receive(owner->links, err);
    if (rc != BH_OK)
        return rc;
    if (!owner_run_commands(owner, requests, err) || !owner_run_refusals(owner, refusals, err))
        rc = err->rc;
    if (rc != BH_OK)
        return rc;
    rc = bh_core_record_refusals(owner->core, false, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_forecaster_update(owner->forecaster, err);
    if (rc != BH_OK)
        return rc;
    rc = owner_run_ticks(owner, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_access_check(owner->core, err);
    if (rc != BH_OK)
        return rc;
    return bh_core_commit(owner->core, err);
}

/* During a pause reads are served, changes are refused by name. */
static void
owner_refuse_changes(struct bh_owner_thread *owner, struct owner_request *requests)
{
    for (struct owner_request *request = requests; request; request = request->next)
        request->rc = bh_pause_explain(&owner->pause, request->err);
    owner_answer_questions(owner, requests);
}

/* One batch: all that is there, one commit, then answers and effects. */
static bool
owner_run_batch(struct bh_owner_thread *owner, bool nodes_speak)
{
    struct bh_err err = { .rc = BH_IO, .msg = "the journal could not be written" };
    uint32_t refusals;
    bool stopping;
    struct owner_request *requests = owner_dequeue_requests(owner, &refusals, &stopping);

    bh_clock_tick(&owner->core->clock);
    if (bh_pause_is_on(&owner->pause) || bh_pause_on_gone(&owner->pause, &owner->core->store)) {
        owner_refuse_changes(owner, requests);
    } else if (owner_change_all(owner, requests, refusals, nodes_speak, &err) == BH_OK) {
        bh_pause_end(&owner->pause);
        owner_answer_questions(owner, requests);
        bh_node_links_release(owner->links);
    } else {
        owner_fail_batch(owner, requests, &err);
    }
    owner_finish_requests(requests);
    return !stopping && !atomic_load(&owner->failed);
}

/* How long poll may sleep: until the engine wants a tick, the link wants to connect, the
 * forecasts want a look or a checkpoint is due. */
static int
owner_sleep_ms(const struct bh_owner_thread *owner)
{
    uint64_t now = bh_core_now(owner->core), monotonic = bh_time_monotonic();
    uint64_t tick = bh_engine_next_tick_ns(owner->core->state.engine);
    uint64_t try = bh_node_links_connect_ns(owner->links);
    uint64_t update_ns = bh_forecaster_next_ns(owner->forecaster);
    uint64_t wait = IDLE_POLL_MS * BH_NS_PER_MS;

    if (bh_pause_is_on(&owner->pause))
        return (int)((owner->pause.until_ns - monotonic) / BH_NS_PER_MS) + 1;
    if (tick <= now || try <= monotonic || update_ns <= now)
        return 0;
    if (owner->core->reasons_stale && refresh_pause_ns < wait)
        wait = refresh_pause_ns;
    if (tick - now < wait)
        wait = tick - now;
    if (update_ns - now < wait)
        wait = update_ns - now;
    if (try - monotonic < wait)
        wait = try - monotonic;
    return (int)(wait / BH_NS_PER_MS) + 1;
}

/* Reasons in the jobs table follow what happened, a little later and a few at a time. */
static void
owner_refresh_when_idle(struct bh_owner_thread *owner)
{
    struct bh_core *core = owner->core;
    bh_ns now = bh_time_monotonic();
    struct bh_err err;

    if (!core->reasons_stale || bh_pause_is_on(&owner->pause) || now < owner->refresh_ns)
        return;
    owner->refresh_ns = now + refresh_pause_ns;
    if (bh_rows_refresh(core, bh_core_now(core), &err) != BH_OK || bh_core_commit(core, &err) != BH_OK)
        owner_fail_batch(owner, NULL, &err);
}

/* What was written since the last checkpoint is signed when things get quiet, and what was
 * signed is stored. */
static void
owner_sign_when_idle(struct bh_owner_thread *owner)
{
    struct bh_core *core = owner->core;
    struct bh_err err;

    if (core->open || bh_pause_is_on(&owner->pause))
        return;
    bh_journal_ask(&core->journal, bh_core_now(core), core->config->checkpoint_interval);
    if (!bh_journal_signed(&core->journal))
        return;
    if (bh_core_begin(owner->core, &err) != BH_OK || bh_core_commit(owner->core, &err) != BH_OK)
        owner_fail_batch(owner, NULL, &err);
}

/* Orders that nothing waits for are closed in the log; the answers to most come before. */
static void
owner_abandon_when_idle(struct bh_owner_thread *owner)
{
    struct bh_core *core = owner->core;
    uint64_t now = bh_core_now(core);
    struct bh_err err;

    if (core->open || bh_pause_is_on(&owner->pause) || now < owner->abandon_ns)
        return;
    owner->abandon_ns = now + abandon_after_ns / 2;
    if (bh_abandoned_orders_record(core, now - abandon_after_ns, &err) != BH_OK
        || bh_core_commit(core, &err) != BH_OK)
        owner_fail_batch(owner, NULL, &err);
}

/* The thread ends: refuse all that waits for it, now and later. */
static void
owner_refuse_pending(struct bh_owner_thread *owner)
{
    struct owner_request *left;

    bh_mutex_lock(&owner->mutex);
    owner->stopping = true;
    left = owner->first;
    owner->first = NULL;
    owner->last = &owner->first;
    bh_mutex_unlock(&owner->mutex);
    owner_finish_requests(left);
}

static void *
owner_run_thread(void *self)
{
    struct bh_owner_thread *owner = self;
    bool more = true;

    bh_work_set(own_work);
    while (more) {
        const struct bh_signing *signing = &owner->core->journal.checkpoints.signing;
        struct pollfd fds[3] = {
            { .fd = owner->wake_fd, .events = POLLIN },
            { .fd = bh_pause_is_on(&owner->pause) ? -1 : bh_node_links_fd(owner->links), .events = POLLIN },
            { .fd = bh_pause_is_on(&owner->pause) ? -1 : signing->ops->fd(signing->self), .events = POLLIN },
        };
        uint64_t count;

        if (poll(fds, BH_COUNT(fds), owner_sleep_ms(owner)) < 0 && errno != EINTR)
            break;
        if (fds[0].revents && read(owner->wake_fd, &count, sizeof count) < 0)
            continue;
        more = owner_run_batch(owner, fds[1].revents != 0);
        if (!bh_pause_is_on(&owner->pause))
            bh_node_links_connect(owner->links);
        owner_refresh_when_idle(owner);
        owner_abandon_when_idle(owner);
        owner_sign_when_idle(owner);
    }
    owner_refuse_pending(owner);
    return NULL;
}

static const char *
owner_find_socket(void *self, bh_node_id node, struct bh_arena *arena)
{
    const struct bh_owner_thread *owner = self;

    return bh_node_links_socket(owner->links, node, arena);
}

bh_rc
bh_owner_start(struct bh_core *core, struct bh_owner_thread **ret_owner, struct bh_err *err)
{
    struct bh_owner_thread *owner = calloc(1, sizeof *owner);
    uint64_t held_ns = bh_quarantine_own_ns(core->quarantine, bh_time_now());

    BH_ASSERT(owner);
    owner->core = core;
    owner->links = bh_node_links_new(core);
    core->node_socket = owner_find_socket;
    core->node_socket_self = owner;
    owner->forecaster = bh_forecaster_open(core);
    owner->last = &owner->first;
    owner->refusals = calloc(REFUSALS_MAX, sizeof *owner->refusals);
    owner->taken = calloc(REFUSALS_MAX, sizeof *owner->taken);
    BH_ASSERT(owner->refusals && owner->taken);
    bh_mutex_init(&owner->mutex, BH_LOCK_OWNER);
    if (held_ns == 0 && core->start_due)
        (void)bh_pause_on_full(&owner->pause); /* logged by the start */
    else
        bh_pause_hold(&owner->pause, held_ns);
    owner->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (owner->wake_fd < 0 || pthread_create(&owner->thread, NULL, owner_run_thread, owner) != 0)
        return bh_err_errno(err, "start the owner thread");
    *ret_owner = owner;
    return BH_OK;
}

void
bh_owner_halt(struct bh_owner_thread *owner)
{
    bh_mutex_lock(&owner->mutex);
    owner->stopping = true;
    owner_wake(owner);
    bh_mutex_unlock(&owner->mutex);
    bh_hub_stop(owner->core->hub);
}

/* The last record of a clean stop is a snapshot's; what is signed after it leaves nothing that
 * could be changed unseen while no daemon runs. */
static bh_rc
owner_close_journal(struct bh_core *core, struct bh_err *err)
{
    bh_rc rc = bh_core_record_refusals(core, true, err);

    if (rc != BH_OK)
        return rc;
    if (core->journal.next_seq != core->snapshot_seq) {
        rc = bh_snapshot_write(core, err);
        if (rc != BH_OK)
            return rc;
        rc = bh_core_commit(core, err);
        if (rc != BH_OK)
            return rc;
    }
    if (bh_journal_finish(&core->journal, err) != BH_OK)
        bh_log(STOPPED_UNSIGNED, BH_ERRLOG(err));
    if (!bh_journal_signed(&core->journal))
        return BH_OK;
    rc = bh_core_begin(core, err);
    return rc == BH_OK ? bh_core_commit(core, err) : rc;
}

void
bh_owner_stop(struct bh_owner_thread *owner)
{
    struct bh_err err;

    bh_owner_halt(owner);
    pthread_join(owner->thread, NULL);
    if (!atomic_load(&owner->failed) && !owner->core->start_due && !owner->pause.gone
        && owner_close_journal(owner->core, &err) != BH_OK)
        bh_log(COMMIT_FAILED, BH_ERRLOG(&err));
    bh_node_links_free(owner->links);
    bh_forecaster_close(owner->forecaster);
    close(owner->wake_fd);
    bh_mutex_fini(&owner->mutex);
    free(owner->refusals);
    free(owner->taken);
    free(owner);
}

bool
bh_owner_failed(const struct bh_owner_thread *owner, struct bh_err *ret_why)
{
    if (!atomic_load(&owner->failed))
        return false;
    *ret_why = owner->failure;
    return true;
}
