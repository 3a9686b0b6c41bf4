#include "daemon/changes/verify.h"

#include <inttypes.h>
#include <string.h>

#include "base/time.h"
#include "daemon/authorization/allowance.h"
#include "daemon/authorization/command.h"
#include "daemon/batch/record.h"
#include "daemon/state/job_owner.h"
#include "policy/operations.h"

/* A try that was not answered by then counts no more: its node is gone, or forgot it. */
#define UNDER_WAY (30 * BH_NS_PER_S)

enum { OF_ONE_MAX = 2, OF_NODE_MAX = 4 };

static bool
verify_is_under_way(const struct bh_core *core, const struct bh_verify_order *order)
{
    return order->asked_ns && order->asked_ns + UNDER_WAY > bh_core_now(core);
}

/* How many tries of others than administrators are under way, of a principal or on a node. */
static uint32_t
verify_count_under_way(const struct bh_core *core, uint32_t principal, bh_node_id node)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < BH_CORE_VERIFIES_MAX; i++) {
        const struct bh_verify_order *order = &core->verifies_asked[i];

        if (order->principal && verify_is_under_way(core, order))
            count += principal ? order->principal == principal : bh_same(order->node, node);
    }
    return count;
}

static bh_rc
verify_check_limits(const struct bh_core *core, uint32_t principal, bh_node_id node, struct bh_err *err)
{
    if (!principal)
        return BH_OK;
    if (verify_count_under_way(core, principal, node) < OF_ONE_MAX
        && verify_count_under_way(core, 0, node) < OF_NODE_MAX)
        return BH_OK;
    bh_err_set(err, BH_TOO_MANY, "too many isolation checks are in progress");
    return bh_err_hint(err, "wait until they have ended: a check takes seconds");
}

/* Whether a try of that job, or of that node itself, is under way: then its verdicts are the
 * answer. */
static bool
verify_join(const struct bh_core *core, bh_job_id job, bh_node_id node, struct bh_answer *ret_answer)
{
    uint64_t request = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < BH_CORE_VERIFIES_MAX && !request; i++) {
        const struct bh_verify_order *order = &core->verifies_asked[i];

        if (verify_is_under_way(core, order) && order->job == job.v && (job.v || bh_same(order->node, node)))
            request = order->request;
    }
    if (!request)
        return false;
    for (uint32_t i = 0; i < BH_CORE_VERIFIES_MAX; i++)
        count += core->verifies_asked[i].request == request;
    ret_answer->verify_request = request;
    ret_answer->verify_count = count;
    return true;
}

static uint32_t
verify_counted_for(struct bh_core *core, const struct bh_command *command)
{
    return bh_allowance_is_free(core, &command->caller) ? 0 : command->caller.subject.principal.v;
}

/* To be asked after the commit, and known again when it answers. */
static void
verify_ask(struct bh_core *core, const struct bh_command *command, struct bh_verify_order *order)
{
    order->asked_ns = bh_core_now(core);
    order->principal = verify_counted_for(core, command);
    memcpy(order->req, command->caller.request_id, sizeof order->req);
    if (core->verify_count == BH_CORE_VERIFIES_MAX)
        return; /* the caller gets no verdict, and may ask again */
    core->verifies[core->verify_count++] = *order;
    core->verifies_asked[core->verifies_next++ % BH_CORE_VERIFIES_MAX] = *order;
}

static bh_rc
verify_record(struct bh_core *core, const struct bh_entry *entry, struct bh_answer *ret_answer,
              struct bh_err *err)
{
    ret_answer->verify_request = core->journal.next_seq;
    return bh_core_record(core, entry, BH_OK, err);
}

static bh_rc
verify_job(struct bh_core *core, const struct bh_command *command, struct bh_answer *ret_answer,
           struct bh_err *err)
{
    struct bh_member_view member;
    struct bh_verdict verdict;
    struct bh_job_view view;
    struct bh_entry entry;
    struct bh_answer of_another = { 0 };
    struct bh_job_owner whose;
    bool shared;
    bh_rc rc = bh_job_owner_find(core, command->job, &whose, err);

    if (rc != BH_OK)
        return rc;
    verdict = bh_command_authz(core, command, "isolation.verify", whose.tenant);
    if (!verdict.allow)
        return bh_command_deny(core, command, whose.tenant,
                               (struct bh_denial){ "isolation.verify", verdict, BH_REACH_OBJECT }, err);
    if (!bh_view_job(core->state.engine, command->job, &view) || view.state != BH_JOB_RUNNING)
        return bh_err_set(err, BH_CONFLICT, "job %" PRIu64 " is not running", command->job.v);
    entry = bh_command_entry(&command->caller, command->op, view.tenant, verdict);
    entry.obj = (struct bh_record_object){ .type = "job", .id = command->job.v };
    shared = verify_join(core, command->job, (bh_node_id){ 0 }, &of_another);
    if (!shared && bh_view_member(core->state.engine, command->job, 0, &member))
        rc = verify_check_limits(core, verify_counted_for(core, command), member.node, err);
    if (rc == BH_OK)
        rc = verify_record(core, &entry, ret_answer, err);
    if (shared) {
        *ret_answer = of_another;
        return rc;
    }
    for (uint32_t i = 0; rc == BH_OK && bh_view_member(core->state.engine, command->job, i, &member); i++) {
        if (member.done || !member.node.v)
            continue;
        verify_ask(core, command,
                   &(struct bh_verify_order){ member.node, member.lease.v, ret_answer->verify_request,
                                              command->job.v, view.tenant.v });
        ret_answer->verify_count++;
    }
    return rc;
}

static void
verify_ask_node(struct bh_core *core, const struct bh_command *command, uint32_t id, struct bh_answer *answer)
{
    struct bh_host_view host;

    if (!bh_view_host(core->state.engine, (bh_node_id){ id }, &host) || !host.up)
        return;
    verify_ask(core, command, &(struct bh_verify_order){ .node = { id }, .request = answer->verify_request });
    answer->verify_count++;
}

static bh_rc
verify_nodes(struct bh_core *core, const struct bh_command *command, struct bh_answer *ret_answer,
             struct bh_err *err)
{
    struct bh_verdict verdict = bh_command_authz(core, command, "isolation.verify", (bh_tenant_id){ 0 });
    bool all = !command->text || !*command->text;
    struct bh_entry entry;
    struct bh_answer of_another = { 0 };
    uint32_t cursor = 0, id = 0;
    bool shared;
    bh_rc rc = BH_OK;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ "isolation.verify", verdict, BH_REACH_OBJECT }, err);
    if (!all)
        id = bh_catalog_find(core->catalog, BH_NAME_NODE, command->text);
    if (!all && !id)
        return bh_err_set(err, BH_NOT_FOUND, "no node %.60s", command->text);
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    entry.obj = all ? (struct bh_record_object){ .type = "site" }
                    : (struct bh_record_object){ .type = "node", .id = id };
    shared = !all && verify_join(core, (bh_job_id){ 0 }, (bh_node_id){ id }, &of_another);
    if (!shared)
        rc = verify_check_limits(core, verify_counted_for(core, command), (bh_node_id){ id }, err);
    if (rc == BH_OK)
        rc = verify_record(core, &entry, ret_answer, err);
    if (shared) {
        *ret_answer = of_another;
        return rc;
    }
    if (rc == BH_OK && !all)
        verify_ask_node(core, command, id, ret_answer);
    while (rc == BH_OK && all && bh_catalog_next(core->catalog, BH_NAME_NODE, &cursor, &id))
        verify_ask_node(core, command, id, ret_answer);
    return rc;
}

bh_rc
bh_verify_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
              struct bh_answer *ret_answer, struct bh_err *err)
{
    return command->op == BH_OP_JOB_VERIFY ? verify_job(core, command, ret_answer, err)
                                           : verify_nodes(core, command, ret_answer, err);
}
