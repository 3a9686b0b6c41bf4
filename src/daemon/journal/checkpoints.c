#include "daemon/journal/checkpoints.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/time.h"

static const bh_ns refused_pause_ns = 1 * BH_NS_PER_S;
static const bh_ns answer_max_ns = 10 * BH_NS_PER_S;
static const bh_ns finish_max_ns = 5 * BH_NS_PER_S; /* a stop does not hang on the signer */
static const int finish_poll_ms = 20;               /* also without a connection to wait on */

/* ---- what was appended ---- */

struct appended {
    struct bh_range *range;
    const struct bh_crypto_ops *crypto;
};

static bool
checkpoints_append_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct appended *appended = self;
    uint8_t hash[32];

    if (seq != appended->range->to)
        return false;
    bh_merkle_leaf(appended->crypto, leaf, length, hash);
    bh_range_add(appended->range, appended->crypto, hash);
    return true;
}

static bool
checkpoints_read_first(void *self, uint64_t seq, const char *leaf, size_t length)
{
    *(uint64_t *)self = seq;
    return false;
}

struct pruned {
    struct bh_range *range;
    const struct bh_crypto_ops *crypto;
    uint64_t end; /* the first record that is left */
};

static bool
checkpoints_append_hash(void *self, uint64_t seq, const struct bh_digest *hash)
{
    struct pruned *pruned = self;

    if (seq >= pruned->end || seq != pruned->range->to)
        return false;
    bh_range_add(pruned->range, pruned->crypto, hash->bytes);
    return true;
}

/* Of records that were pruned, from `from` on, the hashes that they left behind.  Those of the
 * others are computed from their bytes. */
static bh_rc
checkpoints_read_pruned(struct bh_checkpoints *c, const struct bh_store *store, uint64_t from,
                        struct bh_err *err)
{
    struct pruned pruned = { &c->since_durable, c->crypto, from };
    bh_rc rc =
        store->ops->list_records(store->self, from, INT64_MAX, checkpoints_read_first, &pruned.end, err);

    if (rc != BH_OK || pruned.end == from)
        return rc;
    return store->ops->list_hashes(store->self, from, checkpoints_append_hash, &pruned, err);
}

/* The range from `from` to the end of the store, of committed records. */
static bh_rc
checkpoints_read_range(struct bh_checkpoints *c, const struct bh_store *store, uint64_t from,
                       struct bh_err *err)
{
    struct appended appended = { &c->since_durable, c->crypto };
    bh_rc rc;

    bh_range_begin(&c->since_durable, from);
    rc = checkpoints_read_pruned(c, store, from, err);
    if (rc == BH_OK)
        rc = store->ops->list_records(store->self, c->since_durable.to, INT64_MAX, checkpoints_append_record,
                                      &appended, err);
    c->since = c->since_durable;
    return rc;
}

void
bh_checkpoints_add(struct bh_checkpoints *c, const uint8_t leaf_hash[32])
{
    bh_range_add(&c->since, c->crypto, leaf_hash);
    if (c->state == BH_SIGNER_BUSY)
        bh_range_add(&c->after, c->crypto, leaf_hash);
}

void
bh_checkpoints_committed(struct bh_checkpoints *c)
{
    c->since_durable = c->since;
    c->after_durable = c->after;
}

void
bh_checkpoints_aborted(struct bh_checkpoints *c)
{
    c->since = c->since_durable;
    c->after = c->after_durable;
}

/* ---- asking ---- */

static void
checkpoints_signer_lost(struct bh_checkpoints *c, const struct bh_err *why)
{
    c->state = BH_SIGNER_DISCONNECTED;
    if (!c->logged_lost)
        bh_log(SIGNER_LOST, BH_ERRLOG(why));
    c->logged_lost = true;
}

static bool
checkpoints_send_request(struct bh_checkpoints *c, enum bh_signer_verb verb)
{
    const struct bh_err gone = { .rc = BH_UNAVAILABLE, .msg = "it takes no question" };

    c->question.version = BH_SIGNER_VERSION;
    c->question.verb = (uint32_t)verb;
    c->question.number = ++c->number;
    c->sent_ns = bh_time_monotonic();
    snprintf(c->question.name, sizeof c->question.name, "%s", c->name);
    if (c->signing.ops->ask(c->signing.self, &c->question))
        return true;
    checkpoints_signer_lost(c, &gone);
    return false;
}

static void
checkpoints_ask_about(struct bh_checkpoints *c, const struct bh_merkle_frontier *tree)
{
    c->question.range = c->since_durable;
    bh_merkle_frontier_root(tree, c->crypto, c->question.root);
}

bool
bh_checkpoints_ask(struct bh_checkpoints *c, const struct bh_merkle_frontier *tree)
{
    if (c->state != BH_SIGNER_IDLE || tree->size <= c->watermark_size)
        return false;
    BH_ASSERT(c->since.to == tree->size);
    checkpoints_ask_about(c, tree);
    if (!checkpoints_send_request(c, BH_SIGNER_SIGN))
        return false;
    c->state = BH_SIGNER_BUSY;
    bh_range_begin(&c->after, tree->size);
    c->after_durable = c->after;
    return true;
}

/* ---- answers ---- */

static void
checkpoints_store_watermark(struct bh_checkpoints *c)
{
    c->watermark_size = c->answer.size;
    c->has_watermark = c->answer.has_watermark;
}

static bh_rc
checkpoints_reason(const struct bh_signer_reply *answer, struct bh_err *err)
{
    bh_rc rc = answer->rc > BH_OK && answer->rc <= BH_BUG ? (bh_rc)answer->rc : BH_BUG;

    bh_err_set(err, rc, "%s", answer->why);
    if (answer->hint[0])
        bh_err_hint(err, "%s", answer->hint);
    return rc;
}

/* It may have moved its mark all the same: it is asked how far it is before the next. */
static void
checkpoints_signer_refused(struct bh_checkpoints *c)
{
    struct bh_err why = { 0 };

    c->state = BH_SIGNER_DISCONNECTED;
    if (!c->logged_refused && checkpoints_reason(&c->answer, &why) != BH_OK)
        bh_log(SIGNER_REFUSED, BH_ERRLOG(&why), BH_STR("next", why.hint));
    c->logged_refused = true;
}

/* It came back: it may have made a signature whose answer did not arrive. */
static void
checkpoints_receive_hello(struct bh_checkpoints *c, const struct bh_store *store)
{
    struct bh_err err;

    if (c->answer.rc != BH_OK) {
        checkpoints_signer_refused(c);
        c->hello_ns = bh_time_monotonic() + refused_pause_ns;
        return;
    }
    c->state = BH_SIGNER_IDLE;
    checkpoints_store_watermark(c);
    c->keys_changed = strcmp(c->vkeys, c->answer.vkeys) != 0;
    memcpy(c->vkeys, c->answer.vkeys, sizeof c->vkeys);
    if (c->since.from != c->watermark_size
        && checkpoints_read_range(c, store, c->watermark_size, &err) != BH_OK) {
        checkpoints_signer_lost(c, &err);
        return;
    }
    if (c->logged_lost)
        bh_log(SIGNER_BACK);
    c->logged_lost = false;
}

void
bh_checkpoints_refuse_keys(struct bh_checkpoints *c, const struct bh_err *why)
{
    c->state = BH_SIGNER_DISCONNECTED;
    c->keys_changed = false;
    c->vkeys[0] = '\0';
    c->hello_ns = bh_time_monotonic() + refused_pause_ns;
    if (!c->logged_refused)
        bh_log(SIGNER_REFUSED, BH_ERRLOG(why), BH_STR("next", why->hint));
    c->logged_refused = true;
}

static void
checkpoints_receive_signature(struct bh_checkpoints *c)
{
    if (c->answer.rc != BH_OK) {
        checkpoints_signer_refused(c);
        return;
    }
    c->state = BH_SIGNER_IDLE;
    checkpoints_store_watermark(c);
    c->since = c->after;
    c->since_durable = c->after_durable;
    c->note_size = c->answer.size;
    memcpy(c->note, c->answer.note, sizeof c->note);
    c->logged_refused = false;
}

static void
checkpoints_send_hello(struct bh_checkpoints *c)
{
    if (bh_time_monotonic() >= c->hello_ns && c->signing.ops->connected(c->signing.self)
        && checkpoints_send_request(c, BH_SIGNER_HELLO))
        c->state = BH_SIGNER_HELLO_SENT;
}

/* A signer that is stopped, or hangs on its disk, is as good as dead. */
static void
checkpoints_give_up(struct bh_checkpoints *c)
{
    const struct bh_err why = { .rc = BH_TIMEOUT, .msg = "it does not answer" };

    c->signing.ops->drop(c->signing.self);
    checkpoints_signer_lost(c, &why);
}

void
bh_checkpoints_poll(struct bh_checkpoints *c, const struct bh_store *store)
{
    struct bh_err err;
    bh_rc rc;

    if (c->state == BH_SIGNER_DISCONNECTED)
        checkpoints_send_hello(c);
    if (c->state == BH_SIGNER_DISCONNECTED)
        return;
    rc = c->signing.ops->receive(c->signing.self, 0, &c->answer, &err);
    if (rc == BH_UNAVAILABLE)
        checkpoints_signer_lost(c, &err);
    if (rc == BH_NOT_FOUND && c->state != BH_SIGNER_IDLE && bh_time_monotonic() > c->sent_ns + answer_max_ns)
        checkpoints_give_up(c);
    if (rc != BH_OK || c->answer.number != c->number)
        return;
    if (c->state == BH_SIGNER_HELLO_SENT)
        checkpoints_receive_hello(c, store);
    else if (c->state == BH_SIGNER_BUSY)
        checkpoints_receive_signature(c);
}

/* ---- the end ---- */

static void
checkpoints_await_signer(const struct bh_checkpoints *c)
{
    struct pollfd waiting = { .fd = c->signing.ops->fd(c->signing.self), .events = POLLIN };

    poll(&waiting, 1, finish_poll_ms);
}

bh_rc
bh_checkpoints_finish(struct bh_checkpoints *c, const struct bh_store *store,
                      const struct bh_merkle_frontier *tree, struct bh_err *err)
{
    bh_ns deadline = bh_time_monotonic() + finish_max_ns;

    while (c->watermark_size < tree->size) {
        (void)bh_checkpoints_ask(c, tree);
        if (c->logged_refused || c->logged_lost || c->keys_changed)
            return bh_err_set(err, BH_UNAVAILABLE, "the signer refuses, or is gone");
        if (bh_time_monotonic() > deadline)
            return bh_err_set(err, BH_TIMEOUT, "the signer does not answer");
        checkpoints_await_signer(c);
        bh_checkpoints_poll(c, store);
    }
    return BH_OK;
}

/* ---- the start, which waits for the signer ---- */

static bh_rc
checkpoints_ask_and_wait(struct bh_checkpoints *c, enum bh_signer_verb verb, struct bh_err *err)
{
    bh_rc rc;

    if (!c->signing.ops->connected(c->signing.self) || !checkpoints_send_request(c, verb)) {
        bh_err_set(err, BH_UNAVAILABLE, "the signer cannot be reached");
        return bh_err_hint(err, "restart bulkhead-signer, which makes its socket anew: systemctl "
                                "restart bulkhead-signer, or end `bulkhead up` and start it again");
    }
    do
        rc = c->signing.ops->receive(c->signing.self, answer_max_ns, &c->answer, err);
    while (rc == BH_OK && c->answer.number != c->number);
    if (rc == BH_NOT_FOUND)
        return err->rc = BH_UNAVAILABLE;
    if (rc != BH_OK)
        return rc;
    return c->answer.rc == BH_OK ? BH_OK : checkpoints_reason(&c->answer, err);
}

bh_rc
bh_checkpoints_open(struct bh_checkpoints *c, struct bh_err *err)
{
    bh_rc rc = checkpoints_ask_and_wait(c, BH_SIGNER_HELLO, err);

    if (rc != BH_OK)
        return rc;
    checkpoints_store_watermark(c);
    memcpy(c->vkeys, c->answer.vkeys, sizeof c->vkeys);
    return BH_OK;
}

bh_rc
bh_checkpoints_check(struct bh_checkpoints *c, const struct bh_store *store,
                     const struct bh_merkle_frontier *tree, struct bh_err *err)
{
    bh_rc rc;

    if (c->watermark_size > tree->size) {
        bh_err_set(err, BH_CONFLICT, "the log holds %" PRIu64 " records but %" PRIu64 " were signed",
                   tree->size, c->watermark_size);
        return bh_err_hint(err, BH_SIGNER_GO_BACK);
    }
    rc = checkpoints_read_range(c, store, c->watermark_size, err);
    if (rc != BH_OK)
        return rc;
    checkpoints_ask_about(c, tree);
    rc = checkpoints_ask_and_wait(c, BH_SIGNER_CHECK, err);
    c->state = BH_SIGNER_IDLE;
    return rc;
}
