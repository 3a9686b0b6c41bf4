#ifndef BH_ACCOUNTS_ISSUER_H
#define BH_ACCOUNTS_ISSUER_H

#include "api/request/call.h"
#include "identity/jwks_cache.h"
#include "identity/provider.h"
#include "model/sign_in.h"

/* What is known of the site's OpenID providers: their configuration and their keys, asked for
 * when they are needed and kept for a while. */

struct bh_accounts;

enum { BH_DISCOVERY_S = 3600, BH_ISSUER_PAUSE_S = 10 /* after one that did not answer */ };

/* One issuer, under the accounts' mutex; zeroed is unknown. */
struct bh_issuer {
    char name[64], url[BH_URL_MAX + 1];
    struct bh_provider provider;
    struct bh_jwks_cache keys;
    bh_ns fetched, failed; /* 0: never */
};

/* What one sign-in needs of it: a copy, in the call's arena. */
struct bh_issuer_view {
    const struct bh_site_issuer *site;
    struct bh_provider provider;
    struct bh_relying_party client;
    struct bh_jwks jwks;
    uint32_t algs;
};

/* Find the issuer of that name and know its configuration.
 *   BH_NOT_FOUND    the site file has none of that name, or providers cannot be asked
 *   BH_UNAVAILABLE  it does not answer, or what it says is not right: the log says what */
BH_MUST_USE bh_rc bh_issuer_ready(struct bh_accounts *accounts, struct bh_call *call, const char *name,
                                  struct bh_issuer_view **ret_view, struct bh_err *err);

/* Fill the view's keys: those that are kept, or with `unknown_key` fresh ones, where that may
 * be asked again by now.  BH_UNAVAILABLE: there are none. */
BH_MUST_USE bh_rc bh_issuer_keys(struct bh_accounts *accounts, struct bh_call *call, bool unknown_key,
                                 struct bh_issuer_view *view, struct bh_err *err);

/* Prove Bulkhead's identity in the one request that follows: with private_key_jwt a new assertion. */
BH_MUST_USE bh_rc bh_issuer_prove(struct bh_accounts *accounts, struct bh_call *call,
                                  struct bh_issuer_view *view, struct bh_err *err);

/* Ask.  Failures are the request's own; no answer is status 0. */
BH_MUST_USE bh_rc bh_issuer_ask(struct bh_accounts *accounts, struct bh_call *call,
                                const struct bh_https_request *request, struct bh_https_response *ret_answer,
                                struct bh_err *err);

/* Log what was wrong, precisely, and give the user one sentence. */
bh_rc bh_issuer_refused(const struct bh_issuer_view *view, enum bh_identity_fault fault, struct bh_err *err);

#endif
