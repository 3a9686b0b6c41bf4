#ifndef BH_IDENTITY_DEVICE_H
#define BH_IDENTITY_DEVICE_H

#include "base/time.h"
#include "identity/login.h"

/* Signing in from a machine without a browser (RFC 8628): the user types a code at the provider, and Bulkhead
 * asks now and then whether that is done.  A plain value and pure steps:
 *
 *   ask, answer, begin ─► waiting ─(due: poll, answer)─► done, denied or expired
 *
 * One question is under way at a time; the caller asks when bh_device_due says so. */

enum bh_device_state {
    BH_DEVICE_PENDING,
    BH_DEVICE_DONE,
    BH_DEVICE_DENIED, /* by the person, or by the provider */
    BH_DEVICE_EXPIRED
};

struct bh_device_login {
    enum bh_device_state state;
    char device_code[1024];                                         /* secret: its holder gets the tokens */
    char user_code[64];                                             /* to show */
    char address[BH_URL_MAX + 1], address_complete[BH_URL_MAX + 1]; /* latter may be "" */
    bh_ns expires, next_poll;
    uint32_t interval_s;
};

enum {
    BH_DEVICE_INTERVAL_S = 5, /* where the provider names none, and slow_down's step */
    BH_DEVICE_INTERVAL_MAX_S = 60,
    BH_DEVICE_LIFE_MAX_S = 1800
};

/* Ask for a code.  The request lives in the arena.  BH_UNAVAILABLE: the provider has no
 * device flow; BH_FULL: no room. */
BH_MUST_USE bh_rc bh_device_ask(const struct bh_provider *provider, const struct bh_relying_party *client,
                                struct bh_arena *arena, struct bh_https_request *ret_request);

/* Read the answer and begin to wait.  Faults: PROVIDER_DOWN, CLIENT_REFUSED,
 * RESPONSE_JSON, RESPONSE_VALUE (a member is missing, malformed or too long).  `loopback`
 * as in struct bh_relying_party. */
BH_MUST_USE enum bh_identity_fault bh_device_begin(const struct bh_https_response *answer, bool loopback,
                                                   bh_ns now, struct bh_device_login *ret_login);

/* Is it time to poll?  False while it is not, and after the end; the code's time may run
 * out in this call. */
bool bh_device_due(struct bh_device_login *login, bh_ns now);

/* The question to ask then.  BH_FULL: no room. */
BH_MUST_USE bh_rc bh_device_poll(const struct bh_device_login *login, const struct bh_provider *provider,
                                 const struct bh_relying_party *client, struct bh_arena *arena,
                                 struct bh_https_request *ret_request);

/* Read the answer.  BH_FAULT_NONE with state WAITING: not yet, or the provider did not
 * answer and is asked again more slowly; with DONE `ret_tokens` is filled.  Faults end the
 * login: DEVICE_DENIED, DEVICE_EXPIRED, CLIENT_REFUSED, those of bh_tokens_receive. */
BH_MUST_USE enum bh_identity_fault bh_device_receive(struct bh_device_login *login,
                                                     const struct bh_https_response *answer, bh_ns now,
                                                     struct bh_arena *arena, struct bh_tokens *ret_tokens);

#endif
