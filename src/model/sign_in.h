#ifndef BH_MODEL_SIGN_IN_H
#define BH_MODEL_SIGN_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/fields.h"

/* How people sign in, as the site file says it under `sign_in`; docs/sign-in.md explains each
 * entry. */

/* How sure it is that the person is there: by what was shown beyond a password. */
enum bh_level {
    BH_LEVEL_NONE,
    BH_LEVEL_CODE,    /* a one-time code, or what the provider calls as much */
    BH_LEVEL_PASSKEY, /* a passkey that verified its user */
    BH_LEVELS
};
extern const char *const bh_level_names[BH_LEVELS];

/* What a local account must show beside its password. */
enum bh_factor_rule {
    BH_FACTOR_DEFAULT,
    BH_FACTOR_OPTIONAL,
    BH_FACTOR_CODE,
    BH_FACTOR_PASSKEY,
    BH_FACTOR_RULES
};

/* How a client proves itself to a provider. */
enum bh_client_auth { BH_CLIENT_DEFAULT, BH_CLIENT_NONE, BH_CLIENT_BASIC, BH_CLIENT_KEY, BH_CLIENT_AUTHS };

/* An OpenID provider.  Secrets are not in the site file: `client_secret` names a file in the
 * daemon's folder of secrets. */
struct bh_site_issuer {
    const char *name; /* "corp" */
    const char *url;  /* its issuer, to the byte */
    const char *client_id;
    enum bh_client_auth client_auth; /* basic with a secret, else none */
    const char *client_secret;       /* a file's name, or NULL */
    const char *scope;               /* NULL: "openid profile" */
    const char *groups_claim;        /* NULL: "groups" */
    bool second_factor;              /* it asks for one at every sign-in: taken for a code's */
    bool loopback;                   /* http://127.0.0.1 will do: for trying things out */
};

/* A verb that takes a fresh proof of identity. */
struct bh_site_step_up {
    const char *verb;
    enum bh_level level; /* none: the verb asks for nothing */
    const char *within;  /* "5m" */
};

struct bh_site_sign_in {
    const char *address;        /* of these pages, as browsers see it; NULL: none */
    enum bh_factor_rule factor; /* code */
    const char *idle, *life;    /* of a session: "30m", "12h" */
    struct bh_list issuers;     /* struct bh_site_issuer */
    struct bh_list step_up;     /* struct bh_site_step_up */
};

extern const struct bh_fields bh_site_sign_in_fields;

enum { BH_ISSUERS_MAX = 8, BH_GROUP_MAX = 255, BH_STEP_UPS_MAX = 64 };

/* The issuer of that name (the first `length` bytes), or NULL. */
const struct bh_site_issuer *bh_sign_in_issuer(const struct bh_site_sign_in *sign_in, const char *name,
                                               size_t length);

/* Whether `text` is ISSUER/REST with an issuer of the file and a rest of 1 to BH_GROUP_MAX
 * bytes without control characters: a group, or a person's identity. */
bool bh_sign_in_names(const struct bh_site_sign_in *sign_in, const char *text);

/* Spans with their defaults: 30 minutes and 12 hours. */
uint64_t bh_sign_in_idle_ns(const struct bh_site_sign_in *sign_in);
uint64_t bh_sign_in_life_ns(const struct bh_site_sign_in *sign_in);

/* Whether it is right in itself.
 *   BH_INVALID  names, addresses, verbs; a client that could not prove itself
 *   BH_RANGE    spans: idle 1 minute to a day, life to 30 days, a step-up's 1 second to a day */
BH_MUST_USE bh_rc bh_sign_in_check(const struct bh_site_sign_in *sign_in, struct bh_err *err);

#endif
