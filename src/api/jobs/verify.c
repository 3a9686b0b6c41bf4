#include "api/jobs/verify.h"

#include "api/jobs/jobs.h"
#include "api/request/reply.h"
#include "base/time.h"

#define WAIT_MAX (30 * BH_NS_PER_S)
#define POLL_INTERVAL (10 * BH_NS_PER_MS)

enum { LATER_S = 5 /* until a try is over, and its place free */ };

/* The verdicts that are there, as the nodes said them; how many. */
static uint32_t
put_verdicts(struct bh_call *call, uint64_t request, struct bh_buf *out)
{
    const struct bh_owner *owner = &call->api->options.owner;
    uint32_t cursor = 0, count = 0;

    out->length = 0;
    while (owner->ops->verdict(owner->self, request, &cursor, out))
        count++;
    return count;
}

static bh_rc
verify_start(struct bh_call *call, struct bh_command *command, struct bh_err *err)
{
    struct bh_answer answer;
    struct bh_rows rows;
    struct bh_buf verdicts;
    bh_ns until = bh_time_monotonic() + WAIT_MAX;
    bh_rc rc = bh_call_command(call, command, &answer, err);

    if (rc == BH_TOO_MANY)
        call->retry_after_s = LATER_S;
    if (rc != BH_OK)
        return rc;
    if (answer.replayed) {
        bh_buf_puts(&call->reply->body, answer.replayed);
        return BH_OK;
    }
    bh_buf_init(&verdicts, 4 << 20);
    while (put_verdicts(call, answer.verify_request, &verdicts) < answer.verify_count
           && bh_time_monotonic() < until)
        bh_time_sleep(POLL_INTERVAL);
    rows = bh_rows_begin(call, &bh_reply_verification_fields);
    bh_buf_put(&call->reply->body, verdicts.bytes, verdicts.length);
    bh_rows_end(&rows, &(struct bh_reply_verification){ .asked = answer.verify_count,
                                                        .request = answer.verify_request });
    bh_buf_fini(&verdicts);
    return BH_OK;
}

bh_rc
bh_verify_job(struct bh_call *call, struct bh_err *err)
{
    struct bh_command command = { 0 };
    struct bh_job_row row;
    bh_rc rc = bh_jobs_find(call, &row, err);

    if (rc != BH_OK)
        return rc;
    command.job = (bh_job_id){ row.job };
    return verify_start(call, &command, err);
}

bh_rc
bh_verify_node(struct bh_call *call, struct bh_err *err)
{
    struct bh_command command = { .text = call->query.node };

    return verify_start(call, &command, err);
}
