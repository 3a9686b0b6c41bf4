#include <string.h>

#include "accounts/accounts_internal.h"
#include "base/assert.h"

/* What all files here use: the clock, random letters, the owner. */

bh_ns
bh_accounts_now(const struct bh_accounts *accounts)
{
    return accounts->options.now ? accounts->options.now() : bh_time_now();
}

bh_rc
bh_accounts_random_hex(const struct bh_accounts *accounts, size_t bytes, char *ret_text, struct bh_err *err)
{
    uint8_t random[64];
    struct bh_buf text;
    bh_rc rc;

    BH_ASSERT(bytes <= sizeof random);
    rc = accounts->options.crypto->random(random, bytes, err);
    bh_buf_init_fixed(&text, ret_text, 2 * bytes + 1);
    bh_buf_put_hex(&text, random, bytes);
    bh_buf_text(&text);
    explicit_bzero(random, sizeof random);
    return rc;
}

/* An unknown caller has no request id either. */
static bh_rc
accounts_number(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    static const uint8_t none[16];

    if (memcmp(call->caller.request_id, none, sizeof none) != 0)
        return BH_OK;
    return accounts->options.crypto->random(call->caller.request_id, sizeof call->caller.request_id, err);
}

bh_rc
bh_accounts_commit(struct bh_accounts *accounts, struct bh_call *call,
                   const struct bh_accounts_change *change, struct bh_answer *ret_answer, struct bh_err *err)
{
    const struct bh_owner *owner = &accounts->options.owner;
    struct bh_command command = { .op = call->op->id, .accounts = change };
    bh_rc rc = accounts_number(accounts, call, err);

    if (rc != BH_OK)
        return rc;
    command.caller = call->caller;
    call->recorded = true;
    *ret_answer = (struct bh_answer){ 0 };
    return owner->ops->command(owner->self, &command, call->arena, ret_answer, err);
}
